//! Trees grown in the graph of channels, so that no cycle of waiting ever arises: for graphs without
//! coordinates.
//!
//! The idea is that of Nue routing (Domke, Hoefler, Matsuoka 2016) with a single virtual channel and
//! sources in place of destinations. Trees are grown one source after the other, nearest switches first
//! and over the channels that were least used. A step makes one channel wait for another; it is taken
//! only if the waiting stays free of cycles, which an order of the channels tells that is kept up to
//! date with every pair (Pearce and Kelly 2006). Every pair is decided once: refused, it stays refused.
//! The pairs of one spanning tree are there from the beginning; where a source cannot reach all others
//! any more, it takes that tree.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::waiting::Waiting;
use super::{Adjacent, Net, Routes, Walk, ways::Ways};

/// A tree of its own for every source.
pub(crate) fn grown(net: &Net) -> Routes {
    let mut growth = Growth::new(net);
    let trees = net.sources().map(|source| {
        let walk = growth.grow(source).unwrap_or_else(|| growth.escape.clone());
        let tree = walk.needed(net);
        growth.load(&Adjacent::new(net, &tree).walk(source));
        (source, tree)
    });
    let trees = trees.collect();
    Routes::merged(net, trees)
}

/// Trees of so many sources, evenly chosen; every other source takes one of these, the first in which
/// its paths make no cycle.
pub(crate) fn shared(net: &Net, most: usize) -> Routes {
    let sources: Vec<usize> = net.sources().collect();
    let mut growth = Growth::new(net);
    let roots = (0..most).map(|at| sources[at * sources.len() / most]);
    let mut trees: Vec<Vec<usize>> = Vec::new();
    for root in roots {
        if let Some(walk) = growth.grow(root) {
            let tree = walk.needed(net);
            growth.load(&Adjacent::new(net, &tree).walk(root));
            trees.push(tree);
        }
    }
    trees.push(growth.escape.needed(net));
    let adjacent: Vec<Adjacent<'_>> = trees.iter().map(|tree| Adjacent::new(net, tree)).collect();
    let of_sources = sources.iter().map(|&source| {
        // Trees in which the others are near first.
        let mut walks: Vec<(usize, usize, Walk)> = adjacent
            .iter()
            .enumerate()
            .map(|(at, forest)| {
                let walk = forest.walk(source);
                (walk.depths(net).iter().sum(), at, walk)
            })
            .collect();
        walks.sort_by_key(|(depth, at, _)| (*depth, *at));
        let fits = walks.iter().find(|(_, _, walk)| growth.admit(walk));
        let tree = fits.map_or(trees.len() - 1, |(_, at, _)| *at);
        (source, trees[tree].clone())
    });
    let of_sources = of_sources.collect();
    Routes::merged(net, of_sources)
}

struct Growth<'a> {
    net: &'a Net,
    order: ChannelOrder,
    /// Frames of all pairs of hosts so far, for each channel.
    load: Vec<usize>,
    /// The tree that every source may always take.
    escape: Walk,
}

impl<'a> Growth<'a> {
    fn new(net: &'a Net) -> Self {
        let mut growth = Self {
            net,
            order: ChannelOrder::new(net),
            load: vec![0; net.channels()],
            escape: Ways::minimal(net, net.centre()).first(net),
        };
        let mut trunks: Vec<usize> = growth.escape.by.iter().flatten().map(|by| by / 2).collect();
        trunks.sort_unstable();
        let forest = Adjacent::new(net, &trunks);
        for before in trunks.iter().flat_map(|trunk| [2 * trunk, 2 * trunk + 1]) {
            for &after in
                forest.from(net.head(before)).iter().filter(|&&after| after / 2 != before / 2)
            {
                let free = growth.order.allow(net, before, after);
                assert!(free, "the channels of a tree never wait in a cycle");
            }
        }
        growth
    }

    /// The tree of a source; `None` if it cannot reach all hosts.
    fn grow(&mut self, source: usize) -> Option<Walk> {
        let net = self.net;
        let mut walk = Walk::begin(net, source);
        let mut left = net.sources().filter(|&other| other != source).count();
        let mut depths = vec![0; net.switches()];
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
            depths[at] = depth;
            left -= usize::from(net.hosts[at] > 0);
            for link in net.from(at).iter().filter(|link| !walk.has(link.to)) {
                near.push(Reverse((depth + 1, self.load[link.channel], link.channel)));
            }
        }
        Some(walk)
    }

    /// Allows all pairs of a walk; false if one would close a cycle.
    fn admit(&mut self, walk: &Walk) -> bool {
        let beyond = walk.hosts_beyond(self.net);
        walk.order.iter().filter(|&&at| beyond[at] > 0).all(|&at| {
            let after = walk.by[at];
            let before = after.and_then(|after| walk.by[self.net.tail(after)]);
            match (before, after) {
                (Some(before), Some(after)) => self.order.allow(self.net, before, after),
                _ => true,
            }
        })
    }

    fn load(&mut self, walk: &Walk) {
        let beyond = walk.hosts_beyond(self.net);
        let from = self.net.hosts[walk.order[0]];
        for &switch in &walk.order {
            if let Some(channel) = walk.by[switch] {
                self.load[channel] += from * beyond[switch];
            }
        }
    }
}

/// Channels in an order in which none waits for an earlier one.
struct ChannelOrder {
    place: Vec<usize>,
    after: Vec<Vec<usize>>,
    before: Vec<Vec<usize>>,
    allowed: Waiting,
    refused: Waiting,
    seen: Vec<bool>,
}

impl ChannelOrder {
    fn new(net: &Net) -> Self {
        let channels = net.channels();
        Self {
            place: (0..channels).collect(),
            after: vec![Vec::new(); channels],
            before: vec![Vec::new(); channels],
            allowed: Waiting::new(net),
            refused: Waiting::new(net),
            seen: vec![false; channels],
        }
    }

    /// Lets one channel wait for another; false if that would close a cycle.
    fn allow(&mut self, net: &Net, before: usize, after: usize) -> bool {
        if self.allowed.contains(net, before, after) {
            return true;
        }
        if self.refused.contains(net, before, after) {
            return false;
        }
        if self.place[before] > self.place[after] && !self.reorder(before, after) {
            self.refused.insert(net, before, after);
            return false;
        }
        self.allowed.insert(net, before, after);
        self.after[before].push(after);
        self.before[after].push(before);
        true
    }

    /// Moves what `after` leads to behind what leads to `before`; false if these meet.
    fn reorder(&mut self, before: usize, after: usize) -> bool {
        let (low, high) = (self.place[after], self.place[before]);
        let Some(mut later) = self.forward(after, before, high) else { return false };
        let mut earlier = self.backward(before, low);
        let by_place = |&channel: &usize| self.place[channel];
        later.sort_unstable_by_key(by_place);
        earlier.sort_unstable_by_key(by_place);
        let moved: Vec<usize> = earlier.into_iter().chain(later).collect();
        let mut places: Vec<usize> = moved.iter().map(|&channel| self.place[channel]).collect();
        places.sort_unstable();
        for (channel, place) in moved.into_iter().zip(places) {
            self.place[channel] = place;
        }
        true
    }

    /// What a channel leads to up to a place; `None` if `end` is among it.
    fn forward(&mut self, from: usize, end: usize, high: usize) -> Option<Vec<usize>> {
        let mut found = vec![from];
        self.seen[from] = true;
        let mut next = 0;
        let mut meets = false;
        while let Some(&at) = found.get(next) {
            next += 1;
            for &to in &self.after[at] {
                meets |= to == end;
                if !self.seen[to] && self.place[to] < high {
                    self.seen[to] = true;
                    found.push(to);
                }
            }
            if meets {
                break;
            }
        }
        found.iter().for_each(|&channel| self.seen[channel] = false);
        (!meets).then_some(found)
    }

    /// What leads to a channel down to a place.
    fn backward(&mut self, to: usize, low: usize) -> Vec<usize> {
        let mut found = vec![to];
        self.seen[to] = true;
        let mut next = 0;
        while let Some(&at) = found.get(next) {
            next += 1;
            for &from in &self.before[at] {
                if !self.seen[from] && self.place[from] > low {
                    self.seen[from] = true;
                    found.push(from);
                }
            }
        }
        found.iter().for_each(|&channel| self.seen[channel] = false);
        found
    }
}
