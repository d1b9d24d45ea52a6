//! `meikyo profile`: what every CPU of this host does, a thousand times a second.

mod agent;
mod chosen;
mod door;
mod export;
mod grab;
mod import;
mod outlet;
mod record;
mod report;
mod sampling;
mod teller;

use clap::{Args, Subcommand};
use meikyo_console::failure::{Answer, Failure};

/// Sample what runs on every CPU, keep every sample, and show where the time went.
#[derive(Debug, Args)]
pub(crate) struct ProfileArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Sample a program, processes or everything on this host into a recording
    Record(record::RecordArgs),
    /// Sample everything on this host, and send the samples to a server immediately
    Agent(agent::AgentArgs),
    /// Have the agent on this host send its newest raw samples, which it would otherwise only sum up
    Grab(grab::GrabArgs),
    /// Make a recording of a file that `perf record` wrote
    Import(import::ImportArgs),
    /// Count the samples of a recording by function, file, process, thread, CPU or control group
    Report(report::ReportArgs),
    /// Count the newest samples of a recording, even while it is being written
    Top(report::TopArgs),
    /// Compare two profiles: functions whose share of samples changed
    Diff(report::DiffArgs),
    /// Write samples for other programs: the text of `perf script`, pprof, speedscope
    Export(export::ExportArgs),
}

/// Runs the verb.
///
/// # Errors
/// If this host cannot be sampled, or the recording cannot be written or read.
pub(crate) fn run(args: &ProfileArgs) -> Result<Answer, Failure> {
    match &args.what {
        What::Record(args) => record::run(args),
        What::Agent(args) => agent::run(args),
        What::Grab(args) => grab::run(args),
        What::Import(args) => import::run(args),
        What::Report(args) => report::run(args),
        What::Top(args) => report::top(args),
        What::Diff(args) => report::diff(args),
        What::Export(args) => export::run(args),
    }
}
