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
    /// The newest start of the program, if it was ever started with the library.
    pub start: Option<Start>,
}

/// One start of the program: what all its ranks go on from, decided when the last host has joined it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Its number, which is the run of what is saved in it: greater than that of every start before.
    pub run: u64,
    /// How many ranks the program has.
    pub ranks: u32,
    /// What the launcher calls this start, as a number; zero where it says nothing.
    pub launch: u64,
    /// By place: the program that waits there to begin, a number that no other has.
    pub joined: Vec<Option<u64>>,
    /// The newest generation that was committed when all had joined.
    pub newest: Option<Generation>,
    /// The generation that all go on from; nothing where none was ever committed. It holds as soon as all have joined.
    pub from: Option<Generation>,
}

impl Start {
    /// Whether every host has joined: only then may a program be told what it goes on from.
    pub fn is_complete(&self) -> bool {
        self.joined.iter().all(Option::is_some)
    }

    /// Whether a program can be part of it, as far as that can be told.
    pub const fn suits(&self, join: &Join) -> bool {
        self.ranks == join.ranks && self.launch == join.launch
    }
}

/// A program waits on a host until all others have joined, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Join {
    /// The place of the host.
    pub place: usize,
    /// The program on it: all ranks of one start that are on this host.
    pub program: u64,
    /// How many ranks there are on all hosts.
    pub ranks: u32,
    /// What the launcher calls the start, as a number.
    pub launch: u64,
    /// The newest committed generation as this host knows it.
    pub newest: Option<Generation>,
    /// What the program would go on from.
    pub from: Option<Generation>,
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
    /// A program waits on a host.
    Join(Join),
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
    /// The program that has reached this was started anew since.
    #[error("run {0} of the program is over")]
    Over(u64),
    /// Another generation was committed since the program asked what to go on from.
    #[error("a generation was committed meanwhile")]
    Stale,
}

impl Charter {
    /// What holds before anything was agreed on: these members, and no generation.
    pub fn founding(members: Vec<Incarnation>) -> Self {
        // FNV-1a over random numbers; zero is no group.
        let mix =
            |hash: u64, member: &Incarnation| (hash ^ member.0).wrapping_mul(0x0100_0000_01b3);
        let group = members.iter().fold(0xcbf2_9ce4_8422_2325, mix).max(1);
        let (last, open, commits, start) = (Generation(0), None, Vec::new(), None);
        Self { group, version: 1, members, last, open, commits, start }
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
            && self.start.as_ref().is_none_or(|start| start.joined.len() == hosts)
    }

    /// The newest generation that is whole.
    pub fn newest(&self) -> Option<&Commit> {
        self.commits.first()
    }

    /// The commit of a generation that is kept.
    pub fn commit_of(&self, generation: Generation) -> Option<&Commit> {
        self.commits.iter().find(|commit| commit.generation == generation)
    }

    /// The start that a program on a host is part of, once all hosts have joined it.
    pub fn start_of(&self, place: usize, program: u64) -> Option<&Start> {
        let is_its = |start: &&Start| start.is_complete() && start.joined[place] == Some(program);
        self.start.as_ref().filter(is_its)
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
                // What the program has handed over before it was started anew can be saved until all hosts have begun
                // anew; after that it would take the place of what they go on from.
                let is_over = |start: &Start| start.is_complete() && reached.run < start.run;
                if self.start.as_ref().is_some_and(is_over) {
                    return Err(Rejected::Over(reached.run));
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
            Change::Join(join) => charter.join(join)?,
        }
        Ok(charter)
    }

    /// A program joins the newest start. If another program stood in its place there, or it is of another size, it
    /// is the first of a new start. With the last one that is missing, it is decided what all go on from, and what is
    /// being written is given up: nothing may be committed any more that they do not go on from.
    fn join(&mut self, join: &Join) -> Result<(), Rejected> {
        let hosts = self.members.len();
        let before = self.start.take();
        let runs = [
            before.as_ref().map(|start| start.run),
            self.commits.iter().map(|commit| commit.reached.run).max(),
            self.open.map(|open| open.reached.run),
        ];
        let run = runs.into_iter().flatten().max().unwrap_or(0) + 1;
        let is_free = |start: &Start| {
            start.suits(join) && start.joined[join.place].is_none_or(|other| other == join.program)
        };
        let mut start = before.filter(is_free).unwrap_or_else(|| Start {
            run,
            ranks: join.ranks,
            launch: join.launch,
            joined: vec![None; hosts],
            newest: None,
            from: None,
        });
        if !start.is_complete() {
            start.joined[join.place] = Some(join.program);
            if start.is_complete() {
                if self.newest().map(|commit| commit.generation) != join.newest {
                    return Err(Rejected::Stale);
                }
                (start.newest, start.from) = (join.newest, join.from);
                self.open = None;
            }
        }
        self.start = Some(start);
        Ok(())
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
