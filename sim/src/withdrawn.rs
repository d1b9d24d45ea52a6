//! Events that LPs have scheduled for themselves and taken back: they are dropped at their turn.
//!
//! An event is found by its LP and its sequence, so that nothing is searched for in a queue. An LP
//! handles its events in the order of their keys, and only it can take back what it scheduled: whether
//! an event is still to come follows from its key alone, under every scheduler.

use std::collections::BTreeSet;

use crate::key::{Event, LpId};

/// The pending events of some LPs that were taken back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Withdrawn(BTreeSet<(LpId, u64)>);

impl Withdrawn {
    /// Takes back what `lp` sent with this `sequence`; whether it was not taken back before.
    pub(crate) fn insert(&mut self, lp: LpId, sequence: u64) -> bool {
        self.0.insert((lp, sequence))
    }

    /// Forgets about an event: it is pending again, or dropped for good. Whether it was taken back.
    pub(crate) fn remove(&mut self, lp: LpId, sequence: u64) -> bool {
        self.0.remove(&(lp, sequence))
    }

    /// Whether `event` was taken back.
    #[inline]
    pub(crate) fn contains<M>(&self, event: &Event<M>) -> bool {
        !self.0.is_empty() && self.holds(event)
    }

    #[cold]
    fn holds<M>(&self, event: &Event<M>) -> bool {
        let key = event.key();
        key.source == event.destination && self.0.contains(&(key.source, key.sequence))
    }

    /// Whether `event` was taken back, and is dropped now.
    #[inline]
    pub(crate) fn takes<M>(&mut self, event: &Event<M>) -> bool {
        self.contains(event) && self.remove(event.destination, event.key().sequence)
    }

    /// Whether nothing that is pending was taken back.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds what was taken back elsewhere.
    pub(crate) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Every event that was taken back, by its LP and its sequence.
    pub(crate) fn into_iter(self) -> impl Iterator<Item = (LpId, u64)> {
        self.0.into_iter()
    }
}
