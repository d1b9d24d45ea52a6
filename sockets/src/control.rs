//! Control messages of datagrams (cmsg(3)): what the kernel says beside the octets.
//!
//! One message is its length with its head, its level and its kind, then its data; the next begins
//! at a multiple of a word.

use std::net::Ipv4Addr;

use meikyo_units::WallTime;

/// Where the data of a message begin.
const HEAD: usize = size_of::<libc::cmsghdr>();

/// Space for what can be switched on in [`crate::options`]: 32 octets each for a stamp and a
/// destination, 24 for a count of drops.
pub(crate) const SPACE: usize = 96;

/// Control messages, aligned as the first must be.
#[derive(Debug, Clone, Copy)]
#[repr(align(8))]
pub(crate) struct Control(pub(crate) [u8; SPACE]);

/// The one message that lets a datagram leave from an address of this machine.
#[derive(Debug, Clone, Copy)]
#[repr(align(8))]
pub(crate) struct Source(pub(crate) [u8; 32]);

impl Source {
    /// `in_pktinfo` (ip(7)) is an interface, of which 0 leaves the choice to the routes, the address
    /// to send from, and one that only counts on arrival.
    pub(crate) fn new(from: Ipv4Addr) -> Self {
        const LENGTH: usize = HEAD + size_of::<libc::in_pktinfo>();
        const WORD: usize = size_of::<usize>();
        let mut octets = [0; 32];
        octets[..WORD].copy_from_slice(&LENGTH.to_ne_bytes());
        octets[WORD..WORD + 4].copy_from_slice(&libc::IPPROTO_IP.to_ne_bytes());
        octets[WORD + 4..HEAD].copy_from_slice(&libc::IP_PKTINFO.to_ne_bytes());
        octets[HEAD + 4..HEAD + 8].copy_from_slice(&from.octets());
        Self(octets)
    }
}

/// What the kernel said of a datagram.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Said {
    /// When it arrived.
    pub(crate) received: Option<WallTime>,
    /// How many the socket had dropped before it.
    pub(crate) drops: Option<u32>,
    /// To which address of this machine it was sent.
    pub(crate) to: Option<Ipv4Addr>,
}

/// Reads the messages that the kernel wrote.
pub(crate) fn read(mut messages: &[u8]) -> Said {
    let mut said = Said::default();
    while let Some((length, rest)) = messages.split_first_chunk() {
        let length = usize::from_ne_bytes(*length);
        let Some(data) = messages.get(HEAD..length) else { break };
        let part = |at: usize| rest.get(at..).and_then(|rest| rest.first_chunk().copied());
        let (level, kind) = (part(0).map(i32::from_ne_bytes), part(4).map(i32::from_ne_bytes));
        match (level.unwrap_or_default(), kind.unwrap_or_default()) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => said.received = stamp(data),
            (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                said.drops = data.first_chunk().copied().map(u32::from_ne_bytes);
            }
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                let address = data.get(8..).and_then(|data| data.first_chunk::<4>());
                said.to = address.copied().map(Ipv4Addr::from);
            }
            _ => {}
        }
        messages = messages.get(length.next_multiple_of(size_of::<usize>())..).unwrap_or_default();
    }
    said
}

/// An instant in a `timespec`.
fn stamp(data: &[u8]) -> Option<WallTime> {
    let (seconds, rest) = data.split_first_chunk()?;
    let (seconds, nanos) = (i64::from_ne_bytes(*seconds), i64::from_ne_bytes(*rest.first_chunk()?));
    Some(WallTime::from_nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message as the kernel writes it, with what fills its last word.
    fn message(level: i32, kind: i32, data: &[u8]) -> Vec<u8> {
        let mut octets = (HEAD + data.len()).to_ne_bytes().to_vec();
        octets.extend_from_slice(&level.to_ne_bytes());
        octets.extend_from_slice(&kind.to_ne_bytes());
        octets.extend_from_slice(data);
        octets.resize(octets.len().next_multiple_of(8), 0xee);
        octets
    }

    #[test]
    fn every_message_is_read_whatever_stands_before_it() {
        let stamp = [7_i64.to_ne_bytes(), 9_i64.to_ne_bytes()].concat();
        let messages = [
            message(libc::SOL_SOCKET, libc::SO_RXQ_OVFL, &3_u32.to_ne_bytes()),
            message(libc::IPPROTO_IP, libc::IP_TTL, &[64, 0, 0, 0]),
            message(libc::IPPROTO_IP, libc::IP_PKTINFO, &[1, 0, 0, 0, 9, 9, 9, 9, 127, 0, 0, 2]),
            message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS, &stamp),
        ];
        let expected = Said {
            received: Some(WallTime::from_nanos(7_000_000_009)),
            drops: Some(3),
            to: Some(Ipv4Addr::new(127, 0, 0, 2)),
        };
        assert_eq!(read(&messages.concat()), expected);
        let backwards: Vec<u8> = messages.into_iter().rev().flatten().collect();
        assert_eq!(read(&backwards), expected);
    }

    #[test]
    fn messages_that_are_cut_say_nothing() {
        let source = Source::new(Ipv4Addr::new(127, 1, 2, 3));
        for length in 0..28 {
            assert_eq!(read(&source.0[..length]), Said::default(), "{length} octets");
        }
        assert_eq!(read(&source.0[..28]).to, Some(Ipv4Addr::UNSPECIFIED));
        assert_eq!(read(&[0; SPACE]), Said::default());
        assert_eq!(read(&[0xff; SPACE]), Said::default());
    }
}
