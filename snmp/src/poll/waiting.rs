//! How long requests are waited for: round trips, second tries, and what stands aside.
//!
//! UDP loses datagrams, and a lost one must not cost more than its own interval. So:
//!
//! - The round trips of every agent are measured, as TCP does it (RFC 6298, section 2). An answer is
//!   *overdue* when it has taken longer than their mean and four deviations, and at least a quarter
//!   of the interval.
//! - An overdue request is sent once more within its interval, with an id of its own: whichever try
//!   is answered first counts, with its own receive time. Tries are paid for by answers (one try for
//!   [`TRY_COST`] of them) and by the rate cap, and there is none while an earlier interval is
//!   unanswered, so that an agent that has become slow is not asked ever more.
//! - When the next interval is due, an overdue request stands aside for it and is still waited for:
//!   an answer that comes late, and before one to the later request, is kept as `late`. Two requests
//!   of a device are open at most; a third interval ends the oldest as `missed`, and so does an
//!   answer to a later request.
//! - An agent that is known to take longer than its interval is not overdue and is never asked
//!   twice at once: its intervals are skipped (`in_flight`) until it has answered or the timeout is
//!   over. The same holds for agents that never answered and for those that are backed off.

use meikyo_units::{Nanos, WallTime};

use crate::poll::Poller;
use crate::poll::device::{Device, Pending, Phase};
use crate::poll::rows::{PollRow, Reason};
use crate::tables::State;

/// Answers that pay for one second try.
const TRY_COST: u8 = 5;

/// Most answers that are saved up: ten tries in a row.
const CREDIT_MAX: u8 = 50;

/// An answer is not overdue before this part of the interval and of the timeout.
const OVERDUE_PART: u64 = 4;

/// ... unless the interval is long: no agent on a local network is this slow by chance.
const OVERDUE_LEAST_MAX: Nanos = Nanos::from_millis(100);

/// How long an agent takes to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RoundTrip {
    /// Smoothed mean; 0 before the first answer.
    mean_us: u32,
    /// Smoothed mean deviation.
    deviation_us: u32,
    /// Answers that were not used up by tries.
    credit: u8,
}

impl Default for RoundTrip {
    fn default() -> Self {
        Self { mean_us: 0, deviation_us: 0, credit: TRY_COST }
    }
}

impl RoundTrip {
    /// Takes in the span from a try to its answer (RFC 6298, section 2, in whole µs). Every try has
    /// an id of its own, so there is no doubt which one is answered (Karn's problem).
    #[inline]
    pub(super) fn measured(&mut self, span: Nanos) {
        // Saturates at 71 minutes.
        let span_us = u32::try_from(span.as_micros()).unwrap_or(u32::MAX).max(1);
        if self.mean_us == 0 {
            (self.mean_us, self.deviation_us) = (span_us, span_us / 2);
        } else {
            let off = self.mean_us.abs_diff(span_us);
            self.deviation_us = self.deviation_us - self.deviation_us / 4 + off / 4;
            self.mean_us = self.mean_us - self.mean_us / 8 + span_us / 8;
        }
        self.credit = (self.credit + 1).min(CREDIT_MAX);
    }

    /// How long after its try an answer is overdue; `None` while nothing was measured.
    #[inline]
    pub(super) fn overdue_after(self, interval: Nanos, timeout: Nanos) -> Option<Nanos> {
        let least = interval.get().min(timeout.get()) / OVERDUE_PART;
        let least = least.min(OVERDUE_LEAST_MAX.get());
        let usual_us = u64::from(self.mean_us) + 4 * u64::from(self.deviation_us);
        (self.mean_us != 0).then(|| Nanos::from_micros(usual_us).max(Nanos::new(least)))
    }

    /// Pays for a second try; `false` if there have been too many.
    fn pay_for_try(&mut self) -> bool {
        let left = self.credit.checked_sub(TRY_COST);
        self.credit = left.unwrap_or(self.credit);
        left.is_some()
    }
}

/// Which open request of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Open {
    /// That of the newest interval.
    Newest,
    /// The one that stood aside for it.
    Earlier,
}

impl Device {
    /// The open request that a datagram with this id answers.
    #[inline]
    pub(super) fn open_with_id(&self, id: i32) -> Option<Open> {
        if self.pending.as_ref().is_some_and(|open| open.has_id(id)) {
            return Some(Open::Newest);
        }
        let earlier = self.earlier.as_ref().is_some_and(|open| open.has_id(id));
        earlier.then_some(Open::Earlier)
    }

    /// The open request.
    pub(super) fn open(&mut self, which: Open) -> Option<&mut Pending> {
        match which {
            Open::Newest => self.pending.as_mut(),
            Open::Earlier => self.earlier.as_deref_mut(),
        }
    }

    /// After how long a request is sent once more, in µs; 0 for never: the answer to a second try
    /// must be likely to come within the interval and before the wait ends.
    #[inline]
    pub(super) fn again_after_us(&self, interval: Nanos, patience: Nanos) -> u32 {
        if self.is_backed_off() {
            return 0;
        }
        let Some(after) = self.round_trip.overdue_after(interval, self.timeout) else { return 0 };
        let in_time = after.get() * 2 <= interval.get().min(patience.get());
        let after_us =
            || u32::try_from(after.as_micros()).expect("intervals are at most an hour long");
        if in_time { after_us() } else { 0 }
    }

    /// Whether the open request may stand aside for one that is sent at `at`.
    pub(super) fn may_stand_aside(&self, at: WallTime, interval: Nanos) -> bool {
        let Some(open) = self.pending.filter(|open| !open.queued) else { return false };
        let waited = at.since(open.sent);
        let overdue = self.round_trip.overdue_after(interval, self.timeout);
        if open.unusable.is_some() {
            // It was answered, if by nonsense; a good answer may still be under way.
            return overdue.is_none_or(|overdue| waited >= overdue);
        }
        let undisturbed = self.next_plan.is_none() && self.phase == Phase::Resolved;
        undisturbed && !self.is_backed_off() && overdue.is_some_and(|overdue| waited >= overdue)
    }
}

impl Poller {
    /// Lets an overdue request stand aside for one that is sent at `at`; `false` if the open one
    /// must be waited for.
    pub(super) fn stand_aside(&mut self, ordinal: u32, at: WallTime, interval: Nanos) -> bool {
        if !self.devices[ordinal as usize].may_stand_aside(at, interval) {
            return false;
        }
        self.give_up(ordinal, Open::Earlier);
        let device = &mut self.devices[ordinal as usize];
        if device.pending.is_some_and(|open| open.unusable.is_some()) {
            self.give_up(ordinal, Open::Newest);
            return true;
        }
        if let Some(mut open) = device.pending.take() {
            self.awaited -= usize::from(std::mem::take(&mut open.awaited));
            device.earlier = Some(Box::new(open));
        }
        true
    }

    /// Ends requests whose wait is over, and sends again what is overdue.
    ///
    /// No queue of instants is kept: where all devices answer, nothing is open when the earliest
    /// comes, and nobody has to be looked at.
    pub(super) fn expire(&mut self, now: WallTime) {
        if self.sweep_at.is_none_or(|at| at > now) {
            return;
        }
        self.sweep_at = None;
        if self.in_flight == 0 {
            return;
        }
        for ordinal in (0..).take(self.devices.len()) {
            if self.devices[ordinal as usize].earlier.is_some() {
                self.look_at_open(ordinal, Open::Earlier, now);
            }
            self.look_at_open(ordinal, Open::Newest, now);
        }
    }

    fn look_at_open(&mut self, ordinal: u32, which: Open, now: WallTime) {
        let device = &mut self.devices[ordinal as usize];
        let Some(open) = device.open(which).filter(|open| !open.queued) else { return };
        if open.deadline <= now {
            return self.give_up(ordinal, which);
        }
        if open.again_at().is_some_and(|at| at <= now) {
            open.again_after_us = 0;
            let id = open.id;
            // Two intervals in a row without an answer are rather a slow agent than two losses.
            let may = !self.stopping && device.earlier.is_none();
            if may && device.round_trip.pay_for_try() && device.take_allowance(now, 1) {
                self.overdue.push((ordinal, id));
            }
        }
        let Some(open) = self.devices[ordinal as usize].open(which) else { return };
        let at = open.look_at();
        self.sweep_by(at);
    }

    /// Makes sure that open requests are looked at by then.
    #[inline]
    pub(super) fn sweep_by(&mut self, at: WallTime) {
        self.sweep_at = Some(self.sweep_at.map_or(at, |earliest| earliest.min(at)));
    }

    /// Ends a request without an answer: its wait is over, or a later one takes its place.
    pub(super) fn give_up(&mut self, ordinal: u32, which: Open) {
        if which == Open::Newest {
            // The older of two is not waited for longer than the newer.
            self.give_up(ordinal, Open::Earlier);
        }
        let device = &mut self.devices[ordinal as usize];
        let Some(open) = device.open(which).copied() else { return };
        // Whose answer a full buffer dropped cannot be known: nobody is blamed who was waited for.
        let dropped = self.dropped_at.is_some_and(|at| at >= open.first_sent());
        if let Some(reason) = open.unusable {
            device.misses = 0;
            self.end(ordinal, which, State::Error, Some(reason));
            return self.failed(ordinal, open.due, Some(reason));
        }
        if !dropped {
            device.misses = device.misses.saturating_add(1);
        }
        let tally = self.rings[open.ring as usize].tally(open.due);
        let stalled = tally.is_some_and(|tally| tally.stalled).then_some(Reason::Stall);
        let reason = if dropped { Some(Reason::SocketDrops) } else { stalled };
        self.end(ordinal, which, State::Missed, reason);
        if reason.is_none() {
            self.failed(ordinal, open.due, None);
        }
    }

    /// Ends an open request, if there is one, with a row that says how.
    pub(super) fn end(&mut self, ordinal: u32, which: Open, state: State, reason: Option<Reason>) {
        let device = &mut self.devices[ordinal as usize];
        let ended = match which {
            // What stood aside for it is waited for as before.
            Open::Newest => {
                let earlier = device.earlier.take().map(|open| *open);
                std::mem::replace(&mut device.pending, earlier)
            }
            Open::Earlier => device.earlier.take().map(|open| *open),
        };
        let Some(open) = ended else { return };
        let ring = open.ring as usize;
        if open.queued {
            self.rings[ring].queue.retain(|&(_, other)| other != ordinal);
        } else {
            self.in_flight -= 1;
            self.awaited -= usize::from(open.awaited);
        }
        self.rows.poll(PollRow {
            due: open.due,
            device: device.name,
            pdu: open.pdu,
            state,
            reason,
            batch: (!open.queued).then_some(open.batch),
            received: None,
            uptime_cs: None,
        });
        self.end_interval(&open, open.worst.max(state));
    }

    /// Counts the end of a device's interval.
    pub(super) fn end_interval(&mut self, open: &Pending, worst: State) {
        self.states[worst as usize] += 1;
        self.rings[open.ring as usize].end(open.due, worst);
        self.close_intervals(open.ring as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Nanos = Nanos::from_millis(100);

    fn after(spans_us: &[u64]) -> RoundTrip {
        let mut round_trip = RoundTrip::default();
        spans_us.iter().for_each(|&span| round_trip.measured(Nanos::from_micros(span)));
        round_trip
    }

    /// What RFC 6298 gives, worked out in floating point.
    fn rfc_6298_us(spans_us: &[u64]) -> f64 {
        let mut spans = spans_us.iter().map(|&span| Nanos::from_micros(span).as_secs_f64() * 1e6);
        let mut mean = spans.next().expect("at least one");
        let mut deviation = mean / 2.0;
        for span in spans {
            deviation = 0.75 * deviation + 0.25 * (mean - span).abs();
            mean = 0.875 * mean + 0.125 * span;
        }
        4.0f64.mul_add(deviation, mean)
    }

    #[test]
    fn an_answer_is_overdue_after_the_mean_and_four_deviations() {
        let mut random = 7_u64;
        let mut spans = Vec::new();
        for _ in 0..200 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            spans.push(120_000 + (random >> 44) % 50_000);
            let found = after(&spans).overdue_after(INTERVAL, Nanos::SECOND).expect("measured");
            let expected = rfc_6298_us(&spans);
            let off = (found.as_secs_f64() * 1e6 - expected).abs();
            assert!(off < expected / 1_000.0, "{found} instead of {expected} us");
        }
    }

    #[test]
    fn quick_agents_are_given_a_quarter_of_the_interval() {
        let quick = after(&[200; 50]);
        let least = |interval, timeout| quick.overdue_after(interval, timeout).expect("measured");
        assert_eq!(least(INTERVAL, Nanos::SECOND), Nanos::from_millis(25));
        assert_eq!(least(INTERVAL, Nanos::from_millis(40)), Nanos::from_millis(10));
        assert_eq!(least(Nanos::from_secs(60), Nanos::SECOND), Nanos::from_millis(100));
        assert_eq!(RoundTrip::default().overdue_after(INTERVAL, Nanos::SECOND), None);
    }

    #[test]
    fn every_fifth_answer_pays_for_a_try() {
        let mut round_trip = RoundTrip::default();
        let mut tries = 0;
        for _ in 0..1_000 {
            round_trip.measured(Nanos::from_micros(200));
            tries += usize::from(round_trip.pay_for_try());
        }
        assert_eq!(tries, 201, "the first is free");
        let mut saved = after(&[200; 1_000]);
        assert_eq!((0..100).filter(|_| saved.pay_for_try()).count(), 10);
    }
}
