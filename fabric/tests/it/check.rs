//! What the checker says of good configurations is what the emulator does.

use std::collections::BTreeMap;

use meikyo_fabric::check::path;
use meikyo_fabric::emulator::{Emulator, harm};
use meikyo_fabric::{
    Bundling, CheckOptions, Fault, HostId, PlanOptions, SwitchId, Topology, TrunkId, Verdict,
    cable_uniform, check, plan, plan_failovers,
};

use crate::random::Random;
use crate::shapes::{Style, good, planned, shapes};

pub(crate) fn styles() -> impl Iterator<Item = Style> {
    [1, 2].into_iter().flat_map(|cables| {
        [false, true].into_iter().flat_map(move |directed| {
            [(false, Bundling::Static), (true, Bundling::Lacp)].map(
                |(host_tagged, host_bundling)| Style {
                    cables,
                    directed,
                    host_tagged,
                    host_bundling,
                },
            )
        })
    })
}

#[test]
fn good_configurations_are_good_and_do_what_the_report_says() {
    for shape in shapes(&mut Random::new(1)) {
        for style in styles() {
            let (wiring, configuration) = good(&shape, style);
            let report = check(&wiring, &configuration, &CheckOptions::INTACT);
            let said: Vec<_> =
                report.faults.iter().map(|f| f.in_words(&wiring).to_string()).collect();
            assert_eq!(said, [""; 0], "{} {style:?}", shape.name);
            assert_eq!(harm(&wiring, &configuration), [], "{} {style:?}", shape.name);
            assert_eq!(report.verdict(), Verdict::Good);
            assert!(report.deadlock_free && report.followed);

            let mut emulator = Emulator::new(&wiring, &configuration);
            emulator.announce();
            emulator.prime();
            let hosts = || (0..wiring.hosts.len()).map(HostId::new);
            let mut loads = BTreeMap::new();
            for from in hosts() {
                for to in hosts().filter(|&to| to != from) {
                    let journey = emulator.unicast(from, to);
                    assert_eq!(
                        journey.received,
                        [(to, None)],
                        "one copy, and no other host gets one"
                    );
                    assert_eq!(journey.floods, []);
                    let hops = path(&wiring, &configuration, from, to).unwrap();
                    let predicted: Vec<_> = hops.iter().map(|hop| (hop.from, hop.to)).collect();
                    let crossings = journey.crossings.iter().map(|(crossing, _)| *crossing);
                    let taken: Vec<_> =
                        crossings.clone().map(|c| (c.from.switch, c.to.switch)).collect();
                    assert_eq!(taken, predicted);
                    taken.into_iter().for_each(|ends| *loads.entry(ends).or_insert(0) += 1);
                }
            }
            for load in &report.loads {
                let pairs = loads.get(&(load.from, load.to)).copied().unwrap_or(0);
                assert_eq!(load.pairs, pairs, "{} {style:?} {load:?}", shape.name);
                assert_eq!(load.cables, usize::from(style.cables));
            }
            for place in 0..wiring.switches.len() {
                let entries = emulator.entries(SwitchId::new(place));
                assert_eq!(report.table_entries[place], u64::try_from(entries).unwrap());
            }
        }
    }
}

#[test]
fn a_fault_is_said_in_words_with_its_places() {
    let shape = &shapes(&mut Random::new(1))[0];
    let (wiring, mut configuration) = good(shape, crate::shapes::PLAIN);
    // The ring is closed in VLAN 101.
    let vlan = crate::shapes::vlan(101);
    for switch in &mut configuration.switches {
        switch.ports.iter_mut().filter(|port| port.pvid.is_none()).for_each(|port| {
            port.tagged.insert(vlan);
        });
    }
    let report = check(&wiring, &configuration, &CheckOptions::INTACT);
    let [fault @ Fault::Loop { .. }] = &report.faults[..] else { panic!("{:?}", report.faults) };
    assert_eq!(
        fault.in_words(&wiring).to_string(),
        "frames go round: in VLAN 101 `s1`, `s2`, `s3`, `s0`, and back to `s1`"
    );
}

#[test]
fn what_the_planner_makes_is_good() {
    for seed in 101..=140 {
        let (name, wiring, configuration) = planned(&mut Random::new(seed));
        let report = check(&wiring, &configuration, &CheckOptions::INTACT);
        let said: Vec<_> = report.faults.iter().map(|f| f.in_words(&wiring).to_string()).collect();
        assert_eq!(said, [""; 0], "{name}");
        assert_eq!(harm(&wiring, &configuration), [], "{name}");
    }
}

#[test]
fn failure_plans_hold_as_single_frames_say() {
    let mut checked = 0;
    for (text, hosts) in [("ring 4", 2), ("torus 4x2", 2), ("complete 5", 1), ("leaf-spine 4+3", 2)]
    {
        let topology: Topology = text.parse().unwrap();
        let wiring = cable_uniform(&topology, &crate::shapes::model(), hosts).unwrap();
        let mut options = PlanOptions::new(Some(topology));
        options.spare = true;
        let configuration = plan(&wiring, &options).unwrap().configuration(&wiring);
        for failover in plan_failovers(&wiring, &configuration, None).unwrap() {
            let after = failover.applied(&wiring, &configuration);
            let report = check(&wiring, &after, &CheckOptions::failed(failover.trunk));
            let said: Vec<_> =
                report.faults.iter().map(|f| f.in_words(&wiring).to_string()).collect();
            assert_eq!(said, [""; 0], "{text} without {:?}", failover.trunk);
            let mut without = wiring.clone();
            without.trunks[failover.trunk.place()]
                .ends
                .iter_mut()
                .for_each(|end| end.ports.clear());
            assert_eq!(harm(&without, &after), [], "{text} without {:?}", failover.trunk);
            // Nobody has moved yet: some pairs are lost.
            let before = check(&wiring, &configuration, &CheckOptions::failed(failover.trunk));
            let is_lost = |fault: &Fault| matches!(fault, Fault::Unreachable { .. });
            assert_eq!(before.faults.iter().any(is_lost), !failover.moves.is_empty());
            assert_eq!(!harm(&without, &configuration).is_empty(), !before.faults.is_empty());
            checked += 1;
        }
    }
    assert_eq!(checked, 4 + 12 + 10 + 12);
}

#[test]
fn hosts_that_no_trunk_connects_need_not_reach_each_other() {
    let topology: Topology = "tree 6".parse().unwrap();
    let wiring = cable_uniform(&topology, &crate::shapes::model(), 2).unwrap();
    let plan = plan(&wiring, &PlanOptions::new(Some(topology))).unwrap();
    let configuration = plan.configuration(&wiring);
    for trunk in (0..wiring.trunks.len()).map(TrunkId::new) {
        let report = check(&wiring, &configuration, &CheckOptions::failed(trunk));
        assert_eq!(report.faults, []);
    }
}
