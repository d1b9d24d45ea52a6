//! When the ports of a device send next, without an event for each frame.
//!
//! A frame that waits leaves when the one before it has ended, which is known long before. It arrives at
//! the other end of its cable a whole frame later at least, so that it is early enough if the device
//! looks at it when anything else happens there, and does then what it has not done since the last time
//! ([`Agenda::overdue`]). Only if nothing happens until the frame has ended, an event of the device's own
//! does it ([`Agenda::arm`]).

use meikyo_sim::Context;
use meikyo_undo::{Cell, Log, fields};
use meikyo_units::Nanos;

use super::earliest::{Earliest, NEVER};
use super::signal::{Signal, TURN_OF_LEAVING};

/// When the frames that wait first at each port begin to leave.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Agenda {
    starts: Earliest,
    /// Until when the device has to look at each.
    deadlines: Earliest,
    /// When the device will be told to look.
    told_at: Cell<u64>,
}
fields!(Agenda { starts, deadlines, told_at });

impl Agenda {
    /// That of a device with so many ports, at which nothing waits.
    pub(super) fn new(ports: usize) -> Self {
        let [starts, deadlines] = [Earliest::new(ports), Earliest::new(ports)];
        Self { starts, deadlines, told_at: Cell::new(NEVER) }
    }

    /// A frame leaves a port from `start` on, which has to be looked at until `deadline`.
    pub(super) fn plan(&mut self, port: usize, start: u64, deadline: u64, log: &mut impl Log) {
        self.starts.set(port, start, log);
        self.deadlines.set(port, deadline, log);
    }

    /// When a frame leaves a port, as it was planned; [`NEVER`] if none does.
    pub(super) fn start(&self, port: usize) -> u64 {
        self.starts.get(port)
    }

    /// Nothing leaves a port.
    pub(super) fn forget(&mut self, port: usize, log: &mut impl Log) {
        self.plan(port, NEVER, NEVER, log);
    }

    /// The frame that began to leave first before an event at `now`: its port, and when it did. It is to be
    /// sent and planned anew.
    pub(super) fn overdue(&self, now: u64, signal: &Signal) -> Option<(usize, u64)> {
        let start = self.starts.least();
        let begun = start < now || start == now && matches!(signal, Signal::Look);
        begun.then(|| (self.starts.place(), start))
    }

    /// Sees to it that the device looks in time. To be called after each event.
    pub(super) fn arm(&mut self, signal: &Signal, context: &mut impl Context<Signal>) {
        let now = context.now().as_nanos();
        if matches!(signal, Signal::Look) && self.told_at.get() == now {
            self.told_at.set(context, NEVER);
        }
        let deadline = self.deadlines.least();
        if deadline < self.told_at.get() {
            self.told_at.set(context, deadline);
            let wait = Nanos::new(deadline - now);
            context.send_with_priority(context.me(), wait, TURN_OF_LEAVING, Signal::Look);
        }
    }
}
