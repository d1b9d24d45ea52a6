//! Trees grown in the graph of channels, so that no cycle of waiting ever arises: for graphs without
//! coordinates.
//!
//! The idea is that of Nue routing (Domke, Hoefler, Matsuoka 2016) with a single virtual channel and
//! sources in place of destinations. Trees are grown one source after the other, nearest switches first
//! and over the channels that were least used. A step makes one channel wait for another; it is taken
//! only if the waiting stays free of cycles, which an order of the channels tells.
//!
//! Unlike there, the pairs of up*/down* routing can be there from the beginning. They make an impasse
//! impossible: a switch at distance `n` from the source and `n` levels nearer to the root is reached by
//! going up alone, so the root is; and after any channel it is allowed to go down, so whatever was not
//! reached on another way is reached from its neighbour that is nearer to the root.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::balanced::begun;
use super::exact::shortest_acyclic;
use super::order::ChannelOrder;
use super::up_down::ranks;
use super::ways::Ways;
use super::{Adjacent, Net, Routes, Walk};

/// Several beginnings are tried up to so many switches, and the one that loads channels least is taken.
const SWITCHES_TRIED_MAX: usize = 256;
/// Roots that are tried.
const ROOTS: usize = 4;

/// What is allowed from the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beginning {
    /// All of up*/down*: nothing is ever out of reach.
    UpDown,
    /// One spanning tree, which a source takes that finds no other: more is open to those that come
    /// first.
    Tree,
}

/// A tree for every source.
pub(crate) fn grown(net: &Net) -> Routes {
    if net.switches() > SWITCHES_TRIED_MAX {
        return Routes::merged(net, begun(net));
    }
    let centre = net.centre();
    let others = (0..ROOTS).map(|at| at * net.switches() / ROOTS);
    let roots: BTreeSet<usize> = others.chain([centre]).collect();
    let all = roots.into_iter().flat_map(|root| {
        [Beginning::UpDown, Beginning::Tree].map(|beginning| grown_from(net, root, beginning))
    });
    let lightest = all.min_by_key(|(_, load)| *load).expect("at least one root was tried").0;
    shortest_acyclic(net, lightest)
}

/// The trees, and the most pairs of hosts on a channel.
fn grown_from(net: &Net, root: usize, beginning: Beginning) -> (Routes, usize) {
    let mut growth = Growth::new(net, root, beginning);
    let mut trees: Vec<(usize, Vec<usize>)> = Vec::new();
    for source in net.sources() {
        let walk = growth.grow(source).unwrap_or_else(|| growth.escape.clone());
        let tree = walk.needed(net);
        growth.load(&Adjacent::new(net, &tree).walk(source));
        trees.push((source, tree));
    }
    let load = growth.load.iter().max().copied().unwrap_or(0);
    (Routes::merged(net, trees), load)
}

struct Growth<'a> {
    net: &'a Net,
    order: ChannelOrder,
    /// Pairs of hosts so far, for each channel.
    load: Vec<usize>,
    /// The tree of shortest paths from the root: every source may take it.
    escape: Walk,
}

impl<'a> Growth<'a> {
    fn new(net: &'a Net, root: usize, beginning: Beginning) -> Self {
        let rank = ranks(net, root);
        let escape = Ways::minimal(net, root).first(net);
        let in_escape = |channel: usize| {
            [channel, channel ^ 1]
                .iter()
                .any(|&channel| escape.by[net.head(channel)] == Some(channel))
        };
        let goes_up = |channel: usize| rank[net.head(channel)] < rank[net.tail(channel)];
        let mut channels: Vec<usize> =
            (0..net.switches()).flat_map(|at| net.from(at)).map(|link| link.channel).collect();
        // Up first, from the bottom; then down, from the top.
        channels.sort_by_key(|&channel| {
            let tail = rank[net.tail(channel)];
            (!goes_up(channel), goes_up(channel).then_some(Reverse(tail)), tail, channel)
        });
        let mut order = ChannelOrder::new(net, &channels);
        for &before in &channels {
            for link in net.from(net.head(before)) {
                let turns_up = !goes_up(before) && goes_up(link.channel);
                let begins = match beginning {
                    Beginning::UpDown => true,
                    Beginning::Tree => in_escape(before) && in_escape(link.channel),
                };
                if begins && !turns_up && link.channel / 2 != before / 2 {
                    let free = order.allow(net, before, link.channel);
                    assert!(free, "going up and then down never waits in a cycle");
                }
            }
        }
        Self { net, order, load: vec![0; net.channels()], escape }
    }

    /// The tree of a source; `None` if it cannot reach all hosts.
    fn grow(&mut self, source: usize) -> Option<Walk> {
        let net = self.net;
        let mut walk = Walk::begin(net, source);
        let mut left = net.sources().filter(|&other| other != source).count();
        let mut near = BinaryHeap::new();
        near.extend(
            net.from(source).iter().map(|link| Reverse((1, self.load[link.channel], link.channel))),
        );
        while left > 0 {
            let Reverse((depth, _, channel)) = near.pop()?;
            let at = net.head(channel);
            if walk.has(at) {
                continue;
            }
            let before = walk.by[net.tail(channel)];
            if before.is_some_and(|before| !self.order.allow(net, before, channel)) {
                continue;
            }
            walk.reach(net, channel);
            left -= usize::from(net.hosts[at] > 0);
            for link in net.from(at).iter().filter(|link| !walk.has(link.to)) {
                near.push(Reverse((depth + 1, self.load[link.channel], link.channel)));
            }
        }
        Some(walk)
    }

    fn load(&mut self, walk: &Walk) {
        walk.loads(self.net).for_each(|(channel, pairs)| self.load[channel] += pairs);
    }
}
