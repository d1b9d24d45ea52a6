//! The difference of two readings of a counter: increase, wrap and reset told apart.
//!
//! A counter that is less than it was has either wrapped or begun anew. To take a reset for a wrap
//! gives a spike of up to 2^32 in one interval, so a decrease counts as a wrap only when nothing
//! says that the agent restarted (RFC 2863, section 3.1.5) and when the increase that the wrap
//! implies can have happened in the time between. What is lost by calling a wrap a reset is one
//! increase; what is lost by the opposite mistake is trust.
//!
//! A counter that is more than it was has counted, unless it grew by more than the port can carry:
//! then it was set anew. Since agents also state speeds that are not true, only what no late answer
//! and no misjudged refresh can explain counts as such, and a speed that is exceeded twice in a row
//! is not believed ([`Steps`]).
//!
//! This module computes no rates and looks at two readings only; see [`crate::rate`].

use meikyo_units::{Nanos, WallTime};

/// How wide a counter is, and so where it wraps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// Counter32 (RFC 2578, section 7.1.6).
    Bits32,
    /// Counter64 (RFC 2578, section 7.1.10).
    Bits64,
}

/// A value of a counter with its time and with what tells whether counting went on.
///
/// `snmpEngineBoots` is not kept: an agent that re-initializes begins `sysUpTime` anew (RFC 3418),
/// which agents of every version of SNMP tell, and v1 and v2c have no boots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// When the answer was received, ns since the epoch.
    pub at: i64,
    /// Before this it was not asked for, ns since the epoch; `None` where that is not known.
    pub asked: Option<i64>,
    /// The counter.
    pub value: u64,
    /// `sysUpTime.0` of the same answer, hundredths of a second; it wraps after 497 days.
    pub uptime_cs: Option<u64>,
    /// `ifCounterDiscontinuityTime`: `sysUpTime` at the last discontinuity.
    pub discontinuity_cs: Option<u64>,
}

/// What `sysUpTime` counts in, ns.
const UPTIME_TICK: i64 = 10_000_000;

impl Reading {
    /// The reading at the instant at which the agent took it, as far as its uptime tells.
    ///
    /// An answer that was long under way is received long after the value was read. By the agent's own clock
    /// less time has then passed since the reading `before` than by ours, and where the two differ by more
    /// than two ticks of its clock, its clock is believed. An answer is never dated before it was asked for,
    /// so an agent whose uptime moves in whole seconds does no harm.
    #[inline]
    #[must_use]
    pub fn dated_after(self, before: &Self) -> Self {
        let (Some(asked), Some(then), Some(now)) = (self.asked, before.uptime_cs, self.uptime_cs)
        else {
            return self;
        };
        let Some(ticks) = now.checked_sub(then) else { return self };
        // Saturates: no uptime counts that far.
        let passed = i64::try_from(ticks).unwrap_or(i64::MAX).saturating_mul(UPTIME_TICK);
        let taken = before.at.saturating_add(passed).max(asked);
        if self.at <= taken.saturating_add(2 * UPTIME_TICK) {
            return self;
        }
        Self { at: taken, ..self }
    }
}

/// What is known of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Where it wraps.
    pub width: Width,
    /// The fastest that it can count, per second, with some margin for the jitter of readings: for
    /// octets the line rate / 8.
    pub fastest_per_s: Option<u64>,
}

/// What net-snmp 5.9 says of loopback, and of every running Ethernet interface whose speed the kernel
/// does not tell (`netsnmp_access_interface_entry_guess_speed`, `NOMINAL_LINK_SPEED`). They may be
/// faster, so it limits no increase.
const ASSUMED_MBPS: u64 = 10;

/// What readings may be apart more than their receive times say: an answer is up to a timeout late.
const LATE_MAX: Nanos = Nanos::SECOND;

/// Bits that the shortest frame takes on the wire: 64 octets, preamble and gap (IEEE 802.3).
const SHORTEST_FRAME_BITS: u64 = 672;

impl Bounds {
    /// The bounds of an interface's counter of octets or else of packets, at a line rate in
    /// 10^6 bit/s if that is known and not 0: a tenth more than line rate, for the jitter of
    /// readings.
    #[inline]
    pub fn of_interface(width: Width, octets: bool, speed_mbps: Option<u64>) -> Self {
        let per_s = |mbps: u64| {
            let bits = mbps.saturating_mul(1_100_000);
            if octets { bits / 8 } else { bits / SHORTEST_FRAME_BITS }
        };
        Self { width, fastest_per_s: speed_mbps.filter(|mbps| *mbps > 0).map(per_s) }
    }

    /// The most that the counter can have grown in `elapsed`, generously: refreshes are placed to
    /// within a quarter of their period, and an answer is up to a second late. `None` where the
    /// speed is not known.
    #[inline]
    pub fn most_in(self, elapsed: Nanos) -> Option<u64> {
        let fastest = self.fastest_per_s?;
        let assumed = |octets| Self::of_interface(self.width, octets, Some(ASSUMED_MBPS));
        if [true, false].map(assumed).contains(&self) {
            return None;
        }
        let span = u128::from(elapsed.get()) * 5 / 4 + u128::from(LATE_MAX.get());
        let most = u128::from(fastest) * span / u128::from(Nanos::SECOND.get());
        // Saturates: no counter counts further.
        Some(u64::try_from(most).unwrap_or(u64::MAX))
    }
}

/// What happened to a counter between two readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delta {
    /// It counted this much.
    Increase(u64),
    /// It counted this much and passed its greatest value once.
    Wrapped(u64),
    /// It began anew, or may have: nothing can be said about the time between.
    Reset,
    /// It grew this much, which is more than the port can carry: it was set anew.
    Beyond(u64),
}

impl Delta {
    /// How much it counted; nothing after a reset.
    pub fn increase(self) -> Option<u64> {
        match self {
            Self::Increase(increase) | Self::Wrapped(increase) => Some(increase),
            Self::Reset | Self::Beyond(_) => None,
        }
    }
}

/// Tolerance between the agent's clock and ours: a late answer (timeout 1 s), the agent's own
/// rounding, and steps that NTP makes.
const CLOCK_TOLERANCE_CS: u64 = 200;
/// Part of the elapsed time that the agent's clock may be off besides: 1/1000, ten times what a
/// free-running quartz is.
const CLOCK_DRIFT_DIVISOR: u64 = 1_000;
/// `sysUpTime` is a `TimeTicks` and wraps here.
const UPTIME_RANGE_CS: u64 = 1 << 32;

/// What happened between two readings of the same object.
///
/// At most one wrap is assumed. For a Counter32 of octets this holds while the time between is
/// less than 2^32 octets / line rate: 34 s at 1 Gbit/s, 3.4 s at 10 Gbit/s (RFC 2863, section
/// 3.1.6). A decrease is a wrap if there is no sign of a restart (see [`discontinued`]) and if the
/// implied increase is within `bounds.fastest_per_s` for the time between; where that is not known,
/// if it is within a quarter of the counter's range.
pub fn difference(earlier: &Reading, later: &Reading, bounds: Bounds) -> Delta {
    if discontinued(earlier, later) {
        return Delta::Reset;
    }
    let elapsed = WallTime::from_nanos(later.at).since(WallTime::from_nanos(earlier.at));
    step(earlier.value, later.value, elapsed, bounds)
}

/// As [`difference`] of two values, when it is known that the agent did not restart.
///
/// `elapsed` is the time in which the increase happened: for a value that the agent caches, the
/// time between its updates and not that between two polls.
pub fn step(earlier: u64, later: u64, elapsed: Nanos, bounds: Bounds) -> Delta {
    if let Some(increase) = later.checked_sub(earlier) {
        // What the port can carry in a second is within `LATE_MAX`, and cheaper to say.
        let beyond = bounds.fastest_per_s.is_some_and(|fastest| increase > fastest)
            && bounds.most_in(elapsed).is_some_and(|most| increase > most);
        return if beyond { Delta::Beyond(increase) } else { Delta::Increase(increase) };
    }
    let range = match bounds.width {
        Width::Bits32 => 1 << 32,
        Width::Bits64 => 1_u128 << 64,
    };
    if u128::from(earlier) >= range {
        return Delta::Reset;
    }
    let increase = range - u128::from(earlier) + u128::from(later);
    let most = bounds.fastest_per_s.map_or(range / 4, |fastest| {
        u128::from(fastest) * u128::from(elapsed.get()) / u128::from(Nanos::SECOND.get())
    });
    match u64::try_from(increase) {
        Ok(increase) if u128::from(increase) <= most => Delta::Wrapped(increase),
        _ => Delta::Reset,
    }
}

/// The differences of one series, one after the other: what exceeds the stated speed once is a
/// counter that was set anew, what does so twice in a row is a speed that is not true.
#[derive(Debug, Clone, Copy, Default)]
pub struct Steps {
    /// The last growth was beyond what the port can carry.
    exceeded: bool,
}

impl Steps {
    /// As [`step`], with [`Delta::Increase`] for what is beyond the speed a second time.
    #[inline]
    pub fn step(&mut self, earlier: u64, later: u64, elapsed: Nanos, bounds: Bounds) -> Delta {
        let delta = step(earlier, later, elapsed, bounds);
        match delta {
            Delta::Beyond(increase) if self.exceeded => return Delta::Increase(increase),
            Delta::Beyond(_) => self.exceeded = true,
            // Rest says nothing about the speed.
            Delta::Increase(0) => {}
            Delta::Increase(_) | Delta::Wrapped(_) | Delta::Reset => self.exceeded = false,
        }
        delta
    }
}

/// Whether something says that the counter did not simply go on between two readings:
/// `ifCounterDiscontinuityTime` changed, or `sysUpTime` did not advance as the clock did.
///
/// `sysUpTime` going past 2^32 hundredths of a second (497 days) is not a restart. An advance that
/// falls short of the elapsed time is one, even where the later value is the greater: the agent
/// restarted during a gap. A step of our own clock looks the same and costs one increase.
pub fn discontinued(earlier: &Reading, later: &Reading) -> bool {
    let differ = |a: Option<u64>, b: Option<u64>| a.zip(b).is_some_and(|(a, b)| a != b);
    if differ(earlier.discontinuity_cs, later.discontinuity_cs) || later.at < earlier.at {
        return true;
    }
    match (earlier.uptime_cs, later.uptime_cs) {
        (Some(before), Some(after)) => {
            restarted(before, after, later.at.abs_diff(earlier.at) / 10_000_000)
        }
        _ => false,
    }
}

/// Whether `sysUpTime` went from `before` to `after` in `elapsed` by a restart; all in hundredths
/// of a second.
#[inline]
fn restarted(before: u64, after: u64, elapsed: u64) -> bool {
    let tolerance = CLOCK_TOLERANCE_CS + elapsed / CLOCK_DRIFT_DIVISOR;
    if after >= before {
        return after - before + tolerance < elapsed;
    }
    let Some(wrapped) = (after + UPTIME_RANGE_CS).checked_sub(before) else { return true };
    wrapped.abs_diff(elapsed) > tolerance
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;
    use proptest::test_runner::{Config, TestRunner};

    use super::*;

    const SECOND: i64 = 1_000_000_000;
    const GIGABIT: Bounds = Bounds { width: Width::Bits32, fastest_per_s: Some(125_000_000) };

    fn reading(at: i64, value: u64, uptime_cs: u64) -> Reading {
        Reading { at, value, uptime_cs: Some(uptime_cs), ..Reading::default() }
    }

    #[test]
    fn a_wrap_within_line_rate_is_a_wrap() {
        let earlier = reading(0, u64::from(u32::MAX) - 9, 1_000);
        let later = reading(SECOND, 90, 1_100);
        assert_eq!(difference(&earlier, &later, GIGABIT), Delta::Wrapped(100));
    }

    #[test]
    fn a_decrease_that_line_rate_does_not_allow_is_a_reset() {
        let earlier = reading(0, 3_000_000_000, 1_000);
        let later = reading(SECOND, 90, 1_100);
        assert_eq!(difference(&earlier, &later, GIGABIT), Delta::Reset);
    }

    #[test]
    fn a_growth_that_no_port_can_carry_is_no_increase() {
        let bounds = Bounds::of_interface(Width::Bits64, true, Some(1_000));
        let tenth = Nanos::from_millis(100);
        assert_eq!(step(7, 7 + 1_000_000_000_000, tenth, bounds), Delta::Beyond(1_000_000_000_000));
        // A second at line rate behind an answer that is a second late.
        assert_eq!(step(0, 125_000_000, tenth, bounds), Delta::Increase(125_000_000));
        assert_eq!(step(0, 1_250_000_000, tenth, bounds), Delta::Beyond(1_250_000_000));
        // Nobody knows the speed, or net-snmp made it up.
        for mbps in [None, Some(0), Some(10)] {
            for octets in [true, false] {
                let bounds = Bounds::of_interface(Width::Bits64, octets, mbps);
                assert_eq!(step(0, 1 << 40, tenth, bounds), Delta::Increase(1 << 40), "{mbps:?}");
            }
        }
    }

    #[test]
    fn a_speed_that_is_exceeded_all_the_time_is_not_believed() {
        let bounds = Bounds::of_interface(Width::Bits64, true, Some(100));
        let mut steps = Steps::default();
        let mut at = 0_u64;
        let mut grow = |by: u64| {
            at += by;
            steps.step(at - by, at, Nanos::from_millis(100), bounds)
        };
        assert_eq!(grow(1_000_000), Delta::Increase(1_000_000));
        assert_eq!(grow(1 << 40), Delta::Beyond(1 << 40));
        assert_eq!(grow(1_000_000), Delta::Increase(1_000_000));
        // A port of 10 Gbit/s that says 100 Mbit/s.
        let deltas: Vec<_> = (0..4).map(|_| grow(120_000_000)).collect();
        assert_eq!(deltas[0], Delta::Beyond(120_000_000));
        assert_eq!(deltas[1..], [Delta::Increase(120_000_000); 3]);
    }

    #[test]
    fn an_uptime_that_went_back_is_a_reset_also_when_the_counter_grew() {
        let earlier = reading(0, 5, 1_000);
        let later = reading(SECOND, 90, 3);
        assert_eq!(difference(&earlier, &later, GIGABIT), Delta::Reset);
    }

    #[test]
    fn a_restart_in_a_long_gap_is_seen_though_uptime_grew() {
        let earlier = reading(0, 5, 1_000);
        let later = reading(3_600 * SECOND, 90, 180_000);
        assert_eq!(difference(&earlier, &later, GIGABIT), Delta::Reset);
    }

    #[test]
    fn uptime_passing_497_days_is_no_restart() {
        let earlier = reading(0, 5, UPTIME_RANGE_CS - 50);
        let later = reading(SECOND, 90, 50);
        assert_eq!(difference(&earlier, &later, GIGABIT), Delta::Increase(85));
        let restarted = reading(100 * SECOND, 90, 50);
        assert_eq!(difference(&earlier, &restarted, GIGABIT), Delta::Reset);
    }

    #[test]
    fn a_changed_discontinuity_is_a_reset() {
        let at = |discontinuity_cs| Reading { discontinuity_cs, ..reading(SECOND, 90, 1_100) };
        let earlier = Reading { discontinuity_cs: Some(0), ..reading(0, 5, 1_000) };
        assert_eq!(difference(&earlier, &at(Some(0)), GIGABIT), Delta::Increase(85));
        assert_eq!(difference(&earlier, &at(None), GIGABIT), Delta::Increase(85));
        assert_eq!(difference(&earlier, &at(Some(7)), GIGABIT), Delta::Reset);
    }

    #[test]
    fn an_answer_that_came_a_second_late_is_no_restart() {
        let earlier = reading(0, 5, 1_099);
        let later = reading(SECOND, 90, 1_101);
        assert_eq!(difference(&earlier, &later, GIGABIT), Delta::Increase(85));
    }

    #[test]
    fn counters_of_64_bits_wrap_at_2_to_the_64() {
        let bounds = Bounds { width: Width::Bits64, ..GIGABIT };
        let later = reading(SECOND, 4, 1_100);
        let difference = difference(&reading(0, u64::MAX, 1_000), &later, bounds);
        assert_eq!(difference, Delta::Wrapped(5));
        assert_eq!(step(1 << 40, 4, Nanos::SECOND, bounds), Delta::Reset);
    }

    /// What really happens to a counter between two readings.
    #[derive(Debug, Clone)]
    enum Truth {
        Counts,
        /// Begins anew, and the agent says so.
        Restarts,
        /// Begins anew, and nothing says so but the value.
        Cleared,
    }

    /// A step of a counter on a line of 1 Gbit/s: what happens, in which part of line rate it
    /// counts, where it stands, how long the step is, and how long the agent was up.
    fn transition() -> impl Strategy<Value = (Truth, f64, u64, i64, u64)> {
        let truth = prop_oneof![
            4 => (Just(Truth::Counts), prop_oneof![0..UPTIME_RANGE_CS, Just(UPTIME_RANGE_CS - 50)]),
            1 => (Just(Truth::Restarts), 10_000..4_000_000_000_u64),
            1 => (Just(Truth::Cleared), 0..UPTIME_RANGE_CS),
        ];
        (truth, 0.0..=1.0, 0_u64..1 << 32, 10_000_000_i64..20 * SECOND)
            .prop_map(|((truth, up), share, start, elapsed)| (truth, share, start, elapsed, up))
    }

    #[test]
    fn a_million_random_wraps_and_resets_give_no_spike() {
        let config = Config { cases: 1_000_000, failure_persistence: None, ..Config::default() };
        let (wraps, resets) = (Cell::new(0_u32), Cell::new(0_u32));
        let outcome = TestRunner::new(config).run(&transition(), |case| {
            let (truth, share, start, elapsed, up) = case;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                clippy::cast_precision_loss,
                reason = "a random amount"
            )]
            let counted = (share * 125_000_000.0 * elapsed as f64 / 1e9) as u64;
            let still_up = (up + elapsed.unsigned_abs() / 10_000_000) % UPTIME_RANGE_CS;
            let (value, uptime) = match truth {
                Truth::Counts => ((start + counted) % (1 << 32), still_up),
                Truth::Restarts => (counted, counted % 2_000),
                Truth::Cleared => (counted, still_up),
            };
            let got = difference(&reading(0, start, up), &reading(elapsed, value, uptime), GIGABIT);
            match truth {
                Truth::Counts => prop_assert_eq!(got.increase(), Some(counted)),
                Truth::Restarts => prop_assert_eq!(got, Delta::Reset),
                Truth::Cleared => {}
            }
            if let Delta::Wrapped(increase) = got {
                wraps.set(wraps.get() + 1);
                let most = u128::from(elapsed.unsigned_abs()) / 8;
                prop_assert!(u128::from(increase) <= most, "above line rate");
            }
            resets.set(resets.get() + u32::from(got == Delta::Reset));
            Ok(())
        });
        outcome.unwrap();
        assert!(wraps.get() > 50_000 && resets.get() > 100_000, "{wraps:?} {resets:?}");
    }
}
