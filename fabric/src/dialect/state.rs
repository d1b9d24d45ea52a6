//! The state of a switch as far as texts can change it.

use std::collections::BTreeMap;

use super::Dialect;
use crate::{PortNumber, PortSettings, SwitchModel, SwitchSettings, Vlan, VlanSet};
use meikyo_units::Nanos;

/// The span after which addresses are forgotten unless a switch is told otherwise (IEEE 802.1D).
pub(super) const AGEING: Nanos = Nanos::from_secs(300);

/// The settings of a switch, and what else its texts say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchState {
    /// VLANs, ports, ageing time, spanning tree: what matters to frames.
    pub settings: SwitchSettings,
    /// The VLAN in which the switch itself is reached; `None`: not through its ports, or, where a
    /// text is made, as it was.
    pub management: Option<Vlan>,
    /// The numbers of the bundles, by their first port; those without are numbered when a text is
    /// made.
    pub bundles: BTreeMap<PortNumber, u16>,
}

impl SwitchState {
    /// These settings, on a switch that is reached by other ways than its ports.
    pub const fn unmanaged(settings: SwitchSettings) -> Self {
        Self { settings, management: None, bundles: BTreeMap::new() }
    }

    /// These settings, on a switch that is reached in a VLAN.
    pub const fn managed(settings: SwitchSettings, management: Option<Vlan>) -> Self {
        Self { settings, management, bundles: BTreeMap::new() }
    }

    /// The state for which a whole text is written: a PowerConnect as delivered, a Linux machine
    /// without a bridge.
    pub fn blank(dialect: Dialect, model: &SwitchModel) -> Self {
        match dialect.vendor() {
            Ok(vendor) => vendor.blank(model),
            Err(_) => Self::unmanaged(all_in_default_vlan(model, false, false)),
        }
    }

    /// The state of a switch that nobody has configured: every port an untagged member of VLAN 1,
    /// a spanning tree protocol running. For Linux and Open vSwitch it is the plain bridge of all
    /// ports that a site would begin with, on a machine that is reached by other ways.
    pub fn factory(dialect: Dialect, model: &SwitchModel) -> Self {
        match dialect.vendor() {
            Ok(vendor) => vendor.factory(model),
            Err(_) => Self::unmanaged(all_in_default_vlan(model, false, false)),
        }
    }

    /// Whether frames and management go the same way in both states.
    pub fn means_the_same(&self, other: &Self) -> bool {
        self.settings == other.settings && self.management == other.management
    }

    /// The numbers of the bundles of `settings`, in the order of its ports: a bundle that shares a
    /// port with one of this state keeps that number, others get the lowest that are free.
    pub(super) fn numbers_for(&self, settings: &SwitchSettings) -> Vec<Option<u16>> {
        numbered(settings, |ports| self.number_of(ports))
    }

    /// The number of the bundle of this state that has one of the ports.
    pub(super) fn number_of(&self, ports: &[PortNumber]) -> Option<u16> {
        let known = |own: &[PortNumber]| self.bundles.get(own.first()?).copied();
        let numbers = numbered(&self.settings, known);
        let mut bundles = self.settings.ports.iter().zip(numbers);
        let shares = |own: &PortSettings| own.ports.iter().any(|port| ports.contains(port));
        bundles.find_map(|(own, number)| number.filter(|_| shares(own)))
    }

    /// The settings of the port, or of the bundle that it is in; `None` if it is shut down.
    pub(crate) fn port(&self, number: PortNumber) -> Option<&PortSettings> {
        self.settings.ports.iter().find(|port| port.ports.contains(&number))
    }
}

impl SwitchState {
    /// The same for frames, in the one form that is compared: ports of bundles in order, and VLANs
    /// without a port left out unless `defined`, where a VLAN can be defined without one. VLAN 1
    /// cannot be taken away there, so it counts only where a port is in it.
    pub(super) fn normal(mut self, defined: bool) -> Self {
        let settings = &mut self.settings;
        settings.ports.iter_mut().for_each(|port| port.ports.sort());
        settings.ports.sort_by(|one, other| one.ports.cmp(&other.ports));
        let mut used = VlanSet::EMPTY;
        for port in &settings.ports {
            used = used.union(&port.members());
            used.extend(port.pvid);
        }
        if !defined {
            used.extend(self.management);
            settings.vlans = used;
        } else if used.contains(Vlan::DEFAULT) {
            settings.vlans.insert(Vlan::DEFAULT);
        } else {
            settings.vlans.remove(Vlan::DEFAULT);
        }
        self
    }
}

/// Every port an untagged member of VLAN 1, a spanning tree protocol running: a switch as delivered.
pub(super) fn all_in_default_vlan(
    model: &SwitchModel,
    accept_tagged: bool,
    flow_control: bool,
) -> SwitchSettings {
    let port = |number| PortSettings {
        ports: vec![PortNumber(number)],
        bundle: None,
        pvid: Some(Vlan::DEFAULT),
        untagged: VlanSet::from_iter([Vlan::DEFAULT]),
        tagged: VlanSet::EMPTY,
        accept_tagged,
        flow_control,
    };
    SwitchSettings {
        vlans: VlanSet::from_iter([Vlan::DEFAULT]),
        ports: (1..=model.ports).map(port).collect(),
        ageing: Some(AGEING),
        spanning_tree: true,
    }
}

/// A machine on which there is no bridge yet.
pub(super) const fn without_ports() -> SwitchSettings {
    SwitchSettings {
        vlans: VlanSet::EMPTY,
        ports: Vec::new(),
        ageing: Some(AGEING),
        spanning_tree: false,
    }
}

/// A number for each bundle: the `known` one unless it is taken, or else the lowest that is free.
fn numbered(
    settings: &SwitchSettings,
    known: impl Fn(&[PortNumber]) -> Option<u16>,
) -> Vec<Option<u16>> {
    let mut numbers = vec![None; settings.ports.len()];
    let mut taken = Vec::new();
    let bundles = || settings.ports.iter().enumerate().filter(|(_, port)| port.bundle.is_some());
    for (at, port) in bundles() {
        numbers[at] = known(&port.ports).filter(|number| !taken.contains(number));
        taken.extend(numbers[at]);
    }
    for (at, _) in bundles() {
        if numbers[at].is_none() {
            numbers[at] = (1..=u16::MAX).find(|number| !taken.contains(number));
            taken.extend(numbers[at]);
        }
    }
    numbers
}
