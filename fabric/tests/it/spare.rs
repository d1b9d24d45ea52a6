//! Spare VLANs: for every trunk that can fail there is one that avoids it, known to all tables.

use std::collections::BTreeSet;

use meikyo_fabric::{
    CheckOptions, PlanError, PlanOptions, SwitchId, SwitchModel, Topology, TrunkId, Vlan, Wiring,
    cable_uniform, check, plan, plan_failovers, spare_trees,
};

use crate::plans::wired;

fn joins_all(wiring: &Wiring, trunks: &[TrunkId]) -> bool {
    let mut reached = BTreeSet::from([SwitchId::new(0)]);
    for _ in 0..wiring.switches.len() {
        for trunk in trunks {
            let [one, other] = wiring.trunks[trunk.place()].ends.each_ref().map(|end| end.switch);
            if reached.contains(&one) || reached.contains(&other) {
                reached.extend([one, other]);
            }
        }
    }
    reached.len() == wiring.switches.len()
}

#[test]
fn every_trunk_that_can_be_spared_is_avoided_by_a_tree() {
    for (text, trees_most) in
        [("ring 8", 8), ("mesh 4x2", 4), ("torus 4x4", 2), ("complete 6", 2), ("tree 8", 0)]
    {
        let (wiring, _) = wired(text, 1);
        let trees = spare_trees(&wiring);
        assert!(trees.len() <= trees_most, "{text}: {}", trees.len());
        for tree in &trees {
            assert_eq!(tree.len(), wiring.switches.len() - 1, "{text}");
            assert!(joins_all(&wiring, tree), "{text}");
        }
        let all = || (0..wiring.trunks.len()).map(TrunkId::new);
        for failed in all() {
            let others: Vec<TrunkId> = all().filter(|&trunk| trunk != failed).collect();
            let avoided = trees.iter().any(|tree| !tree.contains(&failed));
            assert_eq!(avoided, joins_all(&wiring, &others), "{text}");
        }
    }
}

#[test]
fn a_plan_with_spare_vlans_survives_the_failure_of_any_trunk() {
    for text in ["ring 5", "torus 4x4", "mesh 4x2", "leaf-spine 4+2", "complete 6"] {
        let (wiring, options) = wired(text, 2);
        let management = Vlan::new(100);
        let plan = plan(&wiring, &PlanOptions { spare: true, management, ..options }).unwrap();
        assert!(!plan.spare.is_empty(), "{text}");
        assert_eq!(plan.management.as_ref().unwrap().trunks.len(), wiring.switches.len() - 1);
        let configuration = plan.configuration(&wiring);
        let report = check(&wiring, &configuration, &CheckOptions::INTACT);
        assert!(report.faults.is_empty(), "{text}: {:?}", report.faults);
        assert!(
            report
                .table_entries
                .iter()
                .zip(&plan.table_entries)
                .all(|(&found, &planned)| { usize::try_from(found) == Ok(planned) })
        );
        for failover in plan_failovers(&wiring, &configuration, None).unwrap() {
            assert!(failover.parts.is_empty(), "{text}");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused_with_the_number_that_breaks() {
    let refused = |text: &str, hosts: usize, change: &dyn Fn(&mut SwitchModel), spare: bool| {
        let topology: Topology = text.parse().unwrap();
        let mut model = SwitchModel::named("powerconnect-6248").unwrap();
        change(&mut model);
        let wiring = cable_uniform(&topology, &model, hosts).unwrap();
        let options = PlanOptions { spare, ..PlanOptions::new(Some(topology)) };
        plan(&wiring, &options).unwrap_err().to_string()
    };
    assert_eq!(
        refused("complete 8", 28, &|model| model.vlans = 9, true),
        "10 VLANs are needed (8 working, 2 spare, 0 for management), 9 can be used (`s0` is a \
         powerconnect-6248)"
    );
    assert_eq!(
        refused("complete 8", 28, &|model| model.multi_untagged = false, false),
        "`s0` (powerconnect-6248) allows one untagged VLAN on a port, 8 are needed; a tree, which \
         needs 1, would do, or switches that allow several"
    );
    assert_eq!(
        refused("ring 4", 40, &|model| model.table_entries = 200, false),
        "`s0` (powerconnect-6248) would hold 280 table entries (160 hosts in 2 VLANs, primed by \
         directed frames), it has 200: 114 hosts would fit, or a model with 280 entries"
    );
    let (mut wiring, options) = wired("ring 4", 1);
    wiring.trunks.truncate(1);
    assert_eq!(
        plan(&wiring, &options).unwrap_err(),
        PlanError::Apart { from: "s0".into(), to: "s2".into() }
    );
}
