//! What a run of the service amounts to.

use meikyo_sim::{Observer, Options, Outcome, RunError, run_observed};
use meikyo_units::{Nanos, SimTime};

use crate::completions::{Counting, count_f64};
use crate::digest::Digest;
use crate::metadata_service::{Action, Client, Host, Metadata, Plan, Relay, Side};
use crate::report::{Figure, Report, Resource, busiest, report};
use crate::simplenet::{Interface, Switching};

impl Metadata {
    /// Runs the service.
    ///
    /// # Errors
    /// Where the kernel refuses; see [`RunError`].
    pub fn run(&self, options: &Options, observer: &mut dyn Observer) -> Result<Report, RunError> {
        let (model, plan) = self.model();
        let mut counting = Counting::new(observer, Action::ALL.len());
        let outcome = run_observed(model, options, &mut counting)?;
        let end = end(&outcome).min(options.until);
        let busiest =
            busiest(outcome.lps.iter().zip(0..).flat_map(|(lp, at)| busy(lp, at, &plan, end)), end);
        let mut figures = rates(&counting);
        figures.extend(counts(&outcome, end));
        figures.extend(theory(&plan));
        let lps = Plan::switch_lps(self);
        let groups = [
            ("clients", self.clients.get()),
            ("servers", u32::from(self.servers.get())),
            ("client switch", lps),
            ("server switch", lps),
        ];
        let report = report("metadata", outcome, &groups, add_state);
        Ok(Report { end, figures, bottleneck: busiest.first().cloned(), busiest, ..report })
    }
}

/// Rates over the middle 60 % of the completions, and response times.
fn rates(counting: &Counting<'_>) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut add = |name, value: Option<f64>| {
        figures.extend(value.map(|value| Figure { name, value }));
    };
    for (action, completions) in Action::ALL.iter().zip(&counting.by_series) {
        add(action.rate_name(), completions.middle_per_s());
    }
    add("operations_per_s", counting.all.middle_per_s());
    for (name, share) in [("response_us_p50", 0.5), ("response_us_p99", 0.99)] {
        add(name, counting.values.quantile(share));
    }
    figures
}

fn counts(outcome: &Outcome<Host>, end: SimTime) -> Vec<Figure> {
    let clients = || {
        outcome.lps.iter().filter_map(|lp| match lp {
            Host::Client(client) => Some(client),
            Host::Server(_) | Host::Switch(_) => None,
        })
    };
    let sum =
        |of: fn(&Client) -> u32| count_f64(clients().map(|client| u64::from(of(client))).sum());
    let mut figures = vec![
        Figure { name: "operations_total", value: sum(Client::done) },
        Figure { name: "refused_total", value: sum(Client::refused) },
        Figure { name: "turned_away_total", value: sum(Client::turned_away) },
        Figure { name: "simulated_s", value: end.since(SimTime::START).as_secs_f64() },
    ];
    for (name, statistic) in
        [("response_us_mean", "response_us"), ("reply_wait_us_mean", "reply_wait_us")]
    {
        let tally = outcome.statistics.iter().find(|result| result.name == statistic);
        if let Some(tally) =
            tally.map(meikyo_sim::StatisticResult::total).filter(|tally| tally.count > 0)
        {
            figures.push(Figure { name, value: tally.sum / count_f64(tally.count) });
        }
    }
    figures
}

/// What theory says of the rate of operations, where it says something.
fn theory(plan: &Plan) -> Vec<Figure> {
    let Some(network) = plan.network() else { return Vec::new() };
    let clients = plan.metadata.clients.get();
    vec![
        Figure { name: "bound_per_s", value: network.bound_per_s(clients) },
        Figure { name: "mva_per_s", value: network.mean_values(clients).per_s },
    ]
}

/// When the last interface had nothing to do any more.
fn end(outcome: &Outcome<Host>) -> SimTime {
    let idle = |lp: &Host| match lp {
        Host::Client(client) => client.interface().idle(),
        Host::Server(server) => server.interface().idle(),
        Host::Switch(_) => SimTime::START,
    };
    outcome.lps.iter().map(idle).max().unwrap_or(SimTime::START)
}

/// What was busy at the LP at `at` for how long.
fn busy(lp: &Host, at: u32, plan: &Plan, end: SimTime) -> Vec<(Nanos, Resource)> {
    let both = |interface: &Interface, sends, receives, place| {
        vec![
            (interface.sending(end), Resource { kind: sends, place }),
            (interface.receiving(end), Resource { kind: receives, place }),
        ]
    };
    match lp {
        Host::Client(client) => both(
            client.interface(),
            "sending interface of client",
            "receiving interface of client",
            Some(at),
        ),
        Host::Server(server) => {
            let place = Some(at - plan.metadata.clients.get());
            let (sends, receives) =
                ("sending interface of server", "receiving interface of server");
            let mut busy = both(server.interface(), sends, receives, place);
            busy.push((server.storage().busy(end), Resource { kind: "store of server", place }));
            busy
        }
        Host::Switch(relay) => relay_busy(relay, end),
    }
}

fn relay_busy(relay: &Relay, end: SimTime) -> Vec<(Nanos, Resource)> {
    let interfaces = relay.switch().interfaces();
    let several = interfaces.len() > 1;
    let kinds = match (relay.switch().switching(), relay.side()) {
        (Switching::PerNetwork, Side::Clients) => {
            ["sending, client switch, network", "receiving, client switch, network"]
        }
        (Switching::PerNetwork, Side::Servers) => {
            ["sending, server switch, network", "receiving, server switch, network"]
        }
        (_, Side::Clients) => ["sending, client switch, port", "receiving, client switch, port"],
        (_, Side::Servers) => ["sending, server switch, port", "receiving, server switch, port"],
    };
    let places = interfaces.iter().zip(0..);
    places
        .flat_map(|(interface, place)| {
            let place = several.then_some(place);
            let [sends, receives] = kinds;
            [
                (interface.sending(end), Resource { kind: sends, place }),
                (interface.receiving(end), Resource { kind: receives, place }),
            ]
        })
        .collect()
}

/// Adds the final state of an LP.
fn add_state(lp: &Host, digest: &mut Digest) {
    match lp {
        Host::Client(client) => client.add_to(digest),
        Host::Server(server) => server.add_to(digest),
        Host::Switch(relay) => {
            relay.switch().interfaces().iter().for_each(|interface| interface.add_to(digest));
        }
    }
}
