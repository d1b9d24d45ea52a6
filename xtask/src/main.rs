//! Automation of the workspace: the test run, tidy, the demo, the benches.
//!
//! `./x WORD` and `cargo xtask WORD` are the same; `x` only installs what is missing before.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a face: it prints its progress")]

mod bench;
mod demo;
mod install;
mod package;
mod program;
mod python;
mod room;
mod soak;
mod tally;
mod test_run;
mod tidy;
mod web;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;

const USAGE: &str = "\
usage: ./x WORD [ARGUMENTS]

  demo           measure this machine and a simulated cluster, and show the page
  install [--prefix DIR]
                 install the program, manual pages, completions, services and libmeikyo_checkpoint
  package        build a Debian package, target/package/meikyo.deb
  test [FILTER]  check formatting and lints, run every test; ends with `N passed, N failed, N skipped`
  bench [NAME]   run all benches, or one: `./x bench collect --agents 1000`
  soak [FILTER] [--for TIME] [--seed N]
                 run the random tests for longer, 10min each by default: `./x soak damage --for 60min`
  tidy           check what lints cannot (layers, circles of modules, names, links, licences), and lint the page
  fmt            format the sources, those of the page included
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Carries out one word; the answer is whether all is well.
fn run(arguments: &[String]) -> anyhow::Result<bool> {
    let root = workspace_root()?;
    let (word, rest) = match arguments {
        [] => ("", arguments),
        [word, rest @ ..] => (word.as_str(), rest),
    };
    match word {
        "test" => test_run::run(&root, rest),
        "demo" => demo::run(&root),
        "install" => install::run(&root, rest),
        "package" => package::run(&root, rest),
        "bench" => bench::run(&root, rest),
        "soak" => soak::run(&root, rest),
        "tidy" => {
            let is_tidy = tidy::run(&root)?;
            Ok(with_npm(&root, "the page was not linted", web::lint)? && is_tidy)
        }
        "fmt" => {
            let formatted = program::cargo(&root, &["fmt", "--all"]).run()?;
            Ok(with_npm(&root, "the page was not formatted", web::format)? && formatted)
        }
        "" | "help" | "--help" | "-h" => {
            print!("{USAGE}");
            Ok(true)
        }
        unknown => anyhow::bail!("`{unknown}` is not known\n\n{USAGE}"),
    }
}

/// Does something to the sources of the page; a machine without npm is told what was not done.
fn with_npm(
    root: &Path,
    undone: &str,
    what: fn(&Path) -> anyhow::Result<bool>,
) -> anyhow::Result<bool> {
    if let Some(lacking) = web::lacking(root) {
        eprintln!("x: {undone}: {lacking}");
        return Ok(true);
    }
    what(root)
}

/// The directory of the workspace's manifest.
fn workspace_root() -> anyhow::Result<PathBuf> {
    let crate_directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = crate_directory.parent().context("`xtask` has no parent directory")?;
    anyhow::ensure!(
        root.join("Cargo.lock").is_file(),
        "the workspace has moved since xtask was built; run `cargo build -p xtask`"
    );
    Ok(root.to_path_buf())
}
