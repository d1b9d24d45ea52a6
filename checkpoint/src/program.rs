//! What a host keeps of its program: who its ranks are, what they have handed over, and which generation waits
//! for it. A core without IO; [`crate::member`] agrees with the other hosts on what to go on from.
//!
//! Ranks are known by their connections. As long as they were told nothing, one may take the place of another
//! that is gone; afterwards a rank that joins is of another program, unless it names the one that it is of, as
//! ranks do whose daemon was started anew. What all ranks of the host have handed over is kept
//! until it is saved, though the program has ended, also where some ended before others had handed over theirs;
//! what only some have when all have ended is forgotten.
//!
//! `P` is what one rank hands over, `I` the image of all.

use std::collections::{BTreeMap, BTreeSet};

use crate::charter::{Charter, Generation, Joined, Origin, Reached};
use crate::member::Beginning;

/// The connection of a rank: a number that no other has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Connection(pub u64);

/// What a rank says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Joining {
    /// Its number.
    pub rank: u32,
    /// How many ranks the program has on all hosts.
    pub ranks: u32,
    /// How many of them are on this host.
    pub here: u32,
    /// The program that it was told to be of, if its daemon was started anew since.
    pub program: Option<u64>,
}

/// Why a rank does not get what it asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RankError {
    /// It counts otherwise than it can be.
    #[error("rank {rank} of {ranks}, {here} on this host, cannot be")]
    Numbers {
        /// Its number.
        rank: u32,
        /// How many ranks the program has on all hosts.
        ranks: u32,
        /// How many of them are on this host.
        here: u32,
    },
    /// Another program has taken its place, here or on other hosts.
    #[error("the program was started anew since: this one is not protected any more")]
    Over,
    /// This daemon was started anew and does not know yet what its group has agreed on.
    #[error("the daemon has not met most of its group yet: ask again")]
    Unknown,
    /// It saves before it knows what it goes on from.
    #[error(
        "`meikyo_checkpoint_restore` is called before the first save, also by a program that begins anew"
    )]
    NotBegun,
}

/// What a generation waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Snapshot<I> {
    /// This is the image of the host.
    Taken(I),
    /// It will not come.
    Failed(&'static str),
}

/// A program, and what its ranks on this host have handed over of a step.
pub type Gathered<P> = (u64, BTreeMap<u32, P>);

#[derive(Debug)]
struct Current<P> {
    ranks: u32,
    here: u32,
    /// Its number, since all its ranks have asked what to go on from.
    program: Option<u64>,
    /// Its start, and what its ranks go on from.
    told: Option<(u64, Origin)>,
    connected: BTreeMap<u32, Connection>,
    /// Ranks that wait to be told.
    waiting: BTreeSet<u32>,
    /// What ranks have handed over of a step, until all have.
    step: u64,
    parts: BTreeMap<u32, P>,
    /// A step of which the parts are being made one image.
    gathered: Option<u64>,
    /// A rank has gone since all were there.
    is_broken: bool,
    is_over: bool,
}

impl<P> Current<P> {
    const fn new(joining: &Joining) -> Self {
        Self {
            ranks: joining.ranks,
            here: joining.here,
            program: None,
            told: None,
            connected: BTreeMap::new(),
            waiting: BTreeSet::new(),
            step: 0,
            parts: BTreeMap::new(),
            gathered: None,
            is_broken: false,
            is_over: false,
        }
    }

    fn is_whole(&self) -> bool {
        self.connected.len() >= self.here as usize
    }

    /// Whether every rank of the host that has gone has handed over this step before.
    fn has_or_awaits_all(&self, step: u64) -> bool {
        let gone = self.parts.keys().filter(|rank| !self.connected.contains_key(rank)).count();
        self.step == step && self.connected.len() + gone >= self.here as usize
    }

    fn rank_of(&self, connection: Connection) -> Option<u32> {
        self.connected.iter().find(|(_, of)| **of == connection).map(|(rank, _)| *rank)
    }
}

/// What a host keeps of its program.
#[derive(Debug)]
pub struct Program<P, I> {
    current: Option<Current<P>>,
    /// What was handed over last, and for which step.
    ready: Option<(Reached, I)>,
    /// A generation that waits for this step to be handed over.
    awaited: Option<(Generation, Reached)>,
    /// A step that is to be saved as soon as nothing else is being written.
    to_save: Option<Reached>,
}

impl<P, I> Default for Program<P, I> {
    fn default() -> Self {
        Self { current: None, ready: None, awaited: None, to_save: None }
    }
}

impl<P, I> Program<P, I> {
    /// A rank has connected. One that names no program is of a new one, and what was here before is gone for
    /// good. Of a program that all its ranks have come back to, what [`crate::member::Member::begin`] is to be told.
    ///
    /// # Errors
    /// When it cannot be one of this host.
    pub fn join(
        &mut self,
        connection: Connection,
        joining: &Joining,
        place: usize,
        charter: Option<&Charter>,
    ) -> Result<Option<Beginning>, RankError> {
        let Joining { rank, ranks, here, program } = *joining;
        if rank >= ranks || here == 0 || here > ranks {
            return Err(RankError::Numbers { rank, ranks, here });
        }
        let Some(program) = program else {
            let suits = |current: &Current<P>| {
                current.told.is_none() && (current.ranks, current.here) == (ranks, here)
            };
            let current = self.current.take().filter(suits);
            let mut current = current.unwrap_or_else(|| Current::new(joining));
            current.connected.insert(rank, connection);
            current.waiting.remove(&rank);
            // With another rank it is another program.
            current.program = None;
            self.current = Some(current);
            return Ok(None);
        };
        if let Some(current) = &mut self.current
            && current.program == Some(program)
        {
            current.connected.insert(rank, connection);
            current.is_broken &= !current.is_whole();
            let told = current.told.filter(|_| current.is_whole()).map(|(_, origin)| origin);
            let joined = told.map(|origin| Joined { program, told: Some(origin) });
            return Ok(joined.map(|joined| Beginning { joined, ranks }));
        }
        let (start, origin) = charter.and_then(Charter::begun).ok_or(RankError::Unknown)?;
        if !start.has(place, program) || self.current.is_some() {
            return Err(RankError::Over);
        }
        let mut current = Current::new(joining);
        current.connected.insert(rank, connection);
        current.program = Some(program);
        current.told = Some((start.run, origin));
        self.current = Some(current);
        Ok(Some(Beginning { joined: Joined { program, told: Some(origin) }, ranks }))
    }

    fn rank_of(&mut self, connection: Connection) -> Result<(u32, &mut Current<P>), RankError> {
        let current = self.current.as_mut().filter(|current| !current.is_over);
        let current = current.ok_or(RankError::Over)?;
        let rank = current.rank_of(connection).ok_or(RankError::Over)?;
        Ok((rank, current))
    }

    /// A rank waits to be told what to go on from. With the last one of this host, what
    /// [`crate::member::Member::begin`] is to be told; `fresh` is a number that no other program has.
    ///
    /// # Errors
    /// When it is of a program that is over.
    pub fn begin(
        &mut self,
        connection: Connection,
        fresh: u64,
    ) -> Result<Option<Beginning>, RankError> {
        let (rank, current) = self.rank_of(connection)?;
        current.waiting.insert(rank);
        let is_last = current.waiting.len() >= current.here as usize && current.is_whole();
        if !is_last || current.program.is_some() {
            return Ok(None);
        }
        current.program = Some(fresh);
        let joined = Joined { program: fresh, told: None };
        Ok(Some(Beginning { joined, ranks: current.ranks }))
    }

    /// The group has decided what a program goes on from, or given it another run.
    pub fn started(&mut self, program: u64, run: u64, origin: Origin) {
        let Some(current) = &mut self.current else { return };
        if current.program != Some(program) {
            return;
        }
        let before = current.told.replace((run, origin)).map(|(run, _)| run);
        // What it has handed over is of its new run; what others had is over.
        for reached in [self.ready.as_mut().map(|(reached, _)| reached), self.to_save.as_mut()] {
            if let Some(reached) = reached.filter(|reached| Some(reached.run) == before) {
                reached.run = run;
            }
        }
        self.ready = self.ready.take().filter(|(reached, _)| reached.run >= run);
        self.to_save = self.to_save.filter(|reached| reached.run >= run);
    }

    /// A program has no part in what was started on other hosts.
    pub fn over(&mut self, program: u64) {
        if let Some(current) = &mut self.current
            && current.program == Some(program)
        {
            current.is_over = true;
        }
    }

    /// What ranks that wait are to be told, if that is decided.
    pub fn untold(&self) -> Option<(u64, Origin)> {
        let current = self.current.as_ref()?;
        let (_, origin) = current.told?;
        (!current.waiting.is_empty()).then_some((current.program?, origin))
    }

    /// They are being told; nobody waits any more.
    pub fn tell(&mut self) -> Vec<Connection> {
        let Some(current) = &mut self.current else { return Vec::new() };
        let waiting = std::mem::take(&mut current.waiting);
        waiting.iter().filter_map(|rank| current.connected.get(rank).copied()).collect()
    }

    /// A rank hands over what it has of a step. With that of the last rank of this host, all of it by rank: it is to
    /// be made one image, and [`Program::handed`] to be called.
    ///
    /// # Errors
    /// When it has not begun, or is of a program that is over.
    pub fn take(
        &mut self,
        connection: Connection,
        step: u64,
        part: P,
    ) -> Result<Option<Gathered<P>>, RankError> {
        let (rank, current) = self.rank_of(connection)?;
        let program = current.program.filter(|_| current.told.is_some());
        let program = program.ok_or(RankError::NotBegun)?;
        if current.step != step {
            current.parts.clear();
            current.step = step;
        }
        current.parts.insert(rank, part);
        if current.parts.len() < current.here as usize {
            return Ok(None);
        }
        current.gathered = Some(step);
        Ok(Some((program, std::mem::take(&mut current.parts))))
    }

    /// All ranks of this host have handed over a step, and this is their image. Whether it is taken: it is not
    /// where another program has begun meanwhile.
    pub fn handed(&mut self, program: u64, step: u64, image: I) -> bool {
        let Some(current) = &mut self.current else { return false };
        let Some((run, _)) = current.told.filter(|_| current.program == Some(program)) else {
            return false;
        };
        current.gathered = current.gathered.filter(|gathered| *gathered != step);
        self.hand_over(Reached { run, step }, image);
        true
    }

    /// A program without the library has handed over its image.
    pub fn hand_over(&mut self, reached: Reached, image: I) {
        self.ready = Some((reached, image));
        self.to_save = Some(reached);
    }

    /// What was handed over last, if no generation has taken it.
    pub fn ready(&self) -> Option<&I> {
        self.ready.as_ref().map(|(_, image)| image)
    }

    /// A program without the library begins anew: what an earlier run has handed over is not of this one.
    pub fn forget(&mut self) {
        self.ready = None;
        self.to_save = None;
    }

    /// A connection has ended. Whether it was a rank's: the program that waits or has begun is gone with it.
    pub fn left(&mut self, connection: Connection) -> bool {
        let Some(current) = &mut self.current else { return false };
        let Some(rank) = current.rank_of(connection) else { return false };
        current.connected.remove(&rank);
        current.waiting.remove(&rank);
        if current.told.is_none() {
            // With another in its place it is another program.
            current.program = None;
            if current.connected.is_empty() {
                self.current = None;
            }
            return true;
        }
        current.is_broken = true;
        true
    }

    /// A generation wants the memory of this step: [`Program::snapshot`] gives it.
    pub const fn wanted(&mut self, generation: Generation, reached: Reached) {
        self.awaited = Some((generation, reached));
    }

    /// A generation is over.
    pub fn freed(&mut self, generation: Generation) {
        self.awaited = self.awaited.filter(|(awaited, _)| *awaited != generation);
    }

    /// What the generation that waits gets, as soon as that is known.
    pub fn snapshot(&mut self) -> Option<(Generation, Snapshot<I>)> {
        let (generation, reached) = self.awaited?;
        let snapshot = match self.ready.take() {
            Some((ready, image)) if ready == reached => {
                // Whoever coordinates it, it is being saved.
                self.to_save = self.to_save.filter(|to_save| *to_save > reached);
                Snapshot::Taken(image)
            }
            Some(ready) if ready.0 > reached => {
                // The memory of that step will not come.
                self.ready = Some(ready);
                Snapshot::Failed("the program has gone on to another step")
            }
            ready => {
                self.ready = ready;
                if self.can_come(reached) {
                    return None;
                }
                Snapshot::Failed("the program on this host has ended")
            }
        };
        self.awaited = None;
        Some((generation, snapshot))
    }

    /// Whether what the program has reached can still be handed over.
    fn can_come(&self, reached: Reached) -> bool {
        // A program without the library, or ranks that have yet to find their daemon again.
        let Some(current) = &self.current else { return true };
        match current.told {
            Some((run, _)) if run == reached.run => {
                let is_on_its_way = current.gathered == Some(reached.step);
                let can_be_whole = !current.is_broken || current.has_or_awaits_all(reached.step);
                is_on_its_way || can_be_whole && !current.is_over
            }
            Some((run, _)) => reached.run > run,
            None => false,
        }
    }

    /// A step that is to be saved.
    pub const fn to_save(&self) -> Option<Reached> {
        self.to_save
    }

    /// It is being saved, or cannot be.
    pub const fn begun(&mut self) {
        self.to_save = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program of two ranks on one host, which has begun.
    fn begun() -> Program<(), u64> {
        let mut program = Program::default();
        for rank in 0..2 {
            let joining = Joining { rank, ranks: 2, here: 2, program: None };
            let connection = Connection(u64::from(rank));
            assert_eq!(program.join(connection, &joining, 0, None), Ok(None));
        }
        assert_eq!(program.begin(Connection(0), 5), Ok(None));
        assert!(program.begin(Connection(1), 6).unwrap().is_some());
        assert_eq!(program.take(Connection(0), 1, ()), Err(RankError::NotBegun));
        let origin = Origin { generation: None, reached: Reached::default(), newest: None };
        program.started(6, 3, origin);
        assert_eq!(program.untold(), Some((6, origin)));
        assert_eq!(program.tell(), [Connection(0), Connection(1)]);
        program
    }

    fn asked(program: &mut Program<(), u64>, step: u64) -> Option<Snapshot<u64>> {
        program.wanted(Generation(step), Reached { run: 3, step });
        program.snapshot().map(|(_, snapshot)| snapshot)
    }

    #[test]
    fn what_all_ranks_have_handed_over_is_saved_though_they_have_left_and_nothing_else_is_waited_for()
     {
        let mut program = begun();
        assert_eq!(asked(&mut program, 1), None);
        assert_eq!(program.take(Connection(0), 1, ()), Ok(None));
        let gathered = program.take(Connection(1), 1, ()).unwrap().unwrap();
        assert_eq!((gathered.0, gathered.1.len()), (6, 2));
        assert!(program.handed(6, 1, 42));
        assert_eq!(program.take(Connection(0), 2, ()), Ok(None));
        assert!(program.left(Connection(0)) && program.left(Connection(1)));
        assert_eq!(asked(&mut program, 1), Some(Snapshot::Taken(42)));
        // What only one has handed over is gone with it, also for a generation that is begun later.
        assert!(matches!(asked(&mut program, 2), Some(Snapshot::Failed(_))));
        assert!(matches!(asked(&mut program, 3), Some(Snapshot::Failed(_))));
    }

    #[test]
    fn a_rank_may_end_before_the_others_of_its_host_have_handed_over_the_same_step() {
        let mut program = begun();
        assert_eq!(program.take(Connection(0), 1, ()), Ok(None));
        assert!(program.left(Connection(0)));
        assert_eq!(asked(&mut program, 1), None);
        // The step after that cannot come any more.
        let mut later = begun();
        assert_eq!(later.take(Connection(0), 1, ()), Ok(None));
        assert!(later.left(Connection(0)));
        assert!(matches!(asked(&mut later, 2), Some(Snapshot::Failed(_))));
        let (of, parts) = program.take(Connection(1), 1, ()).unwrap().unwrap();
        assert_eq!((of, parts.len()), (6, 2));
        // Its parts are being put together, and nobody is there any more.
        assert!(program.left(Connection(1)));
        assert_eq!(program.snapshot(), None);
        assert!(program.handed(6, 1, 42));
        assert_eq!(program.snapshot(), Some((Generation(1), Snapshot::Taken(42))));
    }

    #[test]
    fn a_later_step_is_kept_for_its_own_generation_and_is_saved_once() {
        let mut program = begun();
        for step in [1, 2] {
            program.take(Connection(0), step, ()).unwrap();
            program.take(Connection(1), step, ()).unwrap().unwrap();
            assert!(program.handed(6, step, 40 + step));
            assert_eq!(program.to_save(), Some(Reached { run: 3, step }));
        }
        assert!(matches!(asked(&mut program, 1), Some(Snapshot::Failed(_))));
        assert_eq!(program.to_save(), Some(Reached { run: 3, step: 2 }));
        // Another host coordinates it: it is not to be saved a second time.
        assert_eq!(asked(&mut program, 2), Some(Snapshot::Taken(42)));
        assert_eq!(program.to_save(), None);
    }

    #[test]
    fn what_is_decided_on_another_program_changes_nothing_for_this_one() {
        let mut program = begun();
        let origin = Origin { generation: None, reached: Reached::default(), newest: None };
        program.started(99, 8, origin);
        program.over(99);
        program.take(Connection(0), 1, ()).unwrap();
        program.take(Connection(1), 1, ()).unwrap().unwrap();
        assert!(program.handed(6, 1, 42));
        assert_eq!(program.to_save(), Some(Reached { run: 3, step: 1 }));
        // The same program in another run takes along what it has handed over.
        program.started(6, 9, origin);
        assert_eq!(program.to_save(), Some(Reached { run: 9, step: 1 }));
        program.over(6);
        assert_eq!(program.take(Connection(0), 2, ()), Err(RankError::Over));
    }

    #[test]
    fn a_rank_that_comes_back_is_of_the_program_that_it_names_and_a_new_one_takes_its_place() {
        let mut program = begun();
        assert!(program.left(Connection(1)));
        let back = Joining { rank: 1, ranks: 2, here: 2, program: Some(6) };
        assert!(program.join(Connection(7), &back, 0, None).unwrap().is_some());
        assert_eq!(asked(&mut program, 1), None);
        let new = Joining { program: None, ..back };
        assert_eq!(program.join(Connection(8), &new, 0, None), Ok(None));
        assert_eq!(program.take(Connection(7), 1, ()), Err(RankError::Over));
        assert_eq!(program.join(Connection(9), &back, 0, None), Err(RankError::Unknown));
        assert!(matches!(asked(&mut program, 1), Some(Snapshot::Failed(_))));
    }
}
