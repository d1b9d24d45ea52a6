//! The network model "simple-net": for every message a start-up and its size over a rate, on each hop.
//!
//! It is the model of the same name in CODES, written down exactly:
//!
//! - **Sending.** An interface sends one message after another. A transmission that is asked for at
//!   `now` begins at `max(now, idle) + start-up`, and the interface is idle again at that instant plus
//!   size over the sending rate: *the start-up occupies the interface*. See [`Interface::send`].
//! - **Receiving.** The receiver has the message at `max(its beginning, idle)` plus size over the
//!   *receiving* rate, and its interface is idle from then on: the size is paid for once, at the
//!   receiver. See [`Interface::receive`].
//! - Sending and receiving do not disturb each other; nothing is lost; nothing is random.
//! - A [`Switch`] stores and forwards: a message leaves it after it has arrived whole. It has no
//!   interfaces that anything queues for ([`Switching::Unlimited`]), one for each port, one for each
//!   network that it joins (what CODES gives a switch), or a single one.
//! - Times are whole nanoseconds. Size over rate is rounded to the nearest one
//!   ([`BitsPerSecond::serialization_delay`]), once for every message and link; all else is exact.
//!
//! # Events and lookahead
//!
//! An LP that sends at `now` makes the event "a message begins to arrive" for the next hop, at what
//! [`Interface::send`] gives. So the least delay of the link between two LPs is the start-up
//! ([`Passage::start_up`]); behind an unlimited switch, which sends on in the event of the arrival, it is
//! [`Passage::start_up`] of the link that leaves and [`Passage::transmission`] of the one that came in.
//! With a start-up of nothing and limited switches nothing is left, and the LPs share a thread.
//!
//! ```
//! use meikyo_models::simplenet::{Interface, Link};
//! use meikyo_undo::Forget;
//! use meikyo_units::{Bytes, Nanos, SimTime};
//!
//! let link = Link { start_up: Nanos::from_micros(32), rate: "125MiB/s".parse()? };
//! let packet = link.passage(Bytes::new(1500)); // 11,444 ns
//! let (mut sender, mut receiver) = (Interface::default(), Interface::default());
//!
//! let begins = sender.send(&mut Forget, SimTime::START, packet);
//! assert_eq!(begins, SimTime::from_nanos(32_000));
//! let whole = receiver.receive(&mut Forget, begins, packet.transmission);
//! assert_eq!(whole, SimTime::from_nanos(43_444));
//! // The next one waits for the interface, and pays its own start-up.
//! let begins = sender.send(&mut Forget, SimTime::START, packet);
//! assert_eq!(begins, SimTime::from_nanos(43_444 + 32_000));
//! # Ok::<(), meikyo_units::ParseQuantityError>(())
//! ```

mod switch;

use meikyo_undo::{Cell, Log, fields};
use meikyo_units::{BitsPerSecond, Bytes, Nanos, SimTime};

use crate::digest::Digest;

pub use switch::{Port, Switch, Switching};

/// What a link is like, in either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The start-up of a transmission.
    pub start_up: Nanos,
    /// How fast data goes once a transmission has started.
    pub rate: BitsPerSecond,
}

impl Link {
    /// What a message of `size` costs on this link.
    pub fn passage(&self, size: Bytes) -> Passage {
        Passage { start_up: self.start_up, transmission: self.rate.serialization_delay(size) }
    }
}

/// What one message costs on one link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The start-up of the transmission.
    pub start_up: Nanos,
    /// Size over rate, rounded to the nearest nanosecond.
    pub transmission: Nanos,
}

impl Passage {
    /// How long the message occupies the interface that sends it.
    pub fn occupancy(&self) -> Nanos {
        self.start_up + self.transmission
    }
}

/// One end of a link: sends and receives one message after another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interface {
    send_idle: Cell<SimTime>,
    receive_idle: Cell<SimTime>,
    sending: Cell<Nanos>,
    receiving: Cell<Nanos>,
}
fields!(Interface { send_idle, receive_idle, sending, receiving });

impl Interface {
    /// Sends a message at `now`; gives when its beginning leaves, and reaches the other end.
    ///
    /// Calls come in the order of `now`.
    pub fn send(&mut self, log: &mut impl Log, now: SimTime, passage: Passage) -> SimTime {
        let begins = now.max(self.send_idle.get()) + passage.start_up;
        self.send_idle.set(log, begins + passage.transmission);
        self.sending.add(log, passage.occupancy());
        begins
    }

    /// Receives a message whose beginning arrives at `begins` and that takes `transmission`; gives
    /// when it is there as a whole.
    ///
    /// Calls come in the order of `begins`.
    pub fn receive(&mut self, log: &mut impl Log, begins: SimTime, transmission: Nanos) -> SimTime {
        let whole = begins.max(self.receive_idle.get()) + transmission;
        self.receive_idle.set(log, whole);
        self.receiving.add(log, transmission);
        whole
    }

    /// How long it was sending up to `end`, start-ups included. What it was asked for before `end`
    /// and does without a break beyond is not counted.
    pub fn sending(&self, end: SimTime) -> Nanos {
        self.sending.get().saturating_sub(self.send_idle.get().since(end))
    }

    /// How long it was receiving up to `end`.
    pub fn receiving(&self, end: SimTime) -> Nanos {
        self.receiving.get().saturating_sub(self.receive_idle.get().since(end))
    }

    /// When it has nothing to do any more.
    pub fn idle(&self) -> SimTime {
        self.send_idle.get().max(self.receive_idle.get())
    }

    pub(crate) fn add_to(&self, digest: &mut Digest) {
        digest.word(self.send_idle.get().as_nanos());
        digest.word(self.receive_idle.get().as_nanos());
        digest.word(self.sending.get().get());
        digest.word(self.receiving.get().get());
    }
}

#[cfg(test)]
mod tests {
    use meikyo_undo::Forget;

    use super::*;

    fn at(nanos: u64) -> SimTime {
        SimTime::from_nanos(nanos)
    }

    fn passage(start_up: u64, transmission: u64) -> Passage {
        Passage { start_up: Nanos::new(start_up), transmission: Nanos::new(transmission) }
    }

    #[test]
    fn the_start_up_occupies_the_sender() {
        let mut interface = Interface::default();
        let packet = passage(30, 7);
        // Asked for at 0, 10 and 100: occupied 0 to 37, 37 to 74, 100 to 137.
        let begins = [0, 10, 100].map(|now| interface.send(&mut Forget, at(now), packet));
        assert_eq!(begins, [at(30), at(67), at(130)]);
        assert_eq!(interface.sending(at(137)), Nanos::new(3 * 37));
        assert_eq!(interface.sending(at(120)), Nanos::new(2 * 37 + 20));
        assert_eq!(interface.idle(), at(137));
    }

    #[test]
    fn two_senders_queue_at_the_receiver_for_the_size_only() {
        let mut receiver = Interface::default();
        let whole =
            [30, 31, 50].map(|begins| receiver.receive(&mut Forget, at(begins), Nanos::new(7)));
        assert_eq!(whole, [at(37), at(44), at(57)]);
        assert_eq!(receiver.receiving(at(57)), Nanos::new(21));
    }

    #[test]
    fn the_size_is_paid_for_once_and_at_the_rate_of_the_receiver() {
        let (slow, fast) = (passage(30, 100), passage(30, 10));
        let (mut sender, mut receiver) = (Interface::default(), Interface::default());
        let begins = sender.send(&mut Forget, at(0), slow);
        assert_eq!(receiver.receive(&mut Forget, begins, fast.transmission), at(40));
        assert_eq!(sender.idle(), at(130));
    }

    #[test]
    fn sending_and_receiving_do_not_disturb_each_other() {
        let mut interface = Interface::default();
        interface.receive(&mut Forget, at(0), Nanos::new(1000));
        assert_eq!(interface.send(&mut Forget, at(5), passage(30, 7)), at(35));
    }
}
