//! The trees that the search begins with.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::{Balancing, Suits, exactly};
use crate::routing::net::Link;
use crate::routing::up_down::ranks;
use crate::routing::{Adjacent, Net, Routes, Walk};
use crate::topology::below;

/// Times that all trees are grown anew, each beside all others.
const PASSES: usize = 1;
/// What a step costs more over a channel that carries as much as the mean, in steps.
const COST_OF_MEAN: f64 = 1.0 / 16.0;

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
    let mut growth = Growth::new(net, how.suits, turns_for(net, how.suits, seed, &mut random));
    let mut trees: Vec<BegunTree> = Vec::new();
    for turn in 0..how.trees {
        for &source in &sources {
            let Some(hosts) = shares(net, source, how).nth(turn) else { continue };
            let walk = growth.grow(source);
            growth.carry(&walk, hosts);
            trees.push(BegunTree { walk, hosts });
        }
    }
    for _ in 0..PASSES {
        for tree in &mut trees {
            growth.carry_no_more(&tree.walk, tree.hosts);
            tree.walk = growth.grow(tree.walk.order[0]);
            growth.carry(&tree.walk, tree.hosts);
        }
    }
    Begun { trees, order: growth.turns.order }
}

/// The order of channels that a seed gives.
fn turns_for(net: &Net, suits: Suits, seed: u64, random: &mut u64) -> Turns {
    match (suits, seed) {
        (Suits::Shortest, _) => Turns { order: (0..net.channels()).collect(), phases: Vec::new() },
        (Suits::All, 0) => Turns::two_phases(net, &places(&ranks(net, net.centre()))),
        (Suits::All, seed) if seed % 2 == 0 => Turns::two_phases(net, &grown_ranks(net, random)),
        (Suits::All, _) => {
            let rank = grown_ranks(net, random);
            Turns::three_phases(net, &rank, random)
        }
    }
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

/// An order of all channels; paths take channels of ever later places, so that nothing waits in a cycle.
struct Turns {
    order: Vec<usize>,
    /// The phase of each channel: all of one come before those of the next.
    phases: Vec<u8>,
}

impl Turns {
    /// Down the ranks, over any trunk; then up.
    fn two_phases(net: &Net, rank: &[usize]) -> Self {
        Self::new(net, rank, |_| true)
    }

    /// Down the ranks over most of the trunks, up over any, and down over the other ones. Where there are
    /// two phases, paths between switches of low ranks have to go over the very lowest, whose cables
    /// then carry ten times the mean on 1,000 switches; with three they also meet at high ranks.
    ///
    /// The first kind holds a trunk down from every switch but the lowest, so that the first two phases
    /// reach everything: the one to the highest of its lower neighbours, so that a quarter of the trunks
    /// up from the low ones can be of the other kind.
    fn three_phases(net: &Net, rank: &[usize], random: &mut u64) -> Self {
        let mut first = vec![false; net.trunks()];
        for at in 0..net.switches() {
            let lower = net.from(at).iter().filter(|link| rank[link.to] < rank[at]);
            if let Some(nearest) = lower.max_by_key(|link| rank[link.to]) {
                first[nearest.channel / 2] = true;
            }
        }
        for at in 0..net.switches() {
            let upper = net.from(at).iter().filter(|link| rank[link.to] > rank[at]);
            let upper: Vec<usize> = upper.map(|link| link.channel / 2).collect();
            let mut free: Vec<usize> =
                upper.iter().copied().filter(|&trunk| !first[trunk]).collect();
            let firsts = upper.len() - free.len();
            let of_first = (3 * upper.len() / 4).saturating_sub(firsts);
            for _ in 0..of_first.min(free.len()) {
                first[free.swap_remove(below(random, free.len()))] = true;
            }
        }
        Self::new(net, rank, |trunk| first[trunk])
    }

    fn new(net: &Net, rank: &[usize], first: impl Fn(usize) -> bool) -> Self {
        let tail = |channel: usize| rank[net.tail(channel)];
        let phase =
            |channel: usize| match (tail(channel) > rank[net.head(channel)], first(channel / 2)) {
                (true, true) => 0,
                (false, _) => 1,
                (true, false) => 2,
            };
        let phases: Vec<u8> = (0..net.channels()).map(phase).collect();
        let mut order: Vec<usize> = (0..net.channels()).collect();
        order.sort_by_key(|&channel| {
            let down = phases[channel] != 1;
            let from = tail(channel);
            (phases[channel], down.then_some(Reverse(from)), from, channel)
        });
        Self { order, phases }
    }
}

/// Trees, each over what costs least beside all others.
struct Growth<'a> {
    net: &'a Net,
    turns: Turns,
    /// The place of each channel in the order.
    places: Vec<usize>,
    /// Whether only shortest paths will do.
    shortest: bool,
    load: Vec<usize>,
    /// The sum of `load` over all channels.
    carried: usize,
}

impl<'a> Growth<'a> {
    fn new(net: &'a Net, suits: Suits, turns: Turns) -> Self {
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

    /// The tree of a source.
    ///
    /// What is cheapest to reach may be reached so late in the order that there is no way on to others.
    /// These are reached by the phases: whatever is on the ways there has to be reached early enough.
    fn grow(&self, source: usize) -> Walk {
        let net = self.net;
        let mut latest = vec![usize::MAX; net.switches()];
        let mut by_phases = None;
        loop {
            let mut walk = self.cheapest(source, &latest);
            let missed: Vec<usize> = net.sources().filter(|&at| !walk.has(at)).collect();
            if missed.is_empty() {
                prune(net, &mut walk);
                return walk;
            }
            let by_phases = by_phases.get_or_insert_with(|| self.in_phases(source));
            for mut at in missed {
                while let Some(by) = by_phases.by[at] {
                    latest[at] = self.places[by];
                    at = net.tail(by);
                }
            }
        }
    }

    /// Over what costs least, as far as the order allows.
    fn cheapest(&self, source: usize, latest: &[usize]) -> Walk {
        let net = self.net;
        let mut walk = Walk::begin(net, source);
        let distances = if self.shortest { net.distances(source) } else { Vec::new() };
        let mut near = BinaryHeap::new();
        let (mut at, mut cost) = (source, 0.0);
        loop {
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
            let next =
                std::iter::from_fn(|| near.pop()).find(|Reverse((_, by))| !walk.has(net.head(*by)));
            let Some(Reverse((bits, channel))) = next else { return walk };
            walk.reach(net, channel);
            (at, cost) = (net.head(channel), f64::from_bits(bits));
        }
    }

    /// The first phase to whatever can be reached so, then the second to the rest.
    fn in_phases(&self, source: usize) -> Walk {
        let net = self.net;
        let mut walk = Walk::begin(net, source);
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

    fn carry(&mut self, walk: &Walk, hosts: usize) {
        for (channel, beyond) in loads_of_one(self.net, walk) {
            self.load[channel] += hosts * beyond;
            self.carried += hosts * beyond;
        }
    }

    fn carry_no_more(&mut self, walk: &Walk, hosts: usize) {
        for (channel, beyond) in loads_of_one(self.net, walk) {
            self.load[channel] -= hosts * beyond;
            self.carried -= hosts * beyond;
        }
    }
}

/// The channels of a tree, and the hosts that are reached over each.
fn loads_of_one(net: &Net, walk: &Walk) -> Vec<(usize, usize)> {
    let beyond = walk.hosts_beyond(net);
    walk.order.iter().filter_map(|&at| Some((walk.by[at]?, beyond[at]))).collect()
}
