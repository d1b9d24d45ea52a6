//! How the parts of a run reach each other: one type for both ways, so that each scheduler is compiled once
//! for a model. It is asked some times a window, not for each event.

use meikyo_undo::Wire;

use crate::exchange::shared_memory::Endpoint;
use crate::exchange::{Exchange, Outbox};
use crate::ranks::exchange::MpiExchange;
use crate::statistics::Line;

/// One part's way to the others.
pub(crate) enum Transport<'a, T> {
    /// Through the memory of one process.
    Threads(Endpoint<'a, T, Line>),
    /// Between processes.
    Ranks(MpiExchange<T>),
}

impl<T: Wire> Exchange for Transport<'_, T> {
    type Mail = T;

    fn publish(&mut self, words: &[u64], outbox: &mut Outbox<T>, lines: &mut Vec<Line>) {
        match self {
            Self::Threads(own) => Exchange::publish(own, words, outbox, lines),
            Self::Ranks(own) => own.publish(words, outbox, lines),
        }
    }

    #[inline]
    fn word(&self, part: usize, at: usize) -> u64 {
        match self {
            Self::Threads(own) => own.word(part, at),
            Self::Ranks(own) => own.word(part, at),
        }
    }

    #[inline]
    fn earliest(&self, from: usize, to: usize) -> u64 {
        match self {
            Self::Threads(own) => own.earliest(from, to),
            Self::Ranks(own) => own.earliest(from, to),
        }
    }

    fn receive(&mut self, each: impl FnMut(T)) {
        match self {
            Self::Threads(own) => Exchange::receive(own, each),
            Self::Ranks(own) => own.receive(each),
        }
    }

    fn take_lines(&mut self, into: &mut Vec<Line>) {
        match self {
            Self::Threads(own) => own.take_lines(into),
            Self::Ranks(own) => own.take_lines(into),
        }
    }

    fn send_early(&mut self, outbox: &mut Outbox<T>) {
        match self {
            Self::Threads(own) => own.send_early(outbox),
            Self::Ranks(own) => own.send_early(outbox),
        }
    }

    fn request(&self) {
        match self {
            Self::Threads(own) => Exchange::request(own),
            Self::Ranks(own) => own.request(),
        }
    }

    fn is_requested(&self) -> bool {
        match self {
            Self::Threads(own) => Exchange::is_requested(own),
            Self::Ranks(own) => own.is_requested(),
        }
    }
}
