//! Orders of all channels in which paths take channels of ever later places.

use std::cmp::Reverse;

use super::Suits;
use crate::routing::Net;
use crate::routing::up_down::ranks;
use crate::topology::below;

/// The order of channels that a seed gives.
pub(super) fn turns_for(net: &Net, suits: Suits, seed: u64, random: &mut u64) -> Turns {
    match (suits, seed) {
        (Suits::Shortest, _) => {
            Turns { order: (0..net.channels()).collect(), phases: Vec::new(), rank: Vec::new() }
        }
        (Suits::All, 0) => Turns::two_phases(net, &places(&ranks(net, net.centre()))),
        (Suits::All, seed) if seed % 2 == 0 => Turns::two_phases(net, &grown_ranks(net, random)),
        (Suits::All, _) => {
            let rank = grown_ranks(net, random);
            Turns::three_phases(net, &rank, random)
        }
    }
}

/// For each switch how many come before it.
fn places<K: Ord>(keys: &[K]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by(|&one, &other| keys[one].cmp(&keys[other]));
    let mut places = vec![0; keys.len()];
    order.into_iter().enumerate().for_each(|(place, at)| places[at] = place);
    places
}

/// Ranks of switches: a root, then each time any neighbour of those that have one, so that every switch
/// but the root has a neighbour before it, and the first are not all around the root.
fn grown_ranks(net: &Net, random: &mut u64) -> Vec<usize> {
    let unranked = net.switches();
    let mut rank = vec![unranked; net.switches()];
    let mut near = vec![below(random, net.switches())];
    let mut next = 0;
    while !near.is_empty() {
        let at = near.swap_remove(below(random, near.len()));
        if rank[at] == unranked {
            rank[at] = next;
            next += 1;
            near.extend(net.from(at).iter().map(|link| link.to).filter(|&to| rank[to] == unranked));
        }
    }
    rank
}

/// Down the ranks, up, and down once more over other trunks.
pub(super) const PHASES: usize = 3;

/// An order of all channels; paths take channels of ever later places, so that nothing waits in a cycle.
pub(super) struct Turns {
    pub(super) order: Vec<usize>,
    /// The phase of each channel: all of one come before those of the next.
    pub(super) phases: Vec<u8>,
    /// The rank of each switch; none where only shortest paths will do.
    pub(super) rank: Vec<usize>,
}

impl Turns {
    /// Down the ranks, over any trunk; then up.
    fn two_phases(net: &Net, rank: &[usize]) -> Self {
        Self::new(net, rank, |_| true)
    }

    /// Down the ranks over most of the trunks, up over any, and down over the other ones. Where there are
    /// two phases, paths between switches of low ranks have to go over the very lowest, whose cables
    /// then carry ten times the mean on 1,000 switches; with three they also meet at high ranks.
    ///
    /// The first kind holds a trunk down from every switch but the lowest, so that the first two phases
    /// reach everything: the one to the highest of its lower neighbours, so that a quarter of the trunks
    /// up from the low ones can be of the other kind.
    fn three_phases(net: &Net, rank: &[usize], random: &mut u64) -> Self {
        let mut first = vec![false; net.trunks()];
        for at in 0..net.switches() {
            let lower = net.from(at).iter().filter(|link| rank[link.to] < rank[at]);
            if let Some(nearest) = lower.max_by_key(|link| rank[link.to]) {
                first[nearest.channel / 2] = true;
            }
        }
        for at in 0..net.switches() {
            let upper = net.from(at).iter().filter(|link| rank[link.to] > rank[at]);
            let upper: Vec<usize> = upper.map(|link| link.channel / 2).collect();
            let mut free: Vec<usize> =
                upper.iter().copied().filter(|&trunk| !first[trunk]).collect();
            let firsts = upper.len() - free.len();
            let of_first = (3 * upper.len() / 4).saturating_sub(firsts);
            for _ in 0..of_first.min(free.len()) {
                first[free.swap_remove(below(random, free.len()))] = true;
            }
        }
        Self::new(net, rank, |trunk| first[trunk])
    }

    fn new(net: &Net, rank: &[usize], first: impl Fn(usize) -> bool) -> Self {
        let tail = |channel: usize| rank[net.tail(channel)];
        let phase =
            |channel: usize| match (tail(channel) > rank[net.head(channel)], first(channel / 2)) {
                (true, true) => 0,
                (false, _) => 1,
                (true, false) => 2,
            };
        let phases: Vec<u8> = (0..net.channels()).map(phase).collect();
        let mut order: Vec<usize> = (0..net.channels()).collect();
        order.sort_by_key(|&channel| {
            let down = phases[channel] != 1;
            let from = tail(channel);
            (phases[channel], down.then_some(Reverse(from)), from, channel)
        });
        Self { order, phases, rank: rank.to_vec() }
    }
}
