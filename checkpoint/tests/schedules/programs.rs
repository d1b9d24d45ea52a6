//! Programs of several ranks on all hosts of a virtual world: they begin together, save step after step with a
//! barrier between, end after a save or are killed, and are started again.
//!
//! What a program computes depends on what it went on from and on its own launch, so that a mixture of two launches,
//! or of two generations, is seen in what is saved.

use std::collections::BTreeSet;

use meikyo_checkpoint::charter::{Commit, Generation, Origin};
use meikyo_checkpoint::program::{Connection, Joining, Snapshot};
use meikyo_units::Nanos;
use meikyo_worlds::Random;

use super::world::{Happening, World};

const MS: Nanos = Nanos::from_millis(1);

/// Ranks look so often whether they can go on.
const TICK: Nanos = Nanos::from_millis(130);

/// A program whose last step is not committed so long after its end has lost it.
const LOST: Nanos = Nanos::from_millis(4_000);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It is not started yet, or waits for its daemon.
    Away,
    /// It waits to be told what to go on from.
    Waiting,
    /// It is in this step, and has handed it over or tried to.
    At(u64, bool),
    Gone,
}

#[derive(Debug)]
struct RankProcess {
    place: usize,
    rank: u32,
    here: u32,
    state: State,
    /// Its connection, and the life of the daemon that it is with.
    connection: Option<(Connection, u64)>,
    program: Option<u64>,
}

/// One start of the program.
#[derive(Debug)]
pub(super) struct Launch {
    number: u64,
    ranks: Vec<RankProcess>,
    /// What its ranks were told, as soon as one was.
    origin: Option<Origin>,
    /// The newest commit that anybody knew when it was started.
    asked: Option<Generation>,
    /// What it computes with.
    sense: u64,
    ends_after: u64,
    /// It ended after this step, which all its ranks have handed over.
    ended: Option<u64>,
    /// It was started when all was calm: no other comes after it.
    is_last: bool,
    has_failed_to_save: bool,
}

/// What a rank has in a step, as a host's image holds it.
pub(super) fn image(place: usize, step: u64, sense: u64) -> Vec<u8> {
    let mut random = Random::of_stream(sense ^ step << 24, place as u64);
    let len = random.index(300);
    let more = (0..len).map(|_| u8::try_from(random.below(256)).unwrap());
    [step.to_le_bytes(), sense.to_le_bytes()].concat().into_iter().chain(more).collect()
}

/// The step that an image is of, and what its program computed with.
fn read(image: &[u8]) -> (u64, u64) {
    let number = |at: usize| u64::from_le_bytes(image[at..at + 8].try_into().unwrap());
    (number(0), number(8))
}

impl World {
    /// Starts the program on all hosts; those of an earlier launch are dead.
    pub(super) fn launch(&mut self) {
        let is_enough = |launch: &Launch| launch.is_there() || launch.is_last;
        if self.launch.as_ref().is_some_and(is_enough) {
            return;
        }
        self.launches += 1;
        let random = &mut self.random;
        let total = self.hosts.len() + random.index(3);
        let mut ranks = Vec::new();
        for place in 0..self.hosts.len() {
            let here = if place == 0 { total + 1 - self.hosts.len() } else { 1 };
            for _ in 0..here {
                ranks.push(RankProcess {
                    place,
                    rank: u32::try_from(ranks.len()).unwrap(),
                    here: u32::try_from(here).unwrap(),
                    state: State::Away,
                    connection: None,
                    program: None,
                });
            }
        }
        let number = self.launches;
        for index in 0..ranks.len() {
            let at = self.now + random.span(MS * 400);
            self.agenda.add(at, Happening::Tick { launch: number, index });
        }
        self.launch = Some(Launch {
            number,
            ranks,
            origin: None,
            asked: self.commits.keys().next_back().copied(),
            sense: 0,
            ends_after: 2 + random.below(if self.is_calm { 3 } else { 12 }),
            ended: None,
            is_last: self.is_calm,
            has_failed_to_save: false,
        });
        self.seen.launches += 1;
    }

    /// Kills the program, and has it started again.
    pub(super) fn kill_launch(&mut self) {
        let Some(launch) = &mut self.launch else { return };
        if !launch.is_there() {
            return;
        }
        let number = launch.number;
        let mut last = Nanos::ZERO;
        for index in 0..launch.ranks.len() {
            let span = self.random.span(MS * 150);
            last = last.max(span);
            self.agenda.add(self.now + span, Happening::Die { launch: number, index });
        }
        self.seen.killed_launches += 1;
        let span = last + MS + self.random.span(MS * 700);
        self.agenda.add(self.now + span, Happening::Launch);
    }

    /// Ranks that wait on a host are told that they have no part in what others have begun: the program ends for it, and is
    /// started again.
    pub(super) fn refused(&mut self, place: usize) {
        let Some(launch) = &mut self.launch else { return };
        let waits = |rank: &RankProcess| rank.place == place && rank.state == State::Waiting;
        if launch.ranks.iter().any(waits) {
            launch.is_last = false;
            self.kill_launch();
        }
    }

    /// A process ends; its daemon sees that only some time later.
    pub(super) fn die(&mut self, number: u64, index: usize) {
        let Some(launch) = self.launch.as_mut().filter(|launch| launch.number == number) else {
            return;
        };
        let rank = &mut launch.ranks[index];
        rank.state = State::Gone;
        if let Some((connection, life)) = rank.connection {
            let place = rank.place;
            self.closed.insert((place, connection));
            let at = self.now + self.random.span(MS * 100);
            self.agenda.add(at, Happening::Left { place, life, connection });
        }
    }

    pub(super) fn left(&mut self, place: usize, life: u64, connection: Connection) {
        self.closed.remove(&(place, connection));
        if self.hosts[place].life == life
            && let Some(daemon) = &mut self.hosts[place].daemon
            && daemon.program.left(connection)
        {
            daemon.member.end_program();
        }
    }

    /// A rank does what it can do now.
    pub(super) fn tick(&mut self, number: u64, index: usize) -> Result<(), String> {
        let Some(launch) = self.launch.as_ref().filter(|launch| launch.number == number) else {
            return Ok(());
        };
        let RankProcess { place, state, connection, .. } = launch.ranks[index];
        let host = &self.hosts[place];
        let is_lost = host.daemon.is_none() || connection.is_none_or(|(_, life)| life != host.life);
        match state {
            State::Gone => return Ok(()),
            // A daemon that stands still answers nobody.
            _ if self.is_stopped(place) => {}
            State::Away => self.join_and_begin(index),
            State::Waiting if is_lost => self.join_and_begin(index),
            State::Waiting => {}
            State::At(step, false) => {
                let has_saved = self.save_rank(index, step, is_lost);
                let launch = self.launch.as_mut().unwrap();
                launch.has_failed_to_save |= !has_saved;
                launch.ranks[index].state = State::At(step, true);
            }
            State::At(_, true) => {}
        }
        self.turn(place)?;
        self.pass_barrier();
        let span = TICK + self.random.span(MS * 20);
        self.agenda.add(self.now + span, Happening::Tick { launch: number, index });
        Ok(())
    }

    fn connect(&mut self, index: usize, program: Option<u64>) -> bool {
        self.connections += 1;
        let connection = Connection(self.connections);
        let ranks = self.launch.as_ref().unwrap().ranks.len();
        let rank = &mut self.launch.as_mut().unwrap().ranks[index];
        let RankProcess { place, rank: number, here, .. } = *rank;
        let life = self.hosts[place].life;
        // Processes that have ended are seen before another joins.
        let closed: BTreeSet<Connection> =
            self.closed.iter().filter(|(at, _)| *at == place).map(|(_, gone)| *gone).collect();
        let Some(daemon) = &mut self.hosts[place].daemon else { return false };
        for gone in closed {
            if daemon.program.left(gone) {
                daemon.member.end_program();
            }
        }
        let ranks = u32::try_from(ranks).unwrap();
        let joining = Joining { rank: number, ranks, here, program };
        let charter = daemon.member.charter().cloned();
        let joined = daemon.program.join(connection, &joining, place, charter.as_ref());
        let Ok(beginning) = joined else { return false };
        if program.is_none() {
            daemon.member.end_program();
        }
        if let Some(beginning) = beginning {
            daemon.member.begin(self.now, beginning);
        }
        rank.connection = Some((connection, life));
        true
    }

    fn join_and_begin(&mut self, index: usize) {
        let place = self.launch.as_ref().unwrap().ranks[index].place;
        if !self.connect(index, None) {
            return;
        }
        self.next_program += 1;
        let rank = &mut self.launch.as_mut().unwrap().ranks[index];
        rank.state = State::Waiting;
        let (connection, _) = rank.connection.unwrap();
        let daemon = self.hosts[place].daemon.as_mut().unwrap();
        if let Ok(Some(beginning)) = daemon.program.begin(connection, self.next_program) {
            daemon.member.begin(self.now, beginning);
        }
    }

    /// Hands over what a rank has; whether its daemon took it.
    fn save_rank(&mut self, index: usize, step: u64, is_lost: bool) -> bool {
        let RankProcess { place, program, .. } = self.launch.as_ref().unwrap().ranks[index];
        if is_lost && !self.connect(index, program) {
            return false;
        }
        let launch = self.launch.as_ref().unwrap();
        let (connection, _) = launch.ranks[index].connection.unwrap();
        let image = image(place, step, launch.sense);
        let daemon = self.hosts[place].daemon.as_mut().unwrap();
        if !daemon.member.is_member() {
            return false;
        }
        match daemon.program.take(connection, step, ()) {
            Err(_) => false,
            Ok(None) => true,
            Ok(Some((program, _))) => daemon.program.handed(program, step, image),
        }
    }

    /// Once all ranks have handed over a step, all go on to the next, or end.
    fn pass_barrier(&mut self) {
        let Some(launch) = &mut self.launch else { return };
        let done = |rank: &RankProcess| match rank.state {
            State::At(step, true) => Some(step),
            _ => None,
        };
        let steps: Option<BTreeSet<u64>> = launch.ranks.iter().map(done).collect();
        let Some(step) = steps.and_then(|steps| steps.first().copied()) else { return };
        launch.ends_after -= 1;
        if launch.ends_after > 0 {
            launch.has_failed_to_save = false;
            launch.ranks.iter_mut().for_each(|rank| rank.state = State::At(step + 1, false));
            return;
        }
        if !launch.has_failed_to_save {
            launch.ended = Some(step);
        }
        let number = launch.number;
        for index in 0..launch.ranks.len() {
            self.die(number, index);
        }
        if !self.is_calm {
            let span = self.random.span(MS * 2_000);
            self.agenda.add(self.now + span, Happening::Launch);
        } else if !self.is_ended_well() {
            self.agenda.add(self.now + LOST, Happening::LookWhetherLost);
        }
    }

    /// Another launch where the last step of the one before was lost: that is counted.
    pub(super) fn look_whether_lost(&mut self) {
        if !self.is_ended_well()
            && let Some(launch) = &mut self.launch
        {
            self.seen.lost_last_steps += u64::from(launch.ended.is_some());
            launch.is_last = false;
            self.launch();
        }
    }

    /// Whether ranks of a program go on already.
    pub(super) fn was_told(&self, program: u64) -> bool {
        let ranks = self.launch.iter().flat_map(|launch| &launch.ranks);
        ranks.into_iter().any(|rank| rank.program == Some(program))
    }

    /// Whether the last step of a program that ended is committed.
    pub(super) fn is_ended_well(&self) -> bool {
        let Some(launch) = &self.launch else { return true };
        let newest = self.commits.values().next_back();
        let Some(step) = launch.ended else { return false };
        newest.is_some_and(|commit| self.read(commit) == Some((step, launch.sense)))
    }

    /// What the core of a host's program has decided.
    pub(super) fn settle(&mut self, place: usize) -> Result<(), String> {
        let level = self.level();
        let Some(daemon) = &mut self.hosts[place].daemon else { return Ok(()) };
        while let Some((generation, snapshot)) = daemon.program.snapshot() {
            match snapshot {
                Snapshot::Failed(reason) => daemon.member.failed(generation, reason),
                Snapshot::Taken(image) => {
                    daemon.member.snapped(generation, image.len() as u64);
                    let before = self.images.insert((place, generation), image.clone());
                    if before.is_some_and(|before| before != image) {
                        return Err(format!("{generation:?} has two images of {place}"));
                    }
                }
            }
        }
        if let Some(reached) = daemon.program.to_save()
            && (0..place).all(|other| daemon.member.detection().is_dead(other))
        {
            use meikyo_checkpoint::member::SaveError;
            daemon.member.level_next(level);
            match daemon.member.save(self.now, reached) {
                Err(SaveError::Busy) => {}
                Ok(()) | Err(_) => daemon.program.begun(),
            }
        }
        let Some((program, origin)) = daemon.program.untold() else { return Ok(()) };
        let has =
            |generation| daemon.member.prepared_generations().any(|(whole, _)| whole == generation);
        if !origin.generation.is_none_or(has) {
            return Ok(());
        }
        for connection in daemon.program.tell() {
            self.told_rank(place, connection, program, origin)?;
        }
        Ok(())
    }

    fn told_rank(
        &mut self,
        place: usize,
        connection: Connection,
        program: u64,
        origin: Origin,
    ) -> Result<(), String> {
        self.note_learned(place)?;
        let sense = match origin.generation {
            None => 0,
            Some(generation) => {
                let commit = self.commits.get(&generation);
                let commit = commit.ok_or_else(|| format!("{generation:?} is not committed"))?;
                let (step, sense) = self.read(commit).ok_or("a commit lacks an image")?;
                if step != origin.reached.step {
                    return Err(format!("{generation:?} has step {step}, and {origin:?} was told"));
                }
                sense
            }
        };
        let Some(launch) = &mut self.launch else { return Ok(()) };
        let is_it = |rank: &&mut RankProcess| {
            rank.place == place
                && rank.state == State::Waiting
                && rank.connection.is_some_and(|(of, _)| of == connection)
        };
        // Whoever is dead hears nothing.
        let Some(rank) = launch.ranks.iter_mut().find(is_it) else { return Ok(()) };
        rank.state = State::At(origin.reached.step + 1, false);
        rank.program = Some(program);
        let (asked, number) = (launch.asked, launch.number);
        let kept = self.least_told(asked);
        let Some(launch) = &mut self.launch else { return Ok(()) };
        if origin.generation < kept {
            return Err(format!("launch {number} goes on from {origin:?}, of {kept:?}"));
        }
        self.seen.older += u64::from(origin.generation < launch.asked);
        match launch.origin {
            None => {
                launch.origin = Some(origin);
                launch.sense = Random::of_stream(sense, launch.number).below(u64::MAX);
                self.seen.begun_launches += 1;
            }
            Some(told) if told.generation != origin.generation => {
                return Err(format!("launch {}: {told:?} and {origin:?}", launch.number));
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// Step and sense of a generation, if all hosts have the same.
    fn read(&self, commit: &Commit) -> Option<(u64, u64)> {
        let image = |place| self.images.get(&(place, commit.generation));
        let images: Option<BTreeSet<(u64, u64)>> =
            (0..self.hosts.len()).map(|place| image(place).map(|image| read(image))).collect();
        images.filter(|images| images.len() == 1).and_then(|images| images.first().copied())
    }

    /// Every host has saved the same step of the same launch.
    pub(super) fn check_whole(&self, commit: &Commit) -> Result<(), String> {
        let read = self.read(commit).map(|(step, _)| step);
        if self.has_programs && read != Some(commit.reached.step) {
            return Err(format!("{commit:?} is a mixture"));
        }
        Ok(())
    }
}

impl Launch {
    fn is_there(&self) -> bool {
        self.ranks.iter().any(|rank| rank.state != State::Gone)
    }
}
