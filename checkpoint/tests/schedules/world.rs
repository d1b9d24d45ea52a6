//! A group in virtual time: what happens when, what is lost, and what must hold.

use std::collections::{BTreeMap, BTreeSet};

use meikyo_checkpoint::charter::{Charter, Commit, Generation, Incarnation, Reached};
use meikyo_checkpoint::layout::{Layout, Scheme};
use meikyo_checkpoint::level::{Keep, Level};
use meikyo_checkpoint::member::{Event, Message, Task};
use meikyo_checkpoint::program::Connection;
use meikyo_checkpoint::recovery::Restart;
use meikyo_checkpoint::register::Ballot;
use meikyo_units::{Nanos, SimTime};
use meikyo_worlds::{Agenda, Random};

use super::hosts::{Host, Packet, Stopped, Storage, image_of, parity_of};
use super::programs::Launch;
use super::seen::Seen;

const MS: Nanos = Nanos::from_millis(1);

/// Faults happen for so long.
const TROUBLED: Nanos = Nanos::from_secs(6);

/// After it, everything has to be well again within so long.
const QUIET: Nanos = Nanos::from_secs(25);

/// Work that does not come to its end is given up after so long.
const GIVE_UP: Nanos = Nanos::from_millis(2_000);

#[derive(Debug)]
pub(super) enum Happening {
    Arrival {
        from: usize,
        to: usize,
        packet: Box<Packet>,
    },
    Poll(usize),
    Snapped {
        place: usize,
        life: u64,
        generation: Generation,
    },
    GiveUp {
        place: usize,
        life: u64,
        generation: Generation,
    },
    Save,
    /// A program begins anew on this host.
    Inquire(usize),
    Fault,
    Start(usize),
    Resume(usize),
    Heal {
        from: usize,
        to: usize,
    },
    Empty(usize),
    /// A host wants the oldest generation that is kept to be freed, whether it may be or not.
    Free(usize),
    Calm,
    /// The program is started on all hosts.
    Launch,
    KillLaunch,
    /// A rank does what it can do.
    Tick {
        launch: u64,
        index: usize,
    },
    /// A rank's process ends.
    Die {
        launch: u64,
        index: usize,
    },
    /// Its daemon sees that.
    Left {
        place: usize,
        life: u64,
        connection: Connection,
    },
    LookWhetherLost,
}

pub(crate) struct World {
    seed: u64,
    pub(super) layout: Layout,
    pub(super) hosts: Vec<Host>,
    pub(super) random: Random,
    pub(super) agenda: Agenda<SimTime, Happening>,
    pub(super) now: SimTime,
    cut: BTreeSet<(usize, usize)>,
    pub(super) is_calm: bool,
    /// Whether what is saved comes from programs with ranks, or from anybody at any time.
    pub(super) has_programs: bool,
    pub(super) launch: Option<Launch>,
    pub(super) launches: u64,
    pub(super) connections: u64,
    pub(super) next_program: u64,
    /// Connections whose process has ended, which no daemon has seen yet.
    pub(super) closed: BTreeSet<(usize, Connection)>,
    /// What hosts have handed over, where programs do.
    pub(super) images: BTreeMap<(usize, Generation), Vec<u8>>,
    step: u64,
    /// What anybody ever learned, by ballot.
    pub(super) learned: BTreeMap<Ballot, Charter>,
    /// What was ever committed.
    pub(super) commits: BTreeMap<Generation, Commit>,
    /// Of generations in memory, the hosts that had all of their part when they lost their memory, and have not rebuilt
    /// it.
    pub(super) wiped: BTreeMap<Generation, BTreeSet<usize>>,
    /// Generations of which any host has ever lost its memory.
    pub(super) ever_wiped: BTreeSet<Generation>,
    /// Generations that were begun in memory.
    pub(super) in_memory: BTreeSet<Generation>,
    digest: u64,
    /// The newest that each host was seen to know.
    noted: Vec<Ballot>,
    next_life: u64,
    pub(super) next_incarnation: u64,
    polls: Vec<SimTime>,
    /// The newest commit that anybody knew when a program asked on a host what to go on from.
    asked: Vec<Option<Generation>>,
    wrong: Option<String>,
    pub(super) seen: Seen,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let hosts = 3 + random.index(3);
        let scheme = match random.below(4) {
            0 => Scheme::Partner,
            1 if hosts >= 4 => Scheme::ReedSolomon(2),
            _ => Scheme::Ring,
        };
        let layout = Layout::new(scheme, hosts).unwrap();
        let number = |random: &mut Random| u8::try_from(1 + random.below(3)).unwrap();
        let keep = Keep { memory: number(&mut random), disk: number(&mut random) };
        let host = |place: usize| Host {
            place,
            layout,
            incarnation: Incarnation(place as u64 + 1),
            keep,
            life: 0,
            storage: Storage::default(),
            daemon: None,
            stopped_until: SimTime::START,
        };
        let mut world = Self {
            seed,
            layout,
            hosts: (0..hosts).map(host).collect(),
            random,
            agenda: Agenda::new(),
            now: SimTime::START,
            cut: BTreeSet::new(),
            is_calm: false,
            has_programs: seed % 2 == 1,
            launch: None,
            launches: 0,
            connections: 0,
            next_program: 0,
            closed: BTreeSet::new(),
            images: BTreeMap::new(),
            step: 0,
            learned: BTreeMap::new(),
            commits: BTreeMap::new(),
            wiped: BTreeMap::new(),
            ever_wiped: BTreeSet::new(),
            in_memory: BTreeSet::new(),
            digest: 0,
            noted: vec![Ballot::default(); hosts],
            next_life: 1,
            next_incarnation: 100,
            polls: vec![SimTime::START; hosts],
            asked: vec![None; hosts],
            wrong: None,
            seen: Seen::default(),
        };
        let members = world.hosts.iter().map(|host| host.incarnation).collect();
        let founding = Charter::founding(members);
        for place in 0..hosts {
            let life = world.life();
            let started = world.hosts[place].start(SimTime::START, life, Some(founding.clone()));
            started.expect("nothing fails at first");
            world.agenda.add(SimTime::START, Happening::Poll(place));
        }
        world.plan();
        world
    }

    /// What happens to hosts, and when it becomes calm.
    fn plan(&mut self) {
        let hosts = self.hosts.len();
        let faults = self.random.below(14);
        for _ in 0..faults {
            let at = SimTime::START + self.random.span(TROUBLED);
            self.agenda.add(at, Happening::Fault);
        }
        self.plan_saves();
        for _ in 0..3 {
            let place = self.random.index(hosts);
            let at = SimTime::START + self.random.span(TROUBLED);
            self.agenda.add(at, Happening::Inquire(place));
        }
        for _ in 0..self.random.below(4) {
            let place = self.random.index(hosts);
            let at = SimTime::START + self.random.span(TROUBLED);
            self.agenda.add(at, Happening::Free(place));
        }
        self.agenda.add(SimTime::START + TROUBLED, Happening::Calm);
    }

    /// Programs are started and killed, or anybody saves at any time.
    fn plan_saves(&mut self) {
        let begin = SimTime::START + MS * 300;
        if !self.has_programs {
            self.agenda.add(begin, Happening::Save);
            return;
        }
        self.agenda.add(begin, Happening::Launch);
        for _ in 0..self.random.below(5) {
            let at = SimTime::START + self.random.span(TROUBLED);
            self.agenda.add(at, Happening::KillLaunch);
        }
    }

    pub(crate) const fn seen(&self) -> &Seen {
        &self.seen
    }

    pub(crate) const fn digest(&self) -> u64 {
        self.digest
    }

    pub(crate) fn described(&self) -> String {
        let host = |host: &Host| {
            let member = host.daemon.as_ref().map(|daemon| &daemon.member);
            format!("{}: {:?} {:?}\n", host.place, host.incarnation, member)
        };
        let hosts: String = self.hosts.iter().map(host).collect();
        format!(
            "{:?} at {}\n{hosts}newest {:?}",
            self.layout,
            self.now,
            self.commits.last_key_value()
        )
    }

    fn image_of(&self, place: usize, generation: Generation) -> Vec<u8> {
        let handed = self.images.get(&(place, generation));
        handed.cloned().unwrap_or_else(|| image_of(self.seed, place, generation))
    }

    fn life(&mut self) -> u64 {
        self.next_life += 1;
        self.next_life
    }

    pub(super) fn after(&mut self, span: Nanos, happening: Happening) {
        self.agenda.add(self.now + span, happening);
    }

    pub(crate) fn run(&mut self) -> Result<(), String> {
        let end = SimTime::START + TROUBLED + QUIET;
        while let Some((at, happening)) = self.agenda.pop_until(end) {
            self.now = at;
            self.digest = self.digest.rotate_left(7) ^ at.as_nanos() ^ self.step;
            self.happen(happening)?;
            if let Some(wrong) = self.wrong.take() {
                return Err(wrong);
            }
            if self.is_calm && self.is_well() {
                return self.judge();
            }
        }
        Err("it is not well again long after the last fault".to_owned())
    }

    fn happen(&mut self, happening: Happening) -> Result<(), String> {
        match happening {
            Happening::Arrival { from, to, packet } => {
                if !self.cut.contains(&(from, to)) {
                    self.arrive(from, to, *packet)?;
                }
            }
            Happening::Poll(place) => {
                if self.polls[place] <= self.now {
                    self.turn(place)?;
                }
            }
            Happening::Snapped { place, life, generation } => {
                let len = self.image_of(place, generation).len() as u64;
                let host = &mut self.hosts[place];
                if host.life == life
                    && let Some(member) = host.member()
                {
                    member.snapped(generation, len);
                    self.turn(place)?;
                }
            }
            Happening::GiveUp { place, life, generation } => {
                if self.hosts[place].life == life {
                    let now = self.now;
                    self.hosts[place].give_up(now, generation);
                    self.turn(place)?;
                }
            }
            Happening::Save => self.save()?,
            Happening::Inquire(place) => {
                let now = self.now;
                // What is committed from here on may be told, and nothing that is older than this.
                self.asked[place] = self.commits.keys().next_back().copied();
                if !self.is_stopped(place)
                    && let Some(member) = self.hosts[place].member()
                {
                    member.inquire(now);
                    self.turn(place)?;
                }
            }
            Happening::Fault => self.fault()?,
            Happening::Start(place) => {
                if self.hosts[place].daemon.is_none() {
                    self.start(place);
                }
            }
            Happening::Resume(place) => self.turn(place)?,
            Happening::Heal { from, to } => {
                self.cut.remove(&(from, to));
            }
            Happening::Empty(place) => self.hosts[place].storage.disk.set_room(None),
            Happening::Free(place) => self.free_oldest(place)?,
            Happening::Calm => self.calm(),
            Happening::Launch => self.launch(),
            Happening::KillLaunch => self.kill_launch(),
            Happening::Tick { launch, index } => self.tick(launch, index)?,
            Happening::Die { launch, index } => self.die(launch, index),
            Happening::Left { place, life, connection } => {
                self.left(place, life, connection);
                self.turn(place)?;
            }
            Happening::LookWhetherLost => self.look_whether_lost(),
        }
        Ok(())
    }

    pub(super) fn is_stopped(&self, place: usize) -> bool {
        self.hosts[place].stopped_until > self.now
    }

    fn arrive(&mut self, from: usize, to: usize, packet: Packet) -> Result<(), String> {
        if self.is_stopped(to) {
            // It waits in the socket of a process that stands still.
            let until = self.hosts[to].stopped_until;
            self.agenda.add(until, Happening::Arrival { from, to, packet: Box::new(packet) });
            return Ok(());
        }
        let now = self.now;
        let host = &mut self.hosts[to];
        let outcome = match packet {
            Packet::Agreement(message) => {
                if let Some(member) = host.member() {
                    member.handle(now, message);
                }
                Ok(())
            }
            Packet::Image(generation, image) => host.image_came(generation, from, image),
            Packet::Want(generation) => {
                if let Some((image, parity)) = host.parts(generation) {
                    self.send(to, from, Packet::Part(generation, image, parity));
                }
                Ok(())
            }
            Packet::Part(generation, image, parity) => {
                host.part_came(now, generation, from, image, parity)
            }
        };
        self.unless_killed(to, outcome);
        self.turn(to)
    }

    fn unless_killed(&mut self, place: usize, outcome: Result<(), Stopped>) {
        if outcome.is_err() {
            self.seen.kills_while_writing += 1;
            self.kill(place);
        }
    }

    fn kill(&mut self, place: usize) {
        self.seen.kills += 1;
        let host = &mut self.hosts[place];
        host.daemon = None;
        host.storage.kill_after = None;
        if self.random.once_in(2) {
            self.seen.power_cuts += 1;
            let whole = host.storage.cut_power(&mut self.random);
            self.wipe(place, whole);
            self.kill_launch();
        }
        let span = MS * 50 + self.random.span(MS * 2_500);
        self.after(span, Happening::Start(place));
    }

    fn start(&mut self, place: usize) {
        let life = self.life();
        let now = self.now;
        let started = self.hosts[place].start(now, life, None);
        self.hosts[place].stopped_until = now;
        if started.is_err() {
            self.kill(place);
            return;
        }
        self.polls[place] = now;
        self.agenda.add(now, Happening::Poll(place));
    }

    fn send(&mut self, from: usize, to: usize, packet: Packet) {
        if self.cut.contains(&(from, to)) || (!self.is_calm && self.random.once_in(200)) {
            return;
        }
        let slow = if self.is_calm || !self.random.once_in(50) { 4 } else { 900 };
        let span = MS + self.random.span(MS * slow);
        self.after(span, Happening::Arrival { from, to, packet: Box::new(packet) });
    }

    /// Lets a member do what it has to do.
    pub(super) fn turn(&mut self, place: usize) -> Result<(), String> {
        let now = self.now;
        if self.is_stopped(place) {
            return Ok(());
        }
        loop {
            self.settle(place)?;
            let Some(task) = self.hosts[place].member().and_then(|member| member.poll(now)) else {
                break;
            };
            if let Err(stopped) = self.carry_out(place, task) {
                self.unless_killed(place, Err(stopped));
                break;
            }
        }
        self.note_learned(place)?;
        if let Some(member) = self.hosts[place].member() {
            let next = member.next_poll().max(now + MS);
            if self.polls[place] <= now || self.polls[place] > next {
                self.polls[place] = next;
                self.agenda.add(next, Happening::Poll(place));
            }
        }
        Ok(())
    }

    fn carry_out(&mut self, place: usize, task: Task) -> Result<(), Stopped> {
        match task {
            Task::Keep(vote) => self.hosts[place].keep(&vote)?,
            Task::Send(to, message) => self.send_message(place, to, message),
            Task::Snapshot { generation, reached } if self.has_programs => {
                let daemon = self.hosts[place].daemon.as_mut();
                daemon
                    .expect("a task is of a daemon that runs")
                    .program
                    .wanted(generation, reached);
            }
            Task::Started { program, run, origin } => {
                self.seen.joined_again += u64::from(self.was_told(program));
                let daemon = self.hosts[place].daemon.as_mut();
                daemon
                    .expect("a task is of a daemon that runs")
                    .program
                    .started(program, run, origin);
            }
            Task::Over(program) => {
                self.seen.left_out += 1;
                let daemon = self.hosts[place].daemon.as_mut();
                daemon.expect("a task is of a daemon that runs").program.over(program);
                if self.is_calm {
                    self.refused(place);
                }
            }
            Task::Snapshot { generation, .. } => {
                let life = self.hosts[place].life;
                let span = self.random.span(MS * 40);
                self.after(span, Happening::Snapped { place, life, generation });
            }
            Task::Write { generation, version, level, lens, base } => {
                self.hosts[place].storage.put(generation, level);
                self.seen.in_memory += u64::from(level == Level::Memory);
                let image = self.image_of(place, generation);
                let Some(told) = self.hosts[place].told_of(base, &image) else {
                    let member = self.hosts[place].member();
                    member.expect("a task is of a daemon that runs").failed(generation, "no base");
                    return Ok(());
                };
                self.seen.updates += u64::from(base.is_some());
                for to in (0..self.hosts.len()).filter(|to| *to != place) {
                    self.send(place, to, Packet::Image(generation, told.clone()));
                }
                let life = self.hosts[place].life;
                self.after(GIVE_UP, Happening::GiveUp { place, life, generation });
                self.hosts[place].write(generation, (version, lens, base), &image, told)?;
            }
            Task::Rebuild { commit, lost } => {
                let generation = commit.generation;
                self.seen.rebuilt += 1;
                self.hosts[place].begin_rebuild(commit);
                for to in (0..self.hosts.len()).filter(|to| !lost.contains(to)) {
                    self.send(place, to, Packet::Want(generation));
                }
                let life = self.hosts[place].life;
                self.after(GIVE_UP, Happening::GiveUp { place, life, generation });
            }
            Task::Free(generation) => self.hosts[place].free(generation)?,
            Task::Restart { restart, is_confirmed, .. } => {
                self.restarted(place, &restart, is_confirmed);
            }
            Task::Tell(event) => self.told(place, &event),
        }
        Ok(())
    }

    fn send_message(&mut self, from: usize, to: usize, message: Message) {
        self.send(from, to, Packet::Agreement(message));
    }

    /// What a program is told to go on from, when a majority says so, is not older than what was committed
    /// before it asked, and can be had back.
    fn restarted(&mut self, place: usize, restart: &Restart, is_confirmed: bool) {
        if !is_confirmed {
            self.seen.unconfirmed += 1;
            return;
        }
        self.seen.restarts += 1;
        // It may have learned of a commit in the same turn.
        if let Err(wrong) = self.note_learned(place) {
            self.wrong = Some(wrong);
            return;
        }
        let told = match restart {
            Restart::From { generation, is_committed: true, .. } => Some(*generation),
            Restart::From { .. } => {
                self.wrong = Some(format!("{place} goes on from what is not committed"));
                return;
            }
            Restart::Nothing => None,
            // Hosts that are silent have it.
            Restart::Lost { .. } => return,
        };
        let is_known = told.is_none_or(|generation| self.commits.contains_key(&generation));
        let kept = self.least_told(self.asked[place]);
        if !is_known || told < kept {
            let (asked, wiped) = (self.asked[place], &self.ever_wiped);
            self.wrong = Some(format!(
                "{place} goes on from {told:?}, and had {kept:?} before; it asked when {asked:?} was the newest, \
                 and {wiped:?} were lost once"
            ));
        }
    }

    fn told(&mut self, place: usize, event: &Event) {
        match event {
            Event::Aborted(..) => self.seen.aborted += 1,
            Event::Fenced => {
                self.seen.fenced += 1;
                assert_ne!(self.hosts[place].daemon.as_ref().map(|_| ()), None);
            }
            Event::Died(dead) => {
                let host = &self.hosts[*dead];
                let is_away = host.daemon.is_none() || host.stopped_until > self.now;
                self.seen.false_deaths += u64::from(!is_away);
            }
            Event::Lost(..) => self.seen.lost += 1,
            Event::NotCommitted(..) => panic!("no host insists on a generation"),
            Event::Committed(_)
            | Event::Busy
            | Event::Damaged(_)
            | Event::FoundedBefore
            | Event::StartedAnew
            | Event::Over(_) => {}
        }
    }

    /// What a member has learned agrees with what everybody else has.
    pub(super) fn note_learned(&mut self, place: usize) -> Result<(), String> {
        let host = &self.hosts[place];
        let Some(charter) = host.daemon.as_ref().and_then(|daemon| daemon.member.charter()) else {
            return Ok(());
        };
        let ballot = host.daemon.as_ref().unwrap().member.decided();
        if self.noted[place] == ballot {
            return Ok(());
        }
        self.noted[place] = ballot;
        if let Some(known) = self.learned.get(&ballot) {
            return if known == charter {
                Ok(())
            } else {
                Err(format!("two charters at {ballot:?}"))
            };
        }
        let charter = charter.clone();
        if let Some(open) = charter.open.filter(|open| open.level == Level::Memory) {
            self.in_memory.insert(open.generation);
        }
        if let Some((start, origin)) = charter.begun() {
            let is_late = |commit: &&Commit| {
                Some(commit.generation) > origin.newest && commit.reached.run != start.run
            };
            if let Some(commit) = charter.commits.iter().find(is_late) {
                return Err(format!("{commit:?} was committed after {start:?} had begun"));
            }
        }
        for commit in &charter.commits {
            match self.commits.get(&commit.generation) {
                Some(known) if known != commit => {
                    return Err(format!("two commits of {:?}", commit.generation));
                }
                Some(_) => {}
                None => {
                    self.check_whole(commit)?;
                    self.commits.insert(commit.generation, commit.clone());
                    self.seen.committed += 1;
                    self.seen.taken_over += u64::from(commit.manifests.contains(&None));
                }
            }
        }
        let newest = |charter: &Charter| charter.newest().map(|commit| commit.generation);
        if let Some((_, before)) = self.learned.range(..ballot).next_back()
            && newest(before) > newest(&charter)
        {
            return Err(format!("{:?} was forgotten at {ballot:?}", newest(before)));
        }
        if let Some((_, after)) = self.learned.range(ballot..).next()
            && newest(after) < newest(&charter)
        {
            return Err(format!("{:?} was forgotten after {ballot:?}", newest(&charter)));
        }
        self.learned.insert(ballot, charter);
        self.check_recoverable()
    }

    /// Those that do not have a generation whole on their disk.
    pub(super) fn lacking(&self, generation: Generation) -> BTreeSet<usize> {
        let lacks = |host: &&Host| host.storage.manifest(generation).is_none();
        self.hosts.iter().filter(lacks).map(|host| host.place).collect()
    }

    fn save(&mut self) -> Result<(), String> {
        let place = self.random.index(self.hosts.len());
        let now = self.now;
        let level = self.level();
        self.step += 1;
        let reached = Reached { run: 0, step: self.step };
        if !self.is_stopped(place)
            && let Some(member) = self.hosts[place].member()
        {
            member.level_next(level);
            let refused = member.save(now, reached).is_err();
            self.seen.refused_saves += u64::from(refused);
            self.turn(place)?;
        }
        let span = MS * 100 + self.random.span(MS * 1_200);
        self.after(span, Happening::Save);
        Ok(())
    }

    fn fault(&mut self) -> Result<(), String> {
        self.check_recoverable()?;
        if self.is_calm {
            return Ok(());
        }
        let place = self.random.index(self.hosts.len());
        match self.random.below(9) {
            0 | 1 if self.hosts[place].daemon.is_some() => self.kill(place),
            2 | 3 => {
                let operations = self.random.below(12);
                self.hosts[place].storage.kill_after = Some(operations);
            }
            4 if self.hosts[place].daemon.is_some() => {
                self.seen.stops += 1;
                let until = self.now + self.random.span(MS * 4_000);
                self.hosts[place].stopped_until = until;
                self.agenda.add(until, Happening::Resume(place));
            }
            5 | 6 => {
                self.seen.cuts += 1;
                let is_one_way = self.random.once_in(3);
                let hosts = self.hosts.len();
                let span = self.random.span(MS * 4_000);
                let alone = self.random.once_in(2);
                let other = (place + 1 + self.random.index(hosts - 1)) % hosts;
                for peer in (0..hosts).filter(|&peer| peer != place && (alone || peer == other)) {
                    for (from, to) in [(place, peer), (peer, place)] {
                        if from == place || !is_one_way {
                            self.cut.insert((from, to));
                            self.after(span, Happening::Heal { from, to });
                        }
                    }
                }
            }
            7 => {
                self.seen.full += 1;
                let used = self.hosts[place].storage.disk.used();
                let left = self.random.index(2_000);
                self.hosts[place].storage.disk.set_room(Some(used + left));
                let span = self.random.span(MS * 3_000);
                self.after(span, Happening::Empty(place));
            }
            _ => self.replace(place),
        }
        Ok(())
    }

    /// No more faults: everything runs, and everybody reaches everybody.
    fn calm(&mut self) {
        self.is_calm = true;
        self.cut.clear();
        self.kill_launch();
        if self.has_programs {
            self.agenda.add(self.now + MS * 2_000, Happening::Launch);
        }
        for place in 0..self.hosts.len() {
            let host = &mut self.hosts[place];
            host.storage.disk.set_room(None);
            host.storage.kill_after = None;
            if self.hosts[place].daemon.is_none() {
                self.start(place);
            }
        }
    }

    /// Whether all agree, nothing is open, and all have what was committed since the last fault.
    fn is_well(&self) -> bool {
        let mut members =
            self.hosts.iter().map(|host| host.daemon.as_ref().map(|daemon| &daemon.member));
        let Some(Some(first)) = members.next() else { return false };
        let Some(charter) = first.charter() else { return false };
        let Some(newest) = charter.newest() else { return false };
        // Something that began when all was calm.
        let began = self.now.since(SimTime::START) > TROUBLED + MS * 500;
        let is_fresh =
            newest.manifests.iter().all(Option::is_some) && newest.reached.step + 3 >= self.step;
        let is_fresh = is_fresh && (!self.has_programs || self.is_ended_well());
        began
            && is_fresh
            && charter.open.is_none()
            && members.all(|member| member.is_some_and(|member| member.charter() == Some(charter)))
            && self.lacking(newest.generation).is_empty()
            && charter
                .newest_of(Level::Disk)
                .is_none_or(|newest| self.lacking(newest.generation).is_empty())
    }

    fn judge(&self) -> Result<(), String> {
        let charter = self.learned.values().next_back().unwrap();
        let newest = charter.newest().unwrap();
        if Some(&newest.generation) != self.commits.keys().next_back() {
            return Err(format!("{:?} was committed and is not the newest", self.commits.keys()));
        }
        let images: Vec<Vec<u8>> =
            (0..self.hosts.len()).map(|place| self.image_of(place, newest.generation)).collect();
        for host in &self.hosts {
            let (_, geometry, checksum) = host.storage.manifest(newest.generation).unwrap();
            if newest.manifests[host.place] != Some(checksum) {
                return Err(format!("host {} has another manifest", host.place));
            }
            let parity = parity_of(&geometry, host.place, &images);
            let has = |part| host.storage.part(newest.generation, part);
            if has("image") != images[host.place] || has("parity") != parity {
                return Err(format!("host {} has other octets", host.place));
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.described())
    }
}
