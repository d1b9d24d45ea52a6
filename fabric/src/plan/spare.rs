//! Spanning trees that avoid trunks which may fail.

use std::collections::BTreeSet;

use crate::routing::{Net, Sets, Ways};
use crate::{TrunkId, Wiring};

/// Spanning trees such that every trunk without which all switches can still be reached is avoided
/// by at least one of them; none where there is no such trunk. Each tree uses as few trunks of all
/// earlier ones as it can, so there are two of them where trees without a common trunk are found.
pub fn spare_trees(wiring: &Wiring) -> Vec<Vec<TrunkId>> {
    let trees = trees(&Net::new(wiring, &BTreeSet::new()));
    trees.into_iter().map(|tree| tree.into_iter().map(TrunkId::new).collect()).collect()
}

pub(super) fn trees(net: &Net) -> Vec<Vec<usize>> {
    let root = net.centre();
    let mut used = vec![0_usize; net.trunks()];
    let first = tree_from(net, root);
    let mut left: BTreeSet<usize> = first.iter().copied().collect();
    first.iter().for_each(|&trunk| used[trunk] += 1);
    let mut trees = vec![first];
    loop {
        // Trunks that every tree so far has are the last that the next one takes.
        let cost = |trunk: usize| if left.contains(&trunk) { usize::MAX } else { used[trunk] };
        let tree = cheapest(net, cost);
        let before = left.len();
        left = left.intersection(&tree.iter().copied().collect()).copied().collect();
        if left.len() == before {
            // What is left are bridges; if all are, there is no loop and nothing to spare.
            return if trees.len() == 1 { Vec::new() } else { trees };
        }
        tree.iter().for_each(|&trunk| used[trunk] += 1);
        trees.push(tree);
    }
}

/// The tree of shortest ways from a switch.
pub(super) fn tree_from(net: &Net, root: usize) -> Vec<usize> {
    let walk = Ways::minimal(net, root).first(net);
    let mut trunks: Vec<usize> = walk.by.iter().flatten().map(|channel| channel / 2).collect();
    trunks.sort_unstable();
    trunks
}

/// The spanning tree of least cost; of equal trunks those that come first.
fn cheapest(net: &Net, cost: impl Fn(usize) -> usize) -> Vec<usize> {
    let usable: BTreeSet<usize> =
        (0..net.switches()).flat_map(|at| net.from(at)).map(|link| link.channel / 2).collect();
    let mut trunks: Vec<usize> = usable.into_iter().collect();
    trunks.sort_by_key(|&trunk| (cost(trunk), trunk));
    let mut sets = Sets::new(net.switches());
    trunks.retain(|&trunk| {
        let [one, other] = net.ends(trunk);
        sets.join(one, other)
    });
    trunks.sort_unstable();
    trunks
}
