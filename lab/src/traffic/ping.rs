//! All hosts ping all others (ICMP echo, RFC 792), from one process.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd as _, OwnedFd};

use meikyo_sockets::options::enlarge_receive_buffer;
use meikyo_units::{Bytes, Nanos};

use super::{Done, Inside, TaskError};
use crate::blueprint::Role;
use crate::system::{self, Interest};

const ECHO: u8 = 8;
const ECHO_REPLY: u8 = 0;
const RECEIVE_BUFFER: Bytes = Bytes::new(1024 * 1024);

/// Every host pings every other one.
pub(super) fn all(inside: &Inside, patience_ms: u32) -> Result<Done, TaskError> {
    let pinging = Pinging::open(inside)?;
    let pairs = pinging.pairs();
    let lost = pinging.unanswered(inside, &pairs, patience_ms)?.into_iter().collect();
    Ok(Done::Pinged { pairs: pairs.len(), lost })
}

/// Hosts that can ping each other: a socket at each, and its address.
pub(super) struct Pinging {
    sockets: Vec<OwnedFd>,
    addresses: Vec<Ipv4Addr>,
}

impl Pinging {
    pub(super) fn open(inside: &Inside) -> Result<Self, TaskError> {
        let addresses = inside
            .blueprint
            .hosts()
            .filter_map(|(_, space)| match space.role {
                Role::Host { address, .. } => Some(address),
                _ => None,
            })
            .collect();
        let open = |space: usize| {
            inside.within(space, "open an ICMP socket", || {
                let socket = system::icmp_socket()?;
                enlarge_receive_buffer(&socket, RECEIVE_BUFFER)?;
                Ok(socket)
            })
        };
        let sockets = inside.hosts().into_iter().map(open).collect::<Result<_, _>>()?;
        Ok(Self { sockets, addresses })
    }

    /// All pairs of hosts, each direction for itself: from, to.
    pub(super) fn pairs(&self) -> BTreeSet<(usize, usize)> {
        let hosts = self.sockets.len();
        let of_host = |from| (0..hosts).filter(move |&to| to != from).map(move |to| (from, to));
        (0..hosts).flat_map(of_host).collect()
    }

    /// Those of the pairs that do not answer.
    ///
    /// Round by round: in round `d`, host `i` pings host `i + d`, so that nobody is asked twice at once.
    pub(super) fn unanswered(
        &self,
        inside: &Inside,
        pairs: &BTreeSet<(usize, usize)>,
        patience_ms: u32,
    ) -> Result<BTreeSet<(usize, usize)>, TaskError> {
        let hosts = self.sockets.len();
        let mut rounds: BTreeMap<usize, BTreeSet<(usize, usize)>> = BTreeMap::new();
        for &(from, to) in pairs {
            rounds.entry((to + hosts - from) % hosts).or_default().insert((from, to));
        }
        let mut lost = BTreeSet::new();
        for mut missing in rounds.into_values() {
            for &(from, to) in &missing {
                // A message that cannot be sent has no answer, which is what is found out.
                let sent =
                    system::send_to(&self.sockets[from], &echo(from, to), self.addresses[to]);
                drop(sent);
            }
            while !missing.is_empty() && self.hear(inside, &mut missing, patience_ms)? {}
            lost.append(&mut missing);
        }
        Ok(lost)
    }

    /// Takes the answers that are there off the missing ones; false if none came in time.
    fn hear(
        &self,
        inside: &Inside,
        missing: &mut BTreeSet<(usize, usize)>,
        patience_ms: u32,
    ) -> Result<bool, TaskError> {
        let waiting: Vec<usize> = missing.iter().map(|&(from, _)| from).collect();
        let interest =
            |&from: &usize| Interest { fd: self.sockets[from].as_fd(), read: true, write: false };
        let interests: Vec<Interest<'_>> = waiting.iter().map(interest).collect();
        let patience = Nanos::from_millis(patience_ms.into());
        let failed = inside.failed(inside.hosts()[0], "wait");
        let ready = system::wait(&interests, Some(patience)).map_err(failed)?;
        for (&from, _) in waiting.iter().zip(&ready).filter(|(_, ready)| ready.read) {
            let mut buffer = [0; 256];
            while let Ok(length) = system::receive(&self.sockets[from], &mut buffer) {
                if let Some(pair) = answered(&buffer[..length]) {
                    missing.remove(&pair);
                }
            }
        }
        Ok(ready.iter().any(|ready| ready.read))
    }
}

fn echo(from: usize, to: usize) -> Vec<u8> {
    let mut message = vec![ECHO, 0, 0, 0, 0, 0, 0, 0];
    for place in [from, to] {
        let place = u32::try_from(place).expect("hosts have addresses");
        message.extend_from_slice(&place.to_be_bytes());
    }
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    message
}

/// The Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).expect("folded to 16 bits")
}

/// From and to of an answer, with its Internet header.
fn answered(packet: &[u8]) -> Option<(usize, usize)> {
    let header = usize::from(packet.first()? & 0xf) * 4;
    let message = packet.get(header..)?;
    if *message.first()? != ECHO_REPLY {
        return None;
    }
    let place = |at: usize| {
        let bytes = message.get(at..)?.first_chunk()?;
        usize::try_from(u32::from_be_bytes(*bytes)).ok()
    };
    Some((place(8)?, place(12)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_rfc_1071() {
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }
}
