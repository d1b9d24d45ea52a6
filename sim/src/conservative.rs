//! The conservative scheduler: workers handle only what no other worker can influence any more.
//!
//! In every window each worker handles the events of its part up to the horizon that the coordinator
//! derived from the reports of all parts and the delays of the declared links: nobody guesses a
//! lookahead. Nothing is ever rolled back, so an event is committed as it is handled. Then the workers
//! exchange what they sent, and the next window begins.
//!
//! Cost: one exchange a window, some hundred ns with a core for each thread; an event to another part
//! is written once more, into a list that only its sender touches within a window, and few of them again into a ring.

use crate::context::Lp;
use crate::coordinator::{Coordinator, NEVER, Report, Verdict};
use crate::exchange::crew::Part;
use crate::exchange::{Exchange, Outbox};
use crate::fault::{Fault, Problem};
use crate::key::{Event, EventKey, LpId};
use crate::outcome::{Ending, PartResult};
use crate::panics::{self, Handling};
use crate::setup::Setup;
use crate::share::{self, Share};
use crate::threads::Scheme;
use crate::transport::Transport;
use crate::window::{self, Router, Window};

/// The scheduler on threads.
pub(crate) struct Conservative;

impl<L: Lp> Scheme<L> for Conservative {
    type Mail = Event<L::Message>;
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
    coordinator: Coordinator<'a, Transport<'a, Event<L::Message>>>,
    share: Share<L>,
) -> PartResult<L> {
    let mut worker = Worker::begin(coordinator, share);
    while !worker.window() {}
    worker.finish()
}

/// One part, between two windows.
pub(crate) struct Worker<'a, L: Lp> {
    coordinator: Coordinator<'a, Transport<'a, Event<L::Message>>>,
    share: Share<L>,
    outbox: Outbox<Event<L::Message>>,
    /// The event that is being handled, or was handled last.
    at: Option<(EventKey, LpId)>,
    /// What went wrong here. The part handles nothing after that.
    fault: Option<Box<Fault>>,
    handled: u64,
    verdict: Verdict,
}

impl<L: Lp> Part for Worker<'_, L> {
    fn step(&mut self, _alone: bool) -> bool {
        self.window()
    }
}

impl<'a, L: Lp> Worker<'a, L> {
    fn begin(
        coordinator: Coordinator<'a, Transport<'a, Event<L::Message>>>,
        share: Share<L>,
    ) -> Self {
        let outbox = Outbox::new(coordinator.setup().partition.parts());
        let verdict = Verdict::Continue;
        let mut worker =
            Self { coordinator, share, outbox, at: None, fault: None, handled: 0, verdict };
        worker.publish();
        worker
    }

    /// Decides, receives and handles a window; whether it was the last one.
    fn window(&mut self) -> bool {
        let decision = self.coordinator.decide();
        let queue = &mut self.share.queue;
        self.coordinator.exchange().receive(|event| {
            assert!(event.time() >= decision.gvt, "an event arrived before the GVT");
            queue.push(event);
        });
        self.verdict = decision.verdict;
        if self.verdict != Verdict::Continue {
            self.coordinator.close(&mut self.outbox, &mut self.share.ledger.lines);
            return true;
        }
        // Events after the first fault would be handled in vain.
        let end = self.coordinator.setup().end();
        self.handle_window(decision.horizon.min(end).min(decision.fault.saturating_add(1)));
        self.publish();
        false
    }

    fn finish(mut self) -> PartResult<L> {
        self.coordinator.finish();
        let ending = Ending {
            fault: self.fault,
            handled: self.handled,
            windows: self.coordinator.windows(),
            events_left: self.share.has_events_left(),
            ..Ending::default()
        };
        PartResult { share: self.share, ending, verdict: self.verdict }
    }

    /// Reports on this part.
    fn publish(&mut self) {
        let next = match &self.fault {
            Some(_) => NEVER,
            None => self.share.queue.next_key().map_or(NEVER, |key| key.time.as_nanos()),
        };
        let report = Report {
            next,
            fault: self.fault.as_ref().map_or(NEVER, |fault| fault.time.as_nanos()),
            lines_before: NEVER,
            speculated: 0,
            undone: 0,
            crowded: false,
            committed: self.handled,
            rollbacks: 0,
            ahead: 0,
        };
        self.coordinator.publish(&report, &mut self.outbox, &mut self.share.ledger.lines);
    }

    /// Handles this part's events before `limit` ns.
    fn handle_window(&mut self, limit: u64) {
        if self.fault.is_some() {
            return;
        }
        let handled = panics::caught(Handling::Committed, || self.handle_events(limit));
        let problem = match handled {
            Ok(None) => return,
            Ok(Some(problem)) => *problem,
            Err(panicked) => panicked,
        };
        let (key, lp) = self.at.expect("only an event goes wrong");
        let rules = self.coordinator.setup().rules;
        self.fault = Some(share::fault(rules, lp, Some(key), problem));
    }

    fn handle_events(&mut self, limit: u64) -> Option<Box<Problem>> {
        let setup = self.coordinator.setup();
        let part = self.coordinator.part();
        let mut router = ToOtherParts { setup, part, outbox: &mut self.outbox };
        let window = Window { before: limit, events_max: u64::MAX };
        let (rules, at) = (setup.rules, &mut self.at);
        let (handled, problem) =
            window::handle_events(rules, &mut self.share, window, &mut router, at);
        self.handled += handled;
        problem
    }
}

/// Puts events for other parts into the outbox.
struct ToOtherParts<'a, M> {
    setup: &'a Setup<'a>,
    part: usize,
    outbox: &'a mut Outbox<Event<M>>,
}

impl<M> Router<M> for ToOtherParts<'_, M> {
    #[inline]
    fn keep_local(&mut self, event: Event<M>) -> Option<Event<M>> {
        let group = self.setup.rules.group_of(event.destination);
        let part = self.setup.partition.part_of(group, event.destination);
        if part == self.part {
            return Some(event);
        }
        self.outbox.push(part, event.time(), event);
        None
    }
}
