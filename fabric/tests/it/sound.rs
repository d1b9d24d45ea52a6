//! Whatever the graph, a plan is sound: in the eyes of the checker, which knows only the settings, and
//! in those of a search that knows only the VLANs.

use meikyo_cluster::{Routing, Tagging};
use meikyo_fabric::{
    CheckOptions, Parts, Pattern, PlanError, PlanOptions, Priming, SwitchGraph, SwitchModel,
    Topology, Wiring, cable, check, loads, plan,
};
use proptest::prelude::*;

use crate::fewest::graphs;
use crate::plans::{all_paths, deadlocks, pair_count};

fn sound(wiring: &Wiring, options: &PlanOptions) -> Result<(), TestCaseError> {
    let plan = match plan(wiring, options) {
        Ok(plan) => plan,
        // Refused, and rightly so: other tests say when.
        Err(PlanError::Deadlock { .. } | PlanError::Tables { .. }) => return Ok(()),
        Err(error) => return Err(TestCaseError::fail(error.to_string())),
    };
    let paths = all_paths(wiring, &plan);
    prop_assert!(paths.len() >= pair_count(wiring));
    prop_assert!(!deadlocks(&paths));
    let configuration = plan.configuration(wiring);
    let report = check(wiring, &configuration, &CheckOptions::INTACT);
    prop_assert!(report.faults.is_empty(), "{:?}", report.faults);
    let entries = plan.table_entries.iter().map(|&entries| u64::try_from(entries));
    let entries: Vec<u64> = entries.collect::<Result<_, _>>().expect("64 bits are enough");
    if options.tagging == Tagging::Switch {
        prop_assert_eq!(&report.table_entries, &entries);
    } else {
        prop_assert!(report.table_entries.iter().zip(&entries).all(|(found, most)| found <= most));
    }
    let ours = loads(wiring, &plan, Pattern::AllToAll);
    for load in &report.loads {
        let trunk = &wiring.trunks[load.trunk.place()];
        let direction = usize::from(trunk.ends[0].switch != load.from);
        prop_assert_eq!(ours.pairs[load.trunk.place()][direction], load.pairs);
    }
    Ok(())
}

fn wired(graph: &SwitchGraph, hosts: usize, cables_per_link: u16, table_entries: u32) -> Wiring {
    let mut model = SwitchModel::named("generic").expect("a known model");
    model.table_entries = table_entries;
    let parts = Parts { cables_per_link, ..Parts::uniform(graph, &model, hosts) };
    cable(graph, parts).expect("enough ports")
}

fn routings() -> impl Strategy<Value = Routing> {
    prop_oneof![
        Just(Routing::Auto),
        Just(Routing::Minimal),
        Just(Routing::UpDown),
        Just(Routing::Acyclic),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn plans_of_any_small_graph_are_sound(
        graph in graphs(),
        hosts in 1_usize..4,
        cables in 1_u16..3,
        routing in routings(),
        host_tagged in any::<bool>(),
        spare in any::<bool>(),
    ) {
        let wiring = wired(&graph, hosts, cables, 100_000);
        let tagging = if host_tagged { Tagging::Host } else { Tagging::Switch };
        let options = PlanOptions { routing, tagging, spare, ..PlanOptions::new(None) };
        sound(&wiring, &options)?;
    }

    #[test]
    fn plans_that_need_directed_priming_are_sound(
        topology in prop_oneof![
            Just("ring 8"), Just("torus 5x3"), Just("mesh 3x3"), Just("complete 6"),
            Just("leaf-spine 5+3"), Just("fat-tree 4"), Just("dragonfly 5x2 global 2"),
            Just("random-regular 12 degree 3 seed 5"), Just("hyperx 3x3"),
        ],
        hosts in 1_usize..4,
        share in 1_u32..10,
        spare in any::<bool>(),
    ) {
        let topology: Topology = topology.parse().unwrap();
        let graph = topology.graph();
        let options = PlanOptions { spare, ..PlanOptions::new(Some(topology)) };
        // As many entries as broadcast priming takes, and less and less.
        let plenty = wired(&graph, hosts, 1, 100_000);
        let all = plan(&plenty, &options).unwrap();
        let most = u32::try_from(all.table_entries.iter().max().copied().unwrap_or(0)).unwrap();
        let less = wired(&graph, hosts, 1, most * share / 10);
        if let Ok(plan) = plan(&less, &options) {
            prop_assert!(!matches!(plan.priming, Priming::None) || plan.working.len() == 1);
        }
        sound(&less, &options)?;
    }
}
