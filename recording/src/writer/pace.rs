//! How soon a sync may follow the ones before.
//!
//! In the long run there is one a [`StreamOptions::sync_every`](super::StreamOptions::sync_every). After a
//! quiet time a few may follow each other at once, so that what comes in a burst need not wait for its turn.

use std::time::{Duration, Instant};

/// Syncs that may follow each other at once.
const AT_ONCE: u32 = 4;

/// When the next sync may begin.
#[derive(Debug)]
pub(super) struct Pace {
    every: Duration,
    /// When all [`AT_ONCE`] may follow each other again.
    rested_at: Instant,
}

impl Pace {
    pub(super) fn new(every: Duration, now: Instant) -> Self {
        Self { every, rested_at: now }
    }

    /// How long the next sync has to wait.
    pub(super) fn wait(&self, now: Instant) -> Duration {
        let tired = self.rested_at.saturating_duration_since(now);
        tired.saturating_sub(self.every * (AT_ONCE - 1))
    }

    /// Notes that a sync has begun, in its turn or because somebody asked for it.
    pub(super) fn begun(&mut self, now: Instant) {
        let rested_at = self.rested_at.max(now) + self.every;
        self.rested_at = rested_at.min(now + self.every * AT_ONCE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "any instant will do")]
    fn a_burst_is_synced_at_once_and_then_one_in_its_turn() {
        let (every, begin) = (Duration::from_millis(250), Instant::now());
        let mut pace = Pace::new(every, begin);
        let ms = Duration::from_millis;
        for _ in 0..AT_ONCE {
            assert_eq!(pace.wait(begin + ms(3)), Duration::ZERO);
            pace.begun(begin + ms(3));
        }
        assert_eq!(pace.wait(begin + ms(3)), every);
        assert_eq!(pace.wait(begin + ms(103)), ms(150));
        // As many in ten seconds as their turns are, and those that were spared before.
        let mut now = begin + ms(3);
        let mut syncs = 0;
        while now < begin + ms(10_003) {
            now += pace.wait(now).max(ms(1));
            pace.begun(now);
            syncs += 1;
        }
        assert_eq!(syncs, 40);
        // However many were asked for, the next turn is not far.
        (0..100).for_each(|_| pace.begun(now));
        assert_eq!(pace.wait(now), every);
        let now = now + AT_ONCE * every;
        assert_eq!(pace.wait(now), Duration::ZERO);
    }
}
