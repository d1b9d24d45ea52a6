//! The fabric of a cluster file as the page draws it.

use meikyo_cluster::Cluster;
use meikyo_console::failure::Failure;
use meikyo_fabric::{
    Described, Plan, SwitchId, TrunkEnd, TrunkId, Wiring, describe, dialect, plan, positions,
};
use meikyo_server::{FabricBody, FabricEndBody, FabricSwitchBody, FabricTrunkBody, FabricVlanBody};

/// What the page draws of the cluster's fabric.
///
/// # Errors
/// If the file describes no fabric, or one that cannot be planned.
pub(crate) fn shown(cluster: &Cluster) -> Result<FabricBody, Failure> {
    let Described { wiring, options } = describe(cluster)
        .map_err(|error| Failure::new(super::misdescribed(&cluster.path, &error)))?;
    let layout = options.topology.as_ref().map(meikyo_fabric::Topology::layout);
    let plan = plan(&wiring, &options)?;
    let trunks = (0..wiring.trunks.len()).map(TrunkId::new);
    Ok(FabricBody {
        name: cluster.name.clone(),
        switches: switches(&wiring, &positions(&wiring, layout.as_ref())),
        trunks: trunks.map(|trunk| trunk_body(&wiring, &plan, trunk)).collect(),
        vlans: vlans(&plan),
    })
}

fn switches(wiring: &Wiring, at: &[(f64, f64)]) -> Vec<FabricSwitchBody> {
    let mut hosts: Vec<Vec<String>> = vec![Vec::new(); wiring.switches.len()];
    for host in &wiring.hosts {
        hosts[host.switch.place()].push(host.name.clone());
    }
    wiring
        .switches
        .iter()
        .zip(hosts)
        .zip(at)
        .map(|((switch, hosts), &(x, y))| FabricSwitchBody {
            name: switch.name.clone(),
            x,
            y,
            hosts: hosts.len(),
            host_names: meikyo_cluster::fold(&hosts),
        })
        .collect()
}

fn trunk_body(wiring: &Wiring, plan: &Plan, trunk: TrunkId) -> FabricTrunkBody {
    let own = &wiring.trunks[trunk.place()];
    let end = |end: &TrunkEnd| {
        let model = &wiring.switches[end.switch.place()].model;
        let names = end.ports.iter().map(|&port| dialect::interface_name(model, port));
        FabricEndBody { switch: end.switch.place(), interfaces: names.collect() }
    };
    let cables = own.cables() as u64;
    let runs = |planned: &&meikyo_fabric::PlannedVlan| planned.trunks.contains(&trunk);
    FabricTrunkBody {
        ends: own.ends.each_ref().map(end),
        rate_bits_per_s: wiring.rate.get().saturating_mul(cables),
        vlans: planned(plan)
            .map(|(_, planned)| planned)
            .filter(runs)
            .map(|of| of.vlan.id())
            .collect(),
    }
}

/// The VLANs of a plan with what they are for.
fn planned(plan: &Plan) -> impl Iterator<Item = (&'static str, &meikyo_fabric::PlannedVlan)> {
    let working = plan.working.iter().map(|planned| ("frames", planned));
    let spare = plan.spare.iter().map(|planned| ("failures", planned));
    working.chain(spare).chain(plan.management.iter().map(|planned| ("management", planned)))
}

fn vlans(plan: &Plan) -> Vec<FabricVlanBody> {
    planned(plan)
        .map(|(purpose, planned)| FabricVlanBody {
            vlan: planned.vlan.id(),
            purpose,
            sources: planned.sources.iter().copied().map(SwitchId::place).collect(),
        })
        .collect()
}
