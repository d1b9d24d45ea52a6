//! The connection of a rank with its host's daemon.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use meikyo_checkpoint::daemon::{Answer, Begun, Request, socket_of};

use crate::arrays::{Arrays, Image};
use crate::error::ClientError;
use crate::schedule::now;
use crate::standstill::{Standstill, let_daemon_read};

/// Longest answer, all but those that name the images of 64 hosts are far shorter.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// A daemon that was lost while the program waited to begin is looked for so long.
const RECONNECT_PATIENCE: Duration = Duration::from_secs(60);

/// Between two tries.
const CONNECT_AGAIN: Duration = Duration::from_millis(200);

/// A rank's connection.
#[derive(Debug)]
pub(crate) struct Client {
    directory: PathBuf,
    /// Rank, ranks on all hosts, ranks on this one.
    joining: (u32, u32, u32),
    hosts: usize,
    socket: UnixStream,
    /// The program that this rank is of, once it has begun.
    program: Option<u64>,
    standstill: Standstill,
}

impl Client {
    pub(crate) fn join(
        directory: &Path,
        rank: u32,
        ranks: u32,
        here: u32,
    ) -> Result<Self, ClientError> {
        let joining = (rank, ranks, here);
        let (socket, hosts) = connect(directory, joining, None)?;
        let directory = directory.to_owned();
        let standstill = Standstill::new();
        Ok(Self { directory, joining, hosts, socket, program: None, standstill })
    }

    /// How many hosts the group has.
    pub(crate) const fn hosts(&self) -> usize {
        self.hosts
    }

    /// Hands a step over; how long the program stood still.
    pub(crate) fn save(&mut self, step: u64, arrays: &mut Arrays) -> Result<Duration, ClientError> {
        let program = self.program.ok_or(ClientError::NotBegun)?;
        let begun = now();
        let line = line_of(&Request::Take { step, arrays: arrays.offered() });
        if self.socket.peer_addr().is_err() || is_closed(&self.socket) {
            // The daemon was started anew; it has forgotten this connection, and nothing that is committed.
            (self.socket, self.hosts) = connect(&self.directory, self.joining, Some(program))?;
        }
        let mut answer = Vec::with_capacity(ANSWER_BYTES_MAX);
        // From here until they go on no memory may be asked for: a thread can stand still with its lock.
        self.standstill.stop()?;
        let exchanged = exchange(&self.socket, &line, &mut answer);
        self.standstill.go_on();
        let path = || socket_of(&self.directory);
        exchanged.map_err(|source| ClientError::Unreachable { path: path(), source })?;
        match read_answer(&answer)? {
            Answer::Snapped { .. } => Ok(begun.elapsed()),
            _ => Err(ClientError::Foreign),
        }
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
                        Ok((socket, hosts)) => (self.socket, self.hosts) = (socket, hosts),
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
) -> Result<(UnixStream, usize), ClientError> {
    let path = socket_of(directory);
    let socket = UnixStream::connect(&path);
    let unreachable = |source| ClientError::Unreachable { path: path.clone(), source };
    let socket = socket.map_err(unreachable)?;
    let_daemon_read(&socket).map_err(unreachable)?;
    match ask(directory, &socket, &Request::Join { rank, ranks, here, program })? {
        Answer::Joined { hosts } => Ok((socket, hosts)),
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
