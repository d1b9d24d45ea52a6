//! What priming alone teaches the switches.
//!
//! Worked out by VLANs and switches, not by frames: directed priming of 10,000 hosts is ten million
//! frames, and every host that primes says what they come to.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Configuration, HostId, Priming, Vlan, Wiring};

/// How many addresses each switch holds in each VLAN when only priming has taught it, in the order
/// of the wiring. Takes time in proportion to VLANs times trunks.
pub fn primed_entries(
    wiring: &Wiring,
    configuration: &Configuration,
) -> Vec<BTreeMap<Vlan, usize>> {
    let count = wiring.switches.len();
    let mut hosts = vec![0; count];
    wiring.hosts.iter().for_each(|host| hosts[host.switch.place()] += 1);
    let mut entries = vec![BTreeMap::new(); count];
    let mut put = |vlan: Vlan, known: Vec<usize>| {
        for (entries, known) in entries.iter_mut().zip(known) {
            entries.insert(vlan, known);
        }
    };
    match &configuration.priming {
        Priming::None => {}
        Priming::Broadcast(vlans) => {
            for vlan in vlans.iter() {
                let tree = Tree::new(wiring, configuration, vlan);
                let below = tree.sums(&hosts);
                put(vlan, (0..count).map(|switch| below[tree.roots[switch]]).collect());
            }
        }
        Priming::Directed(representatives) => {
            let mut by_vlan: BTreeMap<Vlan, BTreeSet<HostId>> = BTreeMap::new();
            for own in representatives {
                by_vlan.entry(own.vlan).or_default().insert(own.host);
            }
            for (vlan, representatives) in by_vlan {
                let mut represented = vec![0; count];
                for host in representatives {
                    represented[wiring.hosts[host.place()].switch.place()] += 1;
                }
                let tree = Tree::new(wiring, configuration, vlan);
                put(vlan, tree.known(&hosts, &represented));
            }
        }
    }
    entries
}

/// The trunks of a VLAN as a tree, or as several where they do not join all switches.
struct Tree {
    /// Switches, each after the one that it hangs on.
    order: Vec<usize>,
    /// What each hangs on; a root on itself.
    parents: Vec<usize>,
    /// The root of each switch's tree.
    roots: Vec<usize>,
}

impl Tree {
    fn new(wiring: &Wiring, configuration: &Configuration, vlan: Vlan) -> Self {
        let count = wiring.switches.len();
        let mut next = vec![Vec::new(); count];
        for trunk in &wiring.trunks {
            let carries = trunk.ends.iter().all(|end| {
                let ports = &configuration.switches[end.switch.place()].ports;
                ports.iter().any(|port| port.ports == end.ports && port.is_member(vlan))
            });
            if carries {
                let [one, other] = [0, 1].map(|end| trunk.ends[end].switch.place());
                next[one].push(other);
                next[other].push(one);
            }
        }
        let mut tree = Self {
            order: Vec::with_capacity(count),
            parents: vec![count; count],
            roots: vec![0; count],
        };
        for root in 0..count {
            if tree.parents[root] < count {
                continue;
            }
            tree.parents[root] = root;
            let mut at = tree.order.len();
            tree.order.push(root);
            while let Some(&switch) = tree.order.get(at) {
                tree.roots[switch] = root;
                for &below in &next[switch] {
                    if tree.parents[below] == count {
                        tree.parents[below] = switch;
                        tree.order.push(below);
                    }
                }
                at += 1;
            }
        }
        tree
    }

    /// For each switch, what there is at it and at all that hang on it.
    fn sums(&self, at: &[usize]) -> Vec<usize> {
        let mut sums = at.to_vec();
        for &switch in self.order.iter().rev() {
            let parent = self.parents[switch];
            if parent != switch {
                sums[parent] += sums[switch];
            }
        }
        sums
    }

    /// How many hosts each switch knows: of those beyond one of its trunks all, if a representative is
    /// not there, since their frames to it pass; else only the representatives there, by broadcasts.
    fn known(&self, hosts: &[usize], represented: &[usize]) -> Vec<usize> {
        let (hosts_below, represented_below) = (self.sums(hosts), self.sums(represented));
        let whole = |switch: usize| {
            let root = self.roots[switch];
            (hosts_below[root], represented_below[root])
        };
        let beyond = |hosts: usize, represented: usize, all: usize| {
            if all > represented { hosts } else { represented }
        };
        let mut known: Vec<usize> = (0..hosts.len())
            .map(|switch| if whole(switch).1 > 0 { hosts[switch] } else { 0 })
            .collect();
        for &switch in &self.order {
            let parent = self.parents[switch];
            if parent == switch {
                continue;
            }
            let (all_hosts, all) = whole(switch);
            let (below, represented) = (hosts_below[switch], represented_below[switch]);
            known[parent] += beyond(below, represented, all);
            known[switch] += beyond(all_hosts - below, all - represented, all);
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Representative;
    use crate::prime::tests::planned;
    use crate::prime::{PrimingFrame, priming_frames};

    /// The same by following every frame.
    fn by_frames(wiring: &Wiring, configuration: &Configuration) -> Vec<BTreeMap<Vlan, usize>> {
        let mut known: BTreeMap<(usize, Vlan), BTreeSet<HostId>> = BTreeMap::new();
        let [first, second] = priming_frames(configuration);
        for PrimingFrame { from, vlan, to } in first.into_iter().chain(second) {
            let tree = Tree::new(wiring, configuration, vlan);
            let up = |host: HostId| {
                let mut way = vec![wiring.hosts[host.place()].switch.place()];
                while let Some(&last) = way.last().filter(|last| tree.parents[**last] != **last) {
                    way.push(tree.parents[last]);
                }
                way
            };
            let passed: Vec<usize> = match to {
                None => tree.order.clone(),
                Some(to) => {
                    let (one, other) = (up(from), up(to));
                    let joint = *one.iter().find(|switch| other.contains(switch)).unwrap();
                    let only = |way: &[usize]| {
                        way.iter().copied().take_while(|at| *at != joint).collect::<Vec<_>>()
                    };
                    [only(&one), only(&other), vec![joint]].concat()
                }
            };
            for switch in passed {
                known.entry((switch, vlan)).or_default().insert(from);
            }
        }
        let mut entries = vec![BTreeMap::new(); wiring.switches.len()];
        for ((switch, vlan), hosts) in known {
            entries[switch].insert(vlan, hosts.len());
        }
        entries
    }

    #[test]
    fn broadcasts_put_every_host_into_every_vlan_of_every_switch() {
        let (wiring, mut configuration) = planned("torus 4x2");
        let vlans = configuration.switches[0].vlans.clone();
        configuration.priming = Priming::Broadcast(Box::new(vlans.clone()));
        let [first, second] = priming_frames(&configuration);
        assert_eq!((first.len(), second.len()), (16 * vlans.len(), 0));
        for entries in primed_entries(&wiring, &configuration) {
            assert!(entries.values().all(|&hosts| hosts == 16));
            assert_eq!(entries.len(), vlans.len());
        }
    }

    #[test]
    fn directed_priming_is_known_on_the_way_only() {
        // A row of three switches with two hosts each is a tree: one VLAN, both ends represented.
        let (wiring, mut configuration) = planned("mesh 3");
        let vlan = configuration.switches[0].vlans.iter().next().unwrap();
        let host = HostId::new(0);
        configuration.priming = Priming::Directed(vec![Representative { vlan, host }]);
        let counts: Vec<usize> =
            primed_entries(&wiring, &configuration).iter().map(|entries| entries[&vlan]).collect();
        // All six are known where the representative is, four of them and it on the next switch.
        assert_eq!(counts, [6, 5, 3]);
    }

    #[test]
    fn what_is_worked_out_by_switches_is_what_every_frame_teaches() {
        for topology in ["torus 4x3", "mesh 5", "complete 5", "ring 6", "mesh 3x3"] {
            let (wiring, mut configuration) = planned(topology);
            let vlans = configuration.switches[0].vlans.clone();
            // Some VLANs with one representative, some with many, two on one switch among them.
            for every in [1_usize, 3, 5, 7, 24] {
                let hosts = (0..wiring.hosts.len()).filter(|host| host.is_multiple_of(every));
                let representatives = vlans
                    .iter()
                    .flat_map(|vlan| {
                        let host = move |host| Representative { vlan, host: HostId::new(host) };
                        hosts.clone().map(host)
                    })
                    .collect();
                configuration.priming = Priming::Directed(representatives);
                let found = primed_entries(&wiring, &configuration);
                assert_eq!(found, by_frames(&wiring, &configuration), "{topology}, every {every}");
            }
        }
    }
}
