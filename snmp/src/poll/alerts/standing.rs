//! Whether one alert is raised: the hysteresis of a rule, and nothing else.

use meikyo_units::{Nanos, WallTime};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Zone {
    /// As it should not be.
    Beyond,
    /// Neither: what stands goes on.
    Between,
    /// As it should be.
    Back,
}

/// What a reading changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Raised,
    Cleared,
}

/// Raised or not, and for how long readings have spoken against that.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Standing {
    raised: bool,
    /// The first of the readings without exception that speak against it.
    since: Option<WallTime>,
    /// When it was told last; events of one alert are in order also when the clock is set back.
    told: WallTime,
}

impl Standing {
    /// Takes a reading. The alert turns when every reading for at least `lasting` spoke against it,
    /// so at the first one when that is zero.
    #[inline]
    pub(super) fn observe(&mut self, at: WallTime, zone: Zone, lasting: Nanos) -> Option<Turn> {
        let against = if self.raised { Zone::Back } else { Zone::Beyond };
        if zone != against {
            self.since = None;
            return None;
        }
        let since = *self.since.get_or_insert(at);
        if at.since(since) < lasting {
            return None;
        }
        self.since = None;
        self.raised = !self.raised;
        Some(if self.raised { Turn::Raised } else { Turn::Cleared })
    }

    /// Readings before this moment and after it do not follow each other.
    pub(super) fn interrupt(&mut self) {
        self.since = None;
    }

    pub(super) fn is_raised(&self) -> bool {
        self.raised
    }

    /// The instant under which something about the alert at `at` is told.
    pub(super) fn tell(&mut self, at: WallTime) -> WallTime {
        self.told = self.told.max(at);
        self.told
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STEP: i64 = 100_000_000;

    fn instant(step: usize) -> WallTime {
        WallTime::from_nanos(i64::try_from(step).unwrap() * STEP)
    }

    /// What the rule says of the readings up to `last`, read backwards from nothing: the alert
    /// stands as it stood before, unless all readings since some reading that is at least `lasting`
    /// ago, and since its last turn, speak against it.
    fn by_brute_force(zones: &[Zone], lasting: Nanos) -> Vec<bool> {
        let mut raised: Vec<bool> = Vec::new();
        for last in 0..zones.len() {
            let before = last.checked_sub(1).is_some_and(|step| raised[step]);
            let turned = (1..last).rev().find(|&step| raised[step] != raised[step - 1]);
            let first_turn = raised.first() == Some(&true);
            let from = turned.or_else(|| first_turn.then_some(0)).map_or(0, |step| step + 1);
            let against = if before { Zone::Back } else { Zone::Beyond };
            let turns = (from..=last).any(|first| {
                instant(last).since(instant(first)) >= lasting
                    && zones[first..=last].iter().all(|zone| *zone == against)
            });
            raised.push(before != turns);
        }
        raised
    }

    fn zones() -> impl Strategy<Value = Vec<Zone>> {
        let zone = prop_oneof![Just(Zone::Beyond), Just(Zone::Between), Just(Zone::Back)];
        // Runs, so that spans are reached.
        let run = (zone, 1_usize..6).prop_map(|(zone, length)| vec![zone; length]);
        proptest::collection::vec(run, 0..14).prop_map(|runs| runs.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]
        #[test]
        fn it_turns_where_the_rule_says(zones in zones(), steps in 0_u64..5, odd in 0_u64..2) {
            // Also spans that are no multiple of the interval.
            let lasting = Nanos::new(steps * STEP.unsigned_abs() + odd * 30_000_000);
            let expected = by_brute_force(&zones, lasting);
            let mut standing = Standing::default();
            for (step, zone) in zones.iter().enumerate() {
                let before = standing.is_raised();
                let turn = standing.observe(instant(step), *zone, lasting);
                prop_assert_eq!(standing.is_raised(), expected[step], "step {}", step);
                prop_assert_eq!(turn.is_some(), before != expected[step]);
            }
        }
    }

    #[test]
    fn what_is_told_is_in_order_when_the_clock_is_set_back() {
        let mut standing = Standing::default();
        assert_eq!(standing.tell(instant(9)), instant(9));
        assert_eq!(standing.tell(instant(3)), instant(9));
    }
}
