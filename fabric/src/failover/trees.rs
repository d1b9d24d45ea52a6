//! The trunks that each VLAN runs over, as ports are set.

use std::collections::BTreeMap;

use crate::{Configuration, PortNumber, PortSettings, SwitchId, TrunkId, Vlan, VlanSet, Wiring};

/// The trunks of each VLAN, by the switch that they are seen from.
#[derive(Debug)]
pub(super) struct Trees {
    /// For each VLAN and switch: trunk, and the switch at its other end.
    adjacent: BTreeMap<Vlan, Vec<Vec<(usize, usize)>>>,
    /// The VLANs that every host port is an untagged member of.
    heard: VlanSet,
    switches: usize,
}

impl Trees {
    /// As ports are set at both ends of each trunk.
    pub(super) fn new(wiring: &Wiring, configuration: &Configuration) -> Self {
        let port = |switch: SwitchId, ports: &[PortNumber]| -> Option<&PortSettings> {
            let settings = &configuration.switches[switch.place()].ports;
            settings.iter().find(|port| port.ports == ports)
        };
        let mut adjacent: BTreeMap<Vlan, Vec<Vec<(usize, usize)>>> = BTreeMap::new();
        for (place, trunk) in wiring.trunks.iter().enumerate() {
            let [one, other] = &trunk.ends;
            let both = port(one.switch, &one.ports).zip(port(other.switch, &other.ports));
            let Some((near, far)) = both else { continue };
            for vlan in near.tagged.intersection(&far.tagged).iter() {
                let lists =
                    adjacent.entry(vlan).or_insert_with(|| vec![Vec::new(); wiring.switches.len()]);
                lists[one.switch.place()].push((place, other.switch.place()));
                lists[other.switch.place()].push((place, one.switch.place()));
            }
        }
        let mut heard: Option<VlanSet> = None;
        for host in &wiring.hosts {
            let own = port(host.switch, &host.ports)
                .map_or(VlanSet::EMPTY, |settings| settings.untagged.clone());
            heard = Some(heard.map_or_else(|| own.clone(), |all| all.intersection(&own)));
        }
        let switches = wiring.switches.len();
        Self { adjacent, heard: heard.unwrap_or_default(), switches }
    }

    /// The VLANs that run over trunks, least first.
    pub(super) fn vlans(&self) -> impl Iterator<Item = Vlan> + '_ {
        self.adjacent.keys().copied()
    }

    /// Whether every host hears the VLAN.
    pub(super) fn hears(&self, vlan: Vlan) -> bool {
        self.heard.contains(vlan)
    }

    /// Trunks and their other ends in a VLAN, seen from a switch.
    pub(super) fn from(&self, vlan: Vlan, switch: usize) -> &[(usize, usize)] {
        self.adjacent.get(&vlan).map_or(&[], |lists| &lists[switch])
    }

    /// Which switches are reached from one in a VLAN without a trunk; one by one for all switches.
    pub(super) fn reached(&self, vlan: Vlan, from: usize, without: Option<TrunkId>) -> Vec<bool> {
        let mut reached = vec![false; self.switches];
        let mut open = vec![from];
        reached[from] = true;
        while let Some(switch) = open.pop() {
            for &(trunk, next) in self.from(vlan, switch) {
                if without != Some(TrunkId::new(trunk)) && !reached[next] {
                    reached[next] = true;
                    open.push(next);
                }
            }
        }
        reached
    }
}

/// For each switch the number of the part that trunks connect it to.
pub(super) fn parts(wiring: &Wiring, without: Option<TrunkId>) -> Vec<usize> {
    let mut adjacent = vec![Vec::new(); wiring.switches.len()];
    for (place, trunk) in wiring.trunks.iter().enumerate() {
        if without != Some(TrunkId::new(place)) {
            let [one, other] = [trunk.ends[0].switch.place(), trunk.ends[1].switch.place()];
            adjacent[one].push(other);
            adjacent[other].push(one);
        }
    }
    let mut parts = vec![usize::MAX; adjacent.len()];
    for first in 0..parts.len() {
        let mut open = vec![first];
        while let Some(switch) = open.pop() {
            if parts[switch] == usize::MAX {
                parts[switch] = first;
                open.extend(&adjacent[switch]);
            }
        }
    }
    parts
}
