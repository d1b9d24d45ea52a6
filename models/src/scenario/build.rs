//! From values to systems.

use std::collections::BTreeMap;
use std::num::{NonZeroU16, NonZeroU32};

use meikyo_sim::{LpId, Observer, Options, RunError};
use meikyo_units::{BitsPerSecond, Bytes, Nanos};

use crate::metadata_service::{Action, Directories, Load, Metadata, Mix, RootList, Workload};
use crate::phold::Phold;
use crate::queueing::{Closed, Open, Service};
use crate::report::Report;
use crate::ring::Ring;
use crate::scenario::keys::ModelKind;
use crate::scenario::value::Value;
use crate::scenario::{Origin, Problem, Scenario};
use crate::simplenet::{Link, Switching};
use crate::storage::Medium;

/// A system that can be run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Built {
    Metadata(Metadata),
    Phold(Phold),
    Queue(Open),
    Closed(Closed),
    Ring(Ring),
}

impl Built {
    pub(crate) fn run(
        &self,
        options: &Options,
        observer: &mut dyn Observer,
    ) -> Result<Report, RunError> {
        match self {
            Self::Metadata(metadata) => metadata.run(options, observer),
            Self::Phold(phold) => phold.run(options, observer),
            Self::Queue(open) => open.run(options, observer),
            Self::Closed(closed) => closed.run(options, observer),
            Self::Ring(ring) => ring.run(options, observer),
        }
    }

    pub(crate) fn series_names(&self) -> Vec<String> {
        match self {
            Self::Metadata(_) => {
                Action::ALL.iter().map(|action| action.series_name().to_owned()).collect()
            }
            Self::Closed(_) => vec!["response_us".to_owned()],
            Self::Ring(_) => vec![Ring::SERIES.to_owned()],
            Self::Phold(_) => vec![Phold::SERIES.to_owned()],
            Self::Queue(_) => Open::SERIES.map(str::to_owned).to_vec(),
        }
    }

    pub(crate) fn give_series(&mut self) {
        match self {
            Self::Phold(phold) => phold.series = true,
            Self::Queue(open) => open.series = true,
            Self::Metadata(_) | Self::Closed(_) | Self::Ring(_) => {}
        }
    }

    pub(crate) fn series_source(&self, lp: LpId) -> String {
        match self {
            Self::Phold(_) => Phold::GROUP.to_owned(),
            _ => self.lp_name(lp),
        }
    }

    pub(crate) fn lp_name(&self, lp: LpId) -> String {
        match self {
            Self::Metadata(metadata) => metadata.lp_name(lp),
            Self::Phold(_) => format!("holder {lp}"),
            Self::Queue(_) => format!("queue {lp}"),
            Self::Ring(_) => format!("switch {lp}"),
            Self::Closed(closed) => match lp.get().checked_sub(closed.customers) {
                Some(station) => format!("station {station}"),
                None => format!("customer {lp}"),
            },
        }
    }
}

/// The system that the values of a model describe.
pub(crate) fn build(kind: ModelKind, values: &BTreeMap<&'static str, (Value, Origin)>) -> Built {
    let values = &Values(values);
    match kind {
        ModelKind::Metadata => Built::Metadata(metadata(values)),
        ModelKind::Phold => Built::Phold(Phold {
            lps: values.count32("lps"),
            events_per_lp: values.count32("events_per_lp"),
            remote: values.share("remote"),
            lookahead: values.time("lookahead"),
            mean: values.time("mean"),
            work: values.count32("work"),
            seed: values.count("seed"),
            series: false,
        }),
        ModelKind::Queue => Built::Queue(Open {
            queues: values.count32("queues"),
            interarrival: values.time("interarrival"),
            service: service(values),
            servers: values.count32("servers"),
            customers: values.count32("customers"),
            seed: values.count("seed"),
            series: false,
        }),
        ModelKind::Closed => Built::Closed(Closed {
            customers: values.count32("customers"),
            stations: values.count32("stations"),
            service: service(values),
            think: values.time("think"),
            hop: values.time("hop"),
            jobs: values.count32("jobs"),
            seed: values.count("seed"),
        }),
        ModelKind::Ring => Built::Ring(Ring {
            switches: values.count32("switches"),
            messages_per_switch: values.count32("messages_per_switch"),
            journeys: values.count32("journeys"),
            size: values.size("message_size"),
            link: Link { start_up: values.time("net_startup"), rate: values.rate("bandwidth") },
            seed: values.count("seed"),
        }),
    }
}

fn service(values: &Values<'_>) -> Service {
    let time = values.time("service");
    match values.word("service_times") {
        "constant" => Service::Constant(time),
        _ => Service::Exponential(time),
    }
}

/// What the values of single keys do not show.
pub(crate) fn contradictions(scenario: &Scenario) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut note = |key: &str, text: String| {
        problems.push(Problem::new(scenario.origin(key), key, text));
    };
    match &scenario.built {
        Built::Metadata(metadata) => {
            if let Workload::Mix(Mix { create: 0, stat: 0, lookup: 0, unlink: 0, list: 0 }) =
                metadata.workload
            {
                note(
                    "workload",
                    "all weights are 0; one of `mix_create` and so on must not be".into(),
                );
            }
            let own = metadata.directories != Directories::One;
            if own && matches!(metadata.load, Load::Open { .. }) {
                let text = "a client that makes its directory waits for it; \
                            allowed with load = \"open\" is \"one\"";
                note("directories", text.into());
            }
        }
        Built::Phold(phold) if phold.mean < phold.lookahead => {
            let text = format!("{} is above the mean of {}", phold.lookahead, phold.mean);
            note("lookahead", text);
        }
        Built::Phold(_) | Built::Queue(_) | Built::Closed(_) | Built::Ring(_) => {}
    }
    problems.extend(idle_seed(scenario));
    problems
}

/// A seed that somebody gave although nothing is drawn. What the file says is left alone where a
/// setting took its effect away.
fn idle_seed(scenario: &Scenario) -> Option<Problem> {
    let (needs, keys): (_, &[&str]) = match &scenario.built {
        Built::Metadata(metadata) => {
            let drawn = metadata.stagger != Some(Nanos::ZERO)
                || matches!(metadata.load, Load::Open { .. })
                || matches!(metadata.workload, Workload::Mix(_));
            let needs = "stagger above 0s, load = \"open\" or workload = \"mix\"";
            (!drawn).then_some(needs)?;
            (needs, &["stagger", "load", "workload"])
        }
        Built::Closed(closed) => {
            let constant = matches!(closed.service, Service::Constant(_));
            let drawn = closed.stations > 1 || closed.think > Nanos::ZERO || !constant;
            let needs = "more stations, think above 0s or service_times = \"exponential\"";
            (!drawn).then_some(needs)?;
            (needs, &["stations", "think", "service_times"])
        }
        Built::Ring(ring) => {
            let needs = "more than two switches";
            (ring.switches <= 2).then_some(needs)?;
            (needs, &["switches"])
        }
        Built::Phold(_) | Built::Queue(_) => return None,
    };
    let origin = scenario.origin("seed");
    let overruled = keys.iter().any(|key| scenario.origin(key) == Origin::Set);
    let told = origin == Origin::Set || (origin != Origin::Default && !overruled);
    let text = format!("has no effect, since nothing is drawn; it needs {needs}");
    told.then(|| Problem::new(origin, "seed", text))
}

fn metadata(values: &Values<'_>) -> Metadata {
    let width = values.count16("directory_servers");
    Metadata {
        servers: values.count16("servers"),
        clients: NonZeroU32::new(values.count32("clients")).expect("the least is 1"),
        packet_size: values.size("packet_size"),
        payload_size: values.size("payload_size"),
        net_startup: values.time("net_startup"),
        client_rate: values.rate("client_bandwidth"),
        server_rate: values.rate("server_bandwidth"),
        switch_rate: values.rate("switch_bandwidth"),
        switching: match values.word("switches") {
            "per-port" => Switching::PerPort,
            "per-network" => Switching::PerNetwork,
            "shared" => Switching::Shared,
            _ => Switching::Unlimited,
        },
        switch_lps: NonZeroU32::new(values.count32("switch_lps")).expect("the least is 1"),
        store: match values.word("store") {
            "queue" => Medium::Queue(values.time("store_latency")),
            "device" => {
                Medium::Device { seek: values.time("store_seek"), rate: values.rate("store_rate") }
            }
            _ => Medium::Delay(values.time("store_latency")),
        },
        read_latency: values.time("read_latency"),
        load: match values.word("load") {
            "open" => Load::Open {
                interarrival: values.time("interarrival"),
                in_flight_max: values.count32("in_flight_max"),
            },
            _ => Load::Closed { think: values.time("think") },
        },
        workload: match values.word("workload") {
            "mdtest" => Workload::Mdtest,
            "mix" => Workload::Mix(Mix {
                create: values.count32("mix_create"),
                stat: values.count32("mix_stat"),
                lookup: values.count32("mix_lookup"),
                unlink: values.count32("mix_unlink"),
                list: values.count32("mix_list"),
            }),
            _ => Workload::Create,
        },
        directories: match values.word("directories") {
            "own" => Directories::Own { width },
            _ => Directories::One,
        },
        operations: values.count32("operations"),
        stagger: values.time_if_written("stagger"),
        warm_up: values.time_if_written("warmup"),
        root_list: match values.word("root_list") {
            "known" => RootList::Known,
            _ => RootList::Asked,
        },
        seed: values.count("seed"),
    }
}

/// Values by key. That a key is there with a value of its kind is what the list of keys says; a test
/// builds every model from its defaults.
struct Values<'a>(&'a BTreeMap<&'static str, (Value, Origin)>);

impl Values<'_> {
    fn value(&self, key: &str) -> Value {
        self.0.get(key).expect("every key that is read here has a default").0
    }

    fn count(&self, key: &str) -> u64 {
        let Value::Count(count) = self.value(key) else { unreachable!("`{key}` is a count") };
        count
    }

    fn count32(&self, key: &str) -> u32 {
        u32::try_from(self.count(key)).expect("the list of keys limits it")
    }

    fn count16(&self, key: &str) -> NonZeroU16 {
        let count = u16::try_from(self.count(key)).ok().and_then(NonZeroU16::new);
        count.expect("the list of keys limits it")
    }

    fn share(&self, key: &str) -> f64 {
        let Value::Share(share) = self.value(key) else { unreachable!("`{key}` is a share") };
        share
    }

    fn time(&self, key: &str) -> Nanos {
        let Value::Span(span) = self.value(key) else { unreachable!("`{key}` is a span") };
        span
    }

    fn time_if_written(&self, key: &str) -> Option<Nanos> {
        self.0.contains_key(key).then(|| self.time(key))
    }

    fn size(&self, key: &str) -> Bytes {
        let Value::Size(size) = self.value(key) else { unreachable!("`{key}` is a size") };
        size
    }

    fn rate(&self, key: &str) -> BitsPerSecond {
        let Value::Rate(rate) = self.value(key) else { unreachable!("`{key}` is a rate") };
        rate
    }

    fn word(&self, key: &str) -> &'static str {
        let Value::Word(word) = self.value(key) else { unreachable!("`{key}` is a word") };
        word
    }
}
