//! One UDP socket for all agents of a farm: batches of datagrams in and out, each with the agent's
//! own address (`IP_PKTINFO`, ip(7)).
//!
//! Sketch: a loopback datagram costs the kernel about 1 µs; 64 of them per system call make the
//! call itself negligible.
#![expect(unsafe_code, reason = "recvmmsg(2) and sendmmsg(2) have no safe wrapper in std")]

use std::io;
use std::mem::{size_of, zeroed};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use thiserror::Error;

use crate::socket::header;

/// Datagrams per system call.
const BATCH: usize = 64;
/// Largest request that is taken, bytes; a longer one is cut by the kernel and then malformed.
const REQUEST_BYTES_MAX: usize = 8_192;
/// Asked for as buffers of the socket: room for 10^5 requests.
const SOCKET_BUFFER_BYTES: libc::c_int = 64 << 20;

/// Octets of a control message with `in_pktinfo`, as words for its alignment.
type Control = [u64; 4];
/// Where the data of a control message begin.
const CONTROL_HEAD: usize = size_of::<libc::cmsghdr>();

/// Why the port of a farm cannot be had.
#[derive(Debug, Error)]
#[error("cannot bind UDP port {port} for the agents")]
pub struct BindError {
    /// The port.
    port: u16,
    /// What the system said.
    source: io::Error,
}

/// The socket of a farm.
#[derive(Debug)]
pub struct FarmSocket {
    socket: UdpSocket,
}

impl FarmSocket {
    /// Binds to UDP `port` of every address of the machine; 0 takes a free one. Requests are kept
    /// from then on, so that whoever is told the port may ask at once.
    ///
    /// # Errors
    ///
    /// If the port is taken or needs a privilege.
    pub fn bind(port: u16) -> Result<Self, BindError> {
        Self::try_bind(port).map_err(|source| BindError { port, source })
    }

    fn try_bind(port: u16) -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port))?;
        let farm = Self { socket };
        farm.set(libc::IPPROTO_IP, libc::IP_PKTINFO, 1)?;
        // What is never fragmented needs no identification, for which the kernel looks into a table
        // that is in no cache.
        farm.set(libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO)?;
        // Forcing needs CAP_NET_ADMIN; without it the system's limit (net.core.rmem_max) holds.
        for (forced, asked) in
            [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)]
        {
            if farm.set(libc::SOL_SOCKET, forced, SOCKET_BUFFER_BYTES).is_err() {
                farm.set(libc::SOL_SOCKET, asked, SOCKET_BUFFER_BYTES)?;
            }
        }
        Ok(farm)
    }

    fn set(&self, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
        let length = libc::socklen_t::try_from(size_of::<libc::c_int>()).unwrap_or(4);
        // SAFETY: the pointer and the length describe `value`, which lives across the call.
        let result = unsafe {
            libc::setsockopt(self.fd(), level, option, (&raw const value).cast(), length)
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Lets answers that are larger than the path's frames be sent in fragments.
    fn permit_fragments(&self) -> io::Result<()> {
        self.set(libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_WANT)
    }

    /// The port that it is bound to.
    ///
    /// # Errors
    ///
    /// What getsockname(2) says.
    pub fn port(&self) -> io::Result<u16> {
        Ok(self.socket.local_addr()?.port())
    }

    fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl AsFd for FarmSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Room for a batch of requests.
pub(super) struct Inbox {
    buffers: Vec<u8>,
    peers: Vec<libc::sockaddr_in>,
    controls: Vec<Control>,
    parts: Vec<libc::iovec>,
    heads: Vec<libc::mmsghdr>,
    received: usize,
}

impl Inbox {
    pub(super) fn new() -> Self {
        // SAFETY: all three are plain C structures for which all zeroes is a valid value.
        let (peer, part, head) =
            unsafe { zeroed::<(libc::sockaddr_in, libc::iovec, libc::mmsghdr)>() };
        Self {
            buffers: vec![0; BATCH * REQUEST_BYTES_MAX],
            peers: vec![peer; BATCH],
            controls: vec![[0; 4]; BATCH],
            parts: vec![part; BATCH],
            heads: vec![head; BATCH],
            received: 0,
        }
    }

    /// Takes what is there, at most a batch, without waiting; returns how many datagrams.
    pub(super) fn receive(&mut self, socket: &FarmSocket) -> io::Result<usize> {
        self.received = 0;
        let buffers = self.buffers.chunks_exact_mut(REQUEST_BYTES_MAX);
        let heads = self.heads.iter_mut().zip(&mut self.parts).zip(buffers);
        for ((((head, part), buffer), peer), control) in
            heads.zip(&mut self.peers).zip(&mut self.controls)
        {
            *part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
            *head = agent_header(peer, part, control);
        }
        let batch = u32::try_from(BATCH).unwrap_or(0);
        // SAFETY: every head points to a buffer, an address and a control area of `self` with the
        // lengths given, which nothing else uses during the call.
        let result = unsafe {
            libc::recvmmsg(
                socket.fd(),
                self.heads.as_mut_ptr(),
                batch,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        match usize::try_from(result) {
            Ok(received) => self.received = received,
            Err(_) => {
                let error = io::Error::last_os_error();
                if !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) {
                    return Err(error);
                }
            }
        }
        Ok(self.received)
    }

    /// The datagrams that were taken last: from whom, to which address, what.
    pub(super) fn datagrams(&self) -> impl Iterator<Item = (SocketAddrV4, Ipv4Addr, &[u8])> {
        let buffers = self.buffers.chunks_exact(REQUEST_BYTES_MAX);
        let all = self.heads.iter().zip(buffers).zip(&self.peers).zip(&self.controls);
        all.take(self.received).map(|(((head, buffer), peer), control)| {
            let length = usize::try_from(head.msg_len).unwrap_or(0).min(buffer.len());
            let address = Ipv4Addr::from(u32::from_be(peer.sin_addr.s_addr));
            let peer = SocketAddrV4::new(address, u16::from_be(peer.sin_port));
            (peer, destination(control), &buffer[..length])
        })
    }
}

/// The header of a datagram between a peer and an agent, whose address is in `control`.
fn agent_header(
    peer: &mut libc::sockaddr_in,
    part: &mut libc::iovec,
    control: &mut Control,
) -> libc::mmsghdr {
    let length = libc::socklen_t::try_from(size_of::<libc::sockaddr_in>()).unwrap_or(16);
    let name = (std::ptr::from_mut(peer).cast(), length);
    header(name, part, (std::ptr::from_mut(control).cast(), size_of::<Control>()))
}

/// The destination address in a control area: `ipi_addr`, the last of the three words of
/// `in_pktinfo`.
fn destination(control: &Control) -> Ipv4Addr {
    let octets = octets(control);
    let at = CONTROL_HEAD + 8;
    Ipv4Addr::new(octets[at], octets[at + 1], octets[at + 2], octets[at + 3])
}

fn octets(control: &Control) -> [u8; size_of::<Control>()] {
    let mut octets = [0; size_of::<Control>()];
    for (place, word) in octets.chunks_exact_mut(8).zip(control) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    octets
}

/// A control area that makes a datagram leave from `from`.
fn source(from: Ipv4Addr) -> Control {
    let head = [
        u64::try_from(CONTROL_HEAD + size_of::<libc::in_pktinfo>()).unwrap_or(0).to_ne_bytes(),
        {
            let mut level_and_kind = [0; 8];
            level_and_kind[..4].copy_from_slice(&libc::IPPROTO_IP.to_ne_bytes());
            level_and_kind[4..].copy_from_slice(&libc::IP_PKTINFO.to_ne_bytes());
            level_and_kind
        },
        {
            let mut interface_and_source = [0; 8];
            interface_and_source[4..].copy_from_slice(&from.octets());
            interface_and_source
        },
    ];
    let [length, level_and_kind, source] = head.map(u64::from_ne_bytes);
    [length, level_and_kind, source, 0]
}

/// Answers that are to leave now.
#[derive(Default)]
pub(super) struct Outbox {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    peers: Vec<libc::sockaddr_in>,
    controls: Vec<Control>,
    parts: Vec<libc::iovec>,
    heads: Vec<libc::mmsghdr>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    to: SocketAddrV4,
    from: Ipv4Addr,
    start: usize,
    end: usize,
}

impl Outbox {
    /// Adds a datagram.
    pub(super) fn push(&mut self, from: Ipv4Addr, to: SocketAddrV4, bytes: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.entries.push(Entry { to, from, start, end: self.bytes.len() });
    }

    /// Sends and forgets all of them; returns how many the kernel did not take.
    pub(super) fn send(&mut self, socket: &FarmSocket) -> u64 {
        let (mut refused, mut fragments) = (0, false);
        self.prepare();
        let mut rest = self.heads.as_mut_slice();
        while !rest.is_empty() {
            let batch = u32::try_from(rest.len().min(BATCH)).unwrap_or(0);
            // SAFETY: every head points to an address, a control area and octets of `self`, which
            // stay as they are until the call is over.
            let result = unsafe { libc::sendmmsg(socket.fd(), rest.as_mut_ptr(), batch, 0) };
            let sent = usize::try_from(result).unwrap_or(0);
            if sent == 0 {
                let error = io::Error::last_os_error();
                let too_long = error.raw_os_error() == Some(libc::EMSGSIZE) && !fragments;
                if too_long && socket.permit_fragments().is_ok() {
                    fragments = true;
                } else if error.kind() != io::ErrorKind::Interrupted {
                    // The first of the rest is the one that failed.
                    refused += 1;
                    rest = &mut rest[1..];
                }
                continue;
            }
            rest = &mut rest[sent..];
        }
        self.bytes.clear();
        self.entries.clear();
        self.heads.clear();
        refused
    }

    fn prepare(&mut self) {
        // SAFETY: it is a plain C structure for which all zeroes is a valid value.
        let peer = unsafe { zeroed::<libc::sockaddr_in>() };
        self.peers.clear();
        self.controls.clear();
        self.parts.clear();
        for entry in &self.entries {
            let mut peer = peer;
            peer.sin_family = libc::sa_family_t::try_from(libc::AF_INET).unwrap_or(2);
            peer.sin_port = entry.to.port().to_be();
            peer.sin_addr.s_addr = u32::from(*entry.to.ip()).to_be();
            self.peers.push(peer);
            self.controls.push(source(entry.from));
            let bytes = &self.bytes[entry.start..entry.end];
            // sendmmsg does not write through this pointer; iovec has no const form.
            let base = bytes.as_ptr().cast_mut().cast();
            self.parts.push(libc::iovec { iov_base: base, iov_len: bytes.len() });
        }
        self.heads.clear();
        let all = self.peers.iter_mut().zip(&mut self.parts).zip(&mut self.controls);
        for ((peer, part), control) in all {
            self.heads.push(agent_header(peer, part, control));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_arrive_at_and_leave_from_every_loopback_address() {
        let socket = FarmSocket::bind(0).unwrap();
        let port = socket.port().unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (stop, _trigger) = crate::agent::Stop::pair().unwrap();
        let (mut inbox, mut outbox) = (Inbox::new(), Outbox::default());
        for last in [1_u8, 7, 254] {
            let agent = Ipv4Addr::new(127, 1, 2, last);
            client.send_to(&[last; 3], (agent, port)).unwrap();
            let patience = meikyo_units::Nanos::from_secs(5);
            assert!(!stop.wait(socket.as_fd(), Some(patience)).unwrap());
            assert_eq!(inbox.receive(&socket).unwrap(), 1);
            for (peer, to, bytes) in inbox.datagrams() {
                assert_eq!((to, bytes), (agent, &[last; 3][..]));
                outbox.push(to, peer, bytes);
            }
            assert_eq!(outbox.send(&socket), 0);
            let mut buffer = [0; 8];
            let (length, from) = client.recv_from(&mut buffer).unwrap();
            assert_eq!((length, from), (3, (agent, port).into()));
        }
    }
}
