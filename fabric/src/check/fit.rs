//! Whether settings fit the wiring and the models, and what is wrong on principle.

use std::collections::BTreeMap;

use super::fault::{Difference, Fault, Limit};
use super::report::Findings;
use crate::{
    Bundling, Configuration, HostId, HostSettings, PortNumber, PortSettings, Priming, SwitchId,
    TrunkId, Vlan, Wiring,
};

/// What a cable goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Far {
    Host(HostId),
    Trunk(TrunkId, SwitchId, PortNumber),
}

/// Where the ports lead that a switch has set together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leads {
    Host(HostId),
    /// To a switch, and to which place in its settings.
    Switch(TrunkId, SwitchId, usize),
}

/// Cables that go out of ports that are set together, all to one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cables {
    pub(super) leads: Leads,
    /// How many of them are in use: both ends are set to something.
    pub(super) count: usize,
}

/// For each switch and each place in its settings: where its ports lead; none if nowhere.
pub(super) type Plugged = Vec<Vec<Option<Cables>>>;

/// Notes what does not fit; none if so much does not that frames cannot be followed.
pub(super) fn fit(
    wiring: &Wiring,
    configuration: &Configuration,
    findings: &mut Findings,
) -> Option<Plugged> {
    if !counts(wiring, configuration, findings) {
        return None;
    }
    let before = findings.faults_count();
    let cables = cables(wiring, findings);
    let slots = slots(wiring, configuration, findings);
    let sound = findings.faults_count() == before;
    for switch in (0..wiring.switches.len()).map(SwitchId::new) {
        model(wiring, configuration, switch, findings);
    }
    if !sound {
        return None;
    }
    let before = findings.faults_count();
    let plugged = bundles(configuration, &cables, &slots, findings);
    host_bundles(wiring, configuration, &slots, findings);
    let sound = findings.faults_count() == before;
    principles(configuration, &cables, findings);
    sound.then_some(plugged)
}

fn counts(wiring: &Wiring, configuration: &Configuration, findings: &mut Findings) -> bool {
    let settings = [configuration.switches.len(), configuration.hosts.len()];
    let there = [wiring.switches.len(), wiring.hosts.len()];
    if settings != there {
        findings.note(|| Fault::Count { settings, wiring: there });
        return false;
    }
    let tagged = configuration.hosts.iter().flat_map(|host| match host {
        HostSettings::Untagged => None,
        HostSettings::Tagged(tags) => tags.last_key_value().map(|(host, _)| host.place()),
    });
    let representatives = match &configuration.priming {
        Priming::Directed(representatives) => representatives.as_slice(),
        Priming::None | Priming::Broadcast(_) => &[],
    };
    let named = tagged.chain(representatives.iter().map(|known| known.host.place())).max();
    match named.filter(|&host| host >= wiring.hosts.len()) {
        Some(host) => {
            findings.note(|| Fault::NoSuchHost { host });
            false
        }
        None => true,
    }
}

/// The first port of settings; 0 if they are of none.
pub(super) fn first_port(settings: &PortSettings) -> PortNumber {
    settings.ports.first().copied().unwrap_or(PortNumber(0))
}

type ByPort<T> = Vec<BTreeMap<PortNumber, T>>;

/// What is plugged into which port.
fn cables(wiring: &Wiring, findings: &mut Findings) -> ByPort<Far> {
    let mut cables: ByPort<Far> = vec![BTreeMap::new(); wiring.switches.len()];
    let mut plug = |switch: SwitchId, port: PortNumber, far: Far| {
        let ports = wiring.switches[switch.place()].model.ports;
        if port.0 == 0 || port.0 > ports {
            findings.note(|| Fault::NoSuchPort { switch, port, ports });
        } else if cables[switch.place()].insert(port, far).is_some() {
            findings.note(|| Fault::WiredTwice { switch, port });
        }
    };
    for (place, host) in wiring.hosts.iter().enumerate() {
        for &port in &host.ports {
            plug(host.switch, port, Far::Host(HostId::new(place)));
        }
    }
    for (place, trunk) in wiring.trunks.iter().enumerate() {
        let [one, other] = &trunk.ends;
        let id = TrunkId::new(place);
        for (&near, &far) in one.ports.iter().zip(&other.ports) {
            plug(one.switch, near, Far::Trunk(id, other.switch, far));
            plug(other.switch, far, Far::Trunk(id, one.switch, near));
        }
    }
    cables
}

/// The place of the settings of each port.
fn slots(wiring: &Wiring, configuration: &Configuration, findings: &mut Findings) -> ByPort<usize> {
    let mut slots: ByPort<usize> = vec![BTreeMap::new(); wiring.switches.len()];
    for (place, settings) in configuration.switches.iter().enumerate() {
        let switch = SwitchId::new(place);
        let ports = wiring.switches[place].model.ports;
        for (slot, settings) in settings.ports.iter().enumerate() {
            for &port in &settings.ports {
                if port.0 == 0 || port.0 > ports {
                    findings.note(|| Fault::NoSuchPort { switch, port, ports });
                } else if slots[place].insert(port, slot).is_some() {
                    findings.note(|| Fault::SetTwice { switch, port });
                }
            }
            if settings.ports.len() > 1 && settings.bundle.is_none() {
                findings.note(|| Fault::NoProtocol { switch, port: first_port(settings) });
            }
        }
    }
    slots
}

/// Where ports lead; notes bundles whose ends do not agree.
fn bundles(
    configuration: &Configuration,
    cables: &ByPort<Far>,
    slots: &ByPort<usize>,
    findings: &mut Findings,
) -> Plugged {
    let far_of = |switch: usize, port: PortNumber| match *cables[switch].get(&port)? {
        Far::Host(host) => Some(Leads::Host(host)),
        // A cable to a port that is not set to anything leads nowhere.
        Far::Trunk(trunk, far, far_port) => {
            Some(Leads::Switch(trunk, far, *slots[far.place()].get(&far_port)?))
        }
    };
    let mut plugged: Plugged = Vec::with_capacity(configuration.switches.len());
    for (place, settings) in configuration.switches.iter().enumerate() {
        let mut of_switch = Vec::with_capacity(settings.ports.len());
        for port in &settings.ports {
            let wired = port.ports.iter().filter(|port| cables[place].contains_key(port));
            let leads: Vec<Option<Leads>> = wired.map(|&port| far_of(place, port)).collect();
            let first = leads.iter().copied().flatten().next();
            // LACP leaves out a cable whose far end is shut (IEEE 802.1AX): the bundle has fewer.
            let is_lacp = port.bundle == Some(Bundling::Lacp);
            let counts = |leads: &&Option<Leads>| leads.is_some() || !is_lacp;
            if leads.iter().filter(counts).any(|&leads| !is_same_place(leads, first)) {
                let (switch, port) = (SwitchId::new(place), first_port(port));
                let difference = Difference::Cables;
                findings.note(|| Fault::Bundle { switch, port, difference });
            }
            let count = leads.iter().flatten().count();
            of_switch.push(first.map(|leads| Cables { leads, count }));
        }
        plugged.push(of_switch);
    }
    far_ends(configuration, &plugged, findings);
    plugged
}

/// Whether two cables lead to one set of ports; two trunks may be one bundle.
fn is_same_place(one: Option<Leads>, other: Option<Leads>) -> bool {
    match (one, other) {
        (Some(Leads::Switch(_, switch, slot)), Some(Leads::Switch(_, far, far_slot))) => {
            (switch, slot) == (far, far_slot)
        }
        _ => one == other,
    }
}

/// Notes bundles that have LACP at one end only, or lead back into themselves. That both ends have
/// the same cables follows from each having all its cables in one place.
fn far_ends(configuration: &Configuration, plugged: &Plugged, findings: &mut Findings) {
    for (place, of_switch) in plugged.iter().enumerate() {
        for (slot, leads) in of_switch.iter().enumerate() {
            let Some(Cables { leads: Leads::Switch(_, far, far_slot), .. }) = *leads else {
                continue;
            };
            let near = &configuration.switches[place].ports[slot];
            let switch = SwitchId::new(place);
            let far_settings = &configuration.switches[far.place()].ports[far_slot];
            let difference = if (far, far_slot) == (switch, slot) {
                Difference::Cables
            } else if (near.bundle == Some(Bundling::Lacp))
                != (far_settings.bundle == Some(Bundling::Lacp))
            {
                Difference::Protocol { far }
            } else {
                continue;
            };
            findings.note(|| Fault::Bundle { switch, port: first_port(near), difference });
        }
    }
}

/// Every host must find its ports set together, nothing else with them, and the protocol that it
/// bundles them by itself. LACP does without a port that is shut.
fn host_bundles(
    wiring: &Wiring,
    configuration: &Configuration,
    slots: &ByPort<usize>,
    findings: &mut Findings,
) {
    for (place, host) in wiring.hosts.iter().enumerate() {
        let (switch, id) = (host.switch, HostId::new(place));
        let bundling = (host.ports.len() > 1).then_some(configuration.host_bundling);
        let is_lacp = bundling == Some(Bundling::Lacp);
        let its: Vec<Option<usize>> =
            host.ports.iter().map(|port| slots[switch.place()].get(port).copied()).collect();
        let first = its.iter().copied().flatten().next();
        let belongs = |slot: &Option<usize>| *slot == first || (slot.is_none() && is_lacp);
        let difference = match first {
            Some(_) if !its.iter().all(belongs) => Difference::Host(id),
            None => Difference::Host(id),
            Some(slot) => {
                let set = configuration.switches[switch.place()].ports[slot].bundle;
                if (set == Some(Bundling::Lacp)) == is_lacp {
                    continue;
                }
                Difference::HostProtocol { host: id, bundling }
            }
        };
        let port = host.ports.first().copied().unwrap_or(PortNumber(0));
        findings.note(|| Fault::Bundle { switch, port, difference });
    }
}

/// What the model of a switch cannot do.
fn model(
    wiring: &Wiring,
    configuration: &Configuration,
    switch: SwitchId,
    findings: &mut Findings,
) {
    let model = &wiring.switches[switch.place()].model;
    let settings = &configuration.switches[switch.place()];
    let mut beyond = |limit| findings.note(|| Fault::Beyond { switch, limit });
    let set = settings.vlans.len();
    if set > usize::from(model.vlans) {
        beyond(Limit::Vlans { set, most: model.vlans });
    }
    let mut allowed = model.vlan_ids.clone();
    allowed.insert(Vlan::DEFAULT);
    if let Some(vlan) = settings.vlans.difference(&allowed).iter().next() {
        beyond(Limit::VlanId(vlan));
    }
    let most = model.bundle_ports;
    for port in &settings.ports {
        if !model.multi_untagged && port.untagged.len() > 1 {
            beyond(Limit::MultiUntagged(first_port(port)));
        }
        if port.ports.len() > usize::from(most) && port.bundle.is_some() {
            beyond(Limit::BundlePorts { set: port.ports.len(), most });
        }
    }
    let set = settings.ports.iter().filter(|port| port.bundle.is_some()).count();
    if set > usize::from(model.bundles) {
        beyond(Limit::Bundles { set, most: model.bundles });
    }
    let keeps = match (settings.ageing, model.ageing_max) {
        (Some(set), _) if set.get() == 0 || set < model.ageing_min => false,
        (_, None) => true,
        (Some(set), Some(most)) => set <= most,
        (None, Some(_)) => false,
    };
    if !keeps {
        let (least, most) = (model.ageing_min, model.ageing_max);
        beyond(Limit::Ageing { set: settings.ageing, least, most });
    }
    for settings in &settings.ports {
        if let Some(vlan) = settings.untagged.intersection(&settings.tagged).iter().next() {
            findings.note(|| Fault::BothWays { switch, port: first_port(settings), vlan });
        }
    }
}

/// VLAN 1 is off trunks, spanning trees are off.
fn principles(configuration: &Configuration, cables: &ByPort<Far>, findings: &mut Findings) {
    for (place, settings) in configuration.switches.iter().enumerate() {
        let switch = SwitchId::new(place);
        if settings.spanning_tree {
            findings.note(|| Fault::SpanningTree { switch });
        }
        for port in &settings.ports {
            let is_trunk = |port| matches!(cables[place].get(port), Some(Far::Trunk(..)));
            if port.is_member(Vlan::DEFAULT) && port.ports.iter().any(is_trunk) {
                findings.note(|| Fault::DefaultVlan { switch, port: first_port(port) });
            }
        }
    }
}
