//! Whether a program that runs still comes to its checkpoints: a core without IO.
//!
//! A program that hangs holds its connection, and no detector of dead hosts or processes sees it. What is known of it is
//! when it has saved. One that has saved twice is taken to be stalled when it saves nothing for much longer than it ever
//! took between two saves before.

use meikyo_units::{Nanos, SimTime};

/// So many times the longest span between two saves.
const TIMES: u64 = 5;

/// A program that saves every second may think for a minute.
const LEAST: Nanos = Nanos::from_secs(60);

/// When a program has saved.
#[derive(Debug, Default)]
pub struct Progress {
    limit: Option<Nanos>,
    last: Option<SimTime>,
    longest: Option<Nanos>,
    is_told: bool,
}

impl Progress {
    /// A program is taken to be stalled when it has saved nothing for `limit`; for none, by what it did before.
    pub fn new(limit: Option<Nanos>) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Another program has begun, or this one has ended.
    pub fn forget(&mut self) {
        *self = Self::new(self.limit);
    }

    /// The program has begun, or has saved.
    pub fn saved(&mut self, now: SimTime) {
        let span = self.last.map(|last| now.since(last));
        self.longest = self.longest.max(span);
        self.last = Some(now);
        self.is_told = false;
    }

    /// For how long it has saved nothing, if that is too long; told once until it saves again.
    pub fn stalled(&mut self, now: SimTime) -> Option<Nanos> {
        let usual = self.longest.map(|longest| Nanos::new(longest.get() * TIMES).max(LEAST));
        let (limit, since) = (self.limit.or(usual)?, now.since(self.last?));
        let is_new = since > limit && !self.is_told;
        self.is_told |= is_new;
        is_new.then_some(since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SimTime {
        SimTime::START + Nanos::from_secs(seconds)
    }

    #[test]
    fn a_program_is_stalled_when_it_takes_much_longer_than_it_ever_took_and_that_is_told_once() {
        let mut progress = Progress::new(None);
        progress.saved(at(0));
        assert_eq!(progress.stalled(at(1_000)), None, "nothing is known of it yet");
        progress.saved(at(1_000));
        progress.saved(at(1_020));
        assert_eq!(progress.stalled(at(6_020)), None);
        assert_eq!(progress.stalled(at(6_021)), Some(Nanos::from_secs(5_001)));
        assert_eq!(progress.stalled(at(9_000)), None);
        progress.saved(at(9_001));
        progress.forget();
        assert_eq!(progress.stalled(at(99_000)), None, "it has ended");
        progress.saved(at(99_000));
        progress.saved(at(99_001));
        assert_eq!(
            (progress.stalled(at(99_061)), progress.stalled(at(99_062)).is_some()),
            (None, true)
        );
    }

    #[test]
    fn whoever_knows_better_says_how_long_it_may_take() {
        let mut progress = Progress::new(Some(Nanos::from_secs(10)));
        assert_eq!(progress.stalled(at(100)), None);
        progress.saved(at(100));
        assert_eq!(progress.stalled(at(110)), None);
        assert_eq!(progress.stalled(at(111)), Some(Nanos::from_secs(11)));
    }
}
