//! Handles the events of a window in the order of their keys, and commits each as it is handled.
//!
//! The sequential and the conservative scheduler share this loop: neither ever rolls back, so nothing is
//! logged, and what a handler does takes effect at once.

use meikyo_undo::{Log, Place};

use crate::context::{Lp, Port};
use crate::fault::Problem;
use crate::key::{Event, EventKey, LpId};
use crate::queue::Queue;
use crate::rules::Rules;
use crate::share::{self, Share};
use crate::statistics::{Ledger, Origin, Output};
use crate::withdrawn::Withdrawn;

/// How many events before its turn the LP of an event is brought into the cache.
const PREFETCH: usize = 6;

/// How far events are handled in one go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// Only events earlier than this are handled, in ns.
    pub(crate) before: u64,
    /// At most so many events are handled.
    pub(crate) events_max: u64,
}

/// Decides where the events go that handlers send.
pub(crate) trait Router<M> {
    /// Gives `event` back if its destination lives in this part; takes it if not.
    fn keep_local(&mut self, event: Event<M>) -> Option<Event<M>>;
}

/// The only part of a model: every event stays.
pub(crate) struct OnlyPart;

impl<M> Router<M> for OnlyPart {
    #[inline]
    fn keep_local(&mut self, event: Event<M>) -> Option<Event<M>> {
        Some(event)
    }
}

/// Handles the events of `window`; gives how many there were, and what went wrong with the one after
/// those.
///
/// `at` is the event that is being handled, also for a caller who catches a panic.
#[inline(always)]
pub(crate) fn handle_events<L: Lp>(
    rules: &Rules,
    share: &mut Share<L>,
    window: Window,
    router: &mut impl Router<L::Message>,
    at: &mut Option<(EventKey, LpId)>,
) -> (u64, Option<Box<Problem>>) {
    let mut handled = 0;
    while handled < window.events_max && share.queue.is_before(window.before) {
        let event = share.queue.take();
        if let Some(coming) = share.queue.ahead(PREFETCH) {
            let location = share.layout.locate(rules, coming.destination);
            std::hint::black_box(share.slots[location.local].counters.sent);
        }
        if share.withdrawn.takes(&event) {
            continue;
        }
        let (key, lp) = (event.key(), event.destination);
        debug_assert!(at.is_none_or(|(before, _)| before < key), "events come in order of keys");
        *at = Some((key, lp));
        let location = share.layout.locate(rules, lp);
        let mut port = Direct {
            queue: &mut share.queue,
            ledger: &mut share.ledger,
            withdrawn: &mut share.withdrawn,
            origin: Origin { key, lp, member: location.member },
            problem: None,
            router: &mut *router,
        };
        share::handle(rules, &mut share.slots[location.local], location.group, event, &mut port);
        if port.problem.is_some() {
            return (handled, port.problem);
        }
        if rules.traced {
            share.ledger.trace(location.local, &key);
        }
        handled += 1;
    }
    (handled, None)
}

/// Lets what a handler does take effect at once, without a log.
struct Direct<'a, M, R> {
    queue: &'a mut Queue<M>,
    ledger: &'a mut Ledger,
    withdrawn: &'a mut Withdrawn,
    origin: Origin,
    problem: Option<Box<Problem>>,
    router: &'a mut R,
}

impl<M, R> Log for Direct<'_, M, R> {
    const KEEPS: bool = false;
    fn word(&mut self, _place: Place, _word: u64) {}
    fn value<T: Send + 'static>(&mut self, _place: Place, _word: u64, _value: T) {}
}

impl<M, R: Router<M>> Port<M> for Direct<'_, M, R> {
    fn post(&mut self, event: Event<M>) {
        if let Some(event) = self.router.keep_local(event) {
            self.queue.push(event);
        }
    }
    fn output(&mut self, output: Output) {
        self.ledger.output(self.origin, output);
    }
    fn problem(&mut self, problem: Box<Problem>) {
        self.problem.get_or_insert(problem);
    }
    fn withdraw(&mut self, lp: LpId, sequence: u64) {
        self.withdrawn.insert(lp, sequence);
    }
}
