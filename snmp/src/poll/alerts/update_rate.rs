//! The rate of a counter between its updates: what a level is compared with.
//!
//! Agents cache. Between two polls of a cached counter lies nothing or the increase of three seconds,
//! so rates are taken from one update that polling showed to the next. Whatever would make a false
//! peak makes no rate at all: a reset, the first update, an update after answers that did not come.

use meikyo_recording::counter::{Bounds, Steps};
use meikyo_units::{Nanos, WallTime};

/// How long a counter of unknown refresh stands still before its rate is zero: longer than the
/// common caches.
const QUIET_UNKNOWN: Nanos = Nanos::from_secs(5);

/// What is known of how the agent refreshes the counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refresh {
    /// Nothing.
    Unknown,
    /// At least this often.
    Every(Nanos),
    /// Not any more.
    Stopped,
}

/// One counter.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct UpdateRate {
    /// The newest poll and its value.
    last: Option<(WallTime, u64)>,
    /// The poll that showed the newest update, if it is certain that the update was not before the
    /// poll before.
    edge: Option<WallTime>,
    /// When the value moved last, or was first seen.
    moved: WallTime,
    thousandths: Option<i64>,
    steps: Steps,
}

impl UpdateRate {
    /// Takes the value that was polled for `due`; the rate in thousandths per second, if one can be
    /// said. Instants are those of the schedule: they are exact where an answer was slow.
    ///
    /// `bounds` says how a counter that went back is to be read; without, as a reset. `every` is
    /// the span between two polls.
    pub(super) fn observe(
        &mut self,
        due: WallTime,
        value: u64,
        bounds: Option<Bounds>,
        refresh: Refresh,
        every: Nanos,
    ) -> Option<i64> {
        let Some((polled, before)) = self.last.replace((due, value)) else {
            self.moved = due;
            return None;
        };
        if value == before {
            self.stand_still(due, refresh);
            return self.thousandths;
        }
        let moved = std::mem::replace(&mut self.moved, due);
        let span = match refresh {
            // Refreshes that changed nothing lie between: the increase is that of the last one.
            Refresh::Every(period) if due.since(moved) > one_and_a_half(period) => {
                period.max(due.since(polled))
            }
            _ => due.since(moved),
        };
        let increase = match bounds {
            Some(bounds) => self.steps.step(before, value, span, bounds).increase(),
            None => value.checked_sub(before),
        };
        let Some(increase) = increase else {
            self.interrupt();
            self.last = Some((due, value));
            self.moved = due;
            return None;
        };
        self.thousandths = self.edge.and_then(|_| per_second(increase, span));
        // Two answers in a row that did not come, or more: the update may be older than it seems.
        let certain = due.since(polled) <= every * 2;
        self.edge = certain.then_some(due);
        self.thousandths
    }

    /// The counter begins anew, or its time does.
    pub(super) fn interrupt(&mut self) {
        *self = Self { steps: self.steps, ..Self::default() };
    }

    fn stand_still(&mut self, due: WallTime, refresh: Refresh) {
        let quiet = match refresh {
            Refresh::Stopped => {
                self.thousandths = None;
                return;
            }
            Refresh::Unknown => QUIET_UNKNOWN,
            Refresh::Every(period) => one_and_a_half(period),
        };
        if due.since(self.moved) > quiet {
            self.thousandths = Some(0);
        }
    }
}

fn one_and_a_half(period: Nanos) -> Nanos {
    Nanos::new(period.get() / 2 * 3)
}

/// Thousandths per second; the greatest number when it does not fit.
fn per_second(increase: u64, span: Nanos) -> Option<i64> {
    let span = u128::from(span.get());
    let thousandths = u128::from(increase) * 1_000 * u128::from(Nanos::SECOND.get());
    let rate = thousandths.checked_div(span)?;
    // Saturates, and is then above every threshold.
    Some(i64::try_from(rate).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use meikyo_recording::counter::Width;
    use proptest::prelude::*;

    use super::*;

    const EVERY: Nanos = Nanos::from_millis(100);

    fn due(poll: u64) -> WallTime {
        WallTime::default() + EVERY * poll
    }

    /// Polls of a counter that counts `per_second` and that the agent reads every `period` polls.
    fn cached(rate: &mut UpdateRate, polls: std::ops::Range<u64>, period: u64) -> Vec<Option<i64>> {
        let read = |poll: u64| (poll + 7) / period * period * 1_000;
        polls
            .map(|poll| rate.observe(due(poll), read(poll), None, Refresh::Unknown, EVERY))
            .collect()
    }

    #[test]
    fn a_cache_of_three_seconds_makes_neither_zeros_nor_peaks() {
        let rates = cached(&mut UpdateRate::default(), 0..300, 30);
        let known: Vec<i64> = rates.iter().copied().flatten().collect();
        // 1,000 a poll of 100 ms is 10,000 a second.
        assert!(known.iter().all(|&rate| rate == 10_000_000), "{known:?}");
        // The first update shows no rate, the second does.
        let first = rates.iter().position(Option::is_some);
        assert_eq!(first, Some(53));
    }

    #[test]
    fn a_counter_that_stands_still_is_at_zero_only_after_its_refresh() {
        let mut rate = UpdateRate::default();
        let period = Refresh::Every(Nanos::from_secs(1));
        let value = |poll: u64| poll.min(30) / 10 * 500;
        let rates: Vec<_> =
            (0..60).map(|poll| rate.observe(due(poll), value(poll), None, period, EVERY)).collect();
        assert_eq!(rates[30], Some(500_000));
        assert_eq!(rates[45], Some(500_000));
        assert_eq!(rates[46], Some(0));
    }

    #[test]
    fn after_idle_refreshes_the_increase_is_that_of_the_last_one() {
        let mut rate = UpdateRate::default();
        let fresh = Refresh::Every(EVERY);
        let mut value = 0;
        let mut said = Vec::new();
        for poll in 0..40 {
            value += if (10..30).contains(&poll) { 0 } else { 100 };
            said.push(rate.observe(due(poll), value, None, fresh, EVERY));
        }
        assert_eq!(said[20], Some(0));
        // Not 100 in the 2 s since it moved.
        assert_eq!(said[30], Some(1_000_000));
    }

    #[test]
    fn a_reset_and_what_follows_answers_that_did_not_come_say_nothing() {
        let narrow = Bounds { width: Width::Bits32, fastest_per_s: Some(2_000_000) };
        let mut rate = UpdateRate::default();
        let mut take =
            |poll, value| rate.observe(due(poll), value, Some(narrow), Refresh::Unknown, EVERY);
        assert_eq!(take(0, 4_294_960_000), None);
        assert_eq!(take(1, 4_294_961_000), None);
        assert_eq!(take(2, 4_294_962_000), Some(10_000_000));
        // A wrap goes on, a reset begins anew.
        assert_eq!(take(3, 4_294_966_000), Some(40_000_000));
        assert_eq!(take(4, 2_704), Some(40_000_000));
        assert_eq!(take(5, 100), None);
        assert_eq!(take(6, 200), None);
        assert_eq!(take(7, 300), Some(1_000_000));
        // After a gap the mean of the gap, then nothing, then rates again.
        assert_eq!(take(12, 800), Some(1_000_000));
        assert_eq!(take(13, 3_800), None);
        assert_eq!(take(14, 3_900), Some(1_000_000));
    }

    #[test]
    fn a_frozen_counter_has_no_rate() {
        let mut rate = UpdateRate::default();
        for poll in 0..3 {
            rate.observe(due(poll), poll, None, Refresh::Unknown, EVERY);
        }
        assert_eq!(rate.observe(due(3), 2, None, Refresh::Unknown, EVERY), Some(10_000));
        assert_eq!(rate.observe(due(90), 2, None, Refresh::Stopped, EVERY), None);
    }

    proptest! {
        /// Whatever the cache and the losses: an update is seen at most one poll late, so a rate is
        /// at most that of one poll less than the span between two updates.
        #[test]
        fn no_rate_is_a_false_peak(
            period in 1_u64..40, lost in proptest::collection::vec(prop::bool::weighted(0.2), 400),
        ) {
            let mut rate = UpdateRate::default();
            for poll in 0..400 {
                if lost[usize::try_from(poll).unwrap()] {
                    continue;
                }
                let read = poll / period * period * 1_000;
                if let Some(rate) = rate.observe(due(poll), read, None, Refresh::Unknown, EVERY) {
                    let most = if period == 1 { 1 } else { period - 1 };
                    let most = 10_000_000 * period / most;
                    prop_assert!(rate.unsigned_abs() <= most, "{} at {}", rate, poll);
                }
            }
        }
    }
}
