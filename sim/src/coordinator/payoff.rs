//! Judges whether parallel work pays, by what counts: events a second.
//!
//! The threads work together for some spans and the first one alone for as many, in turn, so that what
//! else the machine does falls on both. What was faster goes on for a while, which doubles each time that
//! the same comes out again; then both are tried anew. A burst of other programs' work therefore costs
//! parallel work for a short time only.
//!
//! The first thread alone does all parts window by window. Where windows have few events that costs
//! more than one queue: then parallel work ends, and the run comes back to it later.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::exchange::crew::Rest;

/// A span of a trial at least; the first window of each is not counted, since threads wake in it.
const SPAN: Duration = Duration::from_millis(1);
/// Spans of each kind in a trial.
const SPANS: u32 = 3;
/// How long what was faster goes on at first, and at most.
const STAY_LEAST: Duration = Duration::from_millis(20);
const STAY_MOST: Duration = Duration::from_secs(1);
/// With fewer events for each part of a window, one queue is faster than windows on one thread.
const EVENTS_FEW: u64 = 64;

/// Who works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Together,
    Alone,
}

/// What was done, in which time.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    events: u64,
    windows: u64,
    time: Duration,
}

impl Work {
    /// Whether this was faster than `other`.
    fn beats(&self, other: &Self) -> bool {
        let product = |work: &Self, time: Duration| u128::from(work.events) * time.as_nanos();
        product(self, other.time) >= product(other, self.time)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// So many spans are still to be tried, this one included.
    Trial(u32),
    Staying,
}

/// What the first part knows about the pace of the run.
pub(super) struct Payoff {
    rest: Arc<Rest>,
    parts: u64,
    mode: Mode,
    phase: Phase,
    together: Work,
    alone: Work,
    /// What was faster last.
    faster: Option<Mode>,
    stay: Duration,
    /// When the span or the stay began, and how many events were committed then; none before its
    /// second window.
    begun: Option<(Instant, u64)>,
    windows: u64,
}

impl Payoff {
    pub(super) fn new(rest: Arc<Rest>, parts: usize) -> Self {
        Self {
            rest,
            parts: u64::try_from(parts).expect("parts are few"),
            mode: Mode::Together,
            phase: Phase::Trial(2 * SPANS),
            together: Work::default(),
            alone: Work::default(),
            faster: None,
            stay: STAY_LEAST,
            begun: None,
            windows: 0,
        }
    }

    /// Judges at the begin of a window, when `committed` events are committed. Whether parallel work is
    /// to end.
    pub(super) fn judge(&mut self, committed: u64, now: Instant) -> bool {
        let Some((begun, before)) = self.begun else {
            self.begun = Some((now, committed));
            self.windows = 0;
            return false;
        };
        self.windows += 1;
        let time = now.duration_since(begun);
        let over = if self.phase == Phase::Staying { time >= self.stay } else { time >= SPAN };
        if !over {
            return false;
        }
        let work = Work { events: committed - before, windows: self.windows, time };
        match self.phase {
            Phase::Staying => {
                (self.together, self.alone) = (Work::default(), Work::default());
                self.begin(Phase::Trial(2 * SPANS), self.other());
                false
            }
            Phase::Trial(left) => {
                self.add(work);
                if left > 1 {
                    self.begin(Phase::Trial(left - 1), self.other());
                    return false;
                }
                self.decide()
            }
        }
    }

    fn add(&mut self, work: Work) {
        let sum = match self.mode {
            Mode::Together => &mut self.together,
            Mode::Alone => &mut self.alone,
        };
        sum.events += work.events;
        sum.windows += work.windows;
        sum.time += work.time;
    }

    fn decide(&mut self) -> bool {
        let faster =
            if self.together.beats(&self.alone) { Mode::Together } else { Mode::Alone };
        let again = self.faster.replace(faster) == Some(faster);
        let trial = self.together.time + self.alone.time;
        let longer = if again { self.stay * 2 } else { STAY_LEAST };
        self.stay = longer.min(STAY_MOST).max(trial * 4);
        self.begin(Phase::Staying, faster);
        let few = self.alone.events < EVENTS_FEW * self.parts * self.alone.windows;
        faster == Mode::Alone && few
    }

    fn begin(&mut self, phase: Phase, mode: Mode) {
        (self.phase, self.begun) = (phase, None);
        if mode != self.mode {
            self.mode = mode;
            self.rest.set(mode == Mode::Alone);
        }
    }

    fn other(&self) -> Mode {
        match self.mode {
            Mode::Together => Mode::Alone,
            Mode::Alone => Mode::Together,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::announcer::now;
    use super::*;

    /// A run whose rates in events a microsecond are those of `rates` at each time: together, alone.
    fn share_together(rates: impl Fn(Duration) -> (u64, u64), run: Duration) -> f64 {
        let start = now();
        let mut payoff = Payoff::new(Arc::new(Rest::new()), 2);
        let (mut passed, mut events, mut together) = (Duration::ZERO, 0, Duration::ZERO);
        let window = Duration::from_micros(100);
        while passed < run {
            assert!(!payoff.judge(events, start + passed), "windows have enough events");
            let (fast, slow) = rates(passed);
            events += 100 * if payoff.mode == Mode::Together { fast } else { slow };
            if payoff.mode == Mode::Together {
                together += window;
            }
            passed += window;
        }
        together.as_secs_f64() / run.as_secs_f64()
    }

    #[test]
    fn what_is_faster_does_nine_tenths_of_the_work() {
        let second = Duration::from_secs(2);
        assert!(share_together(|_| (30, 20), second) > 0.9);
        assert!(share_together(|_| (20, 30), second) < 0.1);
    }

    /// Together is faster but for 300 ms, in which another program takes a core.
    #[test]
    fn a_burst_of_other_work_costs_no_more_than_twice_its_time() {
        let burst = Duration::from_millis(100)..Duration::from_millis(400);
        let rates = |at: Duration| if burst.contains(&at) { (15, 20) } else { (35, 20) };
        let share = share_together(rates, Duration::from_secs(3));
        assert!((0.75..0.97).contains(&share), "{share}");
    }

    #[test]
    fn windows_of_few_events_end_parallel_work_only_where_it_is_slower() {
        for (together, alone, ends) in [(3, 2, false), (2, 3, true)] {
            let start = now();
            let mut payoff = Payoff::new(Arc::new(Rest::new()), 2);
            let (mut events, mut ended) = (0, false);
            for window in 0..2_000 {
                ended |= payoff.judge(events, start + Duration::from_micros(100) * window);
                events += if payoff.mode == Mode::Together { together } else { alone };
            }
            assert_eq!(ended, ends, "{together} {alone}");
        }
    }
}
