//! What a run of the service amounts to.

mod rates;

use meikyo_sim::{Observer, Options, Outcome, RunError, run_built};
use meikyo_units::{Nanos, SimTime};

use crate::completions::{Counting, count_f64};
use crate::digest::Digest;
use crate::ethernet::Nic;
use crate::metadata_service::ethernet;
use crate::metadata_service::work::Work;
use crate::metadata_service::{Action, Client, Host, Metadata, Packet, Plan, Relay, Side};
use crate::prediction::packet::Port;
use crate::report::{Figure, Report, Resource, busiest, report};
use crate::simplenet::{Interface, Switching};
use rates::Rates;

impl Metadata {
    /// Runs the service until its clients have nothing left to do, or to the end of `options`.
    ///
    /// # Errors
    /// Where the kernel refuses; see [`RunError`].
    pub fn run(&self, options: &Options, observer: &mut dyn Observer) -> Result<Report, RunError> {
        let phases = Action::ALL.map(|action| Work::phase(self, action));
        let warm_up = self.warm_up.map_or(SimTime::START, |span| SimTime::START + span);
        let mut counting = Counting::new(observer, phases.to_vec()).values_from(warm_up);
        let mut plan = None;
        let build = || {
            let (model, built) = self.model();
            plan = Some(built);
            model
        };
        let outcome = run_built(build, options, &mut counting)?;
        let Some(plan) = plan else { unreachable!("a model was built to be run") };
        let end = end(&outcome).min(options.until);
        let busiest =
            busiest(outcome.lps.iter().zip(0..).flat_map(|(lp, at)| busy(lp, at, &plan, end)), end);
        let rates = Rates { plan: &plan, counting: &counting, outcome: &outcome };
        let steady = rates.steady();
        let mut figures = rates.figures(steady);
        figures.extend(counts(&outcome, &counting, &plan, end));
        figures.extend(theory(&plan));
        figures.extend(ethernet::figures(&outcome));
        let notes = rates.notes(steady, end, busiest.first());
        let groups: Vec<_> =
            self.groups().into_iter().map(|([_, name], count)| (name, count)).collect();
        let report = report("metadata", outcome, &groups, add_state);
        Ok(Report { end, figures, bottleneck: busiest.first().cloned(), busiest, notes, ..report })
    }
}

/// The clients, in the order of their LPs.
fn clients(outcome: &Outcome<Host>) -> impl Iterator<Item = &Client> {
    outcome.lps.iter().filter_map(|lp| match lp {
        Host::Client(client) => Some(client),
        Host::Server(_) | Host::Switch(_) | Host::Ethernet(_) => None,
    })
}

fn counts(
    outcome: &Outcome<Host>,
    counting: &Counting<'_>,
    plan: &Plan,
    end: SimTime,
) -> Vec<Figure> {
    let sum = |of: fn(&Client) -> u32| {
        count_f64(clients(outcome).map(|client| u64::from(of(client))).sum())
    };
    let mut figures = vec![
        Figure { name: "operations_total", value: sum(Client::done) },
        Figure { name: "refused_total", value: sum(Client::refused) },
        Figure { name: "turned_away_total", value: sum(Client::turned_away) },
        Figure { name: "simulated_s", value: end.since(SimTime::START).as_secs_f64() },
    ];
    let mean = |statistic: &str| {
        let tally = outcome.statistics.iter().find(|result| result.name == statistic)?.total();
        (tally.count > 0).then(|| tally.sum / count_f64(tally.count))
    };
    let response = match plan.metadata.warm_up {
        Some(_) => counting.values.mean(),
        None => mean("response_us"),
    };
    let means = [("response_us_mean", response), ("reply_wait_us_mean", mean("reply_wait_us"))];
    for (name, value) in means {
        figures.extend(value.map(|value| Figure { name, value }));
    }
    figures
}

/// What theory says of the rate of operations, where it says something.
fn theory(plan: &Plan) -> Vec<Figure> {
    if let Some(network) = plan.network() {
        let clients = plan.metadata.clients.get();
        return vec![
            Figure { name: "bound_per_s", value: network.bound_per_s(clients) },
            Figure { name: "mva_per_s", value: network.mean_values(clients).per_s },
        ];
    }
    let Some(offered) = plan.offered_per_s() else { return Vec::new() };
    let mut figures = vec![Figure { name: "offered_per_s", value: offered }];
    if let Some(capacity) = plan.capacity_per_s().filter(|capacity| capacity.is_finite()) {
        figures.push(Figure { name: "capacity_per_s", value: capacity });
        if offered > capacity {
            figures.push(Figure { name: "overloaded_by_factor", value: offered / capacity });
        }
    }
    figures
}

/// When the last interface had nothing to do any more.
fn end(outcome: &Outcome<Host>) -> SimTime {
    let idle = |interface: &Interface, nic: Option<&Nic<Packet>>| {
        nic.map_or_else(|| interface.idle(), Nic::idle)
    };
    let idle = |lp: &Host| match lp {
        Host::Client(client) => idle(client.interface(), client.nic()),
        Host::Server(server) => idle(server.interface(), server.nic()),
        Host::Switch(_) => SimTime::START,
        Host::Ethernet(switch) => {
            SimTime::from_nanos(switch.ports().map(Port::free_at).max().unwrap_or(0))
        }
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
    if let Some(shared) = &plan.ethernet {
        return ethernet::busy(shared, lp, at, plan, end);
    }
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
        Host::Ethernet(_) => Vec::new(),
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
        (Switching::Unlimited | Switching::PerPort | Switching::Shared, Side::Clients) => {
            ["sending, client switch, port", "receiving, client switch, port"]
        }
        (Switching::Unlimited | Switching::PerPort | Switching::Shared, Side::Servers) => {
            ["sending, server switch, port", "receiving, server switch, port"]
        }
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
        Host::Ethernet(switch) => switch.add_to(digest),
    }
}
