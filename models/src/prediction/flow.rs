//! The flow method: messages as streams that share lanes max-min fairly, from event to event.
//!
//! A message up to the eager limit goes at once, and its sender goes on; a larger one announces itself,
//! waits until its receiver asks for it (rendezvous), and its sender until no stream has more left than a window. Between two actors
//! everything comes in order (module `connections`), announcements and requests behind data too. Whenever streams
//! begin or end, all rates are worked out anew.
//!
//! What is shared is shared by all, so that no part of it could run ahead of another: this is a
//! calculation on one thread, like mean value analysis, and no model of LPs. Events are ordered by time
//! and by when they were made, but for actors that waited for their look and go on: these are after all else of their
//! instant. The result depends on nothing else.

mod connections;
mod mail;
mod streams;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use meikyo_units::{Bytes, Nanos, SimTime};

use super::course::Courses;
use super::network::Network;
use super::program::{Actor, Heard, Message, Messaging, Step};
use super::sharing::Congestion;

use connections::{Connections, Handed, Pair};
use mail::{Announced, Begun, Mail, Met};
use streams::{Reached, Streams};

/// How a run is calculated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowOptions {
    /// What hosts and their library do with messages.
    pub messaging: Messaging,
    /// What full lanes do.
    pub congestion: Congestion,
    /// For so many streams under way one may end before what it leaves is shared out; 0: none, which
    /// is exact. Streams that begin are given their share at once in any case.
    pub patience: usize,
    /// Whether it is told what lanes carry over time.
    pub courses: bool,
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowRun {
    /// When the last actor was done.
    pub time: Nanos,
    /// What all actors spent on each thing that they named, in the order in which it first happened.
    pub spent: Vec<(&'static str, Nanos)>,
    /// For each lane what went over it.
    pub carried: Vec<Bytes>,
    /// The same over time, if [`FlowOptions::courses`] asks for it.
    pub courses: Option<Courses>,
    /// Sets of streams that were moved.
    pub sets: u64,
    /// How often rates were worked out.
    pub solutions: u64,
}

/// No event is left, and actors still wait.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("deadlock after {after}: {} of {actors} actors wait, {}", waiting.len(), in_words(waiting))]
pub struct Deadlock {
    /// When the last thing happened.
    pub after: Nanos,
    /// How many actors the program has.
    pub actors: usize,
    /// Who waits for whom, by actor.
    pub waiting: Vec<Waiting>,
}

/// An actor that waits, and for what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The actor that waits.
    pub actor: usize,
    /// Whether it sends or receives.
    pub sends: bool,
    /// Whom it waits for.
    pub other: usize,
    /// What both call the message.
    pub tag: u64,
}

/// The first few, which are enough to find the cycle.
fn in_words(waiting: &[Waiting]) -> String {
    const TOLD_MAX: usize = 8;
    let one = |waiting: &Waiting| {
        let Waiting { actor, sends, other, tag } = waiting;
        let way = if *sends { "to send to" } else { "to receive from" };
        format!("{actor} {way} {other} (tag {tag})")
    };
    let told: Vec<String> = waiting.iter().take(TOLD_MAX).map(one).collect();
    let more = if waiting.len() > TOLD_MAX { " ..." } else { "" };
    format!("{}{more}", told.join(", "))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// An actor has computed.
    Computed(usize),
    /// A set of streams begins.
    Begin(usize),
    /// One of the things that an actor waits for is done.
    Finished(Begun),
    /// An eager message is there, or the announcement of another one.
    Arrived(usize),
}

/// An event, and when it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: u64,
    /// Whether it is after all else of that instant.
    is_last: bool,
    /// How many events were made before it.
    made: u64,
    event: Event,
    /// Whose library has to look before it happens.
    looks: Option<usize>,
}

impl Due {
    fn new(at: u64, event: Event) -> Self {
        Self { at, is_last: false, made: 0, event, looks: None }
    }
}

/// What is said about a set of streams that has not begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Word {
    set: usize,
    /// Whether its receiver says it.
    back: bool,
    /// Whose library hears it.
    to: usize,
    /// What happens then.
    event: Event,
}

/// Who hears of a set of streams that is handed over, and of its end.
#[derive(Debug, Clone, Copy)]
enum Purpose {
    Move {
        begun: Begun,
        start_up: Nanos,
    },
    Eager {
        message: usize,
        by: Option<Pair>,
    },
    /// Its sender is `None` once it has handed over all of it.
    Rendezvous {
        from: Option<Begun>,
        to: Begun,
        by: Option<Pair>,
    },
}

impl Purpose {
    /// The connection that it goes by; nothing within a host.
    fn connection(self) -> Option<Pair> {
        match self {
            Self::Move { .. } => None,
            Self::Eager { by, .. } | Self::Rendezvous { by, .. } => by,
        }
    }
}

#[derive(Debug, Default)]
struct State {
    /// Messages and moves that it has begun.
    begun: u64,
    /// Which of them are not finished.
    open: BTreeSet<u64>,
    /// Since when it waits and for what; `None` while it computes or is done.
    waits: Option<Wait>,
    done: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Wait {
    since: u64,
    what: &'static str,
    /// The one that it waits for; `None` for all.
    number: Option<u64>,
}

struct Run<'a, A> {
    options: FlowOptions,
    actors: Vec<A>,
    states: Vec<State>,
    queue: BinaryHeap<Reverse<Due>>,
    made: u64,
    now: u64,
    streams: Streams<'a>,
    purposes: BTreeMap<usize, Purpose>,
    mail: Mail,
    connections: Connections<Word>,
    spent: Vec<(&'static str, u64)>,
}

/// Runs the actors of a program on a network.
///
/// # Errors
/// If actors wait for messages that nobody sends or receives.
pub fn run<A: Actor>(
    network: &Network,
    actors: Vec<A>,
    options: FlowOptions,
) -> Result<FlowRun, Deadlock> {
    let states = actors.iter().map(|_| State::default()).collect();
    let mut run = Run {
        options,
        actors,
        states,
        queue: BinaryHeap::new(),
        made: 0,
        now: 0,
        streams: Streams::new(network, options),
        purposes: BTreeMap::new(),
        mail: Mail::default(),
        connections: Connections::default(),
        spent: Vec::new(),
    };
    for actor in 0..run.actors.len() {
        run.drive(actor);
    }
    run.drain();
    run.result()
}

impl<A: Actor> Run<'_, A> {
    fn drain(&mut self) {
        loop {
            let event_at = self.queue.peek().map(|Reverse(due)| due.at);
            if event_at == Some(self.now) {
                let Some(Reverse(due)) = self.queue.pop() else { return };
                let look = due.looks.map_or(self.now, |actor| self.looks_at(actor));
                if look == self.now {
                    self.handle(due.event);
                } else {
                    self.plan(Due { at: look, ..due });
                }
                continue;
            }
            // All that happens now has happened.
            let end_at = self.streams.next_end(self.now);
            match (event_at, end_at) {
                (None, None) => return,
                (Some(event), end) if end.is_none_or(|end| event < end) => self.now = event,
                (_, Some(end)) => {
                    self.now = end;
                    for (set, reached) in self.streams.ended(end) {
                        self.reached(set, reached);
                    }
                }
                (Some(_), None) => unreachable!("an event is before no end"),
            }
        }
    }

    fn at(&mut self, at: u64, event: Event) {
        self.plan(Due::new(at, event));
    }

    fn plan(&mut self, due: Due) {
        self.made += 1;
        self.queue.push(Reverse(Due { made: self.made, ..due }));
    }

    /// When an actor looks next at what has come.
    fn looks_at(&self, actor: usize) -> u64 {
        let rank = u64::try_from(actor).expect("a place fits in 64 bits");
        self.options.messaging.looks_at(rank, self.states[actor].begun, self.now)
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Computed(actor) => self.drive(actor),
            Event::Begin(set) => {
                let by = self.purposes.get(&set).and_then(|purpose| purpose.connection());
                self.hand(by, Handed::Data(set));
            }
            Event::Finished(begun) => self.finished(begun),
            Event::Arrived(message) => match self.mail.arrived(message) {
                Some(Met { to, announces: None }) => self.finished(to),
                Some(Met { to, announces: Some(announced) }) => self.ask(announced, to),
                None => {}
            },
        }
    }

    /// Hands something to a connection, or to the memory of a host, which lets nothing wait.
    fn hand(&mut self, by: Option<Pair>, handed: Handed<Word>) {
        let turn = match by {
            Some(pair) => self.connections.hand(pair, handed),
            None => Some(handed),
        };
        if let Some(handed) = turn {
            self.set_out(handed);
        }
    }

    fn set_out(&mut self, handed: Handed<Word>) {
        match handed {
            Handed::Word(Word { set, back, to, event }) => {
                let wait = self.options.messaging.latency + self.streams.queued(set, back);
                let at = self.now + wait.get();
                self.plan(Due { looks: Some(to), ..Due::new(at, event) });
            }
            Handed::Data(set) => {
                let purpose = self.purposes.get(&set);
                let waits = matches!(purpose, Some(Purpose::Rendezvous { .. }));
                if let Some(reached) = self.streams.begin(set, waits, self.now) {
                    self.reached(set, reached);
                }
            }
        }
    }

    fn finished(&mut self, Begun { actor, number: finished }: Begun) {
        let state = &mut self.states[actor];
        state.open.remove(&finished);
        let over = |wait: &Wait| match wait.number {
            None => state.open.is_empty(),
            Some(number) => number == finished,
        };
        if let Some(Wait { since, what, .. }) = state.waits.filter(over) {
            state.waits = None;
            let at = self.looks_at(actor);
            self.spend(what, at - since);
            if at == self.now {
                self.drive(actor);
            } else {
                self.plan(Due { is_last: true, ..Due::new(at, Event::Computed(actor)) });
            }
        }
    }

    /// Counts what an actor begins.
    fn begin(&mut self, actor: usize) -> Begun {
        let state = &mut self.states[actor];
        state.begun += 1;
        Begun { actor, number: state.begun - 1 }
    }

    /// What an actor has begun is not finished.
    fn open(&mut self, begun: Begun) {
        self.states[begun.actor].open.insert(begun.number);
    }

    fn reached(&mut self, set: usize, reached: Reached) {
        if reached == Reached::Whole {
            return self.set_ended(set);
        }
        if let Some(Purpose::Rendezvous { from, .. }) = self.purposes.get_mut(&set)
            && let Some(from) = from.take()
        {
            self.at(self.now, Event::Finished(from));
        }
    }

    fn set_ended(&mut self, set: usize) {
        let latency = self.options.messaging.latency.get();
        let purpose = self.purposes.remove(&set).expect("every set has a purpose");
        match purpose {
            Purpose::Move { begun, start_up } => {
                self.at(self.now + start_up.get(), Event::Finished(begun));
            }
            Purpose::Eager { message, .. } => self.at(self.now + latency, Event::Arrived(message)),
            Purpose::Rendezvous { from, to, .. } => {
                if let Some(from) = from {
                    self.at(self.now, Event::Finished(from));
                }
                self.at(self.now + latency, Event::Finished(to));
            }
        }
        if let Some(pair) = purpose.connection() {
            for handed in self.connections.ended(pair) {
                self.set_out(handed);
            }
        }
    }

    /// Lets an actor take steps until it waits, computes or is done.
    fn drive(&mut self, actor: usize) {
        loop {
            let mail = &self.mail;
            let announced = |from: usize, tag: u64| mail.announced(from, actor, tag);
            match self.actors[actor].next(&Heard::new(&announced)) {
                Step::Compute { span, what } => {
                    self.spend(what, span.get());
                    self.at(self.now + span.get(), Event::Computed(actor));
                    return;
                }
                Step::Send(message) => self.send(actor, message),
                Step::Receive { from, tag } => self.receive(actor, from, tag),
                Step::Wait { what } => {
                    if !self.states[actor].open.is_empty() {
                        let wait = Wait { since: self.now, what, number: None };
                        self.states[actor].waits = Some(wait);
                        return;
                    }
                }
                Step::WaitFor { begun, what } => {
                    if self.states[actor].open.contains(&begun) {
                        let wait = Wait { since: self.now, what, number: Some(begun) };
                        self.states[actor].waits = Some(wait);
                        return;
                    }
                }
                Step::Move { streams, start_up, what } => {
                    let set = self.streams.prepare(streams);
                    let begun = self.begin(actor);
                    self.purposes.insert(set, Purpose::Move { begun, start_up });
                    self.open(begun);
                    let wait = Wait { since: self.now, what, number: None };
                    self.states[actor].waits = Some(wait);
                    self.at(self.now, Event::Begin(set));
                    return;
                }
                Step::Done => {
                    self.states[actor].done = Some(self.now);
                    return;
                }
            }
        }
    }

    fn send(&mut self, from: usize, Message { to, tag, streams }: Message) {
        let eager_max = self.options.messaging.eager_max;
        let eager = streams.iter().all(|stream| stream.bytes <= eager_max);
        let by_network = streams.iter().any(|stream| stream.from != stream.to);
        let by = by_network.then_some((from, to));
        let set = self.streams.prepare(streams);
        let begun = self.begin(from);
        if eager {
            let message = self.mail.sent(from, to, tag, None);
            self.purposes.insert(set, Purpose::Eager { message, by });
            self.hand(by, Handed::Data(set));
            return;
        }
        self.open(begun);
        let announced = Announced { set, from: begun, by_network };
        let message = self.mail.sent(from, to, tag, Some(announced));
        let word = Word { set, back: false, to, event: Event::Arrived(message) };
        self.hand(by, Handed::Word(word));
    }

    fn receive(&mut self, to: usize, from: usize, tag: u64) {
        let begun = self.begin(to);
        self.open(begun);
        match self.mail.asked(from, begun, tag) {
            Some(Met { announces: None, .. }) => self.at(self.now, Event::Finished(begun)),
            Some(Met { announces: Some(announced), to }) => self.ask(announced, to),
            None => {}
        }
    }

    /// Asks for a message that has announced itself; its streams begin once the sender has heard.
    fn ask(&mut self, Announced { set, from, by_network }: Announced, to: Begun) {
        let pair = (from.actor, to.actor);
        let by = by_network.then_some(pair);
        let sender = from.actor;
        self.purposes.insert(set, Purpose::Rendezvous { from: Some(from), to, by });
        let by_back = by.map(|(from, to)| (to, from));
        let word = Word { set, back: true, to: sender, event: Event::Begin(set) };
        self.hand(by_back, Handed::Word(word));
    }

    fn spend(&mut self, what: &'static str, nanos: u64) {
        match self.spent.iter_mut().find(|(known, _)| *known == what) {
            Some((_, sum)) => *sum += nanos,
            None => self.spent.push((what, nanos)),
        }
    }

    fn result(self) -> Result<FlowRun, Deadlock> {
        if self.states.iter().any(|state| state.done.is_none()) {
            return Err(Deadlock {
                after: Nanos::new(self.now),
                actors: self.actors.len(),
                waiting: self.mail.waiting(),
            });
        }
        let time = self.states.iter().filter_map(|state| state.done).max().unwrap_or(0);
        let time = SimTime::from_nanos(time).since(SimTime::START);
        let carried = self.streams.carried();
        let (sets, solutions) = (self.streams.sets(), self.streams.solutions());
        Ok(FlowRun {
            time,
            spent: self.spent.into_iter().map(|(what, nanos)| (what, Nanos::new(nanos))).collect(),
            carried,
            courses: self.streams.into_courses().map(|courses| Courses::new(courses, time)),
            sets,
            solutions,
        })
    }
}
