//! Messages to the kernel's routing socket (RFC 3549): links, addresses, bridges, queues.
//!
//! Messages go out many at a time, and only the last of a batch asks for an acknowledgement: errors
//! come back anyway. It knows no namespaces: a socket belongs to the one in which it was opened.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// A message that wants something.
pub const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_ACK: u16 = 0x4;
const NLM_F_DUMP: u16 = 0x300;
/// What is not there is made.
pub const NLM_F_CREATE: u16 = 0x400;
/// What is there already is an error.
pub const NLM_F_EXCL: u16 = 0x200;

/// A device is made or changed.
pub const RTM_NEWLINK: u16 = 16;
/// Devices are asked for.
pub const RTM_GETLINK: u16 = 18;
/// The name of a device.
pub const IFLA_IFNAME: u16 = 3;
/// What is particular to its kind.
pub const IFLA_LINKINFO: u16 = 18;
/// The kind, as a text.
pub const IFLA_INFO_KIND: u16 = 1;
/// The settings of that kind.
pub const IFLA_INFO_DATA: u16 = 2;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const HEADER_BYTES: usize = 16;
const NLA_F_NESTED: u16 = 0x8000;
/// How much is sent at once: well below what a socket takes by default (208 KiB).
const BATCH_BYTES_MAX: usize = 32 * 1024;
/// Largest answer that the kernel gives in one piece.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// The kernel refused a message.
#[derive(Debug, thiserror::Error)]
pub enum NetlinkError {
    /// The socket failed.
    #[error("the routing socket failed")]
    Socket(#[source] io::Error),
    /// A message was refused.
    #[error("the kernel refuses: {what}")]
    Refused {
        /// The request, in words.
        what: String,
        /// What the kernel said to it.
        #[source]
        source: io::Error,
    },
    /// Links stay dead.
    #[error("{0} devices do not carry frames")]
    NoCarrier(usize),
    /// An answer that is none.
    #[error("the routing socket answered with {0} bytes that are no message")]
    Malformed(usize),
}

/// One message, and what it is for when it fails.
#[derive(Debug, Clone)]
pub struct Message {
    bytes: Vec<u8>,
    what: String,
}

impl Message {
    /// A message with its fixed part.
    pub fn new(what: impl Into<String>, kind: u16, flags: u16, body: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&(flags | NLM_F_REQUEST).to_ne_bytes());
        bytes.extend_from_slice(body);
        Self { bytes, what: what.into() }
    }

    /// Adds an attribute.
    pub fn with(mut self, kind: u16, value: &[u8]) -> Self {
        self.put(kind, value);
        self
    }

    /// Adds an attribute that is a number of 32 bits.
    pub fn with_u32(self, kind: u16, value: u32) -> Self {
        self.with(kind, &value.to_ne_bytes())
    }

    /// Adds an attribute that is a text that ends with a zero.
    pub fn with_text(self, kind: u16, text: &str) -> Self {
        let mut value = text.as_bytes().to_vec();
        value.push(0);
        self.with(kind, &value)
    }

    /// Adds attributes within an attribute.
    ///
    /// # Panics
    /// If they have 64 KiB together.
    pub fn nest(mut self, kind: u16, fill: impl FnOnce(Self) -> Self) -> Self {
        let start = self.bytes.len();
        self.put(kind | NLA_F_NESTED, &[]);
        let mut filled = fill(self);
        let length = u16::try_from(filled.bytes.len() - start).expect("a nest is small");
        filled.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        filled
    }

    /// Adds bytes as they are: the fixed part of a message within a message.
    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    fn put(&mut self, kind: u16, value: &[u8]) {
        let length = u16::try_from(4 + value.len()).expect("an attribute is small");
        self.bytes.extend_from_slice(&length.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(value);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn finish(&mut self, sequence: u32, flags: u16) {
        let length = u32::try_from(self.bytes.len()).expect("a message is small");
        self.bytes[0..4].copy_from_slice(&length.to_ne_bytes());
        let flags = flags | u16::from_ne_bytes([self.bytes[6], self.bytes[7]]);
        self.bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
    }
}

/// A routing socket.
#[derive(Debug)]
pub struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

impl Netlink {
    /// A socket of the namespace that the calling thread is in.
    ///
    /// # Errors
    /// When there can be none.
    pub fn open() -> Result<Self, NetlinkError> {
        // No protocol is NETLINK_ROUTE.
        let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
        let socket = rustix::net::socket_with(family, SocketType::RAW, flags, None)
            .map_err(|error| NetlinkError::Socket(error.into()))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Sends the messages and waits until the kernel has carried them out.
    ///
    /// The first that is refused ends it; those after it in the same batch may have been carried out.
    ///
    /// # Errors
    /// What the kernel refuses, or that the socket fails.
    pub fn apply(&mut self, messages: Vec<Message>) -> Result<(), NetlinkError> {
        let mut messages = messages.into_iter().peekable();
        while messages.peek().is_some() {
            let (mut batch, mut whats) = (Vec::new(), Vec::new());
            let first = self.sequence + 1;
            while let Some(mut message) = messages.next_if(|next| {
                batch.is_empty() || batch.len() + next.bytes.len() <= BATCH_BYTES_MAX
            }) {
                self.sequence += 1;
                let fits = |next: &Message| {
                    batch.len() + message.bytes.len() + next.bytes.len() <= BATCH_BYTES_MAX
                };
                let last = !messages.peek().is_some_and(fits);
                message.finish(self.sequence, if last { NLM_F_ACK } else { 0 });
                batch.extend_from_slice(&message.bytes);
                whats.push(message.what);
                if last {
                    break;
                }
            }
            self.send(&batch)?;
            self.await_acknowledgement(first, &whats)?;
        }
        Ok(())
    }

    fn send(&self, bytes: &[u8]) -> Result<(), NetlinkError> {
        let sent = rustix::net::send(&self.socket, bytes, SendFlags::empty());
        sent.map(drop).map_err(|error| NetlinkError::Socket(error.into()))
    }

    fn await_acknowledgement(&self, first: u32, whats: &[String]) -> Result<(), NetlinkError> {
        loop {
            let mut acknowledged = false;
            let mut refused = None;
            self.receive(|kind, sequence, body| {
                let Some(nth) = sequence.checked_sub(first) else { return };
                let nth = usize::try_from(nth).expect("32 bits");
                if kind != NLMSG_ERROR || nth >= whats.len() {
                    return;
                }
                let code = body.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
                if code != 0 && refused.is_none() {
                    refused = Some((nth, io::Error::from_raw_os_error(code.wrapping_neg())));
                }
                acknowledged |= nth + 1 == whats.len();
            })?;
            if let Some((nth, source)) = refused {
                return Err(NetlinkError::Refused { what: whats[nth].clone(), source });
            }
            if acknowledged {
                return Ok(());
            }
        }
    }

    /// Everything that the kernel has of a kind: `take` gets the body of each answer.
    ///
    /// # Errors
    /// What the kernel refuses, or that the socket fails.
    pub fn dump(
        &mut self,
        mut message: Message,
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), NetlinkError> {
        self.sequence += 1;
        let asked = self.sequence;
        message.finish(asked, NLM_F_DUMP);
        self.send(&message.bytes)?;
        loop {
            let (mut done, mut refused) = (false, None);
            self.receive(|kind, sequence, body| match kind {
                _ if sequence != asked => {}
                NLMSG_DONE => done = true,
                NLMSG_ERROR => {
                    let code = body.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
                    refused = Some(io::Error::from_raw_os_error(code.wrapping_neg()));
                }
                _ => take(body),
            })?;
            if let Some(source) = refused {
                return Err(NetlinkError::Refused { what: message.what, source });
            }
            if done {
                return Ok(());
            }
        }
    }

    /// Receives once: one or more messages, by kind, sequence and body.
    fn receive(&self, mut take: impl FnMut(u16, u32, &[u8])) -> Result<(), NetlinkError> {
        let mut buffer = vec![0; ANSWER_BYTES_MAX];
        let received = rustix::net::recv(&self.socket, &mut buffer, RecvFlags::empty());
        let (length, _) = received.map_err(|error| NetlinkError::Socket(error.into()))?;
        let mut rest = &buffer[..length];
        while !rest.is_empty() {
            let Some((header, _)) = rest.split_first_chunk::<HEADER_BYTES>() else {
                return Err(NetlinkError::Malformed(length));
            };
            let [l0, l1, l2, l3, k0, k1, _, _, s0, s1, s2, s3, ..] = *header;
            let whole = usize::try_from(u32::from_ne_bytes([l0, l1, l2, l3])).expect("32 bits");
            if whole < HEADER_BYTES || whole > rest.len() {
                return Err(NetlinkError::Malformed(length));
            }
            let sequence = u32::from_ne_bytes([s0, s1, s2, s3]);
            take(u16::from_ne_bytes([k0, k1]), sequence, &rest[HEADER_BYTES..whole]);
            rest = &rest[whole.next_multiple_of(4).min(rest.len())..];
        }
        Ok(())
    }
}

/// The attributes of an answer, by kind.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (&[l0, l1, k0, k1], _) = rest.split_first_chunk::<4>()?;
        let whole = usize::from(u16::from_ne_bytes([l0, l1]));
        if whole < 4 || whole > rest.len() {
            return None;
        }
        let value = &rest[4..whole];
        rest = &rest[whole.next_multiple_of(4).min(rest.len())..];
        Some((u16::from_ne_bytes([k0, k1]) & 0x3fff, value))
    })
}
