//! When the ports of a device send next, without an event for each frame.
//!
//! A frame that waits leaves when the one before it has ended, which is known long before. It arrives at
//! the other end of its cable a whole frame later at least, so that it is early enough if the device
//! looks at it when anything else happens there, and does then what it has not done since the last time
//! ([`Agenda::overdue`]). Only if nothing happens until the frame has nearly ended, an event of the device's own
//! does it ([`Agenda::arm`]).
//!
//! Ports are in a list by the instants at which they send next. A port that has sent comes in again a frame
//! later, behind nearly all others if that was a full one, and before nearly all if it was small.

use meikyo_sim::Context;
use meikyo_undo::{Cell, Log, fields};
use meikyo_units::Nanos;

use super::signal::{Signal, TURN_OF_LEAVING};
use crate::prediction::ranks::{number, rank};

/// What never comes.
pub(super) const NEVER: u64 = u64::MAX;

/// When the frames that wait first at each port begin to leave.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Agenda {
    /// One for each port, and a last one that never comes: the list begins and ends there.
    entries: Vec<Entry>,
    /// How late the device may look at most of them: at full frames.
    usual: u64,
    /// How many are in the list that may be less late.
    hurried: Cell<u32>,
    /// When the device will be told to look.
    told_at: Cell<u64>,
}
fields!(Agenda { entries, hurried, told_at });

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    /// When a frame begins to leave; [`NEVER`] if it is not in the list.
    start: Cell<u64>,
    /// How much later the device has to look at it at last.
    late: Cell<u64>,
    before: Cell<u32>,
    after: Cell<u32>,
}
fields!(Entry { start, late, before, after });

impl Agenda {
    /// That of a device with so many ports, at which nothing waits; at a full frame it may look `usual` ns late.
    pub(super) fn new(ports: usize, usual: u64) -> Self {
        let entry = Entry {
            start: Cell::new(NEVER),
            late: Cell::default(),
            before: Cell::new(number(ports)),
            after: Cell::new(number(ports)),
        };
        let entries = vec![entry; ports + 1];
        let told_at = Cell::new(NEVER);
        Self { entries, usual, hurried: Cell::default(), told_at }
    }

    /// A frame leaves a port from `start` on, which has to be looked at until `late` after that.
    pub(super) fn plan(&mut self, port: usize, start: u64, late: u64, log: &mut impl Log) {
        let entry = &mut self.entries[port];
        let (old_start, old_late) = (entry.start.get(), entry.late.get());
        let hurried = |start: u64, late: u64| u32::from(start != NEVER && late < self.usual);
        let count = self.hurried.get() + hurried(start, late) - hurried(old_start, old_late);
        self.hurried.set(log, count);
        entry.late.set(log, late);
        if start == old_start {
            return;
        }
        entry.start.set(log, start);
        if old_start != NEVER {
            self.unlink(port, log);
        }
        if start != NEVER {
            self.link(port, start, log);
        }
    }

    /// When a frame leaves a port, as it was planned; [`NEVER`] if none does.
    pub(super) fn start(&self, port: usize) -> u64 {
        self.entries[port].start.get()
    }

    /// Nothing leaves a port.
    pub(super) fn forget(&mut self, port: usize, log: &mut impl Log) {
        self.plan(port, NEVER, 0, log);
    }

    /// The frame that begins to leave first, before an instant: its port, and when it does. It is to be sent
    /// and planned anew.
    pub(super) fn overdue(&self, before: u64) -> Option<(usize, u64)> {
        let first = self.first();
        let start = self.start(first);
        (start < before).then_some((first, start))
    }

    /// Sees to it that the device looks in time. To be called after each event.
    pub(super) fn arm(&mut self, signal: &Signal, context: &mut impl Context<Signal>) {
        let now = context.now().as_nanos();
        if matches!(signal, Signal::Look) && self.told_at.get() == now {
            self.told_at.set(context, NEVER);
        }
        let deadline = self.deadline();
        if deadline < self.told_at.get() {
            self.told_at.set(context, deadline);
            let wait = Nanos::new(deadline - now);
            context.send_with_priority(context.me(), wait, TURN_OF_LEAVING, Signal::Look);
        }
    }

    /// Until when the device has to look at last; [`NEVER`] if nothing leaves.
    fn deadline(&self) -> u64 {
        let mut at = self.first();
        let entry = &self.entries[at];
        if self.hurried.get() == 0 {
            return entry.start.get().saturating_add(self.usual);
        }
        let mut deadline = NEVER;
        while self.start(at) < deadline {
            let entry = &self.entries[at];
            deadline = deadline.min(entry.start.get() + entry.late.get());
            at = rank(entry.after.get());
        }
        deadline
    }

    /// The place of the entry that never comes.
    fn end(&self) -> usize {
        self.entries.len() - 1
    }

    fn first(&self) -> usize {
        rank(self.entries[self.end()].after.get())
    }

    fn unlink(&mut self, port: usize, log: &mut impl Log) {
        let [before, after] =
            [&self.entries[port].before, &self.entries[port].after].map(Cell::get);
        self.entries[rank(before)].after.set(log, after);
        self.entries[rank(after)].before.set(log, before);
    }

    /// Puts a port behind all that send at the same instant or before, looked for from the nearer end.
    fn link(&mut self, port: usize, start: u64, log: &mut impl Log) {
        let end = &self.entries[self.end()];
        let [mut before, mut after] = [&end.before, &end.after].map(|end| rank(end.get()));
        let [first, last] = [after, before].map(|end| self.start(end));
        if start.saturating_sub(first) < last.saturating_sub(start) && first != NEVER {
            before = self.end();
            while self.start(after) <= start {
                (before, after) = (after, rank(self.entries[after].after.get()));
            }
        } else {
            after = self.end();
            while before != self.end() && self.start(before) > start {
                (after, before) = (before, rank(self.entries[before].before.get()));
            }
        }
        self.entries[port].before.set(log, number(before));
        self.entries[port].after.set(log, number(after));
        self.entries[before].after.set(log, number(port));
        self.entries[after].before.set(log, number(port));
    }
}

#[cfg(test)]
mod tests {
    use meikyo_undo::Forget;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_start_and_the_first_deadline_are_those_of_a_list(
            ports in 1..50_usize,
            changes in prop::collection::vec(
                (any::<prop::sample::Index>(), 0..30_u64, 0..9_u64),
                0..200,
            ),
        ) {
            let mut list = vec![(NEVER, 0); ports];
            let mut agenda = Agenda::new(ports, 8);
            for (port, start, late) in changes {
                let port = port.index(ports);
                // The greatest of them stands for never.
                if start == 29 {
                    list[port] = (NEVER, 0);
                    agenda.forget(port, &mut Forget);
                } else {
                    list[port] = (start, late);
                    agenda.plan(port, start, late, &mut Forget);
                }
                let first = list.iter().map(|(start, _)| *start).min().unwrap();
                let overdue = agenda.overdue(NEVER);
                prop_assert_eq!(overdue.map(|(_, start)| start), (first != NEVER).then_some(first));
                if let Some((port, start)) = overdue {
                    prop_assert_eq!(list[port].0, start);
                }
                let deadlines = list.iter().map(|(start, late)| start.saturating_add(*late));
                prop_assert_eq!(agenda.deadline(), deadlines.min().unwrap());
            }
        }
    }
}
