//! What is said to the kernel about links: cables of virtual Ethernet devices, bridges, addresses, token buckets;
//! and namespaces of a network.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::path::Path;
use std::thread;
use std::time::Duration;

use meikyo_units::{BitsPerSecond, Bytes, Nanos, WallTime};
use rustix::thread::UnshareFlags;

use crate::netlink::{
    IFLA_IFNAME, IFLA_INFO_DATA, IFLA_INFO_KIND, IFLA_LINKINFO, Message, NLM_F_CREATE, NLM_F_EXCL,
    Netlink, NetlinkError, RTM_GETLINK, RTM_NEWLINK, attributes,
};
use crate::process;

const RTM_DELLINK: u16 = 17;
const RTM_NEWADDR: u16 = 20;
pub(crate) const RTM_NEWQDISC: u16 = 36;
const RTM_DELQDISC: u16 = 37;
const IFLA_ADDRESS: u16 = 1;
const IFLA_MASTER: u16 = 10;
const IFLA_OPERSTATE: u16 = 16;
const OPERSTATE_UP: u8 = 6;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_INFO_SLAVE_KIND: u16 = 4;
const IFLA_INFO_SLAVE_DATA: u16 = 5;
/// Only of devices in bundles that speak LACP: the state of their own side (IEEE 802.1AX, 6.4.2.3).
const IFLA_BOND_SLAVE_AD_ACTOR_STATE: u16 = 7;
const AD_DISTRIBUTING: u8 = 1 << 5;
const VETH_INFO_PEER: u16 = 1;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_BROADCAST: u16 = 4;
pub(crate) const TCA_KIND: u16 = 1;
pub(crate) const TCA_OPTIONS: u16 = 2;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
const TC_LINKLAYER_ETHERNET: u8 = 1;
const TC_H_ROOT: u32 = 0xffff_ffff;
const IFF_UP: u32 = 1;
/// The number that every namespace gives its loopback device.
pub const LOOPBACK_INDEX: u32 = 1;
/// Data of a full segment with time stamps, and the memory that it takes.
const SEGMENT_BYTES: u64 = 1_448;
const SEGMENT_MEMORY_BYTES: u64 = 2_304;
/// How long a bundle may take to agree by LACP, and a cable to carry.
const CARRIER_PATIENCE: Nanos = Nanos::from_secs(15);
/// Whether devices carry is asked so often.
const ASK_AGAIN: Duration = Duration::from_millis(5);

/// One end of a cable.
#[derive(Debug, Clone, Copy)]
pub struct End<'a> {
    /// The number of the device in its namespace.
    pub index: u32,
    /// Its name there.
    pub device: &'a str,
    /// Its Ethernet address; the kernel draws one where none is given.
    pub mac: Option<[u8; 6]>,
}

/// How a link is shaped at its sending side.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// What it carries.
    pub rate: BitsPerSecond,
    /// What it may send at once beyond its rate.
    pub burst: Bytes,
    /// How much waits at most.
    pub queue: Bytes,
}

/// A namespace of a network that is there, and the socket that commands it. It goes with the last descriptor or process
/// that has it.
#[derive(Debug)]
pub struct Space {
    /// The namespace.
    pub file: File,
    /// A routing socket that was opened in it.
    pub netlink: Netlink,
}

/// A namespace could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SpaceError {
    /// A step failed.
    #[error("cannot make a network namespace: {step}")]
    Step {
        /// The step, in words.
        step: &'static str,
        /// The error of that call.
        #[source]
        source: io::Error,
    },
    /// It has no routing socket.
    #[error("cannot command a network namespace")]
    Netlink(#[source] NetlinkError),
}

/// Makes a network namespace and leaves the calling thread in it.
///
/// # Errors
/// When the kernel refuses it.
pub fn new_space() -> Result<Space, SpaceError> {
    let failed = |step| move |source| SpaceError::Step { step, source };
    process::unshare(UnshareFlags::NEWNET).map_err(failed("to make it"))?;
    let file = File::open("/proc/thread-self/ns/net").map_err(failed("to open it"))?;
    quieten().map_err(failed("to quieten it"))?;
    Ok(Space { file, netlink: Netlink::open().map_err(SpaceError::Netlink)? })
}

/// Waits until devices carry frames, or none of them does. Switches pass nothing through a port before.
///
/// # Errors
/// When they do not for 15 s, or the socket fails.
pub fn await_state(
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
        thread::park_timeout(ASK_AGAIN);
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

/// What a kernel says by itself would be counted as traffic: IPv6, and asking neighbours again who have
/// answered once.
fn quieten() -> io::Result<()> {
    for (setting, value) in [
        ("ipv6/conf/all/disable_ipv6", "1"),
        ("ipv6/conf/default/disable_ipv6", "1"),
        ("ipv4/neigh/default/delay_first_probe_time", "1000000"),
    ] {
        match set(setting, value) {
            // A kernel without IPv6.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => result?,
        }
    }
    Ok(())
}

/// Gives connections room for a window, and no more. What their route says bounds a window only until the kernel has seen how
/// much memory segments take (`tcp_measure_rcv_mss`), and room grows where what has come is read in time
/// (`tcp_rcv_space_adjust`). This is about the namespace of the thread that calls it.
///
/// Before Linux 6.6 a window was half of the room, so that it is smaller there.
pub(crate) fn bound_windows(window: Bytes) -> Result<(), SpaceError> {
    let room = window.get() * SEGMENT_MEMORY_BYTES / SEGMENT_BYTES;
    let all = [
        ("ipv4/tcp_rmem", format!("4096 {room} {room}")),
        ("ipv4/tcp_moderate_rcvbuf", "0".to_owned()),
    ];
    let failed = |source| SpaceError::Step { step: "to bound its windows", source };
    all.into_iter().try_for_each(|(setting, value)| set(setting, &value).map_err(failed))
}

/// Sets a setting of the namespace that the thread is in.
fn set(setting: &str, value: &str) -> io::Result<()> {
    std::fs::write(Path::new("/proc/sys/net").join(setting), value)
}

/// `ifinfomsg`: family, kind, index, flags and which of them are meant.
pub fn link_body(family: u8, index: u32, up: bool) -> [u8; 16] {
    let mut body = [0; 16];
    body[0] = family;
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    if up {
        body[8..12].copy_from_slice(&IFF_UP.to_ne_bytes());
        body[12..16].copy_from_slice(&IFF_UP.to_ne_bytes());
    }
    body
}

/// Makes a device part of another, or brings it up.
pub fn set_link(what: impl Into<String>, index: u32, master: Option<u32>, up: bool) -> Message {
    let message = Message::new(what, RTM_NEWLINK, 0, &link_body(0, index, up));
    match master {
        Some(master) => message.with_u32(IFLA_MASTER, master),
        None => message,
    }
}

/// Cuts a link: the other end sees that it has no carrier.
pub fn set_link_down(what: impl Into<String>, index: u32) -> Message {
    let mut body = link_body(0, index, false);
    body[12..16].copy_from_slice(&IFF_UP.to_ne_bytes());
    Message::new(what, RTM_NEWLINK, 0, &body)
}

/// Takes a device away.
pub fn gone_link(device: &str, index: u32) -> Message {
    Message::new(format!("end of `{device}`"), RTM_DELLINK, 0, &link_body(0, index, false))
}

/// A device by its number and name, of the kind that [`IFLA_LINKINFO`] says.
pub fn new_link(what: impl Into<String>, end: &End<'_>) -> Message {
    let flags = NLM_F_CREATE | NLM_F_EXCL;
    let message = Message::new(what, RTM_NEWLINK, flags, &link_body(0, end.index, false))
        .with_text(IFLA_IFNAME, end.device);
    match end.mac {
        Some(mac) => message.with(IFLA_ADDRESS, &mac),
        None => message,
    }
}

/// A bridge, with what is set of it.
pub fn new_bridge(what: &str, end: &End<'_>, fill: impl FnOnce(Message) -> Message) -> Message {
    new_link(what, end).nest(IFLA_LINKINFO, |info| {
        info.with_text(IFLA_INFO_KIND, "bridge").nest(IFLA_INFO_DATA, fill)
    })
}

/// A cable from the namespace that is told to the namespace `there`.
pub fn new_cable(
    one: &End<'_>,
    other: &End<'_>,
    other_space: &str,
    there: BorrowedFd<'_>,
) -> Message {
    let what = format!("cable from `{}` to `{}` of `{other_space}`", one.device, other.device);
    new_link(what, one).nest(IFLA_LINKINFO, |info| {
        info.with_text(IFLA_INFO_KIND, "veth").nest(IFLA_INFO_DATA, |data| {
            data.nest(VETH_INFO_PEER, |peer| {
                let peer = peer
                    .raw(&link_body(0, other.index, false))
                    .with_text(IFLA_IFNAME, other.device)
                    .with(IFLA_NET_NS_FD, &there.as_raw_fd().to_ne_bytes());
                match other.mac {
                    Some(mac) => peer.with(IFLA_ADDRESS, &mac),
                    None => peer,
                }
            })
        })
    })
}

/// An address of a device, in a network whose addresses share so many bits.
///
/// # Panics
/// Never: the number of the family is small.
pub fn new_address(index: u32, address: Ipv4Addr, prefix_bits: u8) -> Message {
    let mut body = [0; 8];
    body[0] = u8::try_from(libc::AF_INET).expect("families are small");
    body[1] = prefix_bits;
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    let all_hosts = u32::from(address) | (u32::MAX >> prefix_bits);
    let what = format!("address {address}");
    Message::new(what, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &body)
        .with(IFA_LOCAL, &address.octets())
        .with(IFA_ADDRESS, &address.octets())
        .with(IFA_BROADCAST, &all_hosts.to_be_bytes())
}

/// The fixed part of what is said of how a device sends (`tcmsg`).
fn sending(index: u32) -> [u8; 20] {
    let mut body = [0; 20];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    body[12..16].copy_from_slice(&TC_H_ROOT.to_ne_bytes());
    body
}

/// Has a device drop all that is sent: a queue with room for nothing. It keeps its carrier, addresses and routes.
pub fn silence(device: &str, index: u32) -> Message {
    let what = format!("silence of `{device}`");
    Message::new(what, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, &sending(index))
        .with_text(TCA_KIND, "pfifo")
        .with_u32(TCA_OPTIONS, 0)
}

/// Lets a device send again that was to be silent.
pub fn speak(device: &str, index: u32) -> Message {
    Message::new(format!("end of the silence of `{device}`"), RTM_DELQDISC, 0, &sending(index))
}

/// A token bucket at the sending side of a link.
pub fn shaping(device: &str, index: u32, shape: &Shape) -> Message {
    token_bucket(NLM_F_CREATE | NLM_F_EXCL, device, index, shape)
}

/// Another rate and queue of a token bucket that is there.
pub fn reshaping(device: &str, index: u32, shape: &Shape) -> Message {
    token_bucket(0, device, index, shape)
}

fn token_bucket(flags: u16, device: &str, index: u32, shape: &Shape) -> Message {
    let bytes_per_second = shape.rate.get() / 8;
    // Saturates: beyond 4 GB a second nothing here is shaped.
    let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    // tc_ratespec twice (rate, peak rate), then limit, buffer and MTU.
    let mut parameters = [0; 36];
    parameters[1] = TC_LINKLAYER_ETHERNET;
    parameters[8..12].copy_from_slice(&narrow(bytes_per_second).to_ne_bytes());
    parameters[24..28].copy_from_slice(&narrow(shape.queue.get()).to_ne_bytes());
    let what = format!("shaping of `{device}`");
    Message::new(what, RTM_NEWQDISC, flags, &sending(index)).with_text(TCA_KIND, "tbf").nest(
        TCA_OPTIONS,
        |options| {
            let options = options
                .with(TCA_TBF_PARMS, &parameters)
                .with_u32(TCA_TBF_BURST, narrow(shape.burst.get()));
            if u32::try_from(bytes_per_second).is_ok() {
                options
            } else {
                options.with(TCA_TBF_RATE64, &bytes_per_second.to_ne_bytes())
            }
        },
    )
}
