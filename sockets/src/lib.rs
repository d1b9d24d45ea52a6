//! What several engines ask of the kernel's sockets, in safe words.
//!
//! [`wait`] waits at descriptors, [`options`] sets what sockets can do, [`SendBatch`] and
//! [`ReceiveBatch`] carry up to [`BATCH`] datagrams a system call, and [`PacketSocket`] whole Ethernet
//! frames. The crate knows no protocol above them, keeps no state and decides nothing.
//!
//! ```
//! use meikyo_sockets::{Address, ReceiveBatch, SendBatch, readable, wait};
//! use meikyo_units::Nanos;
//! use std::net::UdpSocket;
//!
//! # fn main() -> std::io::Result<()> {
//! let (one, other) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
//! let mut sends = SendBatch::default();
//! for text in ["one", "two"] {
//!     sends.octets_mut().extend_from_slice(text.as_bytes());
//!     sends.end_datagram(&Address::from(other.local_addr()?));
//! }
//! assert_eq!(sends.send(&one, 0)?, 2);
//!
//! assert_eq!(wait(&mut [readable(&other)], Some(Nanos::SECOND))?, 1);
//! let mut receives = ReceiveBatch::new(1_500);
//! assert_eq!(receives.receive(&other)?, 2);
//! let texts: Vec<_> = receives.octets().collect();
//! assert_eq!(texts, [b"one", b"two"]);
//! # Ok(())
//! # }
//! ```

mod address;
mod control;
mod datagrams;
pub mod options;
mod packet;
mod waiting;

pub use address::Address;
pub use datagrams::{BATCH, Datagram, ReceiveBatch, SendBatch};
pub use packet::PacketSocket;
pub use rustix::event::{PollFd, PollFlags};
pub use waiting::{readable, wait};
