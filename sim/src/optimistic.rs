//! The optimistic scheduler, Time Warp (Jefferson 1985): workers run ahead, and roll back what came too
//! early.
//!
//! Every worker handles the events of its part in the order of their keys without asking whether an
//! earlier one is still on its way. When such a straggler arrives, the later events of its LP are rolled
//! back from the undo log, the events that those had sent are followed by anti-messages, and all is done
//! again in the right order. From time to time the workers deliver everything and agree on the global
//! virtual time (GVT): nothing before it can be rolled back, so it is committed, and what was kept of it
//! is collected.
//!
//! What the coordinator's horizon proves final is not speculation: nothing from another part can arrive
//! before it. Events up to there are handled in the order of their keys, with nothing kept of them, and
//! a worker runs ahead only where that leaves it with little to do, and not while one thread does all
//! parts. With one part everything is handled speculatively, as that is what was asked for.
//!
//! How far a worker may run ahead of the GVT follows from what is rolled back: the span grows while
//! nearly everything is kept and shrinks when it is not, or when the memory given to speculation is used
//! up. At its smallest it is the least lookahead of any part, and then nothing is rolled back at all.
//!
//! Threads find each other's events in memory between two exchanges; ranks send theirs in batches, with
//! the exchanges.
//!
//! Cost, against the sequential scheduler: a record of about 200 bytes an event, written and read
//! once while it is in the cache; 16 bytes for each changed field; the message once more.

mod history;
mod time_warp;

use self::time_warp::TimeWarp;
use crate::context::Lp;
use crate::coordinator::{Coordinator, NEVER, Report, Totals, Verdict};
use crate::exchange::Exchange;
use crate::exchange::crew::Part;
use crate::outcome::{Effort, Ending, PartResult};
use crate::share::Share;
use crate::threads::Scheme;
use crate::transport::Transport;

pub(crate) use time_warp::Envelope;

/// How many events are handled between two looks at what was sent here.
const BATCH: usize = 64;
/// After how many speculative events of one part the workers agree on the GVT.
const SPECULATED_MAX: usize = 512;
/// After how many certain events of one part the workers agree again without running ahead.
const CERTAIN_ENOUGH: usize = 64;

/// The scheduler on threads.
pub(crate) struct Optimistic;

impl<L: Lp> Scheme<L> for Optimistic {
    type Mail = Envelope<L::Message>;
    type Worker<'a>
        = Worker<'a, L>
    where
        L: 'a;

    fn begin<'a>(
        coordinator: Coordinator<'a, Transport<'a, Self::Mail>>,
        share: Share<L>,
    ) -> Self::Worker<'a>
    where
        L: 'a,
    {
        Worker::begin(coordinator, share)
    }

    fn finish<'a>(worker: Self::Worker<'a>) -> PartResult<L>
    where
        L: 'a,
    {
        worker.finish()
    }
}

/// Runs `share` in windows until the coordinator ends the run, over ranks.
pub(crate) fn run_part<'a, L: Lp>(
    coordinator: Coordinator<'a, Transport<'a, Envelope<L::Message>>>,
    share: Share<L>,
) -> PartResult<L> {
    let mut worker = Worker::begin(coordinator, share);
    while !worker.window(false) {}
    worker.finish()
}

/// One part, between two windows.
pub(crate) struct Worker<'a, L: Lp> {
    coordinator: Coordinator<'a, Transport<'a, Envelope<L::Message>>>,
    time_warp: TimeWarp<'a, L>,
    /// How far this part may run ahead of the GVT, in ns.
    ahead: u64,
    /// The least lookahead of any part, in ns.
    ahead_min: u64,
    /// How many bytes the speculation of this part may take.
    memory_max: usize,
    /// What all parts had reported at the exchange before.
    totals: Totals,
    verdict: Verdict,
}

impl<L: Lp> Part for Worker<'_, L> {
    fn step(&mut self, alone: bool) -> bool {
        self.window(alone)
    }
}

impl<'a, L: Lp> Worker<'a, L> {
    fn begin(
        coordinator: Coordinator<'a, Transport<'a, Envelope<L::Message>>>,
        share: Share<L>,
    ) -> Self {
        let setup = coordinator.setup();
        let parts = setup.partition.parts();
        let lookaheads = (0..parts).map(|part| setup.partition.lookahead(part));
        let ahead_min = lookaheads.min().expect("a model has at least one part").max(1);
        // Saturates: a limit beyond the address space is none.
        let memory_max = setup
            .options
            .memory_limit
            .map_or(usize::MAX, |limit| usize::try_from(limit.get()).unwrap_or(usize::MAX) / parts);
        let time_warp = TimeWarp::new(setup, coordinator.part(), share);
        let mut worker = Self {
            coordinator,
            time_warp,
            ahead: if parts == 1 { NEVER } else { ahead_min },
            ahead_min,
            memory_max,
            totals: Totals { speculated: 0, undone: 0, crowded: false },
            verdict: Verdict::Continue,
        };
        worker.publish();
        worker
    }

    /// Decides, receives, commits and handles a window; whether it was the last one.
    fn window(&mut self, alone: bool) -> bool {
        let setup = self.coordinator.setup();
        let (end, only_part) = (setup.end(), setup.partition.parts() == 1);
        let decision = self.coordinator.decide();
        self.receive();
        self.time_warp.commit(decision.gvt.min(end));
        self.verdict = decision.verdict;
        if self.verdict != Verdict::Continue {
            let TimeWarp { outbox, ledger, .. } = &mut self.time_warp;
            self.coordinator.close(outbox, &mut ledger.lines);
            return true;
        }
        self.adapt();
        let horizon = if only_part { 0 } else { decision.horizon };
        // One thread gains nothing by what it would have to log, as long as the parts get on.
        let enough = if alone { 1 } else { CERTAIN_ENOUGH };
        if self.time_warp.handle_certain(horizon.min(end)) < enough {
            self.run_ahead(decision.gvt.saturating_add(self.ahead).min(end));
        }
        self.coordinator.exchange().request();
        self.publish();
        false
    }

    fn finish(mut self) -> PartResult<L> {
        self.coordinator.finish();
        let counts = self.time_warp.counts;
        let mut effort = Effort::default();
        effort.add_setbacks(self.time_warp.rollbacks_per_lp());
        let mut ending = Ending {
            fault: self.time_warp.fault.take(),
            handled: counts.handled,
            undone: counts.undone,
            rollbacks: counts.rollbacks,
            setbacks: effort.setbacks,
            undo_records: self.time_warp.history.log.changes(),
            windows: self.coordinator.windows(),
            events_left: false,
        };
        let mut share = self.time_warp.into_share();
        ending.events_left = share.has_events_left();
        PartResult { share, ending, verdict: self.verdict }
    }

    /// Reports on this part.
    fn publish(&mut self) {
        let time_warp = &mut self.time_warp;
        let counts = time_warp.counts;
        let first_output = time_warp.history.first_output().unwrap_or(NEVER);
        let report = Report {
            next: time_warp.next_time().unwrap_or(NEVER),
            fault: time_warp.fault.as_ref().map_or(NEVER, |fault| fault.time.as_nanos()),
            lines_before: first_output.min(time_warp.committed_before),
            speculated: counts.handled - counts.certain,
            undone: counts.undone,
            crowded: time_warp.history.bytes() > self.memory_max,
            committed: counts.committed,
            rollbacks: counts.rollbacks,
            ahead: self.ahead,
        };
        let TimeWarp { outbox, ledger, .. } = time_warp;
        self.coordinator.publish(&report, outbox, &mut ledger.lines);
    }

    /// Takes in what has arrived; gives how much that was.
    fn receive(&mut self) -> usize {
        let mut received = 0;
        self.coordinator.exchange().receive(|envelope| {
            received += 1;
            self.time_warp.receive(envelope);
        });
        received
    }

    /// Runs ahead to `limit` ns, or until the workers are to agree again.
    fn run_ahead(&mut self, limit: u64) {
        let mut left = SPECULATED_MAX;
        while left > 0 {
            let handled = self.time_warp.speculate(limit, BATCH.min(left));
            left -= handled;
            self.coordinator.exchange().send_early(&mut self.time_warp.outbox);
            let received = self.receive();
            let crowded = self.time_warp.history.bytes() > self.memory_max;
            let idle = handled == 0 && received == 0;
            if idle || crowded || self.coordinator.exchange().is_requested() {
                break;
            }
        }
    }

    /// Lets this part run further ahead while nearly everything is kept, and less far otherwise. All
    /// parts see the same totals and come to the same.
    fn adapt(&mut self) {
        let totals = self.coordinator.totals();
        let speculated = totals.speculated - self.totals.speculated;
        let undone = totals.undone - self.totals.undone;
        self.totals = totals;
        if totals.crowded {
            self.ahead = (self.ahead / 2).max(1);
        } else if undone * 32 > speculated {
            self.ahead = (self.ahead - self.ahead / 4).max(self.ahead_min);
        } else if undone * 100 <= speculated {
            self.ahead = self.ahead.saturating_add(self.ahead / 8 + 1);
        }
    }
}
