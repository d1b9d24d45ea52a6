//! The ways between all ranks that send each other anything, worked out once.

use crate::prediction::network::{LaneEnd, Network};
use crate::prediction::ranks::{RankProgram, connection, number, rank};

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
/// knows the next one.
#[derive(Debug)]
pub(super) struct Ways {
    ways: Vec<Way>,
    /// For each hop the port that it begins at and the input that it ends at, in 16 bits each; before the
    /// first one of a way its place at its host, after the last one where it is received ([`Ways::received`]).
    hops: Vec<u32>,
    /// For each rank whom it can send to, in their order, and the way.
    of_rank: Vec<Vec<(u32, u32)>>,
    /// For each host the ways that begin there and leave it.
    of_host: Vec<Vec<u32>>,
    /// For each switch how many ways it is the last one of.
    coming: Vec<u32>,
}

impl Ways {
    /// The ways of a program whose ranks are on these hosts, along lanes with these ends.
    pub(super) fn new(
        network: &Network,
        program: &RankProgram,
        hosts: &[usize],
        lanes: &[LanePorts],
        tcp: bool,
    ) -> Self {
        let mut all = Self {
            ways: Vec::new(),
            hops: Vec::new(),
            of_rank: vec![Vec::new(); program.ranks()],
            of_host: vec![Vec::new(); network.hosts()],
            coming: vec![0; network.switches()],
        };
        for [one, other] in program.pairs() {
            let forth = all.add(network, hosts, lanes, [one, other]);
            let after_forth = all.hops.len() - 1;
            let back = all.add(network, hosts, lanes, [other, one]);
            let after_back = all.hops.len() - 1;
            for (way, opposite, after) in [(forth, back, after_forth), (back, forth, after_back)] {
                let received = if tcp { all.get(opposite).end } else { all.get(way).coming };
                all.hops[after] = received;
            }
        }
        for own in &mut all.of_rank {
            own.sort_unstable();
        }
        all
    }

    /// Adds a way, and gives its number.
    fn add(
        &mut self,
        network: &Network,
        hosts: &[usize],
        lanes: &[LanePorts],
        ranks: [u32; 2],
    ) -> u32 {
        let [from, to] = ranks;
        let way = number(self.ways.len());
        self.hops.push(0);
        let first = number(self.hops.len());
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
        self.ways.push(Way { ranks, hosts: ends.map(number), end, coming, first });
        way
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

    /// The port at which a hop begins, by its place in the device.
    pub(super) fn port(&self, hop: u32) -> usize {
        rank(self.hops[rank(hop)] >> 16)
    }

    /// The input at which a hop ends, by its place in the device.
    pub(super) fn input(&self, hop: u32) -> u32 {
        self.hops[rank(hop)] & 0xffff
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
        number(self.ways.partition_point(|way| way.first <= hop) - 1)
    }
}
