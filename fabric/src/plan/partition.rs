//! Trunks dealt out to forests, by exchanging them: Edmonds' partition of matroids.

use std::collections::{BTreeMap, BTreeSet};

use crate::routing::{Adjacent, Net};

/// The trunks in as few forests as possible.
pub(super) fn partition(net: &Net, trunks: &BTreeSet<usize>) -> Vec<Vec<usize>> {
    let mut forests: Vec<Vec<usize>> = Vec::new();
    for &trunk in trunks {
        if !exchange(net, &mut forests, trunk) {
            forests.push(vec![trunk]);
        }
    }
    forests
}

/// Puts a trunk into one of the forests, moving others between them along the shortest chain of
/// exchanges; false if there is none, so that one more forest is needed.
pub(super) fn exchange(net: &Net, forests: &mut [Vec<usize>], trunk: usize) -> bool {
    // For each trunk that may have to move: which one takes its place, and where.
    let mut moved_by: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    let mut queue = vec![trunk];
    let mut next = 0;
    while let Some(&at) = queue.get(next) {
        next += 1;
        for forest in 0..forests.len() {
            if forests[forest].contains(&at) {
                continue;
            }
            let Some(way) = way(net, &forests[forest], at) else {
                let (mut at, mut to) = (at, forest);
                loop {
                    forests[to].push(at);
                    let Some(&(by, from)) = moved_by.get(&at) else { return true };
                    forests[from].retain(|&trunk| trunk != at);
                    (at, to) = (by, from);
                }
            };
            for other in way {
                if other != trunk && !moved_by.contains_key(&other) {
                    moved_by.insert(other, (at, forest));
                    queue.push(other);
                }
            }
        }
    }
    false
}

/// The trunks of the forest between the ends of a trunk; `None` if there is no way.
fn way(net: &Net, forest: &[usize], trunk: usize) -> Option<Vec<usize>> {
    let [from, to] = net.ends(trunk);
    let walk = Adjacent::new(net, forest).walk(from);
    let mut trunks = Vec::new();
    let mut at = to;
    while at != from {
        let channel = walk.by[at]?;
        trunks.push(channel / 2);
        at = net.tail(channel);
    }
    Some(trunks)
}
