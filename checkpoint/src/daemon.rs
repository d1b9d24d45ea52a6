//! The daemon of one host: a thread that drives a [`Member`], and threads that carry out what it wants.
//!
//! The thread owns everything that decides: the member, its journal, what the program handed over. Threads
//! for connections and for jobs tell it what has come by one channel. It outlives the program, so that a
//! checkpoint that was begun is ended though the program dies.

mod control;
mod draining;
mod happened;
mod job;
mod levels;
mod memory;
mod network;
mod ranks;
mod room;
mod rules;
mod storage;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::TcpListener;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Instant;

use meikyo_units::{BitsPerSecond, Bytes, Nanos, SimTime, in_one_line};
use rustix::fs::Access;

use crate::charter::Generation;
use crate::detection::Patience;
use crate::exchange::Breaker;
use crate::geometry::Geometry;
use crate::increment::Hash;
use crate::journal::Journal;
use crate::layout::Layout;
use crate::level::Level;
use crate::link::Wanted;
use crate::member::{Event, Member, MemberOptions, Message, SaveError, Task};
use crate::pace::{Effort, Pace};
use crate::program::{Connection, Program, RankError, Snapshot};
use crate::progress::Progress;
use crate::recovery::Prepared;
use crate::schedule::Job;

pub use control::{
    Answer, AskError, Begun, Cost, LINE_BYTES_MAX, Offered, Place, Request, Status, StoredPart,
    ask, ask_within, socket_of,
};
pub use draining::DrainOptions;
use draining::Draining;
use happened::Watched;
pub use happened::{Happened, Observer, What};
pub use job::{JobFile, JobFileError};
use levels::Levels;
pub use levels::{LevelOptions, LevelStatus};
use memory::Memory;
pub use memory::{MemoryOptions, memory_available};
use network::Network;
use ranks::{FromRank, Part, Waiting};
pub use rules::{DiskRules, MemoryRules, Rules, RulesError};
use storage::Storage;
use work::{Base, Carried, Started, Working};

/// How long a generation may take from its begin to its commit.
const SAVE_TIMEOUT: Nanos = Nanos::from_secs(600);

/// Rebuilds of others that this host takes part in at once.
const GIVING_MAX: usize = 64;

/// What waits for the daemon's thread at once.
const INPUTS_MAX: usize = 1_024;

/// How a daemon is started.
#[derive(Debug, Clone)]
pub struct DaemonOptions {
    /// The job: hosts, scheme, key.
    pub job: JobFile,
    /// This host's place in it.
    pub place: usize,
    /// Where generations, votes and the control socket are.
    pub directory: PathBuf,
    /// Whether the group begins now. A host that comes later, or comes back without its directory, asks the
    /// others to be admitted instead.
    pub is_founding: bool,
    /// The first program that begins goes on from this generation, whatever is newer.
    pub from: Option<u64>,
    /// A program that runs and has saved nothing for so long is told to be stalled; nothing to judge it by what it did
    /// before.
    pub stalled_after: Option<Nanos>,
    /// The most that is written to the disk.
    pub disk_rate: Option<BitsPerSecond>,
    /// The most that is sent to other hosts, over all links together.
    pub network_rate: Option<BitsPerSecond>,
    /// The most that is taken of processors: 0.5 is half of one.
    pub cpu_share: Option<f64>,
    /// Octets of an image that there must be room for on the disk when the daemon starts.
    pub room_for: Option<Bytes>,
    /// How generations are copied to a file system that all hosts share, if they are.
    pub drain: Option<DrainOptions>,
    /// Where generations are kept, how many, and for how long.
    pub levels: LevelOptions,
    /// Whether the daemon ends with its standard input: whoever started it holds the other end.
    pub ends_with_input: bool,
}

/// Why a daemon does not run.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// Its directory cannot be used.
    #[error("cannot use `{path}`")]
    Directory {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It cannot listen.
    #[error("cannot listen at `{address}`")]
    Listen {
        /// The address, or the path of the control socket.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// What the directory has was written for a job with other hosts, another scheme or other blocks.
    #[error("`{path}` is of another job: {what}")]
    OtherJob {
        /// The directory.
        path: PathBuf,
        /// What is different.
        what: String,
    },
    /// A file system has no room for what the program is going to save.
    #[error(
        "`{path}` has room for {room}, and {generations} generations of {image} a host need {needed}"
    )]
    Room {
        /// The directory.
        path: PathBuf,
        /// What fits, what is there already included.
        room: Bytes,
        /// How many are there at once at most.
        generations: u64,
        /// Octets of an image.
        image: Bytes,
        /// Octets of all of them, parity included.
        needed: Bytes,
    },
    /// What is to be memory is a disk.
    #[error("`{path}` is not in memory: it has to be on a `tmpfs`")]
    NoMemory {
        /// The directory.
        path: PathBuf,
    },
    /// There is not so much memory.
    #[error("`{path}` has room for {room}, and generations in memory were given {asked}")]
    Memory {
        /// The directory.
        path: PathBuf,
        /// What fits, what is there already included.
        room: Bytes,
        /// What was asked for.
        asked: Bytes,
    },
    /// What is in memory at the end does not fit the disk.
    #[error("at its end, {0}")]
    WriteDown(String),
    /// The group was founded before, without what was in this directory.
    #[error(
        "the group of this job lives already: a host that lost its directory asks to be admitted"
    )]
    Lives,
    /// The group was founded with this directory before.
    #[error("`{path}` belongs to a group already: start without founding it again")]
    Founded {
        /// The directory.
        path: PathBuf,
    },
}

/// What the daemon's thread is told.
enum Input {
    Message(Message),
    /// A host wants what it lost of a generation.
    Wanted {
        from: usize,
        wanted: Wanted,
    },
    Control(control::Question, SyncSender<control::Reply>),
    /// The connections of a job of this host are there.
    Met(Generation, Breaker),
    Saved(Generation, Result<Carried, String>),
    Rebuilt(Generation, Result<(Prepared, Cost), String>),
    /// A host was given what it wanted, in this attempt, or why not.
    Given(usize, u64, Option<String>),
    /// A step was drained: how many octets in which time, or why not.
    Drained(u64, Result<(u64, Nanos), String>),
    /// A block of this host is not what was stored.
    Damaged(Generation),
    /// A host wants all of this host's image, in this attempt.
    Fetch {
        from: usize,
        generation: Generation,
        attempt: u64,
    },
    /// A rank of the program on this host says something.
    Rank(Connection, FromRank),
    /// The daemon is to end.
    End,
}

struct Daemon {
    options: DaemonOptions,
    layout: Layout,
    begun: Instant,
    member: Member,
    journal: Journal,
    storage: Storage,
    network: Arc<Network>,
    /// How fast may be written.
    disk: Arc<Pace>,
    inputs: SyncSender<Input>,
    /// What the program has handed over.
    program: Program<Part, Arc<Vec<u8>>>,
    /// Ranks that wait to be told what to go on from.
    waiting: BTreeMap<Connection, Waiting>,
    images: BTreeMap<Generation, Arc<Vec<u8>>>,
    /// The hashes of the blocks of the image that was saved last, where they are known.
    hashes: Option<(Generation, Arc<Vec<Hash>>)>,
    /// What the newest generation that was written here cost.
    cost: Option<Cost>,
    /// The step that was handed over last, and how long the program stood still for it.
    stopped: Option<(u64, Nanos)>,
    progress: Progress,
    draining: Option<Draining>,
    levels: Levels,
    observer: Observer,
    watched: Watched,
    /// Programs without the library that begin anew, and the generation that they insist on.
    restarts: Vec<(Option<u64>, SyncSender<control::Reply>)>,
    /// Jobs of this host, and how to break them off once they have met the others.
    running: BTreeMap<Generation, Option<Breaker>>,
    giving: BTreeSet<(usize, u64)>,
    trouble: Option<String>,
}

/// Runs a daemon until the process ends, or standard input if it is to end with it, and tells what happens.
///
/// # Errors
/// When its directory cannot be used, or it cannot listen.
///
/// # Panics
/// If the place is none of the job's.
pub fn run(options: DaemonOptions, observer: Observer) -> Result<(), DaemonError> {
    let layout = options.job.layout();
    let me = options.place;
    assert!(me < layout.hosts(), "the place is one of the job's");
    let mut storage = open_storage(&options)?;
    let unusable = |source| DaemonError::Directory { path: options.directory.clone(), source };
    let (journal, vote) = Journal::open(&mut storage).map_err(unusable)?;
    storage.reserve_votes().map_err(unusable)?;
    if options.is_founding && (vote.is_some() || storage.has_generations().map_err(unusable)?) {
        return Err(DaemonError::Founded { path: options.directory });
    }
    if vote.as_ref().is_some_and(|vote| !vote.charter.fits(layout.hosts())) {
        let what = format!("its group has not {} hosts", layout.hosts());
        return Err(DaemonError::OtherJob { path: options.directory, what });
    }
    let incarnation = storage.incarnation(vote.is_some()).map_err(unusable)?;
    let prepared = storage.whole_generations(&layout, options.job.block())?;
    let (inputs, incoming) = sync_channel(INPUTS_MAX);
    check_drain(&options)?;
    check_room(&options, &storage)?;
    let listeners = listen(&options.job, me)?;
    let effort = options.cpu_share.map(|share| Arc::new(Effort::new(share)));
    let pace = Pace::of(options.network_rate, effort.clone());
    let network = Network::start(&options.job, me, pace, listeners, &inputs);
    ranks::forget_fetched(&options.directory).map_err(unusable)?;
    let mtbf = options.levels.between_failures;
    ranks::listen(&options.directory, &inputs, &network, mtbf)?;
    end_with_input(&options, &inputs);
    let life = storage::random();
    let member_options = MemberOptions {
        place: me,
        layout,
        incarnation,
        life,
        patience: Patience::DEFAULT,
        save_timeout: SAVE_TIMEOUT,
        keep: options.levels.keep,
        is_founding: options.is_founding,
    };
    let mut member = Member::new(SimTime::START, member_options, vote, prepared);
    if let Some(number) = options.from {
        member.insist(Generation(number));
    }
    let begun = now();
    let mut daemon = Daemon {
        layout,
        begun,
        member,
        journal,
        storage,
        network,
        disk: Arc::new(Pace::of(options.disk_rate, effort.clone())),
        inputs,
        program: Program::default(),
        waiting: BTreeMap::new(),
        images: BTreeMap::new(),
        hashes: None,
        cost: None,
        stopped: None,
        progress: Progress::new(options.stalled_after),
        draining: options.drain.clone().map(|drain| Draining::new(drain, effort)),
        levels: Levels::new(options.levels.clone()),
        observer,
        watched: Watched::default(),
        restarts: Vec::new(),
        running: BTreeMap::new(),
        giving: BTreeSet::new(),
        trouble: None,
        options,
    };
    daemon.turns(&incoming)
}

/// The daemon's directory, and the one in memory if generations are kept there.
fn open_storage(options: &DaemonOptions) -> Result<Storage, DaemonError> {
    let path = options.directory.clone();
    std::fs::create_dir_all(&path).map_err(|source| DaemonError::Directory { path, source })?;
    let memory = options.levels.memory.as_ref();
    let memory = memory.map(|memory| Memory::open(memory, &options.directory)).transpose()?;
    Storage::open(&options.directory, memory)
}

/// Watches standard input if the daemon is to end with it.
fn end_with_input(options: &DaemonOptions, inputs: &SyncSender<Input>) {
    if !options.ends_with_input {
        return;
    }
    let inputs = inputs.clone();
    thread::spawn(move || {
        // What is written there means nothing; that it cannot be read is its end, too.
        drop(io::copy(&mut io::stdin(), &mut io::sink()));
        // The daemon may be at its end.
        drop(inputs.send(Input::End));
    });
}

/// Whether what is drained can be written where it is to be.
fn check_drain(options: &DaemonOptions) -> Result<(), DaemonError> {
    let Some(DrainOptions { directory: path, .. }) = &options.drain else { return Ok(()) };
    let is_usable = std::fs::create_dir_all(path)
        .and_then(|()| Ok(rustix::fs::access(path, Access::WRITE_OK | Access::EXEC_OK)?));
    is_usable.map_err(|source| DaemonError::Directory { path: path.clone(), source })
}

/// Whether there is the memory that generations are given, and whether what the program is going to save fits it and the
/// disk, and what is drained of it the file system that all share. On each level the generations that are kept are there
/// at once with the one that is being written, and the disk takes the newest that is in memory at the end.
fn check_room(options: &DaemonOptions, storage: &Storage) -> Result<(), DaemonError> {
    if let Some(memory) = storage.memory() {
        let path = memory.directory().to_owned();
        let failed = |source| DaemonError::Directory { path: path.clone(), source };
        let (room, asked) = (Bytes::new(memory.there().map_err(failed)?), memory.room());
        if asked > room {
            return Err(DaemonError::Memory { path, room, asked });
        }
    }
    let Some(image) = options.room_for else { return Ok(()) };
    let (layout, hosts) = (options.job.layout(), options.job.layout().hosts() as u64);
    let check = |path: &Path, room: io::Result<u64>, generations: u64, each: u64| {
        let room =
            room.map_err(|source| DaemonError::Directory { path: path.to_owned(), source })?;
        let needed = each.saturating_mul(generations);
        if needed <= room {
            return Ok(());
        }
        let (path, room, needed) = (path.to_owned(), Bytes::new(room), Bytes::new(needed));
        Err(DaemonError::Room { path, room, generations, image, needed })
    };
    let parity = Geometry::new(layout, options.job.block(), vec![image.get(); layout.hosts()])
        .map_or(0, |geometry| geometry.parity_blocks() * u64::from(geometry.block()));
    let there = |path: &Path, used: io::Result<u64>| Ok(room::room(path)?.saturating_add(used?));
    let each = image.get().saturating_add(parity);
    let (path, keep) = (&options.directory, options.levels.keep);
    let at_once = |kept: u8| u64::from(kept) + 1;
    if let Some(memory) = storage.memory() {
        check(memory.directory(), Ok(memory.room().get()), at_once(keep.memory), each)?;
    }
    let written_down = u64::from(storage.memory().is_some());
    check(path, there(path, storage.used()), at_once(keep.disk) + written_down, each)?;
    if let Some(drain) = &options.drain {
        let path = &drain.directory;
        let generations = drain.keep as u64 + 1;
        let all = image.get().saturating_mul(hosts);
        check(path, there(path, room::used_in(path)), generations, all)?;
    }
    Ok(())
}

fn listen(job: &JobFile, me: usize) -> Result<Vec<TcpListener>, DaemonError> {
    let listener = |address: &std::net::SocketAddr| {
        TcpListener::bind(address)
            .map_err(|source| DaemonError::Listen { address: address.to_string(), source })
    };
    job.addresses()[me].iter().map(listener).collect()
}

impl Daemon {
    fn now(&self) -> SimTime {
        let nanos = now().duration_since(self.begun).as_nanos();
        SimTime::from_nanos(u64::try_from(nanos).expect("no daemon runs for five centuries"))
    }

    fn turns(&mut self, incoming: &Receiver<Input>) -> Result<(), DaemonError> {
        loop {
            let wait = self.member.next_poll().since(self.now()).to_std();
            match incoming.recv_timeout(wait) {
                Ok(Input::End) => return self.write_down().map_err(DaemonError::WriteDown),
                Ok(input) => self.take(input),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            loop {
                self.give_snapshots();
                self.tell_ranks();
                self.try_to_save();
                let now = self.now();
                let Some(task) = self.member.poll(now) else { break };
                self.carry_out(task)?;
            }
            self.watch();
            self.watch_levels();
            self.watch_progress();
        }
    }

    fn take(&mut self, input: Input) {
        let now = self.now();
        match input {
            Input::Message(message) => self.member.handle(now, message),
            Input::Wanted { from, wanted } => self.give(from, wanted),
            Input::Control(question, reply) => self.asked(now, question, reply),
            Input::Met(generation, breaker) => match self.running.get_mut(&generation) {
                Some(running) => *running = Some(breaker),
                // It was given up meanwhile.
                None => breaker.cut(),
            },
            Input::Saved(generation, outcome) => {
                self.running.remove(&generation);
                self.images.remove(&generation);
                match outcome {
                    Ok(carried) => {
                        self.hashes = carried.hashes.map(|hashes| (generation, Arc::new(hashes)));
                        self.saved(generation, carried.cost);
                        self.member.prepared(generation, carried.prepared.manifest);
                    }
                    Err(trouble) => {
                        self.member.failed(generation, &trouble);
                        self.trouble = Some(trouble);
                    }
                }
            }
            Input::Rebuilt(generation, outcome) => {
                self.running.remove(&generation);
                match outcome {
                    Ok((prepared, cost)) => {
                        self.member.rebuilt(generation, prepared);
                        self.observe_job(What::Rebuilt, cost);
                    }
                    Err(trouble) => {
                        self.trouble = Some(trouble);
                        self.member.rebuild_failed(now, generation);
                    }
                }
            }
            Input::Given(to, attempt, trouble) => {
                self.giving.remove(&(to, attempt));
                self.trouble = trouble.or_else(|| self.trouble.take());
            }
            Input::Drained(step, outcome) => self.drained(step, outcome),
            Input::Damaged(generation) => self.member.damaged(generation),
            Input::Fetch { from, generation, attempt } => {
                let mut whole = self.member.prepared_generations();
                if whole.any(|(whole, _)| whole == generation) {
                    let (network, inputs) = (Arc::clone(&self.network), self.inputs.clone());
                    let directory = self.storage.generation(generation);
                    thread::spawn(move || {
                        let given = network.give_image(from, generation, attempt, &directory);
                        if given.is_err_and(|error| error.kind() == io::ErrorKind::InvalidData) {
                            // The daemon may be at its end.
                            drop(inputs.send(Input::Damaged(generation)));
                        }
                    });
                }
            }
            Input::Rank(connection, said) => self.rank_says(now, connection, said),
            Input::End => unreachable!("whoever reads inputs ends with it"),
        }
    }

    /// This host's part of a generation is on its disk.
    fn saved(&mut self, generation: Generation, mut cost: Cost) {
        let open = self.member.charter().and_then(|charter| charter.open);
        let open = open.filter(|open| open.generation == generation);
        let step = open.map(|open| open.reached.step);
        let stopped = self.stopped.filter(|(of, _)| Some(*of) == step);
        cost.stop_seconds = stopped.map(|(_, stopped)| stopped.as_secs_f64());
        self.cost = Some(cost.clone());
        if let Some(open) = open {
            self.level_saved(open.level, &cost);
        }
        self.observe_job(What::Prepared, cost);
    }

    /// Of the hosts that live, the first coordinates.
    fn try_to_save(&mut self) {
        let Some(reached) = self.program.to_save() else { return };
        let now = self.now();
        if !self.is_first_alive() {
            return;
        }
        self.decide_to_drain();
        self.decide_level();
        match self.member.save(now, reached) {
            Err(SaveError::Busy) => {}
            Ok(()) => self.program.begun(),
            Err(error) => {
                self.trouble = Some(error.to_string());
                self.program.begun();
            }
        }
    }

    fn carry_out(&mut self, task: Task) -> Result<(), DaemonError> {
        match task {
            Task::Keep(vote) => {
                let kept = self.journal.keep(&mut self.storage, &vote);
                let path = self.options.directory.clone();
                kept.map_err(|source| DaemonError::Directory { path, source })?;
            }
            Task::Send(to, message) => self.network.send(to, &message),
            Task::Snapshot { generation, reached } => {
                self.program.wanted(generation, reached);
            }
            Task::Write { generation, version, level, lens, base } => {
                self.write(generation, (version, level), lens, base);
            }
            Task::Rebuild { commit, lost } => {
                let (generation, place) = (commit.generation, self.options.place);
                if !self.storage.has_any_of(generation) {
                    self.storage.put(generation, commit.level);
                }
                let wanted = Wanted {
                    generation,
                    version: self.version(),
                    attempt: storage::random(),
                    lost: lost.iter().fold(0, |bits, place| bits | 1 << place),
                };
                self.start(Started {
                    generation,
                    version: commit.version,
                    met: (wanted.version, wanted.attempt),
                    geometry: self.geometry(commit.lens),
                    job: Job::RebuildOne { lost, place },
                    image: None,
                    base: None,
                    wanted: Some(wanted),
                });
            }
            Task::Restart { restart, newest, silent, is_confirmed } => {
                self.tell_restarts(&restart, newest, &silent, is_confirmed);
                self.tell_why_none(&restart, newest, &silent, is_confirmed);
            }
            Task::Started { program, run, origin } => self.program.started(program, run, origin),
            Task::Over(program) => {
                self.program.over(program);
                self.refuse_ranks(&RankError::Over.to_string());
            }
            Task::Free(generation) => {
                if let Some(Some(breaker)) = self.running.remove(&generation) {
                    breaker.cut();
                }
                self.network.forget(generation);
                self.images.remove(&generation);
                self.program.freed(generation);
                self.storage.remove(generation);
            }
            Task::Tell(Event::FoundedBefore) => return Err(DaemonError::Lives),
            Task::Tell(event) => {
                self.observe(&event);
                if matches!(event, Event::NotCommitted(..)) {
                    self.refuse_ranks(&event.to_string());
                }
                self.trouble = Some(event.to_string());
            }
        }
        Ok(())
    }

    /// The program's memory goes to the generation that waits for it.
    fn give_snapshots(&mut self) {
        while let Some((generation, snapshot)) = self.program.snapshot() {
            match snapshot {
                Snapshot::Taken(image) => {
                    let len = image.len() as u64;
                    self.images.insert(generation, image);
                    self.member.snapped(generation, len);
                }
                Snapshot::Failed(reason) => self.member.failed(generation, reason),
            }
        }
    }

    fn geometry(&self, lens: Vec<u64>) -> Result<Geometry, String> {
        Geometry::new(self.layout, self.options.job.block(), lens)
            .map_err(|error| error.to_string())
    }

    fn write(
        &mut self,
        generation: Generation,
        (version, level): (u64, Level),
        lens: Vec<u64>,
        base: Option<Generation>,
    ) {
        let geometry = self.geometry(lens);
        let Some(image) = self.images.get(&generation).cloned() else {
            self.member.failed(generation, "its snapshot is gone");
            return;
        };
        self.storage.remove(generation);
        self.storage.put(generation, level);
        let known = self.hashes.clone();
        let base = base.map(|base| Base {
            generation: base,
            directory: self.storage.generation(base),
            hashes: known.filter(|(of, _)| *of == base).map(|(_, hashes)| hashes),
        });
        let job = if base.is_some() { Job::Update } else { Job::Encode };
        let (met, image, wanted) = ((version, 0), Some(image), None);
        self.start(Started { generation, version, met, geometry, job, image, base, wanted });
    }

    /// A host that lost its disk gets this host's part.
    fn give(&mut self, place: usize, wanted: Wanted) {
        let Wanted { generation, version, attempt, .. } = wanted;
        let lost = wanted.places(self.layout.hosts());
        let has = self.member.prepared_generations().find(|(whole, _)| *whole == generation);
        let Some((_, prepared)) = has else { return };
        let is_one_of_them = lost.contains(&place) && !lost.contains(&self.options.place);
        if !is_one_of_them
            || version != self.version()
            || self.giving.len() >= GIVING_MAX
            || !self.giving.insert((place, attempt))
        {
            return;
        }
        self.start(Started {
            generation,
            version: 0,
            met: (version, attempt),
            geometry: self.geometry(prepared.lens.clone()),
            job: Job::RebuildOne { lost, place },
            image: None,
            base: None,
            wanted: None,
        });
    }

    /// The membership version that is known: hosts that know another do not meet for a job.
    fn version(&self) -> u64 {
        self.member.charter().map_or(0, |charter| charter.version)
    }

    /// Begins a job on a thread of its own, which tells how it ended.
    fn start(&mut self, started: Started) {
        let me = self.options.place;
        let generation = started.generation;
        let rebuilds = match started.job {
            Job::Encode | Job::Update => None,
            Job::Rebuild(_) => unreachable!("hosts are rebuilt one by one"),
            Job::RebuildOne { place, .. } => Some(place),
        };
        let is_own = rebuilds.is_none_or(|place| place == me);
        if is_own {
            self.running.insert(generation, None);
        }
        let working = Working {
            me,
            network: Arc::clone(&self.network),
            disk: Arc::clone(&self.disk),
            inputs: self.inputs.clone(),
            stored: self.storage.generation(generation),
            rebuilt: self.storage.rebuilt(generation),
            room: self.storage.room_for(generation),
            is_own,
        };
        thread::spawn(move || {
            let attempt = started.met.1;
            // A job that panics has failed, like any other.
            let carried = catch_unwind(AssertUnwindSafe(|| working.carry_out(started)));
            let outcome = carried.unwrap_or_else(|_| Err("this is a fault of meikyo".to_owned()));
            if is_own && outcome.is_err() {
                // What is not whole takes room that the next one needs.
                let path = if rebuilds.is_some() { &working.rebuilt } else { &working.stored };
                drop(std::fs::remove_dir_all(path));
            }
            let input = match rebuilds {
                None => Input::Saved(generation, outcome),
                Some(place) if place == me => {
                    let rebuilt = outcome.map(|carried| (carried.prepared, carried.cost));
                    Input::Rebuilt(generation, rebuilt)
                }
                Some(place) => Input::Given(place, attempt, outcome.err()),
            };
            // The daemon may be at its end.
            drop(working.inputs.send(input));
        });
    }
}

/// As [`in_one_line`], of an error by itself.
fn told(error: impl std::error::Error) -> String {
    in_one_line(&error)
}

#[expect(clippy::disallowed_methods, reason = "the daemon drives its core by the clock")]
fn now() -> Instant {
    Instant::now()
}
