//! What a run completes, counted while it runs: rates and distributions without a list of everything.

mod rate;

use meikyo_sim::{Histogram, Line, LineContent, LpId, Observer, Progress};
use meikyo_units::SimTime;

pub(crate) use rate::{Steady, Window, least_error};

/// Instants of completions, thinned out evenly when there are many.
///
/// At most [`Completions::KEPT_MAX`] instants are kept: each `stride`-th, where the stride doubles as
/// they become too many. What is counted between two instants is then off by at most two strides,
/// 1/16,384 of all completions; without thinning out it is exact.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Completions {
    stride: u64,
    count: u64,
    kept: Vec<SimTime>,
    last: SimTime,
}

impl Default for Completions {
    fn default() -> Self {
        Self { stride: 1, count: 0, kept: Vec::new(), last: SimTime::START }
    }
}

impl Completions {
    /// The most instants that are kept, an even number.
    pub(crate) const KEPT_MAX: usize = 1 << 16;

    /// Counts a completion at `instant`, not before the one counted last.
    pub(crate) fn push(&mut self, instant: SimTime) {
        if self.count.is_multiple_of(self.stride) {
            if self.kept.len() == Self::KEPT_MAX {
                self.thin_out();
            }
            if self.count.is_multiple_of(self.stride) {
                self.kept.push(instant);
            }
        }
        self.count += 1;
        self.last = instant;
    }

    fn thin_out(&mut self) {
        let mut at = 0_usize;
        self.kept.retain(|_| {
            at += 1;
            at % 2 == 1
        });
        self.stride *= 2;
    }

    /// The instants after a fifth and after four fifths of all; none without any.
    pub(crate) fn middle(&self) -> Option<(SimTime, SimTime)> {
        let fifth = self.kept.len() / 5;
        let last = self.kept.len().checked_sub(1 + fifth)?;
        Some((*self.kept.get(fifth)?, *self.kept.get(last)?))
    }

    /// The instant of the last one; none without any.
    pub(crate) fn last(&self) -> Option<SimTime> {
        (self.count > 0).then_some(self.last)
    }
}

/// How often values of which size came, and their sum.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Distribution {
    histogram: Histogram,
    sum: f64,
}

impl Distribution {
    /// Counts `value`.
    pub(crate) fn push(&mut self, value: f64) {
        self.histogram.add(value);
        self.sum += value;
    }

    /// The mean of all values, as they were; none without values.
    pub(crate) fn mean(&self) -> Option<f64> {
        let count = self.histogram.count();
        (count > 0).then(|| self.sum / count_f64(count))
    }

    /// The value that `share` of all do not exceed, to 1/256 of it. None without values.
    pub(crate) fn quantile(&self, share: f64) -> Option<f64> {
        self.histogram.quantile(share)
    }
}

/// A count as a number with a fraction, to 15 digits.
#[expect(clippy::cast_precision_loss, reason = "the doc states the rounding")]
pub(crate) fn count_f64(count: u64) -> f64 {
    count as f64
}

/// From the first to the last completion of an LP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Working {
    pub(crate) first: SimTime,
    pub(crate) last: SimTime,
}

impl Working {
    /// An LP that has completed nothing.
    pub(crate) const NEVER: Self = Self { first: SimTime::END, last: SimTime::START };

    /// From the earlier first to the later last completion of both.
    fn and(self, other: Self) -> Self {
        Self { first: self.first.min(other.first), last: self.last.max(other.last) }
    }
}

/// Counts the values of series on their way to another observer.
pub(crate) struct Counting<'a> {
    inner: &'a mut dyn Observer,
    /// The phase of an LP's work that each series belongs to: LPs go from phase to phase.
    phases: Vec<usize>,
    /// Before this instant no values are counted.
    values_from: SimTime,
    /// Every completion, whatever series it belongs to.
    pub(crate) all: Completions,
    /// The completions of each series.
    pub(crate) by_series: Vec<Completions>,
    /// The values of all series together.
    pub(crate) values: Distribution,
    /// When each LP was at work, by phase and LP.
    working: Vec<Vec<Working>>,
}

impl<'a> Counting<'a> {
    /// Counts the values of the first series of a model, one for each of `phases`.
    pub(crate) fn new(inner: &'a mut dyn Observer, phases: Vec<usize>) -> Self {
        Self {
            inner,
            values_from: SimTime::START,
            all: Completions::default(),
            by_series: vec![Completions::default(); phases.len()],
            values: Distribution::default(),
            working: vec![Vec::new(); phases.iter().max().map_or(0, |last| last + 1)],
            phases,
        }
    }

    /// The same, but values before `instant` are left out of the distribution and its sum.
    pub(crate) fn values_from(self, instant: SimTime) -> Self {
        Self { values_from: instant, ..self }
    }

    /// When `lp` was at work on a series, or on anything.
    pub(crate) fn working(&self, series: Option<usize>, lp: LpId) -> Working {
        let at =
            |phase: &Vec<Working>| phase.get(lp.get() as usize).copied().unwrap_or(Working::NEVER);
        match series {
            Some(series) => at(&self.working[self.phases[series]]),
            None => self.working.iter().map(at).fold(Working::NEVER, Working::and),
        }
    }

    fn count(&mut self, line: &Line, series: usize, value: f64) {
        let instant = line.key.time;
        self.by_series[series].push(instant);
        self.all.push(instant);
        if instant >= self.values_from {
            self.values.push(value);
        }
        let (phase, lp) = (&mut self.working[self.phases[series]], line.lp.get() as usize);
        if lp >= phase.len() {
            phase.resize(lp + 1, Working::NEVER);
        }
        phase[lp] = phase[lp].and(Working { first: instant, last: instant });
    }
}

impl Observer for Counting<'_> {
    fn lines(&mut self, lines: &[Line]) {
        for line in lines {
            if let LineContent::Value { series, value } = &line.content
                && series.index() < self.by_series.len()
            {
                self.count(line, series.index(), *value);
            }
        }
        self.inner.lines(lines);
    }

    fn progress(&mut self, progress: &Progress) {
        self.inner.progress(progress);
    }
}
