//! What the runs of a study came to, before anybody prints or draws it.

use meikyo_models::Report;
use meikyo_models::replications::{FigureEstimate, StatisticEstimate, WarmUp};
use meikyo_sim::Confidence;

use super::SimulateArgs;

/// All runs of one combination of values, and what they say together.
pub(super) struct Point {
    /// The values of the swept keys, in their order.
    pub(super) values: Vec<String>,
    pub(super) reports: Vec<Report>,
    pub(super) figures: Vec<FigureEstimate>,
    pub(super) statistics: Vec<StatisticEstimate>,
    /// What statistics leave out at the beginning.
    pub(super) warm_up: Option<WarmUp>,
}

/// What was studied.
pub(super) struct Study<'a> {
    pub(super) args: &'a SimulateArgs,
    pub(super) model: &'static str,
    /// The swept keys.
    pub(super) keys: Vec<&'a str>,
    pub(super) confidence: Confidence,
    pub(super) points: Vec<Point>,
}

impl Study<'_> {
    /// Whether there are several runs of each point.
    pub(super) fn is_replicated(&self) -> bool {
        self.args.replications > 1
    }
}
