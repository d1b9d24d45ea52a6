//! The rules of levels as somebody has written them: in the job's file, or on the command line, which counts before it.

use std::path::PathBuf;

use meikyo_units::{Bytes, Nanos};
use serde::Deserialize;

use super::levels::LevelOptions;
use super::memory::MemoryOptions;
use crate::level::{KEPT_MAX, Keep};
use crate::levels::Bound;

/// Where memory is, where nobody says another place.
const MEMORY: &str = "/dev/shm";

/// Rules that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RulesError {
    /// A number of generations to keep.
    #[error("{0} generations of a level cannot be kept: 1 to {KEPT_MAX} can")]
    Keep(u8),
    /// Something is said of generations in memory, and none are there.
    #[error("nothing is kept in memory, since nothing says how much of it is given: {0}")]
    NoMemory(&'static str),
}

/// What is said of generations in memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryRules {
    /// The most that they take on a host; without it nothing is kept in memory.
    pub room: Option<Bytes>,
    /// A directory on a `tmpfs`.
    pub directory: Option<PathBuf>,
    /// How many are kept.
    pub keep: Option<u8>,
    /// Those but the newest are freed when they are older.
    pub keep_for: Option<Nanos>,
}

/// What is said of generations on disk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskRules {
    /// From one to the next, where others are in memory.
    pub every: Option<Nanos>,
    /// How many are kept.
    pub keep: Option<u8>,
    /// Those but the newest are freed when they are older.
    pub keep_for: Option<Nanos>,
    /// Those but the newest are freed when all take more on a host.
    pub keep_within: Option<Bytes>,
}

/// What is said of both levels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// What goes with the power.
    pub memory: MemoryRules,
    /// What stays.
    pub disk: DiskRules,
}

impl Rules {
    /// These rules, and where they say nothing others.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let (memory, disk) = (other.memory, other.disk);
        Self {
            memory: MemoryRules {
                room: self.memory.room.or(memory.room),
                directory: self.memory.directory.or(memory.directory),
                keep: self.memory.keep.or(memory.keep),
                keep_for: self.memory.keep_for.or(memory.keep_for),
            },
            disk: DiskRules {
                every: self.disk.every.or(disk.every),
                keep: self.disk.keep.or(disk.keep),
                keep_for: self.disk.keep_for.or(disk.keep_for),
                keep_within: self.disk.keep_within.or(disk.keep_within),
            },
        }
    }

    /// What a daemon does by them; `between_failures` is the mean time between failures of one host.
    ///
    /// # Errors
    /// When they cannot be.
    pub fn options(self, between_failures: Nanos) -> Result<LevelOptions, RulesError> {
        let Self { memory, disk } = self;
        let keep = |keep: Option<u8>, default| match keep.unwrap_or(default) {
            keep if (1..=KEPT_MAX).contains(&keep) => Ok(keep),
            keep => Err(RulesError::Keep(keep)),
        };
        let needless = [
            (memory.directory.is_some(), "a directory of it is named"),
            (memory.keep.is_some() || memory.keep_for.is_some(), "its generations have a rule"),
            (disk.every.is_some(), "the disk has an interval of its own"),
        ];
        if memory.room.is_none()
            && let Some((_, what)) = needless.into_iter().find(|(is_said, _)| *is_said)
        {
            return Err(RulesError::NoMemory(what));
        }
        Ok(LevelOptions {
            keep: Keep {
                memory: keep(memory.keep, Keep::DEFAULT.memory)?,
                disk: keep(disk.keep, Keep::DEFAULT.disk)?,
            },
            memory: memory.room.map(|room| MemoryOptions {
                directory: memory.directory.unwrap_or_else(|| MEMORY.into()),
                room,
            }),
            disk_every: disk.every,
            memory_age: memory.keep_for,
            disk: Bound { age: disk.keep_for, room: disk.keep_within },
            between_failures,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_counts_before_the_file_and_what_cannot_be_is_refused() {
        let mut line = Rules::default();
        line.disk.keep = Some(3);
        let mut file = Rules::default();
        (file.disk.keep, file.memory.room) = (Some(5), Some(Bytes::new(1 << 30)));
        let mtbf = Nanos::from_secs(1);
        let options = line.clone().or(file.clone()).options(mtbf).unwrap();
        assert_eq!(options.keep, Keep { memory: 1, disk: 3 });
        assert_eq!(options.memory.unwrap().directory, PathBuf::from(MEMORY));
        file.memory.keep = Some(9);
        assert_eq!(file.options(mtbf), Err(RulesError::Keep(9)));
        line.disk.every = Some(Nanos::from_secs(60));
        let refused = line.options(mtbf).unwrap_err().to_string();
        assert!(refused.ends_with("the disk has an interval of its own"), "{refused}");
        assert_eq!(Rules::default().options(mtbf), Ok(LevelOptions::on_disk(mtbf)));
    }
}
