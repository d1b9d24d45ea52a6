//! What the server refused, closed and lost, for `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering};

/// Why a connection was closed that its client would have kept open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closed {
    /// The TLS handshake failed or took too long.
    Handshake,
    /// No whole head of a request came in time, or nothing at all after an answer.
    Head,
    /// The body of a request did not come in time.
    Body,
    /// The client did not read what was sent to it.
    Unread,
    /// Its place was given to a newcomer.
    Displaced,
    /// There was no place for it.
    Full,
    /// A viewer did not say in time what he wants to see.
    Unsubscribed,
    /// A viewer did not answer pings.
    Silent,
    /// A viewer's token is no longer taken.
    Revoked,
}

impl Closed {
    /// All reasons, in the order of their numbers.
    pub(crate) const ALL: [Self; 9] = [
        Self::Handshake,
        Self::Head,
        Self::Body,
        Self::Unread,
        Self::Displaced,
        Self::Full,
        Self::Unsubscribed,
        Self::Silent,
        Self::Revoked,
    ];

    /// The reason as a label.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Head => "head",
            Self::Body => "body",
            Self::Unread => "unread",
            Self::Displaced => "displaced",
            Self::Full => "full",
            Self::Unsubscribed => "unsubscribed",
            Self::Silent => "silent",
            Self::Revoked => "revoked",
        }
    }
}

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    closed: [AtomicU64; Closed::ALL.len()],
    lost_steps: AtomicU64,
}

impl Counts {
    /// Counts a connection that was closed.
    pub(crate) fn close(&self, why: Closed) {
        self.closed[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Connections that were closed for that reason.
    pub(crate) fn closed(&self, why: Closed) -> u64 {
        self.closed[why as usize].load(Ordering::Relaxed)
    }

    /// Counts steps that a viewer did not get.
    pub(crate) fn lose_steps(&self, steps: u64) {
        self.lost_steps.fetch_add(steps, Ordering::Relaxed);
    }

    /// Steps that viewers did not get.
    pub(crate) fn lost_steps(&self) -> u64 {
        self.lost_steps.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_own_counter_and_name() {
        let counts = Counts::default();
        for (times, why) in (1..).zip(Closed::ALL) {
            (0..times).for_each(|_| counts.close(why));
        }
        let counted: Vec<_> = Closed::ALL.map(|why| counts.closed(why)).into();
        assert_eq!(counted, (1..=9).collect::<Vec<_>>());
        let names: std::collections::BTreeSet<_> = Closed::ALL.iter().map(|of| of.name()).collect();
        assert_eq!(names.len(), Closed::ALL.len());
    }
}
