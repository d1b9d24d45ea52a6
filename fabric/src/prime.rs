//! Which frames teach switches where hosts are, and how often.
//!
//! This module says what is sent; who sends it has a clock, and a [`PrimingSocket`].

mod entries;
mod socket;

use meikyo_cluster::MacAddress;
use meikyo_units::Nanos;

pub use self::entries::primed_entries;
pub use self::socket::{PrimingSocket, PrimingSocketError};
use crate::{Configuration, HostId, Priming, Representative, Vlan};

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
    /// The Ethernet address of the host that sent it.
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
    let broadcast = |vlan| PrimingFrame { from: host, vlan, to: None };
    match &configuration.priming {
        Priming::None => Vec::new(),
        Priming::Broadcast(vlans) => vlans.iter().map(broadcast).collect(),
        Priming::Directed(representatives) => {
            let own = representatives.iter().filter(|own| own.host == host);
            own.map(|own| broadcast(own.vlan)).collect()
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PlanOptions, SwitchModel, Topology, Wiring, cable_uniform, plan};

    pub(super) fn planned(topology: &str) -> (Wiring, Configuration) {
        let topology: Topology = topology.parse().unwrap();
        let model = SwitchModel::named("linux-bridge").unwrap();
        let wiring = cable_uniform(&topology, &model, 2).unwrap();
        let configuration =
            plan(&wiring, &PlanOptions::new(Some(topology))).unwrap().configuration(&wiring);
        (wiring, configuration)
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
