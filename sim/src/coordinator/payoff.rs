//! Judges whether parallel work pays: how many workers are busy on the average.
//!
//! One window in several is timed on every worker, from its first event to its last, and on the first
//! worker from exchange to exchange. The ratio of the two sums is the average number of busy workers.

use std::time::{Duration, Instant};

use super::announcer::now;

/// How long the workers may work before they are judged.
const PROBATION: Duration = Duration::from_millis(20);

/// What the first part knows about how long the timed windows took.
#[derive(Debug)]
pub(super) struct Payoff {
    /// How many workers must be busy on the average.
    least: f64,
    started: Instant,
    /// When the timed window began that is under way.
    window: Option<Instant>,
    /// How long the timed windows took that are over.
    windows: Duration,
}

impl Payoff {
    pub(super) fn new(least: f64) -> Self {
        Self { least, started: now(), window: None, windows: Duration::ZERO }
    }

    /// Whether too few workers are busy. `busy_ns` is how long all workers were so far in timed windows;
    /// the window that begins now is `timed` or not.
    pub(super) fn is_too_small(&mut self, busy_ns: u64, timed: bool) -> bool {
        let ended = self.window.take().map(|begin| begin.elapsed());
        if timed {
            self.window = Some(now());
        }
        let Some(ended) = ended else { return false };
        self.windows += ended;
        let busy = Duration::from_nanos(busy_ns).as_secs_f64();
        self.started.elapsed() >= PROBATION && busy < self.least * self.windows.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_pays_while_enough_workers_are_busy_in_the_windows_that_are_timed() {
        let judged = |busy_share: f64| {
            let mut payoff = Payoff::new(1.2);
            // Windows that have lasted a second together, long after the probation.
            payoff.started =
                now().checked_sub(2 * PROBATION).expect("the machine is up for longer");
            payoff.windows = Duration::from_secs(1);
            assert!(!payoff.is_too_small(0, true), "no window was timed so far");
            let busy = Duration::from_secs(1).mul_f64(busy_share);
            payoff.is_too_small(u64::try_from(busy.as_nanos()).expect("seconds"), false)
        };
        assert!(judged(1.1));
        assert!(!judged(10.0));
    }

    #[test]
    fn nobody_is_judged_in_the_probation() {
        let mut payoff = Payoff::new(f64::INFINITY);
        assert!(!payoff.is_too_small(0, true));
        assert!(!payoff.is_too_small(0, false) || payoff.started.elapsed() >= PROBATION);
    }
}
