//! How a model is to be run.

use meikyo_units::{Bytes, SimTime};

use crate::ranks::Ranks;

/// The longest chain of events without delay, unless the run's options say otherwise.
const STEPS_MAX: u32 = 1_000_000;

/// How events are brought into an order that nobody can tell from the sequential one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// One queue on one thread.
    Sequential,
    /// Threads handle what no other thread can still influence.
    Conservative,
    /// Time Warp: threads run ahead, and roll back what came too early.
    Optimistic,
    /// Sequential, every event twice, with its changes undone in between, and once more in a second
    /// model where one can be built ([`run_built`](crate::run_built)).
    Check,
    /// Starts conservatively, goes on with one queue while that is faster, and then tries threads again.
    Auto,
}

/// How a model is run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Which scheduler brings the events into their order.
    pub scheduler: Scheduler,
    /// The most threads that work at once; fewer do where the model has fewer parts.
    pub threads: usize,
    /// The last instant whose events are handled; [`SimTime::END`]: to the end of all events, none of
    /// which is at that instant itself.
    pub until: SimTime,
    /// How much memory speculation may take before it is held back.
    pub memory_limit: Option<Bytes>,
    /// Whether the committed events of each LP are kept as a chain of digests.
    pub traced: bool,
    /// Statistics count what is tallied at this instant or later: what comes before is warm-up.
    pub statistics_from: SimTime,
    /// Whether statistics tell when their values were tallied.
    pub timelines: bool,
    /// The longest chain of events without delay that is not yet an error.
    pub steps_max: u32,
    /// The processes that run the model together. Of several, each runs one part on one thread, and
    /// all get the same outcome; the first is told what the run says.
    pub ranks: Ranks,
}

impl Options {
    /// `scheduler` on `threads` threads, to the end of all events.
    pub fn new(scheduler: Scheduler, threads: usize) -> Self {
        Self {
            scheduler,
            threads: threads.max(1),
            until: SimTime::END,
            memory_limit: None,
            traced: false,
            statistics_from: SimTime::START,
            timelines: false,
            steps_max: STEPS_MAX,
            ranks: Ranks::ONE,
        }
    }

    /// The same options for a run that ends after the events at `until`.
    #[must_use]
    pub fn until(self, until: SimTime) -> Self {
        Self { until, ..self }
    }

    /// The same options for a run whose statistics leave out what is tallied before `instant`.
    #[must_use]
    pub fn statistics_from(self, instant: SimTime) -> Self {
        Self { statistics_from: instant, ..self }
    }

    /// The same options for a run whose statistics tell when their values were tallied.
    #[must_use]
    pub fn timelines(self) -> Self {
        Self { timelines: true, ..self }
    }

    /// The same options for a run that keeps a trace.
    #[must_use]
    pub fn traced(self) -> Self {
        Self { traced: true, ..self }
    }
}
