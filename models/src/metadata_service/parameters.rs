//! The metadata service as a scenario file describes it.

use std::num::{NonZeroU16, NonZeroU32};

use meikyo_sim::{LpId, Observer, Options, RunError};
use meikyo_units::{BitsPerSecond, Bytes, Nanos};

use crate::metadata_service::{
    Action, Directories, Ethernet, Load, Metadata, Mix, RootList, Workload,
};
use crate::parameters::{
    About, Chosen, Contradiction, IdleSeed, Parameters, ScenarioModel, choice,
};
use crate::prediction::{LookAgain, Messaging, packet};
use crate::report::Report;
use crate::simplenet::Switching;
use crate::storage::Medium;

/// How changes are stored: the key `store`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Store {
    Delay,
    Queue,
    Device,
}

/// When clients begin operations: the key `load`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loop {
    Closed,
    Open,
}

/// What clients do: the key `workload`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Create,
    Mdtest,
    Mix,
}

/// What the network is made of: the key `network`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Simple,
    Ethernet,
}

/// Where clients work: the key `directories`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    One,
    Own,
}

choice!(Switching {
    Unlimited = "unlimited",
    PerPort = "per-port",
    PerNetwork = "per-network",
    Shared = "shared",
});
choice!(Kind { Simple = "simple", Ethernet = "ethernet" });
choice!(Store { Delay = "delay", Queue = "queue", Device = "device" });
choice!(Loop { Closed = "closed", Open = "open" });
choice!(Work { Create = "create", Mdtest = "mdtest", Mix = "mix" });
choice!(RootList { Asked = "asked", Known = "known" });
choice!(Where { One = "one", Own = "own" });

impl ScenarioModel for Metadata {
    fn about() -> About {
        About {
            name: "metadata",
            doc: "The metadata service PPMDS with its clients on a network of two switches.",
            until: None,
        }
    }

    fn declare(parameters: &mut Parameters<'_>) -> Self {
        let network = Network::declare(parameters);
        let store = store(parameters);
        let read_latency = parameters.span(
            "read_latency",
            Nanos::ZERO,
            "Time until the answer to any other request is sent.",
        );
        let (load, stagger) = load(parameters);
        let work = parameters.choice(
            "workload",
            Work::Create,
            "Creating files; creating files, reading their metadata and removing them; or \
             operations drawn by their weights.",
        );
        let operations = parameters.count(
            "operations",
            1..=1_000_000_000,
            1000,
            "Operations of each client; with `mdtest` its number of files.",
        );
        let warm_up = parameters.span_if_written(
            "warmup",
            "Time at the beginning that rates and response times exclude; by default rates \
             exclude the warm-up that MSER finds, and response times exclude nothing.",
        );
        let root_list = parameters.choice(
            "root_list",
            RootList::Asked,
            "Whether each client first asks server 0 for the root's server list, or knows it.",
        );
        let directories = directories(parameters);
        let mix = mix(parameters, work);
        Self {
            servers: network.servers,
            clients: network.clients,
            packet_size: network.packet_size,
            payload_size: network.payload_size,
            net_startup: network.net_startup,
            client_rate: network.client_rate,
            server_rate: network.server_rate,
            switch_rate: network.switch_rate,
            ethernet: network.ethernet,
            switching: network.switching,
            switch_lps: network.switch_lps,
            store,
            read_latency,
            load,
            workload: match work.get() {
                Work::Create => Workload::Create,
                Work::Mdtest => Workload::Mdtest,
                Work::Mix => Workload::Mix(mix),
            },
            directories,
            operations,
            stagger,
            warm_up,
            root_list: root_list.get(),
            seed: parameters.seed(),
        }
    }

    fn contradictions(&self) -> Vec<Contradiction> {
        let mut contradictions = Vec::new();
        let nothing = Mix { create: 0, stat: 0, lookup: 0, unlink: 0, list: 0 };
        if self.workload == Workload::Mix(nothing) {
            let text = "all weights are 0; one of `mix_create` and so on must not be".to_owned();
            contradictions.push(Contradiction { key: "workload", text });
        }
        let own = self.directories != Directories::One;
        if own && matches!(self.load, Load::Open { .. }) {
            let text = "a client that makes its directory waits for it; allowed with \
                        load = \"open\" is \"one\""
                .to_owned();
            contradictions.push(Contradiction { key: "directories", text });
        }
        contradictions
            .extend(self.ethernet.iter().flat_map(|ethernet| ethernet.contradictions(self)));
        contradictions
    }

    fn idle_seed(&self) -> Option<IdleSeed> {
        let drawn = self.stagger != Some(Nanos::ZERO)
            || matches!(self.load, Load::Open { .. })
            || matches!(self.workload, Workload::Mix(_))
            || self.ethernet.as_ref().is_some_and(Ethernet::is_drawn);
        let idle = match self.ethernet {
            None => IdleSeed {
                needs: "stagger above 0s, load = \"open\" or workload = \"mix\"",
                keys: &["stagger", "load", "workload"],
            },
            Some(_) => IdleSeed {
                needs: "stagger above 0s, load = \"open\", workload = \"mix\", spoiled_ppm, or trunk_cables or \
                        server_cards above 1",
                keys: &[
                    "stagger",
                    "load",
                    "workload",
                    "trunk_cables",
                    "server_cards",
                    "spoiled_ppm",
                ],
            },
        };
        (!drawn).then_some(idle)
    }

    fn series_names(&self) -> Vec<&'static str> {
        Action::ALL.iter().map(|action| action.series_name()).collect()
    }

    fn lp_name(&self, lp: LpId) -> String {
        Self::lp_name(self, lp)
    }

    fn run(&self, options: &Options, observer: &mut dyn Observer) -> Result<Report, RunError> {
        Self::run(self, options, observer)
    }
}

/// Clients, servers and what is between them.
struct Network {
    servers: NonZeroU16,
    clients: NonZeroU32,
    packet_size: Bytes,
    payload_size: Bytes,
    net_startup: Nanos,
    client_rate: BitsPerSecond,
    server_rate: BitsPerSecond,
    switch_rate: BitsPerSecond,
    ethernet: Option<Ethernet>,
    switching: Switching,
    switch_lps: NonZeroU32,
}

impl Network {
    /// Declares its keys; the defaults are those of the paper.
    fn declare(parameters: &mut Parameters<'_>) -> Self {
        let paper = Metadata::paper(2, 88, 1000);
        let servers = parameters.count("servers", 1..=65_535, 2, "Metadata servers.");
        let clients = parameters.count("clients", 1..=1 << 31, 88, "Clients of the service.");
        let kind = parameters.choice(
            "network",
            Kind::Simple,
            "What messages go through: links with a start-up and a rate, as in the paper, or the \
             network cards and switches of Ethernet, frame by frame, with queues that fill.",
        );
        let simple = &[Kind::Simple];
        let packet_size = parameters.only_with(kind, simple).size(
            "packet_size",
            paper.packet_size,
            "Size of a packet; every message occupies whole packets.",
        );
        let payload_size =
            parameters.size("payload_size", paper.payload_size, "Payload of a message.");
        let net_startup = parameters.only_with(kind, simple).span(
            "net_startup",
            paper.net_startup,
            "Start-up time of every transmission.",
        );
        let mut rate =
            |name, default, doc| parameters.only_with(kind, simple).rate(name, default, doc);
        let client_rate = rate(
            "client_bandwidth",
            paper.client_rate,
            "Rate of the links between clients and their switch.",
        );
        let server_rate = rate(
            "server_bandwidth",
            paper.server_rate,
            "Rate of the links between servers and their switch.",
        );
        let switch_rate =
            rate("switch_bandwidth", paper.switch_rate, "Rate of the link between the switches.");
        let switching = parameters.only_with(kind, simple).choice(
            "switches",
            Switching::Unlimited,
            "What messages queue for in a switch: nothing (each takes start-up time plus size \
             over bandwidth), the interface of the port, one of two \
             interfaces (to the hosts, to the other switch), or a single interface.",
        );
        let switch_lps = parameters.only_with(switching, &[Switching::Unlimited]).count(
            "switch_lps",
            1..=4096,
            8,
            "Number of LPs into which each switch is divided, so that threads can share it; does \
             not change results.",
        );
        Self {
            servers: NonZeroU16::new(servers).expect("the least is 1"),
            clients: NonZeroU32::new(clients).expect("the least is 1"),
            packet_size,
            payload_size,
            net_startup,
            client_rate,
            server_rate,
            switch_rate,
            ethernet: ethernet(parameters, kind),
            switching: switching.get(),
            switch_lps: NonZeroU32::new(switch_lps).expect("the least is 1"),
        }
    }
}

/// Cables, cards and switches, if `kind` wants them.
fn ethernet(parameters: &mut Parameters<'_>, kind: Chosen<Kind>) -> Option<Ethernet> {
    let only = |parameters: &mut Parameters<'_>| {
        parameters.only_with(kind, &[Kind::Ethernet]);
    };
    only(parameters);
    let cable_rate = parameters.rate("cable_rate", BitsPerSecond::GIGABIT, "Rate of every cable.");
    let mut count = |name, doc| {
        only(parameters);
        let count = parameters.count(name, 1..=1024_u16, 1, doc);
        NonZeroU16::new(count).expect("the least is 1")
    };
    let client_switches = count(
        "client_switches",
        "Switches that clients are on, each joined to the servers' switch.",
    );
    let trunk_cables =
        count("trunk_cables", "Cables from each switch of clients to the servers' switch.");
    let server_cards = count("server_cards", "Network cards, and so cables, of each server.");
    only(parameters);
    let latency = parameters.span(
        "message_latency",
        Nanos::from_micros(30),
        "From a program to a program beyond cables and switches: both hosts' software.",
    );
    let messaging =
        Messaging { latency, eager_max: Bytes::new(u64::MAX), look_again: LookAgain::AT_ONCE };
    let (packet, _) = packet::declare(parameters, messaging, Some(&only));
    (kind.get() == Kind::Ethernet).then_some(Ethernet {
        cable_rate,
        trunk_cables,
        server_cards,
        client_switches,
        packet,
    })
}

fn store(parameters: &mut Parameters<'_>) -> Medium {
    let store = parameters.choice(
        "store",
        Store::Delay,
        "How changes are stored: in parallel, each after `store_latency`; one after another, \
         `store_latency` each; or one after another with a seek time and a rate.",
    );
    let latency = parameters.only_with(store, &[Store::Delay, Store::Queue]).span(
        "store_latency",
        Nanos::from_micros(500),
        "Time until the answer to a change is sent.",
    );
    let seek = parameters.only_with(store, &[Store::Device]).span(
        "store_seek",
        Nanos::from_micros(100),
        "Seek time before each change.",
    );
    let rate = parameters.only_with(store, &[Store::Device]).rate(
        "store_rate",
        BitsPerSecond::new((100 * 8) << 20),
        "Rate at which the message is stored.",
    );
    match store.get() {
        Store::Delay => Medium::Delay(latency),
        Store::Queue => Medium::Queue(latency),
        Store::Device => Medium::Device { seek, rate },
    }
}

/// When clients begin operations, and the span in which those of a closed loop begin the first.
fn load(parameters: &mut Parameters<'_>) -> (Load, Option<Nanos>) {
    let load = parameters.choice(
        "load",
        Loop::Closed,
        "When clients start operations: one after another, or at random instants.",
    );
    let think = parameters.only_with(load, &[Loop::Closed]).span(
        "think",
        Nanos::ZERO,
        "Time between the end of an operation and the start of the next.",
    );
    let stagger = parameters.only_with(load, &[Loop::Closed]).span_if_written(
        "stagger",
        "Clients start at random instants within this span; by default the time of one change \
         without contention.",
    );
    let interarrival = parameters.only_with(load, &[Loop::Open]).positive_span(
        "interarrival",
        Nanos::from_millis(10),
        "Mean time between two starts of operations.",
    );
    let in_flight_max = parameters.only_with(load, &[Loop::Open]).count(
        "in_flight_max",
        1..=1_000_000,
        1000,
        "Maximum number of operations of one client in flight; further ones are rejected and \
         counted.",
    );
    let load = match load.get() {
        Loop::Closed => Load::Closed { think },
        Loop::Open => Load::Open { interarrival, in_flight_max },
    };
    (load, stagger)
}

fn directories(parameters: &mut Parameters<'_>) -> Directories {
    let directories = parameters.choice(
        "directories",
        Where::One,
        "Where clients work: all in the root, or each in a directory that it creates first (and \
         removes at the end of `mdtest`).",
    );
    let width = parameters.only_with(directories, &[Where::Own]).count(
        "directory_servers",
        1..=65_535,
        1,
        "Number of servers over which each client's directory is spread.",
    );
    let width = NonZeroU16::new(width).expect("the least is 1");
    match directories.get() {
        Where::One => Directories::One,
        Where::Own => Directories::Own { width },
    }
}

fn mix(parameters: &mut Parameters<'_>, work: Chosen<Work>) -> Mix {
    let mut weight = |name, default, doc| {
        parameters.only_with(work, &[Work::Mix]).count(name, 0..=1_000_000, default, doc)
    };
    Mix {
        create: weight("mix_create", 20, "Weight of creating a file."),
        stat: weight("mix_stat", 50, "Weight of reading a file's metadata."),
        lookup: weight("mix_lookup", 20, "Weight of looking a name up."),
        unlink: weight("mix_unlink", 10, "Weight of removing the oldest file."),
        list: weight("mix_list", 0, "Weight of listing 100 entries of the directory."),
    }
}
