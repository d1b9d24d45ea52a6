//! A host: its ranks, what their message library does, and its network cards.

use std::sync::Arc;

use meikyo_sim::Context;
use meikyo_undo::{Cell, Deque, List, Map, fields};
use meikyo_units::{Bytes, Nanos};

use super::known::{PAYLOAD, Shared};
use super::port::Port;
use super::signal::{Frame, Kind, Name, Signal};
use crate::prediction::flow::Waiting;
use crate::prediction::network::{LaneEnd, LanePlace};
use crate::prediction::ranks::{Op, number, rank};

/// A rank, and how far it is.
#[derive(Clone, Debug, PartialEq)]
struct Rank {
    number: u32,
    /// Steps that it has taken.
    taken: Cell<u64>,
    /// What was begun and is not finished.
    open: Cell<u64>,
    /// Since when it waits, and for which of the program's names; both 0 while it does not.
    waits_since: Cell<u64>,
    waits_for: Cell<u64>,
    done_at: Cell<u64>,
    done: Cell<bool>,
    /// For each of the program's names, what was spent on it.
    spent: List<u64>,
}
fields!(Rank { taken, open, waits_since, waits_for, done_at, done, spent });

/// What the library of a host knows of a message to one of its ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "mpi", derive(serde::Serialize, serde::Deserialize))]
enum Known {
    /// Its receiver waits for it.
    Asked,
    /// It has announced itself.
    Announced,
    /// Its whole payload has arrived.
    There,
}

/// What is left to be sent of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "mpi", derive(serde::Serialize, serde::Deserialize))]
struct Outgoing {
    frame: Frame,
    left: u64,
}

/// A network card and what it has to send, in turn.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Card {
    pub(super) port: Port,
    outgoing: Deque<Outgoing>,
}
fields!(Card { port, outgoing });

/// A host with its cards and the ranks that run on it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Host {
    shared: Arc<Shared>,
    ranks: Vec<Rank>,
    pub(super) cards: Vec<Card>,
    /// When the memory is free for the next message between its ranks.
    memory_free_at: Cell<u64>,
    pub(super) within: Cell<u64>,
    /// The lane of that memory.
    pub(super) within_lane: usize,
    known: Map<Name, Known>,
    /// How many messages of each name were sent, under number 0.
    sent: Map<Name, u32>,
    /// How many were asked for, under number 0.
    asked: Map<Name, u32>,
    /// Announced messages of its ranks that nobody asked for yet, and their sizes.
    offered: Map<Name, u64>,
    /// Data that have come of messages in several frames.
    come: Map<Name, u64>,
}
fields!(Host { ranks, cards, memory_free_at, within, known, sent, asked, offered, come });

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
            let port = Port::new(number(lane), number(cards.len()), shared.lp(to));
            cards.push(Card { port, outgoing: Deque::default() });
        }
        let names = shared.names.len();
        let own = shared.hosts.iter().enumerate().filter(|(_, host)| **host == place);
        let ranks = own.map(|(rank, _)| Rank {
            number: number(rank),
            taken: Cell::default(),
            open: Cell::default(),
            waits_since: Cell::default(),
            waits_for: Cell::default(),
            done_at: Cell::default(),
            done: Cell::default(),
            spent: List::from(vec![0; names]),
        });
        Self {
            ranks: ranks.collect(),
            shared,
            cards,
            memory_free_at: Cell::default(),
            within: Cell::default(),
            within_lane,
            known: Map::default(),
            sent: Map::default(),
            asked: Map::default(),
            offered: Map::default(),
            come: Map::default(),
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
        let receives = self.known.iter().filter(|(_, known)| **known == Known::Asked);
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
    }

    pub(super) fn handle(&mut self, signal: Signal, context: &mut impl Context<Signal>) {
        match signal {
            Signal::Frame { frame, .. } => self.arrived(&frame, context),
            Signal::Free { port } => {
                let card = rank(port);
                self.cards[card].port.disarm(context);
                self.serve(card, context);
            }
            Signal::Pause { lane, stop } => {
                let card = &mut self.cards[rank(self.shared.port_of_lane[rank(lane)])];
                card.port.stop(stop, context);
                if !stop && !card.outgoing.is_empty() {
                    card.port.arm(context);
                }
            }
            Signal::Lost { frame } => self.put(frame, 0, context),
            Signal::Computed { rank } => {
                let at = self.place(rank);
                self.drive(at, context);
            }
            Signal::Left { rank } => self.finished(rank, context),
            Signal::Told { name, kind } => self.told(name, kind, context),
        }
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
                    if own.open.get() > 0 {
                        own.waits_since.set(context, context.now().as_nanos());
                        // From 1, so that 0 says that it does not wait.
                        let what = name_of(&self.shared, what) + 1;
                        own.waits_for.set(context, u64::from(number(what)));
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
        let name = numbered(&mut self.sent, Name { to, from, tag, number: 0 }, context);
        if bytes <= self.shared.options.messaging.eager_max.get() {
            self.start_message(name, Kind::Eager, bytes, context);
            return;
        }
        self.ranks[at].open.add(context, 1);
        self.offered.insert(context, name, bytes);
        self.start_message(name, Kind::Announcement, 0, context);
    }

    fn receive(&mut self, at: usize, [from, tag]: [u32; 2], context: &mut impl Context<Signal>) {
        let to = self.ranks[at].number;
        let name = numbered(&mut self.asked, Name { to, from, tag, number: 0 }, context);
        match self.known.get(&name).copied() {
            Some(Known::There) => {
                self.known.remove(context, &name);
                return;
            }
            Some(Known::Announced) => self.start_message(name, Kind::Request, 0, context),
            _ => {}
        }
        self.known.insert(context, name, Known::Asked);
        self.ranks[at].open.add(context, 1);
    }

    /// Begins to send a message, or what is said about one; see [`Kind`].
    fn start_message(
        &mut self,
        name: Name,
        kind: Kind,
        bytes: u64,
        context: &mut impl Context<Signal>,
    ) {
        let frame = self.shared.frame(name, kind, bytes);
        let [from, to] = frame.ranks().map(|number| self.shared.hosts[rank(number)]);
        if from != to {
            self.put(frame, bytes, context);
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
            context.send(context.me(), wait, Signal::Left { rank: name.from });
        }
        context.send(context.me(), wait + latency, Signal::Told { name, kind });
    }

    /// Queues a message at the card that it goes by. A frame with data is one that was lost and is
    /// sent again.
    fn put(&mut self, frame: Frame, left: u64, context: &mut impl Context<Signal>) {
        let lane = self.shared.next_lane(&frame);
        let card = rank(self.shared.port_of_lane[lane]);
        self.cards[card].outgoing.push_back(context, Outgoing { frame, left });
        if self.cards[card].port.ready(context.now().as_nanos()) {
            self.serve(card, context);
        } else {
            self.cards[card].port.arm(context);
        }
    }

    /// Sends the next frame of a card: one of each message in turn.
    fn serve(&mut self, card: usize, context: &mut impl Context<Signal>) {
        let card = &mut self.cards[card];
        if !card.port.ready(context.now().as_nanos()) {
            return;
        }
        let Some(Outgoing { frame, left }) = card.outgoing.pop_front(context) else { return };
        let again = frame.payload > 0;
        // Saturates: a frame carries no more than `PAYLOAD`, however much is left.
        let payload = u16::try_from(left).unwrap_or(u16::MAX).min(PAYLOAD);
        let payload = if again { frame.payload } else { payload };
        card.port.send(&self.shared, Frame { payload, ..frame }, context);
        let left = left.saturating_sub(u64::from(payload));
        if left > 0 {
            card.outgoing.push_back(context, Outgoing { frame, left });
        } else if frame.kind == Kind::Requested && !again {
            let wait = card.port.free_at() - context.now().as_nanos();
            let signal = Signal::Left { rank: frame.name.from };
            context.send(context.me(), Nanos::new(wait), signal);
        }
        if !card.outgoing.is_empty() {
            card.port.arm(context);
        }
    }

    fn arrived(&mut self, frame: &Frame, context: &mut impl Context<Signal>) {
        let payload = u64::from(frame.payload);
        if frame.total > payload {
            let come = self.come.get(&frame.name).copied().unwrap_or(0) + payload;
            if come < frame.total {
                self.come.insert(context, frame.name, come);
                return;
            }
            self.come.remove(context, &frame.name);
        }
        let signal = Signal::Told { name: frame.name, kind: frame.kind };
        context.send(context.me(), self.shared.options.messaging.latency, signal);
    }

    /// The library has a message, or hears of one.
    fn told(&mut self, name: Name, kind: Kind, context: &mut impl Context<Signal>) {
        match kind {
            Kind::Request => {
                if let Some(bytes) = self.offered.remove(context, &name) {
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
            Kind::Eager if !self.known.contains_key(&name) => {
                self.known.insert(context, name, Known::There);
            }
            Kind::Eager | Kind::Requested => {
                self.known.remove(context, &name);
                self.finished(name.to, context);
            }
        }
    }

    /// One of the things that a rank waits for is done.
    fn finished(&mut self, rank: u32, context: &mut impl Context<Signal>) {
        let at = self.place(rank);
        let own = &mut self.ranks[at];
        own.open.set(context, own.open.get() - 1);
        if own.open.get() > 0 || own.waits_for.get() == 0 {
            return;
        }
        let waited = context.now().as_nanos() - own.waits_since.get();
        let what = usize::try_from(own.waits_for.get() - 1).expect("it was a place");
        own.spend(what, waited, context);
        own.waits_for.set(context, 0);
        self.drive(at, context);
    }
}

impl Rank {
    fn spend(&mut self, what: usize, nanos: u64, context: &mut impl Context<Signal>) {
        let sum = self.spent.as_slice()[what] + nanos;
        self.spent.set(context, what, sum);
    }
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
