//! A host: its ranks, what their message library does, and its network cards.

use std::sync::Arc;

use meikyo_sim::Context;
use meikyo_undo::{Cell, Deque, List, Map, fields};
use meikyo_units::{Bytes, Nanos};

use super::agenda::Agenda;
use super::connection::End;
use super::known::{FOLLOW_MIN, PAYLOAD, Shared, come, frames};
use super::port::Port;
use super::signal::{Frame, Kind, Name, Signal, TURN_OF_GOING_ON};
use crate::prediction::flow::Waiting;
use crate::prediction::network::{LaneEnd, LanePlace};
use crate::prediction::ranks::{Op, number, rank};

/// A rank, and how far it is.
#[derive(Clone, Debug, PartialEq)]
struct Rank {
    number: u32,
    /// Steps that it has taken.
    taken: Cell<u64>,
    /// Messages that were begun.
    begun: Cell<u64>,
    /// Which of them are not finished.
    open: Map<u64, ()>,
    /// Since when it waits, and for which of the program's names; both 0 while it does not.
    waits_since: Cell<u64>,
    waits_for: Cell<u64>,
    /// The number of the message that it waits for, from 1; 0 for all.
    waits_for_one: Cell<u64>,
    done_at: Cell<u64>,
    done: Cell<bool>,
    /// For each of the program's names, what was spent on it.
    spent: List<u64>,
}
fields!(Rank { taken, begun, open, waits_since, waits_for, waits_for_one, done_at, done, spent });

/// What the library of a host knows of a message to one of its ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
enum Known {
    /// Its receiver waits for it, with this number of its messages.
    Asked(u64),
    /// It has announced itself.
    Announced,
    /// Its whole payload has arrived.
    There,
}

/// What a card has to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
enum Outgoing {
    /// A message that is cut into frames as the card sends it, and what is left of it.
    Message { frame: Frame, left: u64 },
    /// A frame as it is: of TCP, or one that was lost.
    Frame(Frame),
}

/// A message that waits for its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Offered {
    bytes: u64,
    /// Its number among those of its rank.
    begun: u64,
}

/// A network card and what it has to send, in turn.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Card {
    pub(super) port: Port,
    outgoing: Deque<Outgoing>,
    /// How many frames of the first message it has announced as a train, and when the first of them began to
    /// leave. They are still counted among what is outgoing.
    train: Cell<u32>,
    train_at: Cell<u64>,
}
fields!(Card { port, outgoing, train, train_at });

/// A host with its cards and the ranks that run on it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Host {
    shared: Arc<Shared>,
    ranks: Vec<Rank>,
    pub(super) cards: Vec<Card>,
    agenda: Agenda,
    /// When the memory is free for the next message between its ranks.
    memory_free_at: Cell<u64>,
    pub(super) within: Cell<u64>,
    /// The lane of that memory.
    pub(super) within_lane: usize,
    /// With TCP, its ends of the connections to other hosts.
    ends: Vec<End>,
    known: Map<Name, Known>,
    /// How many messages of each name were sent, under number 0.
    sent: Map<Name, u32>,
    /// How many were asked for, under number 0.
    asked: Map<Name, u32>,
    /// Announced messages of its ranks that nobody asked for yet.
    offered: Map<Name, Offered>,
    /// Messages that were asked for and have not left, with their numbers among those of their rank.
    leaving: Map<Name, u64>,
}
fields!(Host {
    ranks,
    cards,
    agenda,
    memory_free_at,
    within,
    ends,
    known,
    sent,
    asked,
    offered,
    leaving
});

impl Host {
    pub(super) fn new(shared: Arc<Shared>, place: usize) -> Self {
        let own = LaneEnd::Host(place);
        let mut cards = Vec::new();
        let mut within_lane = 0;
        for (lane, what) in shared.network.lanes().iter().enumerate() {
            let [from, to] = shared.network.ends(lane);
            if from != own {
                continue;
            }
            if let LanePlace::Within { .. } = what.place {
                within_lane = lane;
                continue;
            }
            let port = Port::new(number(lane), shared.lp(to), &shared);
            let (train, train_at) = (Cell::default(), Cell::default());
            cards.push(Card { port, outgoing: Deque::default(), train, train_at });
        }
        let names = shared.names.len();
        let own = shared.hosts.iter().enumerate().filter(|(_, host)| **host == place);
        let ranks = own.map(|(rank, _)| Rank {
            number: number(rank),
            taken: Cell::default(),
            begun: Cell::default(),
            open: Map::default(),
            waits_since: Cell::default(),
            waits_for: Cell::default(),
            waits_for_one: Cell::default(),
            done_at: Cell::default(),
            done: Cell::default(),
            spent: List::from(vec![0; names]),
        });
        let tcp = shared.options.tcp;
        let ways = shared.ways.of_host(place).iter().enumerate();
        let end = |(at, way): (usize, &u32)| {
            let first = shared.ways.get(*way).first;
            tcp.map(|tcp| End::new(*way, first, number(at), tcp))
        };
        let ends = ways.filter_map(end).collect();
        Self {
            ranks: ranks.collect(),
            ends,
            agenda: Agenda::new(cards.len(), shared.frame_span(PAYLOAD)),
            shared,
            cards,
            memory_free_at: Cell::default(),
            within: Cell::default(),
            within_lane,
            known: Map::default(),
            sent: Map::default(),
            asked: Map::default(),
            offered: Map::default(),
            leaving: Map::default(),
        }
    }

    /// When its last rank was done; `None` if one is not.
    pub(super) fn done_at(&self) -> Option<u64> {
        let done = self.ranks.iter().map(|rank| rank.done.get().then(|| rank.done_at.get()));
        done.reduce(|one, other| one.zip(other).map(|(one, other)| one.max(other)))
            .unwrap_or(Some(0))
    }

    /// Adds what its ranks spent on each of the program's names.
    pub(super) fn add_spent(&self, sums: &mut [u64]) {
        for rank in &self.ranks {
            for (sum, spent) in sums.iter_mut().zip(rank.spent.as_slice()) {
                *sum += spent;
            }
        }
    }

    /// Who of its ranks waits for whom.
    pub(super) fn waiting(&self) -> impl Iterator<Item = Waiting> + '_ {
        let sends = self.offered.iter().map(|(name, _)| (true, name));
        let receives = self.known.iter().filter(|(_, known)| matches!(known, Known::Asked(_)));
        let all = sends.chain(receives.map(|(name, _)| (false, name)));
        all.map(|(sends, name)| {
            let (from, to) = (rank(name.from), rank(name.to));
            let (actor, other) = if sends { (from, to) } else { (to, from) };
            Waiting { actor, sends, other, tag: u64::from(name.tag) }
        })
    }

    pub(super) fn start(&mut self, context: &mut impl Context<Signal>) {
        for at in 0..self.ranks.len() {
            self.drive(at, context);
        }
        self.agenda.arm(&Signal::Look, context);
    }

    pub(super) fn handle(&mut self, signal: Signal, context: &mut impl Context<Signal>) {
        let now = context.now().as_nanos();
        let look = u64::from(matches!(signal, Signal::Look));
        while let Some((card, start)) = self.agenda.overdue(now + look) {
            self.serve(card, start, context);
        }
        match signal {
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
                self.plan(card, now, context);
            }
            Signal::Lost { hop, tag, number, frames, payload, kind } => {
                let frame = Frame::without_data(hop, [tag, number], kind);
                self.put(Outgoing::Frame(Frame { frames, payload, ..frame }), hop, context);
            }
            Signal::Computed { rank } => {
                let at = self.place(rank);
                self.drive(at, context);
            }
            Signal::Left { name } => {
                let begun = self.leaving.remove(context, &name).expect("it was asked for");
                self.finished(name.from, begun, context);
            }
            Signal::Told { name, kind } => self.told(name, kind, context),
            Signal::Next { .. } | Signal::Cut { .. } => unreachable!("hosts receive no trains"),
        }
        self.agenda.arm(&signal, context);
    }

    fn place(&self, number: u32) -> usize {
        let found = self.ranks.binary_search_by_key(&number, |rank| rank.number);
        found.expect("a rank stays on its host")
    }

    /// Lets a rank take steps until it waits, computes or is done.
    fn drive(&mut self, at: usize, context: &mut impl Context<Signal>) {
        loop {
            let own = &mut self.ranks[at];
            let script = self.shared.program.script(rank(own.number));
            let Some(op) = script.op(own.taken.get()) else {
                own.done.set(context, true);
                own.done_at.set(context, context.now().as_nanos());
                return;
            };
            own.taken.add(context, 1);
            match op {
                Op::Compute { span, what } => {
                    let what = name_of(&self.shared, what);
                    own.spend(what, span.get(), context);
                    let signal = Signal::Computed { rank: own.number };
                    context.send(context.me(), span, signal);
                    return;
                }
                Op::Send { to, tag, bytes } => self.send(at, [to, tag], bytes, context),
                Op::Receive { from, tag } => self.receive(at, [from, tag], context),
                Op::Wait { what } => {
                    if !own.open.is_empty() {
                        own.wait(name_of(&self.shared, what), 0, context);
                        return;
                    }
                }
                Op::WaitFor { begun, what } => {
                    if own.open.contains_key(&begun) {
                        own.wait(name_of(&self.shared, what), begun + 1, context);
                        return;
                    }
                }
            }
        }
    }

    fn send(
        &mut self,
        at: usize,
        [to, tag]: [u32; 2],
        bytes: u64,
        context: &mut impl Context<Signal>,
    ) {
        let from = self.ranks[at].number;
        let begun = self.ranks[at].begin(context);
        let name = numbered(&mut self.sent, Name { to, from, tag, number: 0 }, context);
        if bytes <= self.shared.options.messaging.eager_max.get() {
            self.start_message(name, Kind::Eager, bytes, context);
            return;
        }
        self.ranks[at].open.insert(context, begun, ());
        self.offered.insert(context, name, Offered { bytes, begun });
        self.start_message(name, Kind::Announcement, 0, context);
    }

    fn receive(&mut self, at: usize, [from, tag]: [u32; 2], context: &mut impl Context<Signal>) {
        let to = self.ranks[at].number;
        let begun = self.ranks[at].begin(context);
        let name = numbered(&mut self.asked, Name { to, from, tag, number: 0 }, context);
        match self.known.get(&name).copied() {
            Some(Known::There) => {
                self.known.remove(context, &name);
                return;
            }
            Some(Known::Announced) => self.start_message(name, Kind::Request, 0, context),
            _ => {}
        }
        self.known.insert(context, name, Known::Asked(begun));
        self.ranks[at].open.insert(context, begun, ());
    }

    /// Begins to send a message, or what is said about one; see [`Kind`].
    fn start_message(
        &mut self,
        name: Name,
        kind: Kind,
        bytes: u64,
        context: &mut impl Context<Signal>,
    ) {
        let way = *self.shared.ways.get(self.shared.way(name, kind));
        if way.hosts[0] != way.hosts[1] {
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
            return;
        }
        let now = context.now().as_nanos();
        let latency = self.shared.options.messaging.latency;
        let mut wait = Nanos::ZERO;
        if bytes > 0 {
            let begin = self.memory_free_at.get().max(now);
            let end = begin + self.shared.span_within(Bytes::new(bytes)).get();
            self.memory_free_at.set(context, end);
            self.within.add(context, bytes);
            wait = Nanos::new(end - now);
        }
        if kind == Kind::Requested {
            context.send(context.me(), wait, Signal::Left { name });
        }
        context.send(context.me(), wait + latency, Signal::Told { name, kind });
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

    /// The library has a message, or hears of one once its rank looks.
    fn told(&mut self, name: Name, kind: Kind, context: &mut impl Context<Signal>) {
        let hears = match kind {
            Kind::Announcement => Some(name.to),
            Kind::Request => Some(name.from),
            _ => None,
        };
        let wait = hears.map_or(Nanos::ZERO, |rank| self.next_look(rank, context));
        if wait > Nanos::ZERO {
            return context.send(context.me(), wait, Signal::Told { name, kind });
        }
        match kind {
            Kind::Request => {
                if let Some(Offered { bytes, begun }) = self.offered.remove(context, &name) {
                    self.leaving.insert(context, name, begun);
                    self.start_message(name, Kind::Requested, bytes, context);
                }
            }
            Kind::Announcement => {
                if self.known.get(&name).is_some() {
                    self.start_message(name, Kind::Request, 0, context);
                } else {
                    self.known.insert(context, name, Known::Announced);
                }
            }
            Kind::Part | Kind::Acknowledgement => unreachable!("the library does not see it"),
            Kind::Eager | Kind::Requested => match self.known.remove(context, &name) {
                Some(Known::Asked(begun)) => self.finished(name.to, begun, context),
                _ => {
                    self.known.insert(context, name, Known::There);
                }
            },
        }
    }

    /// One of the messages that a rank has begun is done.
    fn finished(&mut self, rank: u32, begun: u64, context: &mut impl Context<Signal>) {
        let at = self.place(rank);
        let own = &mut self.ranks[at];
        own.open.remove(context, &begun);
        let over = match own.waits_for_one.get() {
            0 => own.open.is_empty(),
            one => one == begun + 1,
        };
        if !over || own.waits_for.get() == 0 {
            return;
        }
        let late = self.next_look(rank, context);
        let own = &mut self.ranks[at];
        let waited = context.now().as_nanos() + late.get() - own.waits_since.get();
        let what = usize::try_from(own.waits_for.get() - 1).expect("it was a place");
        own.spend(what, waited, context);
        own.waits_for.set(context, 0);
        if late == Nanos::ZERO {
            self.drive(at, context);
        } else {
            let signal = Signal::Computed { rank };
            context.send_with_priority(context.me(), late, TURN_OF_GOING_ON, signal);
        }
    }

    /// How long it is until a rank looks next.
    fn next_look(&self, rank: u32, context: &impl Context<Signal>) -> Nanos {
        let messaging = &self.shared.options.messaging;
        if messaging.look_again.every == Nanos::ZERO {
            return Nanos::ZERO;
        }
        let (own, now) = (&self.ranks[self.place(rank)], context.now().as_nanos());
        Nanos::new(messaging.looks_at(rank.into(), own.begun.get(), now) - now)
    }
}

impl Rank {
    /// The number of a message that is begun.
    fn begin(&mut self, context: &mut impl Context<Signal>) -> u64 {
        let begun = self.begun.get();
        self.begun.set(context, begun + 1);
        begun
    }

    /// Waits, for the name of this place, for one message by its number from 1 or for all.
    fn wait(&mut self, what: usize, one: u64, context: &mut impl Context<Signal>) {
        self.waits_since.set(context, context.now().as_nanos());
        // From 1, so that 0 says that it does not wait.
        self.waits_for.set(context, u64::from(number(what + 1)));
        self.waits_for_one.set(context, one);
    }

    fn spend(&mut self, what: usize, nanos: u64, context: &mut impl Context<Signal>) {
        let sum = self.spent.as_slice()[what] + nanos;
        self.spent.set(context, what, sum);
    }
}

/// How many of so many data the next frame carries.
fn payload(left: u64) -> u16 {
    // Saturates: a frame carries no more than `PAYLOAD`, however much is left.
    u16::try_from(left).unwrap_or(u16::MAX).min(PAYLOAD)
}

/// Where a name stands among those of the program.
fn name_of(shared: &Shared, what: &'static str) -> usize {
    let found = shared.names.iter().position(|name| *name == what);
    found.expect("the names are those of all steps")
}

/// The next number of a name, which has the number 0.
fn numbered(counts: &mut Map<Name, u32>, name: Name, context: &mut impl Context<Signal>) -> Name {
    let number = counts.get(&name).copied().unwrap_or(0);
    counts.insert(context, name, number + 1);
    Name { number, ..name }
}
