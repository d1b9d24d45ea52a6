//! `meikyo checkpoint`: protect what a parallel program holds by parity on its own hosts.

mod afar;
mod as_is;
mod criu;
mod daemon;
mod doctor;
mod domains;
mod fence;
mod inside;
mod key;
mod levels;
mod machine;
mod parts;
mod plan;
mod program;
mod recorded;
mod rehearse;
pub(crate) mod role_names;
pub(crate) mod roles;
mod run;
mod shown;
mod site;
mod slurm;
mod status;
mod trouble;
mod watch;

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
    /// Predict the cost of checkpoints on a cluster, and recommend an interval and a scheme; exit 1
    /// if no scheme survives the required losses, or hosts fail more often than a checkpoint takes
    Plan(Box<plan::PlanArgs>),
    /// Make the key that all hosts of a job share, readable by its owner only
    Key(key::KeyArgs),
    /// Run a program with checkpoint daemons on all its hosts, and exit as it does
    ///
    /// COMMAND is started on the first host; mpiexec of MPICH and Open MPI finds the others there. When a host is lost,
    /// the program is ended, and `restart` goes on from the newest checkpoint.
    Run(Box<run::RunArgs>),
    /// Capture a program once as `run --as-is` does, and say whether that is possible; exit 1 if not
    Doctor(doctor::DoctorArgs),
    /// Kill a host on purpose and measure how long it takes until the program runs again on a spare; exit 1 if the program
    /// cannot be captured
    Rehearse(rehearse::RehearseArgs),
    /// Run the daemon of one host until it is killed
    Daemon(Box<daemon::DaemonArgs>),
    /// Show the state of a daemon and its group; exit 1 if a host does not answer or this one is no
    /// member
    Status(status::StatusArgs),
    /// Hand the image of a step to the daemon; returns when the daemon has read it
    Save(program::SaveArgs),
    /// Verify every block of this host's newest generation; exit 1 if one is damaged
    Verify(program::VerifyArgs),
    /// Go on with a job of `run`, from its newest checkpoint; or, with --out, write a host's image of it into a file
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
        What::Run(args) => run::run(args),
        What::Doctor(args) => doctor::run(args),
        What::Rehearse(args) => rehearse::run(args),
        What::Daemon(args) => daemon::run(args),
        What::Status(args) => status::run(args),
        What::Save(args) => program::save(args),
        What::Verify(args) => program::verify(args),
        What::Restart(args) => program::restart(args),
    }
}
