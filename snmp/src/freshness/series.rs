//! What is known of a series that moves, and when it is decided anew.

use meikyo_units::{Nanos, WallTime};

use super::Class;
use super::edges::{self, Edge, Edges, KEPT};

/// Changes at consecutive polls that show a value fresh at every poll.
const RUN: u8 = 4;

/// Spans that are needed before anything is said: four spans of an irregular refresh look alike
/// too often.
const SPANS_FIRST: usize = 5;

/// Spans that are needed before a period is said of a value that does not move at every refresh:
/// all spans may be even multiples by chance.
const SPANS_IDLE: usize = 8;

/// Spans of a new kind that are needed after the old kind was contradicted.
const SPANS_AGAIN: usize = 4;

/// Spans without a common period that show an irregular refresh.
const SPANS_IRREGULAR: usize = 8;

/// Spans without changes at consecutive polls that end a series' being fresh at every poll, unless
/// they have a period: a sparse counter leaves such spans too.
const SPANS_SPARSE: u8 = 24;

/// Below this many polls, a few spans agree with a period by chance.
const SHORTEST_POLLS: f64 = 3.0;

/// Share of a period by which a span may deviate from it and still confirm it.
const TOLERANCE: f64 = 0.06;

/// The kind of refresh.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Unknown,
    EveryPoll,
    Periodic { period: f64, error: f64, idle: bool },
    Irregular,
}

/// One series that moves. Spans are in µs.
#[derive(Debug, Clone)]
pub(super) struct Series {
    edges: Edges,
    kind: Kind,
    /// Newest updates that may be of a new kind.
    fresh: u8,
    /// Contradictions of the kind, less confirmations.
    strikes: u8,
    /// Consecutive spans of more than one period.
    skips: u8,
    /// Before those, no span had been of more than one period for long.
    sudden: bool,
    /// Consecutive spans of one period, or, fresh at every poll, of more than one poll.
    singles: u8,
    /// Changes at consecutive polls.
    run: u8,
    /// Newest updates among which changes at consecutive polls are counted, and the count.
    adjacent: u16,
    /// Updates until a period is sought again, and the span after that.
    retry: u16,
    retry_next: u16,
    /// Updates until the numbers may be told again, and the span after that.
    tell: u16,
    tell_next: u16,
    /// The poll that showed the newest update that is kept, in ns. Fresh at every poll, updates at
    /// consecutive polls are not.
    newest: i64,
    least: f64,
    greatest: f64,
    /// What was told last.
    told: [f64; 2],
}

impl Default for Series {
    fn default() -> Self {
        Self {
            edges: Edges::default(),
            kind: Kind::Unknown,
            fresh: 0,
            strikes: 0,
            skips: 0,
            sudden: false,
            singles: 0,
            run: 0,
            adjacent: 0,
            retry: 0,
            retry_next: 4,
            tell: 0,
            tell_next: 8,
            newest: i64::MIN,
            least: 0.0,
            greatest: 0.0,
            told: [0.0; 2],
        }
    }
}

impl Series {
    /// What the series stands at; `updated` is the poll that showed the newest update, in ns.
    pub(super) fn class(&self, updated: i64) -> Option<Class> {
        match self.kind {
            Kind::Unknown => None,
            Kind::EveryPoll => Some(Class::EveryPoll),
            Kind::Periodic { period, .. } => {
                let within = nanos(self.edges.newest(0).width / 2.0);
                let phase = WallTime::from_nanos(updated).before(within);
                Some(Class::Periodic { period: nanos(period), phase: Some(phase) })
            }
            Kind::Irregular => Some(Class::Irregular {
                least: nanos(self.least),
                mean: nanos(self.mean()),
                greatest: nanos(self.greatest),
            }),
        }
    }

    /// Reads what an update begins with, and makes nothing of it.
    #[inline]
    pub(super) fn touch(&self) -> u64 {
        self.newest.cast_unsigned()
    }

    /// Whether anything is known of the series.
    pub(super) fn is_known(&self) -> bool {
        self.kind != Kind::Unknown
    }

    /// Whether every poll brings an update.
    pub(super) fn is_every_poll(&self) -> bool {
        self.kind == Kind::EveryPoll
    }

    /// The longest span that is to be expected between two updates, in ns.
    pub(super) fn longest_ns(&self) -> i64 {
        let longest = match self.kind {
            // A value that moves at every third refresh is silent for ten in a row now and then.
            Kind::Periodic { period, idle, .. } => period * if idle { 4.0 } else { 1.0 },
            _ => self.greatest,
        };
        // Saturates so far from the ends of 64 bits that sums of some still fit.
        i64::try_from(nanos(longest).get()).unwrap_or(i64::MAX / 16).min(i64::MAX / 16)
    }

    /// Spans from before this instant to after it mean nothing.
    pub(super) fn interrupt(&mut self) {
        self.edges.clear();
        (self.fresh, self.strikes, self.skips, self.singles, self.run) = (0, 0, 0, 0, 0);
        self.adjacent = 0;
    }

    /// Takes an update between the polls at `before` and `at`; the update before was shown by the
    /// poll at `updated`, `i64::MIN` if there was none. In ns. True if what is known is now
    /// another, or its numbers have moved enough to be told.
    pub(super) fn update(
        &mut self,
        updated: i64,
        before: i64,
        at: i64,
        declared: Option<f64>,
    ) -> bool {
        let known = updated != i64::MIN;
        let gap_us = if known { micros(at.saturating_sub(updated)) } else { 0 };
        let width_us = micros(at.saturating_sub(before)).max(1);
        if !known {
            self.edges.clear();
            self.fresh = 0;
        }
        let adjacent = known && before == updated;
        let passed_over = std::mem::replace(&mut self.newest, at) != updated;
        self.run = if adjacent { self.run.saturating_add(1) } else { 0 };
        self.adjacent = (self.adjacent << 1) | u16::from(adjacent);
        self.edges.push(gap_us, width_us);
        self.fresh = self.fresh.saturating_add(1);
        self.tell = self.tell.saturating_sub(1);
        if !known {
            return false;
        }
        if self.run >= RUN {
            return self.become_kind(Kind::EveryPoll);
        }
        match self.kind {
            Kind::Unknown => self.decide_first(declared),
            Kind::EveryPoll => self.watch_every_poll(adjacent || passed_over),
            Kind::Periodic { period, error, idle } => self.watch_period(period, error, idle),
            Kind::Irregular => self.watch_irregular(),
        }
    }

    fn newest(&self, spans: usize, out: &mut [Edge; KEPT]) -> usize {
        self.edges.last((spans + 1).min(KEPT), out)
    }

    fn mean(&self) -> f64 {
        let spans = self.edges.len().saturating_sub(1).max(1);
        let total: f64 = (0..spans).map(|back| self.edges.newest(back).gap).sum();
        total / u32::try_from(spans).map_or(1.0, f64::from)
    }

    /// The period of the newest `spans`, if they have one.
    fn period_of_newest(&self, spans: usize, thorough: bool) -> Option<Kind> {
        let mut newest = [Edge::default(); KEPT];
        let count = self.newest(spans, &mut newest);
        edges::period_of(&newest[..count], thorough).map(|found| Kind::Periodic {
            period: found.period,
            error: found.error,
            idle: found.idle,
        })
    }

    /// Takes up a kind; true if it is another than before.
    fn become_kind(&mut self, kind: Kind) -> bool {
        let same = std::mem::discriminant(&kind) == std::mem::discriminant(&self.kind);
        self.kind = kind;
        self.strikes = 0;
        self.skips = 0;
        if !same {
            self.singles = 0;
        }
        let told = self.told;
        match kind {
            Kind::Periodic { period, .. } => self.told = [period, 0.0],
            Kind::Irregular => self.told = [self.least, self.greatest],
            Kind::Unknown | Kind::EveryPoll => {}
        }
        let moved = self.told.iter().zip(told).any(|(new, old)| (new - old).abs() > 0.02 * old);
        !same || moved
    }

    /// Like [`Self::become_kind`], for numbers that only became better: told ever more seldom.
    fn improve(&mut self, kind: Kind) -> bool {
        self.kind = kind;
        let now = match kind {
            Kind::Periodic { period, .. } => [period, 0.0],
            _ => [self.least, self.greatest],
        };
        let moved = now.iter().zip(self.told).any(|(new, old)| (new - old).abs() > 0.02 * old);
        if self.tell > 0 || !moved {
            return false;
        }
        self.told = now;
        self.tell = self.tell_next;
        self.tell_next = self.tell_next.saturating_mul(2);
        true
    }

    fn decide_first(&mut self, declared: Option<f64>) -> bool {
        let spans = usize::from(self.fresh).min(self.edges.len()) - 1;
        let confirms = |kind: &Kind| match (kind, declared) {
            (Kind::Periodic { period, .. }, Some(declared)) => {
                (period - declared).abs() < 0.1 * declared
            }
            _ => false,
        };
        let thorough = matches!(spans, 7 | 11 | 15 | 19 | 23);
        if declared.is_some()
            && let Some(kind) = self.period_of_newest(2, false).filter(confirms)
        {
            return self.become_kind(kind);
        }
        match self.period_of_newest(spans, thorough) {
            Some(kind @ Kind::Periodic { idle, .. })
                if spans >= if idle { SPANS_IDLE } else { SPANS_FIRST } =>
            {
                self.become_kind(kind)
            }
            None if self.adjacent.count_ones() >= 2 && spans >= SPANS_FIRST => {
                self.become_kind(Kind::EveryPoll)
            }
            None if spans >= SPANS_IRREGULAR => {
                // One refresh out of turn, for another manager, leaves the others periodic.
                match self.period_of_newest(SPANS_FIRST + 1, false) {
                    Some(kind @ Kind::Periodic { idle: false, .. }) => self.become_kind(kind),
                    _ => self.become_irregular(spans),
                }
            }
            _ => false,
        }
    }

    fn become_irregular(&mut self, spans: usize) -> bool {
        let mut newest = [Edge::default(); KEPT];
        let count = self.newest(spans, &mut newest);
        (self.least, self.greatest) = edges::extremes(&newest[..count]);
        self.become_kind(Kind::Irregular)
    }

    fn watch_every_poll(&mut self, adjacent: bool) -> bool {
        self.singles = if adjacent { 0 } else { self.singles.saturating_add(1) };
        let spans = usize::from(self.singles).saturating_sub(1);
        if spans < SPANS_AGAIN || !self.due() {
            return false;
        }
        if let Some(kind @ Kind::Periodic { period, .. }) =
            self.period_of_newest(spans, spans + 1 >= KEPT)
            && (spans > 10 || period > SHORTEST_POLLS * self.edges.newest(0).width)
        {
            return self.become_kind(kind);
        }
        self.singles >= SPANS_SPARSE && self.become_irregular(spans)
    }

    /// Whether a period is to be sought at this update: ever more seldom while none is found.
    fn due(&mut self) -> bool {
        self.retry = self.retry.saturating_sub(1);
        if self.retry > 0 {
            return false;
        }
        self.retry = self.retry_next / 4;
        self.retry_next = self.retry_next.saturating_add(self.retry_next / 2).min(4_096);
        true
    }

    fn watch_period(&mut self, period: f64, error: f64, idle: bool) -> bool {
        let edge = self.edges.newest(0);
        let before = self.edges.newest(1);
        let periods = (edge.gap / period).round().max(1.0);
        let one = periods < 1.5;
        self.singles = if one { self.singles.saturating_add(1) } else { 0 };
        self.skips = if one { 0 } else { self.skips.saturating_add(1) };
        let slack = TOLERANCE * period + error * periods;
        let off = periods * period - edge.gap;
        let fits = off >= -edge.width - slack && off <= before.width + slack;
        let drifts = !idle && self.drifts(period, error);
        if !fits || (drifts && one) {
            if self.strikes == 0 {
                // The span that reaches back into the old kind says nothing of the new one; but
                // where only the mean of four spans differs, those four agree with each other.
                self.fresh = if fits { 5 } else { 1 };
            }
            self.strikes = (self.strikes + 3).min(9);
        } else {
            self.strikes = self.strikes.saturating_sub(1);
        }
        self.sudden = !one && (!idle || self.sudden);
        let idle = (idle || !one) && self.singles < 8;
        self.kind = Kind::Periodic { period, error, idle };
        self.settle(period)
    }

    /// Whether the mean of the newest spans is another than the period.
    fn drifts(&self, period: f64, error: f64) -> bool {
        if self.edges.len() <= SPANS_AGAIN {
            return false;
        }
        let total: f64 = (0..SPANS_AGAIN).map(|back| self.edges.newest(back).gap).sum();
        let width = self.edges.newest(0).width.max(self.edges.newest(SPANS_AGAIN).width);
        ((total / 4.0) - period).abs() > width / 4.0 + error + 0.03 * period
    }

    /// Decides whether the period still holds, and with what numbers.
    fn settle(&mut self, period: f64) -> bool {
        let newest = usize::from(self.fresh).min(self.edges.len()) - 1;
        if self.strikes >= 2 && newest >= SPANS_AGAIN {
            if let Some(kind) = self.period_of_newest(newest, newest >= 7) {
                return self.become_kind(kind);
            }
            if self.strikes >= 4 && newest >= SPANS_IRREGULAR {
                return self.become_irregular(newest);
            }
            return false;
        }
        let enough = if self.sudden { SPANS_FIRST } else { SPANS_IDLE };
        let skips = usize::from(self.skips).min(self.edges.len() - 1);
        if self.strikes == 0 && skips >= enough && (skips == enough || self.due()) {
            if let Some(Kind::Periodic { period: other, error, idle }) =
                self.period_of_newest(skips, skips >= 7)
                && other > 1.2 * period
            {
                return self.become_kind(Kind::Periodic { period: other, error, idle });
            }
            return false;
        }
        // Between the shortest periods and chance only the whole window can tell.
        let spans = self.edges.len() - 1;
        let steady = self.strikes == 0 && usize::from(self.fresh) > spans;
        let short = period < SHORTEST_POLLS * self.edges.newest(0).width;
        if steady && short && self.singles < 8 && spans >= KEPT / 2 && self.due() {
            return match self.period_of_newest(KEPT, true) {
                Some(kind) => self.become_kind(kind),
                None if self.adjacent.count_ones() >= 2 => self.become_kind(Kind::EveryPoll),
                None => self.become_irregular(KEPT),
            };
        }
        // The numbers improve with every window that agrees throughout.
        if steady && (spans.is_multiple_of(5) || spans + 1 == KEPT) && self.tell == 0 {
            self.tell = 8;
            if let Some(kind @ Kind::Periodic { period: better, .. }) =
                self.period_of_newest(spans, false)
                && (better - period).abs() < 0.2 * period
            {
                self.tell = 0;
                let told = self.improve(kind);
                if !told {
                    self.tell = 8;
                }
                return told;
            }
        }
        false
    }

    fn watch_irregular(&mut self) -> bool {
        let gap = self.edges.newest(0).gap;
        let width = self.edges.newest(0).width;
        let wider = gap < self.least || gap > self.greatest;
        self.least = self.least.min(gap);
        self.greatest = self.greatest.max(gap);
        let spans = self.edges.len() - 1;
        if spans >= SPANS_IRREGULAR && self.adjacent.count_ones() >= 2 && width < self.greatest {
            return self.become_kind(Kind::EveryPoll);
        }
        if spans >= SPANS_AGAIN && self.due() {
            // Few spans agree by chance more often than many.
            let again = self.period_of_newest(spans.min(9), false);
            if let Some(kind) = again.or_else(|| self.period_of_newest(KEPT, true)) {
                return self.become_kind(kind);
            }
        }
        wider && self.improve(Kind::Irregular)
    }
}

/// A span in ns as whole µs, at most 71 minutes.
fn micros(nanos: i64) -> u32 {
    // Saturates at both ends.
    u32::try_from(nanos / 1_000).unwrap_or(if nanos < 0 { 0 } else { u32::MAX })
}

/// A span in µs as a span; rounded to whole ns.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "spans are positive and below 2^32 µs"
)]
fn nanos(micros: f64) -> Nanos {
    Nanos::new((micros * 1e3) as u64)
}
