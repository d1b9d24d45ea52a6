//! From values to systems.

use std::num::{NonZeroU16, NonZeroU32};

use meikyo_sim::{LpId, Observer, Options, RunError};
use meikyo_units::{BitsPerSecond, Bytes, Nanos};

use crate::metadata_service::{Action, Directories, Load, Metadata, Mix, Workload};
use crate::phold::Phold;
use crate::queueing::{Closed, Open, Service};
use crate::report::Report;
use crate::scenario::keys::ModelKind;
use crate::scenario::value::Value;
use crate::scenario::{Origin, Problem, Scenario};
use crate::simplenet::Switching;
use crate::storage::Medium;

/// A system that can be run.
#[derive(Clone, Debug)]
pub(crate) enum Built {
    Metadata(Metadata),
    Phold(Phold),
    Queue(Open),
    Closed(Closed),
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
        }
    }

    pub(crate) fn series_names(&self) -> Vec<String> {
        match self {
            Self::Metadata(_) => {
                Action::ALL.iter().map(|action| action.series_name().to_owned()).collect()
            }
            Self::Closed(_) => vec!["response_us".to_owned()],
            Self::Phold(_) | Self::Queue(_) => Vec::new(),
        }
    }

    pub(crate) fn lp_name(&self, lp: LpId) -> String {
        match self {
            Self::Metadata(metadata) => metadata.lp_name(lp),
            Self::Phold(_) => format!("holder {lp}"),
            Self::Queue(_) => format!("queue {lp}"),
            Self::Closed(closed) => match lp.get().checked_sub(closed.customers) {
                Some(station) => format!("station {station}"),
                None => format!("customer {lp}"),
            },
        }
    }
}

/// The system that a scenario describes.
pub(crate) fn build(scenario: &Scenario) -> Built {
    match scenario.kind {
        ModelKind::Metadata => Built::Metadata(metadata(scenario)),
        ModelKind::Phold => Built::Phold(Phold {
            lps: scenario.count32("lps"),
            events_per_lp: scenario.count32("events_per_lp"),
            remote: scenario.share("remote"),
            lookahead: scenario.time("lookahead"),
            mean: scenario.time("mean"),
            work: scenario.count32("work"),
            seed: scenario.count("seed"),
        }),
        ModelKind::Queue => Built::Queue(Open {
            queues: scenario.count32("queues"),
            interarrival: scenario.time("interarrival"),
            service: service(scenario),
            servers: scenario.count32("servers"),
            customers: scenario.count32("customers"),
            seed: scenario.count("seed"),
        }),
        ModelKind::Closed => Built::Closed(Closed {
            customers: scenario.count32("customers"),
            stations: scenario.count32("stations"),
            service: service(scenario),
            think: scenario.time("think"),
            hop: scenario.time("hop"),
            jobs: scenario.count32("jobs"),
            seed: scenario.count("seed"),
        }),
    }
}

fn service(scenario: &Scenario) -> Service {
    let time = scenario.time("service");
    match scenario.word("service_times") {
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
    match build(scenario) {
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
        Built::Phold(_) | Built::Queue(_) | Built::Closed(_) => {}
    }
    problems
}

fn metadata(scenario: &Scenario) -> Metadata {
    let width = scenario.count16("directory_servers");
    Metadata {
        servers: scenario.count16("servers"),
        clients: NonZeroU32::new(scenario.count32("clients")).expect("the least is 1"),
        packet_size: scenario.size("packet_size"),
        payload_size: scenario.size("payload_size"),
        net_startup: scenario.time("net_startup"),
        client_rate: scenario.rate("client_bandwidth"),
        server_rate: scenario.rate("server_bandwidth"),
        switch_rate: scenario.rate("switch_bandwidth"),
        switching: match scenario.word("switches") {
            "per-port" => Switching::PerPort,
            "per-network" => Switching::PerNetwork,
            "shared" => Switching::Shared,
            _ => Switching::Unlimited,
        },
        switch_lps: NonZeroU32::new(scenario.count32("switch_lps")).expect("the least is 1"),
        store: match scenario.word("store") {
            "queue" => Medium::Queue(scenario.time("store_latency")),
            "device" => Medium::Device {
                seek: scenario.time("store_seek"),
                rate: scenario.rate("store_rate"),
            },
            _ => Medium::Delay(scenario.time("store_latency")),
        },
        read_latency: scenario.time("read_latency"),
        load: match scenario.word("load") {
            "open" => Load::Open {
                interarrival: scenario.time("interarrival"),
                in_flight_max: scenario.count32("in_flight_max"),
            },
            _ => Load::Closed { think: scenario.time("think") },
        },
        workload: match scenario.word("workload") {
            "mdtest" => Workload::Mdtest,
            "mix" => Workload::Mix(Mix {
                create: scenario.count32("mix_create"),
                stat: scenario.count32("mix_stat"),
                lookup: scenario.count32("mix_lookup"),
                unlink: scenario.count32("mix_unlink"),
                list: scenario.count32("mix_list"),
            }),
            _ => Workload::Create,
        },
        directories: match scenario.word("directories") {
            "own" => Directories::Own { width },
            _ => Directories::One,
        },
        operations: scenario.count32("operations"),
        seed: scenario.count("seed"),
    }
}

/// Values by key. That a key is there with a value of its kind is what the list of keys says; a test
/// builds every model from its defaults.
impl Scenario {
    fn value(&self, key: &str) -> Value {
        let (value, _) = self.values.get(key).expect("every key but `until` has a default");
        *value
    }

    pub(crate) fn origin(&self, key: &str) -> Origin {
        self.values.get(key).map_or(Origin::Default, |(_, origin)| *origin)
    }

    fn count(&self, key: &str) -> u64 {
        if let Value::Count(count) = self.value(key) { count } else { 0 }
    }

    fn count32(&self, key: &str) -> u32 {
        u32::try_from(self.count(key)).expect("the list of keys limits it")
    }

    fn count16(&self, key: &str) -> NonZeroU16 {
        let count = u16::try_from(self.count(key)).ok().and_then(NonZeroU16::new);
        count.expect("the list of keys limits it")
    }

    fn share(&self, key: &str) -> f64 {
        if let Value::Share(share) = self.value(key) { share } else { 0.0 }
    }

    pub(crate) fn span(&self, key: &str) -> Option<Nanos> {
        match self.values.get(key) {
            Some((Value::Span(span), _)) => Some(*span),
            _ => None,
        }
    }

    fn time(&self, key: &str) -> Nanos {
        self.span(key).expect("the list of keys says it is a span with a default")
    }

    fn size(&self, key: &str) -> Bytes {
        if let Value::Size(size) = self.value(key) { size } else { Bytes::ZERO }
    }

    fn rate(&self, key: &str) -> BitsPerSecond {
        if let Value::Rate(rate) = self.value(key) { rate } else { BitsPerSecond::default() }
    }

    pub(crate) fn word(&self, key: &str) -> &'static str {
        if let Value::Word(word) = self.value(key) { word } else { "" }
    }
}
