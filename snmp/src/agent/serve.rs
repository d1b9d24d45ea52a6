//! One agent on a socket of its own.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd as _;

use meikyo_units::WallTime;

use super::{Access, Counters, Engine, MESSAGE_BYTES_MAX, Mib, Responder, Stop, respond};

/// Answers what comes to `socket` until `stop`; returns what was counted.
///
/// # Errors
///
/// If the socket fails. That a single answer cannot be sent is none: UDP loses datagrams anyway.
pub fn serve<M: Mib>(
    socket: &UdpSocket,
    access: &Access,
    engine: &mut Engine,
    mib: &mut M,
    stop: &Stop,
) -> io::Result<Counters> {
    socket.set_nonblocking(true)?;
    let mut responder = Responder::new();
    let mut request = vec![0; MESSAGE_BYTES_MAX];
    let mut answer = Vec::new();
    while !stop.wait(socket.as_fd(), None)? {
        let (length, peer) = match socket.recv_from(&mut request) {
            Ok(received) => received,
            // An ICMP error that an earlier answer caused says nothing about this agent.
            Err(error) if error.kind() != io::ErrorKind::InvalidInput => continue,
            Err(error) => return Err(error),
        };
        answer.clear();
        let now = WallTime::now();
        respond(&mut responder, now, &request[..length], access, engine, mib, &mut answer);
        if !answer.is_empty() {
            drop(socket.send_to(&answer, peer));
        }
    }
    Ok(responder.counters())
}
