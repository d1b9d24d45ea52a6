//! The connection of a rank with its host's daemon.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use meikyo_checkpoint::daemon::{Answer, Begun, Request, memory_available, socket_of};

use meikyo_units::Nanos;

use crate::arrays::{Arrays, Image};
use crate::error::ClientError;
use crate::schedule::{Group, now};
use crate::shadow::{Copied, Shadow, laid_out};
use crate::standstill::{Standstill, let_daemon_read};

/// Longest answer, all but those that name the images of 64 hosts are far shorter.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// A daemon that was lost while the program waited to begin is looked for so long.
const RECONNECT_PATIENCE: Duration = Duration::from_secs(60);

/// Between two tries.
const CONNECT_AGAIN: Duration = Duration::from_millis(200);

/// The environment's name of whether arrays are copied ahead of saves: `yes`, `no`, or what memory there is decides.
const COPIES_AHEAD: &str = "MEIKYO_CHECKPOINT_COPIES_AHEAD";

/// A rank's connection.
#[derive(Debug)]
pub(crate) struct Client {
    directory: PathBuf,
    /// Rank, ranks on all hosts, ranks on this one.
    joining: (u32, u32, u32),
    group: Group,
    socket: UnixStream,
    /// The program that this rank is of, once it has begun.
    program: Option<u64>,
    standstill: Standstill,
    /// Whether arrays are copied ahead of saves; nothing where the memory that there is decides.
    copies_ahead: Option<bool>,
    shadow: Option<Shadow>,
    /// The daemon reads the copy, and has not answered yet.
    awaits_answer: bool,
    last: Stop,
}

/// What the last save cost the program.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stop {
    /// How long all its threads stood still.
    pub(crate) stopped: Duration,
    /// Octets that were copied before and meanwhile; nothing where the daemon has read all of it.
    pub(crate) copied: Option<Copied>,
}

impl Client {
    pub(crate) fn join(
        directory: &Path,
        rank: u32,
        ranks: u32,
        here: u32,
    ) -> Result<Self, ClientError> {
        let joining = (rank, ranks, here);
        let (socket, group) = connect(directory, joining, None)?;
        let directory = directory.to_owned();
        let copies_ahead = match std::env::var(COPIES_AHEAD).as_deref() {
            Ok("yes") => Some(true),
            Ok("no") => Some(false),
            _ => None,
        };
        Ok(Self {
            directory,
            joining,
            group,
            socket,
            program: None,
            standstill: Standstill::new(),
            copies_ahead,
            shadow: None,
            awaits_answer: false,
            last: Stop::default(),
        })
    }

    /// The group that the program is protected by.
    pub(crate) const fn group(&self) -> Group {
        self.group
    }

    /// What the last save cost.
    pub(crate) const fn last(&self) -> Stop {
        self.last
    }

    /// Hands a step over; how long that took.
    pub(crate) fn save(&mut self, step: u64, arrays: &mut Arrays) -> Result<Duration, ClientError> {
        let program = self.program.ok_or(ClientError::NotBegun)?;
        let begun = now();
        self.await_answer()?;
        if self.socket.peer_addr().is_err() || is_closed(&self.socket) {
            // The daemon was started anew; it has forgotten this connection, and nothing that is committed.
            (self.socket, self.group) = connect(&self.directory, self.joining, Some(program))?;
            self.shadow = None;
        }
        arrays.note_lengths();
        self.last = match self.copied(step, arrays)? {
            Some(stop) => stop,
            None => self.read_by_daemon(step, arrays)?,
        };
        Ok(begun.elapsed())
    }

    /// Has the daemon read the arrays where they are, while the program stands still.
    fn read_by_daemon(&mut self, step: u64, arrays: &Arrays) -> Result<Stop, ClientError> {
        let line = line_of(&Request::Take { step, arrays: arrays.offered(), stopped_ns: None });
        let mut answer = Vec::with_capacity(ANSWER_BYTES_MAX);
        let begun = now();
        // From here until they go on no memory may be asked for: a thread can stand still with its lock.
        self.standstill.stop()?;
        let exchanged = exchange(&self.socket, &line, &mut answer);
        self.standstill.go_on();
        let stopped = begun.elapsed();
        exchanged.map_err(|source| self.unreachable(source))?;
        match read_answer(&answer)? {
            Answer::Snapped { .. } => Ok(Stop { stopped, copied: None }),
            _ => Err(ClientError::Foreign),
        }
    }

    /// Copies what was written since the last save, and lets the daemon read the copy when the program goes on already.
    /// Nothing where there is no copy, or none that can be trusted.
    fn copied(&mut self, step: u64, arrays: &Arrays) -> Result<Option<Stop>, ClientError> {
        let (originals, len) = laid_out(arrays.memories());
        if self.shadow.as_ref().is_some_and(|shadow| !shadow.is_of(&originals)) {
            self.shadow = None;
        }
        if self.shadow.is_none() && self.has_room(len) {
            self.shadow = self.announced(Shadow::new(originals.clone(), len).ok())?;
        }
        let Some(shadow) = &mut self.shadow else { return Ok(None) };
        let Ok(answers) = self.socket.try_clone() else {
            self.shadow = None;
            return Ok(None);
        };
        let standstill = std::cell::RefCell::new(&mut self.standstill);
        let (copied, stopped) = shadow.copy_in_standstill(
            answers,
            || standstill.borrow_mut().stop(),
            || standstill.borrow_mut().go_on(),
        )?;
        let Ok(copied) = copied else {
            // The program has put other memory there: it is watched from the next save on.
            self.shadow = None;
            return Ok(None);
        };
        let line = line_of(&Request::Take {
            step,
            arrays: arrays.offered_of(&originals),
            stopped_ns: u64::try_from(stopped.as_nanos()).ok(),
        });
        let sent = (&self.socket).write_all(&line);
        sent.map_err(|source| self.unreachable(source))?;
        self.awaits_answer = true;
        Ok(Some(Stop { stopped, copied: Some(copied) }))
    }

    /// A copy that the daemon has opened; nothing where it cannot, now and later.
    fn announced(&mut self, shadow: Option<Shadow>) -> Result<Option<Shadow>, ClientError> {
        let Some(shadow) = shadow else { return Ok(None) };
        match self.ask(&Request::Shadow { descriptor: shadow.descriptor() }) {
            Ok(Answer::Shadowed) => Ok(Some(shadow)),
            Err(ClientError::Refused(_)) => {
                self.copies_ahead = Some(false);
                Ok(None)
            }
            Ok(_) => Err(ClientError::Foreign),
            Err(error) => Err(error),
        }
    }

    /// Whether a copy of so many octets, and of as many for every other rank here, leaves half of the memory that is
    /// left.
    fn has_room(&self, len: usize) -> bool {
        self.copies_ahead.unwrap_or_else(|| {
            let (_, _, here) = self.joining;
            let all = (len as u64).saturating_mul(here.into());
            memory_available().is_ok_and(|available| all <= available.get() / 2)
        })
    }

    /// Waits until the daemon has read what was handed over last. That it refuses is told now; that it is gone is what
    /// the next exchange finds.
    pub(crate) fn await_answer(&mut self) -> Result<(), ClientError> {
        if !std::mem::take(&mut self.awaits_answer) {
            return Ok(());
        }
        let mut answer = Vec::with_capacity(ANSWER_BYTES_MAX);
        match exchange(&self.socket, &[], &mut answer) {
            Ok(()) => read_answer(&answer).map(|_| ()),
            Err(_) => Ok(()),
        }
    }

    fn unreachable(&self, source: io::Error) -> ClientError {
        ClientError::Unreachable { path: socket_of(&self.directory), source }
    }

    /// Fills all arrays; the step that they are of, if there is one.
    pub(crate) fn restore(&mut self, arrays: &mut Arrays) -> Result<Option<u64>, ClientError> {
        let mut lost = None;
        let found = loop {
            match self.ask(&Request::Begin) {
                Ok(Answer::Begun { program, found }) => {
                    self.program = Some(program);
                    break found;
                }
                Ok(_) => return Err(ClientError::Foreign),
                // Nobody was told anything: it waits anew with the daemon that is started next.
                Err(ClientError::Unreachable { .. }) if self.program.is_none() => {
                    let since = *lost.get_or_insert_with(now);
                    match connect(&self.directory, self.joining, None) {
                        Ok(joined) => (self.socket, self.group) = joined,
                        Err(error) if since.elapsed() > RECONNECT_PATIENCE => return Err(error),
                        Err(_) => std::thread::park_timeout(CONNECT_AGAIN),
                    }
                }
                Err(error) => return Err(error),
            }
        };
        let Some(Begun { step, image, .. }) = found else { return Ok(None) };
        let (rank, ranks, _) = self.joining;
        let own = Image::open(&image)?;
        if own.has(rank, ranks) {
            arrays.fill_own(&own, (rank, ranks))?;
        } else {
            let Answer::Images(paths) = self.ask(&Request::Images)? else {
                return Err(ClientError::Foreign);
            };
            let images: Result<Vec<Image>, ClientError> =
                paths.iter().map(|path| Image::open(path)).collect();
            let images = images?;
            match images.iter().find(|image| image.has(rank, ranks)) {
                // The same ranks, on other hosts.
                Some(image) => arrays.fill_own(image, (rank, ranks))?,
                None => arrays.fill_from_all(&images)?,
            }
        }
        Ok(Some(step))
    }

    fn ask(&self, request: &Request) -> Result<Answer, ClientError> {
        ask(&self.directory, &self.socket, request)
    }
}

fn connect(
    directory: &Path,
    (rank, ranks, here): (u32, u32, u32),
    program: Option<u64>,
) -> Result<(UnixStream, Group), ClientError> {
    let path = socket_of(directory);
    let socket = UnixStream::connect(&path);
    let unreachable = |source| ClientError::Unreachable { path: path.clone(), source };
    let socket = socket.map_err(unreachable)?;
    let_daemon_read(&socket).map_err(unreachable)?;
    match ask(directory, &socket, &Request::Join { rank, ranks, here, program })? {
        Answer::Joined { hosts, between_failures_ns } => {
            Ok((socket, Group { hosts, between_failures: Nanos::new(between_failures_ns) }))
        }
        _ => Err(ClientError::Foreign),
    }
}

fn line_of(request: &Request) -> Vec<u8> {
    let mut line = serde_json::to_vec(request).expect("numbers and texts can be written");
    line.push(b'\n');
    line
}

fn ask(directory: &Path, socket: &UnixStream, request: &Request) -> Result<Answer, ClientError> {
    let mut answer = Vec::with_capacity(ANSWER_BYTES_MAX);
    let exchanged = exchange(socket, &line_of(request), &mut answer);
    let path = || socket_of(directory);
    exchanged.map_err(|source| ClientError::Unreachable { path: path(), source })?;
    read_answer(&answer)
}

fn read_answer(answer: &[u8]) -> Result<Answer, ClientError> {
    match serde_json::from_slice(answer) {
        Ok(Answer::Refused(text)) => Err(ClientError::Refused(text)),
        Ok(answer) => Ok(answer),
        Err(_) => Err(ClientError::Foreign),
    }
}

/// Sends a line and reads one, without asking for memory: the answer's is there.
fn exchange(mut socket: &UnixStream, line: &[u8], answer: &mut Vec<u8>) -> io::Result<()> {
    socket.write_all(line)?;
    let mut piece = [0; 4_096];
    while answer.last() != Some(&b'\n') {
        let count = match socket.read(&mut piece) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if answer.len() + count > answer.capacity() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        answer.extend_from_slice(&piece[..count]);
    }
    Ok(())
}

/// Whether the daemon has closed the connection: it says nothing unasked.
fn is_closed(socket: &UnixStream) -> bool {
    let mut piece = [0];
    if socket.set_nonblocking(true).is_err() {
        return true;
    }
    let mut socket = socket;
    let read = socket.read(&mut piece);
    let is_open = matches!(&read, Err(error) if error.kind() == io::ErrorKind::WouldBlock);
    socket.set_nonblocking(false).is_err() || !is_open
}
