//! What a run counts: tallies of each LP, and rows over simulated time.

use meikyo_units::SimTime;

use crate::key::{EventKey, LpId};
use crate::random::mix;
use crate::rules::Rules;

/// A statistic that [`Model::statistic`](crate::Model::statistic) declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "mpi", derive(serde::Serialize, serde::Deserialize))]
pub struct Statistic(pub(crate) u16);

/// A series over time that [`Model::series`](crate::Model::series) declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "mpi", derive(serde::Serialize, serde::Deserialize))]
pub struct Series(pub(crate) u16);

impl Series {
    /// Its place among the series of the model, in the order in which they were declared.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Count, sum and range of what one LP tallied, in the order of its events.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "mpi", derive(serde::Serialize, serde::Deserialize))]
pub struct Tally {
    /// How many values were tallied.
    pub count: u64,
    /// The sum of the values.
    pub sum: f64,
    /// The sum of their squares.
    pub squares: f64,
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
        squares: 0.0,
        least: f64::INFINITY,
        greatest: f64::NEG_INFINITY,
    };

    pub(crate) fn add(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
        self.least = self.least.min(value);
        self.greatest = self.greatest.max(value);
    }

    /// Both together; sums of floats depend on the order, so LPs are joined in the order of their
    /// numbers.
    #[must_use]
    pub fn join(self, other: &Self) -> Self {
        Self {
            count: self.count + other.count,
            sum: self.sum + other.sum,
            squares: self.squares + other.squares,
            least: self.least.min(other.least),
            greatest: self.greatest.max(other.greatest),
        }
    }

    /// The mean, or none without values.
    #[expect(clippy::cast_precision_loss, reason = "a count beyond 2^53 is out of reach")]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
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
}

impl StatisticResult {
    /// The tallies of all LPs of the group, joined in the order of their numbers.
    pub fn total(&self) -> Tally {
        self.per_lp.iter().fold(Tally::EMPTY, Tally::join)
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
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "mpi", derive(serde::Serialize, serde::Deserialize))]
pub struct Line {
    /// The event that gave it out.
    pub key: EventKey,
    /// The LP that gave it out.
    pub lp: LpId,
    /// A value of a series, or a text.
    pub content: LineContent,
}

/// What a [`Line`] says: a number for a series, or words for a person.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "mpi", derive(serde::Serialize, serde::Deserialize))]
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

/// What the committed events of some LPs amount to.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// One list a statistic, one tally an LP of its group that lives here.
    pub(crate) tallies: Vec<Vec<Tally>>,
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

/// The tallies of a whole run.
pub(crate) fn results(rules: &Rules, tallies: Vec<Vec<Tally>>) -> Vec<StatisticResult> {
    rules
        .statistics
        .iter()
        .zip(tallies)
        .map(|(declared, per_lp)| StatisticResult {
            name: declared.name.clone(),
            group: rules.group_name(declared.group).to_owned(),
            per_lp,
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
