//! What a handler did, kept beside the queue until it is decided upon.

use meikyo_undo::{Log, Place};

use crate::context::Port;
use crate::fault::Problem;
use crate::key::Event;
use crate::statistics::Output;

/// What one event did; its changes go to `log`.
pub(crate) struct Noted<M, G> {
    pub(crate) log: G,
    pub(crate) sent: Vec<Event<M>>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) problem: Option<Box<Problem>>,
}

impl<M, G> Noted<M, G> {
    pub(crate) fn new(log: G) -> Self {
        Self { log, sent: Vec::new(), outputs: Vec::new(), problem: None }
    }
}

impl<M, G: Log> Log for Noted<M, G> {
    const KEEPS: bool = G::KEEPS;
    fn word(&mut self, place: Place, word: u64) {
        self.log.word(place, word);
    }
    fn value<T: Send + 'static>(&mut self, place: Place, word: u64, value: T) {
        self.log.value(place, word, value);
    }
}

impl<M, G: Log> Port<M> for Noted<M, G> {
    fn post(&mut self, event: Event<M>) {
        self.sent.push(event);
    }
    fn output(&mut self, output: Output) {
        self.outputs.push(output);
    }
    fn problem(&mut self, problem: Box<Problem>) {
        self.problem.get_or_insert(problem);
    }
}
