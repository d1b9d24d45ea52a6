//! What BRIDGE-MIB, Q-BRIDGE-MIB, IEEE8023-LAG-MIB and LLDP-MIB say, in the words of the fabric.
//!
//! A bridge numbers its ports itself (`dot1dBasePort`); switches number them as on their fronts, and
//! bundles beyond. What a bundle has, each of its ports has here.

use std::collections::{BTreeMap, BTreeSet};

use meikyo_cluster::MacAddress;
use meikyo_fabric::{HostId, Neighbour, Observed, PortNumber, SwitchId, Vlan, VlanSet, Wiring};
use meikyo_snmp::{Oid, Value};

/// `dot1dBasePortIfIndex` (RFC 4188).
pub(super) const PORT_INTERFACE: &[u32] = &[1, 3, 6, 1, 2, 1, 17, 1, 4, 1, 2];
/// `dot1qVlanFdbId` (RFC 4363): the database in which addresses of a VLAN are learned.
const DATABASE: &[u32] = &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 2, 1, 3];
/// `dot1qTpFdbPort` (RFC 4363).
const LEARNED_PORT: &[u32] = &[1, 3, 6, 1, 2, 1, 17, 7, 1, 2, 2, 1, 2];
/// `dot1qVlanStaticEgressPorts` (RFC 4363).
pub(super) const EGRESS_PORTS: &[u32] = &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 3, 1, 2];
/// `dot1qVlanStaticUntaggedPorts` (RFC 4363).
pub(super) const UNTAGGED_PORTS: &[u32] = &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 3, 1, 4];
/// `dot1qPvid` (RFC 4363).
pub(super) const PVID: &[u32] = &[1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 5, 1, 1];
/// `dot3adAggPortAttachedAggID` (IEEE 802.3, IEEE8023-LAG-MIB).
pub(super) const ATTACHED_BUNDLE: &[u32] = &[1, 2, 840, 10006, 300, 43, 1, 2, 1, 1, 13];
/// `lldpLocPortId` (IEEE 802.1AB, LLDP-MIB).
const OWN_PORT: &[u32] = &[1, 0, 8802, 1, 1, 2, 1, 3, 7, 1, 3];
/// `lldpRemPortId`.
const NEIGHBOUR_PORT: &[u32] = &[1, 0, 8802, 1, 1, 2, 1, 4, 1, 1, 7];
/// `lldpRemSysName`.
const NEIGHBOUR_NAME: &[u32] = &[1, 0, 8802, 1, 1, 2, 1, 4, 1, 1, 9];

type Walked = Vec<(Oid, Value)>;

/// What a switch says, by walks over its tables.
pub(super) fn observed(
    wiring: &Wiring,
    switch: SwitchId,
    walk: &mut impl FnMut(Oid) -> Result<Walked, String>,
) -> Result<Observed, String> {
    let mut table = |object: &[u32]| -> Result<Vec<(Vec<u32>, Value)>, String> {
        let object = Oid::from_slice(object);
        let found = walk(object.clone())?;
        let row = |(oid, value): (Oid, Value)| Some((oid.below(&object)?.to_vec(), value));
        Ok(found.into_iter().filter_map(row).collect())
    };
    let interfaces: BTreeMap<u64, u32> = table(PORT_INTERFACE)?
        .into_iter()
        .filter_map(|(index, value)| Some((value.as_u64()?, *index.first()?)))
        .collect();
    let attached = table(ATTACHED_BUNDLE)?;
    let ports = Ports::new(wiring.switches[switch.place()].model.ports, &interfaces, &attached);
    let pvids = table(PVID)?;
    if pvids.is_empty() {
        return Err("the agent has no table of PVIDs (dot1qPvid of Q-BRIDGE-MIB)".to_owned());
    }
    let mut observed = Observed::default();
    for (index, value) in pvids {
        let vlan = value.as_u64().and_then(|id| Vlan::new(u16::try_from(id).ok()?));
        for port in index.first().map_or(&[][..], |port| ports.front(*port)) {
            observed.pvids.extend(vlan.map(|vlan| (*port, vlan)));
        }
    }
    observed.members = ports.sets(&table(EGRESS_PORTS)?);
    observed.untagged = ports.sets(&table(UNTAGGED_PORTS)?);
    observed.neighbours =
        neighbours(&table(OWN_PORT)?, &table(NEIGHBOUR_NAME)?, &table(NEIGHBOUR_PORT)?);
    let databases = Databases::new(&table(DATABASE)?);
    observed.learned = learned(wiring, &ports, &databases, &table(LEARNED_PORT)?);
    Ok(observed)
}

/// The ports on the front for each port of the bridge: one, or those of a bundle.
pub(super) struct Ports(BTreeMap<u32, Vec<PortNumber>>);

impl Ports {
    /// From the port of the bridge that each interface is, and the bundle that interfaces are in.
    pub(super) fn new(
        count: u16,
        interfaces: &BTreeMap<u64, u32>,
        attached: &[(Vec<u32>, Value)],
    ) -> Self {
        let mut ports: BTreeMap<u32, Vec<PortNumber>> =
            (1..=count).map(|port| (u32::from(port), vec![PortNumber(port)])).collect();
        let port_of = |interface: u64| interfaces.get(&interface).copied();
        for (index, bundle) in attached {
            let member = index.first().and_then(|interface| port_of(u64::from(*interface)));
            let bundle = bundle.as_u64().and_then(port_of);
            let (Some(member), Some(bundle)) = (member, bundle) else { continue };
            if let (Ok(front), true) = (u16::try_from(member), member != bundle) {
                ports.remove(&member);
                ports.entry(bundle).or_default().push(PortNumber(front));
            }
        }
        Self(ports)
    }

    /// Each port of the bridge with those on the front.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &[PortNumber])> {
        self.0.iter().map(|(bridge, fronts)| (*bridge, fronts.as_slice()))
    }

    fn front(&self, port: u32) -> &[PortNumber] {
        self.0.get(&port).map_or(&[], Vec::as_slice)
    }

    /// The VLANs of each port, from a bit string of ports for each VLAN: the first bit is port 1.
    fn sets(&self, rows: &[(Vec<u32>, Value)]) -> BTreeMap<PortNumber, VlanSet> {
        let mut sets: BTreeMap<PortNumber, VlanSet> = BTreeMap::new();
        for (index, value) in rows {
            let vlan = index.first().and_then(|id| Vlan::new(u16::try_from(*id).ok()?));
            let (Some(vlan), Some(octets)) = (vlan, value.as_octets()) else { continue };
            for (place, octet) in (0_u32..).zip(octets) {
                for bit in (0..8).filter(|bit| octet & (0x80 >> bit) != 0) {
                    for port in self.front(place * 8 + bit + 1) {
                        sets.entry(*port).or_default().insert(vlan);
                    }
                }
            }
        }
        sets
    }
}

/// Who is heard at which port; rows are indexed by time, the agent's number of its port, and a
/// number of the neighbour. An agent that does not say how its port is called numbers it as it is.
fn neighbours(
    own: &[(Vec<u32>, Value)],
    names: &[(Vec<u32>, Value)],
    ports: &[(Vec<u32>, Value)],
) -> BTreeMap<PortNumber, Vec<Neighbour>> {
    let own: BTreeMap<u32, PortNumber> = own
        .iter()
        .filter_map(|(index, value)| Some((*index.first()?, port_number(&text(value)?)?)))
        .collect();
    let mut heard: BTreeMap<PortNumber, Vec<Neighbour>> = BTreeMap::new();
    for (index, value) in names {
        let [_, local, _] = index.as_slice() else { continue };
        let numbered = || u16::try_from(*local).ok().map(PortNumber);
        let (Some(local), Some(name)) = (own.get(local).copied().or_else(numbered), text(value))
        else {
            continue;
        };
        let port = ports.iter().find(|(other, _)| other == index);
        let port = port.and_then(|(_, value)| port_number(&text(value)?));
        heard.entry(local).or_default().push(Neighbour { name, port });
    }
    heard
}

/// A text from a neighbour, without what would move a terminal's cursor.
fn text(value: &Value) -> Option<String> {
    let text = String::from_utf8_lossy(value.as_octets()?).into_owned();
    Some(text.replace(char::is_control, "\u{fffd}"))
}

/// The number of a port that names itself `7`, `1/g7`, `swp7`, `1/0/7`, `Gi1/0/7` or `gigabitEthernet 1/0/7`:
/// one of the first unit, and not one of 10 Gbit/s beside others, which is counted after them.
fn port_number(text: &str) -> Option<PortNumber> {
    let (before, last) = text.rsplit_once('/').unwrap_or(("", text));
    let unit = before.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    let kind = before[..before.len() - unit.len()].to_ascii_lowercase();
    if !["", "0", "1", "1/0"].contains(&unit) || kind.starts_with("te") {
        return None;
    }
    let digits = last.trim_start_matches(|letter: char| letter.is_ascii_alphabetic());
    let ten_gigabit = if last.starts_with("xg") { 48 } else { 0 };
    digits.parse::<u16>().ok()?.checked_add(ten_gigabit).map(PortNumber)
}

/// The VLAN of each database of learned addresses; none for one that several VLANs share, in which an
/// address says nothing of its VLAN.
struct Databases(BTreeMap<u32, Option<Vlan>>);

impl Databases {
    /// From rows that are indexed by time and VLAN.
    fn new(rows: &[(Vec<u32>, Value)]) -> Self {
        let mut vlans: BTreeMap<u32, Option<Vlan>> = BTreeMap::new();
        for (index, value) in rows {
            let vlan = index.get(1).and_then(|id| Vlan::new(u16::try_from(*id).ok()?));
            let database = value.as_u64().and_then(|id| u32::try_from(id).ok());
            let (Some(vlan), Some(database)) = (vlan, database) else { continue };
            let own = vlans.entry(database).or_insert(Some(vlan));
            *own = own.filter(|own| *own == vlan);
        }
        Self(vlans)
    }

    /// A switch that does not say it numbers them as the VLANs.
    fn vlan(&self, database: u32) -> Option<Vlan> {
        if self.0.is_empty() {
            return Vlan::new(u16::try_from(database).ok()?);
        }
        self.0.get(&database).copied().flatten()
    }
}

/// Which hosts' addresses were learned where; rows are indexed by database and the six octets.
fn learned(
    wiring: &Wiring,
    ports: &Ports,
    databases: &Databases,
    rows: &[(Vec<u32>, Value)],
) -> BTreeSet<(HostId, Vlan, PortNumber)> {
    let hosts: BTreeMap<MacAddress, HostId> = wiring
        .hosts
        .iter()
        .enumerate()
        .filter_map(|(place, host)| Some((host.mac?, HostId::new(place))))
        .collect();
    let row = |(index, value): &(Vec<u32>, Value)| {
        let (database, octets) = index.split_first()?;
        let vlan = databases.vlan(*database)?;
        let octets: Vec<u8> = octets.iter().filter_map(|octet| (*octet).try_into().ok()).collect();
        let host = *hosts.get(&MacAddress(octets.try_into().ok()?))?;
        let port = u32::try_from(value.as_u64()?).ok()?;
        Some((host, vlan, *ports.front(port).first()?))
    };
    rows.iter().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_name_themselves_in_several_ways() {
        for (text, number) in [
            ("7", Some(7)),
            ("1/g7", Some(7)),
            ("swp7", Some(7)),
            ("g7", Some(7)),
            ("1/xg2", Some(50)),
            ("1/0/7", Some(7)),
            ("Gi1/0/7", Some(7)),
            ("GigabitEthernet1/0/7", Some(7)),
            ("gigabitEthernet 1/0/7", Some(7)),
            ("eth1/0/7", Some(7)),
            ("Gi2/0/7", None),
            ("Te1/0/1", None),
            ("", None),
            ("00:11:22:33:44:55", None),
            ("eth", None),
        ] {
            assert_eq!(port_number(text), number.map(PortNumber), "{text}");
        }
    }

    #[test]
    fn neighbours_are_at_the_port_that_the_agent_means() {
        let words = |text: &str| Value::OctetString(text.into());
        let own = [(vec![12], words("swp7"))];
        let names = [(vec![0, 12, 1], words("")), (vec![0, 12, 2], words("sw\u{1b}2"))];
        let ports =
            [(vec![0, 12, 1], words("02:00:00:00:00:07")), (vec![0, 12, 2], words("swp48"))];
        let of = |name: &str, port| Neighbour { name: name.into(), port };
        let both = vec![of("", None), of("sw\u{fffd}2", Some(PortNumber(48)))];
        assert_eq!(neighbours(&own, &names, &ports), [(PortNumber(7), both.clone())].into());
        assert_eq!(neighbours(&[], &names, &ports), [(PortNumber(12), both)].into());
    }

    #[test]
    fn addresses_are_in_the_vlan_of_their_database_if_it_is_of_one() {
        let rows = [(vec![0, 101], 7), (vec![0, 102], 8), (vec![0, 103], 8), (vec![9, 101], 7)];
        let rows = rows.map(|(index, id)| (index, Value::Gauge32(id)));
        let vlans = |databases: &Databases| [7, 8, 101].map(|id| databases.vlan(id).map(Vlan::id));
        assert_eq!(vlans(&Databases::new(&rows)), [Some(101), None, None]);
        assert_eq!(vlans(&Databases::new(&[])), [Some(7), Some(8), Some(101)]);
    }

    #[test]
    fn a_bundle_gives_its_ports_what_it_has() {
        let interfaces = BTreeMap::from([(1, 1), (2, 2), (3, 3), (626, 60)]);
        let attached = [(vec![2], Value::Integer(626)), (vec![3], Value::Integer(626))];
        let ports = Ports::new(4, &interfaces, &attached);
        assert_eq!(ports.front(60), [PortNumber(2), PortNumber(3)]);
        assert_eq!((ports.front(1), ports.front(2)), (&[PortNumber(1)][..], &[][..]));
        // Ports 1 and 60: bits 0 and 59.
        let bits = Value::OctetString(vec![0x80, 0, 0, 0, 0, 0, 0, 0x10]);
        let sets = ports.sets(&[(vec![101], bits)]);
        let vlan = VlanSet::from_iter(Vlan::new(101));
        assert_eq!(sets, [1, 2, 3].map(|port| (PortNumber(port), vlan.clone())).into());
    }
}
