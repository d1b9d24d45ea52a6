//! `meikyo serve` as a child process.

use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::process::{ChildStderr, Command, Stdio};

use meikyo_console::failure::Failure;
use meikyo_units::{Bytes, Nanos};

use crate::collector::product;
use crate::placement::{Placed, Placement, spawn};

/// A running server; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    process: Placed,
    /// Where it serves, with a `/` at the end.
    pub(crate) url: String,
    /// Kept open, so that the server can go on logging.
    _log: BufReader<ChildStderr>,
}

impl ServerProcess {
    /// Starts it for one recording on a free port of loopback.
    pub(crate) fn start(recording: &Path) -> Result<Self, Failure> {
        Self::start_at(recording, Placement::default())
    }

    /// One that takes rows from afar into recordings below `dir`.
    pub(crate) fn start_ingesting(dir: &Path, placement: Placement) -> Result<Self, Failure> {
        Self::start_ingesting_with(dir, placement, |command| {
            command.args(["--listen", "127.0.0.1:0"]);
        })
    }

    /// One that does so and listens where `door` says.
    pub(crate) fn start_ingesting_with(
        dir: &Path,
        placement: Placement,
        door: impl FnOnce(&mut Command),
    ) -> Result<Self, Failure> {
        let mut command = product()?;
        command.args(["serve", "--ingest"]).arg(dir);
        door(&mut command);
        Self::spawn(command, placement)
    }

    /// One at its place.
    pub(crate) fn start_at(recording: &Path, placement: Placement) -> Result<Self, Failure> {
        Self::start_with(recording, placement, |command| {
            command.args(["--listen", "127.0.0.1:0"]);
        })
    }

    /// One that listens where `door` says.
    pub(crate) fn start_with(
        recording: &Path,
        placement: Placement,
        door: impl FnOnce(&mut Command),
    ) -> Result<Self, Failure> {
        let mut command = product()?;
        command.arg("serve").arg(recording);
        door(&mut command);
        Self::spawn(command, placement)
    }

    fn spawn(mut command: Command, placement: Placement) -> Result<Self, Failure> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = spawn(command, placement)?;
        let stderr = process.child().stderr.take().expect("standard error is piped");
        let mut log = BufReader::new(stderr);
        let mut said = String::new();
        loop {
            let start = said.len();
            if log.read_line(&mut said)? == 0 {
                return Err(Failure::new(format!("`meikyo serve` ended: {}", said.trim())));
            }
            if let Some(url) = said[start..].trim().strip_prefix("serving at ") {
                return Ok(Self { process, url: url.to_owned(), _log: log });
            }
        }
    }

    /// What it holds in memory now.
    pub(crate) fn rss(&self) -> io::Result<Bytes> {
        self.process.memory("VmRSS:")
    }

    /// The most that it has held in memory.
    pub(crate) fn rss_peak(&self) -> io::Result<Bytes> {
        self.process.memory("VmHWM:")
    }

    /// CPU time of its threads so far; none of them ends while viewers look on.
    pub(crate) fn cpu(&self) -> io::Result<Nanos> {
        Ok(self.process.threads()?.into_values().fold(Nanos::ZERO, |sum, ran| sum + ran))
    }

    /// The host and port that it serves at.
    pub(crate) fn authority(&self) -> &str {
        let rest = self.url.strip_prefix("http://").unwrap_or(&self.url);
        rest.split('/').next().unwrap_or(rest)
    }
}
