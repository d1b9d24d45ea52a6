//! Several runs of one scenario with seeds of their own: how far a figure is known, and where the warm-up
//! of a run ends.
//!
//! Within a run one value mostly depends on those before it, so that their number says little about how
//! well their mean is known. Runs with seeds of their own are independent: from one figure of each of
//! them an interval follows by Student's t (Law, "Simulation Modeling and Analysis", chapter 9).

use meikyo_sim::{Confidence, Histogram, Interval, StatisticResult, Tally, Timeline};
use meikyo_units::Nanos;

use crate::completions::least_error;
use crate::report::Report;
use crate::scenario::{Scenario, ScenarioError};

/// Spans that a run is divided into at most to find where its steady state begins.
const SPANS_MAX: usize = 128;
/// With fewer spans that have values, nothing can be said about it.
const SPANS_LEAST: usize = 8;

/// The shares of values whose bounds are told of every statistic, with what they are called.
pub const PERCENTILES: [(f64, &str); 4] =
    [(0.5, "p50"), (0.9, "p90"), (0.95, "p95"), (0.99, "p99")];

/// One number of several runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// What each run said; none where it did not say it.
    pub values: Vec<Option<f64>>,
    /// Those that said something.
    pub tally: Tally,
    /// An interval that covers the mean of all possible runs with the confidence asked for; none with
    /// fewer than two values.
    pub interval: Option<Interval>,
}

/// A figure of several runs.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureEstimate {
    /// What the model calls it.
    pub name: &'static str,
    /// What is known of it.
    pub estimate: Estimate,
}

/// A statistic of several runs.
#[derive(Clone, Debug, PartialEq)]
pub struct StatisticEstimate {
    /// The name of the statistic.
    pub name: String,
    /// The group whose LPs tally it.
    pub group: String,
    /// The mean of each run.
    pub mean: Estimate,
    /// Each of [`PERCENTILES`] in each run, by its name.
    pub percentiles: Vec<(&'static str, Estimate)>,
    /// The values of all runs together.
    pub histogram: Histogram,
    /// Their count and range.
    pub total: Tally,
}

/// The warm-up of some runs.
#[derive(Clone, Debug, PartialEq)]
pub struct WarmUp {
    /// How long it takes.
    pub span: Nanos,
    /// The statistic that takes longest to settle; none where none needs to.
    pub statistic: Option<String>,
    /// Whether the statistics settle in the first half of the runs. If not, runs are too short to tell.
    pub settles: bool,
}

impl Estimate {
    fn of(values: Vec<Option<f64>>, confidence: Confidence) -> Self {
        let mut tally = Tally::EMPTY;
        values.iter().flatten().for_each(|value| tally.add(*value));
        Self { values, tally, interval: tally.interval(confidence) }
    }
}

/// The scenario of the run `index` of several, counted from 0: its seed is that of `scenario` plus
/// `index`, so that each of them can be repeated by itself.
///
/// # Errors
/// If the seed has no effect, or there are not so many.
pub fn replication(scenario: &Scenario, index: u32) -> Result<Scenario, ScenarioError> {
    let mut other = scenario.clone();
    if let Some(needs) = scenario.idle_seed_needs() {
        return Err(ScenarioError::Alike { needs });
    }
    let seed = scenario.seed().saturating_add(u64::from(index));
    other.set("seed", &seed.to_string())?;
    Ok(other)
}

/// What `reports` of one scenario say together about each of its figures.
pub fn figures(reports: &[Report], confidence: Confidence) -> Vec<FigureEstimate> {
    let mut names: Vec<&'static str> = Vec::new();
    for figure in reports.iter().flat_map(|report| &report.figures) {
        if !names.contains(&figure.name) {
            names.push(figure.name);
        }
    }
    let estimate = |name: &'static str| {
        let values = reports.iter().map(|report| report.figure(name)).collect();
        FigureEstimate { name, estimate: Estimate::of(values, confidence) }
    };
    names.into_iter().map(estimate).collect()
}

/// What `reports` of one scenario say together about each of its statistics.
pub fn statistics(reports: &[Report], confidence: Confidence) -> Vec<StatisticEstimate> {
    let Some(first) = reports.first() else { return Vec::new() };
    let of = |at: usize, statistic: &StatisticResult| {
        let all = || reports.iter().map(move |report| &report.statistics[at]);
        let percentiles = PERCENTILES.map(|(share, name)| {
            let values = all().map(|one| one.quantile(share)).collect();
            (name, Estimate::of(values, confidence))
        });
        let mut histogram = Histogram::default();
        all().for_each(|one| histogram.join(&one.histogram));
        StatisticEstimate {
            name: statistic.name.clone(),
            group: statistic.group.clone(),
            mean: Estimate::of(all().map(|one| one.total().mean()).collect(), confidence),
            percentiles: percentiles.into(),
            histogram,
            total: all().fold(Tally::EMPTY, |total, one| total.join(&one.total())),
        }
    };
    first.statistics.iter().enumerate().map(|(at, statistic)| of(at, statistic)).collect()
}

/// Where the warm-up of `reports` ends, whose statistics have timelines: for each statistic the mean over
/// all runs at each time, and by the marginal standard error rule (White 1997) as many spans as make
/// the standard error of the rest the smallest; the longest counts.
pub fn warm_up(reports: &[Report]) -> WarmUp {
    let mut longest = WarmUp { span: Nanos::ZERO, statistic: None, settles: true };
    let Some(first) = reports.first() else { return longest };
    for (at, statistic) in first.statistics.iter().enumerate() {
        let mut timeline = Timeline::default();
        for report in reports {
            timeline.join(&report.statistics[at].timeline);
        }
        let (width, means) = timeline.means(SPANS_MAX);
        let (places, means): (Vec<u64>, Vec<f64>) =
            (0..).zip(means).filter_map(|(place, mean)| Some((place, mean?))).unzip();
        if means.len() < SPANS_LEAST {
            continue;
        }
        let left_out = least_error(&means);
        let span = Nanos::new(width.get() * places[left_out]);
        longest.settles &= left_out < means.len() / 2;
        if left_out > 0 && span > longest.span {
            (longest.span, longest.statistic) = (span, Some(statistic.name.clone()));
        }
    }
    longest
}
