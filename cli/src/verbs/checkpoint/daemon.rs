//! `meikyo checkpoint daemon`: the daemon of one host.

use std::path::PathBuf;

use clap::Args;
use meikyo_checkpoint::daemon::{
    self, DaemonError, DaemonOptions, DrainOptions, JobFile, JobFileError, RulesError,
};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output;
use meikyo_units::{BitsPerSecond, Bytes, Nanos};

use super::levels::{LevelArgs, absolute};
use super::plan::MTBF;
use super::recorded::RecordedArgs;

/// The job, and this host's part in it.
#[derive(Debug, Args)]
pub(crate) struct DaemonArgs {
    /// The job file, with scheme, key and hosts; for example examples/checkpoint-job.toml
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
    /// A program that begins goes on from this generation instead of the newest; give the same one on all hosts
    #[arg(long, value_name = "N", conflicts_with = "found")]
    generation: Option<u64>,
    /// End when standard input ends: for launchers, so that no daemon outlives them
    #[arg(long)]
    with_input: bool,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    recorded: RecordedArgs,
}

/// What a daemon is limited to.
#[derive(Debug, Clone, Args)]
pub(super) struct Limits {
    /// Report a program with the library as stalled if it runs and has saved nothing for this long
    #[arg(long, value_name = "SPAN")]
    stalled_after: Option<Nanos>,
    /// Limit of what is written to the disk, for example 200MB/s
    #[arg(long, value_name = "RATE", value_parser = rate)]
    disk_rate: Option<BitsPerSecond>,
    /// Limit of what is sent to other hosts, for example 500Mbit/s
    #[arg(long, value_name = "RATE", value_parser = rate)]
    network_rate: Option<BitsPerSecond>,
    /// Limit of the processor time that the daemon takes, in percent of one processor, 1 to 10000
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    cpu: Option<u16>,
    /// Check before anything runs that the program's checkpoints fit the disk: the data of one host
    #[arg(long, value_name = "SIZE")]
    bytes: Option<Bytes>,
    /// Copy checkpoints to this directory of a file system that all hosts share, each job to its own
    #[arg(long, value_name = "DIR")]
    drain: Option<PathBuf>,
    /// Limit of what each host writes to it
    #[arg(long, value_name = "RATE", requires = "drain", value_parser = rate)]
    drain_rate: Option<BitsPerSecond>,
    /// The time between two copies [default: Daly's, from what a copy takes]
    #[arg(long, value_name = "SPAN", requires = "drain")]
    drain_every: Option<Nanos>,
    /// Number of complete checkpoints that are kept there; older ones are deleted
    #[arg(long, value_name = "N", requires = "drain", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
    drain_keep: u16,
    /// Mean time between failures of one host, for the time between two checkpoints of programs that ask when one is
    /// due, between two on disk where others are in memory, and between two copies on the shared file system
    #[arg(long, value_name = "SPAN", default_value = MTBF, value_parser = between_failures)]
    mtbf: Nanos,
    #[command(flatten)]
    levels: LevelArgs,
}

impl Limits {
    /// The mean time between failures of one host.
    pub(super) const fn between_failures(&self) -> Nanos {
        self.mtbf
    }

    /// As they are given to a daemon.
    pub(super) fn arguments(&self) -> Vec<String> {
        let named = [
            ("--stalled-after", self.stalled_after.map(|span| span.to_string())),
            ("--disk-rate", self.disk_rate.map(|rate| rate.to_string())),
            ("--network-rate", self.network_rate.map(|rate| rate.to_string())),
            ("--cpu", self.cpu.map(|percent| percent.to_string())),
            ("--bytes", self.bytes.map(|bytes| bytes.to_string())),
            ("--drain", self.drain.as_deref().map(absolute)),
            ("--drain-rate", self.drain_rate.map(|rate| rate.to_string())),
            ("--drain-every", self.drain_every.map(|span| span.to_string())),
            ("--drain-keep", self.drain.as_ref().map(|_| self.drain_keep.to_string())),
            ("--mtbf", Some(self.mtbf.to_string())),
        ];
        let named = named.into_iter().chain(self.levels.named());
        let given = named.filter_map(|(name, value)| Some([name.to_owned(), value?]));
        given.flatten().collect()
    }

    fn drain(&self) -> Option<DrainOptions> {
        Some(DrainOptions {
            directory: self.drain.clone()?,
            rate: self.drain_rate,
            every: self.drain_every,
            keep: self.drain_keep.into(),
            between_failures: self.mtbf,
        })
    }
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
    let Limits { stalled_after, disk_rate, network_rate, .. } = args.limits;
    let observer = args.recorded.observer(&args.host)?;
    let rules = args.limits.levels.rules().or(job.rules().clone());
    let levels = rules.options(args.limits.mtbf).map_err(|error| {
        let hint = match &error {
            RulesError::Keep(_) => "write for example --keep 2, or `keep = 2` in the job's file",
            RulesError::NoMemory(_) => {
                "give memory, for example --memory 8GiB, or `room` in `[memory]` of the job's file"
            }
        };
        Failure::new(error).hint(hint)
    })?;
    let options = DaemonOptions {
        job,
        place,
        directory,
        is_founding,
        from: args.generation,
        stalled_after,
        disk_rate,
        network_rate,
        cpu_share: args.limits.cpu.map(|percent| f64::from(percent) / 100.0),
        room_for: args.limits.bytes,
        drain: args.limits.drain(),
        levels,
        ends_with_input: args.with_input,
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
        DaemonError::Room { .. } => Failure::new(error).hint(
            "name a directory with more room; `--bytes` says what the program saves on one host",
        ),
        DaemonError::NoMemory { .. } => Failure::new(error)
            .hint("name one with --memory-directory; `/dev/shm` is on most systems"),
        DaemonError::Memory { .. } => Failure::new(error).hint(
            "give less with --memory; with `--bytes` it is checked to be enough for the program",
        ),
        DaemonError::WriteDown(_) => Failure::new(error)
            .hint("start the daemon again when there is room on the disk: it goes on from memory"),
        DaemonError::Directory { .. } => Failure::new(error),
    })?;
    Ok(Answer::Yes)
}

fn between_failures(text: &str) -> Result<Nanos, String> {
    let span: Nanos = text.parse().map_err(|error| format!("{error}"))?;
    if span == Nanos::ZERO {
        Err("that is no time at all; write for example `365d`".into())
    } else {
        Ok(span)
    }
}

/// Slower than this, a host that waits for its turn to send a block would be taken for one that hangs.
const LEAST_RATE: BitsPerSecond = BitsPerSecond::new(8_000_000);

fn rate(text: &str) -> Result<BitsPerSecond, String> {
    let rate: BitsPerSecond = text.parse().map_err(|error| format!("{error}"))?;
    if rate < LEAST_RATE { Err(format!("the least is {LEAST_RATE}")) } else { Ok(rate) }
}
