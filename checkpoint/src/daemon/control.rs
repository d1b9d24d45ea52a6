//! The control socket: a line of JSON in, a line of JSON out, and on until the other end closes it.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use meikyo_units::{Nanos, SimTime};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use serde::{Deserialize, Serialize};

use super::{Daemon, Input, LevelStatus};
use crate::charter::{Generation, Reached};
use crate::detection::Health;
use crate::image::Array;
use crate::recovery::Restart;
use crate::shelf::Stored;

/// The socket, in the daemon's directory.
const SOCKET: &str = "control";

/// Longest line.
pub const LINE_BYTES_MAX: u64 = 4 << 20;

/// Where a rank has an array.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// In its memory, at this address.
    Address(u64),
    /// In a memory file of its own with this descriptor, from its begin.
    Descriptor(i32),
    /// In the file that it named by [`Request::Shadow`], from this octet on.
    Shadow(u64),
}

/// An array that a rank hands over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offered {
    /// Its name, type and shape.
    pub array: Array,
    /// Where the rank has it.
    pub place: Place,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    /// How the daemon stands.
    Status,
    /// Take this file as the image of a step of the program: a file in shared memory, or
    /// `/proc/PID/fd/N` of a memory file. It has been read when the answer comes.
    Save {
        /// Which start of the program: a greater number than that of every start before.
        #[serde(default)]
        run: u64,
        /// The program's own number.
        step: u64,
        /// The file.
        image: PathBuf,
        /// How long the program stood still for it, where that is known.
        #[serde(default)]
        stopped_ns: Option<u64>,
    },
    /// Write the image of the newest generation into this file: of the one that the whole group goes on from.
    Restore {
        /// The file, which is made.
        to: PathBuf,
        /// This generation and no other.
        #[serde(default)]
        generation: Option<u64>,
    },
    /// Read every block of the newest generation and compare it with its checksum.
    Verify,
    /// This connection is that of a rank of a program, as long as it lasts.
    Join {
        /// The number of the rank.
        rank: u32,
        /// How many ranks the program has.
        ranks: u32,
        /// How many of them are on this host.
        here: u32,
        /// The program that it was told to be of, if it has lost its connection since.
        #[serde(default)]
        program: Option<u64>,
    },
    /// What does the program go on from? Answered when the ranks of all hosts have asked.
    Begin,
    /// This rank copies its arrays into the memory file with this descriptor: it can be read though the rank has gone
    /// on or ended.
    Shadow {
        /// Its number in the process that asks.
        descriptor: i32,
    },
    /// Take what this rank has. It has been read when the answer comes.
    Take {
        /// The program's own number.
        step: u64,
        /// The arrays, and where they are.
        arrays: Vec<Offered>,
        /// How long the rank stood still to copy them; nothing where it stands still until they have been read.
        #[serde(default)]
        stopped_ns: Option<u64>,
    },
    /// Get the images of all hosts, for a program whose ranks are not those that have saved.
    Images,
}

/// What a daemon answers to a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// How the daemon stands.
    Status(Box<Status>),
    /// The image was read.
    Snapped {
        /// Its octets.
        bytes: u64,
    },
    /// The image was written.
    Restored {
        /// The number of the generation that it is of.
        generation: u64,
        /// Which start of the program has saved it.
        run: u64,
        /// The program's own number.
        step: u64,
        /// Octets.
        bytes: u64,
    },
    /// What was read of the newest generation.
    Verified {
        /// The number of the generation that was read.
        generation: u64,
        /// Blocks that are not what was stored.
        damaged_blocks: u64,
    },
    /// The rank is known.
    Joined {
        /// How many hosts the group has.
        hosts: usize,
        /// Mean time between failures of one of them, ns.
        between_failures_ns: u64,
    },
    /// The memory file is open.
    Shadowed,
    /// The program has begun on all hosts.
    Begun {
        /// Its number, by which its ranks join again.
        program: u64,
        /// What it goes on from, if there is anything.
        found: Option<Begun>,
    },
    /// The images of all hosts.
    Images(Vec<PathBuf>),
    /// It is not possible.
    Refused(String),
}

/// What a program goes on from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    /// The number of the generation.
    pub generation: u64,
    /// Which start of the program has saved it.
    pub run: u64,
    /// The program's own number.
    pub step: u64,
    /// The image of this host.
    pub image: PathBuf,
}

/// What it cost a host to write a generation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// The number of the generation.
    pub generation: u64,
    /// The generation that it was made of by what changed.
    pub made_of: Option<u64>,
    /// Octets of the host's image.
    pub bytes: u64,
    /// Octets of the blocks that changed in it.
    pub changed_bytes: u64,
    /// Octets that went to other hosts.
    pub sent_bytes: u64,
    /// Octets that came from them.
    pub received_bytes: u64,
    /// From when all hosts had their images until all was on this host's disk.
    pub seconds: f64,
    /// Processor time of the daemon meanwhile.
    #[serde(default)]
    pub cpu_seconds: f64,
    /// How long the program stood still here for it, where that is known.
    #[serde(default)]
    pub stop_seconds: Option<f64>,
}

/// How a daemon stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The place of its host in the group.
    pub place: usize,
    /// Whether it stands in the group.
    pub is_member: bool,
    /// The membership version.
    pub version: u64,
    /// The newest committed generation.
    pub committed: Option<u64>,
    /// Which start of the program has saved it.
    pub run: Option<u64>,
    /// The program's number of it.
    pub step: Option<u64>,
    /// The generation that is being written.
    pub open: Option<u64>,
    /// The step that the program has handed over here and that is to be saved next.
    #[serde(default)]
    pub handed: Option<u64>,
    /// Generations that are whole on this host's disk.
    pub whole: Vec<u64>,
    /// By place: `alive`, `suspected` or `dead`.
    pub hosts: Vec<String>,
    /// What the newest generation that was written here cost.
    #[serde(default)]
    pub cost: Option<Box<Cost>>,
    /// What was told last, or went wrong last.
    pub last: Option<String>,
    /// The hosts' names, by place.
    #[serde(default)]
    pub names: Vec<String>,
    /// How they protect each other.
    #[serde(default)]
    pub scheme: String,
    /// What each host has of the newest committed generation, by place.
    #[serde(default)]
    pub stored: Vec<StoredPart>,
    /// How long after the one before the newest generation was committed, in the same start of the program.
    #[serde(default)]
    pub every_seconds: Option<f64>,
    /// The step that this host has copied last to the file system that all hosts share.
    #[serde(default)]
    pub drained_step: Option<u64>,
    /// How long after the one before a step is copied there.
    #[serde(default)]
    pub drain_every_seconds: Option<f64>,
    /// The levels that generations are kept on.
    #[serde(default)]
    pub levels: Vec<LevelStatus>,
    /// Which generation was freed last, and why.
    #[serde(default)]
    pub freed: Option<String>,
}

/// What a host has of a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPart {
    /// Octets of its image.
    pub image_bytes: u64,
    /// Octets of the parity that it keeps for others.
    pub parity_bytes: u64,
}

/// Why a daemon did not answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// It is not there.
    #[error("no daemon answers at `{path}`")]
    Unreachable {
        /// The control socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It answers something else.
    #[error("what answers at `{path}` is no checkpoint daemon of this version")]
    Foreign {
        /// The control socket.
        path: PathBuf,
        /// What cannot be read.
        source: serde_json::Error,
    },
}

/// Asks the daemon whose directory this is.
///
/// # Errors
/// When none answers.
pub fn ask(directory: &Path, request: &Request) -> Result<Answer, AskError> {
    ask_at(&directory.join(SOCKET), request, |path| UnixStream::connect(path))
}

/// Asks the daemon whose directory this is, and waits no longer than `patience` for each part of its answer: it may have
/// been stopped, and lets others wait then.
///
/// # Errors
/// When none answers in that time.
pub fn ask_within(
    directory: &Path,
    request: &Request,
    patience: Duration,
) -> Result<Answer, AskError> {
    ask_at(&directory.join(SOCKET), request, |path| connect_within(path, patience))
}

/// Connects as [`UnixStream::connect`], which waits without end for one who has stopped to accept.
fn connect_within(path: &Path, patience: Duration) -> io::Result<UnixStream> {
    let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    for timeout in [Timeout::Send, Timeout::Recv] {
        set_socket_timeout(&socket, timeout, Some(patience))?;
    }
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(UnixStream::from(socket))
}

fn ask_at(
    path: &Path,
    request: &Request,
    connect: impl FnOnce(&Path) -> io::Result<UnixStream>,
) -> Result<Answer, AskError> {
    let path = path.to_owned();
    let unreachable = |source| AskError::Unreachable { path: path.clone(), source };
    let mut socket = connect(&path).map_err(unreachable)?;
    let foreign = |source| AskError::Foreign { path: path.clone(), source };
    let mut line = serde_json::to_vec(request).map_err(foreign)?;
    line.push(b'\n');
    socket.write_all(&line).map_err(unreachable)?;
    let mut line = String::new();
    BufReader::new(socket).take(LINE_BYTES_MAX).read_line(&mut line).map_err(unreachable)?;
    serde_json::from_str(&line).map_err(foreign)
}

/// The control socket in a daemon's directory.
pub fn socket_of(directory: &Path) -> PathBuf {
    directory.join(SOCKET)
}

/// What the daemon's thread is asked; whatever takes long is done by the thread that asks.
pub(super) enum Question {
    Status,
    /// The program has reached a step, and this is its memory.
    Handed {
        reached: Reached,
        image: Vec<u8>,
        stopped: Option<Nanos>,
    },
    /// The newest committed generation.
    Newest,
    /// The one that a program that begins anew goes on from, or one that it insists on. What an earlier run
    /// has handed over is not of this one.
    Restart {
        generation: Option<u64>,
    },
}

/// What the daemon's thread replies to a question.
pub(super) enum Reply {
    Status(Box<Status>),
    Taken,
    Newest(Result<(PathBuf, Reached), String>),
    Refused(String),
}

/// The answer, or why there is none.
pub(super) fn answer(
    request: Request,
    inputs: &SyncSender<Input>,
) -> io::Result<Result<Answer, String>> {
    let asked = match request {
        Request::Status => Question::Status,
        Request::Save { run, step, ref image, stopped_ns } => match fs::read(image) {
            Ok(image) => {
                let stopped = stopped_ns.map(Nanos::new);
                Question::Handed { reached: Reached { run, step }, image, stopped }
            }
            Err(error) => return Ok(Err(format!("cannot read `{}`: {error}", image.display()))),
        },
        Request::Restore { generation, .. } => Question::Restart { generation },
        Request::Verify => Question::Newest,
        Request::Join { .. }
        | Request::Begin
        | Request::Shadow { .. }
        | Request::Take { .. }
        | Request::Images => {
            return Ok(Err("a rank has to join first".to_owned()));
        }
    };
    let bytes = if let Question::Handed { image, .. } = &asked { image.len() as u64 } else { 0 };
    let damaged = |generation| {
        // The daemon may be at its end.
        drop(inputs.send(Input::Damaged(generation)));
    };
    let reply = asked_of(inputs, |reply| Input::Control(asked, reply))?;
    Ok(match (reply, request) {
        (Reply::Status(status), _) => Ok(Answer::Status(status)),
        (Reply::Taken, _) => Ok(Answer::Snapped { bytes }),
        (Reply::Newest(Err(refused)) | Reply::Refused(refused), _) => Err(refused),
        (Reply::Newest(Ok((directory, reached))), Request::Restore { to, .. }) => {
            restore(&directory, reached, &to, damaged)
        }
        (Reply::Newest(Ok((directory, _))), _) => verify(&directory, damaged),
    })
}

/// Asks the daemon's thread.
pub(super) fn asked_of<R>(
    inputs: &SyncSender<Input>,
    question: impl FnOnce(SyncSender<R>) -> Input,
) -> io::Result<R> {
    let (replied, reply) = sync_channel(1);
    let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
    inputs.send(question(replied)).map_err(|_| gone())?;
    reply.recv().map_err(|_| gone())
}

/// Writes the image beside its place and renames it, so that what was there before stays until the new
/// one is whole. It is the memory of a program: nobody else may read it.
fn restore(
    directory: &Path,
    reached: Reached,
    to: &Path,
    damaged: impl Fn(Generation),
) -> Result<Answer, String> {
    let stored = Stored::open(directory).map_err(super::told)?;
    let generation = stored.manifest().generation;
    let mut beside = to.as_os_str().to_owned();
    beside.push(".unfinished");
    let beside = PathBuf::from(beside);
    let bytes = write_image(&stored, &beside).and_then(|bytes| {
        fs::rename(&beside, to)?;
        Ok(bytes)
    });
    let bytes = bytes.map_err(|error| {
        // It may not be there; what is said is why.
        drop(fs::remove_file(&beside));
        if error.kind() == io::ErrorKind::InvalidData {
            damaged(generation);
            let told = super::told(error);
            return format!("{told}: generation {} is rebuilt, ask again", generation.0);
        }
        format!("cannot write `{}`: {}", to.display(), super::told(error))
    })?;
    let Reached { run, step } = reached;
    Ok(Answer::Restored { generation: generation.0, run, step, bytes })
}

fn write_image(stored: &Stored, to: &Path) -> io::Result<u64> {
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(to)?;
    let mut bytes = 0;
    stored.read_image(|octets| {
        bytes += octets.len() as u64;
        file.write_all(octets)
    })?;
    file.sync_all()?;
    Ok(bytes)
}

fn verify(directory: &Path, damaged: impl Fn(Generation)) -> Result<Answer, String> {
    let stored = Stored::open(directory).map_err(super::told)?;
    let damaged_blocks = stored.damages().len() as u64;
    let generation = stored.manifest().generation;
    if damaged_blocks > 0 {
        damaged(generation);
    }
    Ok(Answer::Verified { generation: generation.0, damaged_blocks })
}

impl Daemon {
    pub(super) fn asked(&mut self, now: SimTime, question: Question, reply: SyncSender<Reply>) {
        let answer = match question {
            Question::Status => Reply::Status(Box::new(self.status())),
            Question::Handed { .. } if !self.member.is_member() => {
                Reply::Refused("this host is no member of its group: nothing is saved here".into())
            }
            Question::Handed { reached, .. } if self.is_over(reached) => Reply::Refused(format!(
                "run {} is over: a program with the library was started since, give a greater run",
                reached.run
            )),
            Question::Handed { reached, image, stopped } => {
                self.stopped = stopped.map(|stopped| (reached.step, stopped));
                self.program.hand_over(reached, Arc::new(image));
                Reply::Taken
            }
            Question::Newest => Reply::Newest(self.newest()),
            Question::Restart { generation } => {
                self.program.forget();
                self.restarts.push((generation, reply));
                self.member.inquire(now);
                return;
            }
        };
        // Whoever asked may be gone.
        drop(reply.send(answer));
    }

    /// Answers programs that begin anew.
    pub(super) fn tell_restarts(
        &mut self,
        restart: &Restart,
        newest: Option<Generation>,
        silent: &[usize],
        is_confirmed: bool,
    ) {
        for (generation, reply) in std::mem::take(&mut self.restarts) {
            let answer = match generation {
                Some(number) => self.wanted(Generation(number)),
                None => self.chosen(restart, newest, silent, is_confirmed),
            };
            // Whoever asked may be gone.
            drop(reply.send(Reply::Newest(answer)));
        }
    }

    /// Whether a program with the library was started since this was reached.
    fn is_over(&self, reached: Reached) -> bool {
        let start = self.member.charter().and_then(|charter| charter.begun());
        start.is_some_and(|(start, _)| reached.run <= start.run)
    }

    pub(super) fn chosen(
        &self,
        restart: &Restart,
        newest: Option<Generation>,
        silent: &[usize],
        is_confirmed: bool,
    ) -> Result<(PathBuf, Reached), String> {
        let names = |places: &[usize]| self.names_of(places);
        let charter = self.member.vote().map(|vote| &vote.charter);
        if charter.is_some() && self.member.charter().is_some() && !self.member.is_member() {
            let text = "this host is no member of its group any more: what it has may be old";
            return Err(text.into());
        }
        match restart {
            Restart::Nothing if is_confirmed => Err("no generation was ever committed".into()),
            Restart::Nothing => {
                let names = names(silent);
                Err(format!("no host that answers knows a committed generation; silent: {names}"))
            }
            Restart::Lost { generation, missing } => Err(format!(
                "generation {} cannot be had back: {} do not have it, which is more than `{}` makes up for",
                generation.0,
                names(missing),
                self.layout.scheme(),
            )),
            // Hosts that are silent may have what makes the newest whole.
            Restart::From { generation, .. }
                if Some(*generation) < newest && !silent.is_empty() =>
            {
                let newest = newest.map_or(0, |newest| newest.0);
                Err(format!(
                    "generation {newest} cannot be had back without {}: start them, or give `generation` {} \
                     on all hosts to go on from the one before",
                    names(silent),
                    generation.0,
                ))
            }
            Restart::From { generation, reached, .. } => {
                if self.has(*generation) {
                    return Ok((self.storage.generation(*generation), *reached));
                }
                Err(format!("generation {} is still being rebuilt here: ask again", generation.0))
            }
        }
    }

    pub(super) fn has(&self, generation: Generation) -> bool {
        self.member.prepared_generations().any(|(whole, _)| whole == generation)
    }

    /// A generation that a program insists on.
    fn wanted(&self, generation: Generation) -> Result<(PathBuf, Reached), String> {
        let charters = [self.member.charter(), self.member.vote().map(|vote| &vote.charter)];
        let commit = charters.into_iter().flatten().find_map(|known| known.commit_of(generation));
        match commit {
            Some(commit) if self.has(generation) => {
                Ok((self.storage.generation(generation), commit.reached))
            }
            Some(_) => Err(format!("generation {} is not whole here", generation.0)),
            None => Err(format!("generation {} is not committed", generation.0)),
        }
    }

    fn status(&self) -> Status {
        let charter = self.member.charter();
        let newest = charter.and_then(|charter| charter.newest());
        let word = |place| match self.member.detection().health(place) {
            Health::Alive => "alive".to_owned(),
            Health::Suspected => "suspected".to_owned(),
            Health::Dead => "dead".to_owned(),
        };
        Status {
            place: self.options.place,
            is_member: self.member.is_member(),
            version: charter.map_or(0, |charter| charter.version),
            committed: newest.map(|commit| commit.generation.0),
            run: newest.map(|commit| commit.reached.run),
            step: newest.map(|commit| commit.reached.step),
            open: charter.and_then(|charter| charter.open).map(|open| open.generation.0),
            handed: self
                .program
                .to_save()
                .or_else(|| self.member.is_saving())
                .map(|next| next.step),
            whole: self.member.prepared_generations().map(|(whole, _)| whole.0).collect(),
            hosts: (0..self.layout.hosts()).map(word).collect(),
            cost: self.cost.clone().map(Box::new),
            last: self
                .awaits_founders()
                .or_else(|| self.awaits_starters())
                .or_else(|| self.trouble.clone()),
            names: self.options.job.names().to_vec(),
            scheme: self.layout.scheme().to_string(),
            stored: newest.map_or_else(Vec::new, |commit| self.stored_parts(&commit.lens)),
            every_seconds: self.watched.every().map(Nanos::as_secs_f64),
            drained_step: self.draining.as_ref().and_then(|draining| draining.done()),
            drain_every_seconds: self
                .draining
                .as_ref()
                .and_then(|draining| draining.interval(self.layout.hosts()))
                .map(Nanos::as_secs_f64),
            levels: self.level_statuses(),
            freed: self.levels.freed(),
        }
    }

    pub(super) fn stored_parts(&self, lens: &[u64]) -> Vec<StoredPart> {
        let geometry = self.geometry(lens.to_vec());
        let part = |image_bytes: &u64| StoredPart {
            image_bytes: *image_bytes,
            parity_bytes: geometry
                .as_ref()
                .map_or(0, |geometry| geometry.parity_blocks() * u64::from(geometry.block())),
        };
        lens.iter().map(part).collect()
    }

    fn awaits_founders(&self) -> Option<String> {
        let awaited = self.member.awaited_founders();
        let text = format!("waits for {} to found the group, too", self.names_of(&awaited));
        (!awaited.is_empty()).then_some(text)
    }

    pub(super) fn awaits_starters(&self) -> Option<String> {
        let awaited = self.member.awaited_starters();
        let text = format!("the program waits for its ranks on {}", self.names_of(&awaited));
        (!awaited.is_empty()).then_some(text)
    }

    pub(super) fn names_of(&self, places: &[usize]) -> String {
        let names = self.options.job.names();
        places.iter().map(|&place| names[place].as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Where the newest committed generation lies, if it is whole here, and its step.
    fn newest(&self) -> Result<(PathBuf, Reached), String> {
        let newest = self.member.charter().and_then(|charter| charter.newest());
        let newest = newest.ok_or(
            "no generation is known here to be committed: a daemon knows that once it has met most of its \
             group",
        )?;
        if !self.member.is_member() {
            return Err(
                "this host is no member of its group any more: what it has may be old".into()
            );
        }
        let generation = newest.generation;
        if !self.has(generation) {
            return Err(format!("generation {} is still being rebuilt here", generation.0));
        }
        Ok((self.storage.generation(generation), newest.reached))
    }
}
