//! Trees that are grown one after the other, each beside all others.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::turns::{PHASES, Turns};
use super::{Suits, exactly};
use crate::routing::{Net, Walk};

/// What a step costs more over a channel that carries as much as the mean, or from a switch that holds as
/// much, in steps.
const COST_OF_MEAN: f64 = 1.0 / 16.0;

/// What a step costs more where so much is carried or held: a little at the mean, much more beyond.
fn cost_beside(own: f64, mean: f64) -> f64 {
    let square = (own / mean.max(1.0)).powi(2);
    COST_OF_MEAN * square * square
}

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
    /// `None` where tables have room for whatever trees are chosen.
    tables: Option<Tables>,
}

/// What trees let switches hold of others' hosts.
struct Tables {
    /// The hosts beyond each switch, in all trees in which it does not send.
    held: Vec<usize>,
    /// Their sum.
    in_all: usize,
}

/// The cheapest ways to all switches that keep to the phases.
struct CheapestWays {
    /// The last channel to a switch, by its phase, and the phase of the way before it. Of a later phase
    /// only what is cheaper than all of earlier ones.
    last: Vec<[Option<(usize, usize)>; PHASES]>,
}

impl<'a> Growth<'a> {
    pub(super) fn new(net: &'a Net, suits: Suits, turns: Turns) -> Self {
        let mut places = vec![0; net.channels()];
        turns.order.iter().enumerate().for_each(|(place, &channel)| places[channel] = place);
        let shortest = suits == Suits::Shortest;
        let load = vec![0; net.channels()];
        Self { net, turns, places, shortest, load, carried: 0, tables: None }
    }

    /// The same, but trees lead around switches whose tables hold more than others'.
    pub(super) fn sparing_tables(self) -> Self {
        let held = vec![0; self.net.switches()];
        Self { tables: Some(Tables { held, in_all: 0 }), ..self }
    }

    /// What a step over a channel costs.
    fn cost(&self, channel: usize) -> f64 {
        let mean = exactly(self.carried) / exactly(self.net.channels());
        let own = exactly(self.load[channel]) / exactly(self.net.cables(channel).max(1));
        1.0 + cost_beside(own, mean)
    }

    /// What a step from a switch costs more that does not send in the tree.
    fn cost_of_table(&self, at: usize) -> f64 {
        let Some(Tables { held, in_all }) = &self.tables else { return 0.0 };
        cost_beside(exactly(held[at]), exactly(*in_all) / exactly(self.net.switches()))
    }

    /// The tree of a group.
    ///
    /// What is cheapest to reach may be reached so late in the order that there is no way on to others.
    /// These are reached by the phases: whatever is on the ways there has to be reached early enough.
    pub(super) fn grow(&self, group: &Group) -> Walk {
        let net = self.net;
        let mut latest = vec![usize::MAX; net.switches()];
        let mut ways = None;
        loop {
            let mut walk = self.cheapest(group, &latest);
            let missed: Vec<usize> = net.sources().filter(|&at| !walk.has(at)).collect();
            if missed.is_empty() {
                prune(net, &mut walk);
                return walk;
            }
            let ways = ways.get_or_insert_with(|| self.ways_in_phases(group));
            let mut sooner = false;
            for at in missed {
                for channel in ways.cheapest(net, at) {
                    let (at, place) = (net.head(channel), self.places[channel]);
                    sooner |= place < latest[at];
                    latest[at] = latest[at].min(place);
                }
            }
            assert!(
                sooner,
                "what keeps to the phases is reached once all before it is reached early"
            );
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
                push(&mut near, &walk, at, f64::from_bits(bits) + self.cost_of_table(at));
            }
        }
        walk
    }

    /// The cheapest ways from the first of a group that keep to the phases, each of which keeps to the order:
    /// a phase leads down the ranks or up, and never back.
    fn ways_in_phases(&self, group: &Group) -> CheapestWays {
        let net = self.net;
        let mut last = vec![[None; PHASES]; net.switches()];
        let mut reached = vec![[false; PHASES]; net.switches()];
        let mut near = BinaryHeap::from([Reverse((0, 0, group.root, None))]);
        while let Some(Reverse((bits, phase, at, by))) = near.pop() {
            // Who was here for less, no later, can go on wherever this way could.
            if reached[at][..=phase].contains(&true) {
                continue;
            }
            reached[at][phase] = true;
            last[at][phase] = by;
            let sends = at == group.root;
            let cost = f64::from_bits(bits) + if sends { 0.0 } else { self.cost_of_table(at) };
            for link in net.from(at) {
                let next = usize::from(self.turns.phases[link.channel]);
                if next >= phase && !reached[link.to][next] {
                    let cost = cost + self.cost(link.channel);
                    near.push(Reverse((
                        cost.to_bits(),
                        next,
                        link.to,
                        Some((link.channel, phase)),
                    )));
                }
            }
        }
        CheapestWays { last }
    }

    /// Lets a tree carry what these hosts of these switches send.
    pub(super) fn carry(&mut self, walk: &Walk, senders: &[(usize, usize)]) {
        for (channel, pairs) in loads_of(self.net, walk, senders) {
            self.load[channel] += pairs;
            self.carried += pairs;
        }
        if let Some(tables) = &mut self.tables {
            for (at, hosts) in held_by(self.net, walk, senders) {
                tables.held[at] += hosts;
                tables.in_all += hosts;
            }
        }
    }

    /// Takes away again what a tree carries.
    pub(super) fn carry_no_more(&mut self, walk: &Walk, senders: &[(usize, usize)]) {
        for (channel, pairs) in loads_of(self.net, walk, senders) {
            self.load[channel] -= pairs;
            self.carried -= pairs;
        }
        if let Some(tables) = &mut self.tables {
            for (at, hosts) in held_by(self.net, walk, senders) {
                tables.held[at] -= hosts;
                tables.in_all -= hosts;
            }
        }
    }
}

impl CheapestWays {
    /// The channels of the cheapest way to a switch, the last one first.
    fn cheapest<'a>(&'a self, net: &'a Net, to: usize) -> impl Iterator<Item = usize> + 'a {
        let cheapest = (0..PHASES).rev().find_map(|phase| self.last[to][phase]);
        let before = |&(channel, phase): &(usize, usize)| self.last[net.tail(channel)][phase];
        std::iter::successors(cheapest, before).map(|(channel, _)| channel)
    }
}

/// The switches that do not send in a tree, and the hosts beyond each.
fn held_by(net: &Net, walk: &Walk, senders: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let beyond = walk.hosts_beyond(net);
    let sends = |at: &usize| senders.iter().any(|(sender, _)| sender == at);
    walk.order.iter().filter(|at| !sends(at)).map(|&at| (at, beyond[at])).collect()
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
