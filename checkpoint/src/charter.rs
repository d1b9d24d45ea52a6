//! What a group agrees on: who its members are, and which generations are whole.
//!
//! A charter changes only by a [`Change`], and only by agreement of a majority ([`crate::register`]).
//! Nothing here sends or waits.

use serde::{Deserialize, Serialize};

/// The number of a checkpoint of the whole group; greater is newer, and no number is used twice.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Generation(pub u64);

/// One life of a host's storage: drawn at random when a daemon begins with an empty directory, and kept in
/// it. A host that lost its disk comes back as another incarnation.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Incarnation(pub u64);

/// How far the program had come: a later run, or a later step of the same run, is greater.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Reached {
    /// Which start of the program: the same number on all hosts, and a greater one whenever it is started
    /// anew.
    pub run: u64,
    /// The program's own number for what it has reached.
    pub step: u64,
}

/// How many committed generations are kept: the newest, and the one before it in case that stored blocks of
/// the newest turn out to be damaged.
pub const COMMITS_KEPT: usize = 2;

/// A generation that is whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// Its number.
    pub generation: Generation,
    /// How far the program had come.
    pub reached: Reached,
    /// The membership version that it was written under.
    pub version: u64,
    /// Octets of the image of each host.
    pub lens: Vec<u64>,
    /// The checksum of each host's manifest; `None` of a host that was lost before it could tell, and
    /// is rebuilt.
    pub manifests: Vec<Option<u32>>,
}

/// A generation that is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// Its number.
    pub generation: Generation,
    /// How far the program has come.
    pub reached: Reached,
    /// The membership version that it is written under.
    pub version: u64,
    /// The place of the host that coordinates it.
    pub coordinator: usize,
    /// The life of that host's daemon, so that one that was restarted is known to have forgotten.
    pub life: u64,
}

/// Members and generations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charter {
    /// The group: a number that follows from the incarnations that founded it. What is said in another group
    /// counts for nothing.
    pub group: u64,
    /// The membership version: one more with every change of `members`.
    pub version: u64,
    /// Who stands at each place of the group.
    pub members: Vec<Incarnation>,
    /// The greatest generation that was ever begun.
    pub last: Generation,
    /// The generation that is being written.
    pub open: Option<Opened>,
    /// The newest committed generations, the newest first; at most [`COMMITS_KEPT`].
    pub commits: Vec<Commit>,
}

/// What somebody wants to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Nothing: find out what holds.
    Nothing,
    /// Begin the next generation.
    Begin {
        /// How far the program has come.
        reached: Reached,
        /// The place of the host that coordinates it.
        coordinator: usize,
        /// The life of its daemon.
        life: u64,
    },
    /// The open generation is whole.
    Commit(Commit),
    /// The open generation will not be.
    Abort(Generation),
    /// Another incarnation stands at a place.
    Admit {
        /// Whose place in the group is taken.
        place: usize,
        /// Who stands there.
        incarnation: Incarnation,
    },
}

/// Why a change is not possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// Another generation is being written.
    #[error("generation {} is being written", .0.0)]
    Busy(Generation),
    /// The generation was committed or aborted by somebody else.
    #[error("generation {} is no longer being written", .0.0)]
    NotOpen(Generation),
}

impl Charter {
    /// What holds before anything was agreed on: these members, and no generation.
    pub fn founding(members: Vec<Incarnation>) -> Self {
        // FNV-1a over random numbers; zero is no group.
        let mix =
            |hash: u64, member: &Incarnation| (hash ^ member.0).wrapping_mul(0x0100_0000_01b3);
        let group = members.iter().fold(0xcbf2_9ce4_8422_2325, mix).max(1);
        Self { group, version: 1, members, last: Generation(0), open: None, commits: Vec::new() }
    }

    /// Whether every list has one entry for each of `hosts`, and every place is one of them.
    pub fn fits(&self, hosts: usize) -> bool {
        let is_whole = |commit: &Commit| {
            commit.lens.len() == hosts
                && commit.manifests.len() == hosts
                && commit.generation <= self.last
        };
        self.members.len() == hosts
            && self.commits.len() <= COMMITS_KEPT
            && self.commits.iter().all(is_whole)
            && self.commits.is_sorted_by(|newer, older| newer.generation > older.generation)
            && self.open.is_none_or(|open| open.coordinator < hosts)
    }

    /// The newest generation that is whole.
    pub fn newest(&self) -> Option<&Commit> {
        self.commits.first()
    }

    /// The commit of a generation that is kept.
    pub fn commit_of(&self, generation: Generation) -> Option<&Commit> {
        self.commits.iter().find(|commit| commit.generation == generation)
    }

    /// Whether what a host holds of a generation can still be needed.
    pub fn keeps(&self, generation: Generation) -> bool {
        self.commit_of(generation).is_some()
            || self.open.is_some_and(|open| open.generation == generation)
            || generation > self.last
    }

    /// The charter with a change.
    ///
    /// # Errors
    /// When the change is not possible any more.
    pub fn changed(&self, change: &Change) -> Result<Self, Rejected> {
        let mut charter = self.clone();
        match change {
            Change::Nothing => {}
            Change::Begin { reached, coordinator, life } => {
                if let Some(open) = charter.open {
                    return Err(Rejected::Busy(open.generation));
                }
                let generation = Generation(charter.last.0 + 1);
                charter.last = generation;
                charter.open = Some(Opened {
                    generation,
                    reached: *reached,
                    version: charter.version,
                    coordinator: *coordinator,
                    life: *life,
                });
            }
            Change::Commit(commit) => {
                charter.close(commit.generation)?;
                charter.commits.insert(0, commit.clone());
                charter.commits.truncate(COMMITS_KEPT);
            }
            Change::Abort(generation) => charter.close(*generation)?,
            Change::Admit { place, incarnation } => {
                if charter.members[*place] != *incarnation {
                    charter.members[*place] = *incarnation;
                    charter.version += 1;
                }
            }
        }
        Ok(charter)
    }

    fn close(&mut self, generation: Generation) -> Result<(), Rejected> {
        match self.open {
            Some(open) if open.generation == generation => {
                self.open = None;
                Ok(())
            }
            _ => Err(Rejected::NotOpen(generation)),
        }
    }
}
