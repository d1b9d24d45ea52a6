//! What a switch holds that is set over SNMP: read from its tables, and as the state that it means.
//!
//! Ports are those on its front; the bridge may number them otherwise, and a bundle is one port of the
//! bridge. What is not said of a port of the front (ports of modules, the processor's) is left alone.

use std::collections::{BTreeMap, BTreeSet};

use meikyo_fabric::dialect::SwitchState;
use meikyo_fabric::{
    Bundling, PortNumber, PortSettings, SwitchModel, SwitchSettings, Vlan, VlanSet,
};
use meikyo_snmp::{Oid, Value};
use meikyo_units::Nanos;

use crate::verbs::fabric::bridge::{
    ATTACHED_BUNDLE, EGRESS_PORTS, PORT_INTERFACE, PVID, Ports, UNTAGGED_PORTS,
};

/// `dot1qVlanStaticRowStatus` (RFC 4363).
pub(super) const ROW_STATUS: &[u32] = &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 3, 1, 5];
/// `dot1qPortAcceptableFrameTypes` (RFC 4363).
pub(super) const FRAME_TYPES: &[u32] = &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 5, 1, 2];
/// `dot1qPortIngressFiltering` (RFC 4363).
pub(super) const INGRESS_FILTERING: &[u32] = &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 5, 1, 3];
/// `dot1dStpPortEnable` (RFC 4188).
pub(super) const STP_PORT: &[u32] = &[1, 3, 6, 1, 2, 1, 17, 2, 15, 1, 4];
/// `dot1dTpAgingTime` (RFC 4188), seconds.
pub(super) const AGEING: &[u32] = &[1, 3, 6, 1, 2, 1, 17, 4, 2];
/// `dot3PauseAdminMode` (RFC 3635).
pub(super) const PAUSE: &[u32] = &[1, 3, 6, 1, 2, 1, 10, 7, 10, 1, 1];
/// `ifAdminStatus` (RFC 2863).
pub(super) const ADMIN_STATUS: &[u32] = &[1, 3, 6, 1, 2, 1, 2, 2, 1, 7];

/// The value of `RowStatus` of a row that counts (RFC 2579).
pub(super) const ACTIVE: u64 = 1;
/// `admitAll` of the types of frames.
pub(super) const ALL_FRAMES: u64 = 1;
/// `admitOnlyVlanTagged` of the types of frames.
pub(super) const TAGGED_ONLY: u64 = 2;
/// `true` (RFC 2579), `enabled` of a spanning tree, `up` of a port.
pub(super) const YES: u64 = 1;
/// `false`, `disabled`, `down`.
pub(super) const NO: u64 = 2;
/// `disabled` of pause frames.
pub(super) const NO_PAUSE: u64 = 1;
/// `enabledXmitAndRcv` of pause frames.
pub(super) const PAUSE_BOTH_WAYS: u64 = 4;

/// A port of the front.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Its number as a port of the bridge, or that of its bundle.
    pub(super) bridge: u32,
    /// `ifIndex`.
    pub(super) interface: u32,
    /// Whether it is in a bundle.
    pub(super) bundled: bool,
}

/// Ports of the bridge that are members of a VLAN.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Members {
    /// Those that send its frames.
    pub(super) egress: BTreeSet<u32>,
    /// Those of them that take the tag away.
    pub(super) untagged: BTreeSet<u32>,
}

/// What is read, and what is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tables {
    pub(super) places: BTreeMap<PortNumber, Place>,
    /// Octets of a list of ports.
    pub(super) octets: usize,
    pub(super) vlans: BTreeMap<Vlan, Members>,
    /// By port of the bridge.
    pub(super) pvids: BTreeMap<u32, Vlan>,
    pub(super) frames: BTreeMap<u32, u64>,
    pub(super) filtering: BTreeMap<u32, u64>,
    pub(super) stp: BTreeMap<u32, u64>,
    /// By interface.
    pub(super) pause: BTreeMap<u32, u64>,
    pub(super) admin: BTreeMap<u32, u64>,
    /// Seconds; `None`: the switch does not say.
    pub(super) ageing: Option<u64>,
}

impl Tables {
    /// Reads them by walks.
    pub(super) fn read(
        model: &SwitchModel,
        walk: &mut impl FnMut(Oid) -> Result<Vec<(Oid, Value)>, String>,
    ) -> Result<Self, String> {
        let mut table = |object: &[u32]| -> Result<Vec<(Vec<u32>, Value)>, String> {
            let object = Oid::from_slice(object);
            let found = walk(object.clone())?;
            let row = |(oid, value): (Oid, Value)| Some((oid.below(&object)?.to_vec(), value));
            Ok(found.into_iter().filter_map(row).collect())
        };
        let mut numbers = |object: &[u32]| -> Result<BTreeMap<u32, u64>, String> {
            let rows = table(object)?;
            Ok(rows
                .iter()
                .filter_map(|(at, value)| Some((*at.first()?, value.as_u64()?)))
                .collect())
        };
        let interfaces = numbers(PORT_INTERFACE)?;
        let (pvids, rows) = (numbers(PVID)?, numbers(ROW_STATUS)?);
        let (frames, filtering) = (numbers(FRAME_TYPES)?, numbers(INGRESS_FILTERING)?);
        let (stp, pause, admin) = (numbers(STP_PORT)?, numbers(PAUSE)?, numbers(ADMIN_STATUS)?);
        let ageing = numbers(AGEING)?.get(&0).copied();
        let places = places(model, &interfaces, &table(ATTACHED_BUNDLE)?);
        if pvids.is_empty() || rows.is_empty() {
            return Err("the agent has no VLANs by port (dot1qVlanStaticTable and dot1qPvid of \
                        Q-BRIDGE-MIB)"
                .to_owned());
        }
        let mut vlans: BTreeMap<Vlan, Members> = BTreeMap::new();
        for (id, _) in rows.iter().filter(|(_, status)| **status == ACTIVE) {
            vlans.extend(vlan(*id).map(|vlan| (vlan, Members::default())));
        }
        let mut octets = 0;
        for (untagged, object) in [(false, EGRESS_PORTS), (true, UNTAGGED_PORTS)] {
            for (index, value) in table(object)? {
                let members = index.first().and_then(|id| vlans.get_mut(&vlan(*id)?));
                let (Some(members), Some(list)) = (members, value.as_octets()) else { continue };
                octets = octets.max(list.len());
                let ports = listed(list);
                if untagged { members.untagged = ports } else { members.egress = ports }
            }
        }
        let last = places.values().map(|place| place.bridge).max().unwrap_or(0);
        let pvids =
            pvids.into_iter().filter_map(|(port, id)| Some((port, vlan(u32::try_from(id).ok()?)?)));
        Ok(Self {
            places,
            // Saturates at what the switch itself showed.
            octets: octets.max(usize::try_from(last.div_ceil(8)).unwrap_or(octets)),
            vlans,
            pvids: pvids.collect(),
            frames,
            filtering,
            stp,
            pause,
            admin,
            ageing,
        })
    }

    /// The state that these tables mean. What the switch does not say of pause frames, of the ageing time
    /// and of how bundles agree is taken as in `planned`.
    pub(super) fn state(&self, planned: &SwitchState, management: Option<Vlan>) -> SwitchState {
        let mut bridged: BTreeMap<u32, Vec<PortNumber>> = BTreeMap::new();
        for (port, place) in &self.places {
            if self.admin.get(&place.interface).is_none_or(|status| *status == YES) {
                bridged.entry(place.bridge).or_default().push(*port);
            }
        }
        let mut ports: Vec<PortSettings> =
            bridged.into_iter().map(|(bridge, ports)| self.port(bridge, ports, planned)).collect();
        ports.sort_by(|one, other| one.ports.cmp(&other.ports));
        let ageing = match self.ageing {
            Some(seconds) => Some(Nanos::from_secs(seconds)),
            None => planned.settings.ageing,
        };
        let spanning_tree = self.stp.values().any(|status| *status == YES);
        let settings = SwitchSettings { vlans: used(&ports), ports, ageing, spanning_tree };
        SwitchState::managed(settings, management)
    }

    fn port(&self, bridge: u32, ports: Vec<PortNumber>, planned: &SwitchState) -> PortSettings {
        let of = |kind: fn(&Members) -> &BTreeSet<u32>| -> VlanSet {
            let vlans = self.vlans.iter();
            vlans.filter(|(_, own)| kind(own).contains(&bridge)).map(|(vlan, _)| *vlan).collect()
        };
        let (egress, untagged) = (of(|own| &own.egress), of(|own| &own.untagged));
        let places = || ports.iter().filter_map(|port| self.places.get(port));
        let own = planned.settings.ports.iter().find(|own| own.ports == ports);
        let pauses: Option<bool> = places()
            .map(|place| Some(*self.pause.get(&place.interface)? == PAUSE_BOTH_WAYS))
            .try_fold(true, |all, pauses| pauses.map(|pauses| all && pauses));
        let bundled = places().any(|place| place.bundled);
        let agreed = || own.and_then(|own| own.bundle).unwrap_or(Bundling::Lacp);
        PortSettings {
            bundle: bundled.then(agreed),
            pvid: match self.frames.get(&bridge) {
                Some(&TAGGED_ONLY) => None,
                _ => self.pvids.get(&bridge).copied(),
            },
            untagged: egress.intersection(&untagged),
            tagged: egress.difference(&untagged),
            accept_tagged: true,
            flow_control: pauses
                .or_else(|| own.map(|own| own.flow_control))
                .unwrap_or_else(|| planned.settings.ports.iter().any(|port| port.flow_control)),
            ports,
        }
    }

    /// The port of the bridge that a port, or a bundle, is; `None` if the switch does not say.
    pub(super) fn bridge_port(&self, ports: &[PortNumber]) -> Option<u32> {
        self.places.get(ports.first()?).map(|place| place.bridge)
    }

    /// What cannot be known of the switch, for people.
    pub(super) fn silent_about(&self) -> Vec<&'static str> {
        let missing = [
            (
                self.filtering.is_empty(),
                "whether ports drop frames of VLANs that they are not in (dot1qPortIngressFiltering)",
            ),
            (
                self.frames.is_empty(),
                "whether ports drop frames without a tag (dot1qPortAcceptableFrameTypes)",
            ),
            (self.stp.is_empty(), "whether a spanning tree protocol runs (dot1dStpPortEnable)"),
            (self.pause.is_empty(), "whether pause frames are on (dot3PauseAdminMode)"),
            (self.ageing.is_none(), "after which span it forgets addresses (dot1dTpAgingTime)"),
        ];
        missing.into_iter().filter_map(|(is, what)| is.then_some(what)).collect()
    }
}

/// The VLANs that ports are in, or put frames into.
fn used(ports: &[PortSettings]) -> VlanSet {
    let mut used = VlanSet::EMPTY;
    for port in ports {
        used = used.union(&port.members());
        used.extend(port.pvid);
    }
    used
}

/// A state in the form in which states are compared: only VLANs that some port is in, since a row
/// without ports, as that of VLAN 1 may have to stay, changes nothing.
pub(super) fn compared(mut state: SwitchState) -> SwitchState {
    state.settings.vlans = used(&state.settings.ports);
    state.settings.ports.sort_by(|one, other| one.ports.cmp(&other.ports));
    state.bundles.clear();
    state
}

fn vlan(id: u32) -> Option<Vlan> {
    Vlan::new(u16::try_from(id).ok()?)
}

fn places(
    model: &SwitchModel,
    interfaces: &BTreeMap<u32, u64>,
    attached: &[(Vec<u32>, Value)],
) -> BTreeMap<PortNumber, Place> {
    let of_interface: BTreeMap<u64, u32> =
        interfaces.iter().map(|(port, interface)| (*interface, *port)).collect();
    let ports = Ports::new(model.ports, &of_interface, attached);
    let mut places = BTreeMap::new();
    for (bridge, fronts) in ports.iter() {
        for front in fronts {
            let interface = interfaces.get(&u32::from(front.0)).copied();
            let Some(interface) = interface.and_then(|own| u32::try_from(own).ok()) else {
                continue;
            };
            let bundled = bridge != u32::from(front.0);
            places.insert(*front, Place { bridge, interface, bundled });
        }
    }
    places
}

/// The ports of a list: the first bit is port 1.
fn listed(octets: &[u8]) -> BTreeSet<u32> {
    let bits = (0_u32..).zip(octets).flat_map(|(place, octet)| {
        (0..8).filter(move |bit| octet & (0x80 >> bit) != 0).map(move |bit| place * 8 + bit + 1)
    });
    bits.collect()
}

/// A list of ports of so many octets at least.
pub(super) fn list(ports: &BTreeSet<u32>, octets: usize) -> Vec<u8> {
    let mut list = vec![0; octets];
    for port in ports {
        let place = usize::try_from((port - 1) / 8).expect("machines of 32 bits and more");
        if place >= list.len() {
            list.resize(place + 1, 0);
        }
        list[place] |= 0x80 >> ((port - 1) % 8);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_ports_are_bits_from_the_left() {
        // RFC 4363, PortList: the most significant bit of the first octet is port 1.
        let ports = BTreeSet::from([1, 8, 9, 20]);
        assert_eq!(list(&ports, 2), [0x81, 0x80, 0x10]);
        assert_eq!(listed(&[0x81, 0x80, 0x10, 0]), ports);
        assert_eq!(list(&BTreeSet::new(), 3), [0; 3]);
    }
}
