//! The pending events and the random numbers of the kernel by themselves: what a bare loop needs that
//! a bench holds the kernel against. Models have no use for it.

use meikyo_units::{Nanos, SimTime};

use crate::key::{Event, EventKey, LpId};
use crate::queue::Queue;
use crate::random;

/// Pending events, the least key first.
#[derive(Debug)]
pub struct Pending<M>(Queue<M>);

impl<M> Default for Pending<M> {
    fn default() -> Self {
        Self(Queue::new())
    }
}

impl<M> Pending<M> {
    /// Takes in an event, which is before the end of time.
    #[inline]
    pub fn push(&mut self, key: EventKey, destination: LpId, message: M) {
        self.0.push(Event::new(key, destination, message));
    }

    /// Takes the next event out if it is not after `last`.
    #[inline]
    pub fn pop(&mut self, last: SimTime) -> Option<(EventKey, LpId, M)> {
        let event = self.0.pop_before(last.as_nanos().saturating_add(1))?;
        Some((event.key(), event.destination, event.message))
    }
}

/// The random numbers of an LP, as [`Context`](crate::Context) gives them.
#[derive(Debug)]
pub struct Draws<'a> {
    stream: u64,
    drawn: &'a mut u64,
}

impl<'a> Draws<'a> {
    /// The numbers of `lp` under `seed`, of which it has `drawn` so many.
    #[inline]
    pub fn new(seed: u64, lp: LpId, drawn: &'a mut u64) -> Self {
        Self { stream: random::stream(seed, lp.get()), drawn }
    }

    #[inline]
    fn bits(&mut self) -> u64 {
        let bits = random::draw(self.stream, *self.drawn);
        *self.drawn += 1;
        bits
    }

    /// A random number in [0, 1).
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        random::unit(self.bits())
    }

    /// A random whole number below `limit`.
    #[inline]
    pub fn below(&mut self, limit: u32) -> u32 {
        random::below(self.bits(), limit)
    }

    /// A random span, exponentially distributed around `mean`.
    #[inline]
    pub fn exponential(&mut self, mean: Nanos) -> Nanos {
        random::exponential(self.uniform(), mean)
    }
}
