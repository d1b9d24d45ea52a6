//! What a daemon does about levels: it says where the next generation is kept, frees what the rules do not keep, and
//! writes down at its end what is in memory.

use meikyo_units::{Bytes, Nanos, SimTime};
use serde::{Deserialize, Serialize};

use super::control::{Cost, StoredPart};
use super::memory::MemoryOptions;
use super::{Daemon, What};
use crate::charter::{Charter, Generation};
use crate::interval::{INTERFERENCE, Risk, daly};
use crate::level::{Keep, Level};
use crate::levels::{Ages, Bound, Choice, Kept, Surplus, surplus};

/// Between two looks at what has become too old.
const LOOK_AGAIN: Nanos = Nanos::from_secs(1);

/// Where generations are kept, how many, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelOptions {
    /// Memory, where most generations are kept there.
    pub memory: Option<MemoryOptions>,
    /// From one generation on disk to the next, where others are in memory; nothing to choose it by what it costs.
    pub disk_every: Option<Nanos>,
    /// How many generations are kept.
    pub keep: Keep,
    /// What ends the keeping in memory sooner. Its room is that of `memory`.
    pub memory_age: Option<Nanos>,
    /// What ends the keeping on disk sooner.
    pub disk: Bound,
    /// Mean time between failures of one host.
    pub between_failures: Nanos,
}

impl LevelOptions {
    /// Everything on disk, the newest two: `between_failures` is the mean time between failures of one host.
    pub const fn on_disk(between_failures: Nanos) -> Self {
        Self {
            memory: None,
            disk_every: None,
            keep: Keep::DEFAULT,
            memory_age: None,
            disk: Bound { age: None, room: None },
            between_failures,
        }
    }
}

/// How a level stands on a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelStatus {
    /// What the row is about.
    pub level: Level,
    /// The numbers of its committed generations, the newest first.
    pub kept: Vec<u64>,
    /// The program's number of the newest.
    pub step: Option<u64>,
    /// Octets of them on the host that they take most of.
    pub bytes: u64,
    /// The most that they may take on a host, the one that is being written included.
    pub room_bytes: Option<u64>,
    /// How long the last one took that this host has written.
    pub took_seconds: Option<f64>,
    /// How long after the one before the next one pays, or is insisted on.
    pub every_seconds: Option<f64>,
}

/// What this host knows about levels.
#[derive(Debug)]
pub(super) struct Levels {
    options: LevelOptions,
    choice: Choice,
    ages: Ages,
    /// What the last one in memory cost here.
    memory_cost: Option<Cost>,
    disk_took: Option<Nanos>,
    /// What is kept as it was seen last.
    kept: Vec<(Generation, Level)>,
    /// What this host wants to be freed, and why.
    wanted: Option<(Generation, Surplus)>,
    look_at: SimTime,
    freed: Option<String>,
}

impl Levels {
    pub(super) const fn new(options: LevelOptions) -> Self {
        let choice = Choice::new(options.disk_every);
        Self {
            options,
            choice,
            ages: Ages::none(),
            memory_cost: None,
            disk_took: None,
            kept: Vec::new(),
            wanted: None,
            look_at: SimTime::START,
            freed: None,
        }
    }

    /// What was freed last, for a person.
    pub(super) fn freed(&self) -> Option<String> {
        self.freed.clone()
    }

    fn bound(&self, level: Level, newest: Bytes) -> Bound {
        match (level, &self.options.memory) {
            (Level::Disk, _) => self.options.disk,
            (Level::Memory, memory) => Bound {
                age: self.options.memory_age,
                // The next one needs as much as the newest, beside what is kept.
                room: memory
                    .as_ref()
                    .map(|memory| Bytes::new(memory.room.get().saturating_sub(newest.get()))),
            },
        }
    }

    fn took(&self, level: Level) -> Option<Nanos> {
        match level {
            Level::Memory => {
                self.memory_cost.as_ref().map(|cost| Nanos::from_secs_f64(cost.seconds))
            }
            Level::Disk => self.disk_took,
        }
    }

    /// From one generation of a level to the next, where that is known: memory makes up for every failure that parity
    /// does, and costs the stop and what is done behind the program.
    fn interval(&self, level: Level, hosts: usize) -> Option<Nanos> {
        let mean = self.options.between_failures;
        if level == Level::Disk {
            return self.choice.interval(mean, hosts);
        }
        let cost = self.memory_cost.as_ref()?;
        let cost =
            Nanos::from_secs_f64(cost.stop_seconds.unwrap_or(0.0) + cost.seconds * INTERFERENCE);
        let between_failures = Nanos::new(mean.get() / hosts.max(1) as u64);
        Some(daly(&Risk { cost, restart: Nanos::ZERO, between_failures }))
    }
}

/// Octets of a generation on the host that it takes most of.
fn most_of(parts: &[StoredPart]) -> Bytes {
    let most = parts.iter().map(|part| part.image_bytes.saturating_add(part.parity_bytes)).max();
    Bytes::new(most.unwrap_or(0))
}

impl Daemon {
    /// Before this host begins a generation: where all are to keep it. One that has no room in memory goes to the disk.
    pub(super) fn decide_level(&mut self) {
        let (now, hosts) = (self.now(), self.layout.hosts());
        let Some(memory) = self.storage.memory() else { return };
        let handed = self.program.ready().map_or(0, |image| image.len() as u64);
        let needed = self.geometry(vec![handed; hosts]).map_or(u64::MAX, |geometry| {
            handed + geometry.parity_blocks() * u64::from(geometry.block())
        });
        let has_room = memory.left().is_ok_and(|left| needed <= left);
        let mean = self.levels.options.between_failures;
        let level = if has_room { self.levels.choice.level(now, mean, hosts) } else { Level::Disk };
        self.member.level_next(level);
    }

    /// This host's part of a generation of this level is written.
    pub(super) fn level_saved(&mut self, level: Level, cost: &Cost) {
        if level == Level::Memory {
            self.levels.memory_cost = Some(cost.clone());
            return;
        }
        let took = Nanos::from_secs_f64(cost.seconds);
        self.levels.disk_took = Some(took);
        self.levels.choice.took(took);
    }

    /// A generation of this level was given up.
    pub(super) const fn level_gave_up(&mut self, level: Level) {
        if matches!(level, Level::Memory) {
            self.levels.choice.gave_up();
        }
    }

    /// Notices what is kept and what was freed, and frees what the rules do not keep.
    pub(super) fn watch_levels(&mut self) {
        let now = self.now();
        let Some(charter) = self.member.charter() else { return };
        let kept: Vec<(Generation, Level)> =
            charter.commits.iter().map(|commit| (commit.generation, commit.level)).collect();
        let is_new = kept != self.levels.kept;
        if !is_new && now < self.levels.look_at {
            return;
        }
        self.levels.look_at = now + LOOK_AGAIN;
        if is_new {
            self.levels.ages.note(now, &charter.commits);
            if let Some(newest) = charter.newest_of(Level::Disk) {
                self.levels.choice.on_disk(now, newest.generation);
            }
            let before = std::mem::replace(&mut self.levels.kept, kept.clone());
            let gone = before.into_iter().filter(|known| !kept.contains(known));
            for (generation, level) in gone.collect::<Vec<_>>() {
                self.level_freed(generation, level);
            }
        }
        self.free_surplus(now);
    }

    fn level_freed(&mut self, generation: Generation, level: Level) {
        let wanted = self.levels.wanted.take_if(|(wanted, _)| *wanted == generation);
        let why =
            wanted.map_or_else(|| "newer ones are kept".to_owned(), |(_, why)| why.to_string());
        let text = format!("generation {} in {} is freed: {why}", generation.0, level.word());
        self.levels.freed = Some(text.clone());
        if self.is_first_alive() {
            self.tell(What::Freed, Some(generation), text);
        }
    }

    /// Of the hosts that live, the first.
    pub(super) fn is_first_alive(&self) -> bool {
        (0..self.options.place).all(|place| self.member.detection().is_dead(place))
    }

    fn free_surplus(&mut self, now: SimTime) {
        if !self.is_first_alive() {
            return;
        }
        for level in [Level::Memory, Level::Disk] {
            let kept = self.kept_of(now, level);
            let newest = kept.first().map_or(Bytes::ZERO, |kept| kept.bytes);
            if let Some((generation, why)) = surplus(&kept, &self.levels.bound(level, newest)) {
                self.levels.wanted = Some((generation, why));
                self.member.free(generation);
                return;
            }
        }
    }

    fn kept_of(&self, now: SimTime, level: Level) -> Vec<Kept> {
        let commits = self.member.charter().map_or(&[][..], |charter| &charter.commits);
        let kept = commits.iter().filter(|commit| commit.level == level).map(|commit| Kept {
            generation: commit.generation,
            age: self.levels.ages.of(now, commit.generation),
            bytes: most_of(&self.stored_parts(&commit.lens)),
        });
        kept.collect()
    }

    /// How each level stands that generations are kept on.
    pub(super) fn level_statuses(&self) -> Vec<LevelStatus> {
        let (now, hosts) = (self.now(), self.layout.hosts());
        let newest =
            |level| self.member.charter().and_then(|charter: &Charter| charter.newest_of(level));
        let memory = self.storage.memory();
        let level_of = |level: Level| {
            let kept = self.kept_of(now, level);
            let room = match level {
                Level::Memory => memory.map(|memory| memory.room()),
                Level::Disk => self.levels.options.disk.room,
            };
            LevelStatus {
                level,
                step: newest(level).map(|commit| commit.reached.step),
                bytes: kept.iter().map(|kept| kept.bytes.get()).sum(),
                kept: kept.iter().map(|kept| kept.generation.0).collect(),
                room_bytes: room.map(Bytes::get),
                took_seconds: self.levels.took(level).map(Nanos::as_secs_f64),
                // Without memory the program alone says when the disk gets one.
                every_seconds: memory
                    .and_then(|_| self.levels.interval(level, hosts))
                    .map(Nanos::as_secs_f64),
            }
        };
        let all = [Level::Memory, Level::Disk].map(level_of);
        let is_used =
            |of: &LevelStatus| of.level == Level::Disk || memory.is_some() || !of.kept.is_empty();
        all.into_iter().filter(is_used).collect()
    }

    /// The daemon's end: the newest generation is written to the disk if it lies in memory, and memory is given back. What
    /// the disk does not take stays there.
    pub(super) fn write_down(&mut self) -> Result<(), String> {
        let newest = self.member.charter().and_then(Charter::newest_number);
        if let Some(newest) = newest.filter(|newest| self.storage.is_in_memory(*newest))
            && self.has(newest)
        {
            self.storage.write_down(newest).map_err(|error| {
                format!("generation {} stays in memory: {}", newest.0, super::told(error))
            })?;
        }
        let Some(memory) = self.storage.memory() else { return Ok(()) };
        memory.forget().map_err(super::told)
    }
}
