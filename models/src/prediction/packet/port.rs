//! The sending side of a cable: at a card of a host or at a port of a switch.

use meikyo_sim::{Context, LpId};
use meikyo_undo::{Cell, fields};
use meikyo_units::Bytes;

use super::known::Shared;
use super::signal::{Frame, Signal};

/// What sends frames on a lane, one after the other, unless it is stopped.
///
/// It keeps no frames: who owns it does, and asks [`Port::ready`] before it hands one over. While there
/// are more, it has an event at the end of each frame ([`Port::arm`]); a port with nothing to send has
/// none.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Port {
    /// By its place in the network.
    pub(super) lane: u32,
    /// By its place in its device.
    number: u32,
    receiver: LpId,
    /// When the frame that is being sent ends.
    free_at: Cell<u64>,
    armed: Cell<bool>,
    stopped: Cell<bool>,
    carried: Cell<u64>,
    /// Frames sent, whatever is in them.
    frames: Cell<u64>,
}
fields!(Port { free_at, armed, stopped, carried, frames });

impl Port {
    pub(super) fn new(lane: u32, number: u32, receiver: LpId) -> Self {
        Self {
            lane,
            number,
            receiver,
            free_at: Cell::default(),
            armed: Cell::default(),
            stopped: Cell::default(),
            carried: Cell::default(),
            frames: Cell::default(),
        }
    }

    /// Whether a frame may be sent at this instant.
    pub(super) fn ready(&self, now: u64) -> bool {
        !self.armed.get() && !self.stopped.get() && self.free_at.get() <= now
    }

    /// When it has sent what it is sending.
    pub(super) fn free_at(&self) -> u64 {
        self.free_at.get()
    }

    /// Data that it has sent.
    pub(super) fn carried(&self) -> Bytes {
        Bytes::new(self.carried.get())
    }

    pub(super) fn frames(&self) -> u64 {
        self.frames.get()
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.get()
    }

    /// Sends a frame, which [`Port::ready`] permits.
    pub(super) fn send(
        &mut self,
        shared: &Shared,
        frame: Frame,
        context: &mut impl Context<Signal>,
    ) {
        let span = shared.span(shared.octets(&frame));
        self.free_at.set(context, context.now().as_nanos() + span.get());
        self.carried.add(context, u64::from(frame.payload));
        self.frames.add(context, 1);
        let frame = Frame { step: frame.step + 1, ..frame };
        let signal = Signal::Frame { frame, lane: self.lane };
        context.send(self.receiver, span + shared.options.hop_delay, signal);
    }

    /// Asks to be told when the next frame may be sent, since there is one.
    pub(super) fn arm(&mut self, context: &mut impl Context<Signal>) {
        if self.armed.get() || self.stopped.get() {
            return;
        }
        self.armed.set(context, true);
        let wait = self.free_at.get().saturating_sub(context.now().as_nanos());
        let signal = Signal::Free { port: self.number };
        context.send(context.me(), meikyo_units::Nanos::new(wait), signal);
    }

    /// What [`Port::arm`] asked for has come.
    pub(super) fn disarm(&mut self, context: &mut impl Context<Signal>) {
        self.armed.set(context, false);
    }

    /// Stops after the frame that is being sent, or goes on.
    pub(super) fn stop(&mut self, stop: bool, context: &mut impl Context<Signal>) {
        self.stopped.set(context, stop);
    }
}
