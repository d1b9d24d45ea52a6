//! Host-tagged plans: the VLAN of a frame by where it comes from and where it goes.
//!
//! The paths are those of the routing's source trees, but two paths of one source need not share a
//! VLAN, so fewer do. Paths are put into the first forest that stays one, longest first, then in other
//! orders; where every path is one trunk, as between all pairs, the fewest forests are found exactly by
//! exchanging trunks (Edmonds' partition of matroids). Every forest is extended to a spanning tree, so
//! that priming reaches all switches.

use std::collections::{BTreeMap, BTreeSet};

use meikyo_cluster::Routing;

use super::partition::partition;
use super::tables::Use;
use super::vlans::Assignment;
use super::{PlanError, PlanOptions, routing};
use crate::routing::{Adjacent, Net, Sets, Waiting};
use crate::{HostId, Vlan, Wiring};

/// Most switches with hosts: paths are kept for each pair.
const SWITCHES_MAX: usize = 128;
/// Most hosts: each has a rule for each other one.
const HOSTS_MAX: usize = 1_024;
/// Orders that are tried beyond the first.
const ORDERS: u64 = 50;

/// Forests, and which of them each pair of switches uses.
#[derive(Debug)]
pub(super) struct Pairs {
    forests: Vec<Vec<usize>>,
    of: BTreeMap<(usize, usize), usize>,
    /// The forest of what is not tagged.
    other: usize,
    pub(super) proven: bool,
}

/// A pair of switches and the trunks from the one to the other.
struct Path {
    from: usize,
    to: usize,
    trunks: Vec<usize>,
}

/// Chooses the paths, and as few forests as are found.
pub(super) fn choose(
    wiring: &Wiring,
    net: &Net,
    options: &PlanOptions,
) -> Result<(Routing, Pairs), PlanError> {
    let (switches, hosts) = (net.sources().count(), wiring.hosts.len());
    if switches > SWITCHES_MAX || hosts > HOSTS_MAX {
        let (switches_max, hosts_max) = (SWITCHES_MAX, HOSTS_MAX);
        return Err(PlanError::Pairs { switches, hosts, switches_max, hosts_max });
    }
    let (routing, routes) = routing::choose(wiring, net, options)?;
    let mut waiting = Waiting::new(net);
    let mut paths = Vec::new();
    let forests = routes.in_turn(net, 1);
    for source in net.sources() {
        let walk = Adjacent::new(net, &routes.forests[forests[source][0]]).walk(source);
        waiting.add(net, &walk, &walk.hosts_beyond(net));
        for to in net.sources().filter(|&to| to != source) {
            let mut trunks = Vec::new();
            let mut at = to;
            while let Some(channel) = walk.by[at] {
                trunks.push(channel / 2);
                at = net.tail(channel);
            }
            paths.push(Path { from: source, to, trunks });
        }
    }
    if let (Some(cycle), true) = (waiting.cycle(net), options.flow_control) {
        return Err(PlanError::deadlock(wiring, net, routing, &cycle));
    }
    let mut pairs = pack(net, &mut paths);
    pairs.extend(net);
    if options.flow_control {
        pairs.choose_other(net, &waiting);
    }
    Ok((routing, pairs))
}

fn pack(net: &Net, paths: &mut [Path]) -> Pairs {
    let trunks: BTreeSet<usize> =
        paths.iter().flat_map(|path| path.trunks.iter().copied()).collect();
    let least = trunks.len().div_ceil(net.switches() - 1);
    if paths.iter().all(|path| path.trunks.len() == 1) {
        let forests = partition(net, &trunks);
        let of = paths.iter().map(|path| {
            let has = |forest: &Vec<usize>| forest.contains(&path.trunks[0]);
            let at = forests.iter().position(has).expect("every trunk is in a forest");
            ((path.from, path.to), at)
        });
        let of = of.collect();
        return Pairs { forests, of, other: 0, proven: true };
    }
    paths.sort_by_key(|path| (std::cmp::Reverse(path.trunks.len()), path.from, path.to));
    let mut best = first_fit(net, paths);
    for seed in 1..=ORDERS {
        if best.forests.len() == least || net.switches() > 16 {
            break;
        }
        // Any fixed order will do: multiplication scatters the places.
        paths.sort_by_key(|path| {
            let place = path.from * net.switches() + path.to;
            let place = u64::try_from(place).expect("a count fits in 64 bits");
            let scattered = (place + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
            (std::cmp::Reverse(path.trunks.len()), scattered.wrapping_mul(2 * seed + 1))
        });
        let found = first_fit(net, paths);
        if found.forests.len() < best.forests.len() {
            best = found;
        }
    }
    best.proven = best.forests.len() == least;
    best
}

fn first_fit(net: &Net, paths: &[Path]) -> Pairs {
    let mut forests: Vec<(BTreeSet<usize>, Sets)> = Vec::new();
    let mut of = BTreeMap::new();
    for path in paths {
        let fits = |(trunks, sets): &(BTreeSet<usize>, Sets)| {
            let mut sets = sets.clone();
            path.trunks.iter().all(|trunk| {
                let [one, other] = net.ends(*trunk);
                trunks.contains(trunk) || sets.join(one, other)
            })
        };
        let at = forests.iter().position(fits).unwrap_or_else(|| {
            forests.push((BTreeSet::new(), Sets::new(net.switches())));
            forests.len() - 1
        });
        let (trunks, sets) = &mut forests[at];
        for &trunk in &path.trunks {
            if trunks.insert(trunk) {
                let [one, other] = net.ends(trunk);
                sets.join(one, other);
            }
        }
        of.insert((path.from, path.to), at);
    }
    let forests = forests.into_iter().map(|(trunks, _)| trunks.into_iter().collect()).collect();
    Pairs { forests, of, other: 0, proven: false }
}

impl Pairs {
    /// Adds trunks until every forest spans all switches.
    fn extend(&mut self, net: &Net) {
        for forest in &mut self.forests {
            let mut sets = Sets::new(net.switches());
            for &trunk in forest.iter() {
                let [one, other] = net.ends(trunk);
                sets.join(one, other);
            }
            for at in 0..net.switches() {
                for link in net.from(at) {
                    if sets.join(at, link.to) {
                        forest.push(link.channel / 2);
                    }
                }
            }
            forest.sort_unstable();
        }
    }

    /// The forest of the rest, which is broadcasts above all: the first in which even as many frames as
    /// between hosts could not make a cycle of waiting. Where there is none any one will do, as
    /// broadcasts are too few to fill links.
    fn choose_other(&mut self, net: &Net, waiting: &Waiting) {
        let is_free = |forest: &Vec<usize>| {
            let mut waiting = waiting.clone();
            let forest = Adjacent::new(net, forest);
            for source in net.sources() {
                let walk = forest.walk(source);
                waiting.add(net, &walk, &walk.hosts_beyond(net));
            }
            waiting.cycle(net).is_none()
        };
        self.other = self.forests.iter().position(is_free).unwrap_or(0);
    }

    /// The VLANs, with everything that is not tagged in one of them.
    pub(super) fn assignment(&self, net: &Net) -> Assignment {
        let mut vlans: Vec<Use> = self
            .forests
            .iter()
            .map(|trunks| Use { trunks: trunks.clone(), senders: BTreeMap::new() })
            .collect();
        for (&(from, _), &at) in &self.of {
            vlans[at].senders.entry(from).or_insert(0);
        }
        for source in net.sources() {
            vlans[self.other].senders.insert(source, net.hosts[source]);
        }
        let mut turns = vec![Vec::new(); net.switches()];
        net.sources().for_each(|source| turns[source].push(self.other));
        Assignment { vlans, turns }
    }

    /// For each host the VLANs of its frames to hosts on other switches.
    pub(super) fn tags(&self, wiring: &Wiring, ids: &[Vlan]) -> Vec<BTreeMap<HostId, Vlan>> {
        let tags = wiring.hosts.iter().map(|from| {
            let others = wiring.hosts.iter().enumerate().filter_map(|(to, host)| {
                let pair = (from.switch.place(), host.switch.place());
                self.of.get(&pair).map(|&at| (HostId::new(to), ids[at]))
            });
            others.collect()
        });
        tags.collect()
    }
}
