//! Leaf-spine and fat trees: each switch of the top roots a tree of its own.
//!
//! Every path goes up to the root and down again, so any number of such trees together is free of
//! deadlock.

use super::{Net, Routes, Walk};

/// One tree for each spine: the spine and all leaves.
pub(crate) fn leaf_spine(net: &Net, leaves: usize, spines: usize) -> Option<Routes> {
    let forests = (leaves..leaves + spines)
        .map(|spine| {
            let mut walk = Walk::begin(net, spine);
            for leaf in 0..leaves {
                walk.reach(net, net.channel(spine, leaf)?);
            }
            Some(walk.needed(net))
        })
        .collect::<Option<Vec<_>>>()?;
    Some(rooted(net, forests))
}

/// One tree for each core: the core, one aggregation switch of each pod, and all edge switches.
///
/// Trees are listed so that neighbours in the list go through different aggregation switches: what
/// the hosts of one edge switch share is spread over all its links first.
pub(crate) fn fat_tree(net: &Net, arity: usize) -> Option<Routes> {
    let half = arity / 2;
    let edges = arity * half;
    let forests = (0..half * half)
        .map(|core| {
            let mut walk = Walk::begin(net, 2 * edges + core);
            for pod in 0..arity {
                let aggregation = edges + pod * half + core % half;
                walk.reach(net, net.channel(2 * edges + core, aggregation)?);
                for edge in pod * half..(pod + 1) * half {
                    walk.reach(net, net.channel(aggregation, edge)?);
                }
            }
            Some(walk.needed(net))
        })
        .collect::<Option<Vec<_>>>()?;
    Some(rooted(net, forests))
}

fn rooted(net: &Net, forests: Vec<Vec<usize>>) -> Routes {
    let all: Vec<usize> = (0..forests.len()).collect();
    let mut choices = vec![Vec::new(); net.switches()];
    net.sources().for_each(|source| choices[source].clone_from(&all));
    Routes { forests, choices, proven: false }
}
