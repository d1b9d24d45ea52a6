//! The cables of a fabric as lanes that share nothing, and which of them a stream takes.
//!
//! Paths are those of the plan ([`Paths`]); nothing here looks for a way. A *lane* is one direction of
//! one cable, or the memory of a host. A bundle is never one fat lane: a stream is hashed onto one
//! cable of it, as switches do, and stays there.

use std::ops::Range;

use meikyo_fabric::{HostId, Paths, Plan, Wiring};
use meikyo_units::BitsPerSecond;
use meikyo_worlds::random::{below, draw, stream_key};

use crate::completions::count_f64;

/// Data in a full frame: what TCP with time stamps puts into an Ethernet frame.
pub(super) const PAYLOAD: u16 = 1448;

/// What of the rates of cables and hosts a program sees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// The share of a cable's rate that is left for the data of programs.
    pub payload_share: f64,
    /// How fast a message goes between two ranks of one host.
    pub within_host: BitsPerSecond,
}

impl Rates {
    /// What acknowledgements take of a cable in the other direction, beside the data that they are of: one frame without
    /// data for two full ones (RFC 5681, section 4.2).
    pub fn acknowledged_share(self) -> f64 {
        (1.0 - self.payload_share) / 2.0
    }
}

/// What stands at one end of a lane, by its place in the wiring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneEnd {
    /// A host, by its place among the hosts.
    Host(usize),
    /// A switch, by its place among the switches.
    Switch(usize),
}

/// The lanes of a fabric, and the way over them.
#[derive(Debug, Clone)]
pub struct Network {
    paths: Paths,
    lanes: Vec<Lane>,
    rates: Rates,
    cable_rate: BitsPerSecond,
    switches: usize,
    switch_of_host: Vec<usize>,
    /// Both ends of each trunk, by the places of the switches.
    trunk_ends: Vec<[usize; 2]>,
    host_names: Vec<String>,
    /// Both ends of each trunk, by the names of the switches.
    trunk_names: Vec<[String; 2]>,
    /// For each host its first lane; its lanes out, then in, then within.
    first_of_host: Vec<usize>,
    ports_of_host: Vec<usize>,
    /// For each trunk its first lane; the lanes forward, then those back.
    first_of_trunk: Vec<usize>,
    cables_of_trunk: Vec<usize>,
    key: u64,
}

/// One direction of one cable, or the memory of a host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lane {
    /// Where it is.
    pub place: LanePlace,
    /// What it carries for programs, in bytes a second.
    pub bytes_per_s: f64,
}

/// Where a lane is. Hosts and trunks are meant by their place in the wiring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LanePlace {
    /// From a network card of a host to its switch.
    FromHost {
        /// By its place in the wiring.
        host: usize,
        /// From 0, in the order of its ports.
        card: usize,
    },
    /// From the switch to a network card.
    ToHost {
        /// By its place in the wiring.
        host: usize,
        /// From 0, in the order of its ports.
        card: usize,
    },
    /// Between two ranks of a host.
    Within {
        /// By its place in the wiring.
        host: usize,
    },
    /// One way along one cable of a trunk.
    Cable {
        /// By its place in the wiring.
        trunk: usize,
        /// Whether from its first end to its second.
        forward: bool,
        /// From 0, in the order of the ports at its ends.
        cable: usize,
    },
}

impl Network {
    /// The lanes of a wiring under a plan. Streams are hashed onto cables by `seed`: a switch's hash
    /// is a function of addresses and ports, which nobody knows beforehand.
    pub fn new(wiring: &Wiring, plan: &Plan, rates: Rates, seed: u64) -> Self {
        let cable = bytes_per_s(wiring.rate) * rates.payload_share;
        let within = bytes_per_s(rates.within_host);
        let mut lanes = Vec::new();
        let mut first_of_host = Vec::new();
        for (host, own) in wiring.hosts.iter().enumerate() {
            first_of_host.push(lanes.len());
            let cards = 0..own.ports.len();
            let out = cards.clone().map(|card| LanePlace::FromHost { host, card });
            let places = out.chain(cards.map(|card| LanePlace::ToHost { host, card }));
            lanes.extend(places.map(|place| Lane { place, bytes_per_s: cable }));
            lanes.push(Lane { place: LanePlace::Within { host }, bytes_per_s: within });
        }
        let mut first_of_trunk = Vec::new();
        for (trunk, own) in wiring.trunks.iter().enumerate() {
            first_of_trunk.push(lanes.len());
            for forward in [true, false] {
                let places =
                    (0..own.cables()).map(|cable| LanePlace::Cable { trunk, forward, cable });
                lanes.extend(places.map(|place| Lane { place, bytes_per_s: cable }));
            }
        }
        let name = |end: &meikyo_fabric::TrunkEnd| wiring.switches[end.switch.place()].name.clone();
        Self {
            paths: Paths::new(wiring, plan),
            lanes,
            rates,
            cable_rate: wiring.rate,
            switches: wiring.switches.len(),
            switch_of_host: wiring.hosts.iter().map(|host| host.switch.place()).collect(),
            trunk_ends: wiring
                .trunks
                .iter()
                .map(|own| own.ends.each_ref().map(|end| end.switch.place()))
                .collect(),
            host_names: wiring.hosts.iter().map(|host| host.name.clone()).collect(),
            trunk_names: wiring.trunks.iter().map(|own| own.ends.each_ref().map(name)).collect(),
            first_of_host,
            ports_of_host: wiring.hosts.iter().map(|host| host.ports.len()).collect(),
            first_of_trunk,
            cables_of_trunk: wiring.trunks.iter().map(meikyo_fabric::Trunk::cables).collect(),
            key: stream_key(seed, 0),
        }
    }

    /// All lanes: those of the hosts, then those of the trunks.
    pub fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    /// Takes so many bytes a second from what a lane carries; whether something is left.
    pub(super) fn take(&mut self, lane: usize, bytes_per_s: f64) -> bool {
        let left = &mut self.lanes[lane].bytes_per_s;
        *left -= bytes_per_s;
        *left > 0.0
    }

    /// How many hosts there are.
    pub fn hosts(&self) -> usize {
        self.host_names.len()
    }

    /// The name of a host.
    pub fn host_name(&self, host: usize) -> &str {
        &self.host_names[host]
    }

    /// How many switches there are.
    pub fn switches(&self) -> usize {
        self.switches
    }

    /// The rate of a cable, of which [`Network::rates`] says how much is left for data.
    pub fn cable_rate(&self) -> BitsPerSecond {
        self.cable_rate
    }

    /// What of the rates a program sees.
    pub fn rates(&self) -> Rates {
        self.rates
    }

    /// Who sends on a lane, and who receives.
    pub fn ends(&self, lane: usize) -> [LaneEnd; 2] {
        let of_host = |host: usize| LaneEnd::Switch(self.switch_of_host[host]);
        match self.lanes[lane].place {
            LanePlace::FromHost { host, .. } => [LaneEnd::Host(host), of_host(host)],
            LanePlace::ToHost { host, .. } => [of_host(host), LaneEnd::Host(host)],
            LanePlace::Within { host } => [LaneEnd::Host(host); 2],
            LanePlace::Cable { trunk, forward, .. } => {
                let [one, other] = self.trunk_ends[trunk].map(LaneEnd::Switch);
                if forward { [one, other] } else { [other, one] }
            }
        }
    }

    /// The lanes on which a host sends, and the one within it.
    pub(super) fn lanes_of_host(&self, host: usize) -> (Range<usize>, usize) {
        let (first, ports) = (self.first_of_host[host], self.ports_of_host[host]);
        (first..first + ports, first + 2 * ports)
    }

    /// Appends the lanes of a stream from one host to another: the sender's card first, the receiver's
    /// last. `label` tells the stream from others between the same hosts, as TCP ports do.
    ///
    /// # Panics
    /// If the plan has no way from the one host to the other; every plan has one.
    pub fn route(&self, from: usize, to: usize, label: u64, lanes: &mut Vec<usize>) {
        let hash = self.hash(from, to, label);
        let mut step = 0;
        while let Some(lane) = self.lane_at(from, to, hash, step) {
            lanes.push(lane);
            step += 1;
        }
    }

    /// What a stream is hashed onto cables by; see [`Network::route`].
    pub fn hash(&self, from: usize, to: usize, label: u64) -> u64 {
        draw(self.key ^ draw(u64_of(from), u64_of(to)), label)
    }

    /// One lane of [`Network::route`], counted from 0, for a stream of this [`Network::hash`]; `None`
    /// after the last.
    ///
    /// # Panics
    /// As [`Network::route`].
    pub fn lane_at(&self, from: usize, to: usize, hash: u64, step: usize) -> Option<usize> {
        let hashed = |cables: usize| place(below(hash, u64_of(cables)));
        let first = self.first_of_host[from];
        let ports = self.ports_of_host[from];
        if from == to {
            return (step == 0).then_some(first + 2 * ports);
        }
        let Some(before) = step.checked_sub(1) else { return Some(first + hashed(ports)) };
        let hops = self.paths.between(HostId::new(from), HostId::new(to));
        let hops = hops.expect("a plan joins all hosts");
        if let Some(hop) = hops.get(before) {
            let trunk = hop.trunk.place();
            let cables = self.cables_of_trunk[trunk];
            let back = if hop.forward { 0 } else { cables };
            return Some(self.first_of_trunk[trunk] + back + hashed(cables));
        }
        let ports = self.ports_of_host[to];
        (before == hops.len()).then(|| self.first_of_host[to] + ports + hashed(ports))
    }

    /// A lane in words: `sw1 to sw2, cable 3`.
    pub fn lane_name(&self, lane: usize) -> String {
        let card = |host: usize, card: usize| match self.ports_of_host[host] {
            1 => self.host_names[host].clone(),
            _ => format!("{} card {}", self.host_names[host], card + 1),
        };
        match self.lanes[lane].place {
            LanePlace::FromHost { host, card: at } => format!("from {}", card(host, at)),
            LanePlace::ToHost { host, card: at } => format!("to {}", card(host, at)),
            LanePlace::Within { host } => format!("within {}", self.host_names[host]),
            LanePlace::Cable { trunk, forward, cable } => {
                let [one, other] = &self.trunk_names[trunk];
                let (from, to) = if forward { (one, other) } else { (other, one) };
                format!("{from} to {to}, cable {}", cable + 1)
            }
        }
    }
}

fn bytes_per_s(rate: BitsPerSecond) -> f64 {
    count_f64(rate.get()) / 8.0
}

fn u64_of(place: usize) -> u64 {
    u64::try_from(place).expect("a place fits in 64 bits")
}

fn place(below: u64) -> usize {
    usize::try_from(below).expect("it is below a place")
}
