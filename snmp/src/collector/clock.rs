//! The collector's clock: the real-time clock as it goes on, and the steps in which it is set.
//!
//! Time goes on with the monotonic clock; how far the real-time clock is from it is looked at again
//! and again. Slewing is followed, a step is told once, and between two looks nothing jumps.
//!
//! The clocks cannot be read at once. The real-time clock is read between two readings of the
//! monotonic one, which say how wrong the comparison can be: a thread that loses its core in between
//! is told from a clock that was set.

use meikyo_units::{Nanos, WallTime};

/// Difference between real-time and monotonic clock that counts as a step and not as slewing.
const STEP: Nanos = Nanos::from_millis(5);

/// An error of a comparison that needs no better one.
const ERROR_SMALL: Nanos = Nanos::from_micros(20);

/// Comparisons that are made for a better one.
const TRIES: usize = 8;

/// One reading of the real-time clock between two of the monotonic one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    pub(super) before: Nanos,
    pub(super) real: WallTime,
    pub(super) after: Nanos,
}

impl Reading {
    /// Real time minus monotonic time, in ns, wrong by half of [`Reading::span`] at most.
    fn difference(&self) -> i64 {
        self.real.as_nanos() - signed(self.before) - signed(self.span()) / 2
    }

    fn span(&self) -> Nanos {
        self.after.saturating_sub(self.before)
    }
}

/// The relation of the clocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    /// Real time minus monotonic time, in ns.
    difference: i64,
    /// The last step, until datagrams that were received before it are read.
    stepped: i64,
}

impl Clock {
    /// A clock that shows the real time of the best of some readings.
    pub(super) fn new(mut read: impl FnMut() -> Reading) -> Self {
        Self { difference: best(&mut read).difference(), stepped: 0 }
    }

    /// Compares the clocks; returns by how many ns the real-time clock was set, if it was.
    pub(super) fn look(&mut self, mut read: impl FnMut() -> Reading) -> Option<i64> {
        let reading = best(&mut read);
        let step = reading.difference() - self.difference;
        let error = reading.span().get() / 2;
        if step.unsigned_abs() > STEP.get() + error {
            self.difference += step;
            self.stepped = step;
            return Some(step);
        }
        // Slewing is followed as far as it is not the error of the comparison.
        let error = i64::try_from(if error <= ERROR_SMALL.get() { 0 } else { error });
        let sure = step.abs().saturating_sub(error.unwrap_or(i64::MAX)).max(0);
        self.difference += sure * step.signum();
        None
    }

    /// The real time at an instant of the monotonic clock.
    pub(super) fn at(&self, monotonic: Nanos) -> WallTime {
        WallTime::from_nanos(self.difference.saturating_add(signed(monotonic)))
    }

    /// When a datagram was received that the kernel stamped `stamp`, and that is read at `now`: a
    /// stamp of before a step is moved.
    pub(super) fn received(&self, stamp: WallTime, now: WallTime) -> WallTime {
        let moved = WallTime::from_nanos(stamp.as_nanos().saturating_add(self.stepped));
        let age = |at: WallTime| (now.as_nanos() - at.as_nanos()).unsigned_abs();
        if self.stepped != 0 && moved <= now && age(moved) < age(stamp) { moved } else { stamp }
    }

    /// What was received before the last step has been read.
    pub(super) fn settle(&mut self) {
        self.stepped = 0;
    }
}

/// The reading with the least error of some.
fn best(read: &mut impl FnMut() -> Reading) -> Reading {
    let mut best = read();
    for _ in 1..TRIES {
        if best.span() <= ERROR_SMALL * 2 {
            break;
        }
        let other = read();
        if other.span() < best.span() {
            best = other;
        }
    }
    best
}

/// A span as a signed number of ns.
fn signed(span: Nanos) -> i64 {
    // Saturates at 292 years.
    i64::try_from(span.get()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START: i64 = 1_795_292_400_000_000_000;

    /// Clocks that are `offset` apart, read with a pause before and behind the real-time one.
    fn reading(monotonic: u64, offset: i64, before: u64, behind: u64) -> Reading {
        let real = WallTime::from_nanos(offset + (monotonic + before).cast_signed());
        let after = Nanos::new(monotonic + before + behind);
        Reading { before: Nanos::new(monotonic), real, after }
    }

    #[test]
    fn a_pause_between_the_readings_is_no_step() {
        let mut clock = Clock::new(|| reading(1_000, START, 30, 30));
        for (before, behind) in [(14_500_000, 40), (40, 14_500_000), (900_000_000, 900_000_000)] {
            // Whoever is held up every time knows how little he knows.
            assert_eq!(clock.look(|| reading(2_000, START, before, behind)), None);
            let mut tries = 0;
            let held_up_once = || {
                tries += 1;
                let pause = |pause| if tries == 1 { pause } else { 30 };
                reading(2_000, START, pause(before), pause(behind))
            };
            assert_eq!(clock.look(held_up_once), None);
        }
        assert_eq!(clock.at(Nanos::new(5_000)).as_nanos(), START + 5_000);
    }

    #[test]
    fn a_step_is_told_once_and_slewing_never() {
        let mut clock = Clock::new(|| reading(0, START, 20, 20));
        let mut offset = START;
        for second in 1..1_000 {
            offset += 500_000;
            assert_eq!(clock.look(|| reading(second * 1_000_000_000, offset, 20, 20)), None);
        }
        for step in [3_600_000_000_000, -7_246_041, -3_600_000_000_000, 5_100_000] {
            offset += step;
            assert_eq!(clock.look(|| reading(1 << 50, offset, 20, 20)), Some(step));
            assert_eq!(clock.look(|| reading(1 << 50, offset, 20, 20)), None);
        }
    }

    proptest! {
        /// Pauses of any length in any places never make a step, and never move the clock by more
        /// than they can hide.
        #[test]
        fn no_pauses_make_a_step(
            pauses in prop::collection::vec((0_u64..2_000_000_000, 0_u64..2_000_000_000), 1..40),
        ) {
            let mut clock = Clock::new(|| reading(0, START, 20, 20));
            let mut at = 0;
            for (before, behind) in pauses {
                at += 100_000_000;
                prop_assert_eq!(clock.look(|| reading(at, START, before, behind)), None);
                prop_assert!((clock.at(Nanos::ZERO).as_nanos() - START).abs() <= 20_000);
            }
        }
    }

    #[test]
    fn what_was_received_before_a_step_is_moved_by_it() {
        let mut clock = Clock::new(|| reading(0, START, 20, 20));
        for step in [3_600_000_000_000, -30_000_000_i64] {
            let stamp = clock.at(Nanos::new(5_000_000));
            let offset = clock.difference + step;
            assert_eq!(clock.look(|| reading(6_000_000, offset, 0, 0)), Some(step));
            let now = clock.at(Nanos::new(6_000_000));
            assert_eq!(clock.received(stamp, now), clock.at(Nanos::new(5_000_000)));
            let later = clock.at(Nanos::new(5_999_000));
            assert_eq!(clock.received(later, now), later);
            clock.settle();
            assert_eq!(clock.received(later, now), later);
        }
    }
}
