//! Up*/down* on any graph: a path goes towards a root, then away from it, and never up again.
//!
//! Switches are ordered by their distance from the root, then by number; a channel goes up if it leads
//! to an earlier switch. Channels that go up wait for earlier ones, those that go down for later ones,
//! so nothing waits in a cycle. The root is the centre of the graph.

use super::ways::Ways;
use super::{Net, Routes};

/// Switches by their distance from the root, then by number.
pub(super) fn ranks(net: &Net, root: usize) -> Vec<(Option<usize>, usize)> {
    let distances = net.distances(root);
    distances.into_iter().zip(0..).collect()
}

/// The ways of every source.
pub(crate) fn up_down_ways(net: &Net) -> Vec<Ways> {
    let rank = ranks(net, net.centre());
    net.sources().map(|source| Ways::up_down(net, source, &rank)).collect()
}

/// From every source a tree: by going up alone to whatever can be reached so, in the fewest steps,
/// then down to the rest.
pub(crate) fn up_down(net: &Net) -> Routes {
    let rank = ranks(net, net.centre());
    let trees = net.sources().map(|source| {
        let ways = Ways::up_down(net, source, &rank);
        (source, ways.first(net).needed(net))
    });
    Routes::merged(net, trees.collect())
}
