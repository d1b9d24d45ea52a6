//! When an agent reads its system: at every request, at regular moments, or at irregular ones.

use std::str::FromStr;

use meikyo_units::{Nanos, ParseQuantityError, WallTime};
use meikyo_worlds::random::{below, draw};

/// How an agent caches a group of its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cache {
    /// Not at all: every answer is of now.
    #[default]
    None,
    /// Refreshed every so often, at a phase of the agent's own.
    Every(Nanos),
    /// Refreshed at spans drawn evenly between these two.
    Between(Nanos, Nanos),
}

impl FromStr for Cache {
    type Err = ParseQuantityError;

    /// Reads `none`, `3s`, or `600ms..1.2s`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "none" {
            return Ok(Self::None);
        }
        if let Some((least, greatest)) = text.split_once("..") {
            let (least, greatest): (Nanos, Nanos) = (least.parse()?, greatest.parse()?);
            return Ok(Self::Between(least.min(greatest), least.max(greatest)));
        }
        let period: Nanos = text.parse()?;
        Ok(if period == Nanos::ZERO { Self::None } else { Self::Every(period) })
    }
}

/// The cache of one group of one agent.
#[derive(Debug, Clone, Default)]
pub(crate) struct CacheClock {
    configured: Cache,
    /// What a SET of nsCacheTimeout put in its place, until the agent restarts.
    written: Option<Nanos>,
    /// When the agent or its counters started anew: nothing is held from before.
    since: WallTime,
    /// Irregular only: the last refresh and the one that comes.
    last: WallTime,
    next: WallTime,
    refreshes: u64,
}

impl CacheClock {
    pub(crate) fn new(configured: Cache) -> Self {
        Self { configured, ..Self::default() }
    }

    fn active(&self) -> Cache {
        match self.written {
            None => self.configured,
            Some(Nanos::ZERO) => Cache::None,
            Some(period) => Cache::Every(period),
        }
    }

    /// Whether values come from the cache.
    #[inline]
    pub(crate) fn is_caching(&self) -> bool {
        self.active() != Cache::None
    }

    /// The declared timeout; `None` without a cache.
    pub(crate) fn timeout(&self) -> Option<Nanos> {
        match self.active() {
            Cache::None => None,
            Cache::Every(period) | Cache::Between(_, period) => Some(period),
        }
    }

    /// What a SET of nsCacheTimeout does.
    pub(crate) fn set_timeout(&mut self, timeout: Nanos) {
        self.written = Some(timeout);
    }

    /// What a restart of the agent at `now` does.
    pub(crate) fn restart(&mut self, now: WallTime) {
        self.written = None;
        self.empty(now);
    }

    /// Nothing that was read before `now` is answered any more.
    pub(crate) fn empty(&mut self, now: WallTime) {
        self.since = now;
        self.last = WallTime::default();
        self.next = WallTime::default();
    }

    /// When what is answered at `now` was read from the system; `None` without a cache.
    #[inline]
    pub(crate) fn filled_at(&mut self, now: WallTime, key: u64) -> Option<WallTime> {
        match self.active() {
            Cache::None => None,
            Cache::Every(period) => {
                let phase = Nanos::new(below(draw(key, 0), period.get()));
                Some((now.before(phase).floor(period) + phase).max(self.since))
            }
            Cache::Between(least, greatest) => {
                if self.next == WallTime::default() {
                    self.last = now;
                    self.next = now + self.span(key, least, greatest);
                }
                while self.next <= now {
                    self.last = self.next;
                    self.next = self.next + self.span(key, least, greatest);
                }
                Some(self.last)
            }
        }
    }

    fn span(&mut self, key: u64, least: Nanos, greatest: Nanos) -> Nanos {
        self.refreshes += 1;
        let width = greatest.saturating_sub(least).get();
        // A span of nothing would never reach `now`.
        (least + Nanos::new(below(draw(key, self.refreshes), width + 1))).max(Nanos::new(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(cache: Cache) -> Vec<Nanos> {
        let mut clock = CacheClock::new(cache);
        let mut filled: Vec<WallTime> = (0..60_000_i64)
            .map(|ms| WallTime::from_nanos(1_700_000_000_000_000_000 + ms * 1_000_000))
            .filter_map(|now| {
                let filled = clock.filled_at(now, 77)?;
                assert!(filled <= now);
                Some(filled)
            })
            .collect();
        filled.dedup();
        filled.windows(2).skip(1).map(|pair| pair[1] - pair[0]).collect()
    }

    #[test]
    fn a_regular_cache_refreshes_at_its_period() {
        let period = Nanos::from_secs(3);
        let spans = edges(Cache::Every(period));
        assert_eq!(spans.len(), 19);
        assert!(spans.iter().all(|&span| span == period));
    }

    #[test]
    fn an_irregular_cache_stays_in_its_range_and_uses_it() {
        let cache: Cache = "0.6s..1.2s".parse().unwrap();
        let spans = edges(cache);
        let (least, greatest) = (spans.iter().min().unwrap(), spans.iter().max().unwrap());
        assert!(*least >= Nanos::from_millis(600) && *greatest <= Nanos::from_millis(1200));
        assert!(*least < Nanos::from_millis(680) && *greatest > Nanos::from_millis(1120));
    }

    #[test]
    fn a_written_timeout_holds_until_the_restart() {
        let mut clock = CacheClock::new(Cache::Every(Nanos::from_secs(3)));
        clock.set_timeout(Nanos::ZERO);
        assert!(!clock.is_caching());
        assert_eq!(clock.timeout(), None);
        clock.restart(WallTime::default());
        assert_eq!(clock.timeout(), Some(Nanos::from_secs(3)));
    }
}
