//! What the processes of a job's containers are started as: all of them are this program.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use meikyo_console::failure::{self, Answer, Failure};
use meikyo_console::output;
use meikyo_spaces::container::{self, ContainerError};

use super::inside::{self, KeepArgs, PartArgs};
use super::machine::{self, HostArgs};
use super::role_names::{OUTSIDE, UNREACHED, socket};
use super::site::Site;
use crate::signals;

/// What stands behind [`WORDS`](super::role_names::WORDS).
#[derive(Debug, Parser)]
#[command(name = "meikyo checkpoint role", no_binary_name = true)]
pub(crate) struct RoleArgs {
    #[command(subcommand)]
    role: Role,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// The first process of a container
    First {
        /// What it is told
        orders: String,
    },
    /// Who starts a command in a container, as `ssh` does on a host
    Reach {
        /// Return once the command runs, which is kept for captures and writes what it says into this file
        #[arg(long)]
        kept: Option<PathBuf>,
        /// Hosts are machines: the job says how they are reached from this one
        #[arg(long, requires = "kept")]
        job: Option<PathBuf>,
        /// The directory of the containers' sockets
        sockets: PathBuf,
        /// Options of `ssh` for remote logins, the host, and the command as `ssh` takes it
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// The first process of a tree that is captured
    Keep(KeepArgs),
    /// Whoever writes what a host has of a program, when all hosts stand still
    Capture(PartArgs),
    /// Whoever has a container on a host that is reached by `ssh`
    Host(HostArgs),
    /// Whoever has it run again
    BringBack(PartArgs),
}

/// Does what the process was started for.
pub(crate) fn run(args: &RoleArgs) -> Result<Answer, Failure> {
    match &args.role {
        Role::First { orders } => Ok(Answer::Exit(container::be_first(orders))),
        Role::Keep(args) => inside::keep(args),
        Role::Capture(args) => inside::capture(args),
        Role::BringBack(args) => inside::bring_back(args),
        Role::Host(args) => machine::be_host(args),
        Role::Reach { kept, job, sockets, words } => {
            // Launchers of MPI give options, as `-x` and `-q`, that mean nothing here.
            let mut words = words.iter().skip_while(|word| word.starts_with('-'));
            let host = words.next().ok_or_else(|| Failure::new("no host is named"))?;
            let script: Vec<&str> = words.map(String::as_str).collect();
            let script = script.join(" ");
            let script = match kept {
                Some(said) => {
                    let command = ["/bin/sh", "-c", &script].map(str::to_owned);
                    Site::kept(&["--said".into(), said.to_string_lossy().into_owned()], &command)?
                }
                None => script,
            };
            let (host, command) = match job {
                Some(job) => (OUTSIDE, Site::read(job)?.words_for(host, &script)?),
                None => (host.as_str(), ["/bin/sh", "-c", &script].map(str::to_owned).to_vec()),
            };
            match container::reach(&socket(sockets, host), &command, &signals::stream()?) {
                Ok(code) => Ok(Answer::Exit(code)),
                Err(error @ ContainerError::Gone { .. }) => {
                    output::tell(failure::render(&error.into()).trim_end());
                    Ok(Answer::Exit(UNREACHED))
                }
                Err(error) => Err(error.into()),
            }
        }
    }
}
