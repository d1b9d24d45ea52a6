//! One UDP socket for all agents of a farm: every datagram comes to and leaves from the address of its
//! agent (`IP_PKTINFO`, ip(7)).

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use meikyo_sockets::{Address, ReceiveBatch, SendBatch, options};
use meikyo_units::Bytes;
use rustix::io::Errno;
use thiserror::Error;

use crate::socket::{forbid_fragments, permit_fragments};

/// Largest request that is taken, bytes; a longer one is cut by the kernel and then malformed.
const REQUEST_BYTES_MAX: usize = 8_192;
/// Asked for as buffers of the socket: room for 10^5 requests.
const SOCKET_BUFFER: Bytes = Bytes::new(64 << 20);

/// Why the port of a farm cannot be had.
#[derive(Debug, Error)]
#[error("cannot bind UDP port {port} for the agents")]
pub struct BindError {
    /// The UDP port that was asked for.
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
        options::tell_destinations(&socket)?;
        forbid_fragments(&socket)?;
        options::enlarge_receive_buffer(&socket, SOCKET_BUFFER)?;
        options::enlarge_send_buffer(&socket, SOCKET_BUFFER)?;
        Ok(Self { socket })
    }

    /// The port that it is bound to.
    ///
    /// # Errors
    ///
    /// What getsockname(2) says.
    pub fn port(&self) -> io::Result<u16> {
        Ok(self.socket.local_addr()?.port())
    }
}

impl AsFd for FarmSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Room for a batch of requests.
pub(super) struct Inbox(ReceiveBatch);

impl Inbox {
    pub(super) fn new() -> Self {
        Self(ReceiveBatch::new(REQUEST_BYTES_MAX))
    }

    /// Takes what is there, at most a batch, without waiting; returns how many datagrams.
    pub(super) fn receive(&mut self, socket: &FarmSocket) -> io::Result<usize> {
        match self.0.receive(socket) {
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                Ok(0)
            }
            result => result,
        }
    }

    /// The datagrams that were taken last: from whom, to which address, what.
    pub(super) fn datagrams(&mut self) -> impl Iterator<Item = (SocketAddrV4, Ipv4Addr, &[u8])> {
        self.0.datagrams().map(|datagram| {
            let SocketAddr::V4(peer) = datagram.from else { panic!("an IPv4 socket hears IPv4") };
            let to = datagram.to.expect("the socket tells destinations");
            (peer, to, &*datagram.octets)
        })
    }
}

/// Answers that are to leave now.
#[derive(Default)]
pub(super) struct Outbox(SendBatch);

impl Outbox {
    /// Adds a datagram.
    pub(super) fn push(&mut self, from: Ipv4Addr, to: SocketAddrV4, bytes: &[u8]) {
        self.0.octets_mut().extend_from_slice(bytes);
        self.0.end_datagram_from(from, &Address::from(SocketAddr::V4(to)));
    }

    /// Sends and forgets all of them; returns how many the kernel did not take.
    pub(super) fn send(&mut self, socket: &FarmSocket) -> u64 {
        let (mut next, mut refused, mut fragments) = (0, 0, false);
        while next < self.0.len() {
            match self.0.send(socket, next) {
                Ok(sent) => next += sent,
                Err(error)
                    if error.raw_os_error() == Some(Errno::MSGSIZE.raw_os_error())
                        && !fragments
                        && permit_fragments(&socket.socket).is_ok() =>
                {
                    fragments = true;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    // The first of the rest is the one that failed.
                    refused += 1;
                    next += 1;
                }
            }
        }
        self.0.clear();
        refused
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
