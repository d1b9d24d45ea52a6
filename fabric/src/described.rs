//! From a cluster file to a wiring and to what is asked of a plan.

mod links;
mod models;

use meikyo_cluster::{Cluster, Device, DeviceKind, Fabric, Place, Stated};
use thiserror::Error;

use crate::{
    Bundling, CablingError, HostId, HostPart, Parts, PlanOptions, Switch, SwitchId, Topology, Vlan,
    VlanSet, Wiring, cable,
};

/// The fabric of a cluster file.
#[derive(Debug, Clone)]
pub struct Described {
    /// What is plugged into what.
    pub wiring: Wiring,
    /// What is asked of the plan.
    pub options: PlanOptions,
}

/// A cluster file describes no fabric, or one that cannot be wired.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DescribeError {
    /// The file has no section for it.
    #[error("the file has no section `[fabric]`")]
    Missing,
    /// A value does not fit.
    #[error("line {}: {key}: {text}", place.line)]
    Value {
        /// The line of the cluster file.
        place: Place,
        /// The key, with its section: `fabric.vlans`.
        key: &'static str,
        /// What is wrong, and what is allowed.
        text: String,
    },
    /// The topology cannot be cabled with the switches and hosts of the file.
    #[error("line {}: {text}", place.line)]
    Cabling {
        /// The line of the cluster file that names the topology.
        place: Place,
        /// What does not fit, with the numbers.
        text: CablingError,
    },
}

fn wrong(place: Place, key: &'static str, text: impl Into<String>) -> DescribeError {
    DescribeError::Value { place, key, text: text.into() }
}

/// The wiring of a cluster file, and what it asks of a plan.
///
/// # Errors
/// If the file describes no fabric, or one that cannot be wired, with the line.
pub fn describe(cluster: &Cluster) -> Result<Described, DescribeError> {
    let fabric = cluster.fabric.as_ref().ok_or(DescribeError::Missing)?;
    let of = |kind| cluster.devices.iter().filter(move |device: &&Device| device.kind == kind);
    let hosts: Vec<&Device> = of(DeviceKind::Host).collect();
    let switches = of(DeviceKind::Switch)
        .map(|device| {
            let model = models::model_of(fabric, device)?;
            Ok(Switch { name: device.name.clone(), model })
        })
        .collect::<Result<Vec<Switch>, DescribeError>>()?;
    let (wiring, topology) = match &fabric.topology {
        Some(topology) => {
            let (wiring, topology) = named(fabric, topology, switches, &hosts)?;
            (wiring, Some(topology))
        }
        None => (links::wire(fabric, switches, &hosts)?, None),
    };
    let options = options(fabric, topology, &wiring)?;
    Ok(Described { wiring, options })
}

/// The wiring of a topology by name.
fn named(
    fabric: &Fabric,
    stated: &Stated<String>,
    switches: Vec<Switch>,
    hosts: &[&Device],
) -> Result<(Wiring, Topology), DescribeError> {
    let place = stated.place;
    let topology: Topology = stated
        .value
        .parse()
        .map_err(|error| wrong(place, "fabric.topology", format!("{error}")))?;
    let graph = topology.graph();
    let with_hosts: Vec<usize> =
        (0..graph.switches()).filter(|&switch| graph.with_hosts[switch]).collect();
    let hosts = deal_out(fabric, hosts, &with_hosts)?;
    let parts = Parts {
        switches,
        hosts,
        ports_per_host: ports(&fabric.ports_per_host, "fabric.ports_per_host")?,
        cables_per_link: ports(&fabric.cables, "fabric.cables")?,
        rate: fabric.rate.value,
    };
    let wiring = cable(&graph, parts).map_err(|text| DescribeError::Cabling { place, text })?;
    Ok((wiring, topology))
}

fn ports(stated: &Stated<u32>, key: &'static str) -> Result<u16, DescribeError> {
    u16::try_from(stated.value)
        .map_err(|_| wrong(stated.place, key, format!("{} are too many", stated.value)))
}

/// Hosts in their order: so many on each switch, or all, the first switches one more where they cannot
/// be divided.
fn deal_out(
    fabric: &Fabric,
    hosts: &[&Device],
    switches: &[usize],
) -> Result<Vec<HostPart>, DescribeError> {
    let share =
        |at: usize| hosts.len() / switches.len() + usize::from(at < hosts.len() % switches.len());
    let mut shares: Vec<usize> = (0..switches.len()).map(share).collect();
    if let Some(stated) = &fabric.hosts_per_switch {
        let each = usize::try_from(stated.value).expect("machines of 32 bits and more");
        let needed = each.saturating_mul(switches.len());
        if needed != hosts.len() {
            let text = format!(
                "{each} hosts on each of {} switches are {needed}, the file has {}",
                switches.len(),
                hosts.len()
            );
            return Err(wrong(stated.place, "fabric.hosts_per_switch", text));
        }
        shares = vec![each; switches.len()];
    }
    let places = shares
        .iter()
        .zip(switches)
        .flat_map(|(&share, &switch)| std::iter::repeat_n(SwitchId::new(switch), share));
    Ok(hosts
        .iter()
        .zip(places)
        .map(|(host, switch)| HostPart { name: host.name.clone(), switch, mac: host.mac })
        .collect())
}

fn options(
    fabric: &Fabric,
    topology: Option<Topology>,
    wiring: &Wiring,
) -> Result<PlanOptions, DescribeError> {
    let vlans = fabric.vlans.as_ref().map(|stated| {
        let set = stated.value.parse::<VlanSet>().map_err(|error| error.to_string());
        let usable = set.and_then(|set| all_usable(set, wiring));
        usable.map_err(|text| wrong(stated.place, "fabric.vlans", text))
    });
    let management = fabric.management_vlan.as_ref().map(|stated| {
        u16::try_from(stated.value).ok().and_then(Vlan::new).ok_or_else(|| {
            let text = format!("{} is no VLAN", stated.value);
            wrong(stated.place, "fabric.management_vlan", text)
        })
    });
    let manager = fabric.manager.as_ref().map(|stated| {
        let place = wiring.hosts.iter().position(|host| host.name == stated.value);
        place.map(HostId::new).ok_or_else(|| {
            let text = format!("`{}` is linked to no switch", stated.value);
            wrong(stated.place, "fabric.manager", text)
        })
    });
    Ok(PlanOptions {
        routing: fabric.routing.value,
        tagging: fabric.tagging.value,
        vlans: vlans.transpose()?,
        management: management.transpose()?,
        manager: manager.transpose()?,
        spare: fabric.spare.value,
        bundling: match fabric.bundling.value {
            meikyo_cluster::BundleProtocol::Lacp => Bundling::Lacp,
            meikyo_cluster::BundleProtocol::Static => Bundling::Static,
        },
        flow_control: fabric.flow_control.value,
        ageing: fabric.ageing.as_ref().map(|stated| stated.value),
        ..PlanOptions::new(topology)
    })
}

/// The VLANs that may be used, if every switch can use all of them.
fn all_usable(vlans: VlanSet, wiring: &Wiring) -> Result<VlanSet, String> {
    let refuses = |switch: &&Switch| !vlans.difference(&switch.model.vlan_ids).is_empty();
    let Some(switch) = wiring.switches.iter().find(refuses) else { return Ok(vlans) };
    let allowed = &switch.model.vlan_ids;
    let (unusable, rest) = (vlans.difference(allowed), vlans.intersection(allowed));
    let why = if unusable.contains(Vlan::DEFAULT) {
        "; VLAN 1 is where every port is by default, and is kept off trunks"
    } else {
        ""
    };
    let remedy = if rest.is_empty() { String::new() } else { format!("; write \"{rest}\"") };
    let (name, model) = (&switch.name, &switch.model.name);
    Err(format!("`{name}` ({model}) allows {allowed}, not {unusable}{why}{remedy}"))
}
