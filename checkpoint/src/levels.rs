//! Levels: in whose keeping generations are, how many of them stay, and on which level the next one is written.
//!
//! | level | lies | survives |
//! | --- | --- | --- |
//! | memory | in the memory of the group's hosts, with parity on each other | the loss of as many hosts as the scheme makes up for |
//! | disk | on the disks of the group's hosts, with parity on each other | the same, and that any number of hosts is started anew |
//!
//! Both are written by the same agreement, so the newest generation of either is what a program goes on from. Most go
//! to memory, which costs the program the least; the disk gets one when its own interval is over. Nothing here does IO.

use std::collections::BTreeMap;

use meikyo_units::{Bytes, Nanos, SimTime};

use crate::charter::{Commit, Generation};
use crate::interval;
use crate::level::Level;

/// What ends the keeping of a generation before there are too many; the newest of each level stays whatever it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bound {
    /// It is freed when it is older.
    pub age: Option<Nanos>,
    /// It is freed where it and all that are newer take more on one host.
    pub room: Option<Bytes>,
}

/// Why a generation is freed though it is not one too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Surplus {
    /// It is older than that.
    #[error("it is older than {0}")]
    Old(Nanos),
    /// Together with those that are newer it takes more than that.
    #[error("with those that are newer it takes more than {0}")]
    Large(Bytes),
}

/// A generation of a level as the rules look at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// Its number.
    pub generation: Generation,
    /// How long it has been known to be committed.
    pub age: Nanos,
    /// What it takes on the host that it takes most of.
    pub bytes: Bytes,
}

/// The oldest of the generations of a level, the newest first, that is to be freed, and why.
pub fn surplus(kept: &[Kept], bound: &Bound) -> Option<(Generation, Surplus)> {
    let mut used = Bytes::ZERO;
    let mut found = None;
    for (place, kept) in kept.iter().enumerate() {
        used = Bytes::new(used.get().saturating_add(kept.bytes.get()));
        let is_old = bound.age.filter(|age| kept.age > *age).map(Surplus::Old);
        let is_large = || bound.room.filter(|room| used > *room).map(Surplus::Large);
        if place > 0
            && let Some(why) = is_old.or_else(is_large)
        {
            found = Some((kept.generation, why));
        }
    }
    found
}

/// On which level the next generation is written, as the host that begins it decides.
#[derive(Debug, Clone)]
pub struct Choice {
    every: Option<Nanos>,
    /// How long the last one took that was written to the disk.
    took: Option<Nanos>,
    /// The newest one on disk, and when that was noticed here.
    last: Option<(Generation, SimTime)>,
    /// One in memory was given up.
    was_given_up: bool,
}

impl Choice {
    /// Nothing is known yet; `every` is the time between two generations on disk where somebody insists on one.
    pub const fn new(every: Option<Nanos>) -> Self {
        Self { every, took: None, last: None, was_given_up: false }
    }

    /// This is the newest generation on disk that is committed.
    pub fn on_disk(&mut self, now: SimTime, generation: Generation) {
        if self.last.is_none_or(|(last, _)| last < generation) {
            self.last = Some((generation, now));
            self.was_given_up = false;
        }
    }

    /// A generation on disk took so long from its snapshots until it was written.
    pub const fn took(&mut self, span: Nanos) {
        self.took = Some(span);
    }

    /// A generation in memory was given up: whatever was in its way, the next goes to the disk.
    pub const fn gave_up(&mut self) {
        self.was_given_up = true;
    }

    /// From one generation on disk to the next, as far as anything is known: what it costs against how often more
    /// memory is lost than parity makes up for.
    pub fn interval(&self, between_failures_of_host: Nanos, hosts: usize) -> Option<Nanos> {
        let best = |took| interval::beyond_parity(took, between_failures_of_host, hosts);
        self.every.or_else(|| self.took.map(best))
    }

    /// The level of a generation that is begun now. Until one on disk has shown what it costs, all go there.
    pub fn level(&self, now: SimTime, between_failures_of_host: Nanos, hosts: usize) -> Level {
        let interval = self.interval(between_failures_of_host, hosts);
        match (self.last, interval) {
            (Some((_, last)), Some(interval))
                if !self.was_given_up && now.since(last) < interval =>
            {
                Level::Memory
            }
            _ => Level::Disk,
        }
    }
}

/// Since when generations are known here to be committed. A daemon that was started anew counts from its start.
#[derive(Debug, Clone)]
pub struct Ages(BTreeMap<Generation, SimTime>);

impl Ages {
    /// Nothing is known yet.
    pub const fn none() -> Self {
        Self(BTreeMap::new())
    }

    /// These are the generations that are kept now.
    pub fn note(&mut self, now: SimTime, commits: &[Commit]) {
        self.0.retain(|generation, _| commits.iter().any(|known| known.generation == *generation));
        for commit in commits {
            self.0.entry(commit.generation).or_insert(now);
        }
    }

    /// How old a generation is.
    pub fn of(&self, now: SimTime, generation: Generation) -> Nanos {
        self.0.get(&generation).map_or(Nanos::ZERO, |since| now.since(*since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SimTime {
        SimTime::START + Nanos::from_secs(seconds)
    }

    #[test]
    fn what_is_too_old_or_too_much_is_freed_from_the_oldest_on_and_the_newest_stays() {
        let kept = |number, age_s, bytes| Kept {
            generation: Generation(number),
            age: Nanos::from_secs(age_s),
            bytes: Bytes::new(bytes),
        };
        let three = [kept(9, 10, 100), kept(8, 20, 100), kept(7, 30, 100)];
        let bound = |age_s: Option<u64>, room: Option<u64>| Bound {
            age: age_s.map(Nanos::from_secs),
            room: room.map(Bytes::new),
        };
        let freed = |bound| surplus(&three, &bound).map(|(generation, _)| generation.0);
        assert_eq!(freed(bound(None, None)), None);
        assert_eq!(freed(bound(Some(30), None)), None);
        assert_eq!(freed(bound(Some(29), None)), Some(7));
        assert_eq!(freed(bound(None, Some(300))), None);
        assert_eq!(freed(bound(None, Some(299))), Some(7));
        assert_eq!(surplus(&three[..2], &bound(Some(5), None)).unwrap().0, Generation(8));
        assert_eq!(surplus(&three[..1], &bound(Some(5), Some(1))), None);
        let (_, why) = surplus(&three, &bound(None, Some(250))).unwrap();
        assert_eq!(why.to_string(), "with those that are newer it takes more than 250B");
    }

    #[test]
    fn the_disk_gets_a_generation_when_its_interval_is_over_and_memory_the_others() {
        let mtbf = Nanos::from_secs(1_500_000);
        let mut choice = Choice::new(None);
        assert_eq!(choice.level(at(0), mtbf, 10), Level::Disk);
        choice.on_disk(at(0), Generation(1));
        assert_eq!(choice.level(at(1), mtbf, 10), Level::Disk, "nobody knows what it costs");
        // 5 s of the program in 100 s, and a failure beyond parity in 1,000,000 s: sqrt(2 * 5 * 1e6) = 3162 s.
        choice.took(Nanos::from_secs(100));
        assert_eq!(choice.level(at(3_100), mtbf, 10), Level::Memory);
        assert_eq!(choice.level(at(3_200), mtbf, 10), Level::Disk);
        choice.on_disk(at(3_200), Generation(5));
        // It was known before, and counts from then.
        choice.on_disk(at(9_000), Generation(5));
        assert_eq!(choice.level(at(3_300), mtbf, 10), Level::Memory);
        choice.gave_up();
        assert_eq!(choice.level(at(3_300), mtbf, 10), Level::Disk);
        choice.on_disk(at(3_400), Generation(7));
        assert_eq!(choice.level(at(3_500), mtbf, 10), Level::Memory);
        let mut insisted = Choice::new(Some(Nanos::from_secs(60)));
        insisted.on_disk(at(0), Generation(1));
        assert_eq!(insisted.level(at(59), mtbf, 10), Level::Memory);
        assert_eq!(insisted.level(at(60), mtbf, 10), Level::Disk);
    }
}
