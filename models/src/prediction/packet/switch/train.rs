//! Trains: full frames of one message that follow each other without a gap, told of by the event of their first
//! one.
//!
//! A card that has nothing else to send announces all that it will send of a message, and a switch sends a train
//! on whole while nothing else wants its port. What comes between cuts it: whoever sends then tells the receiver
//! how far the train goes ([`Signal::Cut`]), which is in time, since it takes no longer than the smallest frame. The
//! receiver does the same with what it has sent on already. Frames that are cut off and still arrive come one by one
//! ([`Signal::Next`]) until their port is free again.
//!
//! So every frame leaves at the instant at which it would leave by itself. At one instant frames arrive in the order
//! of their inputs. Where one cuts a train whose next frame arrives at the same instant by a later input, that frame
//! is *pressed*: it is handled before the first event whose turn comes after its own.
//!
//! There are no trains of TCP, whose frames differ, nor where frames are spoiled, which is drawn for each.

use meikyo_sim::Context;
use meikyo_undo::{Cell, Held, fields};
use meikyo_units::Nanos;

use super::{Switch, Waiting};
use crate::prediction::packet::known::come;
use crate::prediction::packet::signal::{Frame, Kind, Signal};
use crate::prediction::ranks::rank;

/// What comes by an input without an event for each frame.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Train {
    /// One of its frames, as it arrives.
    frame: Held<Frame>,
    /// How many frames are not accounted for, and when the first of them arrives.
    left: Cell<u32>,
    next: Cell<u64>,
    /// Whether they go on as they come.
    through: Cell<bool>,
    /// Whether the first of them arrives at this instant, and has no event that it comes by in its turn.
    pressed: Cell<bool>,
    /// When the last frame arrives of what was cut last.
    cut_at: Cell<u64>,
}
fields!(Train { frame, left, next, through, pressed, cut_at });

impl Default for Train {
    fn default() -> Self {
        Self {
            frame: Held::new(Frame::without_data(0, [0, 0], Kind::Eager)),
            left: Cell::default(),
            next: Cell::default(),
            through: Cell::default(),
            pressed: Cell::default(),
            cut_at: Cell::default(),
        }
    }
}

impl Switch {
    /// How many frames follow one that arrives by an input, as far as they have not been cut off yet.
    pub(super) fn follow(&self, at: usize, frame: &Frame, now: u64) -> u32 {
        if frame.segment == 0 || !self.shared.trains {
            return 0;
        }
        let cut_at = self.inputs[at].train.cut_at.get();
        if cut_at < now {
            return frame.segment;
        }
        come(cut_at, now, self.shared.full_span.get(), frame.segment)
    }

    /// Sends a frame on whose port is free, and so many after it as they come.
    pub(super) fn send_through(
        &mut self,
        port: usize,
        (frame, waiting): (Frame, Waiting),
        follow: u32,
        context: &mut impl Context<Signal>,
    ) {
        let now = context.now().as_nanos();
        self.end_through(usize::from(waiting.came_by), context);
        let output = &mut self.outputs[port];
        output.through.set(context, u32::from(waiting.came_by) + 1);
        if !output.to_host {
            let wait = self.shared.full_span + self.shared.options.hop_delay;
            let signal = Signal::Frame { frame: waiting.frame.followed_by(follow) };
            let turn = u32::from(waiting.turn);
            context.send_with_priority(output.port.receiver(), wait, turn, signal);
        }
        let train = &mut self.inputs[usize::from(waiting.came_by)].train;
        train.frame.set(context, frame);
        train.left.set(context, follow + 1);
        train.next.set(context, now);
        train.through.set(context, true);
    }

    /// Has so many frames after one that has arrived by an input come one by one.
    pub(super) fn send_for(
        &mut self,
        at: usize,
        (frame, follow): (Frame, u32),
        context: &mut impl Context<Signal>,
    ) {
        self.end_through(at, context);
        let next = context.now().as_nanos() + self.shared.full_span.get();
        let train = &mut self.inputs[at].train;
        train.frame.set(context, frame);
        train.left.set(context, follow);
        train.next.set(context, next);
        self.call_next(at, context);
    }

    /// Has the next frame of a train come by an event of its own.
    fn call_next(&self, at: usize, context: &mut impl Context<Signal>) {
        let wait = Nanos::new(self.inputs[at].train.next.get() - context.now().as_nanos());
        let input = u32::try_from(at).expect("inputs are few");
        context.send_with_priority(context.me(), wait, input, Signal::Next { input });
    }

    /// The train that came by an input last is over if it went through.
    fn end_through(&mut self, at: usize, context: &mut impl Context<Signal>) {
        let train = &self.inputs[at].train;
        if train.through.get() {
            let (port, _) = self.shared.ways.ends(train.frame.get().hop + 1);
            self.settle(usize::from(port), u32::MAX, context);
        }
    }

    /// Accounts for what has gone through a port, up to now and what arrives now by the inputs before `turn`, and
    /// cuts off what follows.
    pub(super) fn settle(&mut self, port: usize, turn: u32, context: &mut impl Context<Signal>) {
        let output = &mut self.outputs[port];
        let Some(at) = output.through.get().checked_sub(1) else { return };
        let shared = &*self.shared;
        let (now, span) = (context.now().as_nanos(), shared.full_span.get());
        let train = &mut self.inputs[rank(at)].train;
        let (first, left, frame) = (train.next.get(), train.left.get(), *train.frame.get());
        // The first one arrived when it began.
        let count = come(now + u64::from(at < turn), first, span, left).max(1);
        let next = first + u64::from(count) * span;
        output.through.set(context, 0);
        output.port.occupy_by(shared, count, first, context);
        let last_hop = Frame { hop: frame.hop + 1, ..frame };
        if output.to_host {
            let way = shared.ways.received(last_hop.hop);
            let done = self.coming.completes(way, &last_hop, count, context);
            debug_assert!(!done, "the last frame of a message is in no train");
        }
        train.through.set(context, false);
        train.left.set(context, left - count);
        train.next.set(context, next);
        if count == left {
            return;
        }
        if !output.to_host {
            let (_, input) = shared.ways.ends(last_hop.hop);
            let last = next + shared.options.hop_delay.get();
            let signal = Signal::Cut { input: u32::from(input), last };
            context.send(output.port.receiver(), shared.pause_delay(), signal);
        }
        if next == now {
            train.pressed.set(context, true);
            self.pressed.add(context, 1);
        }
        self.call_next(rank(at), context);
    }

    /// Of a train that comes by an input, the last frame arrives at `last`.
    pub(super) fn cut(&mut self, at: usize, last: u64, context: &mut impl Context<Signal>) {
        let shared = &*self.shared;
        let span = shared.full_span.get();
        let train = &mut self.inputs[at].train;
        train.cut_at.set(context, last);
        let (next, left) = (train.next.get(), train.left.get());
        let kept = come(last + 1, next, span, left);
        if kept == left {
            return;
        }
        train.left.set(context, kept);
        if !train.through.get() {
            return;
        }
        let hop = train.frame.get().hop + 1;
        let (port, input) = shared.ways.ends(hop);
        let output = &self.outputs[usize::from(port)];
        if !output.to_host {
            let last = last + span + shared.options.hop_delay.get();
            let signal = Signal::Cut { input: u32::from(input), last };
            context.send(output.port.receiver(), shared.pause_delay(), signal);
        }
    }

    /// The next frame of a train, if it arrives now.
    pub(super) fn take_next(
        &mut self,
        at: usize,
        context: &mut impl Context<Signal>,
    ) -> Option<Frame> {
        let train = &mut self.inputs[at].train;
        let (left, next) = (train.left.get(), train.next.get());
        if left == 0 || train.through.get() || next != context.now().as_nanos() {
            return None;
        }
        train.left.set(context, left - 1);
        train.next.set(context, next + self.shared.full_span.get());
        if train.pressed.get() {
            train.pressed.set(context, false);
            self.pressed.set(context, self.pressed.get() - 1);
        }
        Some(train.frame.get().followed_by(left - 1))
    }

    /// The first frame that is pressed and came by an input before `turn`.
    pub(super) fn take_pressed(
        &mut self,
        turn: usize,
        context: &mut impl Context<Signal>,
    ) -> Option<Frame> {
        let at = self.inputs.iter().take(turn).position(|input| input.train.pressed.get())?;
        self.take_next(at, context)
    }
}
