//! The binary `meikyo`: parses, resolves, dispatches.

mod args;
mod bench;
mod hangup;
mod known_devices;
mod log;
mod missing_rows;
mod overview;
mod row_arguments;
mod rows;
mod top;
mod verbs;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};
use meikyo_console::failure::{self, Answer, Failure};
use meikyo_console::output::PrintError;
use meikyo_console::ranks;

use crate::args::{Args, Verb};

fn main() -> ExitCode {
    let mut command = overview::command();
    if std::env::args_os().len() < 2 {
        // The bare name is a question, and the answer is the same as that to `--help`.
        let printed = command.print_help().map_err(PrintError::from);
        return failure::exit_code(printed.map(|()| Answer::Yes).map_err(Failure::from));
    }
    let parsed = Args::from_arg_matches(&command.get_matches_mut());
    let args = parsed.unwrap_or_else(|error| error.format(&mut command).exit());
    failure::exit_code(run(args.verb))
}

fn run(verb: Verb) -> Result<Answer, Failure> {
    // What is drawn over the whole terminal would be torn by lines.
    if !matches!(verb, Verb::Top(_)) {
        log::begin()?;
    }
    match verb {
        Verb::Measure(args) => verbs::measure::run(&args),
        Verb::Profile(args) => verbs::profile::run(&args),
        Verb::Serve(args) => verbs::serve::run(&args),
        Verb::Top(args) => top::run(&args),
        Verb::Fabric(args) => verbs::fabric::run(&args),
        Verb::Lab(args) => verbs::lab::run(&args),
        Verb::Simulate(args) => ranks::over(|| verbs::simulate::run(&args)),
        Verb::Checkpoint(args) => verbs::checkpoint::run(&args),
        Verb::Mark(args) => verbs::mark::run(&args),
        Verb::Alerts(args) => verbs::alerts::run(&args),
        Verb::Recording(args) => verbs::recording::run(&args),
        Verb::Bench(_) => bench::run(),
        Verb::Config(args) => verbs::config::run(args),
        Verb::Probe(args) => verbs::probe::run(&args),
        Verb::Completions(args) => verbs::completions::run(&args, Args::command()),
        Verb::Man(args) => verbs::man::run(&args, Args::command()),
        Verb::Query(args) => verbs::query::run(&args),
        Verb::Export(args) => verbs::export::run(&args),
        Verb::Agent(args) => verbs::agent::run(&args),
        Verb::Agents(args) => verbs::agents::run(&args),
    }
}
