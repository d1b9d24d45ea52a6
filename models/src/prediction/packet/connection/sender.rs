//! The sending half of an end: what is under way, what is lost, and what is sent next.
//!
//! Segments are numbered; one carries data of one message only. Lost ones are found and sent again as
//! RFC 6675 says, with the segments that have arrived known from selective acknowledgements, except
//! that frames of a connection cannot overtake each other, so that every gap below what has arrived
//! is a loss. A segment that is lost once more while it is sent again costs a time-out. A time-out that
//! turns out to be false is taken back ([`Doubt`]).

use meikyo_sim::Context;
use meikyo_undo::{Cell, Deque, Map, fields};
use meikyo_units::Nanos;

use super::alarm::Alarm;
use super::doubt::{Advance, Doubt, Heard};
use super::estimate::Estimate;
use super::runs;
use super::window::Window;
use crate::prediction::packet::known::{PAYLOAD, Shared};
use crate::prediction::packet::signal::{Awaited, Frame, Kind, OF_SENT_AGAIN, SENT_AGAIN, Signal};
use crate::prediction::packet::tcp::Tcp;
use crate::prediction::ranks::{number, rank};

/// Linux sends so many segments at once at most, so that a window with so much room left is still what
/// keeps back more.
const BURST: f64 = 3.0;
/// So many time-outs in a row, and a connection is given up (Linux's `tcp_retries2`).
const TIME_OUTS_MAX: u32 = 15;
/// What is added to two round trips before the last segments are probed for: two ticks of a kernel with 250 a second.
const PROBE_NS: u64 = 8_000_000;

/// A message of which not everything was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Unsent {
    tag: u32,
    number: u32,
    kind: Kind,
    left: u64,
}

/// A segment that is not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Segment {
    tag: u32,
    number: u32,
    kind: Kind,
    payload: u16,
    /// When it was sent for the first time.
    sent_at: u64,
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
    /// Segments that wait at the card, where there is a limit for them.
    at_card: Cell<u32>,
    /// The first segment of `flight`.
    first: Cell<u32>,
    /// What of `flight` has arrived, before others.
    arrived: Map<u32, u32>,
    /// What of `flight` was sent again, and when it was last.
    again: Map<u32, u64>,
    /// What has not arrived below it is lost.
    lost_end: Cell<u32>,
    /// What was lost below it was sent again.
    again_end: Cell<u32>,
    /// A recovery lasts until everything below it has arrived.
    recovery_end: Cell<u32>,
    /// Whether a time-out began it.
    collapsed: Cell<bool>,
    doubt: Doubt,
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
    at_card,
    first,
    arrived,
    again,
    lost_end,
    again_end,
    recovery_end,
    collapsed,
    doubt,
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
            at_card: Cell::default(),
            first: Cell::default(),
            arrived: Map::default(),
            again: Map::default(),
            lost_end: Cell::default(),
            again_end: Cell::default(),
            recovery_end: Cell::default(),
            collapsed: Cell::default(),
            doubt: Doubt::default(),
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

    /// A frame tells what has arrived at the other end: everything below a segment, and a run beyond it.
    pub(super) fn acknowledged(
        &mut self,
        shared: &Shared,
        frame: &Frame,
        context: &mut impl Context<Signal>,
    ) {
        let (first, below, run) = (self.first.get(), frame.arrived, frame.run());
        if below < first {
            return;
        }
        let limited = self.is_limited();
        let advances = below > first;
        let of_first = frame.stamps & OF_SENT_AGAIN == 0;
        let (recovered, collapsed) = (self.recovers(), self.collapsed.get());
        let heard = (collapsed && !self.doubt.is_over()).then(|| Heard {
            advance: match (advances, of_first) {
                (false, _) => Advance::Nothing,
                (true, false) => Advance::OfSentAgain,
                (true, true) => Advance::OfSentFirst,
            },
            of_others: self.tells_of_others(first, below) || self.tells_of_others(run[0], run[1]),
            beyond: runs::count(&self.arrived, run[0], run[1]) < run[1] - run[0],
        });
        if run[0] < run[1] {
            runs::add(&mut self.arrived, run, context);
        }
        if advances {
            self.measure(shared, below, of_first, context);
            self.advance(below, context);
        }
        let new_sent = self.next_segment() > self.recovery_end.get();
        let said = [new_sent, self.recovers()];
        if heard.is_some_and(|heard| self.doubt.hear(heard, said, context)) {
            self.take_back(context);
        }
        if advances && limited && (!recovered || collapsed) {
            // While it recovers from single losses, the window stays; after a time-out it has to open again.
            let (count, now) = (below - first, context.now().as_nanos());
            self.window.grow(self.tcp, count, now, self.estimate.round_trip(), context);
        }
        if recovered && !self.recovers() {
            self.end_recovery(context);
        }
        self.find_losses(context);
        if advances {
            if self.flight.is_empty() {
                self.time_out.clear(context);
            } else {
                self.wait(shared, context);
            }
        }
    }

    /// Whether the window is what keeps back more. While it opens, Linux of today asks that only half of it is used
    /// (`tcp_is_cwnd_limited`), since segments may wait for the card.
    fn is_limited(&self) -> bool {
        let segments = self.window.segments();
        let half = self.tcp.stack.queues_small() && self.window.opens();
        if half {
            return segments < 2.0 * f64::from(number(self.flight.len()));
        }
        f64::from(self.under_way()) + BURST >= segments
    }

    /// Whether any segment of a range is told of for the first time that was sent once, before the recovery.
    fn tells_of_others(&self, from: u32, to: u32) -> bool {
        let mut range = from..to.min(self.recovery_end.get());
        let is_news = |segment: u32| runs::gap(&self.arrived, segment) == segment;
        range.any(|segment| is_news(segment) && !self.again.contains_key(&segment))
    }

    /// Measures the round trip of the first segment that is acknowledged, of the time that its acknowledgement
    /// is of.
    fn measure(
        &mut self,
        shared: &Shared,
        below: u32,
        of_first: bool,
        context: &mut impl Context<Signal>,
    ) {
        let first = self.flight.front().map(|segment| segment.sent_at);
        let again = self.again.get(&self.first.get()).copied();
        let sent_at = if of_first { first } else { again };
        if let Some(sent_at) = sent_at {
            let measured = context.now().as_nanos() - sent_at;
            let (least, next) = (shared.options.time_out, self.next_segment());
            self.estimate.measured(measured, [below, next], least, context);
        }
        self.estimate.acknowledged(context);
    }

    /// Forgets what is below a segment.
    fn advance(&mut self, below: u32, context: &mut impl Context<Signal>) {
        for segment in self.first.get()..below {
            let gone = self.flight.pop_front(context).expect("it was sent");
            self.data.set(context, self.data.get() - u64::from(gone.payload));
            if !self.again.is_empty() {
                self.again.remove(context, &segment);
            }
        }
        self.first.set(context, below);
        runs::forget_below(&mut self.arrived, below, context);
        self.lost_end.set(context, self.lost_end.get().max(below));
        self.again_end.set(context, self.again_end.get().max(below));
        self.probed.set(context, false);
    }

    /// Nothing that was sent before the time-out was lost: all of it is under way, and the window is what it was.
    fn take_back(&mut self, context: &mut impl Context<Signal>) {
        self.window.restore(context);
        self.recovery_end.set(context, self.first.get());
    }

    fn end_recovery(&mut self, context: &mut impl Context<Signal>) {
        let first = self.first.get();
        self.lost_end.set(context, first);
        self.again_end.set(context, first);
        self.collapsed.set(context, false);
        self.doubt.end(context);
    }

    /// Looks for gaps below what has arrived.
    fn find_losses(&mut self, context: &mut impl Context<Signal>) {
        let first = self.first.get();
        let Some(last) = runs::end(&self.arrived) else { return };
        if self.recovers() {
            self.lost_end.set(context, self.lost_end.get().max(last));
        } else if last > first + self.tcp.stack.reordering() {
            self.window.shrink(self.tcp, context);
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
            self.timed_out(context);
        } else {
            return;
        }
        self.wait(shared, context);
    }

    /// A time-out has passed: all that is under way is taken for lost.
    fn timed_out(&mut self, context: &mut impl Context<Signal>) {
        let recovers = self.recovers();
        let repeated = self.estimate.time_outs() > 0;
        // What is lost of a window makes it smaller once, unless something was acknowledged since a time-out.
        let shrinks = !recovers || (self.collapsed.get() && !repeated);
        if shrinks {
            self.window.shrink(self.tcp, context);
        }
        self.window.collapse(context);
        self.estimate.timed_out(context);
        self.lost_end.set(context, self.next_segment());
        self.again_end.set(context, self.first.get());
        self.recovery_end.set(context, self.next_segment());
        self.collapsed.set(context, true);
        self.doubt.begin(shrinks, !recovers || repeated, context);
    }

    /// A segment has left the card.
    pub(super) fn left(&mut self, context: &mut impl Context<Signal>) {
        self.at_card.set(context, self.at_card.get() - 1);
    }

    /// The next segment that may be sent.
    pub(super) fn next(
        &mut self,
        shared: &Shared,
        context: &mut impl Context<Signal>,
    ) -> Option<Frame> {
        let frame = self.next_allowed(shared, context)?;
        if self.tcp.stack.queues_small() {
            self.at_card.add(context, 1);
        }
        Some(frame)
    }

    fn next_allowed(
        &mut self,
        shared: &Shared,
        context: &mut impl Context<Signal>,
    ) -> Option<Frame> {
        if self.probe.get() {
            self.probe.set(context, false);
            if !self.flight.is_empty() {
                let new = self.new_segment(shared, context);
                if new.is_some() {
                    return new;
                }
                // Linux sends nothing again that still waits at the card (`skb_still_in_host_queue`).
                if self.at_card.get() == 0 {
                    let last = self.next_segment() - 1;
                    return Some(self.sent_again(last, context));
                }
            }
        }
        let room = f64::from(self.under_way()) < self.window.segments();
        if self.doubt.sends_new() {
            let new = if room { self.new_segment(shared, context) } else { None };
            if new.is_some() {
                return new;
            }
            let any = self.next_segment() > self.recovery_end.get();
            self.doubt.sent_new(any, context);
        }
        if self.doubt.holds() {
            return None;
        }
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
            return Some(self.sent_again(gap, context));
        }
        self.again_end.set(context, self.again_end.get().max(self.lost_end.get()));
        let frame = if room { self.new_segment(shared, context) } else { None }?;
        if !self.time_out.is_set() || self.probing.get() {
            self.wait(shared, context);
        }
        Some(frame)
    }

    /// A segment of `flight` as a frame.
    fn frame(&self, segment: u32) -> Frame {
        let at = rank(segment - self.first.get());
        let found = self.flight.iter().nth(at).expect("it is under way");
        let Segment { tag, number, kind, payload, .. } = *found;
        Frame { segment, payload, ..Frame::without_data(self.hop, [tag, number], kind) }
    }

    /// A segment of `flight` as a frame that is not its first one.
    fn sent_again(&mut self, segment: u32, context: &mut impl Context<Signal>) -> Frame {
        self.again.insert(context, segment, context.now().as_nanos());
        Frame { stamps: SENT_AGAIN, ..self.frame(segment) }
    }

    /// The next segment that was never sent, if the receiver has room for it.
    fn new_segment(
        &mut self,
        shared: &Shared,
        context: &mut impl Context<Signal>,
    ) -> Option<Frame> {
        let message = *self.unsent.front()?;
        if self.tcp.stack.queues_small() {
            let most = self.window.at_card_max(self.estimate.round_trip());
            if f64::from(self.at_card.get()) >= most {
                return None;
            }
        }
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
        let sent_at = context.now().as_nanos();
        self.flight.push_back(context, Segment { tag, number, kind, payload, sent_at });
        self.sent_at.set(context, sent_at);
        Some(self.frame(self.next_segment() - 1))
    }
}
