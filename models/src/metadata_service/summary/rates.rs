//! Rates of a run in its steady state, and what has to be said of them.

use meikyo_sim::{LpId, Outcome};
use meikyo_units::{Nanos, SimTime};

use super::clients;
use crate::completions::{Completions, Counting, Steady, Window, Working};
use crate::metadata_service::work::Work;
use crate::metadata_service::{Action, Client, Host, Load, Plan, RootList, Workload};
use crate::report::Figure;

/// Above this share of a run, the first look-ups of all clients at server 0 are told.
const LOOKUPS_TOLD: f64 = 0.1;
/// A resource that is busy for this share of a run is saturated.
const SATURATED: f64 = 0.995;

/// What rates are made of.
pub(super) struct Rates<'a> {
    pub(super) plan: &'a Plan,
    pub(super) counting: &'a Counting<'a>,
    pub(super) outcome: &'a Outcome<Host>,
}

impl Rates<'_> {
    /// The rate of all operations in the steady state; none if the run has none.
    pub(super) fn steady(&self) -> Option<Steady> {
        self.steady_of(&self.counting.all, None)
    }

    /// The rate of each kind of operation and of all, and response times.
    pub(super) fn figures(&self, steady: Option<Steady>) -> Vec<Figure> {
        let mut figures = Vec::new();
        let mut add = |name, value: Option<f64>| {
            figures.extend(value.map(|value| Figure { name, value }));
        };
        for (at, action) in Action::ALL.into_iter().enumerate() {
            let completions = &self.counting.by_series[at];
            let of_action = self.steady_of_action(action, completions, steady);
            add(action.rate_name(), self.per_s(completions, of_action, Some(action)));
        }
        add("operations_per_s", self.per_s(&self.counting.all, steady, None));
        let seconds = |instant: SimTime| instant.since(SimTime::START).as_secs_f64();
        add("steady_from_s", steady.map(|steady| seconds(steady.from)));
        add("steady_to_s", steady.map(|steady| seconds(steady.to)));
        for (name, share) in [("response_us_p50", 0.5), ("response_us_p99", 0.99)] {
            add(name, self.counting.values.quantile(share));
        }
        figures
    }

    /// What a reader of the figures has to know.
    pub(super) fn notes(
        &self,
        steady: Option<Steady>,
        end: SimTime,
        busiest: Option<&(String, f64)>,
    ) -> Vec<String> {
        let mut notes = Vec::new();
        if steady.is_none() && self.counting.all.last().is_some() {
            notes.push(
                "there is no span in which all clients were at work: rates are means of the whole \
                 run; give each client more operations"
                    .to_owned(),
            );
        }
        notes.extend(self.lookups(end));
        notes.extend(self.overload(busiest));
        notes
    }

    /// Everybody's first look-up of the root's server list, if that is a good part of the run.
    fn lookups(&self, end: SimTime) -> Option<String> {
        let metadata = &self.plan.metadata;
        let answer = self.plan.answer_occupancy();
        let answers_s = (answer * u64::from(metadata.clients.get())).as_secs_f64();
        let end_s = end.since(SimTime::START).as_secs_f64();
        let told = metadata.root_list == RootList::Asked && answers_s > LOOKUPS_TOLD * end_s;
        told.then(|| {
            format!(
                "every client first asks server 0 for the root's server list: answering {} of them \
                 takes {answers_s:.3} s of the {end_s:.3} s; root_list = \"known\" leaves that out",
                metadata.clients
            )
        })
    }

    /// An open loop that offers more than the service can do.
    fn overload(&self, busiest: Option<&(String, f64)>) -> Option<String> {
        let offered = self.plan.offered_per_s()?;
        let saturated = busiest.filter(|(_, busy)| *busy >= SATURATED);
        match (self.plan.capacity_per_s(), saturated) {
            (Some(capacity), _) if offered > capacity => Some(format!(
                "saturated: {offered:.0} operations a second are offered, and the service can do \
                 {capacity:.0}; queues grow for as long as clients begin operations"
            )),
            (None, Some((name, _))) => Some(format!(
                "saturated: {name} is never idle; {offered:.0} operations a second are offered"
            )),
            _ => None,
        }
    }

    fn per_s(
        &self,
        completions: &Completions,
        steady: Option<Steady>,
        action: Option<Action>,
    ) -> Option<f64> {
        let [round, _] = self.smoothing(action);
        steady.map(|steady| steady.per_s).or_else(|| completions.mean_per_s(round))
    }

    /// The rate of one kind of operation: where kinds are mixed, in the steady state of all.
    fn steady_of_action(
        &self,
        action: Action,
        completions: &Completions,
        all: Option<Steady>,
    ) -> Option<Steady> {
        completions.last()?;
        let metadata = &self.plan.metadata;
        if metadata.workload == Workload::Mdtest || action == Action::MakeDirectory {
            return self.steady_of(completions, Some(action));
        }
        let Steady { from, to, .. } = all?;
        let [round, service] = self.smoothing(Some(action));
        completions.steady_as_given(Window { from, to, round, service })
    }

    fn steady_of(&self, completions: &Completions, action: Option<Action>) -> Option<Steady> {
        let window = self.window(completions, action)?;
        match self.plan.metadata.warm_up {
            Some(_) => completions.steady_as_given(window),
            None => completions.steady(window),
        }
    }

    /// The span in which all clients were at work: in a closed loop since the last of them ended its
    /// first operation, to where the first of them has ended its last one.
    fn window(&self, completions: &Completions, action: Option<Action>) -> Option<Window> {
        let metadata = &self.plan.metadata;
        let closed = matches!(metadata.load, Load::Closed { .. });
        let at_first = action.is_none_or(|action| Work::phase(metadata, action) <= 1);
        let warm_up = metadata.warm_up.map(|span| SimTime::START + span);
        let (mut from, mut to) = (warm_up.unwrap_or(SimTime::START), completions.last()?);
        for (client, lp) in clients(self.outcome).zip(0..) {
            let working = self.counting.working(action.map(Action::index), LpId::new(lp));
            if closed && (warm_up.is_none() || !at_first) {
                from = from.max(working.first);
            }
            if working != Working::NEVER && self.has_ended(client, LpId::new(lp), working) {
                to = to.min(working.last);
            }
        }
        let [round, service] = self.smoothing(action);
        (from < to).then_some(Window { from, to, round, service })
    }

    /// Whether `client` has nothing left to do of what it was `working` on.
    fn has_ended(&self, client: &Client, lp: LpId, working: Working) -> bool {
        client.has_ended() || self.counting.working(None, lp).last > working.last
    }

    fn smoothing(&self, action: Option<Action>) -> [Nanos; 2] {
        let mixed = matches!(self.plan.metadata.workload, Workload::Mix(_));
        self.plan.smoothing(action.filter(|_| !mixed).map(Action::is_change))
    }
}
