//! The one socket of this crate: it sends and hears priming frames at an interface.

use std::io;
use std::path::Path;

use meikyo_cluster::MacAddress;
use meikyo_sockets::{PacketSocket, readable, wait};
use meikyo_units::Nanos;

use super::{PRIMING_ETHERTYPE, PRIMING_FRAME_BYTES, PrimingNotice, read_priming_frame};

/// A frame with a tag (IEEE 802.1Q).
const ETHERTYPE_TAGGED: u16 = 0x8100;

/// A socket for priming frames at one interface.
#[derive(Debug)]
pub struct PrimingSocket {
    socket: PacketSocket,
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
        let socket = PacketSocket::open(index, PRIMING_ETHERTYPE)
            .map_err(|source| PrimingSocketError::Socket { interface: interface.into(), source })?;
        Ok(Self { socket, mac })
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
        self.socket.send(frame, ETHERTYPE_TAGGED).map(drop)
    }

    /// Waits for a priming frame, for this long at most; `None` if none came, or another one.
    ///
    /// # Errors
    /// If the socket fails.
    pub fn hear(&self, span: Nanos) -> io::Result<Option<PrimingNotice>> {
        if wait(&mut [readable(&self.socket)], Some(span))? == 0 {
            return Ok(None);
        }
        let mut frame = [0_u8; 2 * PRIMING_FRAME_BYTES];
        let length = self.socket.receive(&mut frame)?;
        Ok(read_priming_frame(&frame[..length]))
    }
}
