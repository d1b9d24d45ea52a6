//! Trees that are grown one after the other, each beside all others.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::turns::Turns;
use super::{Suits, exactly};
use crate::routing::net::Link;
use crate::routing::{Net, Walk};

/// What a step costs more over a channel that carries as much as the mean, in steps.
const COST_OF_MEAN: f64 = 1.0 / 16.0;

/// Switches that share a tree, and how they are joined in it.
#[derive(Debug, Clone)]
pub(super) struct Group {
    /// The first of them, whose rank is the lowest.
    pub(super) root: usize,
    /// The channels that lead from it to the others, none before one that it follows.
    pub(super) joints: Vec<usize>,
}

impl Group {
    /// A switch alone.
    pub(super) const fn alone(root: usize) -> Self {
        Self { root, joints: Vec::new() }
    }

    /// Its switches.
    pub(super) fn members<'a>(&'a self, net: &'a Net) -> impl Iterator<Item = usize> + 'a {
        let others = self.joints.iter().map(|&channel| net.head(channel));
        std::iter::once(self.root).chain(others)
    }

    /// A walk that holds them and nothing else.
    fn walk(&self, net: &Net) -> Walk {
        let mut walk = Walk::begin(net, self.root);
        self.joints.iter().for_each(|&channel| walk.reach(net, channel));
        walk
    }
}

/// Trees, each over what costs least beside all others.
pub(super) struct Growth<'a> {
    net: &'a Net,
    pub(super) turns: Turns,
    /// The place of each channel in the order.
    places: Vec<usize>,
    /// Whether only shortest paths will do.
    shortest: bool,
    load: Vec<usize>,
    /// The sum of `load` over all channels.
    carried: usize,
}

impl<'a> Growth<'a> {
    pub(super) fn new(net: &'a Net, suits: Suits, turns: Turns) -> Self {
        let mut places = vec![0; net.channels()];
        turns.order.iter().enumerate().for_each(|(place, &channel)| places[channel] = place);
        let shortest = suits == Suits::Shortest;
        Self { net, turns, places, shortest, load: vec![0; net.channels()], carried: 0 }
    }

    /// What a step over a channel costs: a little more at the mean load, much more beyond.
    fn cost(&self, channel: usize) -> f64 {
        let mean = exactly(self.carried) / exactly(self.net.channels());
        let own = exactly(self.load[channel]) / exactly(self.net.cables(channel).max(1));
        1.0 + COST_OF_MEAN * (own / mean.max(1.0)).powi(4)
    }

    /// The tree of a group.
    ///
    /// What is cheapest to reach may be reached so late in the order that there is no way on to others.
    /// These are reached by the phases: whatever is on the ways there has to be reached early enough.
    pub(super) fn grow(&self, group: &Group) -> Walk {
        let net = self.net;
        let mut latest = vec![usize::MAX; net.switches()];
        let mut by_phases = None;
        loop {
            let mut walk = self.cheapest(group, &latest);
            let missed: Vec<usize> = net.sources().filter(|&at| !walk.has(at)).collect();
            if missed.is_empty() {
                prune(net, &mut walk);
                return walk;
            }
            let by_phases = by_phases.get_or_insert_with(|| self.in_phases(group));
            for mut at in missed {
                while let Some(by) = by_phases.by[at] {
                    latest[at] = self.places[by];
                    at = net.tail(by);
                }
            }
        }
    }

    /// Over what costs least, as far as the order allows.
    ///
    /// All of a group come first. Each of the others is joined to the root by channels up the ranks, so
    /// what it sends goes down the same ranks to the root, before anything that the root sends.
    fn cheapest(&self, group: &Group, latest: &[usize]) -> Walk {
        let net = self.net;
        let mut walk = group.walk(net);
        let distances = if self.shortest { net.distances(group.root) } else { Vec::new() };
        let mut near = BinaryHeap::new();
        let push = |near: &mut BinaryHeap<_>, walk: &Walk, at: usize, cost: f64| {
            for link in net.from(at) {
                let goes_on = if self.shortest {
                    distances[link.to] > distances[at]
                } else {
                    let place = self.places[link.channel];
                    place <= latest[link.to] && walk.by[at].is_none_or(|by| self.places[by] < place)
                };
                if goes_on && !walk.has(link.to) {
                    // The bits of numbers that are not negative are in the order of the numbers.
                    near.push(Reverse(((cost + self.cost(link.channel)).to_bits(), link.channel)));
                }
            }
        };
        for at in group.members(net) {
            push(&mut near, &walk, at, 0.0);
        }
        while let Some(Reverse((bits, channel))) = near.pop() {
            let at = net.head(channel);
            if !walk.has(at) {
                walk.reach(net, channel);
                push(&mut near, &walk, at, f64::from_bits(bits));
            }
        }
        walk
    }

    /// The first phase to whatever can be reached so, then the second to the rest.
    fn in_phases(&self, group: &Group) -> Walk {
        let net = self.net;
        let mut walk = Walk::begin(net, group.root);
        for phase in [0, 1] {
            let mut near = BinaryHeap::new();
            let leads = |link: &&Link| self.turns.phases[link.channel] == phase;
            let push = |near: &mut BinaryHeap<_>, at: usize, depth: usize| {
                let links = net.from(at).iter().filter(leads);
                near.extend(
                    links.map(|link| Reverse((depth + 1, self.load[link.channel], link.channel))),
                );
            };
            for &at in &walk.order {
                push(&mut near, at, walk.depth(net, at));
            }
            while let Some(Reverse((depth, _, channel))) = near.pop() {
                let at = net.head(channel);
                if !walk.has(at) {
                    walk.reach(net, channel);
                    push(&mut near, at, depth);
                }
            }
        }
        walk
    }

    /// Lets a tree carry what these hosts of these switches send.
    pub(super) fn carry(&mut self, walk: &Walk, senders: &[(usize, usize)]) {
        for (channel, pairs) in loads_of(self.net, walk, senders) {
            self.load[channel] += pairs;
            self.carried += pairs;
        }
    }

    /// Takes away again what a tree carries.
    pub(super) fn carry_no_more(&mut self, walk: &Walk, senders: &[(usize, usize)]) {
        for (channel, pairs) in loads_of(self.net, walk, senders) {
            self.load[channel] -= pairs;
            self.carried -= pairs;
        }
    }
}

/// The channels of a tree, and the pairs of hosts on each if so many hosts of these switches send.
fn loads_of(net: &Net, walk: &Walk, senders: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let mut hosts = vec![0; net.switches()];
    senders.iter().for_each(|&(switch, sending)| hosts[switch] += sending);
    let sending_beyond = walk.beyond(net, hosts);
    let beyond = walk.hosts_beyond(net);
    let (sending, all) = (sending_beyond[walk.order[0]], beyond[walk.order[0]]);
    let of = |&at: &usize| {
        let channel = walk.by[at]?;
        let out = (channel, (sending - sending_beyond[at]) * beyond[at]);
        let back = (channel ^ 1, sending_beyond[at] * (all - beyond[at]));
        Some([out, back])
    };
    walk.order.iter().filter_map(of).flatten().filter(|(_, pairs)| *pairs > 0).collect()
}

/// Takes away what leads to no hosts.
pub(super) fn prune(net: &Net, walk: &mut Walk) {
    let beyond = walk.hosts_beyond(net);
    for (by, &beyond) in walk.by.iter_mut().zip(&beyond) {
        *by = by.filter(|_| beyond > 0);
    }
    let source = walk.order[0];
    walk.order.retain(|&at| at == source || beyond[at] > 0);
}
