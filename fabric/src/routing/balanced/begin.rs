//! The trees that the search begins with.

use std::collections::BTreeSet;

use super::Balancing;
use super::growth::{Group, Growth, prune};
use super::turns::turns_for;
use crate::routing::{Adjacent, Net, Routes, Walk};
use crate::topology::below;

/// Times that all trees are grown anew, each beside all others.
const PASSES: usize = 1;

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
    /// The channels to the switches that send in it beside its source.
    pub(super) joints: Vec<usize>,
}

impl BegunTree {
    /// A tree of one switch.
    const fn alone(walk: Walk, hosts: usize) -> Self {
        Self { walk, hosts, joints: Vec::new() }
    }
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
        trees.extend(shares(net, source, how).map(|hosts| BegunTree::alone(walk.clone(), hosts)));
    }
    let order = if how.pauses { sorted(net, &trees)? } else { (0..net.channels()).collect() };
    Some(Begun { trees, order })
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
            let walk = growth.grow(&Group::alone(source));
            growth.carry(&walk, &[(source, hosts)]);
            trees.push(BegunTree::alone(walk, hosts));
        }
    }
    for _ in 0..PASSES {
        for tree in &mut trees {
            let source = tree.walk.order[0];
            let senders = [(source, tree.hosts)];
            growth.carry_no_more(&tree.walk, &senders);
            tree.walk = growth.grow(&Group::alone(source));
            growth.carry(&tree.walk, &senders);
        }
    }
    Begun { trees, order: growth.turns.order }
}
