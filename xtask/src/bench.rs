//! `./x bench`: the benches in a release build, one by its arguments or all that the promises name.

use std::path::Path;

use crate::program::{cargo, program};
use crate::web::{self, Page};

/// What `./x bench` without arguments runs: what is promised, and what is aimed at and not reached.
const ALL: [&str; 21] = [
    "collect --agents 241 --every 100ms --for 60s --realtime --runs 5",
    "collect --agents 1000 --every 100ms --for 30s --realtime --bare --runs 5",
    "collect --agents 1000 --every 100ms --for 30s --realtime --version 3 --runs 5",
    "collect --agents 10000 --every 100ms --for 30s --realtime --runs 5",
    "collect --agents 256 --every 10ms --for 60s --realtime --runs 5",
    "collect --agents 241 --every 100ms --for 120s --realtime --cache 3s",
    "collect --agents 241 --every 100ms --for 120s --realtime",
    "collect --agents 512 --every 100ms --for 20s --realtime --dead 50%",
    "requests",
    "agent",
    "scan",
    "live",
    "phold --lps 1024 --events-per-lp 1 --end 4000 --scheduler sequential --threads 1",
    "phold --lps 1024 --events-per-lp 8 --end 500 --scheduler sequential --threads 1",
    "phold --lps 16384 --events-per-lp 8 --remote 0.25 --end 30 --scheduler sequential --threads 1",
    "phold --lps 65536 --events-per-lp 16 --remote 0.25 --end 4 --scheduler sequential --threads 1",
    "phold --lps 65536 --events-per-lp 16 --remote 0.25 --end 4 --scheduler conservative --threads 2",
    "phold --lps 65536 --events-per-lp 16 --remote 0.25 --end 4 --scheduler optimistic --threads 2",
    "phold --lps 1024 --events-per-lp 8 --remote 0.25 --end 60 --work 5000 --scheduler sequential --threads 1",
    "phold --lps 1024 --events-per-lp 8 --remote 0.25 --end 60 --work 5000 --scheduler auto --threads 2",
    "metadata",
];

/// Runs them; whether all of them answered yes.
pub(crate) fn run(root: &Path, arguments: &[String]) -> anyhow::Result<bool> {
    if let Page::Lacking(what) = web::build(root)? {
        println!("the page is left out, `bench live` cannot run: {what}");
    }
    let built = cargo(root, &["build", "--release", "--locked"]).run()?;
    anyhow::ensure!(built, "the release build failed");
    let path = root.join("target/release/meikyo");
    let bench = |words: &[&str]| {
        let words: Vec<_> = std::iter::once("bench").chain(words.iter().copied()).collect();
        program(root, &path.to_string_lossy(), &words).shown_as("meikyo").run()
    };
    if !arguments.is_empty() {
        let words: Vec<_> = arguments.iter().map(String::as_str).collect();
        return bench(&words);
    }
    let mut well = true;
    for line in ALL {
        println!();
        let words: Vec<_> = line.split(' ').collect();
        well &= bench(&words)?;
    }
    Ok(well)
}
