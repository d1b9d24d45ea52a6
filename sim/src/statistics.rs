//! What a run counts: tallies of each LP, and rows over simulated time.

use meikyo_units::SimTime;

use crate::confidence::{Confidence, Interval};
use crate::histogram::Histogram;
use crate::key::{EventKey, LpId};
use crate::random::mix;
use crate::rules::Rules;
use crate::timeline::Timeline;

/// A statistic that [`Model::statistic`](crate::Model::statistic) declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Statistic(pub(crate) u16);

/// A series over time that [`Model::series`](crate::Model::series) declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Series(pub(crate) u16);

impl Series {
    /// Its place among the series of the model, in the order in which they were declared.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Count, sum, spread and range of what one LP tallied, in the order of its events.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Tally {
    /// How many values were tallied.
    pub count: u64,
    /// The sum of the values.
    pub sum: f64,
    /// The sum of the squares of their deviations from the mean.
    pub deviations_squared: f64,
    /// The least, infinite without values.
    pub least: f64,
    /// The greatest, negative infinite without values.
    pub greatest: f64,
}

impl Tally {
    /// The tally of an LP that has tallied nothing.
    pub const EMPTY: Self = Self {
        count: 0,
        sum: 0.0,
        deviations_squared: 0.0,
        least: f64::INFINITY,
        greatest: f64::NEG_INFINITY,
    };

    /// Adds a value (Welford 1962: a sum of squares would lose the spread of values that are all far
    /// from 0).
    pub fn add(&mut self, value: f64) {
        let before = self.mean().map(|mean| value - mean);
        self.count += 1;
        self.sum += value;
        if let (Some(before), Some(mean)) = (before, self.mean()) {
            self.deviations_squared += before * (value - mean);
        }
        self.least = self.least.min(value);
        self.greatest = self.greatest.max(value);
    }

    /// Both together; sums of floats depend on the order, so LPs are joined in the order of their
    /// numbers.
    #[must_use]
    pub fn join(self, other: &Self) -> Self {
        // Chan, Golub and LeVeque 1979.
        let between = self.mean().zip(other.mean()).map_or(0.0, |(own, other_mean)| {
            let [own_count, other_count] = [self.count, other.count].map(real);
            (own - other_mean).powi(2) * (own_count * other_count / (own_count + other_count))
        });
        Self {
            count: self.count + other.count,
            sum: self.sum + other.sum,
            deviations_squared: self.deviations_squared + other.deviations_squared + between,
            least: self.least.min(other.least),
            greatest: self.greatest.max(other.greatest),
        }
    }

    /// The mean, or none without values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / real(self.count))
    }

    /// The variance of a sample, or none of fewer than two values.
    pub fn variance(&self) -> Option<f64> {
        (self.count > 1).then(|| self.deviations_squared / real(self.count - 1))
    }

    /// The standard deviation of a sample, or none of fewer than two values.
    pub fn deviation(&self) -> Option<f64> {
        self.variance().map(f64::sqrt)
    }

    /// A confidence interval of the mean, or none of fewer than two values.
    ///
    /// It holds for values that are independent of each other, such as one from each of several runs
    /// with seeds of their own. What one run tallies mostly is not: customers who wait behind each
    /// other wait for similar times, and the interval comes out far too narrow.
    pub fn interval(&self, confidence: Confidence) -> Option<Interval> {
        Interval::of(self.count, self.mean()?, self.deviation()?, confidence)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a count beyond 2^53 is out of reach")]
fn real(count: u64) -> f64 {
    count as f64
}

/// One statistic of all LPs of its group.
#[derive(Clone, Debug, PartialEq)]
pub struct StatisticResult {
    /// The name of the statistic, as declared.
    pub name: String,
    /// The group whose LPs tally it.
    pub group: String,
    /// One tally an LP, in the order of the group.
    pub per_lp: Vec<Tally>,
    /// How often values of which size were tallied, by all LPs together.
    pub histogram: Histogram,
    /// When they were tallied, if that was asked for ([`Options::timelines`]).
    ///
    /// [`Options::timelines`]: crate::Options::timelines
    pub timeline: Timeline,
}

impl StatisticResult {
    /// The tallies of all LPs of the group, joined in the order of their numbers.
    pub fn total(&self) -> Tally {
        self.per_lp.iter().fold(Tally::EMPTY, Tally::join)
    }

    /// The value that `share` of all, from 0 to 1, do not exceed, to 1/256 of it; none without values.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let Tally { least, greatest, .. } = self.total();
        self.histogram.quantile(share).map(|value| value.max(least).min(greatest))
    }
}

/// What a handler gave out; it counts when its event is committed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Output {
    Tally { statistic: u16, value: f64 },
    Record { series: u16, value: f64 },
    Print(Box<str>),
}

/// A committed value of a series, or a printed line.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Line {
    /// The event that gave it out.
    pub key: EventKey,
    /// The LP that gave it out.
    pub lp: LpId,
    /// A value of a series, or a text.
    pub content: LineContent,
}

/// What a [`Line`] says: a number for a series, or words for a person.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum LineContent {
    /// A value of a series.
    Value {
        /// The series that the value belongs to.
        series: Series,
        /// The value that the handler recorded.
        value: f64,
    },
    /// A text that the handler printed, for people.
    Text(Box<str>),
}

/// How the values of a statistic are spread over their sizes and over time.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Spread {
    pub(crate) histogram: Histogram,
    pub(crate) timeline: Timeline,
}

impl Spread {
    pub(crate) fn join(&mut self, other: &Self) {
        self.histogram.join(&other.histogram);
        self.timeline.join(&other.timeline);
    }
}

/// What the committed events of some LPs amount to.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// One list a statistic, one tally an LP of its group that lives here.
    pub(crate) tallies: Vec<Vec<Tally>>,
    /// What all LPs that live here tallied together, for each statistic.
    pub(crate) spreads: Vec<Spread>,
    /// Whether the timelines of statistics are kept.
    pub(crate) timelines: bool,
    /// A chain of digests for each LP that lives here; empty when no trace was asked for.
    pub(crate) trace: Vec<u64>,
    /// What is not handed over yet.
    pub(crate) lines: Vec<Line>,
}

/// Who gave an output out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) key: EventKey,
    pub(crate) lp: LpId,
    /// The LP's place among those of its group that live here.
    pub(crate) member: usize,
}

impl Ledger {
    pub(crate) fn output(&mut self, origin: Origin, output: Output) {
        let Origin { key, lp, member } = origin;
        match output {
            Output::Tally { statistic, value } => {
                self.tallies[usize::from(statistic)][member].add(value);
                let spread = &mut self.spreads[usize::from(statistic)];
                spread.histogram.add(value);
                if self.timelines {
                    spread.timeline.add(key.time.as_nanos(), value);
                }
            }
            Output::Record { series, value } => self.lines.push(Line {
                key,
                lp,
                content: LineContent::Value { series: Series(series), value },
            }),
            Output::Print(text) => {
                self.lines.push(Line { key, lp, content: LineContent::Text(text) });
            }
        }
    }

    /// Adds a committed event to the chain of its LP.
    pub(crate) fn trace(&mut self, local: usize, key: &EventKey) {
        if let Some(chain) = self.trace.get_mut(local) {
            let EventKey { time, depth, priority, source, sequence } = *key;
            *chain = mix(*chain ^ time.as_nanos());
            *chain = mix(*chain ^ (u64::from(depth) << 32 | u64::from(priority)));
            *chain = mix(*chain ^ sequence.rotate_left(32) ^ u64::from(source.get()));
        }
    }
}

/// The statistics of a whole run.
pub(crate) fn results(
    rules: &Rules,
    tallies: Vec<Vec<Tally>>,
    spreads: Vec<Spread>,
) -> Vec<StatisticResult> {
    rules
        .statistics
        .iter()
        .zip(tallies.into_iter().zip(spreads))
        .map(|(declared, (per_lp, Spread { histogram, timeline }))| StatisticResult {
            name: declared.name.clone(),
            group: rules.group_name(declared.group).to_owned(),
            per_lp,
            histogram,
            timeline,
        })
        .collect()
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Every event before this instant is committed.
    pub virtual_time: SimTime,
    /// How many events are committed so far.
    pub events: u64,
    /// How many events are committed or were rolled back so far.
    pub handled: u64,
    /// How many rollbacks there were so far.
    pub rollbacks: u64,
    /// How far the furthest worker may run ahead of the GVT.
    pub gvt_lag: meikyo_units::Nanos,
}

/// Who is told what a run does while it runs. Lines come in the order of their keys.
pub trait Observer: Send {
    /// Committed lines; each is told once.
    fn lines(&mut self, lines: &[Line]);
    /// How far the run is, several times a second.
    fn progress(&mut self, progress: &Progress);
}

/// An observer that ignores everything it is told.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn lines(&mut self, _lines: &[Line]) {}
    fn progress(&mut self, _progress: &Progress) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_of_values_far_from_zero_is_exact_and_survives_a_join() {
        let values = [1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0];
        let of = |values: &[f64]| {
            let mut tally = Tally::EMPTY;
            values.iter().for_each(|value| tally.add(*value));
            tally
        };
        // 36 + 9 + 9 + 36 over 3.
        let near = |tally: &Tally| (tally.variance().unwrap() - 30.0).abs() < 1e-6;
        assert!(near(&of(&values)));
        for cut in 0..=4 {
            assert!(near(&of(&values[..cut]).join(&of(&values[cut..]))), "{cut}");
        }
        let interval = of(&values).interval(Confidence::USUAL).unwrap();
        // t of three degrees of freedom, times the square root of 30 / 4.
        assert!((interval.half_width - 3.1824 * 7.5_f64.sqrt()).abs() < 1e-3);
        assert!((interval.mean - 1e9 - 10.0).abs() < 1e-6);
        assert_eq!(of(&values[..1]).variance(), None);
        assert_eq!(Tally::EMPTY.interval(Confidence::USUAL), None);
    }
}
