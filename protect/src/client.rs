//! The connection of a rank with its host's daemon.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use meikyo_checkpoint::daemon::{Answer, Begun, Request, socket_of};
use meikyo_checkpoint::image::ImageError;

use crate::arrays::{Arrays, Image};
use crate::schedule::now;
use crate::standstill::{Standstill, StandstillError, let_daemon_read};

/// Longest answer, all but those that name the images of 64 hosts are far shorter.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// A generation that is being rebuilt is waited for so long.
const REBUILD_PATIENCE: Duration = Duration::from_secs(600);

/// Between two questions whether it has been.
const ASK_AGAIN: Duration = Duration::from_millis(200);

/// Why the daemon does not do what it is asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error("no daemon answers at `{path}`: start `meikyo checkpoint daemon` on this host")]
    Unreachable { path: PathBuf, source: io::Error },
    #[error("the daemon has answered what this version does not know")]
    Foreign,
    #[error("the daemon refuses: {0}")]
    Refused(String),
    #[error(
        "`meikyo_checkpoint_restore` is called before the first save, also by a program that begins anew"
    )]
    NotBegun,
    #[error("threads of the program do not stand still")]
    Standstill(#[from] StandstillError),
    #[error("cannot read `{path}`")]
    Read { path: PathBuf, source: io::Error },
    #[error("`{path}` cannot be read")]
    Image { path: PathBuf, source: ImageError },
    #[error("cannot cut `{path}` back to the length that it had")]
    Cut { path: PathBuf, source: io::Error },
    #[error("there is no memory for the array `{name}`")]
    Memory { name: String, source: io::Error },
    #[error("the array `{0}` is too large")]
    TooLarge(String),
    #[error("there is an array `{0}` already")]
    Twice(String),
    #[error("the checkpoint does not have all of the array `{0}`")]
    Missing(String),
    #[error("the array `{0}` had another type or shape when it was saved")]
    Other(String),
    #[error(
        "the array `{0}` is no block of one that all ranks share: only as many ranks as have saved can go on with it"
    )]
    Alone(String),
}

/// A rank's connection.
#[derive(Debug)]
pub(crate) struct Client {
    directory: PathBuf,
    rank: u32,
    ranks: u32,
    here: u32,
    hosts: usize,
    socket: UnixStream,
    /// Which start of the program this is, once that is known.
    run: Option<u64>,
    standstill: Standstill,
}

impl Client {
    pub(crate) fn join(
        directory: &Path,
        rank: u32,
        ranks: u32,
        here: u32,
    ) -> Result<Self, ClientError> {
        let (socket, hosts) = connect(directory, rank, ranks, here)?;
        let directory = directory.to_owned();
        let standstill = Standstill::new();
        Ok(Self { directory, rank, ranks, here, hosts, socket, run: None, standstill })
    }

    /// How many hosts the group has.
    pub(crate) const fn hosts(&self) -> usize {
        self.hosts
    }

    /// Hands a step over; how long the program stood still.
    pub(crate) fn save(&mut self, step: u64, arrays: &mut Arrays) -> Result<Duration, ClientError> {
        let run = self.run.ok_or(ClientError::NotBegun)?;
        let begun = now();
        let line = line_of(&Request::Take { run, step, arrays: arrays.offered() });
        if self.socket.peer_addr().is_err() || is_closed(&self.socket) {
            // The daemon was started anew; it has forgotten this connection, and nothing that is committed.
            let (rank, ranks, here) = (self.rank, self.ranks, self.here);
            (self.socket, self.hosts) = connect(&self.directory, rank, ranks, here)?;
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
        let begun = now();
        let found = loop {
            match self.ask(&Request::Begin) {
                Ok(Answer::Begun(found)) => break found,
                Ok(_) => return Err(ClientError::Foreign),
                Err(ClientError::Refused(text))
                    if text.ends_with("ask again") && begun.elapsed() < REBUILD_PATIENCE =>
                {
                    std::thread::park_timeout(ASK_AGAIN);
                }
                Err(error) => return Err(error),
            }
        };
        let Some(Begun { run, step, image, .. }) = found else {
            self.run = Some(1);
            return Ok(None);
        };
        let own = Image::open(&image)?;
        if own.has(self.rank, self.ranks) {
            arrays.fill_own(&own, (self.rank, self.ranks))?;
        } else {
            let Answer::Images(paths) = self.ask(&Request::Images)? else {
                return Err(ClientError::Foreign);
            };
            let images: Result<Vec<Image>, ClientError> =
                paths.iter().map(|path| Image::open(path)).collect();
            let images = images?;
            match images.iter().find(|image| image.has(self.rank, self.ranks)) {
                // The same ranks, on other hosts.
                Some(image) => arrays.fill_own(image, (self.rank, self.ranks))?,
                None => arrays.fill_from_all(&images)?,
            }
        }
        self.run = Some(run + 1);
        Ok(Some(step))
    }

    fn ask(&self, request: &Request) -> Result<Answer, ClientError> {
        ask(&self.directory, &self.socket, request)
    }
}

fn connect(
    directory: &Path,
    rank: u32,
    ranks: u32,
    here: u32,
) -> Result<(UnixStream, usize), ClientError> {
    let path = socket_of(directory);
    let socket = UnixStream::connect(&path);
    let unreachable = |source| ClientError::Unreachable { path: path.clone(), source };
    let socket = socket.map_err(unreachable)?;
    let_daemon_read(&socket).map_err(unreachable)?;
    match ask(directory, &socket, &Request::Join { rank, ranks, here })? {
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
