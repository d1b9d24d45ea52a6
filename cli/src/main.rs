//! The binary `meikyo`: parses, resolves, dispatches.

mod args;
mod bench;
mod grammar;
mod hangup;
mod known_devices;
mod log;
mod missing_rows;
mod overview;
mod receiver;
mod roles;
mod row_arguments;
mod rows;
mod signals;
mod this_host;
mod top;
mod verbs;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};
use meikyo_console::failure::{self, Answer, Failure};
use meikyo_console::output::PrintError;
use meikyo_console::ranks;

use crate::args::{Args, Verb};
use crate::verbs::checkpoint::{role_names, roles as checkpoint_roles};
use crate::verbs::lab::roles as lab_roles;

fn main() -> ExitCode {
    if let Some(role) = roles::of_this_process(lab_roles::WORDS) {
        return failure::exit_code(log::begin().map(|()| lab_roles::run(&role)));
    }
    if let Some(role) = roles::of_this_process(role_names::WORDS) {
        return failure::exit_code(checkpoint_roles::run(&role));
    }
    let mut command = overview::command();
    if std::env::args_os().len() < 2 {
        // The bare name is a question, and the answer is the same as that to `--help`.
        let printed = command.print_help().map_err(PrintError::from);
        return failure::exit_code(printed.map(|()| Answer::Yes).map_err(Failure::from));
    }
    let parsed = command.try_get_matches_from_mut(std::env::args_os());
    match parsed.and_then(|matches| Args::from_arg_matches(&matches)) {
        Ok(args) => failure::exit_code(run(args.verb)),
        Err(error) => {
            let typed: Vec<_> = std::env::args_os().skip(1).collect();
            match grammar::renamed::explained(&typed, &error, &command) {
                Some(failure) => failure::exit_code(Err(failure)),
                None => error.format(&mut command).exit(),
            }
        }
    }
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
        Verb::Trace(args) => verbs::trace::run(&args),
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
        Verb::Farm(args) => verbs::farm::run(&args),
    }
}
