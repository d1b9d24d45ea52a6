//! The collector's UDP socket: receive times by the kernel, drops counted, a buffer for a burst of
//! answers.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use meikyo_sockets::options;
use meikyo_units::Bytes;
use rustix::net::sockopt::{Ipv4PathMtuDiscovery, set_ip_mtu_discover};

/// Longest answer that is read; requests are packed so that answers fit an Ethernet frame, and a
/// longer one is reported as cut.
pub(crate) const DATAGRAM: usize = 4096;

/// A non-blocking UDP socket that stamps what it receives and counts what it drops.
#[derive(Debug)]
pub(crate) struct Socket {
    socket: UdpSocket,
    /// What the kernel granted, in its own accounting (payload and overhead).
    receive_buffer: Bytes,
    /// Whether datagrams may be sent in fragments.
    fragments: bool,
}

/// Why a socket could not be made ready.
#[derive(Debug, thiserror::Error)]
#[error("cannot {step} for {family}")]
pub struct SocketError {
    step: &'static str,
    family: &'static str,
    source: io::Error,
}

impl Socket {
    /// A socket for IPv4 or IPv6 whose receive buffer holds `wanted` bytes if the system allows:
    /// beyond `net.core.rmem_max` only with `CAP_NET_ADMIN`.
    ///
    /// # Errors
    /// When the kernel refuses the socket or one of its options.
    pub(crate) fn open(v6: bool, wanted: Bytes) -> Result<Self, SocketError> {
        let family = if v6 { "IPv6" } else { "IPv4" };
        let fail = |step| move |source| SocketError { step, family, source };
        let any: SocketAddr =
            if v6 { (Ipv6Addr::UNSPECIFIED, 0).into() } else { (Ipv4Addr::UNSPECIFIED, 0).into() };
        let socket = UdpSocket::bind(any).map_err(fail("bind a UDP socket"))?;
        socket.set_nonblocking(true).map_err(fail("make a socket non-blocking"))?;
        options::enlarge_receive_buffer(&socket, wanted)
            .map_err(fail("size the receive buffer"))?;
        options::stamp_arrivals(&socket).map_err(fail("switch on receive times"))?;
        options::count_drops(&socket).map_err(fail("switch on the drop counter"))?;
        let receive_buffer =
            options::receive_buffer(&socket).map_err(fail("read the buffer size"))?;
        if !v6 {
            forbid_fragments(&socket).map_err(fail("forbid fragments"))?;
        }
        Ok(Self { socket, receive_buffer, fragments: v6 })
    }

    /// Lets requests that are larger than the path's frames be sent in fragments; `false` if they
    /// could be before.
    pub(crate) fn permit_fragments(&mut self) -> bool {
        let permitted = permit_fragments(&self.socket);
        !std::mem::replace(&mut self.fragments, true) && permitted.is_ok()
    }

    /// The receive buffer that the kernel granted, in its own accounting.
    pub(crate) fn receive_buffer(&self) -> Bytes {
        self.receive_buffer
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Lets no IPv4 datagram of a socket be fragmented.
///
/// What is never fragmented needs no identification, for which the kernel looks into a table that is
/// in no cache (measured: a tenth of the time of sending).
pub(crate) fn forbid_fragments(socket: &UdpSocket) -> io::Result<()> {
    Ok(set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::DO)?)
}

/// Takes [`forbid_fragments`] back.
pub(crate) fn permit_fragments(socket: &UdpSocket) -> io::Result<()> {
    Ok(set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::WANT)?)
}

/// Kernel memory that one waiting datagram of `length` octets is charged with (`skb->truesize`).
///
/// Measured on Linux 6: 150 octets cost 832; the data area is rounded up to a power of two. This
/// bound is above every measured size.
pub(crate) fn charged(length: usize) -> Bytes {
    let data = (length + 384).next_power_of_two().max(512);
    Bytes::new(data as u64 + 256)
}

#[cfg(test)]
mod tests {
    use meikyo_sockets::{ReceiveBatch, readable, wait};
    use meikyo_units::{Nanos, WallTime};

    use super::*;

    #[test]
    fn answers_are_stamped_and_own_drops_counted() {
        let socket = Socket::open(false, Bytes::new(4096)).unwrap();
        let port = socket.socket.local_addr().unwrap().port();
        let peer = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let before = WallTime::now();
        for _ in 0..200 {
            peer.send_to(&[0; 100], (Ipv4Addr::LOCALHOST, port)).unwrap();
        }
        let mut batch = ReceiveBatch::new(DATAGRAM);
        let mut read = 0;
        while let Ok(count) = batch.receive(&socket) {
            read += count;
            for datagram in batch.datagrams() {
                let received = datagram.received.expect("receive times are on");
                assert!(before <= received && received <= WallTime::now());
            }
        }
        assert!(read < 200, "a buffer of 4 kB cannot hold 200 datagrams");
        peer.send_to(&[0; 100], (Ipv4Addr::LOCALHOST, port)).unwrap();
        assert_eq!(wait(&mut [readable(&socket)], Some(Nanos::from_secs(5))).unwrap(), 1);
        batch.receive(&socket).unwrap();
        let drops = batch.datagrams().find_map(|datagram| datagram.drops);
        assert_eq!(drops.map(|drops| drops as usize), Some(200 - read));
    }

    #[test]
    fn fragments_are_permitted_once() {
        let mut socket = Socket::open(false, Bytes::new(1 << 20)).unwrap();
        assert!(socket.receive_buffer().get() >= 4096);
        let peer = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        // Longer than the frames of loopback, whose MTU is 65,536 with the headers.
        let send = |socket: &Socket| {
            socket.socket.send_to(&[0; 65_507], peer.local_addr().unwrap()).map(drop)
        };
        assert_eq!(send(&socket).map_err(|error| error.kind()), Ok(()));
        assert!(socket.permit_fragments());
        assert!(!socket.permit_fragments());
    }
}
