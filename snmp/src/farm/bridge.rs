//! What a simulated switch can be told over SNMP: VLANs by port, and what goes with them.
//!
//! `dot1qVlanStaticTable` and `dot1qPortVlanTable` (RFC 4363), `dot1dTpAgingTime` and
//! `dot1dStpPortEnable` (RFC 4188), `dot3PauseAdminMode` (RFC 3635) and `ifAdminStatus` (RFC 2863). Ports
//! of the bridge are numbered as the interfaces of the switch are named, from 1 on.
//!
//! As many switches do, this one says no to what contradicts itself: a PVID of a VLAN that is not
//! there, a VLAN taken away that is some port's PVID or VLAN 1, and a row of the table created anew.

use std::collections::BTreeMap;

use super::objects::{BridgeObject, Shape, Source, Tree};
use crate::{ErrorStatus, Oid, Value, ValueRef};

/// dot1dBase (RFC 4188).
const BASE: &[u32] = &[1, 3, 6, 1, 2, 1, 17, 1];
/// dot1dBasePortEntry.
const BASE_PORT_ENTRY: &[u32] = &[1, 3, 6, 1, 2, 1, 17, 1, 4, 1];
/// dot1dStpPortEntry.
const STP_PORT_ENTRY: &[u32] = &[1, 3, 6, 1, 2, 1, 17, 2, 15, 1];
/// dot1dTp.
const TP: &[u32] = &[1, 3, 6, 1, 2, 1, 17, 4];
/// dot1qBase (RFC 4363).
const Q_BASE: &[u32] = &[1, 3, 6, 1, 2, 1, 17, 7, 1, 1];
/// dot1qVlanStaticEntry.
const STATIC_ENTRY: &[u32] = &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 3, 1];
/// dot1qPortVlanEntry.
const PORT_VLAN_ENTRY: &[u32] = &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 5, 1];
/// dot3PauseEntry (RFC 3635).
const PAUSE_ENTRY: &[u32] = &[1, 3, 6, 1, 2, 1, 10, 7, 10, 1];
/// ifEntry (RFC 2863).
const IF_ENTRY: &[u32] = &[1, 3, 6, 1, 2, 1, 2, 2, 1];

/// Most VLANs that a switch has at once: a row more is refused, as on small switches.
const VLANS_MAX: usize = 512;
/// The VLANs that there can be (IEEE 802.1Q).
const IDS: std::ops::RangeInclusive<u32> = 1..=4094;

/// How rows come to be (RFC 2579, `RowStatus`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RowCreation {
    /// By `createAndGo` and by `createAndWait`.
    #[default]
    Both,
    /// By `createAndGo` only.
    Go,
    /// By `createAndWait` only.
    Wait,
}

/// A VLAN.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    name: Vec<u8>,
    egress: Vec<u8>,
    forbidden: Vec<u8>,
    untagged: Vec<u8>,
    /// `RowStatus`: active(1), notInService(2).
    status: u8,
}

/// What can be set at one port of the bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Port {
    pvid: u16,
    /// admitAll(1), admitOnlyVlanTagged(2).
    frames: u8,
    /// true(1), false(2).
    filtering: u8,
    /// enabled(1), disabled(2).
    stp: u8,
    /// disabled(1) to enabledXmitAndRcv(4).
    pause: u8,
    /// up(1), down(2).
    admin: u8,
}

/// The settings of a simulated switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bridge {
    rows: BTreeMap<u16, Row>,
    ports: Vec<Port>,
    ageing_s: u32,
    pub(crate) creation: RowCreation,
}

impl Bridge {
    /// A switch as delivered: every port an untagged member of VLAN 1.
    pub(crate) fn new(ports: usize) -> Self {
        let mut all = vec![0; ports.div_ceil(8)];
        (0..ports).for_each(|port| all[port / 8] |= 0x80 >> (port % 8));
        let none = vec![0; all.len()];
        let row = Row {
            name: b"default".to_vec(),
            egress: all.clone(),
            forbidden: none,
            untagged: all,
            status: 1,
        };
        let port = Port { pvid: 1, frames: 1, filtering: 2, stp: 1, pause: 1, admin: 1 };
        Self {
            rows: BTreeMap::from([(1, row)]),
            ports: vec![port; ports],
            ageing_s: 300,
            creation: RowCreation::Both,
        }
    }

    /// The VLANs that it has rows of.
    pub(crate) fn vlans(&self) -> Vec<u16> {
        self.rows.keys().copied().collect()
    }

    /// As after it was switched off and on: nothing was saved.
    pub(crate) fn restart(&mut self) {
        *self = Self { creation: self.creation, ..Self::new(self.ports.len()) };
    }

    /// Octets of a list of ports.
    fn octets(&self) -> usize {
        self.ports.len().div_ceil(8)
    }

    /// The value of an object as the agent answers it.
    pub(crate) fn value(&self, object: BridgeObject) -> ValueRef<'_> {
        let row = |vlan: u16, octets: fn(&Row) -> &Vec<u8>| {
            let row = self.rows.get(&vlan);
            row.map_or(ValueRef::NoSuchInstance, |row| ValueRef::OctetString(octets(row)))
        };
        let port = |port: u16, of: fn(&Port) -> u8| {
            let port = self.ports.get(usize::from(port));
            port.map_or(ValueRef::NoSuchInstance, |port| ValueRef::Integer(of(port).into()))
        };
        match object {
            BridgeObject::Name(vlan) => row(vlan, |row| &row.name),
            BridgeObject::Egress(vlan) => row(vlan, |row| &row.egress),
            BridgeObject::Forbidden(vlan) => row(vlan, |row| &row.forbidden),
            BridgeObject::Untagged(vlan) => row(vlan, |row| &row.untagged),
            BridgeObject::Row(vlan) => self
                .rows
                .get(&vlan)
                .map_or(ValueRef::NoSuchInstance, |row| ValueRef::Integer(row.status.into())),
            BridgeObject::Pvid(port) => {
                let port = self.ports.get(usize::from(port));
                port.map_or(ValueRef::NoSuchInstance, |port| ValueRef::Gauge32(port.pvid.into()))
            }
            BridgeObject::Frames(at) => port(at, |port| port.frames),
            BridgeObject::Filtering(at) => port(at, |port| port.filtering),
            BridgeObject::Stp(at) => port(at, |port| port.stp),
            BridgeObject::Pause(at) => port(at, |port| port.pause),
            BridgeObject::Admin(at) => port(at, |port| port.admin),
            BridgeObject::Ageing => ValueRef::Integer(self.ageing_s.into()),
            BridgeObject::Count => {
                ValueRef::Gauge32(u32::try_from(self.rows.len()).expect("at most 512 rows"))
            }
        }
    }

    /// Whether an object that is there can be given this value.
    pub(crate) fn check(
        &self,
        object: BridgeObject,
        value: ValueRef<'_>,
    ) -> Result<(), ErrorStatus> {
        match object {
            BridgeObject::Name(_) => self.check_octets(value, 32),
            BridgeObject::Egress(_) | BridgeObject::Forbidden(_) | BridgeObject::Untagged(_) => {
                self.check_octets(value, self.octets())
            }
            BridgeObject::Row(vlan) => self.check_row(vlan, integer(value)?),
            BridgeObject::Pvid(_) => {
                let ValueRef::Gauge32(vlan) = value else { return Err(ErrorStatus::WrongType) };
                if !IDS.contains(&vlan) {
                    return Err(ErrorStatus::WrongValue);
                }
                let known = u16::try_from(vlan).is_ok_and(|vlan| self.rows.contains_key(&vlan));
                if known { Ok(()) } else { Err(ErrorStatus::InconsistentValue) }
            }
            BridgeObject::Frames(_)
            | BridgeObject::Filtering(_)
            | BridgeObject::Stp(_)
            | BridgeObject::Admin(_) => within(value, 1, 2),
            BridgeObject::Pause(_) => within(value, 1, 4),
            BridgeObject::Ageing => within(value, 10, 1_000_000),
            BridgeObject::Count => Err(ErrorStatus::NotWritable),
        }
    }

    fn check_octets(&self, value: ValueRef<'_>, most: usize) -> Result<(), ErrorStatus> {
        let ValueRef::OctetString(octets) = value else { return Err(ErrorStatus::WrongType) };
        if octets.len() > most {
            return Err(ErrorStatus::WrongLength);
        }
        // Bits beyond the last port.
        let beyond = |(place, octet): (usize, &u8)| {
            (0..8).any(|bit| octet & (0x80 >> bit) != 0 && place * 8 + bit >= self.ports.len())
        };
        if most == self.octets() && octets.iter().enumerate().any(beyond) {
            return Err(ErrorStatus::WrongValue);
        }
        Ok(())
    }

    fn check_row(&self, vlan: u16, wanted: i64) -> Result<(), ErrorStatus> {
        match wanted {
            1 | 2 => Ok(()),
            6 => {
                let is_needed = vlan == 1 || self.ports.iter().any(|port| port.pvid == vlan);
                if is_needed { Err(ErrorStatus::InconsistentValue) } else { Ok(()) }
            }
            4 | 5 => Err(ErrorStatus::InconsistentValue),
            _ => Err(ErrorStatus::WrongValue),
        }
    }

    /// Whether there can be an instance of this name that is not there yet, with this value.
    pub(crate) fn check_new(&self, oid: &[u8], value: ValueRef<'_>) -> Result<(), ErrorStatus> {
        let (column, _) = new_row(oid).ok_or(ErrorStatus::NoCreation)?;
        if column != 5 {
            // Nothing of a row before the row.
            return Err(ErrorStatus::InconsistentName);
        }
        if self.rows.len() >= VLANS_MAX {
            return Err(ErrorStatus::ResourceUnavailable);
        }
        match (integer(value)?, self.creation) {
            // What is not there is destroyed (RFC 2579).
            (6, _) | (4, RowCreation::Both | RowCreation::Go) => Ok(()),
            (5, RowCreation::Both | RowCreation::Wait) => Ok(()),
            (1 | 2, _) => Err(ErrorStatus::InconsistentValue),
            _ => Err(ErrorStatus::WrongValue),
        }
    }

    /// Gives an object a value that was checked.
    pub(crate) fn set(&mut self, object: BridgeObject, value: ValueRef<'_>) {
        let octets = self.octets();
        let list = |value: ValueRef<'_>| {
            let ValueRef::OctetString(given) = value else { return vec![0; octets] };
            let mut list = given.to_vec();
            list.resize(octets, 0);
            list
        };
        let number = integer(value).ok().and_then(|number| u8::try_from(number).ok());
        let mut row = |vlan: u16, set: &mut dyn FnMut(&mut Row)| {
            self.rows.get_mut(&vlan).into_iter().for_each(set);
        };
        match object {
            BridgeObject::Name(vlan) => row(vlan, &mut |row| {
                if let ValueRef::OctetString(name) = value {
                    row.name = name.to_vec();
                }
            }),
            BridgeObject::Egress(vlan) => row(vlan, &mut |row| row.egress = list(value)),
            BridgeObject::Forbidden(vlan) => row(vlan, &mut |row| row.forbidden = list(value)),
            BridgeObject::Untagged(vlan) => row(vlan, &mut |row| row.untagged = list(value)),
            BridgeObject::Row(vlan) => match number {
                Some(6) => drop(self.rows.remove(&vlan)),
                _ => row(vlan, &mut |row| row.status = number.unwrap_or(row.status)),
            },
            BridgeObject::Ageing => {
                let seconds = integer(value).ok().and_then(|seconds| u32::try_from(seconds).ok());
                self.ageing_s = seconds.unwrap_or(self.ageing_s);
            }
            BridgeObject::Count => {}
            BridgeObject::Pvid(at) => {
                if let (ValueRef::Gauge32(vlan), Some(port)) = (value, self.port(at)) {
                    // Nothing saturates: a number that is no VLAN leaves the PVID as it was.
                    port.pvid = u16::try_from(vlan).unwrap_or(port.pvid);
                }
            }
            BridgeObject::Frames(at)
            | BridgeObject::Filtering(at)
            | BridgeObject::Stp(at)
            | BridgeObject::Pause(at)
            | BridgeObject::Admin(at) => {
                let (Some(number), Some(port)) = (number, self.port(at)) else { return };
                match object {
                    BridgeObject::Frames(_) => port.frames = number,
                    BridgeObject::Filtering(_) => port.filtering = number,
                    BridgeObject::Stp(_) => port.stp = number,
                    BridgeObject::Pause(_) => port.pause = number,
                    _ => port.admin = number,
                }
            }
        }
    }

    fn port(&mut self, at: u16) -> Option<&mut Port> {
        self.ports.get_mut(usize::from(at))
    }

    /// Makes an instance that [`Self::check_new`] allowed.
    pub(crate) fn set_new(&mut self, oid: &[u8], value: ValueRef<'_>) {
        let (Some((_, vlan)), Ok(wanted)) = (new_row(oid), integer(value)) else { return };
        if wanted != 6 {
            let none = vec![0; self.octets()];
            let (egress, forbidden, untagged) = (none.clone(), none.clone(), none);
            let status = if wanted == 4 { 1 } else { 2 };
            self.rows.insert(vlan, Row { name: Vec::new(), egress, forbidden, untagged, status });
        }
    }
}

/// The column and the VLAN of a name below `dot1qVlanStaticEntry`.
fn new_row(oid: &[u8]) -> Option<(u32, u16)> {
    let oid = Oid::decode(oid).ok()?;
    let [column, vlan] = oid.below(&Oid::from_slice(STATIC_ENTRY))? else { return None };
    let known = (1..=5).contains(column) && IDS.contains(vlan);
    known.then_some((*column, u16::try_from(*vlan).ok()?))
}

fn integer(value: ValueRef<'_>) -> Result<i64, ErrorStatus> {
    match value {
        ValueRef::Integer(number) => Ok(number),
        _ => Err(ErrorStatus::WrongType),
    }
}

fn within(value: ValueRef<'_>, least: i64, most: i64) -> Result<(), ErrorStatus> {
    let number = integer(value)?;
    if (least..=most).contains(&number) { Ok(()) } else { Err(ErrorStatus::WrongValue) }
}

/// Adds the instances of a switch with these interfaces and VLANs.
pub(super) fn instances(tree: &mut Tree, shape: &Shape) {
    let count = i64::try_from(shape.interfaces.len()).expect("options bound the interfaces");
    tree.cell(BASE, 2, &[0], Value::Integer(count));
    tree.add(TP, 2, &[0], Source::Bridge(BridgeObject::Ageing));
    tree.cell(Q_BASE, 1, &[0], Value::Integer(1));
    tree.cell(Q_BASE, 2, &[0], Value::Integer(4094));
    let most = u32::try_from(VLANS_MAX).expect("a small constant");
    tree.cell(Q_BASE, 3, &[0], Value::Gauge32(most));
    tree.add(Q_BASE, 4, &[0], Source::Bridge(BridgeObject::Count));
    for (at, name) in (0_u16..).zip(&shape.interfaces) {
        if shape.detached.contains(name) {
            continue;
        }
        let (port, interface) = ([u32::from(at) + 1], [shape.if_index(at.into())]);
        tree.cell(BASE_PORT_ENTRY, 1, &port, Value::Integer(port[0].into()));
        tree.cell(BASE_PORT_ENTRY, 2, &port, Value::Integer(interface[0].into()));
        tree.add(STP_PORT_ENTRY, 4, &port, Source::Bridge(BridgeObject::Stp(at)));
        tree.add(PORT_VLAN_ENTRY, 1, &port, Source::Bridge(BridgeObject::Pvid(at)));
        tree.add(PORT_VLAN_ENTRY, 2, &port, Source::Bridge(BridgeObject::Frames(at)));
        tree.add(PORT_VLAN_ENTRY, 3, &port, Source::Bridge(BridgeObject::Filtering(at)));
        tree.add(PAUSE_ENTRY, 1, &interface, Source::Bridge(BridgeObject::Pause(at)));
        for column in [7, 8] {
            tree.add(IF_ENTRY, column, &interface, Source::Bridge(BridgeObject::Admin(at)));
        }
    }
    for &vlan in &shape.vlans {
        let objects = [
            BridgeObject::Name(vlan),
            BridgeObject::Egress(vlan),
            BridgeObject::Forbidden(vlan),
            BridgeObject::Untagged(vlan),
            BridgeObject::Row(vlan),
        ];
        for (column, object) in (1..).zip(objects) {
            tree.add(STATIC_ENTRY, column, &[vlan.into()], Source::Bridge(object));
        }
    }
}
