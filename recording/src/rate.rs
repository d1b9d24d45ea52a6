//! Rates of counters between the instants at which the agent really updated them.
//!
//! An agent that refreshes a counter every 3 s and is read every 0.1 s shows 29 equal values and
//! then one jump. The difference of consecutive readings would be 29 zeros and a spike of 30 times
//! the rate. [`Edges`] therefore takes the increase over the span between two *update edges*, as
//! [`Updates`] describes them, and hands it out as a [`Span`] of constant rate. Spans follow each
//! other without overlap, and their increases add up to exactly what the counter counted; only what
//! happened across a reset is unknown and in no span.
//!
//! This module does not find out how often an agent updates; see table `freshness`.

mod freshness;

use meikyo_units::Nanos;

pub use freshness::{Finding, Freshness, Timeline};

use crate::counter::{self, Bounds, Reading, Steps};

/// How often an agent updates a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Updates {
    /// Every reading is fresh: rates are taken between consecutive readings.
    EveryPoll,
    /// Every `period`; `phase` is one of the update instants, ns since the epoch.
    Periodic {
        /// Span between two updates.
        period: Nanos,
        /// An update instant; `None` if not known.
        phase: Option<i64>,
    },
    /// At most `greatest` apart. An increase after a longer time without change happened in the
    /// last `greatest`, since an update before that would have shown it.
    Irregular {
        /// Greatest span between two updates.
        greatest: Nanos,
    },
}

impl Updates {
    /// What is assumed of a value of which nothing is known: updates at most 10 s apart, between
    /// observed changes. It never exaggerates a rate of an agent that caches for up to 10 s, and
    /// of a fresh counter that moves at every reading it is the same as [`Updates::EveryPoll`];
    /// the price is that a burst after a pause is spread over the pause, up to 10 s.
    pub const UNKNOWN: Self = Self::Irregular { greatest: Nanos::from_secs(10) };
}

/// A span of time in which a counter counted at a constant rate, as far as one can know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Begin, ns since the epoch, exclusive.
    pub from: i64,
    /// End, ns since the epoch, inclusive; later than `from`.
    pub to: i64,
    /// What was counted.
    pub increase: u64,
}

impl Span {
    /// The rate, per second.
    #[expect(clippy::cast_precision_loss, reason = "a rate; 53 bits are exact enough")]
    pub fn per_second(&self) -> f64 {
        self.increase as f64 * 1e9 / (self.to - self.from) as f64
    }

    /// Cuts off what lies before `floor` and behind `ceiling`, at the same rate; a span wholly there
    /// stays.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of the increase, which is not negative"
    )]
    pub(crate) fn clip(&mut self, floor: i64, ceiling: i64) {
        let inside = Self { from: self.from.max(floor), to: self.to.min(ceiling), ..*self };
        if inside != *self && inside.from < inside.to {
            let length = |span: &Self| span.to.saturating_sub(span.from) as f64;
            let share = length(&inside) / length(self);
            *self = Self { increase: (self.increase as f64 * share) as u64, ..inside };
        }
    }
}

/// The state of one series of readings of a counter: where its last update edge was.
#[derive(Debug, Clone)]
pub struct Edges {
    /// The last reading with a value.
    last: Option<Reading>,
    /// Everything counted up to here has been handed out.
    settled: i64,
    /// Whether `settled` is an update edge. It is not before the first change, since nobody knows
    /// how old the first value was.
    on_edge: bool,
    /// No span begins before this instant: the end of the last one.
    handed_out: i64,
    clock: Clock,
    steps: Steps,
}

/// What the observed edges of a periodic value say about its period.
///
/// An edge is observed only as lying between two polls. Over `n` periods that narrows the period
/// down to a poll / n, so that the edges can soon be placed much more exactly than the polls are
/// apart.
#[derive(Debug, Clone, Copy, Default)]
struct Clock {
    /// The period that the freshness states, ns; another one begins anew.
    stated: i64,
    /// The best estimate of it, ns.
    period: i64,
    /// The polls between which the first edge was.
    anchor: (i64, i64),
    /// Periods since that edge.
    periods: i64,
    /// The least and the greatest period that agree with all edges since.
    range: (i64, i64),
}

impl Default for Edges {
    fn default() -> Self {
        let clock = Clock::default();
        let steps = Steps::default();
        Self { last: None, settled: 0, on_edge: false, handed_out: i64::MIN, clock, steps }
    }
}

impl Edges {
    /// Takes the next reading and hands out the spans that it closes: none while the value stands
    /// still within the expected time, one of zero increase for full periods without change, and
    /// one with the increase when the value changed.
    ///
    /// Readings come in order of time; missing ones are simply not pushed. After a reset (see
    /// [`counter::difference`]) the span across it is left out. Answers that were long under way count
    /// from when the agent read them ([`Reading::dated_after`]).
    #[inline]
    pub fn push(
        &mut self,
        reading: Reading,
        updates: Updates,
        bounds: Bounds,
        mut emit: impl FnMut(Span),
    ) {
        let reading = self.last.map_or(reading, |last| reading.dated_after(&last));
        let Some(last) = self.last.replace(reading) else { return self.begin(&reading, updates) };
        if reading.at <= last.at || counter::discontinued(&last, &reading) {
            return self.begin(&reading, updates);
        }
        let edge = match updates {
            Updates::EveryPoll => {
                self.settled = self.settled.max(self.handed_out);
                reading.at.max(self.settled + 1)
            }
            Updates::Periodic { period, phase } => {
                if self.clock.stated != span(period) {
                    self.clock = Clock::stating(span(period));
                }
                self.pass_quiet_periods(last.at, &mut emit);
                if reading.value == last.value {
                    return;
                }
                self.periodic_edge(last.at, reading.at, phase)
            }
            Updates::Irregular { greatest } => {
                self.pass_quiet_time(last.at, span(greatest), &mut emit);
                if reading.value == last.value {
                    return;
                }
                if !self.on_edge {
                    self.step_back(reading.at, span(greatest));
                }
                reading.at.max(self.settled + 1)
            }
        };
        // An edge that is estimated before the last one has no time of its own.
        let elapsed = Nanos::new((edge - self.settled).max(0).cast_unsigned());
        let delta = self.steps.step(last.value, reading.value, elapsed, bounds);
        if let Some(increase) = delta.increase() {
            emit(Span { from: self.settled, to: edge, increase });
            self.handed_out = edge;
        }
        // A counter that was set anew has changed too: that is an edge like every other.
        self.settled = edge;
        self.on_edge = true;
    }

    /// Begins anew at a reading of unknown age.
    fn begin(&mut self, reading: &Reading, updates: Updates) {
        self.settled = reading.at;
        self.on_edge = updates == Updates::EveryPoll;
        if self.handed_out > reading.at {
            // Our clock was set back; what was handed out lies in another time.
            self.handed_out = i64::MIN;
        }
    }

    /// Hands out the full periods that passed without change up to the reading at `confirmed`.
    fn pass_quiet_periods(&mut self, confirmed: i64, emit: &mut impl FnMut(Span)) {
        let period = self.clock.period;
        if !self.on_edge {
            return self.pass_quiet_time(confirmed, period, emit);
        }
        // An edge counts as passed without change once it is a quarter of a period old, so that
        // an update that is merely late is not taken for one that brought nothing.
        let passed = (confirmed - self.settled - period / 4) / period;
        if passed > 0 {
            self.pass_quiet(self.settled + passed * period, emit);
        }
    }

    /// Hands out the time without change up to `greatest` before the reading at `confirmed`.
    fn pass_quiet_time(&mut self, confirmed: i64, greatest: i64, emit: &mut impl FnMut(Span)) {
        if confirmed - self.settled > greatest {
            self.pass_quiet(confirmed - greatest, emit);
        }
    }

    fn pass_quiet(&mut self, to: i64, emit: &mut impl FnMut(Span)) {
        emit(Span { from: self.settled, to, increase: 0 });
        self.settled = to;
        self.handed_out = to;
    }

    /// Moves the begin of the first increase to `greatest` before its end.
    fn step_back(&mut self, edge: i64, greatest: i64) {
        let begin = edge.saturating_sub(greatest).max(self.handed_out);
        self.settled = self.settled.min(begin);
    }

    /// The instant of an update that is seen at `seen` and was not at `unseen`.
    ///
    /// It is the last edge and some whole periods, moved towards the two polls where it is not
    /// between them.
    fn periodic_edge(&mut self, unseen: i64, seen: i64, phase: Option<i64>) -> i64 {
        let period = self.clock.period;
        let middle = unseen + (seen - unseen) / 2;
        if !self.on_edge {
            let edge = phase.map_or(middle, |phase| seen - (seen - phase).rem_euclid(period));
            let edge = if edge > unseen { edge } else { middle };
            self.step_back(edge, period);
            self.clock.anchor_at(unseen, seen);
            return edge.max(self.settled + 1);
        }
        let periods = ((middle - self.settled + period / 2) / period).max(1);
        self.clock.observe(periods, unseen, seen);
        let expected = self.settled + periods * self.clock.period;
        let miss = expected.clamp(unseen + 1, seen) - expected;
        let most = if miss.abs() > period / 4 { miss.abs() } else { period / MISS_DIVISOR };
        (expected + miss.clamp(-most, most)).max(self.settled + 1)
    }
}

/// Part of a period by which an edge that the polls contradict is moved at a time: the length of a
/// span, and so its rate, is never off by more than 1.6 % for that; the edge is off by less than
/// a poll meanwhile.
const MISS_DIVISOR: i64 = 64;

impl Clock {
    fn stating(period: i64) -> Self {
        Self { stated: period, period, ..Self::default() }
    }

    fn anchor_at(&mut self, unseen: i64, seen: i64) {
        self.anchor = (unseen, seen);
        self.periods = 0;
        self.range = (1, i64::MAX);
    }

    /// Takes an edge `periods` after the one before.
    fn observe(&mut self, periods: i64, unseen: i64, seen: i64) {
        self.periods += periods;
        let least = (unseen - self.anchor.1) / self.periods;
        let greatest = (seen - self.anchor.0) / self.periods + 1;
        self.range = (self.range.0.max(least), self.range.1.min(greatest));
        let (least, greatest) = self.range;
        if least <= greatest && greatest - least < self.stated / 64 {
            self.period = least + (greatest - least) / 2;
        } else if least <= greatest {
            self.period = self.period.clamp(least, greatest);
        } else {
            // No period agrees with all: it drifts, or the agent is not that exact.
            self.anchor_at(unseen, seen);
        }
    }
}

/// A span as a signed difference of instants, at least 1 ns.
fn span(span: Nanos) -> i64 {
    span.get().clamp(1, i64::MAX.unsigned_abs() / 4).cast_signed()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::counter::Width;

    const MS: i64 = 1_000_000;
    const BOUNDS: Bounds = Bounds { width: Width::Bits64, fastest_per_s: None };

    /// What an agent that counts `per_s` and refreshes at `edges` answers to polls, as spans.
    fn spans(polls: &[i64], updates: Updates, value: impl Fn(i64) -> u64) -> Vec<Span> {
        let mut edges = Edges::default();
        let mut spans = Vec::new();
        for &at in polls {
            let reading = Reading { at, value: value(at), ..Reading::default() };
            edges.push(reading, updates, BOUNDS, |span| spans.push(span));
        }
        spans
    }

    fn polls(every: i64, until: i64) -> Vec<i64> {
        (0..until / every).map(|k| k * every).collect()
    }

    fn assert_sound(spans: &[Span]) {
        assert!(spans.iter().all(|span| span.to > span.from), "spans have a length");
        assert!(spans.windows(2).all(|pair| pair[0].to == pair[1].from), "one after the other");
    }

    /// The counter at `at` when it counts a constant `per_s`.
    fn counted(at: i64, per_s: i64) -> u64 {
        u64::try_from(i128::from(at) * i128::from(per_s) / 1_000_000_000).unwrap() + 1
    }

    #[test]
    fn a_cache_of_3_s_polled_at_10_hz_gives_the_true_rate() {
        let cache = 3_000 * MS;
        let updates = Updates::Periodic { period: Nanos::from_secs(3), phase: None };
        let value = |at: i64| counted((at + 1_700 * MS) / cache * cache, 1_000_000);
        let spans = spans(&polls(100 * MS, 60_000 * MS), updates, value);
        assert_sound(&spans);
        assert_eq!(spans.len(), 20, "one a refresh");
        for span in &spans {
            assert!((span.per_second() / 1e6 - 1.0).abs() < 0.001, "{span:?}");
        }
    }

    #[test]
    fn a_counter_that_jumps_beyond_line_rate_leaves_a_gap_and_no_spike() {
        let bounds = Bounds::of_interface(Width::Bits64, true, Some(1_000));
        for updates in [Updates::EveryPoll, Updates::UNKNOWN] {
            let mut edges = Edges::default();
            let mut spans = Vec::new();
            for at in polls(100 * MS, 5_000 * MS) {
                let jumped = if at > 2_450 * MS { 1_000_000_000_000 } else { 0 };
                let value = counted(at, 50_000_000) + jumped;
                let reading = Reading { at, value, ..Reading::default() };
                edges.push(reading, updates, bounds, |span| spans.push(span));
            }
            // Nobody knows how old the very first value was: its increase is spread.
            let spread = usize::from(updates == Updates::UNKNOWN);
            for span in &spans[spread..] {
                assert!((span.per_second() / 5e7 - 1.0).abs() < 0.001, "{updates:?} {span:?}");
            }
            assert!(spans[0].per_second() < 5.01e7, "{:?}", spans[0]);
            let covered: i64 = spans.iter().map(|span| span.to - span.from).sum();
            assert!(covered >= 4_600 * MS, "{updates:?}: {covered}");
            assert!(spans.iter().all(|span| span.to <= 2_400 * MS || span.from >= 2_500 * MS));
        }
    }

    #[test]
    fn a_value_that_is_fresh_at_every_poll_has_a_rate_at_every_poll() {
        let value = |at: i64| if at < 500 * MS { 7 } else { 107 };
        let spans = spans(&polls(100 * MS, 1_000 * MS), Updates::EveryPoll, value);
        assert_sound(&spans);
        let increases: Vec<_> = spans.iter().map(|span| span.increase).collect();
        assert_eq!(increases, [0, 0, 0, 0, 100, 0, 0, 0, 0]);
    }

    #[test]
    fn full_periods_without_change_are_zero_and_the_increase_is_in_the_last() {
        let updates = Updates::Periodic { period: Nanos::from_secs(1), phase: None };
        let value = |at: i64| match at / MS {
            ..950 => 0,
            950..4_950 => 500,
            _ => 600,
        };
        let spans = spans(&polls(100 * MS, 5_500 * MS), updates, value);
        assert_sound(&spans);
        let quiet = spans.iter().find(|span| span.to >= 3_500 * MS && span.from < 3_500 * MS);
        assert_eq!(quiet.unwrap().increase, 0);
        let last = spans.last().unwrap();
        assert_eq!(last.increase, 100);
        assert!((last.to - last.from).abs_diff(1_000 * MS) < 100 * MS.unsigned_abs(), "{last:?}");
    }

    #[test]
    fn an_idle_counter_has_the_rate_zero_and_not_none() {
        for updates in [
            Updates::EveryPoll,
            Updates::UNKNOWN,
            Updates::Periodic { period: Nanos::from_secs(3), phase: None },
        ] {
            let spans = spans(&polls(100 * MS, 60_000 * MS), updates, |_| 42);
            assert_sound(&spans);
            assert!(spans.iter().all(|span| span.increase == 0));
            assert!(spans.last().unwrap().to > 45_000 * MS, "{updates:?}");
        }
    }

    #[test]
    fn the_span_across_a_restart_is_left_out() {
        let mut edges = Edges::default();
        let mut spans = Vec::new();
        for poll in 0..20_u64 {
            let up = if poll < 10 { 500_000 + poll * 10 } else { (poll - 10) * 10 };
            let reading = Reading {
                at: i64::try_from(poll).unwrap() * 100 * MS,
                value: up * 100,
                uptime_cs: Some(up),
                ..Reading::default()
            };
            edges.push(reading, Updates::EveryPoll, BOUNDS, |span| spans.push(span));
        }
        assert_eq!(spans.len(), 18);
        assert!(spans.iter().all(|span| span.increase == 1_000));
        assert!(spans.iter().all(|span| span.to != 1_000 * MS));
    }

    /// Rates of a counter of 1,000,000 a second that is read every 100 ms, of which some answers are under way for
    /// `late`; the agent's uptime moves every `tick`, if it tells one.
    fn rates_of_late_answers(late: impl Fn(i64) -> i64, tick: Option<i64>) -> Vec<f64> {
        let mut edges = Edges::default();
        let mut rates = Vec::new();
        for poll in 10..400 {
            let due = poll * 100 * MS;
            let read = due + MS;
            let uptime = tick.map(|tick| (read + 3 * MS) / tick * tick / (10 * MS));
            let reading = Reading {
                at: read + late(poll),
                asked: Some(due),
                value: counted(read, 1_000_000),
                uptime_cs: uptime.and_then(|uptime| u64::try_from(uptime).ok()),
                ..Reading::default()
            };
            edges.push(reading, Updates::EveryPoll, BOUNDS, |span| rates.push(span.per_second()));
        }
        rates
    }

    #[test]
    fn answers_that_were_long_under_way_make_no_peak() {
        // A third is late by 90 ms, a ninth by 150 ms, some by three and more in a row.
        let late = |poll: i64| match poll * 7_919 % 9 {
            0..3 => 90 * MS,
            3 => 150 * MS,
            _ => 0,
        };
        let rates = rates_of_late_answers(late, Some(10 * MS));
        // An answer that is received after the next one leaves at most a gap.
        assert!(rates.len() > 380, "{}", rates.len());
        for rate in &rates {
            assert!((0.7e6..1.4e6).contains(rate), "{rates:?}");
        }
        // A clock that moves in whole seconds says less: a late answer may be dated when it was asked for, 1 ms
        // before it was read.
        let greatest = |rates: Vec<f64>| rates.into_iter().fold(0.0, f64::max);
        let coarse = greatest(rates_of_late_answers(late, Some(1_000 * MS)));
        let by_arrival = greatest(rates_of_late_answers(late, None));
        assert!(coarse < 1.2 * by_arrival && by_arrival >= 1e7, "{coarse} {by_arrival}");
        // Where nothing is late, nothing is dated anew.
        let exact = rates_of_late_answers(|_| 0, Some(1_000 * MS));
        assert!(exact.iter().all(|rate| (rate / 1e6 - 1.0).abs() < 0.001), "{exact:?}");
    }

    #[test]
    fn a_cached_counter_wraps_without_a_spike() {
        let cache = 3_000 * MS;
        let updates = Updates::Periodic { period: Nanos::from_secs(3), phase: None };
        let bounds = Bounds { width: Width::Bits32, fastest_per_s: Some(130_000_000) };
        let mut edges = Edges::default();
        let mut spans = Vec::new();
        for at in polls(100 * MS, 120_000 * MS) {
            let value = counted(at / cache * cache, 120_000_000) % (1 << 32);
            let reading = Reading { at, value, ..Reading::default() };
            edges.push(reading, updates, bounds, |span| spans.push(span));
        }
        assert_sound(&spans);
        assert_eq!(spans.len(), 39);
        assert!(spans.iter().all(|span| (span.per_second() / 120e6 - 1.0).abs() < 0.001));
    }

    /// Sum of what `spans` say was counted between two instants.
    #[expect(clippy::cast_precision_loss, reason = "a test's comparison within 1 %")]
    fn integral(spans: &[Span], from: i64, to: i64) -> f64 {
        let part = |span: &Span| {
            let overlap = (span.to.min(to) - span.from.max(from)).max(0);
            span.per_second() * overlap as f64 / 1e9
        };
        spans.iter().map(part).sum()
    }

    proptest! {
        /// A link with a constant load behind a cache whose period the freshness knows to 1 %:
        /// the rate of every update is within 2 % of the truth once 400 polls narrowed the period
        /// down (5 % where the period is less than 10 polls), the mean over 10 s is within 2 %
        /// from the first update on, and all increases add up to what was counted.
        #[test]
        fn rates_behind_a_cache_are_within_2_percent(
            period_ms in 500_i64..5_000,
            offset_ms in 0_i64..5_000,
            error_permille in -10_i64..=10,
            poll_ms in prop_oneof![Just(10_i64), Just(50), Just(100)],
        ) {
            let (period, per_s) = (period_ms * MS, 3_000_000);
            let value = |at: i64| counted((at + offset_ms * MS) / period * period, per_s);
            let found = period + period / 1_000 * error_permille;
            let period_found = Nanos::new(found.unsigned_abs());
            let updates = Updates::Periodic { period: period_found, phase: None };
            let polls = polls(poll_ms * MS, 200 * period);
            let spans = spans(&polls, updates, value);
            assert_sound(&spans);
            let total: u64 = spans.iter().map(|span| span.increase).sum();
            prop_assert_eq!(total, value(*polls.last().unwrap()) - value(0));
            let settled = usize::try_from(400 * poll_ms / period_ms).unwrap().max(20);
            for from in (0..8).map(|k| spans[0].to + k * 10_000 * MS) {
                let mean = integral(&spans, from, from + 10_000 * MS) / 10.0;
                prop_assert!((mean / 3e6 - 1.0).abs() < 0.02, "mean {}", mean);
            }
            let tolerance = if period_ms >= 10 * poll_ms { 0.02 } else { 0.05 };
            for span in &spans[settled..] {
                let error = (span.per_second() / 3e6 - 1.0).abs();
                prop_assert!(error < tolerance, "{:?} {}", span, error);
            }
        }

        /// Any load behind any cache, with missed polls, read with any notion of its freshness:
        /// spans follow each other and add up exactly.
        #[test]
        fn what_was_counted_is_conserved(
            period_ms in 50_i64..4_000,
            believed_ms in 50_i64..4_000,
            kind in 0..3,
            increments in proptest::collection::vec(0_u64..1_000_000, 300),
            missed in proptest::collection::vec(prop::bool::weighted(0.2), 300),
        ) {
            let believed = Nanos::from_millis(believed_ms.unsigned_abs());
            let updates = match kind {
                0 => Updates::EveryPoll,
                1 => Updates::Periodic { period: believed, phase: Some(-77 * MS) },
                _ => Updates::Irregular { greatest: believed },
            };
            let held = |at: i64| -> u64 {
                let refreshed = at / (period_ms * MS) * period_ms / 100;
                increments.iter().take(usize::try_from(refreshed).unwrap()).sum()
            };
            let polls: Vec<_> = (0..300_i64)
                .filter(|&k| k == 0 || !missed[usize::try_from(k).unwrap()])
                .map(|k| k * 100 * MS)
                .collect();
            let spans = spans(&polls, updates, held);
            assert_sound(&spans);
            let total: u64 = spans.iter().map(|span| span.increase).sum();
            prop_assert_eq!(total, held(*polls.last().unwrap()) - held(0));
            #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
            let total = total as f64;
            let by_time = integral(&spans, i64::MIN / 2, i64::MAX / 2);
            prop_assert!((by_time - total).abs() <= total * 1e-9);
        }
    }
}
