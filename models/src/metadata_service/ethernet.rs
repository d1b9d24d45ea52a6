//! The service on Ethernet: its hosts on switches with queues that are full at some time.
//!
//! Servers are on a switch of their own, as in the paper, and clients on one or several others, each joined to that one. Every
//! cable has one rate; a trunk or a server has several where that is not enough, and each pair of a client and a
//! server stays on one of them, as switches hash.

use std::num::NonZeroU16;
use std::sync::Arc;

use meikyo_fabric::{
    Host as WiredHost, PlanOptions, PortNumber, Switch, SwitchId, SwitchModel, Trunk, TrunkEnd,
    Wiring, plan,
};
use meikyo_sim::{Context, Group, LpId, Model, Outcome};
use meikyo_undo::Log;
use meikyo_units::{BitsPerSecond, Bytes, Nanos, SimTime};

use crate::completions::count_f64;
use crate::ethernet::{EthernetSwitch, Nic, Wire};
use crate::metadata_service::{Client, Event, Host, Metadata, MetadataServer, Packet, Plan};
use crate::parameters::Contradiction;
use crate::prediction::packet::{PacketOptions, Port, Shared};
use crate::prediction::{LaneEnd, LanePlace, Network, Rates};
use crate::report::{Figure, Resource};
use crate::rpc::Body;

/// Hosts and trunk cables of a switch at most.
pub(crate) const PORTS_MAX: u64 = 60_000;
/// Pairs of a client and a server at most: each takes some 250 octets of memory.
pub(crate) const PAIRS_MAX: u64 = 4_000_000;
/// The same with TCP, with which a pair takes some 1,000.
pub(crate) const PAIRS_OF_TCP_MAX: u64 = 1_000_000;
/// Cables between a client and a server.
const CABLES: u64 = 3;

/// Switches and cables of the service on Ethernet.
#[derive(Clone, Debug, PartialEq)]
pub struct Ethernet {
    /// The rate of every cable.
    pub cable_rate: BitsPerSecond,
    /// Cables from each switch of clients to the one of the servers.
    pub trunk_cables: NonZeroU16,
    /// Network cards of each server.
    pub server_cards: NonZeroU16,
    /// Switches that clients are on, in equal shares.
    pub client_switches: NonZeroU16,
    /// What cards and switches are like.
    pub packet: PacketOptions,
}

impl Ethernet {
    /// What does not go together with numbers of hosts.
    pub(crate) fn contradictions(&self, metadata: &Metadata) -> Vec<Contradiction> {
        let (clients, servers) =
            (u64::from(metadata.clients.get()), u64::from(metadata.servers.get()));
        let mut contradictions = Vec::new();
        let mut refuse = |key, text| contradictions.push(Contradiction { key, text });
        let pairs_max = if self.packet.tcp.is_some() { PAIRS_OF_TCP_MAX } else { PAIRS_MAX };
        if clients * servers > pairs_max {
            let text = format!(
                "{clients} clients with {servers} servers are {} pairs; with network = \"ethernet\" {PAIRS_MAX} \
                 are allowed, with TCP {PAIRS_OF_TCP_MAX}",
                clients * servers
            );
            refuse("clients", text);
        }
        let [around, trunk, cards] = [self.client_switches, self.trunk_cables, self.server_cards]
            .map(|count| u64::from(count.get()));
        if clients.div_ceil(around) + trunk > PORTS_MAX {
            let text = format!(
                "a switch has {PORTS_MAX} ports at most, too few for {} clients and a trunk; more `client_switches` \
                 would do",
                clients.div_ceil(around)
            );
            refuse("clients", text);
        }
        if servers * cards + around * trunk > PORTS_MAX {
            let text = format!(
                "the servers' switch has {PORTS_MAX} ports at most, and {} are needed: for `server_cards` of each \
                 server, and `trunk_cables` of each of `client_switches`",
                servers * cards + around * trunk
            );
            refuse("servers", text);
        }
        if around > clients {
            let text = format!("{around} are more than the {clients} clients");
            refuse("client_switches", text);
        }
        contradictions
    }

    /// Whether chance decides anything: which cable of several a pair takes, or which frames are spoiled.
    pub(crate) fn is_drawn(&self) -> bool {
        [self.trunk_cables, self.server_cards].iter().any(|count| count.get() > 1)
            || self.packet.spoiled_ppm > 0
    }

    pub(crate) fn switches(&self) -> u32 {
        1 + u32::from(self.client_switches.get())
    }

    /// What all cards and switches know.
    pub(crate) fn shared(&self, metadata: &Metadata) -> Arc<Shared> {
        let (clients, servers) = (metadata.clients.get(), u32::from(metadata.servers.get()));
        let of_client = |client| (clients..clients + servers).map(move |server| [client, server]);
        let pairs: Vec<[u32; 2]> = (0..clients).flat_map(of_client).collect();
        let hosts = (0..self.hosts(metadata)).collect();
        Arc::new(Shared::new(self.network(metadata), &pairs, hosts, self.packet))
    }

    fn hosts(&self, metadata: &Metadata) -> usize {
        let servers = usize::from(metadata.servers.get());
        usize::try_from(metadata.clients.get()).expect("32 bits are a count") + servers
    }

    /// Clients, then servers; the servers' switch, then those of the clients.
    fn network(&self, metadata: &Metadata) -> Network {
        let servers = usize::from(metadata.servers.get());
        let clients = self.hosts(metadata) - servers;
        let around = usize::from(self.client_switches.get());
        let model = SwitchModel::named("powerconnect-6248").expect("a model of the table");
        // As large as this needs: what is asked is what happens in its queues.
        let model = SwitchModel {
            ports: u16::MAX,
            table_entries: u32::MAX,
            bundle_ports: u16::MAX,
            bundles: u16::MAX,
            ..model
        };
        let switch = |at: usize| Switch { name: format!("switch {at}"), model: model.clone() };
        let mut next = vec![1; around + 1];
        let mut ports = |switch: usize, count: u16| {
            let first: u16 = next[switch];
            next[switch] += count;
            (first..next[switch]).map(PortNumber).collect::<Vec<_>>()
        };
        let mut host = |name: String, switch: usize, cards: u16| WiredHost {
            name,
            switch: SwitchId::new(switch),
            ports: ports(switch, cards),
            mac: None,
        };
        let of_clients =
            (0..clients).map(|at| (format!("client {at}"), 1 + at * around / clients, 1));
        let cards = self.server_cards.get();
        let of_servers = (0..servers).map(|at| (format!("server {at}"), 0, cards));
        let hosts = of_clients
            .chain(of_servers)
            .map(|(name, switch, cards)| host(name, switch, cards))
            .collect();
        let cables = self.trunk_cables.get();
        let trunks = (1..=around).map(|switch| Trunk {
            ends: [switch, 0]
                .map(|end| TrunkEnd { switch: SwitchId::new(end), ports: ports(end, cables) }),
        });
        let trunks = trunks.collect();
        let switches = (0..=around).map(switch).collect();
        let wiring = Wiring { switches, hosts, trunks, rate: self.cable_rate };
        let plan = plan(&wiring, &PlanOptions::new(None)).expect("a tree has a plan");
        // A full frame of TCP with time stamps, preamble and gap included.
        let rates = Rates { payload_share: 1448.0 / 1538.0, within_host: self.cable_rate };
        Network::new(&wiring, &plan, rates, metadata.seed)
    }
}

impl Plan {
    /// The network card of a client or the cards of a server.
    pub(crate) fn nic(&self, host: LpId) -> Option<Box<Nic<Packet>>> {
        self.ethernet.as_ref().map(|shared| Box::new(Nic::new(shared, host)))
    }
}

/// Makes the LPs of a model.
pub(crate) fn fill(
    plan: &Arc<Plan>,
    model: &mut Model<Host>,
    [clients, servers, switches]: [Group; 3],
) {
    let shared = plan.ethernet.as_ref().expect("the model is one on Ethernet");
    shared.link(model, switches, &[clients, servers]);
    // What messages say.
    model.link(clients, servers, shared.options.hop_delay);
    model.link(servers, clients, shared.options.hop_delay);
    model.fill(clients, |me| Host::Client(Client::new(plan, me)));
    model.fill(servers, |me| Host::Server(MetadataServer::new(plan, me)));
    let hosts = shared.network.hosts();
    model.fill(switches, |me| {
        let place = usize::try_from(me.get()).expect("32 bits are a place") - hosts;
        Host::Ethernet(Box::new(EthernetSwitch::new(shared, place)))
    });
}

/// Sends a message from its host now.
pub(crate) fn send(
    nic: &mut Option<Box<Nic<Packet>>>,
    plan: &Plan,
    packet: Packet,
    context: &mut impl Context<Event>,
) {
    let (Some(nic), Some(shared)) = (nic, &plan.ethernet) else { unreachable!("it has a card") };
    let to = match packet.body {
        Body::Request(_) => packet.call.callee,
        Body::Reply(_) => packet.call.caller,
    };
    nic.send(to, packet.call.number(), plan.data(&packet).get(), context);
    context.send(to, shared.options.hop_delay, Event::Content(packet));
}

/// Takes what a message says that is under way.
pub(crate) fn expect(nic: &mut Option<Box<Nic<Packet>>>, packet: Packet, log: &mut impl Log) {
    let Some(nic) = nic else { unreachable!("the sender has a card, too") };
    let from = match packet.body {
        Body::Request(_) => packet.call.caller,
        Body::Reply(_) => packet.call.callee,
    };
    nic.expect(from, packet.call.number(), packet, log);
}

/// Handles an event of a host's cards; gives the message that has arrived with it.
pub(crate) fn arrived(
    nic: &mut Option<Box<Nic<Packet>>>,
    wire: Wire,
    context: &mut impl Context<Event>,
) -> Option<Packet> {
    nic.as_mut()?.handle(wire, context)
}

/// What a message takes from a client to a server, or back, when nobody is in the way.
pub(crate) fn one_way(shared: &Shared, data: Bytes) -> Nanos {
    shared.span_of(data, CABLES)
}

/// How long a message occupies a cable.
pub(crate) fn on_a_cable(shared: &Shared, data: Bytes) -> Nanos {
    shared.span_on_cable(data)
}

/// What was busy at an LP for how long: everything that sends.
pub(crate) fn busy(
    shared: &Shared,
    lp: &Host,
    at: u32,
    plan: &Plan,
    end: SimTime,
) -> Vec<(Nanos, Resource)> {
    let of = |port: &Port, kind, place| (port.busy(shared, end), Resource { kind, place });
    match lp {
        Host::Client(client) => client
            .nic()
            .into_iter()
            .flat_map(Nic::ports)
            .map(|port| of(port, "sending card of client", Some(at)))
            .collect(),
        Host::Server(server) => {
            let place = at - plan.metadata.clients.get();
            let cards = server.nic().into_iter().flat_map(Nic::ports).zip(0..);
            let mut busy: Vec<_> = cards
                .map(|(port, card)| {
                    let (kind, place) =
                        card_words(plan, ["sending card of server", "sending card"], place, card);
                    of(port, kind, Some(place))
                })
                .collect();
            let store = Resource { kind: "store of server", place: Some(place) };
            busy.push((server.storage().busy(end), store));
            busy
        }
        Host::Switch(_) => Vec::new(),
        Host::Ethernet(switch) => switch
            .ports()
            .map(|port| {
                let lane = usize::try_from(port.lane).expect("32 bits are a place");
                let (kind, place) = lane_words(shared, lane, plan);
                of(port, kind, Some(place))
            })
            .collect(),
    }
}

/// The words for a server's only card, or for one of several, which are numbered through the servers.
fn card_words(
    plan: &Plan,
    [only, one]: [&'static str; 2],
    server: u32,
    card: u32,
) -> (&'static str, u32) {
    match plan.metadata.ethernet.as_ref().map_or(1, |of| u32::from(of.server_cards.get())) {
        1 => (only, server),
        cards => (one, server * cards + card),
    }
}

/// What a port of a switch sends to, and which one of these.
fn lane_words(shared: &Shared, lane: usize, plan: &Plan) -> (&'static str, u32) {
    let number = |place: usize| u32::try_from(place).expect("a network has fewer hosts");
    match shared.network.lanes()[lane].place {
        LanePlace::ToHost { host, card } => {
            match number(host).checked_sub(plan.metadata.clients.get()) {
                Some(server) => {
                    let words = ["switch port to server", "switch port to card"];
                    card_words(plan, words, server, number(card))
                }
                None => ("switch port to client", number(host)),
            }
        }
        LanePlace::Cable { trunk, cable, .. } => {
            let cables = plan.metadata.ethernet.as_ref().map_or(1, |of| of.trunk_cables.get());
            // Those of all trunks are numbered through.
            let place = number(trunk) * u32::from(cables) + number(cable);
            match shared.network.ends(lane)[0] {
                LaneEnd::Switch(0) => ("trunk to clients, cable", place),
                _ => ("trunk to servers, cable", place),
            }
        }
        LanePlace::FromHost { .. } | LanePlace::Within { .. } => {
            unreachable!("a switch does not send there")
        }
    }
}

/// What came of queues, if there are any.
pub(crate) fn figures(outcome: &Outcome<Host>) -> Vec<Figure> {
    let switches = outcome.lps.iter().filter_map(|lp| match lp {
        Host::Ethernet(switch) => Some(&**switch),
        Host::Client(_) | Host::Server(_) | Host::Switch(_) => None,
    });
    let switches: Vec<&EthernetSwitch> = switches.collect();
    if switches.is_empty() {
        return Vec::new();
    }
    let sum =
        |of: fn(&EthernetSwitch) -> u64| count_f64(switches.iter().map(|switch| of(switch)).sum());
    let queued = switches.iter().map(|switch| switch.queued_max()).max().unwrap_or(0);
    vec![
        Figure { name: "frames_lost_total", value: sum(EthernetSwitch::lost) },
        Figure { name: "pauses_total", value: sum(EthernetSwitch::stops) },
        Figure { name: "queued_bytes_max", value: count_f64(queued) },
    ]
}
