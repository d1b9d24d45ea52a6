//! The history of one part: what it has handled speculatively and may have to roll back.
//!
//! It stores and gives back; which records are rolled back and up to where they are committed is its
//! caller's decision.

use std::collections::{BTreeMap, VecDeque};

use meikyo_undo::{Mark, Unclaimed, UndoLog};

use crate::context::{Counters, Lp};
use crate::fault::Problem;
use crate::key::{Event, EventKey, LpId};
use crate::statistics::Output;

/// The number of no record.
pub(super) const NONE: u64 = u64::MAX;

/// A message and which of its sender's attempts sent it: an event that is sent, rolled back and sent
/// again has the same key both times, so that an anti-message needs the attempt to find its event.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Tagged<M> {
    pub(crate) attempt: u64,
    pub(crate) message: M,
}

/// An event that was sent, as its anti-message needs it.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Sent {
    /// When it happens, in ns.
    pub(crate) time: u64,
    pub(crate) destination: LpId,
    pub(crate) attempt: u64,
}

/// One event that was handled speculatively.
#[derive(Debug)]
pub(super) struct Record<M> {
    /// The event, to be handled again; none after it was rolled back.
    pub(super) event: Option<Event<Tagged<M>>>,
    /// The number of the LP's record before this one.
    pub(super) previous: u64,
    /// How many events the LP had sent and random numbers it had drawn before.
    before: (u64, u64),
    /// Where its changes begin in the log; they end where those of the next record begin.
    changes: Mark,
    /// Where its events begin among those sent, likewise.
    sent: u64,
    /// How many outputs it gave.
    pub(super) outputs: u32,
    /// Whether it went wrong: the problem stands among the history's.
    pub(super) wrong: bool,
}

impl<M> Record<M> {
    fn time(&self) -> Option<u64> {
        self.event.as_ref().map(|event| event.time())
    }
}

/// Records in the order of handling, with what belongs to them.
///
/// Handlers run one after the other, so everything a record owns lies in one piece, and the oldest
/// part of every list is collected together.
#[derive(Debug)]
pub(super) struct History<L: Lp> {
    records: VecDeque<Record<L::Message>>,
    first: u64,
    pub(super) log: UndoLog,
    pub(super) sent: VecDeque<Sent>,
    sent_first: u64,
    pub(super) outputs: VecDeque<Output>,
    /// The problems of records that went wrong, by their number.
    problems: BTreeMap<u64, Box<Problem>>,
    /// The sequences of the events that LPs took back in a record, by its number.
    pub(super) withdrawals: BTreeMap<u64, Vec<u64>>,
    /// The states before each record, where states are copied.
    copies: VecDeque<Option<L>>,
}

impl<L: Lp> History<L> {
    pub(super) fn new() -> Self {
        Self {
            records: VecDeque::new(),
            first: 0,
            log: UndoLog::new(),
            sent: VecDeque::new(),
            sent_first: 0,
            outputs: VecDeque::new(),
            problems: BTreeMap::new(),
            withdrawals: BTreeMap::new(),
            copies: VecDeque::new(),
        }
    }

    /// The bytes that the history takes, without what states and messages own elsewhere.
    pub(super) fn bytes(&self) -> usize {
        self.records.len() * size_of::<Record<L::Message>>()
            + self.sent.len() * size_of::<Sent>()
            + self.outputs.len() * size_of::<Output>()
            + self.copies.len() * size_of::<Option<L>>()
            + self.log.bytes()
    }

    /// Begins a record; what is logged, sent and given out from here on belongs to it.
    #[inline]
    pub(super) fn begin(
        &mut self,
        event: Event<Tagged<L::Message>>,
        previous: u64,
        state: &L,
        before: Counters,
    ) -> u64 {
        if L::COPIED {
            self.copies.push_back(Some(state.clone()));
        }
        self.records.push_back(Record {
            event: Some(event),
            previous,
            before: (before.sent, before.drawn),
            changes: self.log.mark(),
            sent: self.sent_first + count(self.sent.len()),
            outputs: 0,
            wrong: false,
        });
        self.first + count(self.records.len() - 1)
    }

    /// Notes what went wrong in the newest record.
    pub(super) fn note_problem(&mut self, problem: Box<Problem>) {
        let number = self.first + count(self.records.len()) - 1;
        self.problems.entry(number).or_insert(problem);
        if let Some(record) = self.records.back_mut() {
            record.wrong = true;
        }
    }

    /// The record that was begun last.
    pub(super) fn newest(&mut self) -> Option<&mut Record<L::Message>> {
        self.records.back_mut()
    }

    /// The record `at`; none if it is committed already.
    pub(super) fn get(&self, at: u64) -> Option<&Record<L::Message>> {
        if at == NONE || at < self.first { None } else { self.records.get(offset(at, self.first)) }
    }

    /// Undoes the changes of record `at` and gives its event. What it had sent is appended to
    /// `cancelled`.
    ///
    /// # Errors
    /// The key of the record if no field owns one of its changes.
    pub(super) fn undo(
        &mut self,
        at: u64,
        state: &mut L,
        counters: &mut Counters,
        cancelled: &mut Vec<Sent>,
    ) -> Result<Event<Tagged<L::Message>>, EventKey> {
        let index = offset(at, self.first);
        let (changes_end, sent_end) = match self.records.get(index + 1) {
            Some(next) => (next.changes, next.sent),
            None => (self.log.mark(), self.sent_first + count(self.sent.len())),
        };
        let record = &mut self.records[index];
        let (sent, drawn) = record.before;
        *counters = Counters { sent, drawn, handled: counters.handled - 1 };
        if record.wrong {
            self.problems.remove(&at);
        }
        if L::COPIED {
            *state = self.copies[index].take().expect("a record is rolled back once");
        } else {
            let key = record.event.as_ref().map(|event| event.key());
            let reverted = self.log.revert(record.changes, changes_end, state);
            reverted.map_err(|Unclaimed| key.expect("a record is rolled back once"))?;
        }
        let range = offset(record.sent, self.sent_first)..offset(sent_end, self.sent_first);
        cancelled.extend(self.sent.range(range));
        Ok(record.event.take().expect("a record is rolled back once"))
    }

    /// Removes the oldest records as far as they were rolled back or are before `gvt` ns. Those that
    /// were not rolled back are handed to `commit`, with what they gave out and what went wrong.
    pub(super) fn commit_before(
        &mut self,
        gvt: u64,
        mut commit: impl FnMut(
            &Event<Tagged<L::Message>>,
            &mut dyn Iterator<Item = Output>,
            Option<Box<Problem>>,
        ),
    ) {
        let mut ripe = 0;
        for record in &self.records {
            if record.time().is_some_and(|time| time >= gvt) {
                break;
            }
            let number = self.first + count(ripe);
            ripe += 1;
            let problem = if record.wrong { self.problems.remove(&number) } else { None };
            match &record.event {
                Some(event) if record.outputs > 0 => {
                    let mut given_out = self.outputs.drain(..record.outputs as usize);
                    commit(event, &mut given_out, problem);
                }
                Some(event) => commit(event, &mut std::iter::empty(), problem),
                None if record.outputs > 0 => drop(self.outputs.drain(..record.outputs as usize)),
                None => {}
            }
        }
        self.records.drain(..ripe);
        if L::COPIED {
            self.copies.drain(..ripe);
        }
        self.first += count(ripe);
        if !self.withdrawals.is_empty() {
            self.withdrawals = self.withdrawals.split_off(&self.first);
        }
    }

    /// The time of the first record that is kept and gave something out, in ns. A younger record that
    /// is earlier may stand behind it.
    pub(super) fn first_output(&self) -> Option<u64> {
        if self.outputs.is_empty() {
            return None;
        }
        self.records.iter().filter(|record| record.outputs > 0).filter_map(Record::time).min()
    }

    /// Frees what belongs to no record any more ("fossil collection").
    pub(super) fn collect_fossils(&mut self) {
        let (changes, sent) = match self.records.front() {
            Some(oldest) => (oldest.changes, oldest.sent),
            None => (self.log.mark(), self.sent_first + count(self.sent.len())),
        };
        self.log.forget_before(changes);
        self.sent.drain(..offset(sent, self.sent_first));
        self.sent_first = sent;
    }
}

#[inline]
fn count(len: usize) -> u64 {
    u64::try_from(len).expect("a length fits into 64 bits")
}

#[inline]
fn offset(at: u64, first: u64) -> usize {
    usize::try_from(at - first).expect("what is in memory is counted by usize")
}
