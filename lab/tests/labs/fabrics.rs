//! Generated configurations on real bridges: paths, copies, floods, tables, failures.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::collections::BTreeSet;

use meikyo_cluster::Tagging;
use meikyo_fabric::check::path;
use meikyo_fabric::{
    CheckOptions, HostId, HostSettings, PlanOptions, Priming, Representative, TrunkId, Verdict,
    check,
};
use meikyo_lab::{VerifyOptions, fail_over, verify};

use crate::mpi::puts_the_planned_bytes_on_every_trunk;
use crate::running::{Fabric, Lab, fabric, lab, lab_of, without_priming};

const OPTIONS: VerifyOptions = VerifyOptions { pairs_max: 300, quiet_ms: 4, patience_ms: 2_000 };
/// How long an answer is waited for while a trunk is cut: most of the pairs that use it have none.
const PATIENCE_MS: u32 = 500;

/// Verifies a fabric of these switches, and gives the lab for more.
fn holds(topology: &str, hosts: usize) -> Option<(Fabric, Lab)> {
    holds_with(topology, hosts, |options| options.spare = true)
}

fn holds_with(
    topology: &str,
    hosts: usize,
    change: impl FnOnce(&mut PlanOptions),
) -> Option<(Fabric, Lab)> {
    holds_planned(topology, fabric(topology, hosts, change))
}

fn holds_planned(topology: &str, fabric: Fabric) -> Option<(Fabric, Lab)> {
    let report = check(&fabric.wiring, &fabric.configuration, &CheckOptions::INTACT);
    assert_eq!(report.verdict(), Verdict::Good, "{topology}: {:?}", report.faults);
    let lab = lab(&fabric, None)?;
    let (wiring, configuration) = (&fabric.wiring, &fabric.configuration);
    let found = verify(&lab.directory, &lab.roles, wiring, configuration, &OPTIONS).unwrap();
    let all = fabric.wiring.hosts.len();
    assert_eq!(found.pairs_without_answer, Vec::<String>::new(), "{topology}");
    assert_eq!(found.broadcast_copies, u64::try_from(all * (all - 1)).unwrap(), "{topology}");
    assert_eq!(found.pairs_elsewhere, Vec::<String>::new(), "{topology}");
    assert_eq!(found.flooded_copies, 0, "{topology}");
    assert!(found.flooded_copies_unprimed > 0, "{topology}: nothing floods even without priming");
    let sizes: Vec<u64> =
        found.table_entries.iter().map(|&size| u64::try_from(size).unwrap()).collect();
    assert_eq!(sizes, found.table_entries_due, "{topology}");
    assert!(found.good, "{topology}");
    Some((fabric, lab))
}

#[test]
fn a_ring_of_4_holds_and_survives_every_trunk() {
    let Some((fabric, lab)) = holds("ring 4", 2) else { return };
    for trunk in 0..fabric.wiring.trunks.len() {
        survives(&fabric, &lab, TrunkId::new(trunk));
    }
    puts_the_planned_bytes_on_every_trunk("ring 4", &fabric, &lab);
}

#[test]
fn a_torus_4x2_holds() {
    let Some((fabric, lab)) = holds("torus 4x2", 1) else { return };
    survives(&fabric, &lab, TrunkId::new(0));
    puts_the_planned_bytes_on_every_trunk("torus 4x2", &fabric, &lab);
}

#[test]
fn a_mesh_4x2_holds() {
    let Some((fabric, lab)) = holds("mesh 4x2", 1) else { return };
    survives(&fabric, &lab, TrunkId::new(3));
    puts_the_planned_bytes_on_every_trunk("mesh 4x2", &fabric, &lab);
}

#[test]
fn a_complete_graph_of_6_holds() {
    let Some((fabric, lab)) = holds("complete 6", 2) else { return };
    survives(&fabric, &lab, TrunkId::new(7));
    puts_the_planned_bytes_on_every_trunk("complete 6", &fabric, &lab);
}

#[test]
fn a_tree_holds() {
    // One VLAN: what hosts say teaches switches all there is to know, and nothing needs priming.
    let fabric = fabric("tree 8", 1, |_| {});
    let Some(lab) = lab(&fabric, None) else { return };
    let (wiring, configuration) = (&fabric.wiring, &fabric.configuration);
    let found = verify(&lab.directory, &lab.roles, wiring, configuration, &OPTIONS).unwrap();
    assert!(found.good, "{found:?}");
    puts_the_planned_bytes_on_every_trunk("tree 8", &fabric, &lab);
}

#[test]
fn a_leaf_spine_holds() {
    let Some((fabric, lab)) = holds("leaf-spine 4+2", 3) else { return };
    puts_the_planned_bytes_on_every_trunk("leaf-spine 4+2", &fabric, &lab);
}

#[test]
fn two_random_graphs_hold() {
    for topology in ["random-regular 8 degree 3 seed 1", "random-regular 10 degree 4 seed 2"] {
        let Some((fabric, lab)) = holds(topology, 1) else { return };
        puts_the_planned_bytes_on_every_trunk(topology, &fabric, &lab);
    }
}

#[test]
fn hosts_that_tag_their_frames_choose_the_path_by_the_receiver() {
    for (topology, hosts) in [("ring 4", 2), ("torus 4x2", 1)] {
        let tags = |options: &mut PlanOptions| options.tagging = Tagging::Host;
        let Some((fabric, lab)) = holds_with(topology, hosts, tags) else { return };
        // The kernel has as many rules for each VLAN as the host has receivers in it.
        for (place, settings) in fabric.configuration.hosts.iter().enumerate() {
            let HostSettings::Tagged(tags) = settings else { panic!("{topology}: {settings:?}") };
            let name = &fabric.wiring.hosts[place].name;
            let shown = ["tc", "-s", "filter", "show", "dev", "eth0", "egress"];
            let said = lab.exec(Some(name), &shown, b"");
            let text = String::from_utf8(said.output).unwrap();
            let of = |words: &str| text.lines().filter(|line| line.contains(words)).count();
            for vlan in tags.values().collect::<BTreeSet<_>>() {
                let chosen = tags.values().filter(|other| *other == vlan).count();
                assert_eq!(of(&format!("vlan  push id {vlan} ")), chosen, "{topology}: {text}");
            }
        }
    }
}

#[test]
fn hosts_that_tag_their_frames_leave_those_alone_that_have_a_tag() {
    // A frame that primes has its tag already, also one to a host that has a rule.
    let mut fabric = fabric("ring 4", 2, |options| options.tagging = Tagging::Host);
    let vlans = fabric.configuration.switches[0].vlans.clone();
    let first = (0..8).step_by(2).map(HostId::new);
    let representatives =
        first.flat_map(|host| vlans.iter().map(move |vlan| Representative { vlan, host }));
    fabric.configuration.priming = Priming::Directed(representatives.collect());
    holds_planned("ring 4", fabric);
}

#[test]
fn without_priming_frames_flood_for_ever() {
    let fabric = fabric("ring 4", 2, |_| {});
    let Some(lab) = lab_of(&fabric.wiring, &without_priming(&fabric), None) else { return };
    let (wiring, configuration) = (&fabric.wiring, without_priming(&fabric));
    let found = verify(&lab.directory, &lab.roles, wiring, &configuration, &OPTIONS).unwrap();
    assert_eq!(configuration.priming, Priming::None);
    assert!(found.pairs_without_answer.is_empty(), "everybody is heard, and by too many");
    assert!(found.flooded_copies > 0);
    assert!(!found.good);
}

/// Cuts a trunk: pairs are lost. Moves ports as the failure plan says: all pairs are back that it
/// promises, and how long that took is printed. Then both are undone.
fn survives(fabric: &Fabric, lab: &Lab, trunk: TrunkId) {
    let wiring = &fabric.wiring;
    let configuration = &fabric.configuration;
    let found =
        fail_over(&lab.directory, &lab.roles, wiring, configuration, trunk, PATIENCE_MS).unwrap();
    let hosts = wiring.hosts.len();
    assert_eq!(found.pairs_promised, hosts * (hosts - 1), "these graphs stay whole");
    assert_eq!(found.pairs_lost_at_cut, pairs_over(fabric, trunk), "a trunk that is cut is missed");
    assert_eq!(found.pairs_not_restored, Vec::<String>::new(), "{trunk:?}");
    assert_eq!(found.pairs_lost_after_mending, Vec::<String>::new(), "{trunk:?}");
    assert!(found.noticed_us < found.applied_us && Some(found.applied_us) < found.answered_us);
    assert!(found.good);
    #[expect(clippy::print_stdout, reason = "a measurement: docs/benchmarks.md has some of them")]
    {
        println!(
            "{trunk:?}: {} pairs lost; {} ports moved {} us after the cut, all answer after {} us",
            found.pairs_lost_at_cut,
            found.ports_moved,
            found.applied_us,
            found.answered_us.unwrap_or_default(),
        );
    }
}

/// How many pairs talk over a trunk, one way or the other: pings need both.
fn pairs_over(fabric: &Fabric, trunk: TrunkId) -> usize {
    let hosts = || (0..fabric.wiring.hosts.len()).map(HostId::new);
    let crosses = |from, to| {
        let hops = path(&fabric.wiring, &fabric.configuration, from, to).unwrap_or_default();
        hops.iter().any(|hop| hop.trunk == trunk)
    };
    let pairs = hosts().flat_map(|from| hosts().map(move |to| (from, to)));
    pairs.filter(|&(from, to)| from != to && (crosses(from, to) || crosses(to, from))).count()
}
