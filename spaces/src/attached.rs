//! A network namespace on a network of this machine: it has a device of its own there (macvlan), with an Ethernet address and
//! an IP address of its own, so that it is reached from other machines as a machine is.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd as _, RawFd};
use std::thread;

use crate::links::{
    LOOPBACK_INDEX, Space, SpaceError, await_state, gone_link, new_address, new_space, set_link,
    silence, speak,
};
use crate::netlink::{
    IFLA_IFNAME, IFLA_INFO_DATA, IFLA_INFO_KIND, IFLA_LINKINFO, Message, NLM_F_CREATE, NLM_F_EXCL,
    Netlink, NetlinkError, RTM_GETLINK, RTM_NEWLINK, attributes,
};

const RTM_GETADDR: u16 = 22;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFLA_LINK: u16 = 5;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_MACVLAN_MODE: u16 = 1;
/// Devices on the same one reach each other.
const MACVLAN_MODE_BRIDGE: u32 = 4;

/// What its device is called.
pub const DEVICE: &str = "l0";

/// A namespace could not be put on a network.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// No device of this machine has the address.
    #[error("no network device of this machine has the address {0}")]
    Nowhere(IpAddr),
    /// The namespace could not be made.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// The kernel refuses a device in it.
    #[error("cannot put a namespace on the network")]
    Netlink(#[from] NetlinkError),
}

/// A namespace on a network. It goes when this goes, and with the last process that is in it.
#[derive(Debug)]
pub struct Attached {
    space: Space,
    /// The number of its device.
    index: u32,
}

impl Attached {
    /// Makes a namespace on the network on which this machine has the address `beside`; its own address shares so many bits
    /// with those of others.
    ///
    /// # Errors
    /// When the machine has no such address, or the kernel refuses it: only root may.
    ///
    /// # Panics
    /// If the thread that enters the namespace does.
    pub fn make(beside: IpAddr, address: Ipv4Addr, prefix_bits: u8) -> Result<Self, AttachError> {
        // A thread of its own enters it, so that the caller stays where it is.
        let made = thread::spawn(move || set_up(beside, address, prefix_bits));
        made.join().expect("the thread that sets a namespace up does not panic")
    }

    /// The namespace.
    pub const fn space(&self) -> &File {
        &self.space.file
    }

    /// Lets its device send, or drops what is sent; what others send still arrives.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub fn carry(&mut self, is_on: bool) -> Result<(), NetlinkError> {
        let change = if is_on { speak(DEVICE, self.index) } else { silence(DEVICE, self.index) };
        self.space.netlink.apply(vec![change])
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // The kernel takes its time to make away with a namespace, and until then its address would still be answered for.
        if self.space.netlink.apply(vec![gone_link(DEVICE, self.index)]).is_err() {
            // It goes with the namespace.
        }
    }
}

fn set_up(beside: IpAddr, address: Ipv4Addr, prefix_bits: u8) -> Result<Attached, AttachError> {
    let mut outside = Netlink::open()?;
    let parent = device_of(&mut outside, beside)?.ok_or(AttachError::Nowhere(beside))?;
    let mut space = new_space()?;
    outside.apply(vec![new_device(parent, space.file.as_raw_fd())])?;
    let index = index_of(&mut space.netlink)?;
    space.netlink.apply(vec![
        set_link("loopback up", LOOPBACK_INDEX, None, true),
        new_address(index, address, prefix_bits),
        set_link("a link up", index, None, true),
    ])?;
    await_state(&mut space.netlink, [index].into(), true)?;
    Ok(Attached { space, index })
}

/// The number of the device with an address, if there is one.
fn device_of(netlink: &mut Netlink, address: IpAddr) -> Result<Option<u32>, NetlinkError> {
    let sought = match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let mut found = None;
    let ask = Message::new("addresses", RTM_GETADDR, 0, &[0; 8]);
    netlink.dump(ask, |body| {
        let index = body.get(4..).and_then(|rest| rest.first_chunk::<4>());
        let mut parts = attributes(body.get(8..).unwrap_or_default());
        let is_it =
            parts.any(|(kind, value)| [IFA_LOCAL, IFA_ADDRESS].contains(&kind) && value == sought);
        if let Some(index) = index.filter(|_| is_it) {
            found.get_or_insert_with(|| u32::from_ne_bytes(*index));
        }
    })?;
    Ok(found)
}

fn new_device(parent: u32, space: RawFd) -> Message {
    let body = [0; 16];
    Message::new("a device", RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &body)
        .with_text(IFLA_IFNAME, DEVICE)
        .with_u32(IFLA_LINK, parent)
        .with(IFLA_NET_NS_FD, &space.to_ne_bytes())
        .nest(IFLA_LINKINFO, |info| {
            info.with_text(IFLA_INFO_KIND, "macvlan")
                .nest(IFLA_INFO_DATA, |data| data.with_u32(IFLA_MACVLAN_MODE, MACVLAN_MODE_BRIDGE))
        })
}

/// The number that the kernel has given the one device of a namespace beside the loopback device.
fn index_of(netlink: &mut Netlink) -> Result<u32, NetlinkError> {
    let mut found = 0;
    let ask = Message::new("devices", RTM_GETLINK, 0, &[0; 16]);
    netlink.dump(ask, |body| {
        let index = body.get(4..).and_then(|rest| rest.first_chunk::<4>());
        let mut parts = attributes(body.get(16..).unwrap_or_default());
        let is_it = parts.any(|(kind, value)| {
            kind == IFLA_IFNAME && value.strip_suffix(&[0]) == Some(DEVICE.as_bytes())
        });
        if let Some(index) = index.filter(|_| is_it) {
            found = u32::from_ne_bytes(*index);
        }
    })?;
    Ok(found)
}
