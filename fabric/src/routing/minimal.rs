//! Shortest paths; where there are several, by the neighbour that comes first.

use super::ways::Ways;
use super::{Net, Routes};

/// The ways of every source.
pub(crate) fn minimal_ways(net: &Net) -> Vec<Ways> {
    net.sources().map(|source| Ways::minimal(net, source)).collect()
}

/// The tree of shortest paths from every source.
pub(crate) fn minimal(net: &Net) -> Routes {
    let trees = net.sources().map(|source| {
        let ways = Ways::minimal(net, source);
        (source, ways.first(net).needed(net))
    });
    Routes::merged(net, trees.collect())
}
