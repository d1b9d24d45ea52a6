//! The sending half of an end: what is under way, what is lost, and what is sent next.
//!
//! Segments are numbered; one carries data of one message only. Lost ones are found and sent again as
//! RFC 6675 says, with the segments that have arrived known from selective acknowledgements, except
//! that frames of a connection cannot overtake each other, so that every gap below what has arrived
//! is a loss. A segment that is lost once more while it is sent again costs a time-out.

use meikyo_sim::Context;
use meikyo_undo::{Cell, Deque, Map, fields};
use meikyo_units::Nanos;

use super::alarm::Alarm;
use super::estimate::Estimate;
use super::runs;
use super::window::Window;
use crate::prediction::packet::known::{PAYLOAD, Shared};
use crate::prediction::packet::signal::{Awaited, Frame, Kind, Signal};
use crate::prediction::packet::tcp::Tcp;
use crate::prediction::ranks::{number, rank};

/// Linux sends so many segments at once at most, so that a window with so much room left is still what
/// keeps back more.
const BURST: f64 = 3.0;
/// So many time-outs in a row, and a connection is given up (Linux's `tcp_retries2`).
const TIME_OUTS_MAX: u32 = 15;
/// What is added to two round trips before the last segments are probed for.
const PROBE_NS: u64 = 2_000_000;

/// A message of which not everything was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "mpi", derive(serde::Serialize, serde::Deserialize))]
struct Unsent {
    tag: u32,
    number: u32,
    kind: Kind,
    left: u64,
}

/// A segment that is not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "mpi", derive(serde::Serialize, serde::Deserialize))]
struct Segment {
    tag: u32,
    number: u32,
    kind: Kind,
    payload: u16,
}

/// What an end has to send.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sender {
    /// The place of its end in the host.
    end: u32,
    /// The way of its frames, and its first hop.
    way: u32,
    hop: u32,
    tcp: Tcp,
    unsent: Deque<Unsent>,
    flight: Deque<Segment>,
    /// Data of `flight`.
    data: Cell<u64>,
    /// The first segment of `flight`.
    first: Cell<u32>,
    /// What of `flight` has arrived, before others.
    arrived: Map<u32, u32>,
    /// What has not arrived below it is lost.
    lost_end: Cell<u32>,
    /// What was lost below it was sent again.
    again_end: Cell<u32>,
    /// A recovery lasts until everything below it has arrived.
    recovery_end: Cell<u32>,
    /// Whether a time-out began it.
    collapsed: Cell<bool>,
    window: Window,
    estimate: Estimate,
    time_out: Alarm,
    /// Whether `time_out` is for a probe, which comes before it; whether one has been sent; whether one
    /// has to be.
    probing: Cell<bool>,
    probed: Cell<bool>,
    probe: Cell<bool>,
    sent_at: Cell<u64>,
}
fields!(Sender {
    unsent,
    flight,
    data,
    first,
    arrived,
    lost_end,
    again_end,
    recovery_end,
    collapsed,
    window,
    estimate,
    time_out,
    probing,
    probed,
    probe,
    sent_at
});

impl Sender {
    pub(super) fn new(end: u32, [way, hop]: [u32; 2], tcp: Tcp) -> Self {
        Self {
            end,
            way,
            hop,
            tcp,
            unsent: Deque::default(),
            flight: Deque::default(),
            data: Cell::default(),
            first: Cell::default(),
            arrived: Map::default(),
            lost_end: Cell::default(),
            again_end: Cell::default(),
            recovery_end: Cell::default(),
            collapsed: Cell::default(),
            window: Window::new(tcp),
            estimate: Estimate::default(),
            time_out: Alarm::default(),
            probing: Cell::default(),
            probed: Cell::default(),
            probe: Cell::default(),
            sent_at: Cell::default(),
        }
    }

    /// A message is to be sent after those before it.
    pub(super) fn push(
        &mut self,
        shared: &Shared,
        ([tag, number], kind, left): ([u32; 2], Kind, u64),
        context: &mut impl Context<Signal>,
    ) {
        if self.unsent.is_empty() && self.flight.is_empty() && self.sent_at.get() > 0 {
            let idle = context.now().as_nanos() - self.sent_at.get();
            let time_out = self.estimate.time_out(shared.options.time_out);
            if idle > time_out {
                self.window.age(self.tcp, idle / time_out, context);
            }
        }
        self.unsent.push_back(context, Unsent { tag, number, kind, left });
    }

    /// The segment after all of `flight`.
    fn next_segment(&self) -> u32 {
        self.first.get() + number(self.flight.len())
    }

    fn recovers(&self) -> bool {
        self.first.get() < self.recovery_end.get()
    }

    /// Segments that are under way as far as is known.
    fn under_way(&self) -> u32 {
        let (first, next) = (self.first.get(), self.next_segment());
        let (lost_end, again_end) = (self.lost_end.get(), self.again_end.get());
        let beyond = next - lost_end - runs::count(&self.arrived, lost_end, next);
        let again = again_end - first - runs::count(&self.arrived, first, again_end);
        beyond + again
    }

    /// Everything below a segment has arrived at the other end, and a run beyond it.
    pub(super) fn acknowledged(
        &mut self,
        shared: &Shared,
        (below, run): (u32, [u32; 2]),
        context: &mut impl Context<Signal>,
    ) {
        let first = self.first.get();
        if below < first {
            return;
        }
        let limited = f64::from(self.under_way()) + BURST >= self.window.segments();
        if run[0] < run[1] {
            runs::add(&mut self.arrived, run, context);
        }
        if below > first {
            self.advance(below, limited, context);
        }
        self.find_losses(context);
        if below > first {
            if self.flight.is_empty() {
                self.time_out.clear(context);
            } else {
                self.wait(shared, context);
            }
        }
    }

    /// Forgets what is below a segment.
    fn advance(&mut self, below: u32, limited: bool, context: &mut impl Context<Signal>) {
        let now = context.now().as_nanos();
        let recovered = self.recovers();
        let count = below - self.first.get();
        for _ in 0..count {
            let segment = self.flight.pop_front(context).expect("it was sent");
            self.data.set(context, self.data.get() - u64::from(segment.payload));
        }
        self.first.set(context, below);
        runs::forget_below(&mut self.arrived, below, context);
        self.lost_end.set(context, self.lost_end.get().max(below));
        self.again_end.set(context, self.again_end.get().max(below));
        self.probed.set(context, false);
        self.estimate.acknowledged(below, now, context);
        if recovered && !self.recovers() {
            self.lost_end.set(context, below);
            self.again_end.set(context, below);
        }
        // While it recovers from single losses, the window stays; after a time-out it has to open again.
        if limited && (!recovered || self.collapsed.get()) {
            self.window.grow(self.tcp, count, now, self.estimate.round_trip(), context);
        }
        if !self.recovers() {
            self.collapsed.set(context, false);
        }
    }

    /// Looks for gaps below what has arrived.
    fn find_losses(&mut self, context: &mut impl Context<Signal>) {
        let first = self.first.get();
        let Some(last) = runs::end(&self.arrived) else { return };
        if self.recovers() {
            self.lost_end.set(context, self.lost_end.get().max(last));
        } else if last > first + self.tcp.stack.reordering() {
            self.window.shrink(self.tcp, context);
            self.estimate.give_up(context);
            self.lost_end.set(context, last);
            self.again_end.set(context, first);
            self.recovery_end.set(context, self.next_segment());
        }
    }

    /// Waits for an acknowledgement from now on.
    fn wait(&mut self, shared: &Shared, context: &mut impl Context<Signal>) {
        let least = shared.options.time_out;
        let mut wait = self.estimate.time_out(least);
        let round_trip = self.estimate.round_trip().get();
        let may = self.tcp.stack.probes() && round_trip > 0 && self.estimate.time_outs() == 0;
        let mut probing = may && !self.probed.get() && !self.recovers();
        if probing {
            let alone = self.flight.len() == 1;
            let probe = 2 * round_trip + if alone { least.get() } else { PROBE_NS };
            probing = probe < wait;
            wait = wait.min(probe);
        }
        self.probing.set(context, probing);
        let at = context.now().as_nanos() + wait;
        let signal = Signal::Due { end: self.end, awaited: Awaited::Acknowledgement };
        self.time_out.set(at, signal, context);
    }

    /// [`Signal::Due`] has come.
    pub(super) fn on_due(&mut self, shared: &Shared, context: &mut impl Context<Signal>) {
        let signal = Signal::Due { end: self.end, awaited: Awaited::Acknowledgement };
        if !self.time_out.is_due(signal, context) {
            return;
        }
        if self.probing.get() {
            self.probed.set(context, true);
            self.probe.set(context, true);
        } else if self.estimate.time_outs() < TIME_OUTS_MAX {
            let again = self.recovers() && self.collapsed.get();
            if !again {
                self.window.shrink(self.tcp, context);
            }
            self.window.collapse(context);
            self.estimate.timed_out(context);
            self.lost_end.set(context, self.next_segment());
            self.again_end.set(context, self.first.get());
            self.recovery_end.set(context, self.next_segment());
            self.collapsed.set(context, true);
        } else {
            return;
        }
        self.wait(shared, context);
    }

    /// The next segment that may be sent.
    pub(super) fn next(
        &mut self,
        shared: &Shared,
        context: &mut impl Context<Signal>,
    ) -> Option<Frame> {
        if self.probe.get() {
            self.probe.set(context, false);
            if !self.flight.is_empty() {
                let last = self.next_segment() - 1;
                self.estimate.give_up(context);
                let new = self.new_segment(shared, context);
                return Some(new.unwrap_or_else(|| self.frame(last)));
            }
        }
        let room = f64::from(self.under_way()) < self.window.segments();
        let gap = runs::gap(&self.arrived, self.again_end.get());
        if gap < self.lost_end.get() {
            // The first one is sent at once: the window may have shrunk below what is under way.
            let first = gap == self.first.get();
            if !room && !first {
                return None;
            }
            self.again_end.set(context, gap + 1);
            if first {
                self.wait(shared, context);
            }
            return Some(self.frame(gap));
        }
        self.again_end.set(context, self.again_end.get().max(self.lost_end.get()));
        let frame = if room { self.new_segment(shared, context) } else { None }?;
        self.estimate.sent(frame.segment, context.now().as_nanos(), context);
        if !self.time_out.is_set() || self.probing.get() {
            self.wait(shared, context);
        }
        Some(frame)
    }

    /// A segment of `flight` as a frame.
    fn frame(&self, segment: u32) -> Frame {
        let at = rank(segment - self.first.get());
        let found = self.flight.iter().nth(at).expect("it is under way");
        let Segment { tag, number, kind, payload } = *found;
        Frame { segment, payload, ..Frame::without_data(self.hop, [tag, number], kind) }
    }

    /// The next segment that was never sent, if the receiver has room for it.
    fn new_segment(
        &mut self,
        shared: &Shared,
        context: &mut impl Context<Signal>,
    ) -> Option<Frame> {
        let message = *self.unsent.front()?;
        // Saturates: a segment carries no more than `PAYLOAD`, however much is left.
        let payload = u16::try_from(message.left).unwrap_or(u16::MAX).min(PAYLOAD);
        let data = self.data.get() + u64::from(payload);
        if data > self.tcp.window.get() && !self.flight.is_empty() {
            return None;
        }
        self.data.set(context, data);
        self.unsent.pop_front(context);
        let left = message.left - u64::from(payload);
        let kind = if left > 0 { Kind::Part } else { message.kind };
        let Unsent { tag, number, .. } = message;
        if left > 0 {
            self.unsent.push_front(context, Unsent { left, ..message });
        } else if kind == Kind::Requested {
            let name = shared.name(self.way, [tag, number], kind);
            context.send(context.me(), Nanos::ZERO, Signal::Left { name });
        }
        self.flight.push_back(context, Segment { tag, number, kind, payload });
        self.sent_at.set(context, context.now().as_nanos());
        Some(self.frame(self.next_segment() - 1))
    }
}
