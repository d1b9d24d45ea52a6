//! The receiving half of an end: segments are handed on in their order, and acknowledged.

use meikyo_sim::Context;
use meikyo_undo::{Cell, Map, fields};

use super::alarm::Alarm;
use super::runs;
use crate::prediction::packet::known::PAYLOAD;
use crate::prediction::packet::signal::{Awaited, Frame, OF_SENT_AGAIN, SENT_AGAIN, Signal};

/// How long an acknowledgement waits for company at most: Linux's least.
const COMPANY_NS: u64 = 40_000_000;
/// Segments of a new connection that are acknowledged at once, so that its window opens.
const QUICK: u32 = 16;

/// What an end has received.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Receiver {
    /// The place of its end in the host.
    end: u32,
    /// Up to which segment everything has arrived, and had when something was acknowledged last.
    arrived: Cell<u32>,
    told: Cell<u32>,
    /// Whether the first segment that arrived after that had been sent before (RFC 7323, section 4.3).
    of_sent_again: Cell<bool>,
    /// What arrived beyond that.
    beyond: Map<u32, Frame>,
    runs: Map<u32, u32>,
    /// The run that a segment was added to last.
    run_from: Cell<u32>,
    run_to: Cell<u32>,
    /// Data that are not acknowledged.
    data: Cell<u64>,
    /// Segments that are still acknowledged at once.
    quick: Cell<u32>,
    /// Whether an acknowledgement has to leave.
    due: Cell<bool>,
    company: Alarm,
}
fields!(Receiver {
    arrived,
    told,
    of_sent_again,
    beyond,
    runs,
    run_from,
    run_to,
    data,
    quick,
    due,
    company
});

impl Receiver {
    pub(super) fn new(end: u32) -> Self {
        Self {
            end,
            arrived: Cell::default(),
            told: Cell::default(),
            of_sent_again: Cell::default(),
            beyond: Map::default(),
            runs: Map::default(),
            run_from: Cell::default(),
            run_to: Cell::default(),
            data: Cell::default(),
            quick: Cell::new(QUICK),
            due: Cell::default(),
            company: Alarm::default(),
        }
    }

    /// A segment has arrived. Gives whether it is the next one; what follows it then is to be taken by
    /// [`Receiver::next`].
    pub(super) fn accept(&mut self, frame: &Frame, context: &mut impl Context<Signal>) -> bool {
        let arrived = self.arrived.get();
        if frame.segment < arrived {
            self.due.set(context, true);
            return false;
        }
        if frame.segment > arrived {
            self.beyond.insert(context, frame.segment, *frame);
            let [from, to] = runs::add(&mut self.runs, [frame.segment, frame.segment + 1], context);
            self.run_from.set(context, from);
            self.run_to.set(context, to);
            self.due.set(context, true);
            return false;
        }
        if arrived == self.told.get() {
            self.of_sent_again.set(context, frame.stamps & SENT_AGAIN > 0);
        }
        self.arrived.set(context, arrived + 1);
        self.data.add(context, u64::from(frame.payload));
        if !self.beyond.is_empty() || self.data.get() > u64::from(PAYLOAD) {
            self.due.set(context, true);
        } else if self.quick.get() > 0 {
            self.quick.set(context, self.quick.get() - 1);
            self.due.set(context, true);
        } else if !self.company.is_set() {
            let at = context.now().as_nanos() + COMPANY_NS;
            self.company.set(at, Signal::Due { end: self.end, awaited: Awaited::Company }, context);
        }
        true
    }

    /// What arrived before its turn, once it is its turn.
    pub(super) fn next(&mut self, context: &mut impl Context<Signal>) -> Option<Frame> {
        let arrived = self.arrived.get();
        let frame = self.beyond.remove(context, &arrived)?;
        self.arrived.set(context, arrived + 1);
        runs::forget_below(&mut self.runs, arrived + 1, context);
        Some(frame)
    }

    /// [`Signal::Due`] has come.
    pub(super) fn on_due(&mut self, context: &mut impl Context<Signal>) {
        let signal = Signal::Due { end: self.end, awaited: Awaited::Company };
        if self.company.is_due(signal, context) {
            self.due.set(context, true);
        }
    }

    /// Whether an acknowledgement has to leave, even without data.
    pub(super) fn is_due(&self) -> bool {
        self.due.get()
    }

    /// Writes an acknowledgement into a frame that leaves.
    pub(super) fn acknowledge(&mut self, frame: &mut Frame, context: &mut impl Context<Signal>) {
        let arrived = self.arrived.get();
        frame.arrived = arrived;
        if self.of_sent_again.get() {
            frame.stamps |= OF_SENT_AGAIN;
        }
        self.told.set(context, arrived);
        let run = [self.run_from.get().max(arrived), self.run_to.get()];
        // Saturates: a run that is longer than can be said is said to be as long as that.
        let short = |count: u32| u16::try_from(count).unwrap_or(u16::MAX);
        // One too far away to be said is said to be none.
        let beyond = u16::try_from(run[0] - arrived).ok().filter(|_| run[0] < run[1]);
        frame.run = beyond.map_or([0, 0], |beyond| [beyond, short(run[1] - run[0])]);
        self.data.set(context, 0);
        self.due.set(context, false);
        self.company.clear(context);
    }
}
