//! A host: its ranks, and what their message library does.

use std::sync::Arc;

use meikyo_sim::Context;
use meikyo_undo::{Cell, List, Map, fields};
use meikyo_units::{Bytes, Nanos};

use super::cards::Cards;
use super::known::Shared;
use super::signal::{Kind, Name, Signal, TURN_OF_GOING_ON};
use crate::prediction::flow::Waiting;
use crate::prediction::ranks::{Op, RankProgram, number, rank};

/// What the ranks of all hosts run.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) program: RankProgram,
    /// How many of its ranks are those that the result is about; the others come behind them.
    pub(super) counted: usize,
    /// What it calls the things that it spends time on.
    pub(super) names: Vec<&'static str>,
}

/// Nothing in here changes, and hosts of two runs are never compared but for runs of one model.
impl PartialEq for Program {
    fn eq(&self, other: &Self) -> bool {
        self.names == other.names
    }
}

impl Program {
    pub(super) fn new(program: RankProgram, counted: usize) -> Self {
        Self { names: program.names(), program, counted }
    }

    fn place_of(&self, what: &'static str) -> usize {
        let found = self.names.iter().position(|name| *name == what);
        found.expect("the names are those of all steps")
    }
}

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

/// A message that waits for its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Offered {
    bytes: u64,
    /// Its number among those of its rank.
    begun: u64,
}

/// A host with its cards and the ranks that run on it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Host {
    shared: Arc<Shared>,
    program: Arc<Program>,
    ranks: Vec<Rank>,
    pub(super) cards: Cards,
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
    /// Announced messages of its ranks that nobody asked for yet.
    offered: Map<Name, Offered>,
    /// Messages that were asked for and have not left, with their numbers among those of their rank.
    leaving: Map<Name, u64>,
}
fields!(Host { ranks, cards, memory_free_at, within, known, sent, asked, offered, leaving });

impl Host {
    pub(super) fn new(shared: Arc<Shared>, program: Arc<Program>, place: usize) -> Self {
        let (_, within_lane) = shared.network.lanes_of_host(place);
        let names = program.names.len();
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
        Self {
            ranks: ranks.collect(),
            cards: Cards::new(Arc::clone(&shared), place),
            shared,
            program,
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

    /// Its ranks that the result is about.
    fn counted(&self) -> impl Iterator<Item = &Rank> {
        self.ranks.iter().filter(|own| rank(own.number) < self.program.counted)
    }

    /// When its last rank was done; `None` if one is not.
    pub(super) fn done_at(&self) -> Option<u64> {
        let done = self.counted().map(|rank| rank.done.get().then(|| rank.done_at.get()));
        done.reduce(|one, other| one.zip(other).map(|(one, other)| one.max(other)))
            .unwrap_or(Some(0))
    }

    /// Adds what its ranks spent on each of the program's names.
    pub(super) fn add_spent(&self, sums: &mut [u64]) {
        for rank in self.counted() {
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
        self.cards.arm(&Signal::Look, context);
    }

    pub(super) fn handle(&mut self, signal: Signal, context: &mut impl Context<Signal>) {
        self.cards.catch_up(&signal, context);
        match signal {
            Signal::Computed { rank } => {
                let at = self.place(rank);
                self.drive(at, context);
            }
            Signal::Left { name } => {
                let begun = self.leaving.remove(context, &name).expect("it was asked for");
                self.finished(name.from, begun, context);
            }
            Signal::Told { name, kind } => self.told(name, kind, context),
            _ => self.cards.take(&signal, context),
        }
        self.cards.arm(&signal, context);
    }

    fn place(&self, number: u32) -> usize {
        let found = self.ranks.binary_search_by_key(&number, |rank| rank.number);
        found.expect("a rank stays on its host")
    }

    /// Lets a rank take steps until it waits, computes or is done.
    fn drive(&mut self, at: usize, context: &mut impl Context<Signal>) {
        loop {
            let own = &mut self.ranks[at];
            let script = self.program.program.script(rank(own.number));
            let Some(op) = script.op(own.taken.get()) else {
                own.done.set(context, true);
                own.done_at.set(context, context.now().as_nanos());
                return;
            };
            own.taken.add(context, 1);
            match op {
                Op::Compute { span, what } => {
                    let what = self.program.place_of(what);
                    own.spend(what, span.get(), context);
                    let signal = Signal::Computed { rank: own.number };
                    context.send(context.me(), span, signal);
                    return;
                }
                Op::Send { to, tag, bytes } => self.send(at, [to, tag], bytes, context),
                Op::Receive { from, tag } => self.receive(at, [from, tag], context),
                Op::Wait { what } => {
                    if !own.open.is_empty() {
                        own.wait(self.program.place_of(what), 0, context);
                        return;
                    }
                }
                Op::WaitFor { begun, what } => {
                    if own.open.contains_key(&begun) {
                        own.wait(self.program.place_of(what), begun + 1, context);
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
            self.cards.send(name, kind, bytes, context);
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

/// The next number of a name, which has the number 0.
fn numbered(counts: &mut Map<Name, u32>, name: Name, context: &mut impl Context<Signal>) -> Name {
    let number = counts.get(&name).copied().unwrap_or(0);
    counts.insert(context, name, number + 1);
    Name { number, ..name }
}
