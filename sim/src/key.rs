//! Who and when: identifiers of logical processes, and the key that orders events.

use std::fmt;

use meikyo_units::SimTime;

/// A logical process (LP) by its number, counted over all groups in the order they were added.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct LpId(pub(crate) u32);

impl LpId {
    /// The LP of this number. Whether it exists is found out when something is sent to it.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number of the LP, counted from 0 over all groups.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for LpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What orders events: given by the sender, never by when or where an event arrives.
///
/// Compared field by field as they stand here. No two events of a run have the same key, since
/// `sequence` counts what `source` sent.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct EventKey {
    /// The instant at which the event happens.
    pub time: SimTime,
    /// Steps without delay that led here within this instant: a child never comes before its parent.
    pub depth: u32,
    /// Chosen by the sender; the smaller comes first.
    pub priority: u32,
    /// The LP that sent the event.
    pub source: LpId,
    /// How many events `source` had sent before.
    pub sequence: u64,
}

/// An event on its way to `destination`: its key in 28 bytes without gaps, where to, and what.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Event<M> {
    time: SimTime,
    sequence: u64,
    depth: u32,
    priority: u32,
    source: LpId,
    pub(crate) destination: LpId,
    pub(crate) message: M,
}

impl<M> Event<M> {
    pub(crate) fn new(key: EventKey, destination: LpId, message: M) -> Self {
        let EventKey { time, depth, priority, source, sequence } = key;
        Self { time, sequence, depth, priority, source, destination, message }
    }

    pub(crate) fn key(&self) -> EventKey {
        let Self { time, depth, priority, source, sequence, .. } = *self;
        EventKey { time, depth, priority, source, sequence }
    }

    /// When it happens, in ns.
    pub(crate) fn time(&self) -> u64 {
        self.time.as_nanos()
    }

    /// The same event with another message.
    pub(crate) fn with<N>(self, message: impl FnOnce(M) -> N) -> Event<N> {
        Event::new(self.key(), self.destination, message(self.message))
    }

    /// How this event and `other` follow each other; mostly decided by the time alone.
    pub(crate) fn order(&self, other: &Self) -> std::cmp::Ordering {
        self.time.cmp(&other.time).then_with(|| self.key().cmp(&other.key()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Counters;
    use crate::share::Slot;

    #[test]
    fn the_kernel_adds_little_to_an_event_and_to_an_lp() {
        // The queue adds 24 bytes for 16 events beside; see its documentation.
        assert_eq!(size_of::<Event<u64>>() - size_of::<u64>(), 32);
        assert_eq!(size_of::<Slot<u64>>() - size_of::<u64>(), size_of::<Counters>());
        assert!(size_of::<Counters>() <= 64);
    }
}
