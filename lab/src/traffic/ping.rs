//! All hosts ping all others (ICMP echo, RFC 792), from one process.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd as _, OwnedFd};

use super::{Done, Inside, TaskError};
use crate::blueprint::Role;
use crate::system::{self, Interest};

const ECHO: u8 = 8;
const ECHO_REPLY: u8 = 0;
const RECEIVE_BYTES: i32 = 1024 * 1024;

/// Round by round: in round `d`, host `i` pings host `i + d`, so that nobody is asked twice at once.
pub(super) fn all(inside: &Inside, patience_ms: u32) -> Result<Done, TaskError> {
    let spaces = inside.hosts();
    let addresses: Vec<Ipv4Addr> = inside
        .blueprint
        .hosts()
        .filter_map(|(_, space)| match space.role {
            Role::Host { address, .. } => Some(address),
            _ => None,
        })
        .collect();
    let open = |&space: &usize| {
        inside.within(space, "open an ICMP socket", || {
            let socket = system::icmp_socket()?;
            system::set_receive_buffer(&socket, RECEIVE_BYTES)?;
            Ok(socket)
        })
    };
    let sockets: Vec<OwnedFd> = spaces.iter().map(open).collect::<Result<_, _>>()?;
    let mut lost = Vec::new();
    for distance in 1..spaces.len() {
        let to = |from: usize| (from + distance) % spaces.len();
        for (from, socket) in sockets.iter().enumerate() {
            let message = echo(from, to(from));
            // A message that cannot be sent has no answer, which is what is found out.
            if system::send_to(socket, &message, addresses[to(from)]).is_err() {
                continue;
            }
        }
        let mut missing: BTreeSet<usize> = (0..spaces.len()).collect();
        while !missing.is_empty() && hear(inside, &sockets, &to, &mut missing, patience_ms)? {}
        lost.extend(missing.into_iter().map(|from| (from, to(from))));
    }
    lost.sort_unstable();
    Ok(Done::Pinged { pairs: spaces.len() * spaces.len().saturating_sub(1), lost })
}

/// Takes the answers that are there off the missing ones; false if none came in time.
fn hear(
    inside: &Inside,
    sockets: &[OwnedFd],
    to: &impl Fn(usize) -> usize,
    missing: &mut BTreeSet<usize>,
    patience_ms: u32,
) -> Result<bool, TaskError> {
    let waiting: Vec<usize> = missing.iter().copied().collect();
    let interests: Vec<Interest> = waiting
        .iter()
        .map(|&from| Interest { fd: sockets[from].as_raw_fd(), read: true, write: false })
        .collect();
    let patience = i32::try_from(patience_ms).unwrap_or(i32::MAX);
    let failed = inside.failed(inside.hosts()[0], "wait");
    let ready = system::wait(&interests, patience).map_err(failed)?;
    for (&from, _) in waiting.iter().zip(&ready).filter(|(_, ready)| ready.read) {
        let mut buffer = [0; 256];
        while let Ok(length) = system::receive(&sockets[from], &mut buffer) {
            if answered(&buffer[..length]) == Some((from, to(from))) {
                missing.remove(&from);
            }
        }
    }
    Ok(ready.iter().any(|ready| ready.read))
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
