//! The same switches, hosts and cables as another topology.

use meikyo_fabric::{
    CablingError, HostPart, ParseTopologyError, Parts, Plan, PlanError, PlanOptions, Topology,
    Wiring, cable, plan,
};

use crate::parameters::choice;

/// Topologies that any number of switches can be joined to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopologyKind {
    /// A row with one more hanging from each: the tree of the paper.
    Tree,
    /// One switch in the middle.
    Star,
    /// Each joined to the next.
    Ring,
    /// A grid as square as it can be.
    Mesh,
    /// Such a grid with its lines closed.
    Torus,
    /// All pairs joined.
    Complete,
}
choice!(TopologyKind {
    Tree = "tree",
    Star = "star",
    Ring = "ring",
    Mesh = "mesh",
    Torus = "torus",
    Complete = "complete",
});

impl TopologyKind {
    /// The topology of so many switches, as a cluster file writes it.
    pub fn written(self, switches: usize) -> String {
        let word = crate::parameters::Choice::word(self);
        match self {
            Self::Mesh | Self::Torus => {
                let [long, short] = most_square(switches);
                format!("{word} {long}x{short}")
            }
            _ => format!("{word} {switches}"),
        }
    }
}

/// The two factors that are nearest to each other, the greater first.
fn most_square(switches: usize) -> [usize; 2] {
    let short = (1..=switches)
        .take_while(|short| short * short <= switches)
        .filter(|short| switches.is_multiple_of(*short))
        .last()
        .unwrap_or(1);
    [switches / short, short]
}

/// Why there is no such variant.
#[derive(Debug, thiserror::Error)]
pub enum VariantError {
    /// That many switches do not make such a topology.
    #[error("no such topology")]
    Topology(#[source] ParseTopologyError),
    /// The switches have too few ports.
    #[error("it cannot be cabled")]
    Cabling(#[source] CablingError),
    /// There are no VLANs for it.
    #[error("it cannot be planned")]
    Plan(#[source] PlanError),
}

/// The switches and hosts of a wiring joined as a topology, with so many cables for each link, and its
/// plan. Who tags, pause frames and VLANs are as in `options`; the routing is what suits the topology.
///
/// # Errors
/// If the switches do not make such a topology, have too few ports, or it cannot be planned.
///
/// # Panics
/// Never: a host has fewer ports than a switch, whose ports are numbered in 16 bits.
pub fn variant(
    wiring: &Wiring,
    options: &PlanOptions,
    topology: &str,
    cables: u16,
) -> Result<(Wiring, Plan), VariantError> {
    let topology: Topology = topology.parse().map_err(VariantError::Topology)?;
    let host = |host: &meikyo_fabric::Host| HostPart {
        name: host.name.clone(),
        switch: host.switch,
        mac: host.mac,
    };
    let ports = wiring.hosts.iter().map(|host| host.ports.len()).max().unwrap_or(1);
    let parts = Parts {
        switches: wiring.switches.clone(),
        hosts: wiring.hosts.iter().map(host).collect(),
        ports_per_host: u16::try_from(ports).expect("ports are numbered in 16 bits"),
        cables_per_link: cables,
        rate: wiring.rate,
    };
    let wiring = cable(&topology.graph(), parts).map_err(VariantError::Cabling)?;
    let options = PlanOptions {
        tagging: options.tagging,
        vlans: options.vlans.clone(),
        flow_control: options.flow_control,
        ..PlanOptions::new(Some(topology))
    };
    let plan = plan(&wiring, &options).map_err(VariantError::Plan)?;
    Ok((wiring, plan))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_are_as_square_as_they_can_be() {
        assert_eq!([8, 9, 12, 7, 1].map(most_square), [[4, 2], [3, 3], [4, 3], [7, 1], [1, 1]]);
        assert_eq!(TopologyKind::Torus.written(8), "torus 4x2");
        assert_eq!(TopologyKind::Complete.written(8), "complete 8");
    }
}
