//! The ways between all ranks that send each other anything, worked out once.

use crate::prediction::network::Network;
use crate::prediction::ranks::{RankProgram, connection, number, rank};

/// One direction of a connection of two ranks. The other direction has the same number but for its
/// lowest bit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// The hosts of the ranks that send and receive.
    pub(super) hosts: [u32; 2],
    /// Its place among the ways that begin at its host and leave it.
    pub(super) end: u32,
    /// Where its lanes begin in the list of all.
    first: u32,
}

/// All ways of a program.
#[derive(Debug)]
pub(super) struct Ways {
    ways: Vec<Way>,
    lanes: Vec<u32>,
    /// For each rank whom it can send to, in their order, and the way.
    of_rank: Vec<Vec<(u32, u32)>>,
    /// For each host the ways that begin there and leave it.
    of_host: Vec<Vec<u32>>,
}

impl Ways {
    /// The ways of a program whose ranks are on these hosts.
    pub(super) fn new(network: &Network, program: &RankProgram, hosts: &[usize]) -> Self {
        let mut all = Self {
            ways: Vec::new(),
            lanes: Vec::new(),
            of_rank: vec![Vec::new(); program.ranks()],
            of_host: vec![Vec::new(); network.hosts()],
        };
        for [one, other] in program.pairs() {
            all.add(network, hosts, [one, other]);
            all.add(network, hosts, [other, one]);
        }
        for own in &mut all.of_rank {
            own.sort_unstable();
        }
        all
    }

    fn add(&mut self, network: &Network, hosts: &[usize], [from, to]: [u32; 2]) {
        let way = number(self.ways.len());
        let first = number(self.lanes.len());
        let ends = [from, to].map(|end| hosts[rank(end)]);
        let mut lanes = Vec::new();
        network.route(ends[0], ends[1], connection(rank(from), rank(to)), &mut lanes);
        self.lanes.extend(lanes.into_iter().map(number));
        self.of_rank[rank(from)].push((to, way));
        let mut end = 0;
        if ends[0] != ends[1] {
            let own = &mut self.of_host[ends[0]];
            end = number(own.len());
            own.push(way);
        }
        self.ways.push(Way { hosts: ends.map(number), end, first });
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

    /// The lane that is taken after `step` others. The way is not at its end.
    pub(super) fn lane(&self, way: u32, step: u8) -> usize {
        rank(self.lanes[rank(self.get(way).first) + usize::from(step)])
    }
}
