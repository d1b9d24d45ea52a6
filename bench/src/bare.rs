//! The least that a collector could do: send a batch, receive a batch, and look at nothing.
//!
//! Requests of the collector's size, made once, go to the same farm at the same interval, 64 a system
//! call; answers are counted and thrown away. What is left is the kernel's UDP stack, the floor under
//! every collector on this machine.

use std::io;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};

use meikyo_sockets::options::enlarge_receive_buffer;
use meikyo_sockets::{Address, BATCH, ReceiveBatch, SendBatch, readable, wait};
use meikyo_units::{Bytes, Nanos, WallTime};

use crate::placement::{Placement, place_thread, thread_cpu};

/// Room for one answer.
const ANSWER_BYTES: usize = 2048;
/// Room for the answers of 10,000 agents at once; the kernel doubles it.
const RECEIVE_BUFFER: Bytes = Bytes::new(4 << 20);

/// What the loop does.
#[derive(Debug)]
pub(crate) struct BareLoop<'a> {
    /// One agent and its request each.
    pub(crate) requests: &'a [(SocketAddrV4, Vec<u8>)],
    /// Span between two rounds.
    pub(crate) every: Nanos,
    /// How many rounds.
    pub(crate) rounds: u64,
    /// Where its thread runs.
    pub(crate) placement: Placement,
}

/// Time and memory that a run took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BareCost {
    /// Answers received.
    pub(crate) answers: u64,
    /// Requests without an answer before the next round.
    pub(crate) lost: u64,
    /// CPU time of the thread.
    pub(crate) cpu: Nanos,
}

/// Runs the loop on a thread of its own.
pub(crate) fn run(bare: &BareLoop<'_>) -> io::Result<BareCost> {
    let work = || {
        place_thread(bare.placement)?;
        rounds(bare)
    };
    std::thread::scope(|scope| scope.spawn(work).join())
        .unwrap_or_else(|_| Err(io::Error::other("the bare loop panicked")))
}

fn rounds(bare: &BareLoop<'_>) -> io::Result<BareCost> {
    let socket = UdpSocket::bind(("0.0.0.0", 0))?;
    socket.set_nonblocking(true)?;
    enlarge_receive_buffer(&socket, RECEIVE_BUFFER)?;
    let mut outgoing = SendBatch::default();
    for (to, octets) in bare.requests {
        outgoing.octets_mut().extend_from_slice(octets);
        outgoing.end_datagram(&Address::from(SocketAddr::V4(*to)));
    }
    let mut incoming = ReceiveBatch::new(ANSWER_BYTES);
    let mut cost = BareCost { answers: 0, lost: 0, cpu: Nanos::ZERO };
    let expected = bare.requests.len() as u64;
    let before = thread_cpu()?;
    let mut due = WallTime::now().floor(bare.every) + bare.every;
    for _ in 0..bare.rounds {
        wait(&mut [], Some(due.since(WallTime::now())))?;
        let mut answered = 0;
        let mut at = 0;
        while at < outgoing.len() {
            at += outgoing.send(&socket, at)?;
            answered += receive(&mut incoming, &socket)?;
        }
        due = due + bare.every;
        while answered < expected
            && wait(&mut [readable(&socket)], Some(due.since(WallTime::now())))? > 0
        {
            answered += receive(&mut incoming, &socket)?;
        }
        cost.answers += answered;
        cost.lost += expected.saturating_sub(answered);
    }
    cost.cpu = thread_cpu()?.saturating_sub(before);
    Ok(cost)
}

/// Receives all that is there; the number of datagrams.
fn receive(incoming: &mut ReceiveBatch, socket: &UdpSocket) -> io::Result<u64> {
    let mut received = 0;
    loop {
        match incoming.receive(socket) {
            Ok(BATCH) => received += BATCH as u64,
            Ok(last) => return Ok(received + last as u64),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(received),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers every datagram with itself until `count` are answered.
    fn echo(count: usize) -> (SocketAddrV4, std::thread::JoinHandle<()>) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let SocketAddr::V4(address) = socket.local_addr().unwrap() else {
            panic!("an IPv4 address was asked for")
        };
        let answer = std::thread::spawn(move || {
            let mut octets = [0; 2048];
            for _ in 0..count {
                let (length, from) = socket.recv_from(&mut octets).unwrap();
                socket.send_to(&octets[..length], from).unwrap();
            }
        });
        (address, answer)
    }

    #[test]
    fn every_answer_is_counted_once() {
        let (address, answer) = echo(450);
        let requests: Vec<_> = (0..150_u8).map(|n| (address, vec![n; 90])).collect();
        let placement = Placement::default();
        let every = Nanos::from_millis(200);
        let bare = BareLoop { requests: &requests, every, rounds: 3, placement };
        let cost = run(&bare).unwrap();
        assert_eq!((cost.answers, cost.lost), (450, 0));
        assert!(cost.cpu > Nanos::ZERO);
        answer.join().unwrap();
    }

    #[test]
    fn what_is_not_answered_is_lost() {
        let (address, answer) = echo(70);
        let requests: Vec<_> = (0..100_u8).map(|n| (address, vec![n; 90])).collect();
        let placement = Placement::default();
        let every = Nanos::from_millis(100);
        let bare = BareLoop { requests: &requests, every, rounds: 1, placement };
        assert_eq!(run(&bare).unwrap().lost, 30);
        answer.join().unwrap();
    }
}
