//! One part that runs ahead of the others, and takes back what came too early.

use std::collections::{BTreeSet, VecDeque};

use meikyo_undo::{Log, Place, UndoLog};

use super::history::{History, NONE, Sent, Tagged};
use crate::context::{Lp, Port, Turn};
use crate::fault::{Fault, Problem};
use crate::key::{Event, EventKey, LpId};
use crate::panics::{self, Handling};
use crate::queue::Queue;
use crate::rules::Rules;
use crate::run::Crew;
use crate::share::{self, Layout, Seat, Slot};
use crate::statistics::{Ledger, Origin, Output};

/// What parts send each other.
#[derive(Debug)]
#[cfg_attr(feature = "mpi", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum Envelope<M> {
    /// An event.
    Event(Event<Tagged<M>>),
    /// An event that was sent before shall never have been.
    Anti(Sent),
}

/// The pending part of a share while it is run optimistically.
pub(super) struct Worker<'a, L: Lp> {
    pub(super) layout: Layout,
    pub(super) slots: Vec<Slot<L>>,
    pub(super) ledger: Ledger,
    outgoing: Outgoing<'a, L::Message>,
    pub(super) history: History<L>,
    /// The newest record of each LP.
    last: Vec<u64>,
    /// Pending events that are to be dropped.
    cancelled: BTreeSet<u64>,
    antis: Vec<Sent>,
    pub(super) out: Vec<Vec<Envelope<L::Message>>>,
    /// The first fault among the committed events.
    pub(super) fault: Option<Box<Fault>>,
    pub(super) counts: Counts,
    /// How often each LP was set back.
    setbacks: Vec<u32>,
}

/// What a worker counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Events handled, those that were taken back included.
    pub(super) handled: u64,
    /// Those among them that nothing could set back any more.
    pub(super) certain: u64,
    pub(super) undone: u64,
    pub(super) rollbacks: u64,
    pub(super) committed: u64,
}

impl<M> Envelope<M> {
    /// When the event happens, in ns.
    pub(super) fn time(&self) -> u64 {
        match self {
            Self::Event(event) => event.time(),
            Self::Anti(sent) => sent.time,
        }
    }
}

impl<'a, L: Lp> Worker<'a, L> {
    pub(super) fn new(crew: &'a Crew<'a>, part: usize, share: share::Share<L>) -> Self {
        let share::Share { layout, slots, queue: mut pending, ledger } = share;
        let mut queue = Queue::new();
        // Attempts are told apart over all parts.
        let mut attempts = u64::try_from(part).expect("parts are few") << 48;
        pending.take_all(|event| {
            queue.push(event.with(|message| Tagged { attempt: attempts, message }));
            attempts += 1;
        });
        Self {
            layout,
            last: vec![NONE; slots.len()],
            setbacks: vec![0; slots.len()],
            slots,
            ledger,
            outgoing: Outgoing { crew, part, front: 0, queue, posted: Vec::new(), attempts },
            history: History::new(),
            cancelled: BTreeSet::new(),
            antis: Vec::new(),
            out: (0..crew.partition.parts()).map(|_| Vec::new()).collect(),
            fault: None,
            counts: Counts::default(),
        }
    }

    /// Everything back in a share, after the last commit. Of the events that are left one is kept,
    /// as a sign that there are some.
    pub(super) fn into_share(mut self) -> share::Share<L> {
        let mut queue = Queue::new();
        while let Some(event) = self.outgoing.queue.pop_before(u64::MAX) {
            if !self.cancelled.remove(&event.message.attempt) {
                queue.push(event.with(|tagged| tagged.message));
                break;
            }
        }
        share::Share { layout: self.layout, slots: self.slots, queue, ledger: self.ledger }
    }

    /// How often each LP was set back.
    pub(super) fn setbacks(&self) -> Vec<(LpId, u32)> {
        self.layout.lps(self.slots.len()).zip(self.setbacks.iter().copied()).collect()
    }

    /// The time of the next event in ns, if there is one.
    pub(super) fn next_time(&mut self) -> Option<u64> {
        self.outgoing.queue.next_key().map(|key| key.time.as_nanos())
    }

    /// Handles every event before `safe` ns, where nothing from another part can come any more; gives
    /// how many there were.
    ///
    /// They are handled in the order of their keys, so that nothing sets them back and nothing is
    /// kept of them, but where their LP has run ahead before and that is not committed yet.
    pub(super) fn settle(&mut self, safe: u64) -> usize {
        let mut done = 0;
        let mut at = None;
        loop {
            // After a fault, handlers go on with states that no committed event has seen.
            let committed = self.fault.is_none();
            let handling = if committed { Handling::Committed } else { Handling::Speculative };
            let events = panics::caught(handling, || self.certain(safe, &mut done, &mut at));
            let Err(panicked) = events else { return done };
            self.panicked(panicked, at);
            done += 1;
        }
    }

    fn certain(&mut self, safe: u64, done: &mut usize, at: &mut Option<(EventKey, LpId)>) {
        while let Some(event) = self.next_before(safe) {
            let seat = self.layout.seat(self.outgoing.crew.rules, event.destination);
            if self.history.get(self.last[seat.local]).is_some() {
                *at = None;
                panics::during(Handling::Speculative, || self.handle_again(event));
            } else {
                *at = Some((event.key(), event.destination));
                self.handle_certain(event, seat);
            }
            if !self.outgoing.posted.is_empty() {
                self.deliver_posted();
            }
            *done += 1;
        }
    }

    /// Handles at most `count` events before `horizon` ns; gives how many there were.
    pub(super) fn speculate(&mut self, horizon: u64, count: usize) -> usize {
        let mut done = 0;
        while done < count {
            let batch =
                panics::caught(Handling::Speculative, || self.batch(horizon, count, &mut done));
            let Err(panicked) = batch else { break };
            self.panicked(panicked, None);
            done += 1;
        }
        done
    }

    fn batch(&mut self, horizon: u64, count: usize, done: &mut usize) {
        while *done < count {
            let Some(event) = self.next_before(horizon) else { return };
            self.handle(event);
            if !self.outgoing.posted.is_empty() {
                self.deliver_posted();
            }
            *done += 1;
        }
    }

    /// Notes a panic: of the event `at`, which is certain, or of the newest record.
    fn panicked(&mut self, problem: Problem, at: Option<(EventKey, LpId)>) {
        self.outgoing.posted.clear();
        match at {
            Some((key, lp)) => {
                let rules = self.outgoing.crew.rules;
                note_fault(&mut self.fault, rules, lp, key, problem);
            }
            None => self.history.problem(Box::new(problem)),
        }
    }

    /// The next event before `horizon` ns that is not cancelled.
    #[inline(always)]
    fn next_before(&mut self, horizon: u64) -> Option<Event<Tagged<L::Message>>> {
        loop {
            let event = self.outgoing.queue.pop_before(horizon)?;
            if !self.cancelled.is_empty() && self.cancelled.remove(&event.message.attempt) {
                continue;
            }
            if let Some(coming) = self.outgoing.queue.ahead(AHEAD) {
                let seat = self.layout.seat(self.outgoing.crew.rules, coming.destination);
                std::hint::black_box(self.slots[seat.local].counters.sent);
            }
            return Some(event);
        }
    }

    /// As [`Self::handle`], where that is seldom.
    #[cold]
    fn handle_again(&mut self, event: Event<Tagged<L::Message>>) {
        self.handle(event);
    }

    #[inline(always)]
    fn handle_certain(&mut self, event: Event<Tagged<L::Message>>, seat: Seat) {
        let rules = self.outgoing.crew.rules;
        let slot = &mut self.slots[seat.local];
        let (key, me) = (event.key(), event.destination);
        self.counts.handled += 1;
        self.counts.certain += 1;
        self.counts.committed += 1;
        slot.counters.handled += 1;
        let mut port = Certain {
            outgoing: &mut self.outgoing,
            ledger: &mut self.ledger,
            origin: Origin { key, lp: me, member: seat.member },
            problem: None,
        };
        let counters = &mut slot.counters;
        let mut turn = Turn { rules, key, me, group: seat.group, counters, port: &mut port };
        slot.state.handle(event.message.message, &mut turn);
        if let Some(problem) = port.problem {
            note_fault(&mut self.fault, rules, me, key, *problem);
        }
        if rules.traced {
            self.ledger.trace(seat.local, &key);
        }
    }

    #[inline(always)]
    fn handle(&mut self, event: Event<Tagged<L::Message>>) {
        let rules = self.outgoing.crew.rules;
        let seat = self.layout.seat(rules, event.destination);
        let slot = &mut self.slots[seat.local];
        let (key, me) = (event.key(), event.destination);
        let message = event.message.message.clone();
        let last = &mut self.last[seat.local];
        *last = self.history.begin(event, *last, &slot.state, slot.counters);
        self.outgoing.front = self.outgoing.front.max(key.time.as_nanos());
        self.counts.handled += 1;
        slot.counters.handled += 1;
        let History { log, sent, outputs, .. } = &mut self.history;
        let outputs_before = outputs.len();
        let mut port =
            Speculative { outgoing: &mut self.outgoing, log, sent, outputs, problem: None };
        let counters = &mut slot.counters;
        let mut turn = Turn { rules, key, me, group: seat.group, counters, port: &mut port };
        slot.state.handle(message, &mut turn);
        let problem = port.problem;
        let given_out = self.history.outputs.len() - outputs_before;
        if given_out > 0 {
            let record = self.history.newest().expect("it was just begun");
            record.outputs = u32::try_from(given_out).expect("a handler's outputs are counted");
        }
        if let Some(problem) = problem {
            self.history.problem(problem);
        }
    }

    fn deliver_posted(&mut self) {
        let mut posted = std::mem::take(&mut self.outgoing.posted);
        for event in posted.drain(..) {
            let part = self.outgoing.part_of(event.destination);
            if part == self.outgoing.part {
                self.receive(event);
            } else {
                self.out[part].push(Envelope::Event(event));
            }
        }
        self.outgoing.posted = posted;
    }

    /// Takes an event in, after setting its LP back if it comes too late.
    fn receive(&mut self, event: Event<Tagged<L::Message>>) {
        if event.time() <= self.outgoing.front {
            let local = self.layout.seat(self.outgoing.crew.rules, event.destination).local;
            let newest = self.history.get(self.last[local]);
            let late = |newest: &Event<_>| newest.key() > event.key();
            if newest.is_some_and(|newest| newest.event.as_ref().is_some_and(late)) {
                self.roll_back(local, event.key(), None);
                self.cancel_all();
            }
        }
        self.outgoing.queue.push(event);
    }

    pub(super) fn open(&mut self, envelope: Envelope<L::Message>) {
        match envelope {
            Envelope::Event(event) => self.receive(event),
            Envelope::Anti(sent) => {
                self.antis.push(sent);
                self.cancel_all();
            }
        }
    }

    /// Takes back what the LP at `local` handled from `key` on. Their events are pending again, but
    /// the one of the attempt `dropped`.
    fn roll_back(&mut self, local: usize, key: EventKey, dropped: Option<u64>) {
        self.counts.rollbacks += 1;
        self.setbacks[local] = self.setbacks[local].saturating_add(1);
        while let Some(newest) = self.history.get(self.last[local])
            && let Some(event) = &newest.event
            && event.key() >= key
        {
            let (at, lp) = (self.last[local], event.destination);
            self.last[local] = newest.previous;
            let Slot { state, counters } = &mut self.slots[local];
            match self.history.take_back(at, state, counters, &mut self.antis) {
                Ok(event) if dropped == Some(event.message.attempt) => {}
                Ok(event) => self.outgoing.queue.push(event),
                Err(key) => {
                    let difference = meikyo_undo::Unclaimed.to_string();
                    let problem = Problem::Escape { difference };
                    let fault = share::fault(self.outgoing.crew.rules, lp, Some(key), problem);
                    self.fault.get_or_insert(fault);
                    return;
                }
            }
            self.counts.undone += 1;
        }
    }

    /// Cancels everything that was sent by events that were taken back.
    fn cancel_all(&mut self) {
        while let Some(sent) = self.antis.pop() {
            let part = self.outgoing.part_of(sent.destination);
            if part == self.outgoing.part {
                self.annihilate(sent);
            } else {
                self.out[part].push(Envelope::Anti(sent));
            }
        }
    }

    fn annihilate(&mut self, sent: Sent) {
        let local = self.layout.seat(self.outgoing.crew.rules, sent.destination).local;
        let mut at = self.last[local];
        while let Some(record) = self.history.get(at) {
            if let Some(event) = &record.event
                && event.message.attempt == sent.attempt
            {
                let key = event.key();
                self.roll_back(local, key, Some(sent.attempt));
                return;
            }
            at = record.previous;
        }
        self.cancelled.insert(sent.attempt);
    }

    /// Commits everything before `gvt` ns.
    pub(super) fn commit(&mut self, gvt: u64) {
        let rules = self.outgoing.crew.rules;
        let Self { history, ledger, layout, counts, fault, .. } = self;
        history.give_up(gvt, |event, outputs, problem| {
            counts.committed += 1;
            let (key, lp) = (event.key(), event.destination);
            for output in outputs {
                let member = layout.seat(rules, lp).member;
                ledger.output(Origin { key, lp, member }, output);
            }
            if rules.traced {
                ledger.trace(layout.seat(rules, lp).local, &key);
            }
            if let Some(problem) = problem {
                note_fault(fault, rules, lp, key, *problem);
            }
        });
        self.history.trim();
    }
}

/// LPs of coming events that are brought into the cache beforehand.
const AHEAD: usize = 6;

/// Notes what went wrong with an event, unless an earlier one went wrong.
fn note_fault(
    fault: &mut Option<Box<Fault>>,
    rules: &Rules,
    lp: LpId,
    key: EventKey,
    problem: Problem,
) {
    if fault.as_ref().is_none_or(|known| Some(key) < known.key) {
        *fault = Some(share::fault(rules, lp, Some(key), problem));
    }
}

/// The way of events that a handler sends.
struct Outgoing<'a, M> {
    crew: &'a Crew<'a>,
    part: usize,
    /// The latest time handled, in ns: nothing after it can be a straggler.
    front: u64,
    queue: Queue<Tagged<M>>,
    /// Events for other parts, and those that may set an LP of this one back.
    posted: Vec<Event<Tagged<M>>>,
    attempts: u64,
}

impl<M> Outgoing<'_, M> {
    /// Sends the event; gives what its anti-message would be.
    #[inline(always)]
    fn post(&mut self, event: Event<M>) -> Sent {
        let (time, destination) = (event.time(), event.destination);
        let attempt = self.attempts;
        self.attempts += 1;
        let event = event.with(|message| Tagged { attempt, message });
        // What comes after everything that was handled here is no straggler, whoever it is for.
        let here = self.part_of(destination) == self.part;
        if here && time > self.front {
            self.queue.push(event);
        } else {
            self.posted.push(event);
        }
        Sent { time, destination, attempt }
    }

    /// The part that an LP belongs to.
    #[inline(always)]
    fn part_of(&self, lp: LpId) -> usize {
        self.crew.partition.part_of(self.crew.rules.group_of(lp), lp)
    }
}

/// What a handler does, with everything that is needed to take it back.
struct Speculative<'a, 'crew, M> {
    outgoing: &'a mut Outgoing<'crew, M>,
    log: &'a mut UndoLog,
    sent: &'a mut VecDeque<Sent>,
    outputs: &'a mut VecDeque<Output>,
    problem: Option<Box<Problem>>,
}

impl<M> Log for Speculative<'_, '_, M> {
    const KEEPS: bool = true;

    fn word(&mut self, place: Place, word: u64) {
        self.log.word(place, word);
    }

    fn value<T: Send + 'static>(&mut self, place: Place, word: u64, value: T) {
        self.log.value(place, word, value);
    }
}

impl<M> Port<M> for Speculative<'_, '_, M> {
    fn post(&mut self, event: Event<M>) {
        let sent = self.outgoing.post(event);
        self.sent.push_back(sent);
    }

    fn output(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    fn problem(&mut self, problem: Box<Problem>) {
        self.problem.get_or_insert(problem);
    }
}

/// What a handler does that is committed as it happens.
struct Certain<'a, 'crew, M> {
    outgoing: &'a mut Outgoing<'crew, M>,
    ledger: &'a mut Ledger,
    origin: Origin,
    problem: Option<Box<Problem>>,
}

impl<M> Log for Certain<'_, '_, M> {
    const KEEPS: bool = false;
    fn word(&mut self, _place: Place, _word: u64) {}
    fn value<T: Send + 'static>(&mut self, _place: Place, _word: u64, _value: T) {}
}

impl<M> Port<M> for Certain<'_, '_, M> {
    fn post(&mut self, event: Event<M>) {
        self.outgoing.post(event);
    }

    fn output(&mut self, output: Output) {
        self.ledger.output(self.origin, output);
    }

    fn problem(&mut self, problem: Box<Problem>) {
        self.problem.get_or_insert(problem);
    }
}
