//! Failure plans restore what can be restored, and nothing waits in a cycle.

use std::collections::{BTreeMap, BTreeSet};

use meikyo_fabric::{
    Configuration, FailoverError, HostId, ManagedFrom, Priming, Representative, SwitchId, TrunkId,
    Wiring, plan_failover, plan_failovers,
};
use proptest::prelude::*;

use crate::built::{self, configuration, wiring};
use crate::shapes::vlan;

const RING: [(usize, usize); 4] = [(0, 1), (1, 2), (2, 3), (3, 0)];

/// The tree of a ring of four that does without a trunk.
fn ring_without(trunk: usize) -> Vec<usize> {
    (0..4).filter(|&other| other != trunk).collect()
}

/// Every pair of hosts that is connected at all reaches each other, by brute force; and no channel
/// waits for itself. The channels of all paths are kept one by one.
fn check(wiring: &Wiring, configuration: &Configuration, failed: TrunkId) -> Result<(), String> {
    let mut graph: BTreeMap<(usize, bool), BTreeSet<(usize, bool)>> = BTreeMap::new();
    for (from, host) in wiring.hosts.iter().enumerate() {
        let port = configuration.switches[host.switch.place()].ports.iter();
        let pvid = port.filter(|port| port.ports == host.ports).find_map(|port| port.pvid);
        let pvid = pvid.expect("host ports have a PVID");
        for (to, other) in wiring.hosts.iter().enumerate() {
            let ends = (host.switch.place(), other.switch.place());
            let path = built::path(wiring, configuration, pvid, ends, Some(failed));
            match path {
                None if connected(wiring, ends, failed) => {
                    return Err(format!("host {from} does not reach host {to} in VLAN {pvid}"));
                }
                None => {}
                Some(path) => path.windows(2).for_each(|pair| {
                    graph.entry(pair[0]).or_default().insert(pair[1]);
                }),
            }
        }
    }
    for start in graph.keys() {
        let mut open: Vec<_> = graph[start].iter().collect();
        let mut seen = BTreeSet::new();
        while let Some(channel) = open.pop() {
            if channel == start {
                return Err(format!("{start:?} waits for itself"));
            }
            if seen.insert(channel) {
                open.extend(graph.get(channel).into_iter().flatten());
            }
        }
    }
    Ok(())
}

fn connected(wiring: &Wiring, (from, to): (usize, usize), failed: TrunkId) -> bool {
    let mut reached = BTreeSet::from([from]);
    loop {
        let before = reached.len();
        for (place, trunk) in wiring.trunks.iter().enumerate() {
            let [one, other] = [trunk.ends[0].switch.place(), trunk.ends[1].switch.place()];
            if TrunkId::new(place) != failed && (reached.contains(&one) || reached.contains(&other))
            {
                reached.extend([one, other]);
            }
        }
        if reached.len() == before {
            return reached.contains(&to);
        }
    }
}

#[test]
fn a_ring_that_loses_a_trunk_goes_on_in_the_tree_without_it() {
    let wiring = wiring("linux-bridge", 4, &RING);
    let trees: Vec<Vec<usize>> = (0..4).map(ring_without).collect();
    let configuration = configuration(&wiring, &trees, &[0, 0, 1, 1]);
    for plan in plan_failovers(&wiring, &configuration, None).unwrap() {
        let to = vlan(101 + plan.trunk.place());
        assert!(plan.moves.iter().all(|own| own.to == to && own.from != to), "{plan:?}");
        // Who is in that tree already stays there: two hosts on each of two switches.
        let stay = if plan.trunk.place() < 2 { 4 } else { 0 };
        assert_eq!(plan.moves.len(), 8 - stay);
        assert_eq!((plan.parts.len(), plan.unmanaged.len()), (0, 0));
        check(&wiring, &plan.applied(&wiring, &configuration), plan.trunk).unwrap();
        assert!(check(&wiring, &configuration, plan.trunk).is_err(), "moves are needed");
    }
}

#[test]
fn without_a_spare_tree_the_switch_and_the_trunk_are_named() {
    let wiring = wiring("linux-bridge", 4, &RING);
    let two = configuration(&wiring, &[ring_without(0), ring_without(1)], &[0, 0, 1, 1]);
    let error = plan_failover(&wiring, &two, TrunkId::new(2), None).unwrap_err();
    insta::assert_snapshot!(error, @"no VLAN reaches every host from `sw0` without the trunk `sw2:sw3`, though other trunks would; plan spare VLANs (`spare = true` in section `fabric`)");
}

#[test]
fn hosts_that_nothing_connects_any_more_are_named() {
    let wiring = wiring("linux-bridge", 4, &[(0, 1), (1, 2), (2, 3)]);
    let configuration = configuration(&wiring, &[vec![0, 1, 2]], &[0; 4]);
    let managed = Some(ManagedFrom { vlan: vlan(101), switch: SwitchId::new(0) });
    let plan = plan_failover(&wiring, &configuration, TrunkId::new(0), managed).unwrap();
    assert_eq!(plan.moves, vec![]);
    let hosts = |range: std::ops::Range<usize>| range.map(HostId::new).collect::<Vec<_>>();
    assert_eq!(plan.parts, [hosts(2..8), hosts(0..2)]);
    assert_eq!(plan.unmanaged, [1, 2, 3].map(SwitchId::new));
}

#[test]
fn only_vlans_in_which_hosts_are_known_are_used() {
    let wiring = wiring("linux-bridge", 4, &RING);
    let trees: Vec<Vec<usize>> = (0..4).map(ring_without).collect();
    let mut configuration = configuration(&wiring, &trees, &[0, 0, 1, 1]);
    configuration.priming =
        Priming::Broadcast(Box::new([101, 102, 103].map(vlan).into_iter().collect()));
    assert!(plan_failover(&wiring, &configuration, TrunkId::new(2), None).is_ok());
    let unprimed = plan_failover(&wiring, &configuration, TrunkId::new(3), None);
    assert!(matches!(unprimed, Err(FailoverError::NoVlan { .. })), "{unprimed:?}");
    let host = HostId::new;
    let on = |host| Representative { vlan: vlan(103), host };
    configuration.priming = Priming::Directed([0, 2, 4, 6].map(|place| on(host(place))).to_vec());
    assert!(plan_failover(&wiring, &configuration, TrunkId::new(2), None).is_ok());
    configuration.priming = Priming::Directed([0, 2, 4].map(|place| on(host(place))).to_vec());
    assert!(plan_failover(&wiring, &configuration, TrunkId::new(2), None).is_err());
}

/// A connected graph of five switches, spanning trees of it, and one for the hosts of each switch.
fn fabric() -> impl Strategy<Value = (Wiring, Configuration)> {
    let extra = prop::collection::btree_set((0_usize..5, 0_usize..5), 1..6);
    let orders = prop::collection::vec(Just((0..10).collect::<Vec<usize>>()).prop_shuffle(), 2..6);
    (extra, orders, prop::array::uniform5(any::<prop::sample::Index>())).prop_map(
        |(extra, orders, pvids)| {
            let chain = (0..4).map(|switch| (switch, switch + 1));
            let pairs: BTreeSet<(usize, usize)> = extra
                .into_iter()
                .map(|(one, other)| (one.min(other), one.max(other)))
                .filter(|(one, other)| one != other)
                .chain(chain)
                .collect();
            let pairs: Vec<(usize, usize)> = pairs.into_iter().collect();
            let wiring = wiring("linux-bridge", 5, &pairs);
            let trees: Vec<Vec<usize>> =
                orders.iter().map(|order| spanning_tree(&pairs, order)).collect();
            let pvids: Vec<usize> = pvids.iter().map(|pvid| pvid.index(trees.len())).collect();
            let configuration = configuration(&wiring, &trees, &pvids);
            (wiring, configuration)
        },
    )
}

/// The first trunks in this order that close no ring.
fn spanning_tree(pairs: &[(usize, usize)], order: &[usize]) -> Vec<usize> {
    let mut part: Vec<usize> = (0..5).collect();
    let mut tree = Vec::new();
    for &trunk in order.iter().filter(|trunk| **trunk < pairs.len()) {
        let (one, other) = (part[pairs[trunk].0], part[pairs[trunk].1]);
        if one != other {
            tree.push(trunk);
            part.iter_mut().filter(|own| **own == other).for_each(|own| *own = one);
        }
    }
    tree
}

proptest! {
    #[test]
    fn every_plan_restores_all_that_is_connected((wiring, configuration) in fabric()) {
        for place in 0..wiring.trunks.len() {
            let trunk = TrunkId::new(place);
            match plan_failover(&wiring, &configuration, trunk, None) {
                Ok(plan) => {
                    let after = plan.applied(&wiring, &configuration);
                    if !plan.moves.is_empty() {
                        prop_assert_eq!(check(&wiring, &after, trunk), Ok(()));
                    }
                }
                Err(FailoverError::NoVlan { .. }) => {
                    // Whatever all hosts use, some lose each other.
                    for tree in 101..110 {
                        let mut tried = configuration.clone();
                        let ports = tried.switches.iter_mut().flat_map(|own| &mut own.ports);
                        ports.filter(|port| port.pvid.is_some()).for_each(|port| port.pvid = Some(vlan(tree)));
                        prop_assert!(check(&wiring, &tried, trunk).is_err());
                    }
                }
                Err(error) => prop_assert!(false, "{}", error),
            }
        }
    }
}

/// Plans with spare VLANs, held against the checker: whichever trunk fails, the moves restore every
/// pair that is still connected, nothing floods, and no table is too small.
#[test]
fn the_checker_agrees_that_every_trunk_may_fail() {
    for topology in [
        "ring 4",
        "ring 6",
        "mesh 4x2",
        "torus 4x2",
        "hypercube 3",
        "complete 6",
        "leaf-spine 4+2",
        "tree 8",
        "random-regular 10 degree 3 seed 1",
        "torus 3x3",
    ] {
        let topology: meikyo_fabric::Topology = topology.parse().unwrap();
        let model = meikyo_fabric::SwitchModel::named("powerconnect-6248").unwrap();
        let wiring = meikyo_fabric::cable_uniform(&topology, &model, 3).unwrap();
        let mut options = meikyo_fabric::PlanOptions::new(Some(topology.clone()));
        options.spare = true;
        let plan = meikyo_fabric::plan(&wiring, &options).unwrap();
        let configuration = plan.configuration(&wiring);
        for own in plan_failovers(&wiring, &configuration, None).unwrap() {
            let after = own.applied(&wiring, &configuration);
            let report = meikyo_fabric::check(
                &wiring,
                &after,
                &meikyo_fabric::CheckOptions::failed(own.trunk),
            );
            assert_eq!(report.faults, vec![], "{topology}, trunk {}", own.trunk.place());
        }
    }
}
