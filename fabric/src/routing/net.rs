//! The trunks of a wiring as a graph, in flat lists.

use std::collections::BTreeSet;

use crate::{TrunkId, Wiring};

/// Switches and the trunks between them; both by their place in the wiring.
///
/// A *channel* is one direction of a trunk: `2 trunk` from its first end to its second, `2 trunk + 1`
/// back.
#[derive(Debug, Clone)]
pub(crate) struct Net {
    /// Hosts on each switch.
    pub(crate) hosts: Vec<usize>,
    ends: Vec<[usize; 2]>,
    /// Cables of each trunk.
    cables: Vec<usize>,
    first: Vec<usize>,
    links: Vec<Link>,
}

/// A channel that leaves a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Link {
    /// The switch that it leads to.
    pub(crate) to: usize,
    /// The number of the channel that leads there.
    pub(crate) channel: usize,
}

impl Net {
    /// The net of a wiring, but for the trunks `without`.
    pub(crate) fn new(wiring: &Wiring, without: &BTreeSet<TrunkId>) -> Self {
        let mut hosts = vec![0; wiring.switches.len()];
        wiring.hosts.iter().for_each(|host| hosts[host.switch.place()] += 1);
        let ends: Vec<[usize; 2]> = wiring
            .trunks
            .iter()
            .map(|trunk| trunk.ends.each_ref().map(|end| end.switch.place()))
            .collect();
        let mut of = vec![Vec::new(); hosts.len()];
        for (trunk, &[one, other]) in ends.iter().enumerate() {
            if !without.contains(&TrunkId::new(trunk)) {
                of[one].push(Link { to: other, channel: 2 * trunk });
                of[other].push(Link { to: one, channel: 2 * trunk + 1 });
            }
        }
        let mut first = vec![0];
        let mut links = Vec::with_capacity(2 * ends.len());
        for mut of in of {
            of.sort_unstable();
            links.append(&mut of);
            first.push(links.len());
        }
        let cables = wiring.trunks.iter().map(crate::Trunk::cables).collect();
        Self { hosts, ends, cables, first, links }
    }

    pub(crate) fn switches(&self) -> usize {
        self.hosts.len()
    }

    pub(crate) fn trunks(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn channels(&self) -> usize {
        2 * self.ends.len()
    }

    /// The switches that have hosts.
    pub(crate) fn sources(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.switches()).filter(|&switch| self.hosts[switch] > 0)
    }

    /// The channels that leave a switch, by where they lead to.
    pub(crate) fn from(&self, switch: usize) -> &[Link] {
        &self.links[self.first[switch]..self.first[switch + 1]]
    }

    pub(crate) fn ends(&self, trunk: usize) -> [usize; 2] {
        self.ends[trunk]
    }

    /// The cables of the trunk of a channel.
    pub(crate) fn cables(&self, channel: usize) -> usize {
        self.cables[channel / 2]
    }

    /// Where a channel begins.
    pub(crate) fn tail(&self, channel: usize) -> usize {
        self.ends[channel / 2][channel % 2]
    }

    /// Where a channel ends.
    pub(crate) fn head(&self, channel: usize) -> usize {
        self.ends[channel / 2][1 - channel % 2]
    }

    /// The first channel between two switches; `None` if they are not neighbours.
    pub(crate) fn channel(&self, from: usize, to: usize) -> Option<usize> {
        let links = self.from(from);
        let at = links.partition_point(|link| link.to < to);
        links.get(at).filter(|link| link.to == to).map(|link| link.channel)
    }

    /// The number of trunks on the shortest ways from a switch; `None` where there is none.
    pub(crate) fn distances(&self, from: usize) -> Vec<Option<usize>> {
        self.distances_from(&[from])
    }

    /// The number of trunks on the shortest ways from the nearest of several switches.
    pub(crate) fn distances_from(&self, from: &[usize]) -> Vec<Option<usize>> {
        let mut distances = vec![None; self.switches()];
        from.iter().for_each(|&at| distances[at] = Some(0));
        let mut order = from.to_vec();
        let mut next = 0;
        while let Some(&at) = order.get(next) {
            next += 1;
            let beyond = distances[at].map(|distance| distance + 1);
            for link in self.from(at) {
                if distances[link.to].is_none() {
                    distances[link.to] = beyond;
                    order.push(link.to);
                }
            }
        }
        distances
    }

    /// The switch from which the farthest one is nearest; the first of several.
    pub(crate) fn centre(&self) -> usize {
        // One search from each switch would be too long for thousands: the middle of a longest
        // shortest way is near enough there.
        const SEARCHED_MAX: usize = 512;
        let reach = |from: usize| self.distances(from).into_iter().flatten().max().unwrap_or(0);
        if self.switches() <= SEARCHED_MAX {
            return (0..self.switches()).min_by_key(|&from| reach(from)).unwrap_or(0);
        }
        let farthest = |from: usize| {
            let distances = self.distances(from);
            (0..self.switches())
                .max_by_key(|&at| (distances[at], std::cmp::Reverse(at)))
                .unwrap_or(0)
        };
        let one = farthest(0);
        let other = farthest(one);
        let (from_one, from_other) = (self.distances(one), self.distances(other));
        (0..self.switches()).min_by_key(|&at| from_one[at].max(from_other[at])).unwrap_or(0)
    }
}
