//! `meikyo checkpoint daemon`: the daemon of one host.

use std::path::PathBuf;

use clap::Args;
use meikyo_checkpoint::daemon::{self, DaemonError, DaemonOptions, JobFile, JobFileError};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output;
use meikyo_units::{BitsPerSecond, Nanos};

use super::recorded::RecordedArgs;

/// The job, and this host's part in it.
#[derive(Debug, Args)]
pub(crate) struct DaemonArgs {
    /// The job file: scheme, key and hosts, as examples/checkpoint-job.toml
    #[arg(long, value_name = "FILE")]
    job: PathBuf,
    /// This host's name in it
    #[arg(long, value_name = "NAME")]
    host: String,
    /// Where generations are kept, on a disk of this host
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,
    /// Found the group: start all daemons once with this option when the job begins
    #[arg(long)]
    found: bool,
    /// Tell that a program with the library is stalled when it runs and has saved nothing for so long
    /// [default: a minute at least, and five times the longest span between two of its saves]
    #[arg(long, value_name = "SPAN")]
    stalled_after: Option<Nanos>,
    /// Write at most so much to the disk, for example 200MB/s
    #[arg(long, value_name = "RATE", value_parser = rate)]
    disk_rate: Option<BitsPerSecond>,
    /// Send at most so much to other hosts, for example 500Mbit/s
    #[arg(long, value_name = "RATE", value_parser = rate)]
    network_rate: Option<BitsPerSecond>,
    #[command(flatten)]
    recorded: RecordedArgs,
}

/// Runs the daemon until the process is killed.
pub(super) fn run(args: &DaemonArgs) -> Result<Answer, Failure> {
    let job = JobFile::load(&args.job).map_err(|error| {
        let hint = match &error {
            JobFileError::Read { path, .. } if *path == args.job => {
                "docs/checkpoint-format.md describes a job's file; examples/checkpoint-job.toml is one"
            }
            JobFileError::Read { .. } | JobFileError::Key { .. } => {
                "`meikyo checkpoint key --out job.key` makes a key; copy it to every host"
            }
            _ => "docs/checkpoint-format.md describes a job's file",
        };
        Failure::new(error).hint(hint)
    })?;
    let place = job.names().iter().position(|name| *name == args.host).ok_or_else(|| {
        Failure::new(format!("`{}` is no host of the job", args.host))
            .hint(format!("its hosts are {}", job.names().join(", ")))
    })?;
    output::say(&format!("{} is place {place} of {}", args.host, job.names().len()));
    let (directory, is_founding) = (args.directory.clone(), args.found);
    let DaemonArgs { stalled_after, disk_rate, network_rate, .. } = *args;
    let observer = args.recorded.observer(&args.host)?;
    let options = DaemonOptions {
        job,
        place,
        directory,
        is_founding,
        stalled_after,
        disk_rate,
        network_rate,
    };
    daemon::run(options, observer).map_err(|error| match &error {
        DaemonError::Founded { .. } => Failure::new(error).hint("leave `--found` out"),
        DaemonError::Listen { .. } => {
            Failure::new(error).hint("another daemon may run here: `meikyo checkpoint status`")
        }
        DaemonError::Lives => {
            Failure::new(error).hint("omit `--found`: the others rebuild this host's data")
        }
        DaemonError::OtherJob { .. } => Failure::new(error)
            .hint("name another `--directory`, or the job file for which it was written"),
        DaemonError::Directory { .. } => Failure::new(error),
    })?;
    Ok(Answer::Yes)
}

/// Slower than this, a host that waits for its turn to send a block would be taken for one that hangs.
const LEAST_RATE: BitsPerSecond = BitsPerSecond::new(8_000_000);

fn rate(text: &str) -> Result<BitsPerSecond, String> {
    let rate: BitsPerSecond = text.parse().map_err(|error| format!("{error}"))?;
    if rate < LEAST_RATE { Err(format!("the least is {LEAST_RATE}")) } else { Ok(rate) }
}
