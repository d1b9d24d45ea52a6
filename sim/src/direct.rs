//! What handlers do where nothing is speculative.

use meikyo_undo::{Log, Place};

use crate::context::Port;
use crate::fault::Problem;
use crate::key::Event;
use crate::queue::Queue;
use crate::statistics::{Ledger, Origin, Output};

/// Takes what a handler does at once, without a log.
pub(crate) struct Direct<'a, M, P> {
    pub(crate) queue: &'a mut Queue<M>,
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) origin: Origin,
    pub(crate) problem: Option<Box<Problem>>,
    pub(crate) away: P,
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
