//! A farm on a socket: a thread that waits, answers in batches, and holds back what is to leave
//! later.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd as _;

use meikyo_units::{Nanos, WallTime};
use thiserror::Error;

use super::socket::{FarmSocket, Inbox, Outbox};
use super::truth::TruthWriter;
use super::{Farm, FarmCounters, Replies};
use crate::agent::Stop;

/// Answers that are held back at most; beyond, answers are lost and counted.
const HELD_BACK_MAX: usize = 1 << 20;

/// Why a farm stopped by itself: its socket failed.
#[derive(Debug, Error)]
#[error("the socket of the farm failed")]
pub struct RunError(#[source] io::Error);

/// What a farm did while it ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunReport {
    /// Requests and answers of all agents.
    pub farm: FarmCounters,
    /// Answers that the kernel did not take, or for which there was no room to hold them back.
    pub refused: u64,
}

/// Answers that leave later.
#[derive(Debug, Default)]
struct HeldBack {
    queue: BinaryHeap<Reverse<(WallTime, u64, usize)>>,
    slots: Vec<(Ipv4Addr, Option<SocketAddrV4>, Vec<u8>)>,
    free: Vec<usize>,
    sequence: u64,
}

impl HeldBack {
    /// Holds an answer back; `false` if there is no room.
    fn push(&mut self, at: WallTime, from: Ipv4Addr, to: SocketAddrV4, bytes: &[u8]) -> bool {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.slots.len() < HELD_BACK_MAX => {
                self.slots.push((from, None, Vec::new()));
                self.slots.len() - 1
            }
            None => return false,
        };
        let place = &mut self.slots[slot];
        (place.0, place.1) = (from, Some(to));
        place.2.clear();
        place.2.extend_from_slice(bytes);
        self.sequence += 1;
        self.queue.push(Reverse((at, self.sequence, slot)));
        true
    }

    fn next_at(&self) -> Option<WallTime> {
        self.queue.peek().map(|Reverse((at, _, _))| *at)
    }

    /// Moves what is due to `outbox`.
    fn release(&mut self, now: WallTime, outbox: &mut Outbox) {
        while self.next_at().is_some_and(|at| at <= now) {
            let Some(Reverse((_, _, slot))) = self.queue.pop() else { return };
            let (from, to, bytes) = &self.slots[slot];
            if let Some(to) = to {
                outbox.push(*from, *to, bytes);
            }
            self.free.push(slot);
        }
    }
}

/// Serves the farm until `stop`. If the farm records its truth, `truth` takes it.
///
/// # Errors
///
/// [`RunError`].
pub fn run(
    farm: &mut Farm,
    socket: &FarmSocket,
    stop: &Stop,
    mut truth: Option<&mut TruthWriter>,
) -> Result<RunReport, RunError> {
    let (mut inbox, mut outbox, mut replies) = (Inbox::new(), Outbox::default(), Replies::new());
    let mut held_back = HeldBack::default();
    let mut refused = 0;
    for round in 0_u64.. {
        let idle = inbox.receive(socket).map_err(RunError)? == 0;
        // Also a farm that never runs out of requests has to see the stop.
        if idle || round.is_multiple_of(1024) {
            let timeout = held_back.next_at().map(|at| at.since(WallTime::now()));
            let timeout = if idle { timeout } else { Some(Nanos::ZERO) };
            if stop.wait(socket.as_fd(), timeout).map_err(RunError)? {
                break;
            }
        }
        let now = WallTime::now();
        farm.fetch(inbox.datagrams().map(|(_, to, _)| to));
        for (peer, to, request) in inbox.datagrams() {
            replies.clear();
            farm.handle(now, to, request, &mut replies);
            for reply in replies.iter() {
                if reply.send_at <= now {
                    outbox.push(reply.from, peer, reply.bytes);
                } else if !held_back.push(reply.send_at, reply.from, peer, reply.bytes) {
                    refused += 1;
                }
            }
        }
        held_back.release(now, &mut outbox);
        refused += outbox.send(socket);
        if let (Some(writer), Some(bytes)) = (&mut truth, farm.truth()) {
            writer.append(bytes);
        }
    }
    Ok(RunReport { farm: farm.counters(), refused })
}
