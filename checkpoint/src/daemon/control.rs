//! The control socket: a line of JSON in, a line of JSON out.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use serde::{Deserialize, Serialize};

use super::{Daemon, DaemonError, Input};
use crate::detection::Health;
use crate::shelf::Stored;

/// The socket, in the daemon's directory.
const SOCKET: &str = "control";

/// Longest line.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    /// How the daemon stands.
    Status,
    /// Take this file as the image of a step of the program: a file in shared memory, or
    /// `/proc/PID/fd/N` of a memory file. It has been read when the answer comes.
    Save {
        /// The program's own number.
        step: u64,
        /// The file.
        image: PathBuf,
    },
    /// Write the image of the newest generation into this file.
    Restore {
        /// The file, which is made.
        to: PathBuf,
    },
    /// Read every block of the newest generation and compare it with its checksum.
    Verify,
}

/// What a daemon answers to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// How the daemon stands.
    Status(Status),
    /// The image was read.
    Snapped {
        /// Its octets.
        bytes: u64,
    },
    /// The image was written.
    Restored {
        /// The number of the generation that it is of.
        generation: u64,
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
    /// It is not possible.
    Refused(String),
}

/// How a daemon stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The place of its host in the group.
    pub place: usize,
    /// Whether it stands in the group.
    pub is_member: bool,
    /// The membership version.
    pub version: u64,
    /// The newest committed generation.
    pub committed: Option<u64>,
    /// The program's number of it.
    pub step: Option<u64>,
    /// The generation that is being written.
    pub open: Option<u64>,
    /// Generations that are whole on this host's disk.
    pub whole: Vec<u64>,
    /// By place: `alive`, `suspected` or `dead`.
    pub hosts: Vec<String>,
    /// What was told last, or went wrong last.
    pub last: Option<String>,
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
    let path = directory.join(SOCKET);
    let unreachable = |source| AskError::Unreachable { path: path.clone(), source };
    let mut socket = UnixStream::connect(&path).map_err(unreachable)?;
    let foreign = |source| AskError::Foreign { path: path.clone(), source };
    let mut line = serde_json::to_vec(request).map_err(foreign)?;
    line.push(b'\n');
    socket.write_all(&line).map_err(unreachable)?;
    let mut line = String::new();
    BufReader::new(socket).take(LINE_BYTES_MAX).read_line(&mut line).map_err(unreachable)?;
    serde_json::from_str(&line).map_err(foreign)
}

/// Listens for as long as the process runs.
pub(super) fn listen(directory: &Path, inputs: &SyncSender<Input>) -> Result<(), DaemonError> {
    let path = directory.join(SOCKET);
    let failed = |source| DaemonError::Listen { address: path.display().to_string(), source };
    if UnixStream::connect(&path).is_ok() {
        return Err(failed(io::ErrorKind::AddrInUse.into()));
    }
    // Nobody answers: it was left by a daemon that was killed.
    drop(fs::remove_file(&path));
    let listener = UnixListener::bind(&path).map_err(failed)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
    let inputs = inputs.clone();
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let inputs = inputs.clone();
            thread::spawn(move || drop(serve(&socket, &inputs)));
        }
    });
    Ok(())
}

/// What the daemon's thread is asked; whatever takes long is done by the thread that asks.
pub(super) enum Question {
    Status,
    /// The program has reached a step, and this is its memory.
    Handed {
        step: u64,
        image: Vec<u8>,
    },
    /// The newest committed generation.
    Newest,
    /// The same for a program that begins anew: what an earlier run has handed over is not of this one.
    Restart,
}

/// What the daemon's thread replies to a question.
pub(super) enum Reply {
    Status(Status),
    Taken,
    Newest(Result<(PathBuf, u64), String>),
}

fn serve(socket: &UnixStream, inputs: &SyncSender<Input>) -> io::Result<()> {
    let mut line = String::new();
    BufReader::new(socket).take(LINE_BYTES_MAX).read_line(&mut line)?;
    let answer = match serde_json::from_str(&line) {
        Err(error) => Answer::Refused(format!("this is no request: {error}")),
        Ok(request) => answer(request, inputs)?.unwrap_or_else(Answer::Refused),
    };
    let mut line = serde_json::to_vec(&answer)?;
    line.push(b'\n');
    let mut socket = socket;
    socket.write_all(&line)
}

/// Asks the daemon's thread.
fn question(question: Question, inputs: &SyncSender<Input>) -> io::Result<Reply> {
    let (replied, reply) = sync_channel(1);
    let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
    inputs.send(Input::Control(question, replied)).map_err(|_| gone())?;
    reply.recv().map_err(|_| gone())
}

/// The answer, or why there is none.
fn answer(request: Request, inputs: &SyncSender<Input>) -> io::Result<Result<Answer, String>> {
    let asked = match request {
        Request::Status => Question::Status,
        Request::Save { step, ref image } => match fs::read(image) {
            Ok(image) => Question::Handed { step, image },
            Err(error) => return Ok(Err(format!("cannot read `{}`: {error}", image.display()))),
        },
        Request::Restore { .. } => Question::Restart,
        Request::Verify => Question::Newest,
    };
    let bytes = if let Question::Handed { image, .. } = &asked { image.len() as u64 } else { 0 };
    Ok(match (question(asked, inputs)?, request) {
        (Reply::Status(status), _) => Ok(Answer::Status(status)),
        (Reply::Taken, _) => Ok(Answer::Snapped { bytes }),
        (Reply::Newest(Err(refused)), _) => Err(refused),
        (Reply::Newest(Ok((directory, step))), Request::Restore { to }) => {
            restore(&directory, step, &to)
        }
        (Reply::Newest(Ok((directory, _))), _) => verify(&directory),
    })
}

/// Writes the image beside its place and renames it, so that what was there before stays until the new
/// one is whole. It is the memory of a program: nobody else may read it.
fn restore(directory: &Path, step: u64, to: &Path) -> Result<Answer, String> {
    let stored = Stored::open(directory).map_err(super::told)?;
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
        format!("cannot write `{}`: {}", to.display(), super::told(error))
    })?;
    Ok(Answer::Restored { generation: stored.manifest().generation.0, step, bytes })
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

fn verify(directory: &Path) -> Result<Answer, String> {
    let stored = Stored::open(directory).map_err(super::told)?;
    let damaged_blocks = stored.damages().len() as u64;
    Ok(Answer::Verified { generation: stored.manifest().generation.0, damaged_blocks })
}

impl Daemon {
    pub(super) fn answer(&mut self, question: Question) -> Reply {
        match question {
            Question::Status => Reply::Status(self.status()),
            Question::Handed { step, image } => {
                self.ready = Some((step, Arc::new(image)));
                self.to_save = Some(step);
                self.hand_over();
                Reply::Taken
            }
            Question::Newest => Reply::Newest(self.newest()),
            Question::Restart => {
                self.ready = None;
                self.to_save = None;
                Reply::Newest(self.newest())
            }
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
            step: newest.map(|commit| commit.step),
            open: charter.and_then(|charter| charter.open).map(|open| open.generation.0),
            whole: self.member.prepared_generations().map(|(whole, _)| whole.0).collect(),
            hosts: (0..self.layout.hosts()).map(word).collect(),
            last: self.trouble.clone(),
        }
    }

    /// Where the newest committed generation lies, if it is whole here, and its step.
    fn newest(&self) -> Result<(PathBuf, u64), String> {
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
        let mut whole = self.member.prepared_generations();
        if !whole.any(|(whole, _)| whole == generation) {
            return Err(format!("generation {} is still being rebuilt here", generation.0));
        }
        Ok((self.storage.generation(generation), newest.step))
    }
}
