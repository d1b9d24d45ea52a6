//! All source trees whose paths are not much longer than the shortest.

use super::{Net, Walk};

/// A tree, and by how many trunks its paths to switches with hosts exceed the shortest in total.
pub(crate) type Exceeding = (Walk, usize);

/// All trees from a source that lead to hosts and nowhere else and exceed the shortest paths by at most
/// `excess`; `None` if there are more than `most`, or a switch with hosts cannot be reached.
pub(crate) fn trees_within(
    net: &Net,
    source: usize,
    excess: usize,
    most: usize,
) -> Option<Vec<Exceeding>> {
    let distances = net.distances(source);
    let mut trees = Trees { net, distances, excess, most, found: Vec::new() };
    trees.grow(&Walk::begin(net, source), 0)?;
    Some(trees.found)
}

struct Trees<'a> {
    net: &'a Net,
    distances: Vec<Option<usize>>,
    excess: usize,
    most: usize,
    found: Vec<Exceeding>,
}

impl Trees<'_> {
    /// Goes on with every path from the tree to the first switch with hosts that is not in it; `None`
    /// if there are too many trees.
    fn grow(&mut self, walk: &Walk, exceeds: usize) -> Option<()> {
        let Some(to) = self.net.sources().find(|&at| !walk.has(at)) else {
            self.found.push((walk.clone(), exceeds));
            return (self.found.len() <= self.most).then_some(());
        };
        walk.order.iter().try_for_each(|&at| self.extend(walk, exceeds, at, to))
    }

    /// Takes a step from `at`, then others, until `to` is reached.
    fn extend(&mut self, walk: &Walk, exceeds: usize, at: usize, to: usize) -> Option<()> {
        let net = self.net;
        let depth = walk.depth(net, at) + 1;
        for link in net.from(at).iter().filter(|link| !walk.has(link.to)) {
            let late = depth - self.distances[link.to]?;
            let exceeds = if net.hosts[link.to] > 0 { exceeds + late } else { exceeds };
            if exceeds > self.excess {
                continue;
            }
            let mut walk = walk.clone();
            walk.reach(net, link.channel);
            if link.to == to {
                self.grow(&walk, exceeds)?;
            } else {
                self.extend(&walk, exceeds, link.to, to)?;
            }
        }
        Some(())
    }
}
