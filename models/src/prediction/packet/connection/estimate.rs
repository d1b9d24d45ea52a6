//! How long to wait for an acknowledgement.

use meikyo_undo::{Cell, Log, fields};
use meikyo_units::Nanos;

/// A time-out grows to this at most, as Linux's does.
const LONGEST: u64 = 120_000_000_000;

/// The round trip as it was measured, and the time-out that follows: RFC 6298 as Linux does it
/// (`tcp_rtt_estimator`).
///
/// With time stamps every acknowledgement of new data measures it (RFC 7323, section 4.1). What is added to the
/// round trip is the greatest deviation of a window, and the least time-out at least; it shrinks by a quarter
/// of the difference, once a window. A shorter round trip makes the deviation greater by an eighth of what a
/// longer one does.
#[derive(Clone, Debug, PartialEq, Default)]
pub(super) struct Estimate {
    smooth: Cell<u64>,
    /// Four times the mean deviation, and its greatest value in this window.
    deviation: Cell<u64>,
    deviation_max: Cell<u64>,
    /// What is added to the round trip.
    variation: Cell<u64>,
    /// The segment behind those of this window.
    window_end: Cell<u32>,
    /// Time-outs that have passed since the last acknowledgement.
    time_outs: Cell<u32>,
}
fields!(Estimate { smooth, deviation, deviation_max, variation, window_end, time_outs });

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
        let alone = self.smooth.get() + self.variation.get().max(least.get());
        let doubled = alone.saturating_mul(1 << self.time_outs.get().min(32));
        doubled.min(LONGEST.max(alone))
    }

    /// A round trip was measured by an acknowledgement of everything below a segment; `next` is the one that is
    /// sent next.
    pub(super) fn measured(
        &mut self,
        measured: u64,
        [below, next]: [u32; 2],
        least: Nanos,
        log: &mut impl Log,
    ) {
        let smooth = self.smooth.get();
        if smooth == 0 {
            let deviation = 2 * measured;
            self.smooth.set(log, measured);
            self.deviation.set(log, deviation);
            self.variation.set(log, deviation.max(least.get()));
            self.deviation_max.set(log, self.variation.get());
            self.window_end.set(log, next);
            return;
        }
        let error = measured.abs_diff(smooth);
        let shorter = measured < smooth;
        self.smooth.set(log, if shorter { smooth - error / 8 } else { smooth + error / 8 });
        let deviation = self.deviation.get();
        let kept = deviation - deviation / 4;
        let more = error.saturating_sub(deviation / 4);
        // A quarter of the deviation is replaced by the error, of whose excess an eighth counts.
        let eased = kept + error.min(deviation / 4) + more / 8;
        let deviation = if shorter { eased } else { kept + error };
        self.deviation.set(log, deviation);
        let greatest = deviation.max(self.deviation_max.get());
        self.deviation_max.set(log, greatest);
        let variation = self.variation.get().max(greatest);
        self.variation.set(log, variation);
        if below > self.window_end.get() {
            self.variation.set(log, variation - (variation - greatest) / 4);
            self.window_end.set(log, next);
            self.deviation_max.set(log, least.get());
        }
    }

    /// Data were acknowledged for the first time.
    pub(super) fn acknowledged(&mut self, log: &mut impl Log) {
        self.time_outs.set(log, 0);
    }

    /// A time-out has passed.
    pub(super) fn timed_out(&mut self, log: &mut impl Log) {
        self.time_outs.add(log, 1);
    }
}

#[cfg(test)]
mod tests {
    use meikyo_undo::Forget;

    use super::*;

    const LEAST: Nanos = Nanos::from_millis(200);
    const MS: u64 = 1_000_000;

    /// `tcp_rtt_estimator` of Linux 6.1 in its own integers: microseconds, eight and four times as many.
    #[derive(Default)]
    struct Kernel {
        srtt: i64,
        mdev: i64,
        mdev_max: i64,
        rttvar: i64,
        rtt_seq: u32,
    }

    impl Kernel {
        fn measure(&mut self, measured: i64, snd_una: u32, snd_nxt: u32) {
            const RTO_MIN: i64 = 200_000;
            if self.srtt == 0 {
                self.srtt = measured << 3;
                self.mdev = measured << 1;
                self.rttvar = self.mdev.max(RTO_MIN);
                self.mdev_max = self.rttvar;
                self.rtt_seq = snd_nxt;
                return;
            }
            let mut error = measured - (self.srtt >> 3);
            self.srtt += error;
            if error < 0 {
                error = -error - (self.mdev >> 2);
                if error > 0 {
                    error >>= 3;
                }
            } else {
                error -= self.mdev >> 2;
            }
            self.mdev += error;
            if self.mdev > self.mdev_max {
                self.mdev_max = self.mdev;
                self.rttvar = self.rttvar.max(self.mdev_max);
            }
            if snd_una > self.rtt_seq {
                if self.mdev_max < self.rttvar {
                    self.rttvar -= (self.rttvar - self.mdev_max) >> 2;
                }
                self.rtt_seq = snd_nxt;
                self.mdev_max = RTO_MIN;
            }
        }

        fn time_out_us(&self) -> u64 {
            u64::try_from((self.srtt >> 3) + self.rttvar).unwrap()
        }
    }

    #[test]
    fn time_outs_are_those_of_the_kernel() {
        // Round trips that jump up, fall, and swing: a window is ten measurements.
        let trips = (0..400_u64).map(|at| match at {
            0..50 => 6 + at,
            50..100 => 900,
            100..200 => 40 + at % 7,
            200..300 => {
                if at % 2 == 0 {
                    30
                } else {
                    700
                }
            }
            _ => 5,
        });
        let (mut kernel, mut estimate) = (Kernel::default(), Estimate::default());
        for (at, trip) in (1_u32..).zip(trips) {
            kernel.measure(i64::try_from(1000 * trip).unwrap(), at, at + 10);
            estimate.measured(trip * MS, [at, at + 10], LEAST, &mut Forget);
            let (own, theirs) = (estimate.time_out(LEAST) / 1000, kernel.time_out_us());
            // Within what both lose by rounding.
            assert!(own.abs_diff(theirs) <= 60, "{at}: {own} us, {theirs} us");
        }
    }

    #[test]
    fn a_time_out_is_doubled_until_something_is_acknowledged() {
        let mut estimate = Estimate::default();
        assert_eq!(estimate.time_out(LEAST), 200 * MS);
        estimate.measured(30 * MS, [1, 5], LEAST, &mut Forget);
        assert_eq!(estimate.time_out(LEAST), 230 * MS);
        estimate.timed_out(&mut Forget);
        estimate.timed_out(&mut Forget);
        assert_eq!(estimate.time_out(LEAST), 920 * MS);
        (0..20).for_each(|_| estimate.timed_out(&mut Forget));
        assert_eq!(estimate.time_out(LEAST), 120_000 * MS);
        estimate.acknowledged(&mut Forget);
        assert_eq!(estimate.time_out(LEAST), 230 * MS);
    }
}
