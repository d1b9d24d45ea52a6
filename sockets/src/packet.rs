//! Whole Ethernet frames at an interface (packet(7)).
#![expect(unsafe_code, reason = "`rustix` has no addresses of packet sockets")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::addr::{SocketAddrArg, SocketAddrLen, SocketAddrOpaque};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, sendto, socket_with,
};

/// A socket for whole Ethernet frames at one interface of the network namespace that the thread is in
/// which opens it. Needs `CAP_NET_RAW`.
#[derive(Debug)]
pub struct PacketSocket {
    socket: OwnedFd,
    interface: i32,
}

impl PacketSocket {
    /// Opens the interface of this index; frames of one type are received.
    ///
    /// # Errors
    /// When there is no such interface, or this process may not.
    pub fn open(interface: i32, ethertype: u16) -> io::Result<Self> {
        // Protocol 0 hears nothing until the socket is bound to its interface.
        let socket =
            socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        bind(&socket, &LinkAddress { interface, ethertype })?;
        Ok(Self { socket, interface })
    }

    /// Sends a frame, as one of this type: rules of hosts go by what the sender says, and not by what
    /// stands in the frame. Returns the octets sent.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn send(&self, frame: &[u8], ethertype: u16) -> io::Result<usize> {
        let address = LinkAddress { interface: self.interface, ethertype };
        Ok(sendto(&self.socket, frame, SendFlags::empty(), &address)?)
    }

    /// Receives a frame, and how long it is.
    ///
    /// # Errors
    /// When the socket fails, or none is waiting at one that does not wait.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let (length, _) = recv(&self.socket, buffer, RecvFlags::empty())?;
        Ok(length)
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Which frames at which interface.
#[derive(Debug, Clone, Copy)]
struct LinkAddress {
    interface: i32,
    ethertype: u16,
}

// SAFETY: the pointer is to a whole `sockaddr_ll` that lives across the call, of the length given.
unsafe impl SocketAddrArg for LinkAddress {
    unsafe fn with_sockaddr<R>(
        &self,
        call: impl FnOnce(*const SocketAddrOpaque, SocketAddrLen) -> R,
    ) -> R {
        let address = libc::sockaddr_ll {
            sll_family: u16::try_from(libc::AF_PACKET).expect("families are small"),
            sll_protocol: self.ethertype.to_be(),
            sll_ifindex: self.interface,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        let length = SocketAddrLen::try_from(size_of_val(&address)).expect("addresses are small");
        call((&raw const address).cast(), length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{readable, wait};

    #[test]
    fn frames_of_its_type_come_back_over_loopback() {
        // Experimental protocols on one's own network (IEEE 802, clause 9.2.3).
        const TYPE: u16 = 0x88b5;
        let socket = match PacketSocket::open(1, TYPE) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                meikyo_testing::skipped("no permission for packet sockets");
                return;
            }
            socket => socket.unwrap(),
        };
        let mut frame = [7; 64];
        frame[12..14].copy_from_slice(&TYPE.to_be_bytes());
        assert_eq!(socket.send(&frame, TYPE).unwrap(), 64);
        let span = meikyo_units::Nanos::from_secs(5);
        assert_eq!(wait(&mut [readable(&socket)], Some(span)).unwrap(), 1);
        let mut buffer = [0; 128];
        assert_eq!(socket.receive(&mut buffer).unwrap(), 64);
        assert_eq!(buffer[..64], frame);
    }
}
