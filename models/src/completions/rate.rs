//! Rates in the steady state: which part of a run is counted, and how.
//!
//! Clients that go round and round complete operations in batches: all of those that began together end
//! together. A window that is simply cut out of a run counts one batch too many or too few, which in a
//! short run is many percent, and can be more than is possible. So a window here has no sharp edges: the
//! weight of a completion rises over the span that one operation takes when nobody is in the way, and
//! falls over the same span (a box, smoothed by a box of that width). As no client completes two
//! operations within that span, the weights of its completions sum up to no more than the time allows,
//! whatever the batches; the same holds for a server and the time of one service, by which the edges are
//! smoothed a second time. Both asymptotic bounds of a closed network hence hold for the rate itself and
//! not for its expectation only, as far as service takes a constant time.
//!
//! What a run does before it is in its steady state is left out by batch means: the marginal standard
//! error rule of White (1997), MSER, which leaves out as many batches as make the standard error of the
//! mean of the rest the smallest.

use meikyo_units::{Nanos, SimTime};

use crate::completions::{Completions, count_f64};

/// Batches that a run is divided into at most, to find where its steady state begins.
const BATCHES_MAX: u64 = 64;
/// With fewer batches, nothing can be said about where the steady state begins.
const BATCHES_LEAST: usize = 8;

/// A part of a run, and over which spans its edges are smoothed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) from: SimTime,
    pub(crate) to: SimTime,
    /// What one operation of a client takes at least.
    pub(crate) round: Nanos,
    /// What one service of the busiest kind of station takes.
    pub(crate) service: Nanos,
}

/// A rate in the steady state, and where that was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Steady {
    pub(crate) per_s: f64,
    pub(crate) from: SimTime,
    pub(crate) to: SimTime,
}

impl Window {
    /// How much longer the window is than its edges.
    fn level(&self) -> Option<u64> {
        let edges = self.round.get().checked_add(self.service.get())?;
        self.to.since(self.from).get().checked_sub(edges).filter(|level| *level > 0)
    }

    /// The share of the rising edge that is over `passed` after it began: the distribution function of
    /// the sum of two evenly distributed spans.
    fn risen(&self, passed: u64) -> f64 {
        let (round, service) = (self.round.get(), self.service.get());
        let [long, short] = [round.max(service), round.min(service)].map(count_f64);
        if passed == 0 {
            return 0.0;
        }
        let passed = count_f64(passed);
        if passed >= long + short {
            1.0
        } else if passed < short {
            passed * passed / (2.0 * long * short)
        } else if passed < long {
            (passed - short / 2.0) / long
        } else {
            let left = long + short - passed;
            1.0 - left * left / (2.0 * long * short)
        }
    }

    /// The weight of a completion: 1 in the middle, less over the edges, 0 outside.
    fn weight(&self, instant: SimTime, level: u64) -> f64 {
        let passed = instant.since(self.from).get();
        self.risen(passed) - self.risen(passed.saturating_sub(level))
    }
}

impl Completions {
    /// Completions a second in the steady part of `window`, without a look for a warm-up; none if it is
    /// shorter than its edges.
    fn smoothed_per_s(&self, window: Window) -> Option<f64> {
        let level = window.level()?;
        let [first, end] =
            [window.from, window.to].map(|edge| self.kept.partition_point(|at| *at < edge));
        let weights = self.kept[first..end].iter().map(|at| window.weight(*at, level));
        let completed = weights.sum::<f64>() * count_f64(self.stride);
        Some(completed / Nanos::new(level).as_secs_f64())
    }

    /// The rate in `window`, after the warm-up that batch means find at its beginning; none if the window
    /// is shorter than its edges.
    pub(crate) fn steady(&self, window: Window) -> Option<Steady> {
        let settled = Window { from: self.settled(window), ..window };
        let Window { from, to, .. } = settled;
        Some(Steady { per_s: self.smoothed_per_s(settled)?, from, to })
    }

    /// The rate in `window` as it is.
    pub(crate) fn steady_as_given(&self, window: Window) -> Option<Steady> {
        let Window { from, to, .. } = window;
        Some(Steady { per_s: self.smoothed_per_s(window)?, from, to })
    }

    /// All completions over the time that they took, of which the first took `round` at least; none
    /// without any.
    pub(crate) fn mean_per_s(&self, round: Nanos) -> Option<f64> {
        let span = self.last()?.since(*self.kept.first()?) + round;
        (span > Nanos::ZERO).then(|| count_f64(self.count) / span.as_secs_f64())
    }

    /// Where the steady state begins in `window`, at the latest in its middle.
    ///
    /// A batch lasts a whole number of rounds, so that clients that complete an operation each round
    /// make as many in every batch.
    fn settled(&self, window: Window) -> SimTime {
        let span = window.to.since(window.from).get();
        let round = window.round.get().max(1);
        let width = span.div_ceil(round.saturating_mul(BATCHES_MAX)).max(1) * round;
        let batches = usize::try_from(span / width).expect("at most `BATCHES_MAX`");
        if batches < BATCHES_LEAST {
            return window.from;
        }
        let mut counts = vec![0_u64; batches];
        let first = self.kept.partition_point(|at| *at < window.from);
        for at in &self.kept[first..] {
            let batch = usize::try_from(at.since(window.from).get() / width).ok();
            let Some(count) = batch.and_then(|batch| counts.get_mut(batch)) else { break };
            *count += self.stride;
        }
        let counts: Vec<f64> = counts.into_iter().map(count_f64).collect();
        let left_out = u64::try_from(least_error(&counts)).expect("batches are few");
        window.from + Nanos::new(width * left_out)
    }
}

/// How many of `values` are to be left out at the beginning, at most half of them, so that the standard
/// error of the mean of the others is the smallest.
pub(crate) fn least_error(values: &[f64]) -> usize {
    // From behind: the mean of the rest, and the sum of the squares of the deviations (Welford).
    let (mut mean, mut squares, mut taken) = (0.0, 0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    for (at, value) in values.iter().enumerate().rev() {
        taken += 1.0;
        let deviation = value - mean;
        mean += deviation / taken;
        squares += deviation * (value - mean);
        let error = squares / (taken * taken);
        if at <= values.len() / 2 && error <= best.0 {
            best = (error, at);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn completions(instants: impl IntoIterator<Item = u64>) -> Completions {
        let mut all = Completions::default();
        instants.into_iter().for_each(|instant| all.push(SimTime::from_nanos(instant)));
        all
    }

    fn window(from: u64, to: u64, round: u64, service: u64) -> Window {
        Window {
            from: SimTime::from_nanos(from),
            to: SimTime::from_nanos(to),
            round: Nanos::new(round),
            service: Nanos::new(service),
        }
    }

    #[test]
    fn batches_of_clients_in_step_are_counted_right_wherever_the_window_is_cut() {
        // 11 clients that end together every 700 ns: 11 / 700 ns, and nothing else.
        let batches = completions((1..40).flat_map(|batch| [batch * 700; 11]));
        for (from, to) in [(100, 9_000), (699, 2_222), (700, 7_000), (701, 27_301), (5_000, 5_734)]
        {
            let rate = batches.smoothed_per_s(window(from, to, 700, 33)).unwrap();
            assert!((rate / (11.0 / 700e-9) - 1.0).abs() < 1e-12, "{from} to {to}: {rate}");
        }
        assert_eq!(batches.smoothed_per_s(window(100, 833, 700, 33)), None);
    }

    proptest! {
        #[test]
        fn no_rate_is_above_what_rounds_and_services_allow(
            gaps in proptest::collection::vec(0_u64..300, 2..400),
            clients in 1_u64..9,
            (from, length) in (0_u64..3_000, 0_u64..20_000),
        ) {
            // One server that takes 33 ns for each, and clients that come back after 700 ns at least.
            let mut served = 0;
            let mut back = vec![0; usize::try_from(clients).unwrap()];
            let instants: Vec<u64> = gaps
                .iter()
                .zip((0..back.len()).cycle())
                .map(|(gap, client)| {
                    served = (served + 33).max(back[client] + 700) + gap % 7 * gap;
                    back[client] = served;
                    served
                })
                .collect();
            let rate = completions(instants).smoothed_per_s(window(from, from + length, 700, 33));
            let bound = (f64::from(u32::try_from(clients).unwrap()) / 700e-9).min(1.0 / 33e-9);
            prop_assert!(rate.is_none_or(|rate| rate <= bound * (1.0 + 1e-9)), "{rate:?} > {bound}");
        }
    }

    #[test]
    fn a_warm_up_is_left_out_and_a_steady_run_is_not_shortened() {
        // Slowly for the first 20,000 ns, then one every 10 ns.
        let slow = (0..200).map(|at| at * 100);
        let quick = (0..10_000).map(|at| 20_000 + at * 10);
        let run = completions(slow.chain(quick));
        let steady = run.steady(window(0, 120_000, 50, 10)).unwrap();
        assert!((20_000..24_000).contains(&steady.from.as_nanos()), "{steady:?}");
        assert!((steady.per_s / 1e8 - 1.0).abs() < 1e-9, "{steady:?}");
        let even = completions((0..1_000).map(|at| at * 50));
        let steady = even.steady(window(100, 50_000, 50, 10)).unwrap();
        assert_eq!(steady.from.as_nanos(), 100);
    }

    #[test]
    fn the_mean_of_a_run_allows_for_what_its_first_operation_took() {
        assert_eq!(completions([]).mean_per_s(Nanos::new(5)), None);
        let rate = completions([1_000, 1_250, 1_500]).mean_per_s(Nanos::new(250)).unwrap();
        assert!((rate - 3.0 / 750e-9).abs() < 1e-3, "{rate}");
    }

    #[test]
    fn instants_that_were_thinned_out_give_nearly_the_same_rate() {
        for count in [65_536, 65_537, 1_000_003] {
            let run = completions((0..count).map(|at| at * 10));
            let rate = run.smoothed_per_s(window(1_000, count * 10, 700, 33)).unwrap();
            assert!((rate / 1e8 - 1.0).abs() < 1e-4, "{count}: {rate}");
        }
    }
}
