//! The binary `meikyo`: parses, resolves, dispatches.

mod args;
mod bench;
mod failure;
mod hangup;
mod known_devices;
mod output;
mod printable;
mod ranks;
mod rows;
mod scheduling;
mod top;
mod verbs;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Args, Verb};
use crate::failure::{Answer, Failure};

fn main() -> ExitCode {
    let args = Args::parse();
    match run(args.verb) {
        Ok(answer) => answer.into(),
        Err(failure) if failure.is_closed_output() => ExitCode::SUCCESS,
        #[cfg(feature = "mpi")]
        Err(failure) if failure.is_said_elsewhere() => ExitCode::from(2),
        Err(failure) => {
            output::tell(failure::render(&failure).trim_end());
            ExitCode::from(2)
        }
    }
}

fn run(verb: Verb) -> Result<Answer, Failure> {
    match verb {
        Verb::Measure(args) => verbs::measure::run(&args),
        Verb::Serve(args) => verbs::serve::run(&args),
        Verb::Top(args) => top::run(&args),
        Verb::Fabric(args) => verbs::fabric::run(&args),
        Verb::Lab(args) => verbs::lab::run(&args),
        Verb::Simulate(args) => ranks::over(|| verbs::simulate::run(&args)),
        Verb::Mark(args) => verbs::mark::run(&args),
        Verb::Alerts(args) => verbs::alerts::run(&args),
        Verb::Recording(args) => verbs::recording::run(&args),
        Verb::Bench(args) => bench::run(&args),
        Verb::Config(args) => verbs::config::run(args),
        Verb::Probe(args) => verbs::probe::run(&args),
        Verb::Completions(args) => verbs::completions::run(&args),
        Verb::Man(args) => verbs::man::run(&args),
        Verb::Query(args) => verbs::query::run(&args),
        Verb::Export(args) => verbs::export::run(&args),
        Verb::Agent(args) => verbs::agent::run(&args),
        Verb::Agents(args) => verbs::agents::run(&args),
    }
}
