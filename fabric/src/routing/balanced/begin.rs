//! The trees that the search begins with.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::{Balancing, Suits};
use crate::routing::up_down::ranks;
use crate::routing::{Adjacent, Net, Routes, Walk};
use crate::topology::below;

/// Trees, and an order of channels in which none of their paths waits for an earlier one.
pub(super) struct Begun {
    pub(super) trees: Vec<BegunTree>,
    /// All channels; where nothing pauses, in any order.
    pub(super) order: Vec<usize>,
}

/// A tree and the hosts that send in it.
pub(super) struct BegunTree {
    pub(super) walk: Walk,
    pub(super) hosts: usize,
}

/// How many of the hosts have this turn, if they take so many in turn.
pub(super) fn share(hosts: usize, turns: usize, turn: usize) -> usize {
    hosts / turns + usize::from(turn < hosts % turns)
}

/// The shares of the hosts of a switch.
fn shares(net: &Net, source: usize, how: Balancing) -> impl Iterator<Item = usize> {
    let hosts = net.hosts[source];
    let turns = how.trees.min(hosts);
    (0..turns).map(move |turn| share(hosts, turns, turn))
}

/// The best forest of each source, for all of its trees; `None` if their paths wait in a cycle.
pub(super) fn from_routes(net: &Net, routes: &Routes, how: Balancing) -> Option<Begun> {
    let mut trees = Vec::new();
    for source in net.sources() {
        let forest = &routes.forests[*routes.choices[source].first()?];
        let mut walk = Adjacent::new(net, forest).walk(source);
        prune(net, &mut walk);
        trees.extend(shares(net, source, how).map(|hosts| BegunTree { walk: walk.clone(), hosts }));
    }
    let order = if how.pauses { sorted(net, &trees)? } else { (0..net.channels()).collect() };
    Some(Begun { trees, order })
}

/// Takes away what leads to no hosts.
fn prune(net: &Net, walk: &mut Walk) {
    let beyond = walk.hosts_beyond(net);
    for (by, &beyond) in walk.by.iter_mut().zip(&beyond) {
        *by = by.filter(|_| beyond > 0);
    }
    let source = walk.order[0];
    walk.order.retain(|&at| at == source || beyond[at] > 0);
}

/// The channels, each before those that it waits for; `None` if some wait in a cycle.
fn sorted(net: &Net, trees: &[BegunTree]) -> Option<Vec<usize>> {
    let pairs: BTreeSet<(usize, usize)> =
        trees.iter().flat_map(|tree| tree.walk.waits(net).collect::<Vec<_>>()).collect();
    let mut waited_by = vec![0_usize; net.channels()];
    let mut after = vec![Vec::new(); net.channels()];
    for (before, next) in pairs {
        waited_by[next] += 1;
        after[before].push(next);
    }
    let mut order: Vec<usize> = (0..net.channels()).filter(|&at| waited_by[at] == 0).collect();
    let mut next = 0;
    while let Some(&at) = order.get(next) {
        next += 1;
        for &later in &after[at] {
            waited_by[later] -= 1;
            if waited_by[later] == 0 {
                order.push(later);
            }
        }
    }
    (order.len() == net.channels()).then_some(order)
}

/// Trees that follow from a seed.
pub(super) fn seeded(net: &Net, how: Balancing, seed: u64) -> Begun {
    let mut random = seed;
    let mut sources: Vec<usize> = net.sources().collect();
    for at in (1..sources.len()).rev() {
        sources.swap(at, below(&mut random, at + 1));
    }
    let mut growth = Growth { net, load: vec![0; net.channels()], rank: Vec::new() };
    let mut order: Vec<usize> = (0..net.channels()).collect();
    if how.suits == Suits::All {
        growth.rank = match seed {
            0 => places(&ranks(net, net.centre())),
            _ => grown_ranks(net, &mut random),
        };
        order = growth.order();
    }
    let mut trees = Vec::new();
    for turn in 0..how.trees {
        for &source in &sources {
            let Some(hosts) = shares(net, source, how).nth(turn) else { continue };
            let mut walk = match how.suits {
                Suits::All => growth.up_and_down(source),
                Suits::Shortest => growth.shortest(source),
            };
            prune(net, &mut walk);
            growth.add(&walk, hosts);
            trees.push(BegunTree { walk, hosts });
        }
    }
    Begun { trees, order }
}

/// For each switch how many come before it.
fn places<K: Ord>(keys: &[K]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by(|&one, &other| keys[one].cmp(&keys[other]));
    let mut places = vec![0; keys.len()];
    order.into_iter().enumerate().for_each(|(place, at)| places[at] = place);
    places
}

/// Ranks of switches: a root, then each time any neighbour of those that have one, so that every switch
/// but the root has a neighbour before it, and the first are not all around the root.
fn grown_ranks(net: &Net, random: &mut u64) -> Vec<usize> {
    let unranked = net.switches();
    let mut rank = vec![unranked; net.switches()];
    let mut near = vec![below(random, net.switches())];
    let mut next = 0;
    while !near.is_empty() {
        let at = near.swap_remove(below(random, near.len()));
        if rank[at] == unranked {
            rank[at] = next;
            next += 1;
            near.extend(net.from(at).iter().map(|link| link.to).filter(|&to| rank[to] == unranked));
        }
    }
    rank
}

/// Trees, one after the other, over what is loaded least so far.
struct Growth<'a> {
    net: &'a Net,
    load: Vec<usize>,
    rank: Vec<usize>,
}

impl Growth<'_> {
    fn goes_up(&self, channel: usize) -> bool {
        self.rank[self.net.head(channel)] < self.rank[self.net.tail(channel)]
    }

    /// Up first, from the bottom; then down, from the top.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.net.channels()).collect();
        order.sort_by_key(|&channel| {
            let tail = self.rank[self.net.tail(channel)];
            let up = self.goes_up(channel);
            (!up, up.then_some(Reverse(tail)), tail, channel)
        });
        order
    }

    /// Going up alone to whatever can be reached so, then down to the rest.
    fn up_and_down(&self, source: usize) -> Walk {
        let mut walk = Walk::begin(self.net, source);
        let mut depths = vec![0; self.net.switches()];
        self.spread(&mut walk, &mut depths, |channel, _| self.goes_up(channel));
        self.spread(&mut walk, &mut depths, |channel, _| !self.goes_up(channel));
        walk
    }

    fn shortest(&self, source: usize) -> Walk {
        let mut walk = Walk::begin(self.net, source);
        let mut depths = vec![0; self.net.switches()];
        self.spread(&mut walk, &mut depths, |_, _| true);
        walk
    }

    /// Reaches all that can be reached over channels that may be taken, in the fewest steps from the
    /// source, and among these over what is loaded least.
    fn spread(&self, walk: &mut Walk, depths: &mut [usize], may: impl Fn(usize, usize) -> bool) {
        let mut near = BinaryHeap::new();
        let push = |near: &mut BinaryHeap<_>, walk: &Walk, at: usize, depth: usize| {
            for link in self.net.from(at) {
                if !walk.has(link.to) && may(link.channel, depth) {
                    near.push(Reverse((depth + 1, self.load[link.channel], link.channel)));
                }
            }
        };
        for &at in &walk.order {
            push(&mut near, walk, at, depths[at]);
        }
        while let Some(Reverse((depth, _, channel))) = near.pop() {
            let at = self.net.head(channel);
            if !walk.has(at) {
                walk.reach(self.net, channel);
                depths[at] = depth;
                push(&mut near, walk, at, depth);
            }
        }
    }

    fn add(&mut self, walk: &Walk, hosts: usize) {
        let beyond = walk.hosts_beyond(self.net);
        for &at in &walk.order {
            if let Some(channel) = walk.by[at] {
                self.load[channel] += hosts * beyond[at];
            }
        }
    }
}
