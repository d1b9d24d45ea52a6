//! Ranks of programs that name their arrays: each keeps a connection to its host's daemon, and hands over what it has
//! by saying where it lies. The host's image is made when all ranks of the host have done so.
//!
//! A rank waits for the answer while its arrays are read out of its memory, so that what is read is what it had
//! at that moment. Reading, comparing with checksums and fetching is done by the thread of the connection; the
//! daemon's thread decides ([`crate::program`]).

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use meikyo_units::{Nanos, SimTime};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;

use super::control::{
    Answer, Begun, LINE_BYTES_MAX, Offered, Place, Request, answer, asked_of, socket_of,
};
use super::network::{ACCEPT_AGAIN, Network};
use super::{Daemon, DaemonError, Input, now, storage, told};
use crate::charter::{Generation, Reached};
use crate::image::{ImageError, Rank, Table, padded};
use crate::program::{Connection, Joining};
use crate::recovery::Restart;
use crate::shelf::Stored;

/// Images of other hosts, while a program on other ranks looks for its arrays in them.
const FETCHED: &str = "fetched";

/// Most ranks on a host.
const RANKS_MAX: u32 = 4_096;

/// How often an image of another host is asked for that does not come whole.
const FETCHES_MAX: u32 = 3;

/// A program waits so long for its ranks on other hosts, and for what it goes on from to be rebuilt.
const START_PATIENCE: Nanos = Nanos::from_secs(600);

/// Whether a rank that waits is still there is looked for so often.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// What one rank has handed over.
pub(super) struct Part {
    rank: Rank,
    octets: Vec<u8>,
    /// How long it stood still.
    stopped: Nanos,
}

/// What a rank says to the daemon's thread.
pub(super) enum FromRank {
    Joined(Joining, SyncSender<Told>),
    /// What does the program go on from?
    Begin(SyncSender<Told>),
    /// What it has of a step.
    Took(u64, Part, SyncSender<Told>),
    /// What all ranks of the host have of a program's step, and how long one of them stood still at most.
    Handed(u64, u64, Vec<u8>, Nanos, SyncSender<Told>),
    Left,
}

/// What the daemon's thread tells a rank.
pub(super) enum Told {
    Fine,
    Begun(u64, Option<Found>),
    /// It was the last one: these are to be made one image, and handed over as this program's.
    Gathered(u64, BTreeMap<u32, Part>),
    Refused(String),
}

/// What a program goes on from.
#[derive(Debug, Clone)]
pub(super) struct Found {
    generation: Generation,
    reached: Reached,
    directory: PathBuf,
}

/// A rank that waits to be told, and until when.
pub(super) struct Waiting {
    reply: SyncSender<Told>,
    until: SimTime,
}

/// What serves the control socket.
struct Ranks {
    directory: PathBuf,
    inputs: SyncSender<Input>,
    network: Arc<Network>,
    /// Mean time between failures of one host.
    between_failures: Nanos,
    connections: AtomicU64,
    /// The sockets of those that have joined.
    joined: Mutex<BTreeMap<Connection, UnixStream>>,
    /// The program and generation of which this host's image was compared with its checksums.
    compared: Mutex<Option<(u64, Generation)>>,
    /// One at a time gets images of other hosts.
    fetching: Mutex<()>,
}

/// What a connection has said so far.
#[derive(Default)]
struct Said {
    joined: Option<Joining>,
    process: i32,
    /// What it copies its arrays into.
    shadow: Option<File>,
    found: Option<Found>,
}

/// What is left of an earlier life of the daemon.
pub(super) fn forget_fetched(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory.join(FETCHED)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Listens for as long as the process runs; ranks are told the mean time between failures of one host.
pub(super) fn listen(
    directory: &Path,
    inputs: &SyncSender<Input>,
    network: &Arc<Network>,
    between_failures: Nanos,
) -> Result<(), DaemonError> {
    let path = socket_of(directory);
    let failed = |source| DaemonError::Listen { address: path.display().to_string(), source };
    if UnixStream::connect(&path).is_ok() {
        return Err(failed(io::ErrorKind::AddrInUse.into()));
    }
    // Nobody answers: it was left by a daemon that was killed.
    drop(fs::remove_file(&path));
    let listener = UnixListener::bind(&path).map_err(failed)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
    let served = Arc::new(Ranks {
        directory: directory.to_owned(),
        inputs: inputs.clone(),
        network: Arc::clone(network),
        between_failures,
        connections: AtomicU64::new(0),
        joined: Mutex::default(),
        compared: Mutex::default(),
        fetching: Mutex::default(),
    });
    thread::spawn(move || {
        loop {
            match listener.accept() {
                Ok((socket, _)) => {
                    let served = Arc::clone(&served);
                    thread::spawn(move || drop(served.serve(&socket)));
                }
                // There is no descriptor for it.
                Err(_) => thread::park_timeout(ACCEPT_AGAIN),
            }
        }
    });
    Ok(())
}

impl Ranks {
    /// Answers line by line until the other end closes.
    fn serve(&self, socket: &UnixStream) -> io::Result<()> {
        let connection = Connection(self.connections.fetch_add(1, Ordering::Relaxed));
        let mut said = Said::default();
        let served = self.lines(socket, connection, &mut said);
        if said.joined.is_some() {
            self.joined.lock().expect("no thread panics under this lock").remove(&connection);
            // The daemon may be at its end.
            drop(self.inputs.send(Input::Rank(connection, FromRank::Left)));
        }
        served
    }

    fn lines(
        &self,
        mut socket: &UnixStream,
        connection: Connection,
        said: &mut Said,
    ) -> io::Result<()> {
        let mut lines = BufReader::new(socket);
        loop {
            let mut line = String::new();
            if (&mut lines).take(LINE_BYTES_MAX).read_line(&mut line)? == 0 {
                return Ok(());
            }
            let answer = match serde_json::from_str(&line) {
                Err(error) => Answer::Refused(format!("this is no request: {error}")),
                Ok(request) => {
                    let answered = self.answer(socket, connection, request, said)?;
                    answered.unwrap_or_else(Answer::Refused)
                }
            };
            let mut line = serde_json::to_vec(&answer)?;
            line.push(b'\n');
            socket.write_all(&line)?;
        }
    }

    fn answer(
        &self,
        socket: &UnixStream,
        connection: Connection,
        request: Request,
        said: &mut Said,
    ) -> io::Result<Result<Answer, String>> {
        Ok(match (request, said.joined) {
            (Request::Join { rank, ranks, here, program }, None) => {
                if here > RANKS_MAX {
                    let text = format!("{here} ranks on one host are more than {RANKS_MAX}");
                    return Ok(Err(text));
                }
                let joining = Joining { rank, ranks, here, program };
                said.process = socket_peercred(socket)?.pid.as_raw_nonzero().get();
                self.join(socket, connection, joining, said)?
            }
            (Request::Join { .. }, Some(_)) => Err("this connection has joined already".into()),
            (Request::Begin, Some(_)) => {
                let (program, found) = match self.begun(connection, socket)? {
                    Ok(begun) => begun,
                    Err(text) => return Ok(Err(text)),
                };
                said.found.clone_from(&found);
                let found = found.map(|found| Begun {
                    generation: found.generation.0,
                    run: found.reached.run,
                    step: found.reached.step,
                    image: found.directory.join("image"),
                });
                Ok(Answer::Begun { program, found })
            }
            (Request::Shadow { descriptor }, Some(_)) => {
                // It is opened before it is needed: the rank may have ended by then.
                match File::open(format!("/proc/{}/fd/{descriptor}", said.process)) {
                    Ok(file) => {
                        said.shadow = Some(file);
                        Ok(Answer::Shadowed)
                    }
                    Err(error) => Err(format!("cannot open descriptor {descriptor}: {error}")),
                }
            }
            (Request::Take { step, arrays, stopped_ns }, Some(joining)) => {
                let begun = now();
                let octets = match read_arrays(said.process, said.shadow.as_ref(), &arrays) {
                    Ok(octets) => octets,
                    Err(text) => return Ok(Err(text)),
                };
                let arrays = arrays.into_iter().map(|offered| offered.array).collect();
                let Joining { rank, ranks, .. } = joining;
                let read = Nanos::from_secs_f64(begun.elapsed().as_secs_f64());
                let stopped = stopped_ns.map_or(read, Nanos::new);
                let part = Part { rank: Rank { rank, ranks, arrays }, octets, stopped };
                self.took(connection, step, part)?
            }
            (Request::Images, Some(_)) => match &said.found {
                None => Err("there is no generation to look into".to_owned()),
                Some(found) => self.all_images(found).map(Answer::Images),
            },
            (request, _) => return answer(request, &self.inputs),
        })
    }

    fn ask(
        &self,
        connection: Connection,
        said: impl FnOnce(SyncSender<Told>) -> FromRank,
    ) -> io::Result<Told> {
        asked_of(&self.inputs, |reply| Input::Rank(connection, said(reply)))
    }

    /// Waits with the rank's program, as long as the rank does.
    fn wait_to_begin(&self, connection: Connection, socket: &UnixStream) -> io::Result<Told> {
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        let (replied, reply) = sync_channel(1);
        let begin = Input::Rank(connection, FromRank::Begin(replied));
        self.inputs.send(begin).map_err(|_| gone())?;
        loop {
            match reply.recv_timeout(LOOK_AGAIN) {
                Ok(told) => return Ok(told),
                Err(RecvTimeoutError::Timeout) if !is_closed(socket) => {}
                Err(_) => return Err(gone()),
            }
        }
    }

    fn join(
        &self,
        socket: &UnixStream,
        connection: Connection,
        joining: Joining,
        said: &mut Said,
    ) -> io::Result<Result<Answer, String>> {
        let mut joined = self.joined.lock().expect("no thread panics under this lock");
        // Processes that ended before this one was started are no ranks of the same program, though the threads
        // that serve them have not seen it yet.
        for gone in joined.extract_if(.., |_, socket| is_closed(socket)).map(|(gone, _)| gone) {
            let left = Input::Rank(gone, FromRank::Left);
            self.inputs.send(left).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        }
        joined.insert(connection, socket.try_clone()?);
        drop(joined);
        said.joined = Some(joining);
        Ok(match self.ask(connection, |reply| FromRank::Joined(joining, reply))? {
            Told::Refused(text) => {
                self.joined.lock().expect("no thread panics under this lock").remove(&connection);
                said.joined = None;
                Err(text)
            }
            _ => Ok(Answer::Joined {
                hosts: self.network.hosts(),
                between_failures_ns: self.between_failures.get(),
            }),
        })
    }

    /// What the program goes on from. Nothing is read that was not compared with its checksum.
    fn begun(
        &self,
        connection: Connection,
        socket: &UnixStream,
    ) -> io::Result<Result<(u64, Option<Found>), String>> {
        loop {
            let (program, found) = match self.wait_to_begin(connection, socket)? {
                Told::Begun(program, found) => (program, found),
                Told::Refused(text) => return Ok(Err(text)),
                _ => return Ok(Err("the daemon has answered something else".to_owned())),
            };
            let Some(found) = found else { return Ok(Ok((program, None))) };
            let mut compared = self.compared.lock().expect("no thread panics under this lock");
            if *compared == Some((program, found.generation)) {
                return Ok(Ok((program, Some(found))));
            }
            forget_fetched(&self.directory)?;
            let stored = Stored::open(&found.directory).map_err(io::Error::other);
            match stored.and_then(|stored| stored.read_image(|_| Ok(()))) {
                Ok(_) => *compared = Some((program, found.generation)),
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    // It is rebuilt, and told again when it has been.
                    let damaged = Input::Damaged(found.generation);
                    self.inputs.send(damaged).map_err(|_| io::ErrorKind::BrokenPipe)?;
                }
                Err(error) => return Ok(Err(told(error))),
            }
        }
    }

    fn took(
        &self,
        connection: Connection,
        step: u64,
        part: Part,
    ) -> io::Result<Result<Answer, String>> {
        let bytes = part.octets.len() as u64;
        let (program, parts) =
            match self.ask(connection, |reply| FromRank::Took(step, part, reply))? {
                Told::Refused(text) => return Ok(Err(text)),
                Told::Gathered(program, parts) => (program, parts),
                Told::Fine | Told::Begun(..) => return Ok(Ok(Answer::Snapped { bytes })),
            };
        let stopped = parts.values().map(|part| part.stopped).max().unwrap_or(Nanos::ZERO);
        let image = match assembled(parts) {
            Ok(image) => image,
            Err(error) => return Ok(Err(told(error))),
        };
        let handed = |reply| FromRank::Handed(program, step, image, stopped, reply);
        Ok(match self.ask(connection, handed)? {
            Told::Refused(text) => Err(text),
            _ => Ok(Answer::Snapped { bytes }),
        })
    }

    /// The images of all hosts, in files of this host, by place.
    fn all_images(&self, found: &Found) -> Result<Vec<PathBuf>, String> {
        let one_at_a_time = self.fetching.lock().expect("no thread panics under this lock");
        let directory = self.directory.join(FETCHED).join(found.generation.0.to_string());
        crate::shelf::create_directory(&directory).map_err(told)?;
        let image = |place: usize| directory.join(place.to_string());
        let mut paths = Vec::new();
        for place in 0..self.network.hosts() {
            if place == self.network.me() {
                paths.push(found.directory.join("image"));
                continue;
            }
            if !image(place).exists() {
                let beside = directory.join(format!("{place}.unfinished"));
                let fetch = || self.network.fetch(place, found.generation, &beside);
                let fetched = (1..FETCHES_MAX).fold(fetch(), |done, _| done.or_else(|_| fetch()));
                fetched?;
                fs::rename(&beside, image(place)).map_err(told)?;
            }
            paths.push(image(place));
        }
        drop(one_at_a_time);
        Ok(paths)
    }
}

/// Whether the other end of a connection is closed, though something may still be there to be read.
fn is_closed(socket: &UnixStream) -> bool {
    let mut polled = [PollFd::new(socket, PollFlags::RDHUP)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let gone = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
    poll(&mut polled, Some(&at_once)).is_ok() && polled[0].revents().intersects(gone)
}

impl Daemon {
    pub(super) fn rank_says(&mut self, now: SimTime, connection: Connection, said: FromRank) {
        let refused = |error: crate::program::RankError| Told::Refused(error.to_string());
        let (reply, told) = match said {
            FromRank::Joined(joining, reply) => {
                let (me, charter) = (self.options.place, self.member.charter());
                let joined = self.program.join(connection, &joining, me, charter);
                if joined.is_ok() && joining.program.is_none() {
                    self.member.end_program();
                }
                let told = joined.map_or_else(refused, |beginning| {
                    if let Some(beginning) = beginning {
                        self.member.begin(now, beginning);
                    }
                    Told::Fine
                });
                (reply, told)
            }
            FromRank::Begin(reply) => match self.program.begin(connection, storage::random()) {
                Err(error) => (reply, refused(error)),
                Ok(beginning) => {
                    if let Some(beginning) = beginning {
                        self.member.begin(now, beginning);
                    }
                    let until = now + START_PATIENCE;
                    self.waiting.insert(connection, Waiting { reply, until });
                    return;
                }
            },
            FromRank::Took(.., reply) | FromRank::Handed(.., reply) if !self.member.is_member() => {
                let text = "this host is no member of its group: nothing is saved here";
                (reply, Told::Refused(text.to_owned()))
            }
            FromRank::Took(step, part, reply) => {
                let told = match self.program.take(connection, step, part) {
                    Err(error) => refused(error),
                    Ok(None) => Told::Fine,
                    Ok(Some((program, parts))) => Told::Gathered(program, parts),
                };
                (reply, told)
            }
            FromRank::Handed(program, step, image, stopped, reply) => {
                let is_taken = self.program.handed(program, step, Arc::new(image));
                if is_taken {
                    self.stopped = Some((step, stopped));
                    self.progress.saved(now);
                }
                let over = || refused(crate::program::RankError::Over);
                (reply, if is_taken { Told::Fine } else { over() })
            }
            FromRank::Left => {
                self.waiting.remove(&connection);
                if self.program.left(connection) {
                    self.progress.forget();
                    self.member.end_program();
                }
                return;
            }
        };
        // Whoever asked may be gone.
        drop(reply.send(told));
    }

    /// Tells ranks that wait what they go on from, once that is decided and whole on this host.
    pub(super) fn tell_ranks(&mut self) {
        if let Some((program, origin)) = self.program.untold()
            && origin.generation.is_none_or(|generation| self.has(generation))
        {
            let found = origin.generation.map(|generation| Found {
                generation,
                reached: origin.reached,
                directory: self.storage.generation(generation),
            });
            self.progress.forget();
            let now = self.now();
            self.progress.saved(now);
            for connection in self.program.tell() {
                if let Some(Waiting { reply, .. }) = self.waiting.remove(&connection) {
                    // It may be gone.
                    drop(reply.send(Told::Begun(program, found.clone())));
                }
            }
        }
        let now = self.now();
        if self.waiting.values().any(|waiting| now >= waiting.until) {
            let why = self.awaits_starters().or_else(|| self.trouble.clone());
            let why = why.unwrap_or_else(|| "the hosts of the group do not agree".to_owned());
            self.refuse_ranks(&format!("the program did not begin: {why}"));
        }
    }

    pub(super) fn refuse_ranks(&mut self, text: &str) {
        for waiting in std::mem::take(&mut self.waiting).into_values() {
            // It may be gone.
            drop(waiting.reply.send(Told::Refused(text.to_owned())));
        }
    }

    /// Tells ranks that wait why there is nothing to go on from; they wait on where that can change.
    pub(super) fn tell_why_none(
        &mut self,
        restart: &Restart,
        newest: Option<Generation>,
        silent: &[usize],
        is_confirmed: bool,
    ) {
        if self.waiting.is_empty() || (*restart == Restart::Nothing && is_confirmed) {
            return;
        }
        if let Err(text) = self.chosen(restart, newest, silent, is_confirmed) {
            if matches!(restart, Restart::Lost { .. }) && silent.is_empty() {
                self.refuse_ranks(&text);
            } else {
                self.trouble = Some(text);
            }
        }
    }
}

fn read_arrays(process: i32, shadow: Option<&File>, arrays: &[Offered]) -> Result<Vec<u8>, String> {
    let mut octets = Vec::new();
    let mut memory = None;
    for Offered { array, place } in arrays {
        let name = &array.name;
        let failed = |error: io::Error| format!("cannot read the array `{name}`: {error}");
        let bytes = array.bytes().ok_or_else(|| format!("the array `{name}` is too large"))?;
        let begin = octets.len();
        let end = begin + usize::try_from(padded(bytes)).map_err(told)?;
        octets.resize(end, 0);
        let target = &mut octets[begin..begin + usize::try_from(bytes).map_err(told)?];
        match place {
            Place::Address(address) => {
                if memory.is_none() {
                    memory = Some(File::open(format!("/proc/{process}/mem")).map_err(failed)?);
                }
                let memory = memory.as_ref().expect("it was opened just now");
                memory.read_exact_at(target, *address).map_err(failed)?;
            }
            Place::Shadow(at) => {
                let shadow = shadow.ok_or_else(|| format!("no file has the array `{name}`"))?;
                shadow.read_exact_at(target, *at).map_err(failed)?;
            }
            Place::Descriptor(descriptor) => {
                let file = File::open(format!("/proc/{process}/fd/{descriptor}"));
                file.and_then(|file| file.read_exact_at(target, 0)).map_err(failed)?;
            }
        }
    }
    Ok(octets)
}

fn assembled(parts: BTreeMap<u32, Part>) -> Result<Vec<u8>, ImageError> {
    let parts = parts.into_values().map(|part| (part.rank, part.octets));
    let (ranks, octets): (Vec<Rank>, Vec<Vec<u8>>) = parts.unzip();
    let mut image = Table { ranks }.octets()?;
    image.reserve_exact(octets.iter().map(Vec::len).sum());
    octets.into_iter().for_each(|octets| image.extend_from_slice(&octets));
    Ok(image)
}
