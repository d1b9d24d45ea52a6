//! What the processes of a lab are started as: all of them are this program.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use meikyo_console::failure::{Answer, Failure};
use meikyo_lab::Roles;

/// The words that this program is started with in a role.
pub(crate) const WORDS: [&str; 2] = ["lab", "role"];

/// What stands behind [`WORDS`].
#[derive(Debug, Parser)]
#[command(name = "meikyo lab role", no_binary_name = true)]
pub(crate) struct RoleArgs {
    #[command(subcommand)]
    role: Role,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// The process that keeps a lab
    Keeper {
        /// The directory in which the lab keeps its state
        directory: PathBuf,
    },
    /// The first process inside
    Inside {
        /// The lab's directory
        directory: PathBuf,
        /// What a kernel adds to the arguments of the first process
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        added: Vec<String>,
    },
    /// Who does a task inside
    Task,
    /// Who tries namespaces
    Probe,
}

/// How this program is started in each role.
pub(super) fn roles() -> Result<Roles, Failure> {
    let role = |name: &str| [WORDS[0], WORDS[1], name].map(str::to_owned).to_vec();
    Ok(Roles {
        program: std::env::current_exe()?,
        keeper: role("keeper"),
        inside: role("inside"),
        task: role("task"),
        probe: role("probe"),
    })
}

/// Does what the process was started for.
pub(crate) fn run(args: &RoleArgs) -> Answer {
    let said = match &args.role {
        Role::Keeper { directory } => {
            meikyo_lab::keep(directory).map_err(|error| error.to_string())
        }
        Role::Inside { directory, .. } => return Answer::Exit(meikyo_lab::be_inside(directory)),
        Role::Task => meikyo_lab::be_task(),
        Role::Probe => meikyo_lab::probe_namespaces(),
    };
    match said {
        Ok(()) => Answer::Yes,
        Err(text) => {
            super::say(&text);
            Answer::Exit(2)
        }
    }
}
