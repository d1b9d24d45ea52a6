//! What one handler did, kept aside until somebody decides what becomes of it.
//!
//! The start of LPs and check mode look at what was sent and given out before any of it takes effect.

use meikyo_undo::{Log, Place};

use crate::context::Port;
use crate::fault::Problem;
use crate::key::{Event, LpId};
use crate::statistics::Output;

/// What one handler sent and gave out; the changes of fields go to `log`.
pub(crate) struct Effects<M, G> {
    pub(crate) log: G,
    pub(crate) sent: Vec<Event<M>>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) problem: Option<Box<Problem>>,
    /// The sequences of events that the LP took back.
    pub(crate) withdrawn: Vec<u64>,
}

impl<M, G> Effects<M, G> {
    pub(crate) fn new(log: G) -> Self {
        Self { log, sent: Vec::new(), outputs: Vec::new(), problem: None, withdrawn: Vec::new() }
    }
}

impl<M, G: Log> Log for Effects<M, G> {
    const KEEPS: bool = G::KEEPS;
    fn word(&mut self, place: Place, word: u64) {
        self.log.word(place, word);
    }
    fn value<T: Send + 'static>(&mut self, place: Place, word: u64, value: T) {
        self.log.value(place, word, value);
    }
}

impl<M, G: Log> Port<M> for Effects<M, G> {
    fn post(&mut self, event: Event<M>) {
        self.sent.push(event);
    }
    fn output(&mut self, output: Output) {
        self.outputs.push(output);
    }
    fn problem(&mut self, problem: Box<Problem>) {
        self.problem.get_or_insert(problem);
    }
    fn withdraw(&mut self, _lp: LpId, sequence: u64) {
        self.withdrawn.push(sequence);
    }
}
