//! The levels themselves, below everything that is agreed on: [`crate::levels`] has the rules.

use serde::{Deserialize, Serialize};

/// Generations of a level that are kept at most.
pub const KEPT_MAX: u8 = 8;

/// Where the hosts of a group keep a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// In the memory of the hosts.
    Memory,
    /// On their disks.
    Disk,
}

impl Level {
    /// As it is shown.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Disk => "disk",
        }
    }
}

/// How many committed generations of each level are kept: one to [`KEPT_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// Of those that go with the power.
    pub memory: u8,
    /// Of those that stay.
    pub disk: u8,
}

impl Keep {
    /// On disk the newest, and the one before it in case that stored blocks of the newest turn out to be damaged; in
    /// memory the newest.
    pub const DEFAULT: Self = Self { memory: 1, disk: 2 };

    pub(crate) const fn of(self, level: Level) -> u8 {
        match level {
            Level::Memory => self.memory,
            Level::Disk => self.disk,
        }
    }
}
