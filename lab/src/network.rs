//! Sets up the network of a blueprint: every namespace, link, bridge and address, by one process.
//!
//! Every space has a routing socket of its own, opened while this process was in it. A cable is made
//! from the space at its first end, with the other end born in its own space.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use meikyo_spaces::links::{
    self, End, LOOPBACK_INDEX, Shape, await_state, link_body, new_address, new_bridge, new_cable,
    new_link, set_link, shaping,
};
use meikyo_spaces::netlink::{
    IFLA_INFO_DATA, IFLA_INFO_KIND, IFLA_LINKINFO, Message, NetlinkError,
};
use meikyo_spaces::{SpaceError, process};
use meikyo_units::{BitsPerSecond, Bytes};
use rustix::mount::mount_bind;
use rustix::thread::LinkNameSpaceType;

use crate::blueprint::{
    self, BRIDGE, Blueprint, Bridge, BridgePort, Bundle, Cable, CableEnd, MANAGEMENT_INTERFACE,
    Purpose, Role, Space,
};
use crate::system;

/// Where the namespaces are found by name, as `ip netns` wants them.
pub(crate) const NAMESPACES: &str = "/run/netns";

const RTM_SETLINK: u16 = 19;
const IFLA_AF_SPEC: u16 = 26;
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
    #[error("cannot make the namespace of `{space}`")]
    Make {
        /// The host or switch whose namespace it is.
        space: String,
        /// Why not.
        #[source]
        source: SpaceError,
    },
    /// A namespace could not be named or entered.
    #[error("cannot use the namespace `{space}`: {step}")]
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
        let (name, there) = (&blueprint.spaces[other.space].name, made[other.space].file.as_fd());
        let message = new_cable(&end_of(one), &end_of(other), name, there);
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
    process::enter(home, LinkNameSpaceType::Network)
        .map_err(namespace_error("home", "to come back"))
}

fn namespace_error(space: &str, step: &'static str) -> impl Fn(io::Error) -> NetworkError {
    let space = space.to_owned();
    move |source| NetworkError::Namespace { space: space.clone(), step, source }
}

fn enter(space: &Space, file: &File) -> Result<(), NetworkError> {
    process::enter(file, LinkNameSpaceType::Network)
        .map_err(namespace_error(&space.name, "to enter it"))
}

/// Where the namespace of a space is found.
pub(crate) fn namespace_path(name: &str) -> PathBuf {
    Path::new(NAMESPACES).join(name)
}

fn make_namespaces(spaces: &[Space], home: &File) -> Result<Vec<links::Space>, NetworkError> {
    let mut made = Vec::with_capacity(spaces.len());
    std::fs::create_dir_all(NAMESPACES).map_err(namespace_error("all", "its directory"))?;
    for space in spaces {
        let error = |step| namespace_error(&space.name, step);
        let new = links::new_space()
            .map_err(|source| NetworkError::Make { space: space.name.clone(), source })?;
        let path = namespace_path(&space.name);
        File::create(&path).map_err(error("its name"))?;
        mount_bind(c"/proc/thread-self/ns/net", &path)
            .map_err(|refused| error("to name it")(refused.into()))?;
        made.push(new);
    }
    process::enter(home, LinkNameSpaceType::Network)
        .map_err(namespace_error("home", "to come back"))?;
    Ok(made)
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
        Role::Host { address, .. } => {
            messages.push(new_address(blueprint::host_index(), *address, PREFIX_BITS))
        }
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
            messages.push(shaping(&end.device, end.index, &shape_of(rate)));
        }
    }
    messages.extend(
        space
            .management
            .map(|address| new_address(blueprint::management_index(), address, PREFIX_BITS)),
    );
    messages
}

const fn end_of(end: &CableEnd) -> End<'_> {
    End { index: end.index, device: end.device.as_str(), mac: end.mac }
}

fn shape_of(rate: u64) -> Shape {
    Shape {
        rate: BitsPerSecond::new(rate),
        burst: Bytes::new((rate / 8 / 250).max(BURST_BYTES_MIN)),
        queue: Bytes::new((rate / 8 / 10).max(QUEUE_BYTES_MIN)),
    }
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

/// The devices that others become part of.
fn masters(space: &Space) -> Vec<Message> {
    let mut messages: Vec<_> = space.bundles.iter().map(new_bundle).collect();
    match &space.role {
        Role::Switch(bridge) => messages.push(filtering_bridge(bridge)),
        Role::Manager => {
            let (index, device) = (blueprint::management_index(), MANAGEMENT_INTERFACE);
            let end = End { index, device, mac: None };
            let fill = |data: Message| data.with(IFLA_BR_MCAST_SNOOPING, &[0]);
            messages.push(new_bridge("the management bridge", &end, fill));
        }
        Role::Host { .. } => {}
    }
    messages
}

fn filtering_bridge(bridge: &Bridge) -> Message {
    let end = End { index: blueprint::bridge_index(), device: BRIDGE, mac: None };
    new_bridge("a bridge with VLAN filtering", &end, |data| {
        data.with(IFLA_BR_VLAN_FILTERING, &[1])
            .with(IFLA_BR_VLAN_DEFAULT_PVID, &0_u16.to_ne_bytes())
            .with_u32(IFLA_BR_FORWARD_DELAY, 200)
            .with_u32(IFLA_BR_STP_STATE, bridge.spanning_tree.into())
            .with_u32(IFLA_BR_AGEING_TIME, bridge.ageing_centiseconds)
            .with(IFLA_BR_MCAST_SNOOPING, &[0])
    })
}

/// What a kernel must be able to do.
pub(crate) fn probe_messages() -> Vec<Message> {
    vec![filtering_bridge(&Bridge {
        ageing_centiseconds: 30_000,
        spanning_tree: false,
        ports: Vec::new(),
    })]
}

fn new_bundle(bundle: &Bundle) -> Message {
    let mode = if bundle.lacp { BOND_MODE_8023AD } else { BOND_MODE_XOR };
    let what = format!("bundle `{}`", bundle.device);
    let end = End { index: bundle.index, device: &bundle.device, mac: bundle.mac };
    new_link(what, &end).nest(IFLA_LINKINFO, |info| {
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
