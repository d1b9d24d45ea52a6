//! The sending side of a cable: at a card of a host or at a port of a switch.

use meikyo_sim::{Context, LpId};
use meikyo_undo::{Cell, Log, fields};
use meikyo_units::{Bytes, Nanos, SimTime};

use super::known::{PAYLOAD, Shared};
use super::signal::{Frame, Signal};
use crate::prediction::course::Course;

/// What sends frames on a lane, one after the other, unless it is stopped.
///
/// It keeps no frames: who owns it does, and asks [`Port::ready`] before it hands one over.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Port {
    /// By its place in the network.
    pub(crate) lane: u32,
    receiver: LpId,
    /// When the frame that is being sent ends.
    free_at: Cell<u64>,
    stopped: Cell<bool>,
    carried: Cell<u64>,
    /// Frames sent, whatever is in them.
    frames: Cell<u64>,
    /// What it sends over time, if that is asked for.
    course: Option<Course>,
}
fields!(Port { free_at, stopped, carried, frames, course });

impl Port {
    pub(super) fn new(lane: u32, receiver: LpId, shared: &Shared) -> Self {
        Self {
            course: shared.options.courses.then(Course::default),
            lane,
            receiver,
            free_at: Cell::default(),
            stopped: Cell::default(),
            carried: Cell::default(),
            frames: Cell::default(),
        }
    }

    /// Whether a frame may be sent at this instant.
    pub(super) fn ready(&self, now: u64) -> bool {
        !self.stopped.get() && self.free_at.get() <= now
    }

    /// When it has sent what it is sending.
    pub(crate) fn free_at(&self) -> u64 {
        self.free_at.get()
    }

    /// Who receives what it sends.
    pub(super) fn receiver(&self) -> LpId {
        self.receiver
    }

    /// Data that it has sent.
    pub(crate) fn carried(&self) -> Bytes {
        Bytes::new(self.carried.get())
    }

    pub(crate) fn frames(&self) -> u64 {
        self.frames.get()
    }

    /// How long it was busy up to `end`. What it was to send before `end` and sends beyond is not counted.
    pub(crate) fn busy(&self, shared: &Shared, end: SimTime) -> Nanos {
        let beyond = self.free_at().saturating_sub(end.as_nanos());
        shared.span_of_frames(self.frames(), self.carried()).saturating_sub(Nanos::new(beyond))
    }

    /// What it has sent over time, if that was asked for.
    pub(super) fn course(&self) -> Option<&Course> {
        self.course.as_ref()
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.get()
    }

    /// Sends a frame from `start` on, to an input of its receiver. An event may be up to the frame's own time
    /// later than that.
    pub(super) fn send(
        &mut self,
        shared: &Shared,
        (frame, input): (Frame, u16),
        start: u64,
        context: &mut impl Context<Signal>,
    ) {
        let arrival = self.occupy(shared, frame.payload, start, context);
        let wait = Nanos::new(arrival - context.now().as_nanos());
        let turn = u32::from(input);
        context.send_with_priority(self.receiver, wait, turn, Signal::Frame { frame });
    }

    /// Is busy with a frame of so many data from `start` on. Gives when it has arrived whole.
    pub(super) fn occupy(
        &mut self,
        shared: &Shared,
        payload: u16,
        start: u64,
        log: &mut impl Log,
    ) -> u64 {
        self.free_at.set(log, start + shared.frame_span(payload));
        self.carried.add(log, u64::from(payload));
        self.frames.add(log, 1);
        if let Some(course) = &mut self.course {
            course.add(start, u64::from(payload), log);
        }
        start + shared.away_after(payload) + shared.options.hop_delay.get()
    }

    /// Was busy with so many full frames, the first from `start` on and each after the one before.
    pub(super) fn occupy_by(
        &mut self,
        shared: &Shared,
        count: u32,
        start: u64,
        log: &mut impl Log,
    ) {
        let (span, payload) = (shared.full_span.get(), u64::from(PAYLOAD));
        let starts = (0..u64::from(count)).map(|at| start + at * span);
        self.free_at.set(log, start + u64::from(count) * span);
        self.carried.add(log, u64::from(count) * payload);
        self.frames.add(log, u64::from(count));
        if let Some(course) = &mut self.course {
            starts.for_each(|start| course.add(start, payload, log));
        }
    }

    /// Stops after the frame that is being sent, or goes on.
    pub(super) fn stop(&mut self, stop: bool, log: &mut impl Log) {
        self.stopped.set(log, stop);
    }
}
