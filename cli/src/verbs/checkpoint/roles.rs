//! What the processes of a job's containers are started as: all of them are this program.

use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};
use meikyo_console::failure::{self, Answer, Failure};
use meikyo_console::output;
use meikyo_spaces::container::{self, ContainerError};

use crate::signals;

/// The words that this program is started with in a role.
pub(crate) const WORDS: [&str; 2] = ["checkpoint", "role"];

/// The role of the first process of a container.
pub(super) const FIRST: &str = "first";

/// The role of whoever starts a command in a container.
pub(super) const REACH: &str = "reach";

/// The exit code of `ssh` where a host is not reached, or is gone while a command runs there; a container's
/// is the same.
pub(super) const UNREACHED: u8 = 255;

/// What stands behind [`WORDS`].
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
        /// The directory of the containers' sockets
        sockets: PathBuf,
        /// Options of `ssh` for remote logins, the host, and the command as `ssh` takes it
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
}

/// Where a container is reached.
pub(super) fn socket(sockets: &Path, host: &str) -> PathBuf {
    sockets.join(host)
}

/// Does what the process was started for.
pub(crate) fn run(args: &RoleArgs) -> Result<Answer, Failure> {
    match &args.role {
        Role::First { orders } => Ok(Answer::Exit(container::be_first(orders))),
        Role::Reach { sockets, words } => {
            // Launchers of MPI give options, as `-x` and `-q`, that mean nothing here.
            let mut words = words.iter().skip_while(|word| word.starts_with('-'));
            let host = words.next().ok_or_else(|| Failure::new("no host is named"))?;
            let script: Vec<&str> = words.map(String::as_str).collect();
            let command = ["/bin/sh", "-c", &script.join(" ")].map(str::to_owned);
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
