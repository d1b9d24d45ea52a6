//! The ways of connections, each looked up once.

use std::collections::BTreeMap;

use super::network::Network;

/// A connection in one direction: the hosts that send and receive, and its label.
pub(super) type Direction = (usize, usize, u64);

/// The ways that were asked for, by numbers in the order in which they were.
#[derive(Debug)]
pub(super) struct Routes<'a> {
    network: &'a Network,
    /// For each host that sends, by receiver and label.
    known: Vec<BTreeMap<(usize, u64), usize>>,
    /// The lanes of all ways, one way after the other.
    lanes: Vec<usize>,
    /// For each way where it ends in `lanes`.
    ends: Vec<usize>,
}

impl<'a> Routes<'a> {
    pub(super) fn new(network: &'a Network) -> Self {
        let known = vec![BTreeMap::new(); network.hosts()];
        Self { network, known, lanes: Vec::new(), ends: Vec::new() }
    }

    /// The number of a direction's way: one less than the count of all if it is new.
    pub(super) fn of(&mut self, (from, to, label): Direction) -> usize {
        *self.known[from].entry((to, label)).or_insert_with(|| {
            self.network.route(from, to, label, &mut self.lanes);
            self.ends.push(self.lanes.len());
            self.ends.len() - 1
        })
    }

    /// Its lanes, the sender's card first.
    pub(super) fn way(&self, route: usize) -> &[usize] {
        let first = route.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.lanes[first..self.ends[route]]
    }
}
