//! Who and when: identifiers of logical processes, and the key that orders events.

use std::fmt;

use meikyo_units::SimTime;

/// A logical process (LP) by its number, counted over all groups in the order they were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LpId(pub(crate) u32);

impl LpId {
    /// The LP of this number. Whether it exists is found out when something is sent to it.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventKey {
    /// When it happens.
    pub time: SimTime,
    /// Steps without delay that led here within this instant: a child never comes before its parent.
    pub depth: u32,
    /// Chosen by the sender; the smaller comes first.
    pub priority: u32,
    /// Who sent it.
    pub source: LpId,
    /// How many events `source` had sent before.
    pub sequence: u64,
}

/// An event on its way to `destination`.
#[derive(Clone, Debug)]
pub(crate) struct Event<M> {
    pub(crate) key: EventKey,
    pub(crate) destination: LpId,
    pub(crate) message: M,
}

impl<M> Event<M> {
    /// Whether this event comes before `other`; mostly decided by the time alone.
    pub(crate) fn before(&self, other: &Self) -> bool {
        self.key.time < other.key.time || (self.key.time == other.key.time && self.key < other.key)
    }
}
