//! From a plan to what is set on every port.

use super::{Plan, PlannedVlan};
use crate::{
    Bundling, Configuration, HostId, HostSettings, PortNumber, PortSettings, Priming,
    SwitchSettings, VlanSet, Wiring,
};

impl Plan {
    /// What is to be set on the switches and hosts of the wiring that was planned.
    ///
    /// A port to a host is an untagged member of every working and spare VLAN; frames that come in
    /// without a tag are in that of the host. A trunk is a tagged member of the VLANs that run over
    /// it, and of no other; frames without a tag are dropped.
    pub fn configuration(&self, wiring: &Wiring) -> Configuration {
        let mut trunks = vec![VlanSet::EMPTY; wiring.trunks.len()];
        let mut on_switch = vec![VlanSet::EMPTY; wiring.switches.len()];
        for vlan in self.working.iter().chain(&self.spare).chain(&self.management) {
            for trunk in &vlan.trunks {
                trunks[trunk.place()].insert(vlan.vlan);
                for end in &wiring.trunks[trunk.place()].ends {
                    on_switch[end.switch.place()].insert(vlan.vlan);
                }
            }
        }
        let all: VlanSet = self.working.iter().chain(&self.spare).map(|vlan| vlan.vlan).collect();
        let mut ports: Vec<Vec<PortSettings>> = vec![Vec::new(); wiring.switches.len()];
        for (place, host) in wiring.hosts.iter().enumerate() {
            let on_switch = &mut on_switch[host.switch.place()];
            *on_switch = on_switch.union(&all);
            let settings = self.host_port(place, host.ports.clone(), &all);
            on_switch.extend(settings.tagged.iter());
            ports[host.switch.place()].push(settings);
        }
        for (trunk, tagged) in wiring.trunks.iter().zip(trunks) {
            for end in &trunk.ends {
                ports[end.switch.place()].push(PortSettings {
                    ports: end.ports.clone(),
                    bundle: self.bundle(&end.ports),
                    pvid: None,
                    untagged: VlanSet::EMPTY,
                    tagged: tagged.clone(),
                    accept_tagged: true,
                    flow_control: self.flow_control,
                });
            }
        }
        let switches = wiring.switches.iter().zip(on_switch).zip(ports);
        let switches = switches.map(|((switch, vlans), mut ports)| {
            ports.sort_by_key(|port| port.ports.first().copied());
            let longest = switch.model.ageing_max;
            let ageing = match (self.ageing, longest) {
                (Some(asked), Some(longest)) => Some(asked.min(longest)),
                (asked, longest) => asked.or(longest),
            };
            SwitchSettings { vlans, ports, ageing, spanning_tree: false }
        });
        Configuration {
            switches: switches.collect(),
            hosts: (0..wiring.hosts.len()).map(|host| self.host(host)).collect(),
            host_bundling: self.bundling,
            priming: self.priming.clone(),
        }
    }

    fn host_port(&self, host: usize, ports: Vec<PortNumber>, all: &VlanSet) -> PortSettings {
        let manages = self.manager == Some(HostId::new(host));
        let management = self.management.as_ref().filter(|_| manages);
        PortSettings {
            bundle: self.bundle(&ports),
            ports,
            pvid: Some(self.pvids[host]),
            untagged: all.clone(),
            tagged: management.map(|vlan: &PlannedVlan| vlan.vlan).into_iter().collect(),
            accept_tagged: manages || self.priming != Priming::None || !self.tags.is_empty(),
            flow_control: self.flow_control,
        }
    }

    fn bundle(&self, ports: &[PortNumber]) -> Option<Bundling> {
        (ports.len() > 1).then_some(self.bundling)
    }

    fn host(&self, host: usize) -> HostSettings {
        self.tags
            .get(host)
            .map_or(HostSettings::Untagged, |tags| HostSettings::Tagged(tags.clone()))
    }
}
