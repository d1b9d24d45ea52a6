//! `meikyo lab exec`: a command on a host.

use std::io;
use std::os::fd::AsFd as _;

use clap::Args;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::PrintError;
use meikyo_lab::{Invocation, RunError, Streams};

use super::{UP, Which};
use crate::signals;

/// Arguments of `meikyo lab exec`.
#[derive(Debug, Args)]
pub(super) struct ExecArgs {
    #[command(flatten)]
    which: Which,
    /// Set an environment variable; no others are passed on
    #[arg(long = "env", value_name = "NAME=VALUE")]
    environment: Vec<String>,
    /// The host or switch; `manager` reaches all agents; `-` is the machine that contains them
    #[arg(value_name = "HOST")]
    host: String,
    /// The command with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Runs it with this process's standard streams; ends as it does.
pub(super) fn run(args: &ExecArgs) -> Result<Answer, Failure> {
    let mut environment = Vec::new();
    for variable in &args.environment {
        let (name, value) = variable.split_once('=').ok_or_else(|| {
            Failure::new(format!("`{variable}` is no environment variable; write NAME=VALUE"))
        })?;
        environment.push((name.to_owned(), value.to_owned()));
    }
    let command: Vec<&str> = args.command.iter().map(String::as_str).collect();
    let invocation = Invocation {
        space: Some(args.host.as_str()).filter(|host| *host != "-"),
        command: &command,
        environment: &environment,
    };
    let streams = Streams {
        input: io::stdin().as_fd().try_clone_to_owned().ok(),
        output: &mut io::stdout(),
        errors: &mut io::stderr(),
        signals: Some(signals::stream()?),
    };
    match meikyo_lab::attach(&args.which.directory()?, &invocation, streams) {
        Ok(code) => Ok(Answer::Exit(code)),
        Err(RunError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            Err(PrintError::Closed.into())
        }
        Err(error @ RunError::Refused(_)) => Err(Failure::new(error).hint(refused(args)?)),
        Err(error @ RunError::Directory(_)) => Err(Failure::new(error).hint(UP)),
        Err(error) => Err(Failure::new(error)),
    }
}

/// What to do about a command that was not started: the host is unknown, or else the program.
fn refused(args: &ExecArgs) -> Result<String, Failure> {
    let blueprint = args.which.directory()?.blueprint()?;
    if args.host != "-" && blueprint.space(&args.host).is_none() {
        return Ok("`meikyo lab status` lists hosts and switches".into());
    }
    let program = args.command.first().map_or("", String::as_str);
    Ok(format!(
        "a lab has the programs of this machine: install `{program}` here, or give its directory to \
         `meikyo lab up` by `--read DIR`"
    ))
}
