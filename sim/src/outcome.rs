//! What a run resulted in, and what it took.

use crate::context::Lp;
use crate::coordinator::Verdict;
use crate::fault::Fault;
use crate::key::LpId;
use crate::random::mix;
use crate::share::Share;
use crate::statistics::StatisticResult;

/// What a run resulted in: the same under every scheduler, on any number of threads.
#[derive(Clone, Debug)]
pub struct Outcome<L> {
    /// The LPs in their final states, in the order of their numbers.
    pub lps: Vec<L>,
    /// How many events were committed.
    pub events: u64,
    /// How many events of each LP were committed.
    pub events_per_lp: Vec<u64>,
    /// The declared statistics, in the order of their declaration.
    pub statistics: Vec<StatisticResult>,
    /// Whether events were left after `until`.
    pub events_left: bool,
    /// LPs that wait for something although no event is left, and for what.
    pub waiting: Vec<(LpId, String)>,
    /// A digest of each LP's committed events in their order, if it was asked for.
    pub trace: Vec<u64>,
    /// How the run went, which differs from run to run.
    pub effort: Effort,
}

impl<L> Outcome<L> {
    /// All LPs' traces as one number.
    pub fn trace_digest(&self) -> u64 {
        self.trace.iter().fold(0, |digest, chain| mix(digest ^ chain))
    }
}

/// How a run went. Nothing in here is part of the result: it differs from run to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Events handled, those that were rolled back included.
    pub handled: u64,
    /// Events that were rolled back.
    pub undone: u64,
    /// How many times an LP was rolled back, over one event or many.
    pub rollbacks: u64,
    /// Changes of fields that were written into undo logs.
    pub undo_records: u64,
    /// The most threads that worked at once, those of all ranks together.
    pub threads_used: usize,
    /// The LPs that were rolled back most often, at most [`Effort::SETBACKS_MAX`], and how often.
    pub setbacks: Vec<(LpId, u32)>,
    /// Ranks that had a part of the model.
    pub ranks: usize,
    /// Windows: how often the workers exchanged what they know and agreed on how far to go.
    pub windows: u64,
    /// The scheduler that handled the most events.
    pub scheduler: &'static str,
    /// How many of the events handled are that one's.
    pub(crate) named: u64,
}

impl Effort {
    /// How many LPs are named that were rolled back.
    pub const SETBACKS_MAX: usize = 5;

    /// What to tell a person when most of the work was rolled back, so that one rollback led to the
    /// next: the LPs that were rolled back most often, which are where to look, as `name` calls them.
    pub fn cascade(&self, name: impl Fn(LpId) -> String) -> Option<String> {
        let Self { handled, undone, setbacks, .. } = self;
        let named = setbacks.iter().map(|(lp, times)| format!("{} {times} times", name(*lp)));
        (undone * 2 > *handled).then(|| {
            let named = named.collect::<Vec<_>>().join(", ");
            format!(
                "a cascade of rollbacks: {undone} of {handled} events were rolled back; rolled back \
                 most often: {named}"
            )
        })
    }

    /// Adds `events` that `scheduler` has handled.
    pub(crate) fn add_handled(&mut self, scheduler: &'static str, events: u64) {
        // A run has at most two schedulers, between which it may change several times.
        let others = self.handled - self.named;
        if self.scheduler.is_empty() || scheduler == self.scheduler {
            (self.scheduler, self.named) = (scheduler, self.named + events);
        } else if others + events > self.named {
            (self.scheduler, self.named) = (scheduler, others + events);
        }
        self.handled += events;
    }

    /// Adds what the parts of a run under `scheduler` took; gives the first fault of any of them.
    pub(crate) fn add_parts<'e>(
        &mut self,
        scheduler: &'static str,
        endings: impl IntoIterator<Item = &'e Ending>,
    ) -> Option<Box<Fault>> {
        let mut fault: Option<&Box<Fault>> = None;
        let mut windows = 0;
        for ending in endings {
            self.add_handled(scheduler, ending.handled);
            self.undone += ending.undone;
            self.rollbacks += ending.rollbacks;
            self.add_setbacks(ending.setbacks.iter().copied());
            self.undo_records += ending.undo_records;
            windows = windows.max(ending.windows);
            fault =
                [fault, ending.fault.as_ref()].into_iter().flatten().min_by_key(|fault| fault.key);
        }
        self.windows += windows;
        fault.cloned()
    }

    /// Adds how often LPs were rolled back, and keeps those that were most often.
    pub(crate) fn add_setbacks(&mut self, more: impl IntoIterator<Item = (LpId, u32)>) {
        self.setbacks.extend(more.into_iter().filter(|(_, times)| *times > 0));
        self.setbacks.sort_by_key(|(lp, times)| (std::cmp::Reverse(*times), *lp));
        self.setbacks.truncate(Self::SETBACKS_MAX);
    }
}

/// What one part of a run has become.
pub(crate) struct PartResult<L: Lp> {
    pub(crate) share: Share<L>,
    pub(crate) ending: Ending,
    pub(crate) verdict: Verdict,
}

/// What running one part took, and how it ended.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Ending {
    /// The first committed event that went wrong.
    pub(crate) fault: Option<Box<Fault>>,
    pub(crate) handled: u64,
    pub(crate) undone: u64,
    pub(crate) rollbacks: u64,
    /// The LPs that were rolled back most often, and how often.
    pub(crate) setbacks: Vec<(LpId, u32)>,
    pub(crate) undo_records: u64,
    pub(crate) windows: u64,
    /// Whether events are left that were not handled.
    pub(crate) events_left: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_named_after_the_scheduler_that_handled_most() {
        for (first, then, again, most) in [
            (100, 30, 0, "conservative"),
            (30, 100, 0, "sequential"),
            (5, 5, 0, "conservative"),
            (30, 100, 80, "conservative"),
        ] {
            let mut effort = Effort::default();
            effort.add_handled("conservative", first);
            effort.add_handled("sequential", then);
            effort.add_handled("conservative", again);
            assert_eq!((effort.scheduler, effort.handled), (most, first + then + again));
        }
    }
}
