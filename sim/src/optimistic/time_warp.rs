//! Time Warp on one part: handles events ahead of the GVT, and rolls back what came too early.
//!
//! This module handles, rolls back, cancels and commits. It never decides how far to go and never waits
//! for anybody: that is its parent's and the coordinator's.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use meikyo_undo::{Log, Place, UndoLog};

use super::history::{History, NONE, Sent, Tagged};
use crate::context::{Lp, Port, Turn};
use crate::exchange::Outbox;
use crate::fault::{Fault, Problem};
use crate::key::{Event, EventKey, LpId};
use crate::panics::{self, Handling};
use crate::queue::Queue;
use crate::rules::Rules;
use crate::setup::Setup;
use crate::share::{self, Layout, Location, Slot};
use crate::statistics::{Ledger, Origin, Output};
use crate::withdrawn::Withdrawn;

/// What optimistic workers send each other.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum Envelope<M> {
    /// An event to be handled at its destination.
    Event(Event<Tagged<M>>),
    /// An anti-message: it annihilates the event that was sent before by the same attempt.
    Anti(Sent),
}

/// One part of the model while it is run optimistically.
pub(super) struct TimeWarp<'a, L: Lp> {
    pub(super) layout: Layout,
    pub(super) slots: Vec<Slot<L>>,
    pub(super) ledger: Ledger,
    outgoing: Outgoing<'a, L::Message>,
    pub(super) history: History<L>,
    /// The number of each LP's newest record.
    newest: Vec<u64>,
    /// The attempts of pending or coming events that were annihilated and are dropped at their turn.
    cancelled: BTreeSet<u64>,
    /// Pending events that their LPs have taken back.
    withdrawn: Withdrawn,
    /// Such events that were dropped ahead of the GVT: pending again if the LP is rolled back to where it
    /// had not taken them back.
    dropped: BTreeMap<(LpId, u64), Event<Tagged<L::Message>>>,
    /// Anti-messages that are not delivered yet.
    anti_messages: Vec<Sent>,
    /// Events and anti-messages for other parts.
    pub(super) outbox: Outbox<Envelope<L::Message>>,
    /// The first fault among the committed events.
    pub(super) fault: Option<Box<Fault>>,
    pub(super) counts: Counts,
    /// How often each LP was rolled back.
    rollbacks_per_lp: Vec<u32>,
    /// Every event before this time is committed, in ns: the GVT.
    pub(super) committed_before: u64,
    /// Every event before this time is handled for good, in ns: the last horizon. A straggler is never
    /// earlier.
    certain_before: u64,
}

/// What happened on one part since the run began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Events handled, those that were rolled back included.
    pub(super) handled: u64,
    /// Those among them that nothing could roll back any more when they were handled.
    pub(super) certain: u64,
    /// Events that were rolled back, once for each time.
    pub(super) undone: u64,
    /// How many times an LP was rolled back.
    pub(super) rollbacks: u64,
    /// Events that are committed, which nothing can roll back any more.
    pub(super) committed: u64,
}

impl<M> Envelope<M> {
    /// When the event happens that this is or annihilates, in ns.
    pub(super) fn time(&self) -> u64 {
        match self {
            Self::Event(event) => event.time(),
            Self::Anti(sent) => sent.time,
        }
    }
}

impl<'a, L: Lp> TimeWarp<'a, L> {
    pub(super) fn new(setup: &'a Setup<'a>, part: usize, share: share::Share<L>) -> Self {
        let share::Share { layout, slots, queue: mut pending, ledger, withdrawn } = share;
        let mut queue = Queue::new();
        // Attempts are told apart over all parts.
        let mut attempts = u64::try_from(part).expect("parts are few") << 48;
        pending.take_all(|event| {
            queue.push(event.with(|message| Tagged { attempt: attempts, message }));
            attempts += 1;
        });
        Self {
            layout,
            newest: vec![NONE; slots.len()],
            rollbacks_per_lp: vec![0; slots.len()],
            slots,
            ledger,
            outgoing: Outgoing { setup, part, front: 0, queue, posted: Vec::new(), attempts },
            history: History::new(),
            cancelled: BTreeSet::new(),
            withdrawn,
            dropped: BTreeMap::new(),
            anti_messages: Vec::new(),
            outbox: Outbox::new(setup.partition.parts()),
            fault: None,
            counts: Counts::default(),
            committed_before: 0,
            certain_before: 0,
        }
    }

    /// Everything back in a share, after the last commit. Of the events that are left one is kept,
    /// as a sign that there are some.
    pub(super) fn into_share(mut self) -> share::Share<L> {
        let mut queue = Queue::new();
        while let Some(event) = self.outgoing.queue.pop_before(u64::MAX) {
            if !self.cancelled.remove(&event.message.attempt) && !self.withdrawn.takes(&event) {
                queue.push(event.with(|tagged| tagged.message));
                break;
            }
        }
        let Self { layout, slots, ledger, .. } = self;
        share::Share { layout, slots, queue, ledger, withdrawn: Withdrawn::default() }
    }

    /// How often each LP was rolled back.
    pub(super) fn rollbacks_per_lp(&self) -> impl Iterator<Item = (LpId, u32)> {
        self.layout.lps(self.slots.len()).zip(self.rollbacks_per_lp.iter().copied())
    }

    /// The time of the next event in ns, if there is one.
    pub(super) fn next_time(&mut self) -> Option<u64> {
        self.outgoing.queue.next_key().map(|key| key.time.as_nanos())
    }

    /// Handles every event before `horizon` ns, where nothing from another part can arrive any more;
    /// gives how many there were.
    ///
    /// They are handled in the order of their keys, so that nothing rolls them back and nothing is
    /// kept of them, but where their LP has run ahead before and that is not committed yet.
    pub(super) fn handle_certain(&mut self, horizon: u64) -> usize {
        self.certain_before = horizon;
        let mut done = 0;
        let mut at = None;
        loop {
            // After a fault, handlers go on with states that no committed event has seen.
            let committed = self.fault.is_none();
            let handling = if committed { Handling::Committed } else { Handling::Speculative };
            let events =
                panics::caught(handling, || self.certain_events(horizon, &mut done, &mut at));
            let Err(panicked) = events else { return done };
            self.note_panic(panicked, at);
            done += 1;
        }
    }

    fn certain_events(
        &mut self,
        horizon: u64,
        done: &mut usize,
        at: &mut Option<(EventKey, LpId)>,
    ) {
        while let Some(event) = self.next_before(horizon) {
            let location = self.layout.locate(self.outgoing.setup.rules, event.destination);
            if self.history.get(self.newest[location.local]).is_some() {
                *at = None;
                panics::during(Handling::Speculative, || self.execute_rarely(event));
            } else {
                *at = Some((event.key(), event.destination));
                self.execute_certain(event, location);
            }
            if !self.outgoing.posted.is_empty() {
                self.deliver_posted();
            }
            *done += 1;
        }
    }

    /// Handles at most `count` events before `limit` ns speculatively; gives how many there were.
    pub(super) fn speculate(&mut self, limit: u64, count: usize) -> usize {
        let mut done = 0;
        while done < count {
            let batch =
                panics::caught(Handling::Speculative, || self.batch(limit, count, &mut done));
            let Err(panicked) = batch else { break };
            self.note_panic(panicked, None);
            done += 1;
        }
        done
    }

    fn batch(&mut self, limit: u64, count: usize, done: &mut usize) {
        while *done < count {
            let Some(event) = self.next_before(limit) else { return };
            self.execute(event);
            if !self.outgoing.posted.is_empty() {
                self.deliver_posted();
            }
            *done += 1;
        }
    }

    /// Notes a panic of the event `at`, which is certain, or else of the newest record.
    fn note_panic(&mut self, problem: Problem, at: Option<(EventKey, LpId)>) {
        self.outgoing.posted.clear();
        match at {
            Some((key, lp)) => {
                let rules = self.outgoing.setup.rules;
                note_fault(&mut self.fault, rules, lp, key, problem);
            }
            None => self.history.note_problem(Box::new(problem)),
        }
    }

    /// Takes the next event before `limit` ns that was not annihilated.
    #[inline(always)]
    fn next_before(&mut self, limit: u64) -> Option<Event<Tagged<L::Message>>> {
        loop {
            let event = self.outgoing.queue.pop_before(limit)?;
            if !self.cancelled.is_empty() && self.cancelled.remove(&event.message.attempt) {
                continue;
            }
            if self.withdrawn.contains(&event) {
                self.drop_withdrawn(event);
                continue;
            }
            if let Some(coming) = self.outgoing.queue.ahead(PREFETCH) {
                let location = self.layout.locate(self.outgoing.setup.rules, coming.destination);
                std::hint::black_box(self.slots[location.local].counters.sent);
            }
            return Some(event);
        }
    }

    /// Drops an event that its LP has taken back, for good if nothing can roll that back.
    #[cold]
    fn drop_withdrawn(&mut self, event: Event<Tagged<L::Message>>) {
        let (lp, sequence) = (event.destination, event.key().sequence);
        self.withdrawn.remove(lp, sequence);
        if event.time() >= self.certain_before {
            self.dropped.insert((lp, sequence), event);
        }
    }

    /// Makes events pending again that the LP had taken back in what is rolled back now.
    fn restore(&mut self, lp: LpId, sequences: Vec<u64>) {
        for sequence in sequences {
            if !self.withdrawn.remove(lp, sequence)
                && let Some(event) = self.dropped.remove(&(lp, sequence))
            {
                self.outgoing.queue.push(event);
            }
        }
    }

    /// As [`Self::execute`], for a caller that rarely does so.
    #[cold]
    fn execute_rarely(&mut self, event: Event<Tagged<L::Message>>) {
        self.execute(event);
    }

    /// Handles an event that nothing can roll back any more, and commits it.
    #[inline(always)]
    fn execute_certain(&mut self, event: Event<Tagged<L::Message>>, location: Location) {
        let rules = self.outgoing.setup.rules;
        let slot = &mut self.slots[location.local];
        let (key, me) = (event.key(), event.destination);
        self.counts.handled += 1;
        self.counts.certain += 1;
        self.counts.committed += 1;
        slot.counters.handled += 1;
        let mut port = Certain {
            outgoing: &mut self.outgoing,
            ledger: &mut self.ledger,
            withdrawn: &mut self.withdrawn,
            origin: Origin { key, lp: me, member: location.member },
            problem: None,
        };
        let counters = &mut slot.counters;
        let mut turn = Turn { rules, key, me, group: location.group, counters, port: &mut port };
        slot.state.handle(event.message.message, &mut turn);
        if let Some(problem) = port.problem {
            note_fault(&mut self.fault, rules, me, key, *problem);
        }
        if rules.traced {
            self.ledger.trace(location.local, &key);
        }
    }

    /// Handles an event with everything kept that is needed to roll it back.
    #[inline(always)]
    fn execute(&mut self, event: Event<Tagged<L::Message>>) {
        let rules = self.outgoing.setup.rules;
        let location = self.layout.locate(rules, event.destination);
        let slot = &mut self.slots[location.local];
        let (key, me) = (event.key(), event.destination);
        let message = event.message.message.clone();
        let newest = &mut self.newest[location.local];
        debug_assert!(
            self.history
                .get(*newest)
                .and_then(|record| record.event.as_ref())
                .is_none_or(|before| before.key() < key),
            "an LP handles its events in the order of their keys"
        );
        *newest = self.history.begin(event, *newest, &slot.state, slot.counters);
        self.outgoing.front = self.outgoing.front.max(key.time.as_nanos());
        self.counts.handled += 1;
        slot.counters.handled += 1;
        let record = *newest;
        let History { log, sent, outputs, withdrawals, .. } = &mut self.history;
        let outputs_before = outputs.len();
        let mut port = Speculative {
            outgoing: &mut self.outgoing,
            withdrawn: &mut self.withdrawn,
            record,
            withdrawals,
            log,
            sent,
            outputs,
            problem: None,
        };
        let counters = &mut slot.counters;
        let mut turn = Turn { rules, key, me, group: location.group, counters, port: &mut port };
        slot.state.handle(message, &mut turn);
        let problem = port.problem;
        let given_out = self.history.outputs.len() - outputs_before;
        if given_out > 0 {
            let record = self.history.newest().expect("it was just begun");
            record.outputs = u32::try_from(given_out).expect("a handler's outputs are counted");
        }
        if let Some(problem) = problem {
            self.history.note_problem(problem);
        }
    }

    fn deliver_posted(&mut self) {
        let mut posted = std::mem::take(&mut self.outgoing.posted);
        for event in posted.drain(..) {
            let part = self.outgoing.part_of(event.destination);
            if part == self.outgoing.part {
                self.insert(event);
            } else {
                self.outbox.push(part, event.time(), Envelope::Event(event));
            }
        }
        self.outgoing.posted = posted;
    }

    /// Makes `event` pending, after rolling its LP back if the event is a straggler.
    fn insert(&mut self, event: Event<Tagged<L::Message>>) {
        if event.time() <= self.outgoing.front {
            let local = self.layout.locate(self.outgoing.setup.rules, event.destination).local;
            let newest = self.history.get(self.newest[local]);
            let late = |newest: &Event<_>| newest.key() > event.key();
            if newest.is_some_and(|newest| newest.event.as_ref().is_some_and(late)) {
                self.roll_back(local, event.key(), None);
                self.deliver_anti_messages();
            }
        }
        self.outgoing.queue.push(event);
    }

    /// Takes in what another part has sent.
    ///
    /// # Panics
    /// If that would change what is final.
    pub(super) fn receive(&mut self, envelope: Envelope<L::Message>) {
        let final_before = self.certain_before.max(self.committed_before);
        assert!(
            envelope.time() >= final_before,
            "an event for {} ns arrived after everything before {final_before} ns was final",
            envelope.time()
        );
        match envelope {
            Envelope::Event(event) => self.insert(event),
            Envelope::Anti(sent) => {
                self.anti_messages.push(sent);
                self.deliver_anti_messages();
            }
        }
    }

    /// Rolls back what the LP at `local` handled from `key` on. Those events are pending again, but
    /// the one of the attempt `annihilated`.
    fn roll_back(&mut self, local: usize, key: EventKey, annihilated: Option<u64>) {
        self.counts.rollbacks += 1;
        self.rollbacks_per_lp[local] = self.rollbacks_per_lp[local].saturating_add(1);
        while let Some(newest) = self.history.get(self.newest[local])
            && let Some(event) = &newest.event
            && event.key() >= key
        {
            let (at, lp) = (self.newest[local], event.destination);
            self.newest[local] = newest.previous;
            if let Some(sequences) = self.history.withdrawals.remove(&at) {
                self.restore(lp, sequences);
            }
            let Slot { state, counters } = &mut self.slots[local];
            match self.history.undo(at, state, counters, &mut self.anti_messages) {
                Ok(event) if annihilated == Some(event.message.attempt) => {}
                Ok(event) => self.outgoing.queue.push(event),
                Err(key) => {
                    let difference = meikyo_undo::Unclaimed.to_string();
                    let problem = Problem::Escape { difference };
                    let fault = share::fault(self.outgoing.setup.rules, lp, Some(key), problem);
                    self.fault.get_or_insert(fault);
                    return;
                }
            }
            self.counts.undone += 1;
        }
    }

    /// Delivers all anti-messages, also those that their rollbacks lead to.
    fn deliver_anti_messages(&mut self) {
        while let Some(sent) = self.anti_messages.pop() {
            let part = self.outgoing.part_of(sent.destination);
            if part == self.outgoing.part {
                self.annihilate(sent);
            } else {
                self.outbox.push(part, sent.time, Envelope::Anti(sent));
            }
        }
    }

    /// Removes the event that `sent` stands for: rolls its LP back if the event was handled, and has it
    /// dropped at its turn if not.
    fn annihilate(&mut self, sent: Sent) {
        let local = self.layout.locate(self.outgoing.setup.rules, sent.destination).local;
        let mut at = self.newest[local];
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

    /// Commits everything before `gvt` ns, and collects what was kept of it.
    ///
    /// # Panics
    /// If `gvt` is earlier than what is committed already.
    pub(super) fn commit(&mut self, gvt: u64) {
        assert!(gvt >= self.committed_before, "the GVT goes back");
        self.committed_before = gvt;
        let rules = self.outgoing.setup.rules;
        let Self { history, ledger, layout, counts, fault, .. } = self;
        history.commit_before(gvt, |event, outputs, problem| {
            debug_assert!(event.time() < gvt, "nothing from the GVT on is committed");
            counts.committed += 1;
            let (key, lp) = (event.key(), event.destination);
            for output in outputs {
                let member = layout.locate(rules, lp).member;
                ledger.output(Origin { key, lp, member }, output);
            }
            if rules.traced {
                ledger.trace(layout.locate(rules, lp).local, &key);
            }
            if let Some(problem) = problem {
                note_fault(fault, rules, lp, key, *problem);
            }
        });
        self.history.collect_fossils();
        if !self.dropped.is_empty() {
            self.dropped.retain(|_, event| event.time() >= gvt);
        }
    }
}

/// How many events before its turn the LP of an event is brought into the cache.
const PREFETCH: usize = 6;

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

/// Takes the events that handlers send, and pends at once those that cannot be stragglers.
struct Outgoing<'a, M> {
    setup: &'a Setup<'a>,
    part: usize,
    /// The latest time handled speculatively, in ns: nothing after it can be a straggler.
    front: u64,
    queue: Queue<Tagged<M>>,
    /// Events for other parts, and those that may be stragglers here.
    posted: Vec<Event<Tagged<M>>>,
    /// The attempt of the next event that is sent, different over all parts.
    attempts: u64,
}

impl<M> Outgoing<'_, M> {
    /// Sends `event`; gives what its anti-message would be.
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
        self.setup.partition.part_of(self.setup.rules.group_of(lp), lp)
    }
}

/// Takes what a handler does, with everything that is needed to roll it back.
struct Speculative<'a, 'setup, M> {
    outgoing: &'a mut Outgoing<'setup, M>,
    withdrawn: &'a mut Withdrawn,
    /// The number of the event's record, and what each record took back.
    record: u64,
    withdrawals: &'a mut BTreeMap<u64, Vec<u64>>,
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

    fn withdraw(&mut self, lp: LpId, sequence: u64) {
        if self.withdrawn.insert(lp, sequence) {
            self.withdrawals.entry(self.record).or_default().push(sequence);
        }
    }
}

/// Lets what a handler does take effect at once: the event is committed as it is handled.
struct Certain<'a, 'setup, M> {
    outgoing: &'a mut Outgoing<'setup, M>,
    ledger: &'a mut Ledger,
    withdrawn: &'a mut Withdrawn,
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

    fn withdraw(&mut self, lp: LpId, sequence: u64) {
        self.withdrawn.insert(lp, sequence);
    }
}
