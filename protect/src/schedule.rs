//! When a checkpoint pays, and when the program should end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use meikyo_checkpoint::interval::{Risk, daly};
use meikyo_units::Nanos;

/// Seconds between two checkpoints, where the user insists.
const EVERY: &str = "MEIKYO_CHECKPOINT_EVERY";

/// Seconds that the program may run.
const WALL: &str = "MEIKYO_CHECKPOINT_WALL";

/// The signal that asks the program to save and end: its number.
const SIGNAL: &str = "MEIKYO_CHECKPOINT_SIGNAL";

/// The first checkpoint comes after so long, since nothing was measured before.
const FIRST: Duration = Duration::from_secs(60);

/// What a daemon says of its group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Group {
    pub(crate) hosts: usize,
    /// Mean time between failures of one of them.
    pub(crate) between_failures: Nanos,
}

/// When what is due.
#[derive(Debug)]
pub(crate) struct Schedule {
    begun: Instant,
    last: Instant,
    interval: Duration,
    every: Option<Duration>,
    wall: Option<Duration>,
    group: Group,
    signalled: Arc<AtomicBool>,
}

impl Schedule {
    pub(crate) fn new(group: Group) -> Self {
        let seconds = |name: &str| {
            let text = std::env::var(name).ok()?;
            Duration::try_from_secs_f64(text.trim_end_matches('s').parse().ok()?).ok()
        };
        let every = seconds(EVERY);
        let signalled = Arc::new(AtomicBool::new(false));
        if let Some(signal) = std::env::var(SIGNAL).ok().and_then(|text| text.parse().ok()) {
            // A signal that cannot be waited for leaves the wall time.
            drop(signal_hook::flag::register(signal, Arc::clone(&signalled)));
        }
        Self {
            begun: now(),
            last: now(),
            interval: every.unwrap_or(FIRST),
            every,
            wall: seconds(WALL),
            group,
            signalled,
        }
    }

    pub(crate) fn is_due(&self) -> bool {
        self.last.elapsed() >= self.interval || self.should_exit()
    }

    pub(crate) fn should_exit(&self) -> bool {
        self.signalled.load(Ordering::Relaxed)
            || self.wall.is_some_and(|wall| self.begun.elapsed() >= wall)
    }

    /// A checkpoint has stopped the program for so long: Daly's interval follows.
    pub(crate) fn saved(&mut self, took: Duration) {
        self.last = now();
        let cost = Nanos::from_secs_f64(took.as_secs_f64());
        self.interval = self.every.unwrap_or_else(|| interval(self.group, cost));
    }
}

/// From one checkpoint to the next, where one costs the program so much.
fn interval(group: Group, cost: Nanos) -> Duration {
    let between_failures = Nanos::new(group.between_failures.get() / (group.hosts as u64).max(1));
    daly(&Risk { cost, restart: Nanos::ZERO, between_failures }).to_std()
}

#[expect(clippy::disallowed_methods, reason = "checkpoints are due by the clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_fail_more_often_are_protected_more_often() {
        // Young's sqrt(2 C M), of which Daly's differs by less than a hundredth where C is short.
        for (hosts, failing_s, young_s) in
            [(1, 31_536_000, 1_775.838), (64, 31_536_000, 221.979), (64, 86_400, 11.619)]
        {
            let group = Group { hosts, between_failures: Nanos::from_secs(failing_s) };
            let found = interval(group, Nanos::from_millis(50)).as_secs_f64();
            assert!((found / young_s - 1.0).abs() < 0.01, "{found} {young_s}");
        }
    }
}
