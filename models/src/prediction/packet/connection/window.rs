//! How much a sender may have under way, in segments, as far as the network decides that.

use meikyo_undo::{Cell, Log, fields};
use meikyo_units::Nanos;

use crate::prediction::packet::tcp::{Control, Tcp};
use crate::prediction::small_queues::{self, PACES, segments_at_card};

/// Below this, a window is not made smaller by a loss (RFC 5681).
const LEAST: f64 = 2.0;
/// What CUBIC leaves of a window after a loss, and how steep its curve is, in segments a cubic second
/// (RFC 9438, sections 4.6 and 5.1).
const CUBIC_LEFT: f64 = 0.7;
const CUBIC_STEEP: f64 = 0.4;

/// A window of congestion.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Window {
    segments: Cell<f64>,
    /// Below it, the window grows by every acknowledgement (slow start).
    threshold: Cell<f64>,
    /// Both before the last loss.
    segments_before: Cell<f64>,
    threshold_before: Cell<f64>,
    cubic: Cubic,
}
fields!(Window { segments, threshold, segments_before, threshold_before, cubic });

/// The curve that CUBIC grows along.
#[derive(Clone, Debug, PartialEq, Default)]
struct Cubic {
    /// The window before the last loss, or less if the one before that was larger.
    greatest: Cell<f64>,
    /// When it began to grow after that; 0 before it does.
    begun_at: Cell<u64>,
    /// The middle of the curve: after how many seconds, at which window.
    middle_s: Cell<f64>,
    middle: Cell<f64>,
    /// What the window of `NewReno` would be.
    newreno: Cell<f64>,
}
fields!(Cubic { greatest, begun_at, middle_s, middle, newreno });

impl Window {
    /// The window of a new connection.
    pub(super) fn new(tcp: Tcp) -> Self {
        Self {
            segments: Cell::new(tcp.stack.first_window()),
            threshold: Cell::new(f64::INFINITY),
            segments_before: Cell::default(),
            threshold_before: Cell::default(),
            cubic: Cubic::default(),
        }
    }

    /// How many segments may be under way.
    pub(super) fn segments(&self) -> f64 {
        self.segments.get()
    }

    /// Whether it grows by every acknowledgement.
    pub(super) fn opens(&self) -> bool {
        self.segments.get() < self.threshold.get()
    }

    /// How many segments wait at the card at most. Before a round trip was measured, the least: a program's connections were
    /// used before, and the round trip that they had measured is taken to be long beside what the window takes.
    pub(super) fn at_card_max(&self, round_trip: Nanos) -> f64 {
        if round_trip == Nanos::ZERO {
            return small_queues::LEAST;
        }
        let segments = self.segments.get();
        let [opening, open] = PACES;
        let pace = if segments < self.threshold.get() / 2.0 { opening } else { open };
        segments_at_card(pace * segments / round_trip.as_secs_f64())
    }

    /// So many segments were acknowledged at once, while the window was what kept back more.
    pub(super) fn grow(
        &mut self,
        tcp: Tcp,
        acknowledged: u32,
        now: u64,
        round_trip: Nanos,
        log: &mut impl Log,
    ) {
        let counted = tcp.stack.counted(acknowledged);
        let segments = self.segments.get();
        let threshold = self.threshold.get();
        let grown = if self.opens() {
            (segments + counted).min(threshold.max(segments + 1.0))
        } else {
            match tcp.control {
                Control::NewReno => segments + counted / segments,
                Control::Cubic => self.cubic.grown(segments, counted, now, round_trip, log),
            }
        };
        self.segments.set(log, grown);
    }

    /// Some segment was lost.
    pub(super) fn shrink(&mut self, tcp: Tcp, log: &mut impl Log) {
        let segments = self.segments.get();
        self.segments_before.set(log, segments);
        self.threshold_before.set(log, self.slow_until());
        let left = match tcp.control {
            Control::NewReno => segments / 2.0,
            Control::Cubic => self.cubic.left(segments, log),
        };
        let left = left.max(LEAST);
        self.threshold.set(log, left);
        self.segments.set(log, left);
    }

    /// Nothing was lost after all: the window is what it was before.
    pub(super) fn restore(&mut self, log: &mut impl Log) {
        let segments = self.segments.get().max(self.segments_before.get());
        let threshold = self.threshold.get().max(self.threshold_before.get());
        self.segments.set(log, segments);
        self.threshold.set(log, threshold);
    }

    /// Up to which size it may grow quickly again after an interruption (`tcp_current_ssthresh`).
    fn slow_until(&self) -> f64 {
        self.threshold.get().max(self.segments.get() * 3.0 / 4.0)
    }

    /// A time-out has passed: a single segment may be sent.
    pub(super) fn collapse(&mut self, log: &mut impl Log) {
        self.cubic.forget(log);
        self.segments.set(log, 1.0);
    }

    /// Nothing was sent for so many time-outs (RFC 2861): the network may have changed.
    pub(super) fn age(&mut self, tcp: Tcp, time_outs: u64, log: &mut impl Log) {
        let segments = self.segments.get();
        let least = tcp.stack.first_window().min(segments);
        self.threshold.set(log, self.slow_until());
        let halved = (0..time_outs.min(64)).fold(segments, |segments, _| segments / 2.0);
        self.segments.set(log, halved.max(least));
    }
}

impl Cubic {
    fn grown(
        &mut self,
        segments: f64,
        counted: f64,
        now: u64,
        round_trip: Nanos,
        log: &mut impl Log,
    ) -> f64 {
        if self.begun_at.get() == 0 {
            self.begun_at.set(log, now.max(1));
            let greatest = self.greatest.get().max(segments);
            self.middle.set(log, greatest);
            self.middle_s.set(log, ((greatest - segments) / CUBIC_STEEP).cbrt());
            self.newreno.set(log, segments);
        }
        // As fast as NewReno with the same share left after a loss (RFC 9438, section 4.3).
        let slope = 3.0 * (1.0 - CUBIC_LEFT) / (1.0 + CUBIC_LEFT);
        self.newreno.add(log, slope * counted / segments);
        let passed = Nanos::new(now - self.begun_at.get()) + round_trip;
        let from_middle = passed.as_secs_f64() - self.middle_s.get();
        let curve = self.middle.get() + CUBIC_STEEP * from_middle.powi(3);
        let target = curve.max(self.newreno.get());
        // At least so that it is never quite still, at most by a half for each window.
        let more = (target - segments).clamp(0.01, segments / 2.0);
        segments + counted * more / segments
    }

    fn left(&mut self, segments: f64, log: &mut impl Log) -> f64 {
        let falling = segments < self.greatest.get();
        let greatest = if falling { segments * f64::midpoint(1.0, CUBIC_LEFT) } else { segments };
        self.greatest.set(log, greatest);
        self.begun_at.set(log, 0);
        segments * CUBIC_LEFT
    }

    fn forget(&mut self, log: &mut impl Log) {
        self.greatest.set(log, 0.0);
        self.begun_at.set(log, 0);
    }
}
