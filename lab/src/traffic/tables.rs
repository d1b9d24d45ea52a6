//! What switches have learned and counted, and their cables.

use std::collections::BTreeMap;

use meikyo_spaces::links;
use meikyo_spaces::netlink::{
    IFLA_IFNAME, IFLA_INFO_DATA, IFLA_INFO_KIND, IFLA_LINKINFO, Message, Netlink, RTM_GETLINK,
    RTM_NEWLINK, attributes,
};

use super::{Counters, Done, Entry, Inside, TaskError};
use crate::blueprint::{BRIDGE, Role};

const RTM_GETNEIGH: u16 = 30;
const NDA_LLADDR: u16 = 2;
const NDA_VLAN: u16 = 5;
/// An address of the switch itself.
const NUD_PERMANENT: u16 = 0x80;
const IFF_UP: u32 = 1;
const IFLA_STATS64: u16 = 23;
const IFLA_BR_FDB_FLUSH: u16 = 21;

/// A routing socket to every switch.
pub(super) struct Counting(Vec<(usize, Netlink)>);

impl Counting {
    pub(super) fn open(inside: &Inside) -> Result<Self, TaskError> {
        let open = |space| Ok((space, inside.netlink(space)?));
        inside.switches().into_iter().map(open).collect::<Result<_, TaskError>>().map(Self)
    }

    /// What the devices of every switch have counted.
    pub(super) fn read(
        &mut self,
        inside: &Inside,
    ) -> Result<Vec<BTreeMap<String, Counters>>, TaskError> {
        let mut all = Vec::with_capacity(self.0.len());
        for (space, netlink) in &mut self.0 {
            let mut devices = BTreeMap::new();
            let ask = Message::new("counters", RTM_GETLINK, 0, &[0; 16]);
            netlink
                .dump(ask, |body| devices.extend(device_counters(body)))
                .map_err(inside.refused(*space))?;
            all.push(devices);
        }
        Ok(all)
    }
}

/// Of a device (`ifinfomsg`): family, type, index, flags.
fn device_counters(body: &[u8]) -> Option<(String, Counters)> {
    let flags = u32::from_ne_bytes(*body.get(8..)?.first_chunk()?);
    let (mut name, mut counters) = (None, None);
    for (kind, value) in attributes(body.get(16..)?) {
        match kind {
            IFLA_IFNAME => name = Some(String::from_utf8_lossy(value.strip_suffix(&[0])?).into()),
            IFLA_STATS64 => {
                let number = |nth: usize| {
                    let bytes = value.get(nth * 8..)?.first_chunk()?;
                    Some(u64::from_ne_bytes(*bytes))
                };
                counters = Some(Counters {
                    up: flags & IFF_UP != 0,
                    received_frames: number(0)?,
                    sent_frames: number(1)?,
                    received_bytes: number(2)?,
                    sent_bytes: number(3)?,
                });
            }
            _ => {}
        }
    }
    Some((name?, counters?))
}

/// What every switch has learned, in order.
pub(super) fn tables(inside: &Inside) -> Result<Done, TaskError> {
    let mut tables = Vec::new();
    for space in inside.switches() {
        let mut netlink = inside.netlink(space)?;
        let mut names = BTreeMap::new();
        let ask = Message::new("devices", RTM_GETLINK, 0, &[0; 16]);
        let name = |body: &[u8]| {
            let index = u32::from_ne_bytes(*body.get(4..)?.first_chunk()?);
            Some((index, device_counters(body)?.0))
        };
        netlink.dump(ask, |body| names.extend(name(body))).map_err(inside.refused(space))?;
        let mut entries = Vec::new();
        let mut family = [0; 12];
        family[0] = u8::try_from(libc::AF_BRIDGE).expect("families are small");
        let ask = Message::new("the forwarding table", RTM_GETNEIGH, 0, &family);
        netlink
            .dump(ask, |body| entries.extend(entry(body, &names)))
            .map_err(inside.refused(space))?;
        entries.sort_unstable();
        tables.push(entries);
    }
    Ok(Done::Tables(tables))
}

/// A learned entry (`ndmsg`): family, index, state.
fn entry(body: &[u8], names: &BTreeMap<u32, String>) -> Option<Entry> {
    let index = u32::from_ne_bytes(*body.get(4..)?.first_chunk()?);
    let state = u16::from_ne_bytes(*body.get(8..)?.first_chunk()?);
    if state & NUD_PERMANENT != 0 {
        return None;
    }
    let (mut mac, mut vlan) = (None, None);
    for (kind, value) in attributes(body.get(12..)?) {
        match kind {
            NDA_LLADDR => mac = value.first_chunk::<6>().copied(),
            NDA_VLAN => vlan = value.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes)),
            _ => {}
        }
    }
    Some(Entry { vlan: vlan?, mac: mac?, device: names.get(&index)?.clone() })
}

/// Forgets what switches have learned.
pub(super) fn flush(inside: &Inside) -> Result<(), TaskError> {
    for space in inside.switches() {
        // By its name: a script that was run in the switch may have made the bridge anew.
        let message = Message::new("forgetting", RTM_NEWLINK, 0, &[0; 16])
            .with_text(IFLA_IFNAME, BRIDGE)
            .nest(IFLA_LINKINFO, |info| {
                info.with_text(IFLA_INFO_KIND, "bridge")
                    .nest(IFLA_INFO_DATA, |data| data.with(IFLA_BR_FDB_FLUSH, &[]))
            });
        inside.netlink(space)?.apply(vec![message]).map_err(inside.refused(space))?;
    }
    Ok(())
}

/// Cuts a cable at both ends, or mends it.
pub(super) fn set_cable(inside: &Inside, place: usize, up: bool) -> Result<(), TaskError> {
    let unknown = TaskError::Unknown { kind: "cable", place };
    let cable = inside.blueprint.cables.get(place).ok_or(unknown)?;
    for end in &cable.ends {
        let what = format!("`{}` {}", end.device, if up { "up" } else { "down" });
        let message = if up {
            links::set_link(what, end.index, None, true)
        } else {
            links::set_link_down(what, end.index)
        };
        let is_switch = matches!(inside.blueprint.spaces[end.space].role, Role::Switch(_));
        if is_switch {
            let mut netlink = inside.netlink(end.space)?;
            netlink.apply(vec![message]).map_err(inside.refused(end.space))?;
        }
    }
    for end in &cable.ends {
        let mut netlink = inside.netlink(end.space)?;
        links::await_state(&mut netlink, [end.index].into(), up)
            .map_err(inside.refused(end.space))?;
    }
    Ok(())
}
