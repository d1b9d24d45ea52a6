//! `meikyo checkpoint`: protect what a parallel program holds by parity on its own hosts.

mod plan;

use clap::{Args, Subcommand};
use meikyo_console::failure::{Answer, Failure};

/// Protect what a parallel program holds by parity on its own hosts
#[derive(Debug, Args)]
pub(crate) struct CheckpointArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Predict what checkpoints cost on a cluster, how often they pay, and which scheme to take;
    /// exit 1 if no scheme survives the losses that it must
    Plan(plan::PlanArgs),
}

/// Runs the verb.
///
/// # Errors
/// If a file cannot be read, or the output cannot be written.
pub(crate) fn run(args: &CheckpointArgs) -> Result<Answer, Failure> {
    match &args.what {
        What::Plan(args) => plan::run(args),
    }
}
