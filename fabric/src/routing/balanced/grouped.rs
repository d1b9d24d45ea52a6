//! Trees that several switches share, so that tables need fewer entries.
//!
//! In a VLAN that one switch sends in, other switches hold what is beyond them in its tree; that adds up
//! to the hosts times the length of the paths, for each VLAN. Neighbours that share a tree need that once
//! for all of them. Beside it each holds all hosts, once, whoever it shares with, and all switches hold
//! those who send.
//!
//! A group is a small tree of its own: a switch, and others around it from which a channel leads down
//! the ranks in the first phase of the [order of channels](super::turns). So what they send comes
//! to the first before it sends anything itself, and a tree that the first may use the others may use,
//! too: nothing waits in a cycle.

use std::cmp::Reverse;

use super::begin::{Begun, BegunTree};
use super::growth::{Group, Growth};
use super::search::Search;
use super::turns::{Turns, turns_for};
use super::{Balancing, Routes, Suits, work};
use crate::routing::{Net, Walk};
use crate::topology::below;

/// Times that all trees are grown anew, each beside all others.
const PASSES: usize = 1;
/// The beginning that ranks and phases follow from: with three phases.
const SEED: u64 = 1;

/// How far switches share trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sharing {
    /// Most switches that share a tree.
    pub(crate) size: usize,
    /// Most trunks from the first of them to another.
    pub(crate) radius: usize,
}

/// Groups of switches, and the order of channels that their trees have to keep.
pub(crate) struct Groups {
    groups: Vec<Group>,
    turns: Turns,
}

impl Groups {
    /// As many switches together as may be: at first whole groups, then ever smaller ones down to half of
    /// that, each of free neighbours. What is left joins the smallest group below it, whatever its size: in a
    /// tree of its own, nearly all hosts would be beyond the one switch that leads on from it.
    pub(crate) fn new(net: &Net, sharing: Sharing) -> Self {
        let turns = turns_for(net, Suits::All, SEED, &mut SEED.clone());
        let mut free: Vec<bool> = net.hosts.iter().map(|&hosts| hosts > 0).collect();
        let mut seen = vec![net.switches(); net.switches()];
        let mut groups = Vec::new();
        let mut least = sharing.size;
        while least > sharing.size / 2 {
            let mut roots: Vec<usize> = net.sources().filter(|&at| free[at]).collect();
            // What is high up has the fewest neighbours above it, so it is asked last.
            roots.sort_by_key(|&at| turns.rank[at]);
            for root in roots {
                if !free[root] {
                    continue;
                }
                let group = gathered(net, &turns, (&free, &mut seen), root, sharing);
                if group.joints.len() + 1 >= least {
                    group.members(net).for_each(|at| free[at] = false);
                    groups.push(group);
                }
            }
            least -= (least / 4).max(1);
        }
        join_rest(net, &turns, &free, &mut groups);
        Self { groups, turns }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }

    /// The switches of each.
    pub(crate) fn members<'a>(&'a self, net: &'a Net) -> impl Iterator<Item = Vec<usize>> + 'a {
        self.groups.iter().map(|group| group.members(net).collect())
    }

    /// A tree for each group, grown beside all others.
    pub(crate) fn grown(self, net: &Net) -> Grown<'_> {
        let Self { mut groups, turns } = self;
        shuffle(&mut groups);
        let mut growth = Growth::new(net, Suits::All, turns).sparing_tables();
        let senders = |group: &Group| -> Vec<(usize, usize)> {
            group.members(net).map(|at| (at, net.hosts[at])).collect()
        };
        let mut walks = Vec::new();
        for group in &groups {
            let walk = growth.grow(group);
            growth.carry(&walk, &senders(group));
            walks.push(walk);
        }
        for _ in 0..PASSES {
            for (group, walk) in groups.iter().zip(&mut walks) {
                growth.carry_no_more(walk, &senders(group));
                *walk = growth.grow(group);
                growth.carry(walk, &senders(group));
            }
        }
        Grown { net, groups, walks, order: growth.turns.order }
    }
}

/// Trees of groups.
pub(crate) struct Grown<'a> {
    net: &'a Net,
    groups: Vec<Group>,
    walks: Vec<Walk>,
    /// All channels, none of which waits for an earlier one.
    order: Vec<usize>,
}

impl Grown<'_> {
    /// The trees as they are.
    pub(crate) fn routes(&self) -> Routes {
        routes_of(self.net, &self.groups, self.walks.iter().map(|walk| walk.needed(self.net)))
    }

    /// What a search makes of them, which takes much longer.
    pub(crate) fn searched(self) -> Routes {
        let Self { net, groups, walks, order } = self;
        let trees = groups.iter().zip(walks).map(|(group, walk)| BegunTree {
            hosts: group.members(net).map(|at| net.hosts[at]).sum(),
            walk,
            joints: group.joints.clone(),
        });
        let begun = Begun { trees: trees.collect(), order };
        let how = Balancing { suits: Suits::All, pauses: true, trees: 1 };
        let mut search = Search::new(net, begun, how, work(groups.len(), net));
        search.run();
        routes_of(net, &groups, search.trunks())
    }
}

/// The trees of groups, over these trunks.
fn routes_of(net: &Net, groups: &[Group], trees: impl Iterator<Item = Vec<usize>>) -> Routes {
    let mut routes = Routes { choices: vec![Vec::new(); net.switches()], ..Routes::default() };
    for (forest, (group, trunks)) in groups.iter().zip(trees).enumerate() {
        routes.forests.push(trunks);
        group.members(net).for_each(|at| routes.choices[at].push(forest));
    }
    routes
}

/// A switch, and free ones around it, nearest first. `seen` says of each switch for which root it was
/// looked at last.
fn gathered(
    net: &Net,
    turns: &Turns,
    (free, seen): (&[bool], &mut [usize]),
    root: usize,
    sharing: Sharing,
) -> Group {
    seen[root] = root;
    let mut group = Group::alone(root);
    let mut depth = vec![(root, 0)];
    let mut next = 0;
    while let Some(&(at, far)) = depth.get(next)
        && far < sharing.radius
    {
        next += 1;
        let mut above: Vec<(Reverse<usize>, usize)> = net
            .from(at)
            .iter()
            .filter(|link| turns.rank[link.to] > turns.rank[at])
            .filter(|link| turns.phases[link.channel ^ 1] == 0 && free[link.to])
            .map(|link| (Reverse(turns.rank[link.to]), link.channel))
            .collect();
        above.sort_unstable();
        for (_, channel) in above {
            if depth.len() == sharing.size {
                return group;
            }
            let to = net.head(channel);
            if seen[to] != root {
                seen[to] = root;
                group.joints.push(channel);
                depth.push((to, far + 1));
            }
        }
    }
    group
}

/// Lets switches that are free join the smallest group below them, or be groups of their own where nothing
/// is below; those that are low in rank first, so that all below a switch are in groups when it is looked at.
fn join_rest(net: &Net, turns: &Turns, free: &[bool], groups: &mut Vec<Group>) {
    let mut group_of = vec![None; net.switches()];
    for (place, group) in groups.iter().enumerate() {
        group.members(net).for_each(|at| group_of[at] = Some(place));
    }
    let mut rest: Vec<usize> = net.sources().filter(|&at| free[at]).collect();
    rest.sort_by_key(|&at| turns.rank[at]);
    for at in rest {
        let below = net.from(at).iter().filter(|link| turns.phases[link.channel] == 0);
        let joinable = below.filter_map(|link| {
            let place = group_of[link.to]?;
            Some((groups[place].joints.len(), place, link.channel ^ 1))
        });
        let place = match joinable.min() {
            Some((_, place, joint)) => {
                groups[place].joints.push(joint);
                place
            }
            None => {
                groups.push(Group::alone(at));
                groups.len() - 1
            }
        };
        group_of[at] = Some(place);
    }
}

/// Puts groups into an order that follows from the seed alone: those that come first find their trees
/// empty.
fn shuffle(groups: &mut [Group]) {
    let mut random = SEED;
    for at in (1..groups.len()).rev() {
        groups.swap(at, below(&mut random, at + 1));
    }
}
