//! What a run of a scenario says.

use meikyo_sim::{Effort, LpId, Outcome, StatisticResult};
use meikyo_units::{Nanos, SimTime};

use crate::digest::Digest;

/// What a simulated system did. All but [`Report::effort`] is the same however it was run.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The kind of model, as a scenario file names it.
    pub model: &'static str,
    /// Events that were committed.
    pub events: u64,
    /// When the last thing of the run ended; no later than the end that was set.
    pub end: SimTime,
    /// What LPs tallied, one for each statistic of the model.
    pub statistics: Vec<StatisticResult>,
    /// What the model makes of the run, beside what theory expects.
    pub figures: Vec<Figure>,
    /// What a reader of the figures has to know: that the system was overloaded, say.
    pub notes: Vec<String>,
    /// The busiest resource and the share of the run that it was busy.
    pub bottleneck: Option<(String, f64)>,
    /// The busiest resources with the share of the run that each was busy, at most
    /// [`Report::BUSIEST_MAX`].
    pub busiest: Vec<(String, f64)>,
    /// Whether events were left when the run ended.
    pub events_left: bool,
    /// LPs that waited for something when no event was left.
    pub waiting: Vec<(LpId, String)>,
    /// What the run cost; it differs from run to run.
    pub effort: Effort,
    /// Final states, events and statistics as one number.
    pub result_digest: u64,
    /// The groups of LPs, and the events that each handled.
    pub events_per_group: Vec<(String, u64)>,
}

/// A number with its unit in its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The name, with the unit as its last part: `response_us_mean`.
    pub name: &'static str,
    /// The number, in the unit that the name says.
    pub value: f64,
}

impl Report {
    /// The most resources that are listed.
    pub const BUSIEST_MAX: usize = 10;

    /// The figure of this name.
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.name == name).map(|figure| figure.value)
    }
}

/// The share of a run to `end` for which each resource was busy, the busiest first.
pub(crate) fn busiest(
    busy: impl IntoIterator<Item = (Nanos, Resource)>,
    end: SimTime,
) -> Vec<(String, f64)> {
    let mut busy: Vec<(Nanos, Resource)> =
        busy.into_iter().filter(|(time, _)| *time > Nanos::ZERO).collect();
    // A stable sort: of equally busy ones the first stays first.
    busy.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
    busy.truncate(Report::BUSIEST_MAX);
    let span = end.since(SimTime::START).as_secs_f64();
    busy.into_iter().map(|(time, resource)| (resource.name(), time.as_secs_f64() / span)).collect()
}

/// A resource, not yet put into words: there may be millions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resource {
    /// What it is: `sending interface of client`.
    pub(crate) kind: &'static str,
    /// Which one, if there are several.
    pub(crate) place: Option<u32>,
}

impl Resource {
    fn name(&self) -> String {
        match self.place {
            Some(place) => format!("{} {place}", self.kind),
            None => self.kind.to_owned(),
        }
    }
}

/// A report with what every model has; `states` adds the final states to the digest.
pub(crate) fn report<L>(
    model: &'static str,
    outcome: Outcome<L>,
    groups: &[(&str, u32)],
    states: impl Fn(&L, &mut Digest),
) -> Report {
    let mut digest = Digest::default();
    for (lp, events) in outcome.lps.iter().zip(&outcome.events_per_lp) {
        digest.word(*events);
        states(lp, &mut digest);
    }
    digest.statistics(&outcome.statistics);
    let mut events = outcome.events_per_lp.iter();
    let events_per_group = groups
        .iter()
        .map(|(name, lps)| ((*name).to_owned(), events.by_ref().take(*lps as usize).sum()))
        .collect();
    Report {
        model,
        events: outcome.events,
        end: SimTime::START,
        statistics: outcome.statistics,
        figures: Vec::new(),
        notes: Vec::new(),
        bottleneck: None,
        busiest: Vec::new(),
        events_left: outcome.events_left,
        waiting: outcome.waiting,
        effort: outcome.effort,
        result_digest: digest.get(),
        events_per_group,
    }
}
