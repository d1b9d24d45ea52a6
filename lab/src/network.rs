//! Sets up the network of a blueprint: every namespace, link, bridge and address, by one process.
//!
//! Every space has a routing socket of its own, opened while this process was in it. A cable is made
//! from the space at its first end, with the other end born in its own space.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use meikyo_units::{Nanos, WallTime};
use rustix::mount::mount_bind;
use rustix::thread::{LinkNameSpaceType, UnshareFlags};

use crate::blueprint::{
    self, BRIDGE, Blueprint, Bridge, BridgePort, Bundle, Cable, CableEnd, MANAGEMENT_INTERFACE,
    Purpose, Role, Space,
};
use crate::netlink::{
    IFLA_IFNAME, IFLA_INFO_DATA, IFLA_INFO_KIND, IFLA_LINKINFO, Message, NLM_F_CREATE, NLM_F_EXCL,
    Netlink, NetlinkError, RTM_GETLINK, RTM_NEWLINK, attributes,
};
use crate::system;

/// Where the namespaces are found by name, as `ip netns` wants them.
pub(crate) const NAMESPACES: &str = "/run/netns";

const RTM_SETLINK: u16 = 19;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWQDISC: u16 = 36;
const IFLA_ADDRESS: u16 = 1;
const IFLA_MASTER: u16 = 10;
const IFLA_OPERSTATE: u16 = 16;
const OPERSTATE_UP: u8 = 6;
const IFLA_AF_SPEC: u16 = 26;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_INFO_SLAVE_KIND: u16 = 4;
const IFLA_INFO_SLAVE_DATA: u16 = 5;
/// Only of devices in bundles that speak LACP: the state of their own side (IEEE 802.1AX, 6.4.2.3).
const IFLA_BOND_SLAVE_AD_ACTOR_STATE: u16 = 7;
const AD_DISTRIBUTING: u8 = 1 << 5;
const VETH_INFO_PEER: u16 = 1;
const IFLA_BR_FORWARD_DELAY: u16 = 1;
const IFLA_BR_AGEING_TIME: u16 = 4;
const IFLA_BR_STP_STATE: u16 = 5;
const IFLA_BR_VLAN_FILTERING: u16 = 7;
const IFLA_BR_MCAST_SNOOPING: u16 = 23;
const IFLA_BR_VLAN_DEFAULT_PVID: u16 = 39;
const IFLA_BRIDGE_VLAN_INFO: u16 = 2;
const VLAN_PVID: u16 = 1 << 1;
const VLAN_UNTAGGED: u16 = 1 << 2;
const VLAN_RANGE_BEGIN: u16 = 1 << 3;
const VLAN_RANGE_END: u16 = 1 << 4;
const IFLA_BOND_MODE: u16 = 1;
const IFLA_BOND_MIIMON: u16 = 3;
const IFLA_BOND_XMIT_HASH_POLICY: u16 = 14;
const IFLA_BOND_AD_LACP_RATE: u16 = 21;
const BOND_MODE_XOR: u8 = 2;
const BOND_MODE_8023AD: u8 = 4;
/// By Internet address and port, as the paper's switches do.
const BOND_HASH_LAYER34: u8 = 1;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_BROADCAST: u16 = 4;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
const TC_LINKLAYER_ETHERNET: u8 = 1;
const TC_H_ROOT: u32 = 0xffff_ffff;
const IFF_UP: u32 = 1;
const LOOPBACK_INDEX: u32 = 1;
/// How long a bundle may take to agree by LACP, and a cable to carry.
const CARRIER_PATIENCE: Nanos = Nanos::from_secs(15);
/// Both networks have addresses of this many bits.
const PREFIX_BITS: u8 = 9;
/// How long a shaped link sends before frames wait: 4 ms, and at least ten full frames.
const BURST_BYTES_MIN: u64 = 16_000;
/// How much waits at most: 100 ms, and at least a hundred full frames.
const QUEUE_BYTES_MIN: u64 = 160_000;

/// The network could not be set up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NetworkError {
    /// A namespace could not be made.
    #[error("cannot make the namespace `{space}`: {step}")]
    Namespace {
        /// The host or switch whose namespace it is.
        space: String,
        /// The step that failed, in words.
        step: &'static str,
        /// The error of that call.
        #[source]
        source: io::Error,
    },
    /// The kernel refused what should be in it.
    #[error("cannot set up `{space}`")]
    Space {
        /// The host or switch whose messages were refused.
        space: String,
        /// The kernel's answer.
        #[source]
        source: NetlinkError,
    },
    /// A device has offloads that cannot be turned off.
    #[error("cannot turn the offloads of `{device}` of `{space}` off")]
    Offloads {
        /// The host or switch that the device belongs to.
        space: String,
        /// The device that keeps putting packets together.
        device: String,
        /// The error of the `ioctl`.
        #[source]
        source: io::Error,
    },
}

/// A namespace that is there, and the socket that commands it.
struct Made {
    file: File,
    netlink: Netlink,
}

/// Makes all namespaces of a blueprint, and everything in them.
///
/// # Errors
/// [`NetworkError`] at the first thing that fails; the rest is left as it is.
pub(crate) fn set_up(blueprint: &Blueprint, home: &File) -> Result<(), NetworkError> {
    let mut made = make_namespaces(&blueprint.spaces, home)?;
    let refused = |space: usize| {
        move |source| NetworkError::Space { space: blueprint.spaces[space].name.clone(), source }
    };
    for (place, space) in blueprint.spaces.iter().enumerate() {
        made[place].netlink.apply(masters(space)).map_err(refused(place))?;
    }
    let mut by_first: BTreeMap<usize, Vec<Message>> = BTreeMap::new();
    for cable in &blueprint.cables {
        let [one, other] = &cable.ends;
        let namespace = std::os::fd::AsRawFd::as_raw_fd(&made[other.space].file);
        let message = new_cable(one, other, &blueprint.spaces[other.space].name, namespace);
        by_first.entry(one.space).or_default().push(message);
    }
    for (place, messages) in by_first {
        made[place].netlink.apply(messages).map_err(refused(place))?;
    }
    let mut ends: Vec<Vec<(&CableEnd, Purpose)>> = vec![Vec::new(); blueprint.spaces.len()];
    for Cable { purpose, ends: both } in &blueprint.cables {
        both.iter().for_each(|end| ends[end.space].push((end, *purpose)));
    }
    for (place, space) in blueprint.spaces.iter().enumerate() {
        let made = &mut made[place];
        enter(space, &made.file)?;
        let messages = filling(space, &ends[place], blueprint.rate);
        made.netlink.apply(messages).map_err(refused(place))?;
        if matches!(space.role, Role::Host { .. }) {
            turn_offloads_off(space, &ends[place])?;
        }
    }
    for (place, space) in blueprint.spaces.iter().enumerate() {
        let up: Vec<u32> = ends[place].iter().map(|(end, _)| end.index).collect();
        let bundles = space.bundles.iter().map(|bundle| bundle.index);
        let up = up.into_iter().chain(bundles).collect();
        await_state(&mut made[place].netlink, up, true).map_err(refused(place))?;
    }
    system::enter(home, LinkNameSpaceType::Network).map_err(namespace_error("home", "to come back"))
}

/// Waits until devices carry frames, or none of them does. Switches pass nothing through a port before.
pub(crate) fn await_state(
    netlink: &mut Netlink,
    mut devices: BTreeSet<u32>,
    up: bool,
) -> Result<(), NetlinkError> {
    let deadline = WallTime::now() + CARRIER_PATIENCE;
    loop {
        let ask = Message::new("devices", RTM_GETLINK, 0, &[0; 16]);
        netlink.dump(ask, |body| {
            let index = body.get(4..).and_then(|rest| rest.first_chunk::<4>());
            let index = index.map_or(0, |index| u32::from_ne_bytes(*index));
            if carries(body.get(16..).unwrap_or_default()) == up {
                devices.remove(&index);
            }
        })?;
        if devices.is_empty() {
            return Ok(());
        }
        if WallTime::now() > deadline {
            return Err(NetlinkError::NoCarrier(devices.len()));
        }
        system::wait(&[], Some(Nanos::from_millis(5))).map_err(NetlinkError::Socket)?;
    }
}

/// Whether a device carries frames; in a bundle that speaks LACP only when both sides have agreed.
fn carries(device: &[u8]) -> bool {
    let part =
        |of, wanted| attributes(of).find(|(kind, _)| *kind == wanted).map(|(_, value)| value);
    let agreed = part(device, IFLA_LINKINFO)
        .filter(|info| part(info, IFLA_INFO_SLAVE_KIND) == Some(b"bond\0"))
        .and_then(|info| part(info, IFLA_INFO_SLAVE_DATA))
        .and_then(|member| part(member, IFLA_BOND_SLAVE_AD_ACTOR_STATE))
        .and_then(|state| state.first())
        .is_none_or(|state| state & AD_DISTRIBUTING != 0);
    agreed && part(device, IFLA_OPERSTATE) == Some(&[OPERSTATE_UP])
}

fn namespace_error(space: &str, step: &'static str) -> impl Fn(io::Error) -> NetworkError {
    let space = space.to_owned();
    move |source| NetworkError::Namespace { space: space.clone(), step, source }
}

fn enter(space: &Space, file: &File) -> Result<(), NetworkError> {
    system::enter(file, LinkNameSpaceType::Network)
        .map_err(namespace_error(&space.name, "to enter it"))
}

/// Where the namespace of a space is found.
pub(crate) fn namespace_path(name: &str) -> PathBuf {
    Path::new(NAMESPACES).join(name)
}

fn make_namespaces(spaces: &[Space], home: &File) -> Result<Vec<Made>, NetworkError> {
    let mut made = Vec::with_capacity(spaces.len());
    std::fs::create_dir_all(NAMESPACES).map_err(namespace_error("all", "its directory"))?;
    for space in spaces {
        let error = |step| namespace_error(&space.name, step);
        system::unshare(UnshareFlags::NEWNET).map_err(error("to make it"))?;
        let path = namespace_path(&space.name);
        File::create(&path).map_err(error("its name"))?;
        mount_bind(c"/proc/thread-self/ns/net", &path)
            .map_err(|refused| error("to name it")(refused.into()))?;
        let file = File::open(&path).map_err(error("to open it"))?;
        quieten().map_err(error("to quieten it"))?;
        let netlink = Netlink::open()
            .map_err(|source| NetworkError::Space { space: space.name.clone(), source })?;
        made.push(Made { file, netlink });
    }
    system::enter(home, LinkNameSpaceType::Network)
        .map_err(namespace_error("home", "to come back"))?;
    Ok(made)
}

/// What a kernel says by itself would be counted as traffic: IPv6, and asking neighbours again who have
/// answered once.
fn quieten() -> io::Result<()> {
    for (setting, value) in [
        ("ipv6/conf/all/disable_ipv6", "1"),
        ("ipv6/conf/default/disable_ipv6", "1"),
        ("ipv4/neigh/default/delay_first_probe_time", "1000000"),
    ] {
        match std::fs::write(Path::new("/proc/sys/net").join(setting), value) {
            // A kernel without IPv6.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => result?,
        }
    }
    Ok(())
}

/// Everything is brought up when it is whole, as the other end of a cable is in another space.
fn filling(space: &Space, ends: &[(&CableEnd, Purpose)], rate: Option<u64>) -> Vec<Message> {
    let mut messages = vec![set_link("loopback up", LOOPBACK_INDEX, None, true)];
    for bundle in &space.bundles {
        for &member in &bundle.members {
            let what = format!("a member of `{}`", bundle.device);
            messages.push(set_link(what, member, Some(bundle.index), false));
        }
        messages.push(set_link(format!("`{}` up", bundle.device), bundle.index, None, true));
    }
    match &space.role {
        Role::Switch(bridge) => {
            for port in &bridge.ports {
                let what = format!("`{}` a port", port.device);
                messages.push(set_link(what, port.index, Some(blueprint::bridge_index()), true));
                messages.extend(port_vlans(port));
            }
            messages.push(set_link("bridge up", blueprint::bridge_index(), None, true));
        }
        Role::Host { address, .. } => messages.push(new_address(blueprint::host_index(), *address)),
        Role::Manager => {
            for (end, _) in ends {
                let what = format!("`{}` a port", end.device);
                messages.push(set_link(what, end.index, Some(blueprint::management_index()), true));
            }
            messages.push(set_link("bridge up", blueprint::management_index(), None, true));
        }
    }
    for (end, purpose) in ends {
        messages.push(set_link(format!("`{}` up", end.device), end.index, None, true));
        if let Some(rate) = rate.filter(|_| *purpose != Purpose::Management) {
            messages.push(shaping(end, rate));
        }
    }
    messages.extend(
        space.management.map(|address| new_address(blueprint::management_index(), address)),
    );
    messages
}

fn turn_offloads_off(space: &Space, ends: &[(&CableEnd, Purpose)]) -> Result<(), NetworkError> {
    let error = |device: &str| {
        let (space, device) = (space.name.clone(), device.to_owned());
        move |source| NetworkError::Offloads { space, device, source }
    };
    let socket = system::icmp_socket().map_err(error("any"))?;
    let bundles = space.bundles.iter().map(|bundle| &bundle.device);
    for device in ends.iter().map(|(end, _)| &end.device).chain(bundles) {
        system::turn_offloads_off(&socket, device).map_err(error(device))?;
    }
    Ok(())
}

/// `ifinfomsg`: family, kind, index, flags and which of them are meant.
fn link_body(family: u8, index: u32, up: bool) -> [u8; 16] {
    let mut body = [0; 16];
    body[0] = family;
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    if up {
        body[8..12].copy_from_slice(&IFF_UP.to_ne_bytes());
        body[12..16].copy_from_slice(&IFF_UP.to_ne_bytes());
    }
    body
}

pub(crate) fn set_link(
    what: impl Into<String>,
    index: u32,
    master: Option<u32>,
    up: bool,
) -> Message {
    let message = Message::new(what, RTM_NEWLINK, 0, &link_body(0, index, up));
    match master {
        Some(master) => message.with_u32(IFLA_MASTER, master),
        None => message,
    }
}

/// Cuts a link: the other end sees that it has no carrier.
pub(crate) fn set_link_down(what: impl Into<String>, index: u32) -> Message {
    let mut body = link_body(0, index, false);
    body[12..16].copy_from_slice(&IFF_UP.to_ne_bytes());
    Message::new(what, RTM_NEWLINK, 0, &body)
}

fn new_link(what: String, index: u32, name: &str, mac: Option<[u8; 6]>) -> Message {
    let flags = NLM_F_CREATE | NLM_F_EXCL;
    let message = Message::new(what, RTM_NEWLINK, flags, &link_body(0, index, false))
        .with_text(IFLA_IFNAME, name);
    match mac {
        Some(mac) => message.with(IFLA_ADDRESS, &mac),
        None => message,
    }
}

fn new_cable(one: &CableEnd, other: &CableEnd, other_space: &str, namespace: i32) -> Message {
    let what = format!("cable from `{}` to `{}` of `{other_space}`", one.device, other.device);
    new_link(what, one.index, &one.device, one.mac).nest(IFLA_LINKINFO, |info| {
        info.with_text(IFLA_INFO_KIND, "veth").nest(IFLA_INFO_DATA, |data| {
            data.nest(VETH_INFO_PEER, |peer| {
                let peer = peer
                    .raw(&link_body(0, other.index, false))
                    .with_text(IFLA_IFNAME, &other.device)
                    .with(IFLA_NET_NS_FD, &namespace.to_ne_bytes());
                match other.mac {
                    Some(mac) => peer.with(IFLA_ADDRESS, &mac),
                    None => peer,
                }
            })
        })
    })
}

/// The devices that others become part of.
fn masters(space: &Space) -> Vec<Message> {
    let mut messages: Vec<_> = space.bundles.iter().map(new_bundle).collect();
    match &space.role {
        Role::Switch(bridge) => messages.push(new_bridge(bridge)),
        Role::Manager => messages.push(
            new_link(
                "the management bridge".into(),
                blueprint::management_index(),
                MANAGEMENT_INTERFACE,
                None,
            )
            .nest(IFLA_LINKINFO, |info| {
                info.with_text(IFLA_INFO_KIND, "bridge")
                    .nest(IFLA_INFO_DATA, |data| data.with(IFLA_BR_MCAST_SNOOPING, &[0]))
            }),
        ),
        Role::Host { .. } => {}
    }
    messages
}

fn new_bridge(bridge: &Bridge) -> Message {
    new_link("a bridge with VLAN filtering".into(), blueprint::bridge_index(), BRIDGE, None).nest(
        IFLA_LINKINFO,
        |info| {
            info.with_text(IFLA_INFO_KIND, "bridge").nest(IFLA_INFO_DATA, |data| {
                data.with(IFLA_BR_VLAN_FILTERING, &[1])
                    .with(IFLA_BR_VLAN_DEFAULT_PVID, &0_u16.to_ne_bytes())
                    .with_u32(IFLA_BR_FORWARD_DELAY, 200)
                    .with_u32(IFLA_BR_STP_STATE, bridge.spanning_tree.into())
                    .with_u32(IFLA_BR_AGEING_TIME, bridge.ageing_centiseconds)
                    .with(IFLA_BR_MCAST_SNOOPING, &[0])
            })
        },
    )
}

/// What a kernel must be able to do.
pub(crate) fn probe_messages() -> Vec<Message> {
    vec![new_bridge(&Bridge {
        ageing_centiseconds: 30_000,
        spanning_tree: false,
        ports: Vec::new(),
    })]
}

fn new_bundle(bundle: &Bundle) -> Message {
    let mode = if bundle.lacp { BOND_MODE_8023AD } else { BOND_MODE_XOR };
    let what = format!("bundle `{}`", bundle.device);
    new_link(what, bundle.index, &bundle.device, bundle.mac).nest(IFLA_LINKINFO, |info| {
        info.with_text(IFLA_INFO_KIND, "bond").nest(IFLA_INFO_DATA, |data| {
            let data = data
                .with(IFLA_BOND_MODE, &[mode])
                .with_u32(IFLA_BOND_MIIMON, 100)
                .with(IFLA_BOND_XMIT_HASH_POLICY, &[BOND_HASH_LAYER34]);
            if bundle.lacp { data.with(IFLA_BOND_AD_LACP_RATE, &[1]) } else { data }
        })
    })
}

/// Memberships of a port, runs of VLANs with the same flags as one.
pub(crate) fn port_vlans(port: &BridgePort) -> Option<Message> {
    let mut flags: BTreeMap<u16, u16> = BTreeMap::new();
    flags.extend(port.tagged.iter().map(|&vlan| (vlan, 0)));
    flags.extend(port.untagged.iter().map(|&vlan| (vlan, VLAN_UNTAGGED)));
    if let Some(own) = port.pvid {
        *flags.entry(own).or_default() |= VLAN_PVID;
    }
    if flags.is_empty() {
        return None;
    }
    let body =
        link_body(u8::try_from(libc::AF_BRIDGE).expect("families are small"), port.index, false);
    let what = format!("the VLANs of `{}`", port.device);
    let message = Message::new(what, RTM_SETLINK, 0, &body);
    Some(message.nest(IFLA_AF_SPEC, |mut spec| {
        let mut vlans = flags.into_iter().peekable();
        while let Some((first, own)) = vlans.next() {
            let mut last = first;
            // The kernel takes no run that holds a PVID.
            while let Some((next, _)) = vlans
                .next_if(|&(next, other)| next == last + 1 && other == own && own & VLAN_PVID == 0)
            {
                last = next;
            }
            if last == first {
                spec = spec.with(IFLA_BRIDGE_VLAN_INFO, &vlan_info(own, first));
            } else {
                spec = spec
                    .with(IFLA_BRIDGE_VLAN_INFO, &vlan_info(own | VLAN_RANGE_BEGIN, first))
                    .with(IFLA_BRIDGE_VLAN_INFO, &vlan_info(own | VLAN_RANGE_END, last));
            }
        }
        spec
    }))
}

fn vlan_info(flags: u16, vlan: u16) -> [u8; 4] {
    let ([f0, f1], [v0, v1]) = (flags.to_ne_bytes(), vlan.to_ne_bytes());
    [f0, f1, v0, v1]
}

fn new_address(index: u32, address: Ipv4Addr) -> Message {
    let mut body = [0; 8];
    body[0] = u8::try_from(libc::AF_INET).expect("families are small");
    body[1] = PREFIX_BITS;
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    let all_hosts = u32::from(address) | (u32::MAX >> PREFIX_BITS);
    let what = format!("address {address}");
    Message::new(what, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &body)
        .with(IFA_LOCAL, &address.octets())
        .with(IFA_ADDRESS, &address.octets())
        .with(IFA_BROADCAST, &all_hosts.to_be_bytes())
}

/// A token bucket at the sending side of a link.
fn shaping(end: &CableEnd, rate: u64) -> Message {
    let mut body = [0; 20];
    body[4..8].copy_from_slice(&end.index.to_ne_bytes());
    body[12..16].copy_from_slice(&TC_H_ROOT.to_ne_bytes());
    let bytes_per_second = rate / 8;
    let burst = (bytes_per_second / 250).max(BURST_BYTES_MIN);
    let queue = (bytes_per_second / 10).max(QUEUE_BYTES_MIN);
    // Saturates: beyond 4 GB a second nothing here is shaped.
    let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    // tc_ratespec twice (rate, peak rate), then limit, buffer and MTU.
    let mut parameters = [0; 36];
    parameters[1] = TC_LINKLAYER_ETHERNET;
    parameters[8..12].copy_from_slice(&narrow(bytes_per_second).to_ne_bytes());
    parameters[24..28].copy_from_slice(&narrow(queue).to_ne_bytes());
    let what = format!("shaping of `{}`", end.device);
    Message::new(what, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, &body)
        .with_text(TCA_KIND, "tbf")
        .nest(TCA_OPTIONS, |options| {
            let options =
                options.with(TCA_TBF_PARMS, &parameters).with_u32(TCA_TBF_BURST, narrow(burst));
            if u32::try_from(bytes_per_second).is_ok() {
                options
            } else {
                options.with(TCA_TBF_RATE64, &bytes_per_second.to_ne_bytes())
            }
        })
}
