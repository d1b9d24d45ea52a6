//! Judges whether the threads of a run work together or one of them alone, by what counts: events a
//! second.
//!
//! What was faster goes on for a while, then the other is tried for a moment and compared with what was
//! measured just before. The while doubles each time that the same comes out again. A burst of other
//! programs' work therefore costs parallel work for a short time only, and a core that is taken for good
//! costs no more than the trials.
//!
//! A trial of all threads must outlast the moment for which a system prefers a thread that has slept;
//! otherwise threads that share a core with another program seem to have it to themselves.
//!
//! The first thread alone does all parts window by window. Where windows have few events that costs
//! more than one queue: then parallel work ends if it may, and the run comes back to it later.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::exchange::crew::Rest;

/// How long what was faster goes on at first, and at most.
const STAY_LEAST: Duration = Duration::from_millis(20);
const STAY_MOST: Duration = Duration::from_secs(1);
/// How long each mode is tried. The first window is not counted, since threads wake in it.
const TRIAL_TOGETHER: Duration = Duration::from_millis(12);
const TRIAL_ALONE: Duration = Duration::from_millis(4);
/// With fewer events for each part of a window, one queue is faster than windows on one thread ...
const EVENTS_FEW: u64 = 64;
/// ... by so many per cent, which threads must be faster by, too.
const QUEUE_GAINS: u64 = 15;

/// What is done where one thread alone is faster than all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alone {
    /// It does all parts, and the others rest.
    Windows,
    /// The same; but where windows have few events the work ends, so that one queue can go on with it.
    Queue,
}

/// Who works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Together,
    Alone,
}

impl Mode {
    fn other(self) -> Self {
        match self {
            Self::Together => Self::Alone,
            Self::Alone => Self::Together,
        }
    }

    fn trial(self) -> Duration {
        match self {
            Self::Together => TRIAL_TOGETHER,
            Self::Alone => TRIAL_ALONE,
        }
    }
}

/// What was done, in which time.
#[derive(Clone, Copy, Debug)]
struct Work {
    events: u64,
    windows: u64,
    time: Duration,
}

impl Work {
    /// Whether this was faster than `other` by more than `per_cent`.
    fn beats(&self, other: &Self, per_cent: u64) -> bool {
        let product = |events: u64, time: Duration| u128::from(events) * time.as_nanos();
        let own = product(self.events, other.time) * 100;
        own > product(other.events, self.time) * u128::from(100 + per_cent)
    }
}

/// What the first part knows about the pace of the run.
pub(super) struct Payoff {
    rest: Arc<Rest>,
    parts: u64,
    /// What is done where one thread is faster.
    alternative: Alone,
    mode: Mode,
    /// How long the faster mode goes on until the other is tried.
    stay: Duration,
    /// How long this mode has gone on, before the span that is being measured.
    stayed: Duration,
    /// While a mode is tried, what the other one did last.
    rival: Option<Work>,
    /// When the span began that is being measured, and how many events were committed then; none before
    /// the mode's second window.
    begun: Option<(Instant, u64)>,
    windows: u64,
}

impl Payoff {
    pub(super) fn new(rest: Arc<Rest>, parts: usize, alternative: Alone) -> Self {
        Self {
            rest,
            parts: u64::try_from(parts).expect("parts are few"),
            alternative,
            mode: Mode::Together,
            stay: STAY_LEAST,
            stayed: Duration::ZERO,
            rival: None,
            begun: None,
            windows: 0,
        }
    }

    /// Judges at the beginning of a window, when `committed` events are committed. Whether parallel work
    /// is to end.
    pub(super) fn judge(&mut self, committed: u64, now: Instant) -> bool {
        let Some((begun, before)) = self.begun else {
            self.begin_span(committed, now);
            return false;
        };
        self.windows += 1;
        let time = now.duration_since(begun);
        let span = if self.rival.is_some() { self.mode.trial() } else { STAY_LEAST };
        if time < span {
            return false;
        }
        let work = Work { events: committed - before, windows: self.windows, time };
        match self.rival.take() {
            Some(rival) => self.decide(&work, &rival),
            None => {
                self.stayed += time;
                if self.stayed < self.stay {
                    self.begin_span(committed, now);
                } else {
                    self.rival = Some(work);
                    self.set_mode(self.mode.other());
                }
                false
            }
        }
    }

    fn begin_span(&mut self, committed: u64, now: Instant) {
        (self.begun, self.windows) = (Some((now, committed)), 0);
    }

    /// Ends the trial of a mode, which did `work`.
    fn decide(&mut self, work: &Work, rival: &Work) -> bool {
        let (together, alone) = match self.mode {
            Mode::Together => (work, rival),
            Mode::Alone => (rival, work),
        };
        let few = self.alternative == Alone::Queue
            && alone.events < EVENTS_FEW * self.parts * alone.windows;
        let faster = if together.beats(alone, if few { QUEUE_GAINS } else { 0 }) {
            Mode::Together
        } else {
            Mode::Alone
        };
        let again = faster != self.mode;
        self.stay = if again { (self.stay * 2).min(STAY_MOST) } else { STAY_LEAST };
        self.stayed = Duration::ZERO;
        self.set_mode(faster);
        faster == Mode::Alone && few
    }

    fn set_mode(&mut self, mode: Mode) {
        self.begun = None;
        if mode != self.mode {
            self.mode = mode;
            self.rest.set(mode == Mode::Alone);
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
        let mut payoff = Payoff::new(Arc::new(Rest::new()), 2, Alone::Queue);
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
        use Alone::{Queue, Windows};
        let cases = [(3, 2, Queue, false), (2, 3, Queue, true), (2, 3, Windows, false)];
        for (together, alone, alternative, ends) in cases {
            let start = now();
            let mut payoff = Payoff::new(Arc::new(Rest::new()), 2, alternative);
            let (mut events, mut ended) = (0, false);
            for window in 0..2_000 {
                ended |= payoff.judge(events, start + Duration::from_micros(100) * window);
                events += if payoff.mode == Mode::Together { together } else { alone };
            }
            assert_eq!(ended, ends, "{together} {alone} {alternative:?}");
        }
    }
}
