//! Answers on their way out: octets in one buffer, and when and from where each is to leave.

use std::net::Ipv4Addr;

use meikyo_units::{Nanos, WallTime};
use meikyo_worlds::random::below;

/// An answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply<'a> {
    /// When it is to leave.
    pub send_at: WallTime,
    /// The address of the agent that it comes from.
    pub from: Ipv4Addr,
    /// The datagram.
    pub bytes: &'a [u8],
}

#[derive(Debug, Clone, Copy)]
struct Place {
    send_at: WallTime,
    from: Ipv4Addr,
    start: usize,
    end: usize,
}

/// The answers to some datagrams; keeps its memory when it is cleared.
#[derive(Debug, Default)]
pub struct Replies {
    bytes: Vec<u8>,
    places: Vec<Place>,
}

impl Replies {
    /// No answers.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
    }

    /// The answers in the order in which they were given.
    pub fn iter(&self) -> impl Iterator<Item = Reply<'_>> {
        self.places.iter().map(|place| Reply {
            send_at: place.send_at,
            from: place.from,
            bytes: &self.bytes[place.start..place.end],
        })
    }

    pub(super) fn open(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    pub(super) fn drop_from(&mut self, start: usize) {
        self.bytes.truncate(start);
    }

    /// What was appended since `start` is an answer; `cut` are random bits that say where it ends
    /// too early.
    pub(super) fn close(
        &mut self,
        start: usize,
        send_at: WallTime,
        from: Ipv4Addr,
        cut: Option<u64>,
    ) {
        if let Some(bits) = cut {
            let whole = (self.bytes.len() - start) as u64;
            let left = usize::try_from(below(bits, whole)).expect("below a length");
            self.bytes.truncate(start + left);
        }
        let end = self.bytes.len();
        self.places.push(Place { send_at, from, start, end });
    }

    pub(super) fn repeat_last(&mut self, after: Nanos) {
        if let Some(&last) = self.places.last() {
            self.places.push(Place { send_at: last.send_at + after, ..last });
        }
    }
}
