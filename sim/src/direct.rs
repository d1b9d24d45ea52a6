//! What handlers do where nothing is speculative.

use meikyo_undo::{Log, Place};

use crate::context::{Lp, Port};
use crate::fault::Problem;
use crate::key::{Event, EventKey, LpId};
use crate::queue::Queue;
use crate::rules::Rules;
use crate::share::{self, Share};
use crate::statistics::{Ledger, Origin, Output};

/// LPs of coming events that are brought into the cache beforehand.
const AHEAD: usize = 6;

/// Takes what a handler does at once, without a log.
struct Direct<'a, M, P> {
    queue: &'a mut Queue<M>,
    ledger: &'a mut Ledger,
    origin: Origin,
    problem: Option<Box<Problem>>,
    away: &'a mut P,
}

/// How far events are handled in one go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    /// All are earlier than this, in ns.
    pub(crate) before: u64,
    /// At most so many.
    pub(crate) most: u64,
}

/// Handles the events of `stretch`; gives how many there were, and what went wrong with the next one.
///
/// `at` is the event that is being handled, also for a caller who catches a panic.
#[inline(always)]
pub(crate) fn events<L: Lp>(
    rules: &Rules,
    share: &mut Share<L>,
    stretch: Stretch,
    away: &mut impl Away<L::Message>,
    at: &mut Option<(EventKey, LpId)>,
) -> (u64, Option<Box<Problem>>) {
    let mut handled = 0;
    while handled < stretch.most {
        let Some(event) = share.queue.pop_before(stretch.before) else { break };
        if let Some(coming) = share.queue.ahead(AHEAD) {
            let seat = share.layout.seat(rules, coming.destination);
            std::hint::black_box(share.slots[seat.local].counters.sent);
        }
        let (key, lp) = (event.key(), event.destination);
        *at = Some((key, lp));
        let seat = share.layout.seat(rules, lp);
        let mut port = Direct {
            queue: &mut share.queue,
            ledger: &mut share.ledger,
            origin: Origin { key, lp, member: seat.member },
            problem: None,
            away: &mut *away,
        };
        share::handle(rules, &mut share.slots[seat.local], seat.group, event, &mut port);
        if port.problem.is_some() {
            return (handled, port.problem);
        }
        if rules.traced {
            share.ledger.trace(seat.local, &key);
        }
        handled += 1;
    }
    (handled, None)
}

/// Where events for other parts go.
pub(crate) trait Away<M> {
    /// Takes `event` if its destination lives elsewhere, and gives it back if it lives here.
    fn take(&mut self, event: Event<M>) -> Option<Event<M>>;
}

/// There are no other parts.
pub(crate) struct Nowhere;

impl<M> Away<M> for Nowhere {
    fn take(&mut self, event: Event<M>) -> Option<Event<M>> {
        Some(event)
    }
}

impl<M, P> Log for Direct<'_, M, P> {
    const KEEPS: bool = false;
    fn word(&mut self, _place: Place, _word: u64) {}
    fn value<T: Send + 'static>(&mut self, _place: Place, _word: u64, _value: T) {}
}

impl<M, P: Away<M>> Port<M> for Direct<'_, M, P> {
    fn post(&mut self, event: Event<M>) {
        if let Some(event) = self.away.take(event) {
            self.queue.push(event);
        }
    }
    fn output(&mut self, output: Output) {
        self.ledger.output(self.origin, output);
    }
    fn problem(&mut self, problem: Box<Problem>) {
        self.problem.get_or_insert(problem);
    }
}
