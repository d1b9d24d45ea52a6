//! The daemon of one host: a thread that drives a [`Member`], and threads that carry out what it wants.
//!
//! The thread owns everything that decides: the member, its journal, what the program handed over. Threads
//! for connections and for jobs tell it what has come by one channel. It outlives the program, so that a
//! checkpoint that was begun is ended though the program dies.

mod control;
mod job;
mod network;
mod storage;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Instant;

use meikyo_units::{Nanos, SimTime};

use crate::charter::{Charter, Generation};
use crate::detection::Patience;
use crate::exchange::{Breaker, ExchangeOptions};
use crate::geometry::Geometry;
use crate::journal::Journal;
use crate::layout::Layout;
use crate::link::Purpose;
use crate::member::{Member, MemberOptions, Message, Prepared, SaveError, Task};
use crate::register::Vote;
use crate::schedule::{Job, Schedule};
use crate::shelf::{self, Pace, Shelved};

pub use control::{Answer, AskError, Request, Status, ask};
pub use job::{JobFile, JobFileError};
use network::Network;
use storage::Storage;

/// How long a generation may take from its begin to its commit.
const SAVE_TIMEOUT: Nanos = Nanos::from_secs(600);

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
        generation: Generation,
    },
    Control(control::Question, SyncSender<control::Reply>),
    /// The connections of a job of this host are there.
    Met(Generation, Breaker),
    Saved(Generation, Result<Prepared, String>),
    Rebuilt(Generation, Result<Prepared, String>),
    Given(usize, Generation),
}

struct Daemon {
    options: DaemonOptions,
    layout: Layout,
    begun: Instant,
    member: Member,
    journal: Journal,
    storage: Storage,
    network: Arc<Network>,
    inputs: SyncSender<Input>,
    /// What the program handed over last, and for which of its steps.
    ready: Option<(u64, Arc<Vec<u8>>)>,
    /// A generation that waits for the program to hand over this step.
    awaited: Option<(Generation, u64)>,
    images: BTreeMap<Generation, Arc<Vec<u8>>>,
    /// A step that is to be saved as soon as nothing else is being written.
    to_save: Option<u64>,
    /// Jobs of this host, and how to break them off once they have met the others.
    running: BTreeMap<Generation, Option<Breaker>>,
    giving: BTreeSet<(usize, Generation)>,
    trouble: Option<String>,
}

/// Runs a daemon until the process ends.
///
/// # Errors
/// When its directory cannot be used, or it cannot listen.
///
/// # Panics
/// If the place is none of the job's.
pub fn run(options: DaemonOptions) -> Result<(), DaemonError> {
    let layout = options.job.layout();
    let me = options.place;
    assert!(me < layout.hosts(), "the place is one of the job's");
    let mut storage = Storage::open(&options.directory)?;
    let unusable = |source| DaemonError::Directory { path: options.directory.clone(), source };
    let (mut journal, mut vote) = Journal::open(&mut storage).map_err(unusable)?;
    let incarnation = storage.incarnation(options.is_founding.then_some(me)).map_err(unusable)?;
    if options.is_founding {
        if vote.is_some() || storage.has_generations().map_err(unusable)? {
            return Err(DaemonError::Founded { path: options.directory });
        }
        let members = (0..layout.hosts()).map(storage::founder).collect();
        let first = Vote::first(Charter::founding(members));
        journal.keep(&mut storage, &first).map_err(unusable)?;
        vote = Some(first);
    }
    let prepared = storage.whole_generations().map_err(unusable)?;
    let (inputs, incoming) = sync_channel(INPUTS_MAX);
    let listeners = listen(&options.job, me)?;
    let network = Network::start(&options.job, me, listeners, &inputs);
    control::listen(&options.directory, &inputs)?;
    let life = storage::random();
    let member_options = MemberOptions {
        place: me,
        layout,
        incarnation,
        life,
        patience: Patience::DEFAULT,
        save_timeout: SAVE_TIMEOUT,
    };
    let member = Member::new(SimTime::START, member_options, vote, prepared);
    let begun = now();
    let mut daemon = Daemon {
        layout,
        begun,
        member,
        journal,
        storage,
        network,
        inputs,
        ready: None,
        awaited: None,
        images: BTreeMap::new(),
        to_save: None,
        running: BTreeMap::new(),
        giving: BTreeSet::new(),
        trouble: None,
        options,
    };
    daemon.turns(&incoming)
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
                Ok(input) => self.take(input),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            self.try_to_save();
            while let Some(task) = {
                let now = self.now();
                self.member.poll(now)
            } {
                self.carry_out(task)?;
            }
        }
    }

    fn take(&mut self, input: Input) {
        let now = self.now();
        match input {
            Input::Message(message) => self.member.handle(now, message),
            Input::Wanted { from, generation } => self.give(from, generation),
            Input::Control(question, reply) => {
                let answered = self.answer(question);
                // Whoever asked may be gone.
                drop(reply.send(answered));
            }
            Input::Met(generation, breaker) => match self.running.get_mut(&generation) {
                Some(running) => *running = Some(breaker),
                // It was given up meanwhile.
                None => breaker.cut(),
            },
            Input::Saved(generation, outcome) => {
                self.running.remove(&generation);
                self.images.remove(&generation);
                match outcome {
                    Ok(prepared) => self.member.prepared(generation, prepared.manifest),
                    Err(trouble) => {
                        self.trouble = Some(trouble);
                        self.member.failed(generation);
                    }
                }
            }
            Input::Rebuilt(generation, outcome) => {
                self.running.remove(&generation);
                match outcome {
                    Ok(prepared) => self.member.rebuilt(generation, prepared),
                    Err(trouble) => {
                        self.trouble = Some(trouble);
                        self.member.rebuild_failed(now, generation);
                    }
                }
            }
            Input::Given(to, generation) => {
                self.giving.remove(&(to, generation));
            }
        }
    }

    /// Of the hosts that live, the first coordinates.
    fn try_to_save(&mut self) {
        let Some(step) = self.to_save else { return };
        let me = self.options.place;
        let is_first = (0..me).all(|place| self.member.detection().is_dead(place));
        let now = self.now();
        if !is_first {
            return;
        }
        match self.member.save(now, step) {
            Err(SaveError::Busy) => {}
            Ok(()) => self.to_save = None,
            Err(error) => {
                self.trouble = Some(error.to_string());
                self.to_save = None;
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
            Task::Snapshot { generation, step } => {
                self.awaited = Some((generation, step));
                self.hand_over();
            }
            Task::Write { generation, version, lens } => self.write(generation, version, lens),
            Task::Rebuild(commit) => {
                let generation = commit.generation;
                self.storage.remove(generation);
                self.network.want(generation);
                let me = self.options.place;
                let geometry = self.geometry(commit.lens);
                let versions = (commit.version, self.version());
                self.start(generation, versions, geometry, Job::Rebuild([me].into()), None);
            }
            Task::Free(generation) => {
                if let Some(Some(breaker)) = self.running.remove(&generation) {
                    breaker.cut();
                }
                self.images.remove(&generation);
                self.awaited = self.awaited.filter(|(awaited, _)| *awaited != generation);
                self.storage.remove(generation);
            }
            Task::Tell(event) => self.trouble = Some(format!("{event:?}")),
        }
        Ok(())
    }

    /// The program's memory goes to the generation that waits for it.
    fn hand_over(&mut self) {
        let (Some((generation, step)), Some((ready, image))) = (self.awaited, &self.ready) else {
            return;
        };
        if *ready > step {
            // The program has gone on, and the memory of that step will not come.
            self.awaited = None;
            self.member.failed(generation);
        } else if step == *ready {
            let len = image.len() as u64;
            self.images.insert(generation, Arc::clone(image));
            self.awaited = None;
            self.ready = None;
            self.member.snapped(generation, len);
        }
    }

    fn geometry(&self, lens: Vec<u64>) -> Result<Geometry, String> {
        Geometry::new(self.layout, self.options.job.block(), lens)
            .map_err(|error| error.to_string())
    }

    fn write(&mut self, generation: Generation, version: u64, lens: Vec<u64>) {
        let geometry = self.geometry(lens);
        let Some(image) = self.images.get(&generation).cloned() else {
            self.member.failed(generation);
            return;
        };
        self.storage.remove(generation);
        self.start(generation, (version, version), geometry, Job::Encode, Some(image));
    }

    /// A host that lost its disk gets this host's part.
    fn give(&mut self, from: usize, generation: Generation) {
        let has = self.member.prepared_generations().find(|(whole, _)| *whole == generation);
        let Some((_, prepared)) = has else { return };
        if from == self.options.place || !self.giving.insert((from, generation)) {
            return;
        }
        let geometry = self.geometry(prepared.lens.clone());
        let versions = (0, self.version());
        self.start(generation, versions, geometry, Job::Rebuild([from].into()), None);
    }

    /// The membership version that is known: hosts that know another do not meet for a job.
    fn version(&self) -> u64 {
        self.member.charter().map_or(0, |charter| charter.version)
    }

    /// Begins a job on a thread of its own, which tells how it ended. The versions are those of the
    /// generation and of the membership that meets.
    fn start(
        &mut self,
        generation: Generation,
        (version, met_version): (u64, u64),
        geometry: Result<Geometry, String>,
        job: Job,
        image: Option<Arc<Vec<u8>>>,
    ) {
        let me = self.options.place;
        let (network, inputs) = (Arc::clone(&self.network), self.inputs.clone());
        let directory = self.storage.generation(generation);
        let is_own = !matches!(&job, Job::Rebuild(lost) if !lost.contains(&me));
        if is_own {
            self.running.insert(generation, None);
        }
        thread::spawn(move || {
            let carry_out = || -> Result<Prepared, String> {
                let schedule =
                    Schedule::new(geometry?, job.clone()).map_err(|error| error.to_string())?;
                let purpose = if job == Job::Encode { Purpose::Save } else { Purpose::Rebuild };
                let links =
                    network.meet(purpose, (generation, met_version), &schedule).map_err(told)?;
                if is_own {
                    let breaker = links.breaker().map_err(told)?;
                    inputs.send(Input::Met(generation, breaker)).map_err(told)?;
                }
                let shelved = Shelved {
                    directory: &directory,
                    generation,
                    version,
                    place: me,
                    pace: &Pace::unlimited(),
                    options: ExchangeOptions::DEFAULT,
                };
                let done = match image {
                    Some(image) => shelf::save(&shelved, &schedule, &image, links),
                    None => shelf::rebuild(&shelved, &schedule, links),
                };
                let manifest = done.map_err(told)?.manifest;
                Ok(Prepared { lens: schedule.geometry().lens().to_vec(), manifest })
            };
            let outcome = carry_out();
            let input = match &job {
                Job::Encode => Input::Saved(generation, outcome),
                Job::Rebuild(lost) if lost.contains(&me) => Input::Rebuilt(generation, outcome),
                Job::Rebuild(lost) => Input::Given(lost.first().copied().unwrap_or(me), generation),
            };
            // The daemon may be at its end.
            drop(inputs.send(input));
        });
    }
}

/// An error with its causes on one line.
fn told(error: impl std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[expect(clippy::disallowed_methods, reason = "the daemon drives its core by the clock")]
fn now() -> Instant {
    Instant::now()
}
