//! Single frames, and where they arrive.

use std::io;
use std::os::fd::AsFd as _;

use meikyo_sockets::PacketSocket;
use meikyo_sockets::options::enlarge_receive_buffer;
use meikyo_units::{Bytes, Nanos};

use super::tables::Counting;
use super::{Counters, Done, Frame, Inside, TaskError, Trace};
use crate::blueprint::{self, Role};
use crate::system::{self, ETHERTYPE_LOCAL, Interest};

/// The shortest frame, without its checksum.
const FRAME_BYTES: usize = 60;
/// What counters count for it, a tag left out.
const FRAME_BYTES_COUNTED: u64 = 60;
/// What they count for a message of LACP (IEEE 802.1AX): its 110 bytes and the header.
const LACP_BYTES_COUNTED: u64 = 124;
const MAGIC: [u8; 4] = *b"MKYO";
/// How often in a row nothing must arrive.
const QUIET_TIMES: u32 = 5;
/// Enough for what arrives between two looks: every host's broadcast.
const RECEIVE_BUFFER: Bytes = Bytes::new(4 * 1024 * 1024);

/// Sends frames and gives where each arrived.
pub(super) fn send(
    inside: &Inside,
    frames: &[Frame],
    each: bool,
    quiet_ms: u32,
) -> Result<Done, TaskError> {
    let sockets = open_all(inside)?;
    let mut counting = Counting::open(inside)?;
    let mut before = counting.read(inside)?;
    let mut traces = vec![Trace::default(); frames.len()];
    for (number, frame) in frames.iter().enumerate() {
        let bytes = frame_bytes(inside, frame, number)?;
        let from = inside.host(frame.from)?;
        send_whole(&sockets[frame.from], &bytes).map_err(inside.failed(from, "send"))?;
        // Often enough that no queue of a socket fills.
        if each || number % 64 == 63 || number + 1 == frames.len() {
            collect(inside, &sockets, &mut traces, quiet_ms)?;
        }
        if each || number + 1 == frames.len() {
            let after = counting.read(inside)?;
            for (switch, (before, after)) in before.iter().zip(&after).enumerate() {
                for (device, now) in after {
                    let then = before.get(device).copied().unwrap_or_default();
                    let sent = frames_between(&then, now);
                    if sent > 0 {
                        traces[number].sent_by.push((switch, device.clone(), sent));
                    }
                }
            }
            before = after;
        }
    }
    Ok(Done::Sent(traces))
}

/// How many frames of ours a port sent between two readings. Of others there are only messages of LACP,
/// which ports of bundles send at any time: how many, frames and bytes together say.
fn frames_between(then: &Counters, now: &Counters) -> u64 {
    let frames = now.sent_frames.saturating_sub(then.sent_frames);
    let bytes = now.sent_bytes.saturating_sub(then.sent_bytes);
    let beyond = bytes.saturating_sub(frames * FRAME_BYTES_COUNTED);
    frames.saturating_sub(beyond / (LACP_BYTES_COUNTED - FRAME_BYTES_COUNTED))
}

/// Sends bytes as they are.
pub(super) fn send_raw(inside: &Inside, frames: &[(usize, Vec<u8>)]) -> Result<(), TaskError> {
    let sockets = open_all(inside)?;
    for (from, bytes) in frames {
        let space = inside.host(*from)?;
        send_whole(&sockets[*from], bytes).map_err(inside.failed(space, "send"))?;
    }
    Ok(())
}

/// Sends a frame, as one of the type that stands in it.
fn send_whole(socket: &PacketSocket, frame: &[u8]) -> io::Result<usize> {
    let ethertype = frame.get(12..).and_then(|rest| rest.first_chunk());
    let ethertype = ethertype.map_or(ETHERTYPE_LOCAL, |bytes| u16::from_be_bytes(*bytes));
    socket.send(frame, ethertype)
}

/// A socket at the interface of every host, which never waits.
fn open_all(inside: &Inside) -> Result<Vec<PacketSocket>, TaskError> {
    let open = |space| {
        inside.within(space, "open a packet socket", || {
            let interface = blueprint::host_index().cast_signed();
            let socket = PacketSocket::open(interface, ETHERTYPE_LOCAL)?;
            system::set_nonblocking(&socket)?;
            enlarge_receive_buffer(&socket, RECEIVE_BUFFER)?;
            Ok(socket)
        })
    };
    inside.hosts().into_iter().map(open).collect()
}

fn frame_bytes(inside: &Inside, frame: &Frame, number: usize) -> Result<Vec<u8>, TaskError> {
    let mac = |host| {
        let space = inside.host(host)?;
        match inside.blueprint.spaces[space].role {
            Role::Host { mac, .. } => Ok(mac),
            _ => Err(TaskError::Unknown { kind: "host", place: host }),
        }
    };
    let mut bytes = Vec::with_capacity(FRAME_BYTES);
    bytes.extend_from_slice(&frame.to.map_or(Ok([0xff; 6]), mac)?);
    bytes.extend_from_slice(&mac(frame.from)?);
    if let Some(vlan) = frame.vlan {
        bytes.extend_from_slice(&0x8100_u16.to_be_bytes());
        bytes.extend_from_slice(&vlan.to_be_bytes());
    }
    bytes.extend_from_slice(&ETHERTYPE_LOCAL.to_be_bytes());
    bytes.extend_from_slice(&MAGIC);
    let number = u32::try_from(number).expect("frames of a task fit into memory");
    bytes.extend_from_slice(&number.to_be_bytes());
    bytes.resize(FRAME_BYTES, 0);
    Ok(bytes)
}

/// Notes what arrives until nothing has for a while, several times in a row: a machine that others
/// keep busy may find a wait over before it had a turn at all.
fn collect(
    inside: &Inside,
    sockets: &[PacketSocket],
    traces: &mut [Trace],
    quiet_ms: u32,
) -> Result<(), TaskError> {
    let interests: Vec<Interest<'_>> = sockets
        .iter()
        .map(|socket| Interest { fd: socket.as_fd(), read: true, write: false })
        .collect();
    let quiet_span = Nanos::from_millis(quiet_ms.into());
    let mut quiet = 0;
    while quiet < QUIET_TIMES {
        let failed = |host: usize| inside.failed(inside.hosts()[host], "wait");
        let ready = system::wait(&interests, Some(quiet_span)).map_err(|error| failed(0)(error))?;
        let mut any = false;
        for (host, ready) in ready.iter().enumerate().filter(|(_, ready)| ready.read) {
            any |= ready.read;
            let mut buffer = [0; 2 * FRAME_BYTES];
            while let Ok(length) = sockets[host].receive(&mut buffer) {
                if let Some(trace) = number_of(&buffer[..length]).and_then(|at| traces.get_mut(at))
                {
                    *trace.copies.entry(host).or_default() += 1;
                }
            }
        }
        quiet = if any { 0 } else { quiet + 1 };
    }
    Ok(())
}

/// The number of one of our frames, its tag taken off.
fn number_of(bytes: &[u8]) -> Option<usize> {
    let rest = bytes.get(14..)?.strip_prefix(&MAGIC)?;
    usize::try_from(u32::from_be_bytes(*rest.first_chunk()?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_lacp_are_no_frames_of_ours() {
        let reading =
            |sent_frames, sent_bytes| Counters { sent_frames, sent_bytes, ..Counters::default() };
        let then = reading(7, 700);
        assert_eq!(frames_between(&then, &reading(7 + 1, 700 + 60)), 1);
        assert_eq!(frames_between(&then, &reading(7 + 2, 700 + 2 * 124)), 0);
        assert_eq!(frames_between(&then, &reading(7 + 5, 700 + 3 * 60 + 2 * 124)), 3);
    }
}
