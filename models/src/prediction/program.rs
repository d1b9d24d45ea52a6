//! Programs as communication schedules: actors that compute, and hand messages to each other.
//!
//! An actor is what goes on by itself: a rank, or several ranks that never part, such as a process
//! column of HPL, whose ranks meet in every row swap. So a message is a set of streams that is whole
//! when the last of them is, and an actor can move streams within itself.

use meikyo_units::{Bytes, Nanos};
use meikyo_worlds::random::{below, draw, stream_key};

/// What one actor does next, given what it can see of its messages.
pub trait Actor {
    /// The next step; [`Step::Done`] when there is none, and from then on.
    fn next(&mut self, heard: &Heard<'_>) -> Step;
}

/// One step of an actor.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Works by itself; nothing else happens to the actor.
    Compute {
        /// For how long.
        span: Nanos,
        /// What it is, for the breakdown.
        what: &'static str,
    },
    /// Begins to send a message; [`Step::Wait`] waits until it may be forgotten.
    Send(Message),
    /// Begins to receive the next message of a sender with this tag; [`Step::Wait`] waits for it.
    Receive {
        /// The sender.
        from: usize,
        /// What both call the message.
        tag: u64,
    },
    /// Waits for all that was begun.
    Wait {
        /// What for, for the breakdown.
        what: &'static str,
    },
    /// Waits for one message that was begun.
    WaitFor {
        /// How many messages and moves of the actor were begun before it.
        begun: u64,
        /// What for, for the breakdown.
        what: &'static str,
    },
    /// Moves streams within the actor, and waits for them.
    Move {
        /// The streams, all at once.
        streams: Vec<Stream>,
        /// What passes without data: latencies of the steps that it stands for.
        start_up: Nanos,
        /// What it is, for the breakdown.
        what: &'static str,
    },
    /// The actor has nothing left to do.
    Done,
}

/// A message to another actor.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// The receiver.
    pub to: usize,
    /// What both call the message; those of one name are received in the order of sending.
    pub tag: u64,
    /// What it is made of; it is there when all of it is.
    pub streams: Vec<Stream>,
}

/// Data that go from host to host over one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    /// The host that sends.
    pub from: usize,
    /// The host that receives; the same one for ranks of one host.
    pub to: usize,
    /// Size of the transfer.
    pub bytes: Bytes,
    /// Tells connections between the same hosts apart.
    pub label: u64,
    /// What does so in the other direction, in which acknowledgements go.
    pub label_back: u64,
}

impl Stream {
    /// Tells it from other connections: the hosts that send and receive, and its label.
    pub(super) fn forth(&self) -> (usize, usize, u64) {
        (self.from, self.to, self.label)
    }

    /// The same of its connection's other direction.
    pub(super) fn back(&self) -> (usize, usize, u64) {
        (self.to, self.from, self.label_back)
    }
}

/// What an actor can see of messages that it did not receive yet.
#[derive(Clone, Copy)]
pub struct Heard<'a> {
    announced: &'a dyn Fn(usize, u64) -> bool,
}

impl<'a> Heard<'a> {
    /// What `announced` says of a sender and a tag.
    pub fn new(announced: &'a dyn Fn(usize, u64) -> bool) -> Self {
        Self { announced }
    }

    /// Whether a message of this sender and tag has announced itself, so that to receive it would not
    /// wait for its sender: what a probe tells.
    pub fn announced(&self, from: usize, tag: u64) -> bool {
        (self.announced)(from, tag)
    }
}

impl std::fmt::Debug for Heard<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Heard")
    }
}

/// What of a host and its message library decides about messages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Messaging {
    /// From a program to a program, without data.
    pub latency: Nanos,
    /// The largest stream that is sent before its receiver asks for it.
    pub eager_max: Bytes,
    /// How ranks that wait look whether they can go on.
    pub look_again: LookAgain,
}

/// A rank looks from time to time at what has come. What its library does happens at these looks: it asks for a message that
/// has announced itself, sends one that was asked for, and lets a rank that waits go on, in this order. Ranks that compute
/// look, too, where a library of one thread would not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookAgain {
    /// From one look to the next; no time at all for who goes on at once.
    pub every: Nanos,
    /// What it follows from when each rank looks.
    pub seed: u64,
}

impl LookAgain {
    /// Every rank goes on once it can.
    pub const AT_ONCE: Self = Self { every: Nanos::ZERO, seed: 0 };
}

impl Messaging {
    /// When a rank that has begun so many messages looks next, at `now` or later. When its looks are is drawn anew
    /// whenever it has begun others, so that no two ranks are at the same instant because nothing told them apart.
    pub(super) fn looks_at(&self, rank: u64, begun: u64, now: u64) -> u64 {
        let LookAgain { every, seed } = self.look_again;
        match every.get() {
            0 => now,
            every => {
                let phase = below(draw(stream_key(seed, rank), begun), every);
                now + (phase + every - now % every) % every
            }
        }
    }
}
