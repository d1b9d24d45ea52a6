//! From a graph of switches to ports and cables.
//!
//! Hosts take the ports of their switch from 1 up, in their order; trunks the highest ports, in the
//! order of their far ends, so that a host that is added moves no trunk. Nothing here depends on
//! chance: the same input gives the same cables.

use meikyo_cluster::MacAddress;
use meikyo_units::BitsPerSecond;
use thiserror::Error;

use crate::{
    Host, PortNumber, Switch, SwitchGraph, SwitchId, SwitchModel, Topology, Trunk, TrunkEnd, Wiring,
};

/// What is to be cabled.
#[derive(Debug, Clone)]
pub struct Parts {
    /// The switches, in the order of the graph.
    pub switches: Vec<Switch>,
    /// The hosts, switch by switch or not.
    pub hosts: Vec<HostPart>,
    /// Ports of the switch that each host has; several are a bundle.
    pub ports_per_host: u16,
    /// Cables for each link of the topology; several are a bundle.
    pub cables_per_link: u16,
    /// The rate of one port.
    pub rate: BitsPerSecond,
}

/// A host that is to be cabled.
#[derive(Debug, Clone)]
pub struct HostPart {
    /// Its name in the cluster file.
    pub name: String,
    /// The switch that it is plugged into.
    pub switch: SwitchId,
    /// Its Ethernet address, if it is known.
    pub mac: Option<MacAddress>,
}

impl Parts {
    /// Switches `s0`, `s1`, ... of one model, and so many hosts `h0`, `h1`, ... on each switch of the
    /// graph that has some; one port for each, one cable for each link, 1 Gbit/s.
    pub fn uniform(graph: &SwitchGraph, model: &SwitchModel, hosts_per_switch: usize) -> Self {
        let switches = (0..graph.switches())
            .map(|at| Switch { name: format!("s{at}"), model: model.clone() })
            .collect();
        let with_hosts = (0..graph.switches()).filter(|&at| graph.with_hosts[at]);
        let hosts = with_hosts
            .flat_map(|at| std::iter::repeat_n(SwitchId::new(at), hosts_per_switch))
            .enumerate()
            .map(|(host, switch)| HostPart { name: format!("h{host}"), switch, mac: None })
            .collect();
        Self {
            switches,
            hosts,
            ports_per_host: 1,
            cables_per_link: 1,
            rate: BitsPerSecond::GIGABIT,
        }
    }
}

/// The parts do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CablingError {
    /// Another number of switches than the topology has.
    #[error("the topology has {needed} switches, the cluster file {given}")]
    Switches {
        /// Switches of the topology.
        needed: usize,
        /// Switches that the cluster file names.
        given: usize,
    },
    /// A host is plugged into a switch that is to have none, or that is not there.
    #[error("`{host}` is plugged into {switch}, which has no hosts in this topology")]
    HostPlace {
        /// The name of the host.
        host: String,
        /// The switch that the host names.
        switch: String,
    },
    /// A switch has fewer ports than are needed.
    #[error(
        "`{switch}` ({model}) needs {hosts} ports for hosts and {trunks} for trunks, {} in all, and \
         has {ports}: {fits}", hosts + trunks
    )]
    Ports {
        /// The switch whose ports are too few.
        switch: String,
        /// The name of its model.
        model: String,
        /// Ports that its hosts need.
        hosts: usize,
        /// Ports that its trunks need.
        trunks: usize,
        /// Ports that the model has.
        ports: u16,
        /// Fewer hosts, or fewer cables a link, that would fit.
        fits: String,
    },
    /// A bundle has more ports than the switch allows.
    #[error("a bundle of {cables} is more than `{switch}` ({model}) allows: {allowed}")]
    BundlePorts {
        /// The switch at one end of the bundle.
        switch: String,
        /// The name of its model.
        model: String,
        /// Cables of the bundle, each of which takes a port.
        cables: usize,
        /// Ports that a bundle may have.
        allowed: u16,
    },
    /// A switch has more bundles than it allows.
    #[error("`{switch}` ({model}) needs {needed} bundles, it allows {allowed}")]
    Bundles {
        /// The switch with the bundles.
        switch: String,
        /// The name of its model.
        model: String,
        /// Bundles of its hosts and trunks.
        needed: usize,
        /// Bundles that the model can have.
        allowed: u16,
    },
    /// Some switches cannot be reached from the others.
    #[error("`{switch}` cannot be reached from `{from}`")]
    Apart {
        /// A switch that the trunks do not join to `from`.
        switch: String,
        /// One that is not joined to it.
        from: String,
    },
}

/// Gives every host and every link of the graph its ports.
///
/// # Errors
/// If the parts do not fit the graph or the switches, with the number that breaks and what would fit.
///
/// # Panics
/// Never: what does not fit is refused before ports are given out.
pub fn cable(graph: &SwitchGraph, parts: Parts) -> Result<Wiring, CablingError> {
    if parts.switches.len() != graph.switches() {
        let (needed, given) = (graph.switches(), parts.switches.len());
        return Err(CablingError::Switches { needed, given });
    }
    let demand = demand(graph, &parts)?;
    for (at, (switch, demand)) in parts.switches.iter().zip(&demand).enumerate() {
        fits(switch, demand, &parts)?;
        if at > 0 && demand.links == 0 {
            let from = parts.switches[0].name.clone();
            return Err(CablingError::Apart { switch: switch.name.clone(), from });
        }
    }
    let mut next_host = vec![1; graph.switches()];
    let hosts = parts
        .hosts
        .into_iter()
        .map(|HostPart { name, switch, mac }| {
            let ports =
                next_ports(&mut next_host[switch.place()], usize::from(parts.ports_per_host));
            Host { name, switch, ports, mac }
        })
        .collect();
    // Edges are in the order of their ends, so every switch gives its ports out in the order of the
    // far ends: those below it first, then those above it.
    let mut next_trunk: Vec<u16> = parts
        .switches
        .iter()
        .zip(&demand)
        .map(|(switch, demand)| {
            let cables = demand.links * usize::from(parts.cables_per_link);
            let cables = u16::try_from(cables).expect("what does not fit was refused before");
            switch.model.ports - cables + 1
        })
        .collect();
    let trunks = graph
        .edges
        .iter()
        .map(|edge| {
            let cables = edge.links * usize::from(parts.cables_per_link);
            let ends = edge.ends.map(|end| TrunkEnd {
                switch: SwitchId::new(end),
                ports: next_ports(&mut next_trunk[end], cables),
            });
            Trunk { ends }
        })
        .collect();
    Ok(Wiring { switches: parts.switches, hosts, trunks, rate: parts.rate })
}

/// Cables a topology with switches of one model and as many hosts on each; see [`Parts::uniform`].
///
/// # Errors
/// As [`cable`].
pub fn cable_uniform(
    topology: &Topology,
    model: &SwitchModel,
    hosts_per_switch: usize,
) -> Result<Wiring, CablingError> {
    let graph = topology.graph();
    let parts = Parts::uniform(&graph, model, hosts_per_switch);
    cable(&graph, parts)
}

/// The next ports of a switch, in order.
fn next_ports(next: &mut u16, count: usize) -> Vec<PortNumber> {
    let count = u16::try_from(count).expect("what does not fit was refused before");
    let ports = (*next..*next + count).map(PortNumber).collect();
    *next += count;
    ports
}

/// What a switch has to hold.
#[derive(Default, Clone)]
struct Demand {
    hosts: usize,
    links: usize,
    edges: usize,
    links_max: usize,
}

fn demand(graph: &SwitchGraph, parts: &Parts) -> Result<Vec<Demand>, CablingError> {
    let mut demand = vec![Demand::default(); graph.switches()];
    for edge in &graph.edges {
        for end in edge.ends {
            let demand = &mut demand[end];
            demand.links += edge.links;
            demand.edges += 1;
            demand.links_max = demand.links_max.max(edge.links);
        }
    }
    for HostPart { name, switch, .. } in &parts.hosts {
        if !graph.with_hosts.get(switch.place()).is_some_and(|&with_hosts| with_hosts) {
            let switch = parts.switches.get(switch.place());
            let switch = switch.map_or_else(|| "no switch".into(), |at| format!("`{}`", at.name));
            return Err(CablingError::HostPlace { host: name.clone(), switch });
        }
        demand[switch.place()].hosts += 1;
    }
    Ok(demand)
}

fn fits(switch: &Switch, demand: &Demand, parts: &Parts) -> Result<(), CablingError> {
    let model = &switch.model;
    let (per_host, per_link) =
        (usize::from(parts.ports_per_host), usize::from(parts.cables_per_link));
    let (hosts, trunks) = (demand.hosts * per_host, demand.links * per_link);
    let names = || (switch.name.clone(), model.name.clone());
    if hosts + trunks > usize::from(model.ports) {
        let (switch, model_name) = names();
        return Err(CablingError::Ports {
            switch,
            model: model_name,
            hosts,
            trunks,
            ports: model.ports,
            fits: what_would_fit(usize::from(model.ports), demand, per_host, per_link),
        });
    }
    let cables = (demand.links_max * per_link).max(if demand.hosts > 0 { per_host } else { 0 });
    if cables > 1 && cables > usize::from(model.bundle_ports) {
        let ((switch, model_name), allowed) = (names(), model.bundle_ports);
        return Err(CablingError::BundlePorts { switch, model: model_name, cables, allowed });
    }
    let of_hosts = if per_host > 1 { demand.hosts } else { 0 };
    let of_trunks = if per_link > 1 { demand.edges } else { 0 };
    let needed = of_hosts + of_trunks;
    if needed > usize::from(model.bundles) {
        let ((switch, model_name), allowed) = (names(), model.bundles);
        return Err(CablingError::Bundles { switch, model: model_name, needed, allowed });
    }
    Ok(())
}

/// The nearest smaller thing that the switch can hold.
fn what_would_fit(ports: usize, demand: &Demand, per_host: usize, per_link: usize) -> String {
    let cables = ports.saturating_sub(demand.hosts * per_host) / demand.links.max(1);
    let hosts = ports.saturating_sub(demand.links * per_link) / per_host.max(1);
    match (cables, hosts) {
        (1, _) if per_link > 1 => "1 link a bundle would fit".into(),
        (2.., _) if cables < per_link => format!("{cables} links a bundle would fit"),
        (_, 1..) => format!("{hosts} hosts would fit"),
        _ => "no host would fit".into(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn paper(text: &str, hosts: usize, cables_per_link: u16) -> Result<Wiring, CablingError> {
        let graph = text.parse::<Topology>().unwrap().graph();
        let model = SwitchModel::named("powerconnect-6248").unwrap();
        cable(&graph, Parts { cables_per_link, ..Parts::uniform(&graph, &model, hosts) })
    }

    #[test]
    fn no_port_is_used_twice_and_cables_are_as_the_paper_counts_them() {
        for (text, cables_per_link, cables) in
            [("tree 8", 6, 42), ("complete 8", 1, 28), ("torus 4x2", 3, 36), ("mesh 4x2", 3, 30)]
        {
            let wiring = paper(text, 28, cables_per_link).unwrap();
            assert_eq!(wiring.trunks.iter().map(Trunk::cables).sum::<usize>(), cables);
            let ends = wiring.trunks.iter().flat_map(|trunk| &trunk.ends);
            let trunks = ends.flat_map(|end| end.ports.iter().map(|&port| (end.switch, port)));
            let hosts = wiring
                .hosts
                .iter()
                .flat_map(|host| host.ports.iter().map(|&port| (host.switch, port)));
            let all: Vec<_> = trunks.chain(hosts).collect();
            assert!(all.iter().all(|(_, PortNumber(port))| (1..=48).contains(port)));
            assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        }
    }

    #[test]
    fn trunks_take_the_highest_ports_in_the_order_of_their_far_ends() {
        let wiring = paper("ring 4", 2, 2).unwrap();
        let ports = |trunk: &Trunk| {
            trunk.ends.clone().map(|end| (end.switch.place(), end.ports[0].0, end.ports[1].0))
        };
        assert_eq!(
            wiring.trunks.iter().map(ports).collect::<Vec<_>>(),
            [
                [(0, 45, 46), (1, 45, 46)],
                [(0, 47, 48), (3, 45, 46)],
                [(1, 47, 48), (2, 45, 46)],
                [(2, 47, 48), (3, 47, 48)],
            ]
        );
        assert_eq!(wiring.hosts[3].ports, [PortNumber(2)]);
    }

    #[test]
    fn what_does_not_fit_is_refused_with_what_would() {
        assert_eq!(
            paper("complete 8", 29, 3).unwrap_err().to_string(),
            "`s0` (powerconnect-6248) needs 29 ports for hosts and 21 for trunks, 50 in all, and \
             has 48: 2 links a bundle would fit"
        );
        assert_eq!(
            paper("complete 8", 45, 1).unwrap_err().to_string(),
            "`s0` (powerconnect-6248) needs 45 ports for hosts and 7 for trunks, 52 in all, and \
             has 48: 41 hosts would fit"
        );
        assert_eq!(
            paper("ring 4", 2, 9).unwrap_err().to_string(),
            "a bundle of 9 is more than `s0` (powerconnect-6248) allows: 8"
        );
    }
}
