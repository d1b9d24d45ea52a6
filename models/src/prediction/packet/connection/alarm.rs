//! An instant that is moved far more often than it comes.

use meikyo_sim::Context;
use meikyo_undo::{Cell, fields};
use meikyo_units::Nanos;

use crate::prediction::packet::signal::Signal;

/// An instant at which something is due, unless it is moved before.
///
/// An acknowledgement moves the time-out of its connection, and an event for each would stay in memory
/// until its instant. So there is one event, which looks at its instant whether it is still the one.
#[derive(Clone, Debug, PartialEq, Default)]
pub(super) struct Alarm {
    /// When it is due; 0 if it is not.
    due_at: Cell<u64>,
    /// The instant of its event; 0 without one.
    event_at: Cell<u64>,
}
fields!(Alarm { due_at, event_at });

impl Alarm {
    /// Whether something is due at any time.
    pub(super) fn is_set(&self) -> bool {
        self.due_at.get() > 0
    }

    /// Makes it due at an instant that is not before now. `signal` is what comes then.
    pub(super) fn set(&mut self, at: u64, signal: Signal, context: &mut impl Context<Signal>) {
        self.due_at.set(context, at);
        let event_at = self.event_at.get();
        if event_at == 0 || at < event_at {
            self.event_at.set(context, at);
            let wait = at - context.now().as_nanos();
            context.send(context.me(), Nanos::new(wait), signal);
        }
    }

    pub(super) fn clear(&mut self, context: &mut impl Context<Signal>) {
        self.due_at.set(context, 0);
    }

    /// Whether it is due now that `signal` has come; it is not set any more then.
    pub(super) fn is_due(&mut self, signal: Signal, context: &mut impl Context<Signal>) -> bool {
        let now = context.now().as_nanos();
        if self.event_at.get() != now {
            return false;
        }
        self.event_at.set(context, 0);
        let at = self.due_at.get();
        if at > now {
            self.set(at, signal, context);
            return false;
        }
        self.due_at.set(context, 0);
        at > 0
    }
}
