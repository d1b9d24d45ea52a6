//! Generated configurations on real bridges: paths, copies, floods, tables, failures.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use meikyo_fabric::dialect::port_interface;
use meikyo_fabric::{CheckOptions, Priming, TrunkId, Verdict, check, plan_failover};
use meikyo_lab::{Done, Purpose, Task, VerifyOptions, verify};

use crate::running::{Fabric, Lab, fabric, lab, lab_of, without_priming};

const OPTIONS: VerifyOptions = VerifyOptions { pairs_max: 300, quiet_ms: 4, patience_ms: 2_000 };

/// Verifies a fabric of these switches, and gives the lab for more.
fn holds(topology: &str, hosts: usize) -> Option<(Fabric, Lab)> {
    let fabric = fabric(topology, hosts, |options| options.spare = true);
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
}

#[test]
fn a_torus_4x2_holds() {
    let Some((fabric, lab)) = holds("torus 4x2", 1) else { return };
    survives(&fabric, &lab, TrunkId::new(0));
}

#[test]
fn a_mesh_4x2_holds() {
    let Some((fabric, lab)) = holds("mesh 4x2", 2) else { return };
    survives(&fabric, &lab, TrunkId::new(3));
}

#[test]
fn a_complete_graph_of_6_holds() {
    let Some((fabric, lab)) = holds("complete 6", 2) else { return };
    survives(&fabric, &lab, TrunkId::new(7));
}

#[test]
fn a_tree_holds() {
    // One VLAN: what hosts say teaches switches all there is to know, and nothing needs priming.
    let fabric = fabric("tree 8", 2, |_| {});
    let Some(lab) = lab(&fabric, None) else { return };
    let (wiring, configuration) = (&fabric.wiring, &fabric.configuration);
    let found = verify(&lab.directory, &lab.roles, wiring, configuration, &OPTIONS).unwrap();
    assert!(found.good, "{found:?}");
}

#[test]
fn a_leaf_spine_holds() {
    holds("leaf-spine 4+2", 3);
}

#[test]
fn two_random_graphs_hold() {
    for topology in ["random-regular 8 degree 3 seed 1", "random-regular 10 degree 4 seed 2"] {
        holds(topology, 1);
    }
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
/// promises. Then undoes both.
fn survives(fabric: &Fabric, lab: &Lab, trunk: TrunkId) {
    let wiring = &fabric.wiring;
    let failover = plan_failover(wiring, &fabric.configuration, trunk, None).unwrap();
    let after = failover.applied(wiring, &fabric.configuration);
    let blueprint = lab.directory.blueprint().unwrap();
    let switches: Vec<usize> =
        wiring.trunks[trunk.place()].ends.iter().map(|end| end.switch.place()).collect();
    let cables: Vec<usize> = (0..blueprint.cables.len())
        .filter(|&cable| {
            let cable = &blueprint.cables[cable];
            let joined: Vec<usize> = cable.ends.iter().map(|end| end.space).collect();
            cable.purpose == Purpose::Trunk && joined == switches
        })
        .collect();
    assert_eq!(cables.len(), 1);
    let set = |up| lab.ask(&Task::SetCable { cable: cables[0], up });
    set(false);
    let lost = pinged(lab);
    assert!(!lost.is_empty(), "a trunk that is cut is missed");
    let move_ports = |to_spare: bool| {
        for one in &failover.moves {
            let host = &wiring.hosts[one.host.place()];
            let switch = &wiring.switches[host.switch.place()].name;
            let vlan = if to_spare { one.to } else { one.from };
            let line = format!(
                "vlan add dev {} vid {vlan} pvid untagged\n",
                port_interface(host.ports[0])
            );
            let said = lab.exec(Some(switch), &["bridge", "-batch", "-"], line.as_bytes());
            assert_eq!(said.code, 0, "{}", String::from_utf8_lossy(&said.errors));
        }
    };
    let began = meikyo_units::WallTime::now();
    move_ports(true);
    meikyo_lab::prime(&lab.directory, &lab.roles, wiring, &after).unwrap();
    let took = meikyo_units::WallTime::now().since(began);
    assert!(failover.parts.is_empty(), "these graphs stay whole");
    let lost = pinged_at_last(lab);
    assert_eq!(lost, Vec::new(), "{trunk:?}: {} moves in {took}", failover.moves.len());
    move_ports(false);
    set(true);
    assert_eq!(pinged_at_last(lab), Vec::new());
}

/// The pairs that do not answer however often they are asked; on a busy machine user-mode Linux is late
/// now and then.
fn pinged_at_last(lab: &Lab) -> Vec<(usize, usize)> {
    let mut lost = pinged(lab);
    for _ in 0..20 {
        if lost.is_empty() {
            break;
        }
        lost = pinged(lab);
    }
    lost
}

fn pinged(lab: &Lab) -> Vec<(usize, usize)> {
    match lab.ask(&Task::PingAll { patience_ms: 500 }) {
        Done::Pinged { lost, .. } => lost,
        done => panic!("{done:?}"),
    }
}
