//! The door of a running measurement: a Unix socket in the recording's directory.
//!
//! One JSON line in, one JSON line out. It takes marks and what people say to alerts; what it does not know it refuses.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use meikyo_snmp::collector::Command;
use meikyo_snmp::system::Waker;
use serde::{Deserialize, Serialize};

/// Name of the socket in the recording's directory.
const SOCKET: &str = "control.sock";

/// Longest request in octets.
const REQUEST_MAX: u64 = 64 << 10;

/// How long either side waits for the other.
const PATIENCE: Duration = Duration::from_secs(5);

/// What can be asked.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Request {
    /// Put a person's mark into `events`.
    Mark(String),
    /// Note what a person said to an alert: `alert_acknowledged` or `alert_silenced`, with a text
    /// that begins with the alert's id.
    Alert { kind: AlertKind, text: String },
}

/// What a person can say to an alert.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AlertKind {
    AlertAcknowledged,
    AlertSilenced,
}

/// What is answered.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply {
    /// It is done.
    Done,
    /// It is not, and why.
    Refused(String),
}

/// Why a running measurement could not be spoken to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ControlError {
    /// Nobody listens.
    #[error("no measurement is writing into {}", dir.display())]
    Nobody {
        /// The recording.
        dir: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The conversation broke.
    #[error("the measurement that writes into {} did not answer", dir.display())]
    Broken {
        /// The recording.
        dir: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It answered no.
    #[error("the measurement refused: {0}")]
    Refused(String),
    /// The door could not be opened.
    #[error("cannot listen in {}", dir.display())]
    Listen {
        /// The recording.
        dir: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// A directory and a path to it that is short enough for a socket's name (108 octets), however deep
/// it lies.
fn short_path(dir: &Path) -> io::Result<(File, PathBuf)> {
    let handle = File::open(dir)?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd())).join(SOCKET);
    Ok((handle, path))
}

/// Puts a mark into the recording that a measurement is writing in `dir`.
///
/// # Errors
/// [`ControlError`] when there is no such measurement or it does not take the mark.
pub(crate) fn mark(dir: &Path, text: &str) -> Result<(), ControlError> {
    let nobody = |source| ControlError::Nobody { dir: dir.into(), source };
    let broken = |source| ControlError::Broken { dir: dir.into(), source };
    let (_handle, path) = short_path(dir).map_err(nobody)?;
    let stream = UnixStream::connect(path).map_err(nobody)?;
    let reply = ask(&stream, &Request::Mark(text.into())).map_err(broken)?;
    match reply {
        Reply::Done => Ok(()),
        Reply::Refused(why) => Err(ControlError::Refused(why)),
    }
}

/// Whether a measurement is writing into `dir`.
pub(super) fn is_open(dir: &Path) -> bool {
    short_path(dir).and_then(|(_handle, path)| UnixStream::connect(path)).is_ok()
}

fn ask(mut stream: &UnixStream, request: &Request) -> io::Result<Reply> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut line = serde_json::to_string(request)?;
    line.push('\n');
    stream.write_all(line.as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream.take(REQUEST_MAX)).read_line(&mut answer)?;
    Ok(serde_json::from_str(&answer)?)
}

/// Opens the door of the measurement that writes into `dir`; a thread serves it until the process
/// ends.
///
/// # Errors
/// [`ControlError::Listen`] when the socket cannot be made.
pub(super) fn open(
    dir: &Path,
    commands: Sender<Command>,
    waker: Arc<Waker>,
) -> Result<(), ControlError> {
    let fail = |source| ControlError::Listen { dir: dir.into(), source };
    let (handle, path) = short_path(dir).map_err(fail)?;
    // The stream's lock says that no other collector is at work here: a socket is a leftover.
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(error)),
        _ => {}
    }
    let listener = UnixListener::bind(&path).map_err(fail)?;
    std::thread::Builder::new()
        .name("control".into())
        .spawn(move || {
            let _handle = handle;
            for stream in listener.incoming().flatten() {
                if let Err(error) = serve(&stream, &commands, &waker) {
                    tracing::debug!(%error, "a conversation at the control socket broke");
                }
            }
        })
        .map_err(fail)?;
    Ok(())
}

/// Closes the door.
pub(super) fn close(dir: &Path) {
    if let Err(error) = std::fs::remove_file(dir.join(SOCKET)) {
        tracing::debug!(%error, "the control socket was gone already");
    }
}

fn serve(mut stream: &UnixStream, commands: &Sender<Command>, waker: &Waker) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream.take(REQUEST_MAX)).read_line(&mut line)?;
    let reply = match serde_json::from_str(&line) {
        Ok(Request::Mark(text)) => {
            let (done, answered) = channel();
            let sent = commands.send(Command::Mark { text, done });
            waker.wake();
            match sent.map(|()| answered.recv_timeout(PATIENCE)) {
                Ok(Ok(())) => Reply::Done,
                _ => Reply::Refused("the collector has ended".into()),
            }
        }
        Ok(Request::Alert { kind, text }) => {
            let kind = match kind {
                AlertKind::AlertAcknowledged => "alert_acknowledged",
                AlertKind::AlertSilenced => "alert_silenced",
            };
            let sent = commands.send(Command::Note { kind, ordinal: None, text });
            waker.wake();
            match sent {
                Ok(()) => Reply::Done,
                Err(_) => Reply::Refused("the collector has ended".into()),
            }
        }
        Err(error) => Reply::Refused(format!("the request is not understood: {error}")),
    };
    let mut answer = serde_json::to_string(&reply)?;
    answer.push('\n');
    stream.write_all(answer.as_bytes())
}
