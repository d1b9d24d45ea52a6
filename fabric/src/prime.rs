//! Which frames teach switches where hosts are, and how often.
//!
//! This module says what is sent; who sends it has a clock, and a [`PrimingSocket`].

mod socket;

use std::collections::{BTreeMap, BTreeSet};

use meikyo_cluster::MacAddress;
use meikyo_units::Nanos;

pub use self::socket::{PrimingSocket, PrimingSocketError};
use crate::{Configuration, HostId, Priming, Representative, SwitchId, Vlan, Wiring};

/// Protocols for experiments on one's own network (IEEE 802, clause 9.2.3).
pub const PRIMING_ETHERTYPE: u16 = 0x88b5;
/// A priming frame as it is handed to the interface, tag included and checksum not: the shortest that
/// Ethernet allows.
pub const PRIMING_FRAME_BYTES: usize = 60;
/// The first bytes of what a priming frame carries.
const MAGIC: [u8; 4] = *b"MKYP";
const BROADCAST: MacAddress = MacAddress([0xff; 6]);

/// A frame that a host is to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PrimingFrame {
    /// The host that sends it.
    pub from: HostId,
    /// In this VLAN, with its tag.
    pub vlan: Vlan,
    /// To this host; `None` is a broadcast.
    pub to: Option<HostId>,
}

/// What a priming frame says: the host behind `from` can be sent to in the VLAN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrimingNotice {
    /// The sender's address.
    pub from: MacAddress,
    /// The VLAN in which it was sent.
    pub vlan: Vlan,
    /// Whether it goes to everybody, so that hosts answer it.
    pub is_broadcast: bool,
}

/// All frames of a round of priming: the second part is sent when the first has arrived.
///
/// The first are broadcasts: each is carried by the whole VLAN, once. The second go to
/// representatives, whose broadcasts have shown switches the way.
pub fn priming_frames(configuration: &Configuration) -> [Vec<PrimingFrame>; 2] {
    let hosts = || (0..configuration.hosts.len()).map(HostId::new);
    match &configuration.priming {
        Priming::None => [Vec::new(), Vec::new()],
        Priming::Broadcast(vlans) => {
            let frame = |from| vlans.iter().map(move |vlan| PrimingFrame { from, vlan, to: None });
            [hosts().flat_map(frame).collect(), Vec::new()]
        }
        Priming::Directed(representatives) => {
            let announce = |&Representative { vlan, host }: &Representative| PrimingFrame {
                from: host,
                vlan,
                to: None,
            };
            let answers = representatives.iter().flat_map(|&Representative { vlan, host }| {
                let others = hosts().filter(move |&from| from != host);
                others.map(move |from| PrimingFrame { from, vlan, to: Some(host) })
            });
            [representatives.iter().map(announce).collect(), answers.collect()]
        }
    }
}

/// The frames that one host sends by itself, without having heard another one.
pub fn own_priming_frames(configuration: &Configuration, host: HostId) -> Vec<PrimingFrame> {
    let [first, _] = priming_frames(configuration);
    first.into_iter().filter(|frame| frame.from == host).collect()
}

/// How often hosts prime: half the shortest time after which a switch forgets, so that one lost
/// frame does no harm; `None` if switches never forget or are not primed.
pub fn priming_period(configuration: &Configuration) -> Option<Nanos> {
    if configuration.priming == Priming::None {
        return None;
    }
    let shortest = configuration.switches.iter().filter_map(|switch| switch.ageing).min()?;
    Some(Nanos::new(shortest.get() / 2))
}

/// A priming frame as bytes: Ethernet with an 802.1Q tag. `to` is `None` for a broadcast.
pub fn priming_frame_bytes(
    from: MacAddress,
    to: Option<MacAddress>,
    vlan: Vlan,
) -> [u8; PRIMING_FRAME_BYTES] {
    let mut bytes = [0; PRIMING_FRAME_BYTES];
    bytes[0..6].copy_from_slice(&to.unwrap_or(BROADCAST).0);
    bytes[6..12].copy_from_slice(&from.0);
    bytes[12..14].copy_from_slice(&0x8100_u16.to_be_bytes());
    bytes[14..16].copy_from_slice(&vlan.id().to_be_bytes());
    bytes[16..18].copy_from_slice(&PRIMING_ETHERTYPE.to_be_bytes());
    bytes[18..22].copy_from_slice(&MAGIC);
    // Switches take the tag off before a host gets the frame, so it says the VLAN itself.
    bytes[22..24].copy_from_slice(&vlan.id().to_be_bytes());
    bytes
}

/// What a frame says that a host received, its tag taken off; `None` if it is no priming frame.
pub fn read_priming_frame(bytes: &[u8]) -> Option<PrimingNotice> {
    let to: [u8; 6] = *bytes.first_chunk()?;
    let from: [u8; 6] = *bytes.get(6..)?.first_chunk()?;
    let rest = bytes.get(12..)?.strip_prefix(&PRIMING_ETHERTYPE.to_be_bytes())?;
    let rest = rest.strip_prefix(&MAGIC)?;
    let vlan = Vlan::new(u16::from_be_bytes(*rest.first_chunk()?))?;
    Some(PrimingNotice { from: MacAddress(from), vlan, is_broadcast: MacAddress(to) == BROADCAST })
}

/// How many addresses each switch holds in each VLAN when only priming has taught it, in the order
/// of the wiring. Takes time in proportion to VLANs times trunks, and hosts for directed priming.
pub fn primed_entries(
    wiring: &Wiring,
    configuration: &Configuration,
) -> Vec<BTreeMap<Vlan, usize>> {
    let mut known: BTreeMap<Vlan, Vec<BTreeSet<HostId>>> = BTreeMap::new();
    let mut trees: BTreeMap<Vlan, Neighbours> = BTreeMap::new();
    let [broadcasts, directed] = priming_frames(configuration);
    for PrimingFrame { from, vlan, to } in broadcasts.into_iter().chain(directed) {
        let tree = trees.entry(vlan).or_insert_with(|| neighbours(wiring, configuration, vlan));
        let home = wiring.hosts[from.place()].switch;
        let target = to.map(|to| wiring.hosts[to.place()].switch);
        let known =
            known.entry(vlan).or_insert_with(|| vec![BTreeSet::new(); wiring.switches.len()]);
        for switch in passed(tree, home, target) {
            known[switch.place()].insert(from);
        }
    }
    let mut entries = vec![BTreeMap::new(); wiring.switches.len()];
    for (vlan, known) in known {
        for (entries, hosts) in entries.iter_mut().zip(known) {
            entries.insert(vlan, hosts.len());
        }
    }
    entries
}

/// For each switch those that it passes frames of a VLAN on to.
type Neighbours = Vec<Vec<SwitchId>>;

fn neighbours(wiring: &Wiring, configuration: &Configuration, vlan: Vlan) -> Neighbours {
    let mut neighbours = vec![Vec::new(); wiring.switches.len()];
    for trunk in &wiring.trunks {
        let carries = trunk.ends.iter().all(|end| {
            let ports = &configuration.switches[end.switch.place()].ports;
            ports.iter().any(|port| port.ports == end.ports && port.is_member(vlan))
        });
        if carries {
            let [one, other] = &trunk.ends;
            neighbours[one.switch.place()].push(other.switch);
            neighbours[other.switch.place()].push(one.switch);
        }
    }
    neighbours
}

/// The switches that a frame passes: all that it can reach, or those on the way to its target.
fn passed(tree: &Neighbours, from: SwitchId, to: Option<SwitchId>) -> Vec<SwitchId> {
    let mut before: BTreeMap<SwitchId, Option<SwitchId>> = BTreeMap::from([(from, None)]);
    let mut order = vec![from];
    let mut at = 0;
    while let Some(&switch) = order.get(at) {
        for &next in &tree[switch.place()] {
            if let std::collections::btree_map::Entry::Vacant(vacant) = before.entry(next) {
                vacant.insert(Some(switch));
                order.push(next);
            }
        }
        at += 1;
    }
    let Some(to) = to else { return order };
    let mut way = Vec::new();
    let mut at = before.contains_key(&to).then_some(to);
    while let Some(switch) = at {
        way.push(switch);
        at = before.get(&switch).copied().flatten();
    }
    way
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PlanOptions, SwitchModel, Topology, cable_uniform, plan};

    fn planned(topology: &str) -> (Wiring, Configuration) {
        let topology: Topology = topology.parse().unwrap();
        let model = SwitchModel::named("linux-bridge").unwrap();
        let wiring = cable_uniform(&topology, &model, 2).unwrap();
        let configuration =
            plan(&wiring, &PlanOptions::new(Some(topology))).unwrap().configuration(&wiring);
        (wiring, configuration)
    }

    #[test]
    fn broadcasts_put_every_host_into_every_vlan_of_every_switch() {
        let (wiring, mut configuration) = planned("torus 4x2");
        let vlans = configuration.switches[0].vlans.clone();
        configuration.priming = Priming::Broadcast(Box::new(vlans.clone()));
        let [first, second] = priming_frames(&configuration);
        assert_eq!((first.len(), second.len()), (16 * vlans.len(), 0));
        for entries in primed_entries(&wiring, &configuration) {
            assert!(entries.values().all(|&hosts| hosts == 16));
            assert_eq!(entries.len(), vlans.len());
        }
    }

    #[test]
    fn hosts_prime_twice_before_the_first_switch_forgets() {
        let (_, mut configuration) = planned("ring 4");
        configuration.switches[1].ageing = None;
        configuration.switches[2].ageing = Some(Nanos::from_secs(300));
        configuration.switches[3].ageing = Some(Nanos::from_secs(40));
        assert_eq!(priming_period(&configuration), Some(Nanos::from_secs(20)));
        configuration.priming = Priming::None;
        assert_eq!(priming_period(&configuration), None);
    }

    #[test]
    fn directed_priming_is_known_on_the_way_only() {
        // A row of three switches with two hosts each is a tree: one VLAN, both ends represented.
        let (wiring, mut configuration) = planned("mesh 3");
        let vlan = configuration.switches[0].vlans.iter().next().unwrap();
        let host = HostId::new(0);
        configuration.priming = Priming::Directed(vec![Representative { vlan, host }]);
        let counts: Vec<usize> =
            primed_entries(&wiring, &configuration).iter().map(|entries| entries[&vlan]).collect();
        // All six are known where the representative is, four of them and it on the next switch.
        assert_eq!(counts, [6, 5, 3]);
    }

    #[test]
    fn frames_are_read_as_hosts_get_them() {
        let (from, vlan) = (MacAddress([2, 0, 0, 0, 0, 7]), Vlan::new(104).unwrap());
        let bytes = priming_frame_bytes(from, None, vlan);
        assert_eq!(read_priming_frame(&bytes), None, "with the tag it is of another protocol");
        let mut untagged = bytes[..12].to_vec();
        untagged.extend_from_slice(&bytes[16..]);
        let notice = PrimingNotice { from, vlan, is_broadcast: true };
        assert_eq!(read_priming_frame(&untagged), Some(notice));
        assert_eq!(read_priming_frame(&untagged[..19]), None);
    }
}
