//! The door of a running measurement: a Unix socket in the recording's directory.
//!
//! One JSON line in, one JSON line out: who writes a recording can be asked to note a mark, or what
//! a person says to an alert. This module has the words and the asking side; whoever writes opens
//! the door and answers.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Name of the socket in the recording's directory.
pub const SOCKET: &str = "control.sock";

/// Longest request or reply in octets.
pub const LINE_MAX: u64 = 64 << 10;

/// How long either side waits for the other.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// What can be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Put a person's mark into `events`.
    Mark(String),
    /// Acknowledge or silence an alert that is raised.
    Alert(AlertRequest),
}

/// What is said to which alert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlertRequest {
    /// Whether the alert is acknowledged or silenced.
    pub action: AlertWord,
    /// Name of the rule.
    pub rule: String,
    /// Name of the device.
    pub device: String,
    /// What it is about; none for the device as a whole.
    #[serde(default)]
    pub object: Option<String>,
    /// For how long it is silenced, µs; only then.
    #[serde(default)]
    pub for_us: Option<u64>,
    /// Who says it.
    #[serde(default)]
    pub by: Option<String>,
}

/// What can be said to an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertWord {
    /// Somebody has seen it.
    Acknowledge,
    /// It is to be quiet for some time.
    Silence,
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The measurement did what was asked.
    Done,
    /// It is not, and why.
    Refused(String),
}

/// Why a running measurement could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody listens.
    #[error("no measurement is writing into {}", dir.display())]
    Nobody {
        /// Recording without a running measurement.
        dir: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The conversation broke.
    #[error("the measurement that writes into {} did not answer", dir.display())]
    Broken {
        /// Recording of the measurement.
        dir: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It answered no.
    #[error("the measurement refused: {0}")]
    Refused(String),
}

/// A path to the socket of a recording that is short enough for a socket's name (108 octets),
/// however deep the recording lies; it holds while the file is open.
///
/// # Errors
/// When the directory cannot be opened.
pub fn short_path(dir: &Path) -> io::Result<(File, PathBuf)> {
    let handle = File::open(dir)?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd())).join(SOCKET);
    Ok((handle, path))
}

/// Whether a measurement is writing into `dir`.
pub fn is_open(dir: &Path) -> bool {
    short_path(dir).and_then(|(_handle, path)| UnixStream::connect(path)).is_ok()
}

/// Asks the measurement that is writing in `dir` for something; returns when it is done.
///
/// # Errors
/// [`AskError`] when there is no such measurement, or it does not do it.
pub fn ask(dir: &Path, request: &Request) -> Result<(), AskError> {
    let nobody = |source| AskError::Nobody { dir: dir.into(), source };
    let (_handle, path) = short_path(dir).map_err(nobody)?;
    let stream = UnixStream::connect(path).map_err(nobody)?;
    let reply = converse(&stream, request)
        .map_err(|source| AskError::Broken { dir: dir.into(), source })?;
    match reply {
        Reply::Done => Ok(()),
        Reply::Refused(why) => Err(AskError::Refused(why)),
    }
}

fn converse(mut stream: &UnixStream, request: &Request) -> io::Result<Reply> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut line = serde_json::to_string(request)?;
    line.push('\n');
    stream.write_all(line.as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream.take(LINE_MAX)).read_line(&mut answer)?;
    Ok(serde_json::from_str(&answer)?)
}
