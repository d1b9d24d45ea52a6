//! `meikyo checkpoint`: protect what a parallel program holds by parity on its own hosts.

mod daemon;
mod key;
mod plan;
mod program;
mod status;

use clap::{Args, Subcommand};
use meikyo_console::failure::{Answer, Failure};

/// Save the state of a parallel program with parity, and recover it when a host is lost
#[derive(Debug, Args)]
pub(crate) struct CheckpointArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Predict what checkpoints cost on a cluster, how often they pay, and which scheme to take;
    /// exit 1 if no scheme survives the losses that it must
    Plan(Box<plan::PlanArgs>),
    /// Make the key that all hosts of a job have, readable by its owner only
    Key(key::KeyArgs),
    /// Run the daemon of one host until it is killed
    Daemon(daemon::DaemonArgs),
    /// Show how a daemon and its group stand; exit 1 if a host does not answer or this one is no member
    Status(status::StatusArgs),
    /// Hand a step of the program over to the daemon; it returns when the image has been read
    Save(program::SaveArgs),
    /// Read every block of the newest generation here; exit 1 if one is not what was stored
    Verify(program::VerifyArgs),
    /// Write this host's image of the newest generation into a file, to go on from there
    Restart(program::RestartArgs),
}

/// Runs the verb.
///
/// # Errors
/// If a file cannot be read, a daemon does not answer, or the output cannot be written.
pub(crate) fn run(args: &CheckpointArgs) -> Result<Answer, Failure> {
    match &args.what {
        What::Plan(args) => plan::run(args),
        What::Key(args) => key::run(args),
        What::Daemon(args) => daemon::run(args),
        What::Status(args) => status::run(args),
        What::Save(args) => program::save(args),
        What::Verify(args) => program::verify(args),
        What::Restart(args) => program::restart(args),
    }
}
