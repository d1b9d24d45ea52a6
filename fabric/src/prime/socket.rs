//! The one socket of this crate: it sends and hears priming frames at an interface.
#![expect(unsafe_code, reason = "whole Ethernet frames go through a packet socket of the kernel")]

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::path::Path;

use meikyo_cluster::MacAddress;
use meikyo_units::Nanos;

use super::{PRIMING_ETHERTYPE, PRIMING_FRAME_BYTES, PrimingNotice, read_priming_frame};

/// A frame with a tag (IEEE 802.1Q).
const ETHERTYPE_TAGGED: u16 = 0x8100;

/// A socket for priming frames at one interface.
#[derive(Debug)]
pub struct PrimingSocket {
    socket: OwnedFd,
    index: i32,
    mac: MacAddress,
}

/// The interface cannot be used for priming.
#[derive(Debug, thiserror::Error)]
pub enum PrimingSocketError {
    /// There is none of that name, or it is no Ethernet.
    #[error("there is no Ethernet interface `{0}`")]
    NoInterface(String),
    /// The system refuses; whole frames need `CAP_NET_RAW`.
    #[error("cannot open a packet socket at `{interface}`")]
    Socket {
        /// The network interface, as `eth0`.
        interface: String,
        /// What the system answered.
        #[source]
        source: io::Error,
    },
}

impl PrimingSocket {
    /// Opens the interface.
    ///
    /// # Errors
    /// [`PrimingSocketError`] if there is none, or this process may not.
    pub fn open(interface: &str) -> Result<Self, PrimingSocketError> {
        let none = || PrimingSocketError::NoInterface(interface.into());
        let mac =
            std::fs::read_to_string(Path::new("/sys/class/net").join(interface).join("address"))
                .ok()
                .and_then(|text| text.trim().parse().ok())
                .ok_or_else(none)?;
        let index =
            std::fs::read_to_string(Path::new("/sys/class/net").join(interface).join("ifindex"))
                .ok()
                .and_then(|text| text.trim().parse().ok())
                .ok_or_else(none)?;
        let socket = bound(index)
            .map_err(|source| PrimingSocketError::Socket { interface: interface.into(), source })?;
        Ok(Self { socket, index, mac })
    }

    /// The Ethernet address of the interface, from which priming frames are sent.
    pub const fn mac(&self) -> MacAddress {
        self.mac
    }

    /// Sends a frame, as one that has a tag: a host's own rules go by what the sender says.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn send(&self, frame: &[u8; PRIMING_FRAME_BYTES]) -> io::Result<()> {
        let fd = self.socket.as_raw_fd();
        let (address, length) = address(self.index, ETHERTYPE_TAGGED)?;
        let (data, address) = (frame.as_ptr().cast(), &raw const address);
        // SAFETY: frame and address are live for the call and of the lengths given.
        let sent = unsafe { libc::sendto(fd, data, frame.len(), 0, address.cast(), length) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Waits for a priming frame, for this long at most; `None` if none came, or another one.
    ///
    /// # Errors
    /// If the socket fails.
    pub fn hear(&self, span: Nanos) -> io::Result<Option<PrimingNotice>> {
        let fd = self.socket.as_raw_fd();
        let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // Saturates: `poll` waits for 24 days at most; who waits for longer is asked again.
        let milliseconds = i32::try_from(span.as_micros().div_ceil(1_000)).unwrap_or(i32::MAX);
        // SAFETY: the one entry is live for the call.
        let ready = unsafe { libc::poll(&raw mut poll, 1, milliseconds) };
        if ready < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(None) } else { Err(error) };
        }
        if ready == 0 {
            return Ok(None);
        }
        let mut frame = [0_u8; 2 * PRIMING_FRAME_BYTES];
        // SAFETY: the buffer is live for the call and of the length given.
        let length = unsafe { libc::recv(fd, frame.as_mut_ptr().cast(), frame.len(), 0) };
        match usize::try_from(length) {
            Ok(length) => Ok(read_priming_frame(&frame[..length])),
            Err(_) => Err(io::Error::last_os_error()),
        }
    }
}

fn bound(index: i32) -> io::Result<OwnedFd> {
    // Protocol 0 hears nothing until the socket is bound to its interface.
    // SAFETY: the call takes no pointer.
    let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made and nobody else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let (address, length) = address(index, PRIMING_ETHERTYPE)?;
    // SAFETY: the address is live for the call and of the length given.
    if unsafe { libc::bind(fd, (&raw const address).cast(), length) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(socket)
}

fn address(index: i32, ethertype: u16) -> io::Result<(libc::sockaddr_ll, libc::socklen_t)> {
    // SAFETY: an all-zero sockaddr_ll is a valid value of the plain C struct.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = u16::try_from(libc::AF_PACKET).map_err(io::Error::other)?;
    address.sll_protocol = ethertype.to_be();
    address.sll_ifindex = index;
    let length = libc::socklen_t::try_from(size_of_val(&address)).map_err(io::Error::other)?;
    Ok((address, length))
}
