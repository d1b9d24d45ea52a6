//! What a group agrees on: who its members are, and which generations are whole.
//!
//! A charter changes only by a [`Change`], and only by agreement of a majority ([`crate::register`]).
//! Nothing here sends or waits.

use serde::{Deserialize, Serialize};

use crate::level::{KEPT_MAX, Keep, Level};

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

/// How many committed generations are kept at most, of both levels together.
pub const COMMITS_MAX: usize = 2 * KEPT_MAX as usize;

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
    /// Whether all hosts copy it to the file system that they share.
    pub drains: bool,
    /// Where the hosts keep it.
    pub level: Level,
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
    /// Whether all hosts are to copy it to the file system that they share.
    pub drains: bool,
    /// Where the hosts are to keep it.
    pub level: Level,
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
    /// The newest committed generations of each level, the newest first; at most [`COMMITS_MAX`].
    pub commits: Vec<Commit>,
    /// The newest start of the program, if it was ever started with the library.
    pub start: Option<Box<Start>>,
}

/// What all ranks of a start were told to go on from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The generation; nothing where none was ever committed.
    pub generation: Option<Generation>,
    /// How far the program had come in it.
    pub reached: Reached,
    /// The newest generation that was committed when it was decided: greater where that cannot be had back.
    pub newest: Option<Generation>,
}

/// The program that waits on a host to begin, or has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    /// A number that no other program on any host has.
    pub program: u64,
    /// What its ranks were told in an earlier start, of which another host's program is gone.
    pub told: Option<Origin>,
}

/// One start of the program: what all its ranks go on from, decided when the last host joins.
///
/// Until then nobody is told anything, so that one host's program may take the place of another that is gone.
/// A host cannot know at once that a program elsewhere is gone: one that was decided on with such a
/// program joins the next start with what it was told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Its number, which is the run of what is saved in it: greater than that of every start before. That of the
    /// one before until all have joined.
    pub run: u64,
    /// How many ranks the program has on all hosts.
    pub ranks: u32,
    /// By place.
    pub joined: Vec<Option<Joined>>,
    /// What all go on from, as soon as all have joined.
    pub origin: Option<Origin>,
}

impl Start {
    /// Whether this program is part of it.
    pub fn has(&self, place: usize, program: u64) -> bool {
        self.joined[place].is_some_and(|joined| joined.program == program)
    }
}

/// A program waits on a host for all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Join {
    /// The place of the host.
    pub place: usize,
    /// The program on it.
    pub joined: Joined,
    /// How many ranks there are on all hosts.
    pub ranks: u32,
    /// What can be had back as this host knows it: what all go on from if it is the last one.
    pub found: Origin,
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
        /// Whether all hosts are to copy it to the file system that they share.
        drains: bool,
        /// Where the hosts are to keep it.
        level: Level,
    },
    /// The open generation is whole, and of those before it so many are kept.
    Commit(Commit, Keep),
    /// A committed generation is not kept any more.
    Free(Generation),
    /// The open generation will not be.
    Abort(Generation),
    /// Another incarnation stands at a place.
    Admit {
        /// Whose place in the group is taken.
        place: usize,
        /// Who stands there.
        incarnation: Incarnation,
    },
    /// A program waits on a host to begin.
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
    /// What this run has handed over is not saved any more: the program was started anew.
    #[error("run {0} of the program is over")]
    Over(u64),
    /// It is the newest of its level, or what a program that has saved nothing yet goes on from.
    #[error("generation {} is still needed", .0.0)]
    Needed(Generation),
    /// Another generation was committed, or this one freed, since the program was told what to go on from.
    #[error("a generation was committed or freed meanwhile")]
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
            && self.commits.len() <= COMMITS_MAX
            && self.commits.iter().all(is_whole)
            && self.commits.is_sorted_by(|newer, older| newer.generation > older.generation)
            && self.open.is_none_or(|open| open.coordinator < hosts)
            && self.start.as_ref().is_none_or(|start| start.joined.len() == hosts)
    }

    /// The newest generation that is whole.
    pub fn newest(&self) -> Option<&Commit> {
        self.commits.first()
    }

    /// The newest generation of a level that is whole.
    pub fn newest_of(&self, level: Level) -> Option<&Commit> {
        self.commits.iter().find(|commit| commit.level == level)
    }

    /// The commit of a generation that is kept.
    pub fn commit_of(&self, generation: Generation) -> Option<&Commit> {
        self.commits.iter().find(|commit| commit.generation == generation)
    }

    /// The number of the newest generation that is whole.
    pub fn newest_number(&self) -> Option<Generation> {
        self.newest().map(|commit| commit.generation)
    }

    /// The newest start, if all hosts have joined it.
    pub fn begun(&self) -> Option<(&Start, Origin)> {
        self.start.as_ref().and_then(|start| Some((&**start, start.origin?)))
    }

    /// Whether what a host holds of a generation can still be needed.
    pub fn keeps(&self, generation: Generation) -> bool {
        self.commit_of(generation).is_some()
            || self.open.is_some_and(|open| open.generation == generation)
            || generation > self.last
    }

    /// Whether a generation must be kept: the newest, the newest of each level, and what a program goes on from that has
    /// saved nothing since.
    pub fn needs(&self, generation: Generation) -> bool {
        let is = |commit: Option<&Commit>| commit.is_some_and(|of| of.generation == generation);
        let is_gone_on_from = self.begun().is_some_and(|(start, origin)| {
            let has_saved = self.newest().is_some_and(|newest| newest.reached.run >= start.run);
            origin.generation == Some(generation) && !has_saved
        });
        is(self.newest())
            || [Level::Memory, Level::Disk].iter().any(|level| is(self.newest_of(*level)))
            || is_gone_on_from
    }

    /// The charter with a change.
    ///
    /// # Errors
    /// When the change is not possible any more.
    pub fn changed(&self, change: &Change) -> Result<Self, Rejected> {
        let mut charter = self.clone();
        match change {
            Change::Nothing => {}
            Change::Begin { reached, coordinator, life, drains, level } => {
                if let Some(open) = charter.open {
                    return Err(Rejected::Busy(open.generation));
                }
                // It would take the place of what all go on from.
                if self.begun().is_some_and(|(start, _)| reached.run < start.run) {
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
                    drains: *drains,
                    level: *level,
                });
            }
            Change::Commit(commit, keep) => {
                charter.close(commit.generation)?;
                charter.commits.insert(0, commit.clone());
                trim(&mut charter.commits, *keep);
            }
            Change::Free(generation) => {
                if self.needs(*generation) {
                    return Err(Rejected::Needed(*generation));
                }
                charter.commits.retain(|commit| commit.generation != *generation);
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

    /// A program joins the start that is not decided yet, or is the first of a new one. With the last that was
    /// missing it is decided what all go on from, and what is being written is given up: nothing of an earlier
    /// start may be committed any more.
    fn join(&mut self, join: &Join) -> Result<(), Rejected> {
        let newest = self.newest_number();
        let is_stale = |joined: Joined| joined.told.is_some_and(|told| told.newest != newest);
        // What was found may have been freed since.
        let is_gone = |generation| self.commit_of(generation).is_none();
        if join.found.newest != newest
            || is_stale(join.joined)
            || join.found.generation.is_some_and(is_gone)
        {
            return Err(Rejected::Stale);
        }
        let undecided = self.start.clone().filter(|start| start.origin.is_none());
        let mut start = match (&self.start, undecided) {
            (Some(start), None) if start.has(join.place, join.joined.program) => return Ok(()),
            (_, Some(start)) if start.ranks == join.ranks => start,
            // Whoever was told in an earlier start has no part in one of another size, and begins none.
            (Some(before), _) if join.joined.told.is_some() => {
                return Err(Rejected::Over(before.run));
            }
            _ => Box::new(self.fresh(join.ranks)),
        };
        start.joined[join.place] = Some(join.joined);
        for joined in &mut start.joined {
            *joined = joined.filter(|joined| !is_stale(*joined));
        }
        let told = start.joined.iter().flatten().filter_map(|joined| joined.told);
        let told: Vec<Option<Generation>> = told.map(|told| told.generation).collect();
        if told.windows(2).any(|pair| pair[0] != pair[1]) {
            return Err(Rejected::Stale);
        }
        if start.joined.iter().all(Option::is_some) {
            let told = start.joined.iter().flatten().find_map(|joined| joined.told);
            start.origin = Some(told.unwrap_or(join.found));
            start.run = self.next_run();
            self.open = None;
        }
        self.start = Some(start);
        Ok(())
    }

    fn fresh(&self, ranks: u32) -> Start {
        let run = self.start.as_ref().map_or(0, |start| start.run);
        Start { run, ranks, joined: vec![None; self.members.len()], origin: None }
    }

    fn next_run(&self) -> u64 {
        let commits = self.commits.iter().map(|commit| commit.reached.run);
        let start = self.start.iter().map(|start| start.run);
        let open = self.open.iter().map(|open| open.reached.run);
        commits.chain(start).chain(open).max().unwrap_or(0) + 1
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

/// Leaves the newest of each level, as many as are kept and one at least.
fn trim(commits: &mut Vec<Commit>, keep: Keep) {
    let mut left =
        [Level::Memory, Level::Disk].map(|level| (level, keep.of(level).clamp(1, KEPT_MAX)));
    commits.retain(|commit| {
        let left = left.iter_mut().find(|(level, _)| *level == commit.level);
        left.is_some_and(|(_, left)| {
            let stays = *left > 0;
            *left = left.saturating_sub(1);
            stays
        })
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(number: u64, level: Level) -> Commit {
        Commit {
            generation: Generation(number),
            reached: Reached::default(),
            version: 1,
            lens: Vec::new(),
            manifests: Vec::new(),
            drains: false,
            level,
        }
    }

    #[test]
    fn of_each_level_the_newest_stay() {
        use Level::{Disk, Memory};
        let all = [(9, Memory), (8, Memory), (7, Disk), (6, Memory), (5, Disk), (4, Disk)];
        let left = |memory, disk| -> Vec<u64> {
            let mut commits: Vec<Commit> =
                all.iter().map(|&(number, level)| commit(number, level)).collect();
            trim(&mut commits, Keep { memory, disk });
            commits.iter().map(|commit| commit.generation.0).collect()
        };
        assert_eq!(left(1, 2), [9, 7, 5]);
        assert_eq!(left(2, 1), [9, 8, 7]);
        assert_eq!(left(0, 0), [9, 7], "the newest of a level is never freed");
        assert_eq!(left(255, 255), [9, 8, 7, 6, 5, 4]);
    }

    fn joining(place: usize, newest: Option<u64>, told: Option<Origin>) -> Change {
        let newest = newest.map(Generation);
        let found = Origin { generation: newest, reached: Reached::default(), newest };
        let joined = Joined { program: 10 + place as u64, told };
        Change::Join(Join { place, joined, ranks: 2, found })
    }

    fn begin(run: u64) -> Change {
        let reached = Reached { run, step: 1 };
        Change::Begin { reached, coordinator: 0, life: 1, drains: true, level: Level::Disk }
    }

    fn committed(charter: &Charter, run: u64) -> Charter {
        let opened = charter.changed(&begin(run)).unwrap();
        let Opened { generation, reached, version, drains, level, .. } = opened.open.unwrap();
        assert!(drains, "who begins it says that it is drained");
        let (lens, manifests) = (vec![0; 2], vec![Some(0); 2]);
        let commit = Commit { generation, reached, version, lens, manifests, drains, level };
        opened.changed(&Change::Commit(commit, Keep::DEFAULT)).unwrap()
    }

    #[test]
    fn the_last_host_that_joins_decides_and_nothing_of_an_earlier_run_counts_any_more() {
        let charter = Charter::founding(vec![Incarnation(1), Incarnation(2)]);
        let charter = committed(&charter, 7);
        let first = charter.changed(&joining(0, Some(1), None)).unwrap();
        assert_eq!(first.begun(), None);
        // A commit between the two questions: the second has to ask again.
        let more = committed(&first, 7);
        assert_eq!(more.changed(&joining(1, Some(1), None)), Err(Rejected::Stale));
        let open = more.changed(&begin(7)).unwrap();
        let both = open.changed(&joining(1, Some(2), None)).unwrap();
        let (start, origin) = both.begun().unwrap();
        assert_eq!((start.run, origin.generation), (8, Some(Generation(2))));
        assert_eq!(both.open, None);
        assert_eq!(both.changed(&begin(7)), Err(Rejected::Over(7)));
        assert!(both.changed(&begin(8)).is_ok());
        // Said again, it is the same start.
        assert_eq!(both.changed(&joining(1, Some(2), None)).as_ref(), Ok(&both));
    }

    #[test]
    fn what_one_host_was_told_holds_for_those_that_join_the_next_start_with_it() {
        let charter = Charter::founding(vec![Incarnation(1), Incarnation(2)]);
        let charter = committed(&committed(&charter, 1), 1);
        // The newest cannot be had back, and the one before was told.
        let reached = Reached { run: 1, step: 1 };
        let newest = Some(Generation(2));
        let told = Origin { generation: Some(Generation(1)), reached, newest };
        let other = Change::Join(Join {
            place: 0,
            joined: Joined { program: 99, told: None },
            ranks: 2,
            found: Origin { generation: newest, reached, newest },
        });
        let begun = charter.changed(&joining(0, Some(2), None)).unwrap();
        let next = begun.changed(&joining(1, Some(2), Some(told))).unwrap();
        assert_eq!(next.begun().unwrap().1, told);
        let next = next.changed(&other).unwrap().changed(&joining(1, Some(2), Some(told))).unwrap();
        assert_eq!(next.begun().map(|(start, origin)| (start.run, origin)), Some((3, told)));
        // More was committed meanwhile: it has no part in what begins next.
        let next = committed(&next, 3).changed(&joining(0, Some(3), None)).unwrap();
        assert_eq!(next.changed(&joining(1, Some(3), Some(told))), Err(Rejected::Stale));
    }

    #[test]
    fn the_newest_of_a_level_and_what_is_gone_on_from_are_not_freed() {
        let charter = Charter::founding(vec![Incarnation(1), Incarnation(2)]);
        let mut charter = committed(&committed(&committed(&charter, 1), 1), 1);
        charter.commits[0].level = Level::Memory;
        let numbers = |charter: &Charter| -> Vec<u64> {
            charter.commits.iter().map(|commit| commit.generation.0).collect()
        };
        let mut both = charter.clone();
        both.commits.insert(1, Commit { level: Level::Memory, ..both.commits[1].clone() });
        both.commits[1].generation = Generation(2);
        both.commits[2].generation = Generation(1);
        assert_eq!(numbers(&charter), [3, 2]);
        let needed = |number| Err(Rejected::Needed(Generation(number)));
        assert_eq!(charter.changed(&Change::Free(Generation(3))), needed(3));
        assert_eq!(charter.changed(&Change::Free(Generation(2))), needed(2));
        assert_eq!(numbers(&both.changed(&Change::Free(Generation(2))).unwrap()), [3, 1]);
        // A program was told to go on from it.
        let reached = Reached { run: 1, step: 1 };
        let (generation, newest) = (Some(Generation(2)), Some(Generation(3)));
        let told = Origin { generation, reached, newest };
        let joined = |place: u64| Joined { program: 10 + place, told: Some(told) };
        let start = Start {
            run: 2,
            ranks: 2,
            joined: vec![Some(joined(0)), Some(joined(1))],
            origin: Some(told),
        };
        both.start = Some(Box::new(start));
        assert_eq!(both.changed(&Change::Free(Generation(2))), needed(2));
        let saved = committed(&both, 2);
        assert_eq!(numbers(&saved), [4, 3, 1]);
    }
}
