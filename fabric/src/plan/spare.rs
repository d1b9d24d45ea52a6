//! Spanning trees that avoid trunks which may fail.

use std::collections::BTreeSet;

use super::partition::exchange;
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
    let usable = usable(net);
    let mut left = usable.clone();
    let mut used = vec![0_usize; net.trunks()];
    let mut trees = Vec::new();
    let mut wanted = apart(net, &usable).into_iter();
    loop {
        let wanted = wanted.next().unwrap_or_default();
        // Trunks that every tree so far has are the last that the next one takes.
        let cost = |trunk: usize| {
            if trees.is_empty() {
                (false, !wanted.contains(&trunk), scattered(trunk))
            } else {
                (left.contains(&trunk), !wanted.contains(&trunk), used[trunk])
            }
        };
        let tree = cheapest(net, &usable, cost);
        let before = left.len();
        left.retain(|trunk| tree.binary_search(trunk).is_ok());
        if left.len() == before {
            // What is left are bridges.
            return trees;
        }
        tree.iter().for_each(|&trunk| used[trunk] += 1);
        trees.push(tree);
    }
}

/// Two sets of trunks without a loop and without a common trunk, as large as possible; none where
/// exchanging trunks would take too long.
fn apart(net: &Net, usable: &BTreeSet<usize>) -> Vec<Vec<usize>> {
    const SWITCHES_MAX: usize = 64;
    if net.switches() > SWITCHES_MAX {
        return Vec::new();
    }
    let mut forests = vec![Vec::new(); 2];
    for &trunk in usable {
        // A trunk that finds no room is in neither.
        exchange(net, &mut forests, trunk);
    }
    forests
}

/// Trunks in no order that has to do with switches: a tree of the first ones has no hub, which would
/// leave nothing for the next tree.
const fn scattered(trunk: usize) -> usize {
    trunk.wrapping_mul(0x9e37_79b9) % 0x1_0000_0001
}

fn usable(net: &Net) -> BTreeSet<usize> {
    (0..net.switches()).flat_map(|at| net.from(at)).map(|link| link.channel / 2).collect()
}

/// The tree of shortest ways from a switch.
pub(super) fn tree_from(net: &Net, root: usize) -> Vec<usize> {
    let walk = Ways::minimal(net, root).first(net);
    let mut trunks: Vec<usize> = walk.by.iter().flatten().map(|channel| channel / 2).collect();
    trunks.sort_unstable();
    trunks
}

/// The spanning tree of least cost; of equal trunks those that come first.
fn cheapest<C: Ord>(net: &Net, usable: &BTreeSet<usize>, cost: impl Fn(usize) -> C) -> Vec<usize> {
    let mut trunks: Vec<usize> = usable.iter().copied().collect();
    trunks.sort_by_cached_key(|&trunk| (cost(trunk), trunk));
    let mut sets = Sets::new(net.switches());
    trunks.retain(|&trunk| {
        let [one, other] = net.ends(trunk);
        sets.join(one, other)
    });
    trunks.sort_unstable();
    trunks
}
