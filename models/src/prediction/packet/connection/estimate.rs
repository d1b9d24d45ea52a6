//! How long to wait for an acknowledgement.

use meikyo_undo::{Cell, Log, fields};
use meikyo_units::Nanos;

/// A time-out grows to this at most, as Linux's does.
const LONGEST: u64 = 120_000_000_000;

/// The round trip as it was measured, and the time-out that follows (RFC 6298, with Linux's least
/// variation instead of a least time-out).
#[derive(Clone, Debug, PartialEq, Default)]
pub(super) struct Estimate {
    smooth: Cell<u64>,
    variation: Cell<u64>,
    /// Time-outs that have passed since the last acknowledgement.
    time_outs: Cell<u32>,
    /// The segment after the one that is timed; 0 if none is.
    timed_end: Cell<u32>,
    timed_at: Cell<u64>,
}
fields!(Estimate { smooth, variation, time_outs, timed_end, timed_at });

impl Estimate {
    /// The round trip; nothing before it was measured.
    pub(super) fn round_trip(&self) -> Nanos {
        Nanos::new(self.smooth.get())
    }

    /// Time-outs since the last acknowledgement.
    pub(super) fn time_outs(&self) -> u32 {
        self.time_outs.get()
    }

    /// How long to wait from now on, if it is `least` beyond the round trip at least.
    pub(super) fn time_out(&self, least: Nanos) -> u64 {
        let alone = self.smooth.get() + (4 * self.variation.get()).max(least.get());
        let doubled = alone.saturating_mul(1 << self.time_outs.get().min(32));
        doubled.min(LONGEST.max(alone))
    }

    /// A segment is sent for the first time: it is timed if no other one is.
    pub(super) fn sent(&mut self, segment: u32, now: u64, log: &mut impl Log) {
        if self.timed_end.get() == 0 {
            self.timed_end.set(log, segment + 1);
            self.timed_at.set(log, now);
        }
    }

    /// Segments are sent again, so that nobody can say what an acknowledgement is of (Karn).
    pub(super) fn give_up(&mut self, log: &mut impl Log) {
        self.timed_end.set(log, 0);
    }

    /// Everything below a segment was acknowledged for the first time.
    pub(super) fn acknowledged(&mut self, below: u32, now: u64, log: &mut impl Log) {
        self.time_outs.set(log, 0);
        let end = self.timed_end.get();
        if end == 0 || below < end {
            return;
        }
        self.timed_end.set(log, 0);
        let measured = now - self.timed_at.get();
        let smooth = self.smooth.get();
        if smooth == 0 {
            self.smooth.set(log, measured);
            self.variation.set(log, measured / 2);
            return;
        }
        let variation = self.variation.get();
        self.variation.set(log, variation - variation / 4 + smooth.abs_diff(measured) / 4);
        self.smooth.set(log, smooth - smooth / 8 + measured / 8);
    }

    /// A time-out has passed.
    pub(super) fn timed_out(&mut self, log: &mut impl Log) {
        self.time_outs.add(log, 1);
        self.give_up(log);
    }
}
