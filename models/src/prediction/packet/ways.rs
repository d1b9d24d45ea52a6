//! The ways between all ranks that send each other anything, worked out once.

use crate::prediction::network::{LaneEnd, Network};
use crate::prediction::ranks::{connection, number, rank};

/// One direction of a connection of two ranks. The other direction has the same number but for its
/// lowest bit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// The ranks that send and receive.
    pub(super) ranks: [u32; 2],
    /// Their hosts.
    pub(super) hosts: [u32; 2],
    /// Its place among the ways that begin at its host and leave it.
    pub(super) end: u32,
    /// Its place among the ways whose last switch is the same.
    coming: u32,
    /// Its first hop.
    pub(super) first: u32,
}

/// What both ends of a lane know it by: its place among the ports of the one, and among the inputs of
/// the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct LanePorts {
    pub(super) port: u16,
    pub(super) input: u16,
}

/// All ways of a program.
///
/// The hops of all ways are in one list, those of a way in their order, so that a frame that knows its hop
/// knows the next one. Ways are there by their senders, then their receivers: what a host sends to one rank after the
/// other, as collective operations do, finds its hops beside each other.
#[derive(Debug)]
pub(super) struct Ways {
    ways: Vec<Way>,
    /// For each hop the port that it begins at and the input that it ends at, in 16 bits each; before the
    /// first one of a way its place at its host, after the last one where it is received ([`Ways::received`]).
    hops: Vec<u32>,
    /// The first hop of each way and the way, in the order of the hops.
    starts: Vec<(u32, u32)>,
    /// For each rank whom it can send to, in their order, and the way.
    of_rank: Vec<Vec<(u32, u32)>>,
    /// For each host the ways that begin there and leave it.
    of_host: Vec<Vec<u32>>,
    /// For each switch how many ways it is the last one of.
    coming: Vec<u32>,
}

impl Ways {
    /// The ways between pairs of ranks that are on these hosts, along lanes with these ends.
    pub(super) fn new(
        network: &Network,
        pairs: &[[u32; 2]],
        hosts: &[usize],
        lanes: &[LanePorts],
        tcp: bool,
    ) -> Self {
        let both = pairs.iter().flat_map(|&[one, other]| [[one, other], [other, one]]);
        let mut order: Vec<([u32; 2], u32)> = both.zip(0..).collect();
        order.sort_unstable();
        let none = Way { ranks: [0; 2], hosts: [0; 2], end: 0, coming: 0, first: 0 };
        let mut all = Self {
            ways: vec![none; order.len()],
            hops: Vec::new(),
            starts: Vec::with_capacity(order.len()),
            of_rank: vec![Vec::new(); hosts.len()],
            of_host: vec![Vec::new(); network.hosts()],
            coming: vec![0; network.switches()],
        };
        for (ranks, way) in order {
            all.add(network, hosts, lanes, (ranks, way));
        }
        // Behind each stands the place of the next one at its host.
        let next = all.starts.iter().skip(1).map(|(first, _)| *first - 1);
        let ends = next.chain([number(all.hops.len())]);
        for (end, (_, way)) in ends.zip(&all.starts) {
            let [own, back] = [*way, way ^ 1].map(|way| &all.ways[rank(way)]);
            all.hops[rank(end) - 1] = if tcp { back.end } else { own.coming };
        }
        all
    }

    /// Works out a way between two ranks, which has this number.
    fn add(
        &mut self,
        network: &Network,
        hosts: &[usize],
        lanes: &[LanePorts],
        (ranks, way): ([u32; 2], u32),
    ) {
        let [from, to] = ranks;
        self.hops.push(0);
        let first = number(self.hops.len());
        self.starts.push((first, way));
        let ends = [from, to].map(|end| hosts[rank(end)]);
        let mut route = Vec::new();
        network.route(ends[0], ends[1], connection(rank(from), rank(to)), &mut route);
        let hop = |&lane: &usize| u32::from(lanes[lane].port) << 16 | u32::from(lanes[lane].input);
        self.hops.extend(route.iter().map(hop));
        self.hops.push(0);
        self.of_rank[rank(from)].push((to, way));
        let [mut end, mut coming] = [0, 0];
        if ends[0] != ends[1] {
            let own = &mut self.of_host[ends[0]];
            end = number(own.len());
            own.push(way);
            self.hops[rank(first) - 1] = end;
        }
        let last = route.last().map(|&lane| network.ends(lane)[0]);
        if let Some(LaneEnd::Switch(switch)) = last {
            coming = self.coming[switch];
            self.coming[switch] += 1;
        }
        self.ways[rank(way)] = Way { ranks, hosts: ends.map(number), end, coming, first };
    }

    /// The way of this number.
    pub(super) fn get(&self, way: u32) -> &Way {
        &self.ways[rank(way)]
    }

    /// The way from a rank to another.
    ///
    /// # Panics
    /// If the program has no message between them.
    pub(super) fn between(&self, from: u32, to: u32) -> u32 {
        let own = &self.of_rank[rank(from)];
        let found = own.binary_search_by_key(&to, |&(to, _)| to);
        own[found.expect("the ways are those of all messages")].1
    }

    /// The ways that begin at a host and leave it.
    pub(super) fn of_host(&self, host: usize) -> &[u32] {
        &self.of_host[host]
    }

    /// How many ways have this switch for their last.
    pub(super) fn coming(&self, switch: usize) -> usize {
        rank(self.coming[switch])
    }

    /// The port at which a hop begins and the input at which it ends, by their places in their devices.
    pub(super) fn ends(&self, hop: u32) -> (u16, u16) {
        let [port @ .., high, low] = self.hops[rank(hop)].to_be_bytes();
        (u16::from_be_bytes(port), u16::from_be_bytes([high, low]))
    }

    /// Where a way is received whose last hop this is: with TCP the place of the connection's end at its
    /// host; without, its place among the ways whose last switch is the same.
    pub(super) fn received(&self, hop: u32) -> usize {
        rank(self.hops[rank(hop) + 1])
    }

    /// The place of the way among those that begin at its host and leave it, of which this is the first hop.
    pub(super) fn sent(&self, hop: u32) -> usize {
        rank(self.hops[rank(hop) - 1])
    }

    /// The way that a hop is part of.
    pub(super) fn of_hop(&self, hop: u32) -> u32 {
        self.starts[self.starts.partition_point(|(first, _)| *first <= hop) - 1].1
    }
}
