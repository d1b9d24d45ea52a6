//! One end of a TCP connection between two ranks, without a card or a cable: frames in, frames out.
//!
//! A connection stands from the beginning, with a round trip that nobody has measured. Not modelled are
//! that several small messages share a segment, that Linux makes its window smaller step by step while
//! it recovers, and that an acknowledgement carries more than one run of segments, or tells of segments
//! that came twice (RFC 2883): time stamps tell before that whether a time-out was false.

mod alarm;
mod doubt;
mod estimate;
mod receiver;
mod runs;
mod sender;
mod window;

use meikyo_sim::Context;
use meikyo_undo::fields;

use super::known::Shared;
use super::signal::{Awaited, Frame, Kind, Signal};
use super::tcp::Tcp;
use receiver::Receiver;
use sender::Sender;

/// One end of a connection.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct End {
    /// The way of what it sends, and its first hop.
    way: u32,
    first: u32,
    sender: Sender,
    receiver: Receiver,
}
fields!(End { sender, receiver });

impl End {
    pub(super) fn new(way: u32, first: u32, number: u32, tcp: Tcp) -> Self {
        let sender = Sender::new(number, [way, first], tcp);
        Self { way, first, sender, receiver: Receiver::new(number) }
    }

    /// The way of what it receives: the opposite one, whose number differs by its lowest bit.
    pub(super) fn way_back(&self) -> u32 {
        self.way ^ 1
    }

    /// A message, or what is said about one, is to be sent: its tag and number, and how many data.
    pub(super) fn push(
        &mut self,
        shared: &Shared,
        message: ([u32; 2], Kind, u64),
        context: &mut impl Context<Signal>,
    ) {
        self.sender.push(shared, message, context);
    }

    /// A frame of the other end has come. Gives whether it is the next one that carries anything; what
    /// follows it then is to be taken by [`End::next_arrived`].
    pub(super) fn arrived(
        &mut self,
        shared: &Shared,
        frame: &Frame,
        context: &mut impl Context<Signal>,
    ) -> bool {
        self.sender.acknowledged(shared, frame, context);
        frame.kind != Kind::Acknowledgement && self.receiver.accept(frame, context)
    }

    /// What arrived before its turn, once it is its turn.
    pub(super) fn next_arrived(&mut self, context: &mut impl Context<Signal>) -> Option<Frame> {
        self.receiver.next(context)
    }

    /// [`Signal::Due`] has come.
    pub(super) fn on_due(
        &mut self,
        shared: &Shared,
        awaited: Awaited,
        context: &mut impl Context<Signal>,
    ) {
        match awaited {
            Awaited::Acknowledgement => self.sender.on_due(shared, context),
            Awaited::Company => self.receiver.on_due(context),
        }
    }

    /// Data have left the card.
    pub(super) fn left(&mut self, context: &mut impl Context<Signal>) {
        self.sender.left(context);
    }

    /// The next frame that is to leave at this instant.
    pub(super) fn next(
        &mut self,
        shared: &Shared,
        context: &mut impl Context<Signal>,
    ) -> Option<Frame> {
        let data = self.sender.next(shared, context);
        if data.is_none() && !self.receiver.is_due() {
            return None;
        }
        let alone = || Frame::without_data(self.first, [0, 0], Kind::Acknowledgement);
        let mut frame = data.unwrap_or_else(alone);
        self.receiver.acknowledge(&mut frame, context);
        Some(frame)
    }
}
