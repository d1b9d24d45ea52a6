//! How a simulation is run, as a person says it: shared by the verb and the benches.

use clap::{Args, ValueEnum};
use meikyo_sim::{Options, Scheduler};
use meikyo_units::Bytes;

use crate::{ranks, side_by_side};

/// Which scheduler, on how many threads.
#[derive(Debug, Clone, Copy, Args)]
pub struct Scheduling {
    /// The scheduler; the result is the same under all of them
    #[arg(long, value_enum, default_value_t = SchedulerName::Auto)]
    scheduler: SchedulerName,
    /// Maximum number of threads [default: one per core]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
    /// Memory at which speculation is throttled, for example 512MiB
    #[arg(long, allow_hyphen_values = true)]
    memory_limit: Option<Bytes>,
}

/// Schedulers as a person names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SchedulerName {
    /// Several threads if that is faster, else one
    Auto,
    /// One queue on one thread
    Sequential,
    /// Threads handle only events that nothing can affect any more
    Conservative,
    /// Threads run ahead and roll back events that were too early (Time Warp)
    Optimistic,
}

impl Scheduling {
    /// The options for the kernel.
    pub fn options(&self) -> Options {
        let scheduler = match self.scheduler {
            SchedulerName::Auto => Scheduler::Auto,
            SchedulerName::Sequential => Scheduler::Sequential,
            SchedulerName::Conservative => Scheduler::Conservative,
            SchedulerName::Optimistic => Scheduler::Optimistic,
        };
        let mut options =
            Options::new(scheduler, self.threads.map_or_else(side_by_side::cores, usize::from));
        options.memory_limit = self.memory_limit;
        options.ranks = ranks::joined();
        options
    }
}
