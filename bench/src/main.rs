//! `meikyo-bench`, which `meikyo bench` starts: the product's own numbers, each checked against the truth before it is printed.
//!
//! The collector and the farm run as processes of their own, from the `meikyo` that lies beside this
//! program, each pinned to its core; what is reported of the collector is what the kernel says of the whole process.
#![expect(clippy::disallowed_methods, reason = "benches start the programs that they measure")]

mod afar;
mod agent_cost;
mod bare;
mod checkpoint;
mod cluster_text;
mod collect;
mod collector;
mod fabric;
mod farm_process;
mod live;
mod machine;
mod metadata;
mod paper;
mod phold;
mod placement;
mod predict;
mod profile;
mod reading;
mod real_agent;
mod requests;
mod scan;
mod shell;
mod statistics;
mod values;
mod verification;

use std::process::ExitCode;

use clap::Parser;
use meikyo_console::benches::{Bench, BenchArgs};
use meikyo_console::failure::{self, Answer, Failure};
use meikyo_console::{output, ranks};

/// The benches of Meikyo; `meikyo bench` starts this program.
#[derive(Debug, Parser)]
#[command(
    name = "meikyo bench",
    bin_name = "meikyo bench",
    version,
    propagate_version = true,
    max_term_width = 100
)]
struct Arguments {
    #[command(flatten)]
    bench: BenchArgs,
}

fn main() -> ExitCode {
    failure::exit_code(run(&Arguments::parse().bench))
}

/// Runs a bench; the answer is no when what it kept was wrong, or what it promises was not reached.
fn run(args: &BenchArgs) -> Result<Answer, Failure> {
    match &args.bench {
        Bench::Collect(args) => collect::run(args),
        Bench::Requests(args) => requests::run(args),
        Bench::Agent(args) => agent_cost::run(args),
        Bench::Scan(args) => scan::run(args),
        Bench::Profile(args) => profile::run(args),
        Bench::Live(args) => live::run(args),
        Bench::Afar(args) => afar::run(args),
        Bench::Phold(args) => ranks::over(|| phold::run(args)),
        Bench::Metadata(args) => ranks::over(|| metadata::run(args)),
        Bench::Fabric(args) => fabric::run(args),
        Bench::Predict(args) => predict::run(args),
        Bench::Checkpoint(args) => checkpoint::run(args),
    }
}

/// Says on standard error how far a bench is.
fn progress(text: &str) {
    if !ranks::joined().is_first() {
        return;
    }
    output::say(text);
}
