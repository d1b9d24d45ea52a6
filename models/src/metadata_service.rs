//! The metadata service PPMDS on a simulated network, as in "Evaluation of the distributed metadata
//! server PPMDS for distributed file systems by CODES/ROSS" (Kirii, Tatebe, Ross).
//!
//! Clients hang on one switch, servers on another, and a trunk joins the two. A message passes three
//! links each way ([`crate::simplenet`]): its sender's start-up and its size over the link's rate are
//! paid on each. A server is the real one ([`meikyo_metadata::Server`]) behind its interface; the
//! answer to a change leaves when the storage has it. A client runs the real operations
//! ([`meikyo_metadata::Operation`]): it asks for a directory's server list once, and then sends each
//! request to the server that the hash of the name picks.
//!
//! # Events
//!
//! A create is seven events: one at each of the two switches each way, two at the server (the request
//! begins to arrive; the answer is ready), one at the client, which takes the answer and sends the next
//! request in the same event. Switches with interfaces that messages queue for take two each; a client
//! that begins operations at random instants takes its answers in an event of their own.
//!
//! # What may be divided
//!
//! Unlimited switches keep no state, so each may be several LPs ([`Metadata::switch_lps`]): a message
//! goes through the one of its client, and through the one of its server. Clients and servers have the
//! same numbers whatever the switches are made of, and at one instant messages are taken in the order
//! of their clients (at a client: of the servers), so that the division changes no instant and no
//! answer; how many threads run the model is another matter.

mod client;
mod ethernet;
mod network;
mod parameters;
mod plan;
mod server;
mod summary;
mod switch;
mod work;

use std::num::{NonZeroU16, NonZeroU32};
use std::sync::Arc;

use meikyo_metadata::{Request, Response};
use meikyo_sim::{Context, Lp, LpId, Model};
use meikyo_undo::variants;
use meikyo_units::{BitsPerSecond, Bytes, Nanos};

use crate::ethernet::{EthernetSwitch, Wire};
use crate::rpc::Message;
use crate::simplenet::Switching;
use crate::storage::Medium;

pub use client::Client;
pub use ethernet::Ethernet;
pub use plan::Plan;
pub use server::MetadataServer;
pub use switch::{Relay, Side};
pub use work::{Action, Directories, Mix, Workload};

/// What a simulated metadata service is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Metadata {
    /// Metadata servers, which share every directory that is spread over them.
    pub servers: NonZeroU16,
    /// Clients, each with an interface of its own on the client switch.
    pub clients: NonZeroU32,
    /// Size of a packet; every message occupies whole packets.
    pub packet_size: Bytes,
    /// What a message carries; a page of a directory carries its entries beside that.
    pub payload_size: Bytes,
    /// Start-up time of every transmission.
    pub net_startup: Nanos,
    /// Rate of the links between clients and their switch.
    pub client_rate: BitsPerSecond,
    /// Rate of the links between servers and their switch.
    pub server_rate: BitsPerSecond,
    /// Rate of the link between the switches.
    pub switch_rate: BitsPerSecond,
    /// Cards and switches of Ethernet, in place of start-ups and rates of links and what queues in their switches.
    pub ethernet: Option<Ethernet>,
    /// What messages queue for in the switches.
    pub switching: Switching,
    /// LPs that each switch is divided into; limited switches are never divided.
    pub switch_lps: NonZeroU32,
    /// What a change takes until its answer leaves.
    pub store: Medium,
    /// What anything else takes until its answer leaves.
    pub read_latency: Nanos,
    /// Whether clients begin operations one after another or at random instants.
    pub load: Load,
    /// The operations that each client carries out.
    pub workload: Workload,
    /// The directories in which clients work.
    pub directories: Directories,
    /// How many operations each client does, or files it makes ([`Workload::Mdtest`]).
    pub operations: u32,
    /// The span in which clients that go round in a closed loop begin, each at an instant of its own
    /// that is drawn evenly from it; none: what one change takes when nobody is in the way.
    pub stagger: Option<Nanos>,
    /// What comes before this much has passed is left out of rates and response times; none: rates leave
    /// out what batch means find to be a warm-up, response times nothing.
    pub warm_up: Option<Nanos>,
    /// What clients know when they begin.
    pub root_list: RootList,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// When a client begins operations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// One operation after another, as long as a client has any left.
    Closed {
        /// The span between the end of one and the beginning of the next.
        think: Nanos,
    },
    /// At random instants (a Poisson process), whether or not the ones before have ended.
    Open {
        /// Mean time between two starts of operations.
        interarrival: Nanos,
        /// What begins while so many are in flight is turned away and counted.
        in_flight_max: u32,
    },
}

/// What clients know of the root directory when they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootList {
    /// Nothing: each asks its home, server 0, for its server list before anything else.
    Asked,
    /// Its server list, as if they had worked in it before.
    Known,
}

/// A message between a client and a server.
pub type Packet = Message<Request, Response>;

/// What LPs tell each other and themselves.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Event {
    /// A message begins to arrive.
    Begins(Packet),
    /// The message is there as a whole, or an answer is ready to be sent.
    Due(Packet),
    /// A client begins an operation.
    Next,
    /// What a message says whose frames are under way.
    Content(Packet),
    /// Something happens to a network card, or to a switch of Ethernet.
    Wire(Wire),
}

impl From<Wire> for Event {
    fn from(wire: Wire) -> Self {
        Self::Wire(wire)
    }
}

/// An LP of the service.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the types say it")]
pub enum Host {
    Client(Client),
    Server(MetadataServer),
    Switch(Relay),
    Ethernet(Box<EthernetSwitch>),
}
variants!(Host {
    Client(Client),
    Server(MetadataServer),
    Switch(Relay),
    Ethernet(Box<EthernetSwitch>)
});

impl Lp for Host {
    type Message = Event;

    fn start(&mut self, context: &mut impl Context<Event>) {
        if let Self::Client(client) = self {
            client.start(context);
        }
    }

    fn handle(&mut self, event: Event, context: &mut impl Context<Event>) {
        match self {
            Self::Client(client) => client.handle(event, context),
            Self::Server(server) => server.handle(event, context),
            Self::Switch(switch) => switch.handle(event, context),
            Self::Ethernet(switch) => {
                let Event::Wire(wire) = event else { unreachable!("it knows of frames only") };
                switch.handle(wire, context);
            }
        }
    }

    fn waiting(&self) -> Option<String> {
        match self {
            Self::Client(client) => client.waiting(),
            Self::Server(_) | Self::Switch(_) | Self::Ethernet(_) => None,
        }
    }
}

impl Metadata {
    /// The scenario of the paper's table 2: `servers` and `clients`, and `operations` creates of each
    /// client in one directory.
    ///
    /// # Panics
    /// If a number is 0.
    pub fn paper(servers: u16, clients: u32, operations: u32) -> Self {
        let mebibytes = |count: u64| BitsPerSecond::new((count * 8) << 20);
        Self {
            servers: NonZeroU16::new(servers).expect("there are servers"),
            clients: NonZeroU32::new(clients).expect("there are clients"),
            packet_size: Bytes::new(1500),
            payload_size: Bytes::new(512),
            net_startup: Nanos::from_micros(32),
            client_rate: mebibytes(125),
            server_rate: mebibytes(1250),
            switch_rate: mebibytes(1250),
            ethernet: None,
            switching: Switching::Unlimited,
            switch_lps: NonZeroU32::new(8).expect("8 is not 0"),
            store: Medium::Delay(Nanos::from_micros(500)),
            read_latency: Nanos::ZERO,
            load: Load::Closed { think: Nanos::ZERO },
            workload: Workload::Create,
            directories: Directories::One,
            operations,
            stagger: None,
            warm_up: None,
            root_list: RootList::Asked,
            seed: 1,
        }
    }

    /// The model, and what its LPs are.
    pub fn model(&self) -> (Model<Host>, Arc<Plan>) {
        let mut model = Model::new(self.seed);
        let clients = model.group("clients", self.clients.get());
        let servers = model.group("servers", u32::from(self.servers.get()));
        if let Some(ethernet) = &self.ethernet {
            let switches = model.group("switches", ethernet.switches());
            let plan = Arc::new(Plan::new(self, &mut model, clients, servers));
            ethernet::fill(&plan, &mut model, [clients, servers, switches]);
            return (model, plan);
        }
        let lps = Plan::switch_lps(self);
        let client_switch = model.group("client switch", lps);
        let server_switch = model.group("server switch", lps);
        let plan = Arc::new(Plan::new(self, &mut model, clients, servers));

        let start_up = self.net_startup;
        model.link(clients, client_switch, start_up);
        model.link(servers, server_switch, start_up);
        model.link(client_switch, server_switch, plan.relay_least(&plan.client));
        model.link(server_switch, servers, plan.relay_least(&plan.trunk));
        model.link(server_switch, client_switch, plan.relay_least(&plan.server));
        model.link(client_switch, clients, plan.relay_least(&plan.trunk));

        model.fill(clients, |me| Host::Client(Client::new(&plan, me)));
        model.fill(servers, |me| Host::Server(MetadataServer::new(&plan, me)));
        model.fill(client_switch, |_| Host::Switch(Relay::new(&plan, Side::Clients)));
        model.fill(server_switch, |_| Host::Switch(Relay::new(&plan, Side::Servers)));
        (model, plan)
    }

    /// What an LP of each group and the group are called, and how many LPs it has.
    fn groups(&self) -> Vec<([&'static str; 2], u32)> {
        let mut groups = vec![
            (["client", "clients"], self.clients.get()),
            (["server", "servers"], u32::from(self.servers.get())),
        ];
        match &self.ethernet {
            Some(ethernet) => groups.push((["switch", "switches"], ethernet.switches())),
            None => {
                let lps = Plan::switch_lps(self);
                let switches = [["client switch"; 2], ["server switch"; 2]];
                groups.extend(switches.map(|names| (names, lps)));
            }
        }
        groups
    }

    /// What an LP is called.
    pub fn lp_name(&self, lp: LpId) -> String {
        let mut place = lp.get();
        for ([name, _], count) in self.groups() {
            if place < count {
                let only = count == 1 && name.ends_with("switch");
                return if only { name.to_owned() } else { format!("{name} {place}") };
            }
            place -= count;
        }
        format!("LP {lp}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_clients_are_small() {
        assert_eq!((size_of::<Packet>(), size_of::<Event>()), (64, 72));
        assert_eq!((size_of::<Client>(), size_of::<Host>()), (200, 200));
    }
}
