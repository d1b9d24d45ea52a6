//! What is said to the kernel about the way of frames: from port to port by their addresses, to neighbours that are known, and how
//! much may be under way.

use std::net::Ipv4Addr;

use meikyo_units::Bytes;

use crate::links::{RTM_NEWQDISC, TCA_KIND, TCA_OPTIONS, set_link};
use crate::netlink::{Message, NLM_F_CREATE, NLM_F_EXCL};

const RTM_NEWROUTE: u16 = 24;
const RTM_NEWNEIGH: u16 = 28;
const RTM_NEWTFILTER: u16 = 44;
const NLM_F_REPLACE: u16 = 0x100;
const IFLA_GSO_MAX_SEGS: u16 = 40;
const NUD_PERMANENT: u16 = 0x80;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_PREFSRC: u16 = 7;
const RTA_METRICS: u16 = 8;
const RTAX_WINDOW: u16 = 3;
const RTAX_CC_ALGO: u16 = 16;
/// What hosts send by: a namespace may name it for a route, but not for all that it sends.
const CONTROL: &str = "cubic";
const RT_TABLE_MAIN: u8 = 254;
const RTPROT_KERNEL: u8 = 2;
const RT_SCOPE_LINK: u8 = 253;
const RTN_UNICAST: u8 = 1;
/// The queue of what comes in, and what hangs below it.
const TC_H_INGRESS: u32 = 0xffff_fff1;
const INGRESS: u32 = 0xffff_0000;
const ETH_P_IP: u16 = 0x0800;
const TCA_U32_SEL: u16 = 5;
const TCA_U32_ACT: u16 = 7;
const TC_U32_TERMINAL: u8 = 1;
const TCA_ACT_KIND: u16 = 1;
const TCA_ACT_OPTIONS: u16 = 2;
const TCA_MIRRED_PARMS: u16 = 2;
const TC_ACT_SHOT: u32 = 2;
const TCA_EGRESS_MIRROR: u32 = 2;
/// Where the addresses stand in an Internet header (RFC 791).
const AT_ADDRESSES: [u32; 2] = [12, 16];

fn family() -> u8 {
    u8::try_from(libc::AF_INET).expect("families are small")
}

/// `tcmsg`: what hangs at which parent of a device.
fn hanging(index: u32, handle: u32, parent: u32, info: u32) -> [u8; 20] {
    let mut body = [0; 20];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    body[8..12].copy_from_slice(&handle.to_ne_bytes());
    body[12..16].copy_from_slice(&parent.to_ne_bytes());
    body[16..20].copy_from_slice(&info.to_ne_bytes());
    body
}

/// A place at a device for what is to become of frames that come in.
pub(crate) fn ingress(device: &str, index: u32) -> Message {
    let body = hanging(index, INGRESS, TC_H_INGRESS, 0);
    let what = format!("the ingress of `{device}`");
    Message::new(what, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, &body)
        .with_text(TCA_KIND, "ingress")
}

/// Frames between two hosts, and where they come into a switch and leave it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Steered {
    /// The sender's address and the receiver's.
    pub(crate) addresses: [Ipv4Addr; 2],
    /// The port that they come in by, which has an [`ingress`].
    pub(crate) from: u32,
    /// The port that they leave by.
    pub(crate) to: u32,
}

/// Hands frames that come in by a port to the queue of another one (`u32` and `mirred`).
///
/// What is handed on is a copy, and the frame itself is dropped: the kernel counts a frame among those that its sender has waiting
/// at its own card (TCP small queues) as long as that very frame exists, even in the queue of a switch. The card of a machine counts
/// it until it is sent.
pub(crate) fn steer(steered: &Steered) -> Message {
    let Steered { addresses: [sender, receiver], from, to } = *steered;
    // The first priority, and which protocol.
    let info = (1 << 16) | u32::from(ETH_P_IP.to_be());
    let what = format!("a way from {sender} to {receiver}");
    // tc_u32_sel: flags, shift and the number of keys, nothing that varies.
    let mut selector = vec![0; 16];
    selector[0] = TC_U32_TERMINAL;
    selector[2] = 2;
    for (address, at) in [sender, receiver].into_iter().zip(AT_ADDRESSES) {
        // tc_u32_key: mask and value as on the wire, where, and no more.
        selector.extend_from_slice(&u32::MAX.to_be_bytes());
        selector.extend_from_slice(&address.octets());
        selector.extend_from_slice(&at.to_ne_bytes());
        selector.extend_from_slice(&[0; 4]);
    }
    // tc_mirred: index, abilities, what becomes of the frame here, two counts, what is done, and the port.
    let action: Vec<u8> = [0, 0, TC_ACT_SHOT, 0, 0, TCA_EGRESS_MIRROR, to]
        .into_iter()
        .flat_map(u32::to_ne_bytes)
        .collect();
    let body = hanging(from, 0, INGRESS, info);
    Message::new(what, RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_EXCL, &body)
        .with_text(TCA_KIND, "u32")
        .nest(TCA_OPTIONS, |options| {
            options.with(TCA_U32_SEL, &selector).nest(TCA_U32_ACT, |actions| {
                // The first of them.
                actions.nest(1, |first| {
                    first
                        .with_text(TCA_ACT_KIND, "mirred")
                        .nest(TCA_ACT_OPTIONS, |mirred| mirred.with(TCA_MIRRED_PARMS, &action))
                })
            })
        })
}

/// The Ethernet address of a neighbour, which is never asked for.
pub(crate) fn known_neighbour(index: u32, address: Ipv4Addr, mac: [u8; 6]) -> Message {
    let mut body = [0; 12];
    body[0] = family();
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    body[8..10].copy_from_slice(&NUD_PERMANENT.to_ne_bytes());
    let what = format!("the neighbour {address}");
    Message::new(what, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_EXCL, &body)
        .with(NDA_DST, &address.octets())
        .with(NDA_LLADDR, &mac)
}

/// Has TCP hand a device one frame at a time: a token bucket would cut larger pieces, but they would wait there as a whole.
pub(crate) fn single_frames(device: &str, index: u32) -> Message {
    set_link(format!("single frames of `{device}`"), index, None, false)
        .with_u32(IFLA_GSO_MAX_SEGS, 1)
}

/// In the place of the route that an address brings along, one that lets so much be under way to this host on a connection, and
/// has it send by CUBIC.
pub(crate) fn windowed_route(
    index: u32,
    address: Ipv4Addr,
    prefix_bits: u8,
    window: Bytes,
) -> Message {
    let mut body = [0; 12];
    body[0] = family();
    body[1] = prefix_bits;
    body[4] = RT_TABLE_MAIN;
    body[5] = RTPROT_KERNEL;
    body[6] = RT_SCOPE_LINK;
    body[7] = RTN_UNICAST;
    let network = u32::from(address) & !(u32::MAX >> prefix_bits);
    // Saturates: no window is larger than 2^30 octets (RFC 7323, section 2.3).
    let window = u32::try_from(window.get()).unwrap_or(u32::MAX);
    let what = format!("the route of {address}");
    Message::new(what, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, &body)
        .with(RTA_DST, &network.to_be_bytes())
        .with(RTA_PREFSRC, &address.octets())
        .with_u32(RTA_OIF, index)
        .nest(RTA_METRICS, |metrics| {
            metrics.with_u32(RTAX_WINDOW, window).with_text(RTAX_CC_ALGO, CONTROL)
        })
}
