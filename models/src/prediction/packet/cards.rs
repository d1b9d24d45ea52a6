//! The network cards of a host: what it has to send, frame by frame, and what has come.
//!
//! Whoever is behind them hands over whole messages ([`Cards::send`]) and hears of them by [`Signal::Told`], once all of
//! one has come, and by [`Signal::Left`] of those that were asked for. Everything else that a host is told is for its cards.

use std::sync::Arc;

use meikyo_sim::Context;
use meikyo_undo::{Cell, Deque, fields};
use meikyo_units::Nanos;

use super::agenda::Agenda;
use super::connection::End;
use super::known::{FOLLOW_MIN, PAYLOAD, Shared, come, frames};
use super::port::Port;
use super::signal::{Frame, Kind, Name, Signal};
use crate::prediction::ranks::{number, rank};

/// What a card has to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
enum Outgoing {
    /// A message that is cut into frames as the card sends it, and what is left of it.
    Message { frame: Frame, left: u64 },
    /// A frame as it is: of TCP, or one that was lost.
    Frame(Frame),
}

/// A network card and what it has to send, in turn.
#[derive(Clone, Debug, PartialEq)]
struct Card {
    port: Port,
    outgoing: Deque<Outgoing>,
    /// How many frames of the first message it has announced as a train, and when the first of them began to
    /// leave. They are still counted among what is outgoing.
    train: Cell<u32>,
    train_at: Cell<u64>,
}
fields!(Card { port, outgoing, train, train_at });

/// All cards of a host, and with TCP its ends of the connections to other hosts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cards {
    shared: Arc<Shared>,
    cards: Vec<Card>,
    agenda: Agenda,
    ends: Vec<End>,
}
fields!(Cards { cards, agenda, ends });

impl Cards {
    /// Those of a host, by its place in the network.
    pub(crate) fn new(shared: Arc<Shared>, place: usize) -> Self {
        let (lanes, _) = shared.network.lanes_of_host(place);
        let card = |lane| {
            let [_, to] = shared.network.ends(lane);
            let port = Port::new(number(lane), shared.lp(to), &shared);
            let (train, train_at) = (Cell::default(), Cell::default());
            Card { port, outgoing: Deque::default(), train, train_at }
        };
        let cards: Vec<Card> = lanes.map(card).collect();
        let tcp = shared.options.tcp;
        let ways = shared.ways.of_host(place).iter().enumerate();
        let end = |(at, way): (usize, &u32)| {
            let first = shared.ways.get(*way).first;
            tcp.map(|tcp| End::new(*way, first, number(at), tcp))
        };
        let ends = ways.filter_map(end).collect();
        let agenda = Agenda::new(cards.len(), shared.frame_span(PAYLOAD));
        Self { shared, cards, agenda, ends }
    }

    /// What sends on each of its lanes.
    pub(crate) fn ports(&self) -> impl Iterator<Item = &Port> {
        self.cards.iter().map(|card| &card.port)
    }

    /// Sends what has begun to leave before an event, which is to be taken or handled after it.
    pub(crate) fn catch_up(&mut self, signal: &Signal, context: &mut impl Context<Signal>) {
        let look = u64::from(matches!(signal, Signal::Look));
        let before = context.now().as_nanos() + look;
        while let Some((card, start)) = self.agenda.overdue(before) {
            self.serve(card, start, context);
        }
    }

    /// Takes an event that is for the cards.
    ///
    /// # Panics
    /// If it is for the ranks of a host, or for a switch.
    pub(crate) fn take(&mut self, signal: &Signal, context: &mut impl Context<Signal>) {
        match *signal {
            Signal::Frame { frame } => self.segment(&frame, context),
            Signal::Look => {}
            Signal::Due { end, awaited } => {
                let at = rank(end);
                self.ends[at].on_due(&self.shared, awaited, context);
                self.transmit(at, context);
            }
            Signal::Pause { port, stop } => {
                let card = rank(port);
                self.settle(card, context);
                self.cards[card].port.stop(stop, context);
                self.plan(card, context.now().as_nanos(), context);
            }
            Signal::Lost { hop, tag, number, frames, payload, kind } => {
                let frame = Frame::without_data(hop, [tag, number], kind);
                self.put(Outgoing::Frame(Frame { frames, payload, ..frame }), hop, context);
            }
            Signal::Computed { .. } | Signal::Left { .. } | Signal::Told { .. } => {
                unreachable!("that is for ranks")
            }
            Signal::Next { .. } | Signal::Cut { .. } => unreachable!("hosts receive no trains"),
        }
    }

    /// Sees to it that the cards go on in time. To be called after each event.
    pub(crate) fn arm(&mut self, signal: &Signal, context: &mut impl Context<Signal>) {
        self.agenda.arm(signal, context);
    }

    /// Sends a message to another host, or what is said about one; see [`Kind`].
    pub(crate) fn send(
        &mut self,
        name: Name,
        kind: Kind,
        bytes: u64,
        context: &mut impl Context<Signal>,
    ) {
        let way = *self.shared.ways.get(self.shared.way(name, kind));
        let numbers = [name.tag, name.number];
        if self.shared.options.tcp.is_none() {
            let frame = Frame::without_data(way.first, numbers, kind);
            let frame = Frame { frames: frames(bytes), ..frame };
            self.put(Outgoing::Message { frame, left: bytes }, way.first, context);
        } else {
            let at = rank(way.end);
            self.ends[at].push(&self.shared, (numbers, kind, bytes), context);
            self.transmit(at, context);
        }
    }

    /// Queues something at the card that its first hop begins at.
    fn put(&mut self, outgoing: Outgoing, hop: u32, context: &mut impl Context<Signal>) {
        let at = usize::from(self.shared.ways.ends(hop).0);
        let now = context.now().as_nanos();
        self.settle(at, context);
        let card = &mut self.cards[at];
        let first = card.outgoing.is_empty();
        card.outgoing.push_back(context, outgoing);
        if first && card.port.ready(now) {
            self.serve(at, now, context);
        } else if first {
            self.plan(at, now, context);
        }
    }

    /// Sends the next frame of a card from `start` on: one of each message in turn, and many of one that is
    /// alone.
    fn serve(&mut self, at: usize, start: u64, context: &mut impl Context<Signal>) {
        self.settle(at, context);
        let card = &mut self.cards[at];
        if card.outgoing.len() == 1
            && self.shared.trains
            && let Some(&Outgoing::Message { frame, left }) = card.outgoing.front()
            && left > u64::from(FOLLOW_MIN + 1) * u64::from(PAYLOAD)
        {
            self.announce(at, (frame, left), start, context);
            return;
        }
        match card.outgoing.pop_front(context).expect("the agenda knows who waits") {
            Outgoing::Frame(frame) => {
                let (_, input) = self.shared.ways.ends(frame.hop);
                card.port.send(&self.shared, (frame, input), start, context);
                self.left(&frame, context);
            }
            Outgoing::Message { frame, left } => {
                let payload = payload(left);
                let (_, input) = self.shared.ways.ends(frame.hop);
                let frame_now = Frame { payload, ..frame };
                card.port.send(&self.shared, (frame_now, input), start, context);
                let left = left - u64::from(payload);
                if left > 0 {
                    card.outgoing.push_back(context, Outgoing::Message { frame, left });
                } else if frame.kind == Kind::Requested {
                    let wait = card.port.free_at() - context.now().as_nanos();
                    let way = self.shared.ways.of_hop(frame.hop);
                    let name = self.shared.name(way, [frame.tag, frame.number], frame.kind);
                    context.send(context.me(), Nanos::new(wait), Signal::Left { name });
                }
            }
        }
        self.plan(at, start, context);
    }

    /// Announces all full frames of a message but its last one, which follow each other from `start` on.
    fn announce(
        &mut self,
        at: usize,
        (frame, left): (Frame, u64),
        start: u64,
        context: &mut impl Context<Signal>,
    ) {
        let shared = &*self.shared;
        let span = shared.full_span.get();
        let frames = (left - 1) / u64::from(PAYLOAD);
        // Saturates: the rest makes a train of its own.
        let frames = u32::try_from(frames).unwrap_or(u32::MAX);
        let card = &mut self.cards[at];
        card.train.set(context, frames);
        card.train_at.set(context, start);
        let (_, input) = shared.ways.ends(frame.hop);
        let frame = Frame { payload: PAYLOAD, ..frame }.followed_by(frames - 1);
        let wait = start + span + shared.options.hop_delay.get() - context.now().as_nanos();
        let signal = Signal::Frame { frame };
        let receiver = card.port.receiver();
        context.send_with_priority(receiver, Nanos::new(wait), u32::from(input), signal);
        let rest = payload(left - u64::from(frames) * u64::from(PAYLOAD));
        let late = shared.frame_span(rest);
        self.agenda.plan(at, start + u64::from(frames) * span, late, context);
    }

    /// Accounts for the frames of a card's train that have begun to leave before now, and cuts off the others.
    fn settle(&mut self, at: usize, context: &mut impl Context<Signal>) {
        let card = &mut self.cards[at];
        let frames = card.train.get();
        if frames == 0 {
            return;
        }
        let shared = &*self.shared;
        let (start, now) = (card.train_at.get(), context.now().as_nanos());
        let span = shared.full_span.get();
        // The first one began to leave when the train was announced.
        let begun = come(now, start, span, frames).max(1);
        let first = card.outgoing.pop_front(context).expect("the train is of this message");
        let Outgoing::Message { frame, left } = first else { unreachable!("it is a message") };
        let left = left - u64::from(begun) * u64::from(PAYLOAD);
        card.outgoing.push_front(context, Outgoing::Message { frame, left });
        card.port.occupy_by(shared, begun, start, context);
        card.train.set(context, 0);
        if begun < frames {
            let (_, input) = shared.ways.ends(frame.hop);
            let last = card.port.free_at() + shared.options.hop_delay.get();
            let signal = Signal::Cut { input: u32::from(input), last };
            context.send(card.port.receiver(), shared.options.hop_delay, signal);
            self.plan(at, 0, context);
        }
    }

    /// Plans when the next frame of a card leaves, not before `earliest`.
    fn plan(&mut self, at: usize, earliest: u64, context: &mut impl Context<Signal>) {
        let Card { port, outgoing, .. } = &self.cards[at];
        match outgoing.front() {
            Some(outgoing) if !port.is_stopped() => {
                let start = port.free_at().max(earliest);
                let payload = match outgoing {
                    Outgoing::Frame(frame) => frame.payload,
                    Outgoing::Message { left, .. } => payload(*left),
                };
                self.agenda.plan(at, start, self.shared.away_after(payload), context);
            }
            _ => self.agenda.forget(at, context),
        }
    }

    /// A frame has left the card, so that its connection may have another one wait there.
    fn left(&mut self, frame: &Frame, context: &mut impl Context<Signal>) {
        let small = self.shared.options.tcp.is_some_and(|tcp| tcp.stack.queues_small());
        if small && frame.kind != Kind::Acknowledgement {
            let at = self.shared.ways.sent(frame.hop);
            self.ends[at].left(context);
            self.transmit(at, context);
        }
    }

    /// Sends what an end of a connection may send.
    fn transmit(&mut self, at: usize, context: &mut impl Context<Signal>) {
        while let Some(frame) = self.ends[at].next(&self.shared, context) {
            self.put(Outgoing::Frame(frame), frame.hop, context);
        }
    }

    /// A frame of TCP has arrived. Others have been counted by the last switch.
    fn segment(&mut self, frame: &Frame, context: &mut impl Context<Signal>) {
        let at = self.shared.ways.received(frame.hop);
        if self.ends[at].arrived(&self.shared, frame, context) {
            self.in_turn(at, frame, context);
            while let Some(next) = self.ends[at].next_arrived(context) {
                self.in_turn(at, &next, context);
            }
        }
        self.transmit(at, context);
    }

    /// A segment of TCP is the next one of its connection.
    fn in_turn(&mut self, at: usize, frame: &Frame, context: &mut impl Context<Signal>) {
        if frame.kind != Kind::Part {
            let numbers = [frame.tag, frame.number];
            let name = self.shared.name(self.ends[at].way_back(), numbers, frame.kind);
            let signal = Signal::Told { name, kind: frame.kind };
            context.send(context.me(), self.shared.options.messaging.latency, signal);
        }
    }
}

/// How many of so many data the next frame carries.
fn payload(left: u64) -> u16 {
    // Saturates: a frame carries no more than `PAYLOAD`, however much is left.
    u16::try_from(left).unwrap_or(u16::MAX).min(PAYLOAD)
}
