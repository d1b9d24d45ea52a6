//! Plans against published counts, and against what is worked out here by other means.

use std::collections::{BTreeMap, BTreeSet};

use meikyo_cluster::{Routing, Tagging};
use meikyo_fabric::{
    CheckOptions, HostId, Plan, PlanError, PlanOptions, Priming, SwitchId, SwitchModel, Topology,
    TrunkId, Wiring, cable_uniform, check, plan,
};

pub(crate) fn wired(text: &str, hosts: usize) -> (Wiring, PlanOptions) {
    let topology: Topology = text.parse().expect("a topology");
    let mut model = SwitchModel::named("generic-256k").expect("a known model");
    model.ports = 1024;
    let wiring = cable_uniform(&topology, &model, hosts).expect("enough ports");
    (wiring, PlanOptions::new(Some(topology)))
}

pub(crate) fn planned(text: &str, hosts: usize) -> (Wiring, Plan) {
    let (wiring, options) = wired(text, hosts);
    let plan = plan(&wiring, &options).expect("a plan");
    (wiring, plan)
}

/// Where frames go from a switch in a VLAN: the trunks and directions to each switch, by a search of its
/// own; panics if the VLAN has a loop.
fn paths(
    wiring: &Wiring,
    trunks: &[TrunkId],
    from: SwitchId,
) -> BTreeMap<SwitchId, Vec<(TrunkId, bool)>> {
    let mut paths = BTreeMap::from([(from, Vec::new())]);
    let mut used = BTreeSet::new();
    loop {
        let mut found = None;
        for &trunk in trunks.iter().filter(|trunk| !used.contains(*trunk)) {
            let [one, other] = wiring.trunks[trunk.place()].ends.each_ref().map(|end| end.switch);
            for (near, far, forward) in [(one, other, true), (other, one, false)] {
                if let (Some(path), None) = (paths.get(&near), &found) {
                    found = Some((trunk, far, [path.as_slice(), &[(trunk, forward)]].concat()));
                }
            }
        }
        let Some((trunk, far, path)) = found else { return paths };
        used.insert(trunk);
        assert!(paths.insert(far, path).is_none(), "a VLAN has a loop");
    }
}

/// The path between every two switches with hosts, for every VLAN that is used between them.
pub(crate) fn all_paths(wiring: &Wiring, plan: &Plan) -> Vec<Vec<(TrunkId, bool)>> {
    let with_hosts: BTreeSet<SwitchId> = wiring.hosts.iter().map(|host| host.switch).collect();
    let mut all = Vec::new();
    for vlan in &plan.working {
        for &from in &vlan.sources {
            let mut paths = paths(wiring, &vlan.trunks, from);
            for to in &with_hosts {
                let path = paths.remove(to).expect("every host is reached");
                let at = |host: usize| wiring.hosts[host].switch;
                let sends = (0..wiring.hosts.len()).any(|host| {
                    at(host) == from
                        && if plan.tags.is_empty() {
                            plan.pvids[host] == vlan.vlan
                        } else {
                            plan.tags[host]
                                .iter()
                                .any(|(other, &tag)| at(other.place()) == *to && tag == vlan.vlan)
                        }
                });
                if sends && *to != from {
                    all.push(path);
                }
            }
        }
    }
    all
}

/// Whether some channels wait for each other in a cycle: by taking away those that nobody waits for.
pub(crate) fn deadlocks(paths: &[Vec<(TrunkId, bool)>]) -> bool {
    let mut waits: BTreeSet<_> =
        paths.iter().flat_map(|path| path.windows(2).map(|pair| (pair[0], pair[1]))).collect();
    loop {
        let waited_for: BTreeSet<_> = waits.iter().map(|&(_, after)| after).collect();
        let before = waits.len();
        waits.retain(|(before, _)| waited_for.contains(before));
        if waits.len() == before {
            return !waits.is_empty();
        }
    }
}

pub(crate) fn pair_count(wiring: &Wiring) -> usize {
    let with_hosts: BTreeSet<SwitchId> = wiring.hosts.iter().map(|host| host.switch).collect();
    with_hosts.len() * (with_hosts.len() - 1)
}

/// The topologies of the tests, the VLANs that the research table gives (or that a closed form does), and
/// whether these are the fewest by the search.
const COUNTS: [(&str, usize); 23] = [
    ("tree 8", 1),
    ("tree 2,3", 1),
    ("star 6", 1),
    ("ring 3", 3),
    ("ring 4", 2),
    ("ring 8", 2),
    ("ring 9", 3),
    ("mesh 4x2", 2),
    ("mesh 8x8", 8),
    ("mesh 3x3x3", 9),
    ("torus 4x2", 4),
    ("torus 4x4", 8),
    ("torus 4x4x4", 32),
    ("torus 8x8", 16),
    ("torus 5x3", 9),
    ("hypercube 3", 4),
    ("hypercube 6", 32),
    ("complete 6", 6),
    ("complete 8", 8),
    ("hyperx 8x8", 64),
    ("leaf-spine 48+16", 16),
    ("fat-tree 4", 4),
    ("fat-tree 8", 16),
];

#[test]
fn vlans_are_as_many_as_the_table_says() {
    for (text, vlans) in COUNTS {
        let (wiring, options) = wired(text, 4);
        // Tori with rings of more than 4 switches keep them if hosts are not to be spread.
        let is_searched = ["ring 9", "torus 8x8", "torus 5x3"].contains(&text);
        let spread = is_searched.then_some(1);
        let plan = plan(&wiring, &PlanOptions { spread, ..options }).expect("a plan");
        assert_eq!(plan.working.len(), vlans, "{text}");
    }
}

#[test]
fn all_pairs_are_joined_and_nothing_waits_in_a_cycle() {
    let more = ["dragonfly 9x4 global 2", "random-regular 16 degree 3 seed 2"];
    for text in COUNTS.map(|(text, _)| text).into_iter().chain(more) {
        let (wiring, plan) = planned(text, 2);
        let paths = all_paths(&wiring, &plan);
        assert!(paths.len() >= pair_count(&wiring), "{text}");
        assert!(!deadlocks(&paths), "{text}");
    }
}

#[test]
fn a_routing_that_could_deadlock_is_refused_with_the_cycle() {
    for (text, routing) in [
        ("ring 8", Routing::Minimal),
        ("ring 5", Routing::DimensionOrder),
        ("torus 8x8", Routing::DimensionOrder),
        ("random-regular 64 degree 8 seed 1", Routing::Minimal),
    ] {
        let (wiring, options) = wired(text, 2);
        let error = plan(&wiring, &PlanOptions { routing, ..options }).unwrap_err();
        assert!(matches!(error, PlanError::Deadlock { .. }), "{text}: {error}");
    }
    let (wiring, options) = wired("ring 5", 2);
    let error = plan(&wiring, &PlanOptions { routing: Routing::Minimal, ..options }).unwrap_err();
    assert_eq!(
        error.to_string(),
        "minimal routing could deadlock under pause frames: `s0` to `s1`, `s1` to `s2`, `s2` to \
         `s3`, `s3` to `s4`, `s4` to `s0`; `acyclic` would do"
    );
}

#[test]
fn without_pause_frames_shortest_paths_may_wait_in_a_cycle() {
    for (text, routing, vlans) in [
        ("ring 8", Routing::Auto, 4),
        ("torus 8x8", Routing::DimensionOrder, 32),
        ("ring 5", Routing::Minimal, 5),
    ] {
        let (wiring, options) = wired(text, 2);
        let options = PlanOptions { routing, flow_control: false, ..options };
        let plan = plan(&wiring, &options).unwrap();
        assert_eq!(plan.working.len(), vlans, "{text}");
        assert!(deadlocks(&all_paths(&wiring, &plan)));
        let report = check(&wiring, &plan.configuration(&wiring), &CheckOptions::INTACT);
        assert!(report.faults.is_empty(), "{text}: {:?}", report.faults);
    }
}

#[test]
fn the_order_of_dimensions_decides_how_many_vlans_there_are() {
    let (wiring, options) = wired("mesh 4x2", 2);
    for (dimensions, vlans) in [(vec![0, 1], 2), (vec![1, 0], 4)] {
        let options = PlanOptions { dimensions: Some(dimensions), ..options.clone() };
        assert_eq!(plan(&wiring, &options).unwrap().working.len(), vlans);
    }
}

#[test]
fn hosts_that_tag_need_fewer_vlans() {
    for (text, vlans) in [
        ("complete 6", 3),
        ("complete 8", 4),
        ("complete 7", 4),
        ("mesh 4x2", 4),
        ("torus 4x2", 4),
        ("hypercube 3", 5),
    ] {
        let (wiring, options) = wired(text, 2);
        let options = PlanOptions { tagging: Tagging::Host, ..options };
        let plan = plan(&wiring, &options).unwrap();
        assert!(plan.working.len() <= vlans, "{text}: {}", plan.working.len());
        let paths = all_paths(&wiring, &plan);
        assert_eq!(paths.len(), pair_count(&wiring), "{text}");
        assert!(!deadlocks(&paths), "{text}");
        for (host, tags) in plan.tags.iter().enumerate() {
            assert_eq!(tags.len(), wiring.hosts.len() - 2);
            assert!(!tags.contains_key(&HostId::new(host)));
        }
    }
}

#[test]
fn the_paper_s_cluster_is_planned_within_its_tables() {
    let topology: Topology = "complete 8".parse().unwrap();
    let model = SwitchModel::named("powerconnect-6248").unwrap();
    let wiring = cable_uniform(&topology, &model, 28).unwrap();
    let plan = plan(&wiring, &PlanOptions::new(Some(topology))).unwrap();
    // 224 hosts in 8 VLANs.
    assert_eq!(plan.table_entries, [1792; 8]);
    assert_eq!(
        plan.priming,
        Priming::Broadcast(Box::new(plan.working.iter().map(|vlan| vlan.vlan).collect()))
    );
    assert_eq!(plan.working[0].vlan.id(), 101);
    let configuration = plan.configuration(&wiring);
    let ports = &configuration.switches[0].ports;
    assert_eq!(ports[0].untagged.to_string(), "101-108");
    assert_eq!(ports[0].pvid.map(|vlan| vlan.id()), Some(101));
    // In complete graphs each trunk is in the two VLANs of its ends.
    assert_eq!(ports[28].tagged.to_string(), "101-102");
}

/// Frames of VLAN 1 go round where all switches of a loop keep their ports in it; one that can leave it
/// breaks the loop.
#[test]
fn switches_that_stay_in_vlan_1_are_joined_as_a_tree_only() {
    for (text, keep, refused) in [
        ("ring 4", vec![0, 1, 2, 3], true),
        ("ring 4", vec![0, 1, 2], false),
        ("star 4", vec![0, 1, 2, 3], false),
        ("complete 4", vec![1, 2, 3], true),
    ] {
        let (mut wiring, options) = wired(text, 2);
        for &switch in &keep {
            wiring.switches[switch].model.default_vlan_stays = true;
        }
        let error = plan(&wiring, &options).err();
        let is_refused = matches!(error, Some(PlanError::DefaultVlan { .. }));
        assert_eq!(is_refused, refused, "{text} {keep:?}: {error:?}");
        assert_eq!(error.is_some(), refused, "{text} {keep:?}: {error:?}");
    }
}
