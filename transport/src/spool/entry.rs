//! What stands in a spool.

use meikyo_recording::Source;
use meikyo_units::Nanos;

use crate::wire::{Gap, Reason};

/// Where something of the spool lies.
#[derive(Debug, Clone)]
pub(super) enum Place {
    Memory(Vec<u8>),
    File { file: u64, at: u64, len: usize },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) rows: Option<u64>,
    pub(super) from_ns: i64,
    pub(super) until_ns: i64,
}

/// A block or a gap that the receiver does not have yet.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) source: Source,
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) span: Span,
    /// Why it is missing, of a gap.
    pub(super) reason: Option<Reason>,
    pub(super) place: Place,
    /// When it was accepted, by the sender's monotonic clock; `None` in an earlier life.
    pub(super) accepted: Option<Nanos>,
    /// Whether the receiver may have it.
    pub(super) was_sent: bool,
    /// How often the system refused to read it.
    pub(super) refused_reads: u8,
}

impl Entry {
    pub(super) fn bytes(&self) -> u64 {
        match &self.place {
            Place::Memory(octets) => octets.len() as u64,
            Place::File { len, .. } => *len as u64,
        }
    }

    pub(super) fn gap(&self) -> Option<Gap> {
        let Span { rows, from_ns, until_ns } = self.span;
        Some(Gap {
            boot: self.source.boot,
            stream: self.source.stream.clone(),
            first: self.first,
            last: self.last,
            rows,
            from_ns,
            until_ns,
            reason: self.reason?,
        })
    }
}

/// One gap for two of which the second follows the first.
pub(super) fn joined_gap(before: &Gap, gap: &Gap) -> Gap {
    Gap {
        first: before.first,
        rows: before.rows.zip(gap.rows).map(|(a, b)| a + b),
        from_ns: before.from_ns.min(gap.from_ns),
        until_ns: before.until_ns.max(gap.until_ns),
        ..gap.clone()
    }
}
