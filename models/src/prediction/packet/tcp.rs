//! What TCP is like: that of Linux 2.6 or that of today.

use meikyo_units::Bytes;

use crate::parameters::choice;

/// Whose TCP a host has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stack {
    /// Linux from 2.6.19 to 2.6.38: 3 segments to begin with, windows that grow by acknowledgements, a loss
    /// taken for one after three segments beyond it.
    Linux26,
    /// Linux from 3.10 on: 10 segments to begin with, windows that grow by acknowledged segments, a loss
    /// taken for one after any segment beyond it, and the end of what was sent probed for.
    Linux,
}

/// How a window grows, and shrinks after a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// By a segment each round trip, and to a half (RFC 5681, RFC 6582).
    NewReno,
    /// Along a cube root around the last window that was too large, and to seven tenths (RFC 9438).
    Cubic,
}
choice!(Control { NewReno = "newreno", Cubic = "cubic" });

/// TCP between all hosts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tcp {
    /// Which kernel's behaviour it has where kernels differ.
    pub stack: Stack,
    /// How its windows change.
    pub control: Control,
    /// What a connection has under way at most, in one direction.
    pub window: Bytes,
}

impl Stack {
    /// Segments that are sent before anything is acknowledged.
    pub(super) fn first_window(self) -> f64 {
        match self {
            // RFC 3390, for segments of 1,448 octets.
            Self::Linux26 => 3.0,
            // RFC 6928.
            Self::Linux => 10.0,
        }
    }

    /// By how much a window grows that is allowed to grow by one for each, when so many segments were
    /// acknowledged at once.
    pub(super) fn counted(self, segments: u32) -> f64 {
        match self {
            Self::Linux26 => 1.0,
            Self::Linux => f64::from(segments),
        }
    }

    /// How far beyond a segment another one has arrived when the first one is taken for lost.
    pub(super) fn reordering(self) -> u32 {
        match self {
            Self::Linux26 => 3,
            // By the times of sending (RFC 8985), since frames of a connection do not overtake each other.
            Self::Linux => 1,
        }
    }

    /// Whether few segments of a connection wait at the card, and others with the connection (TCP small queues, since 3.6).
    pub(super) fn queues_small(self) -> bool {
        self == Self::Linux
    }

    /// Whether it asks for acknowledgements of the last segments before it takes them for lost.
    pub(super) fn probes(self) -> bool {
        self == Self::Linux
    }
}
