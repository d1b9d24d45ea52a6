//! Commands in a lab that runs: started, spoken to, waited for.

use std::fs::File;
use std::io::{self, Read as _, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use crate::directory::{Directory, DirectoryError, Status};
use crate::keeper;
use crate::protocol::{self, FRAME_BYTES_MAX, Frame, Kind, LAB, Start, WINDOW_BYTES};
use crate::roles::Roles;
use crate::system::{self, Interest};
use crate::traffic::{Done, Task};

/// Why a command could not be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No lab is there.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The lab has ended while the command ran.
    #[error("the lab has ended")]
    Ended,
    /// The command was not started.
    #[error("{0}")]
    Refused(String),
    /// The socket or a stream failed.
    #[error("cannot talk to the lab's keeper")]
    Io(#[source] io::Error),
    /// One's own output cannot be written.
    #[error("cannot pass the command's output on")]
    Output(#[source] io::Error),
}

/// What is run where.
#[derive(Debug, Clone, Copy)]
pub struct Invocation<'a> {
    /// The host or switch; `None` is the machine that they are in.
    pub space: Option<&'a str>,
    /// The program and its arguments.
    pub command: &'a [&'a str],
    /// Environment variables beside those of the lab.
    pub environment: &'a [(String, String)],
}

/// What a command gets and where its output goes.
pub struct Streams<'a> {
    /// Standard input; `None` is an empty one.
    pub input: Option<OwnedFd>,
    /// Where its standard output goes.
    pub output: &'a mut dyn Write,
    /// Where its standard error goes.
    pub errors: &'a mut dyn Write,
    /// Readable when a signal came that is to be passed on: each byte is one.
    pub signals: Option<UnixStream>,
}

impl std::fmt::Debug for Streams<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Streams").field("input", &self.input).finish_non_exhaustive()
    }
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Its exit code, or 128 and the signal that ended it.
    pub code: u8,
    /// Standard output of the command.
    pub output: Vec<u8>,
    /// What it said on standard error.
    pub errors: Vec<u8>,
}

/// Runs a command, and gives what it said; `input` is its standard input.
///
/// # Errors
/// [`RunError`] if it was not started or the lab ended meanwhile.
pub fn run(
    directory: &Directory,
    invocation: &Invocation<'_>,
    input: &[u8],
) -> Result<Outcome, RunError> {
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    let input = if input.is_empty() {
        None
    } else {
        Some(system::file_of(c"input", input).map_err(RunError::Io)?.into())
    };
    let streams = Streams { input, output: &mut output, errors: &mut errors, signals: None };
    let code = attach(directory, invocation, streams)?;
    Ok(Outcome { code, output, errors })
}

/// Why a task could not be done inside.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// It could not be run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// It was run and says why it failed.
    #[error("{0}")]
    Failed(String),
}

/// Has a task done inside, and gives what came of it.
///
/// # Errors
/// [`AskError`] if it could not be done.
///
/// # Panics
/// Never: tasks have a JSON form.
pub fn ask(directory: &Directory, roles: &Roles, task: &Task) -> Result<Done, AskError> {
    let command: Vec<&str> =
        ["meikyo"].into_iter().chain(roles.task.iter().map(String::as_str)).collect();
    let invocation = Invocation { space: None, command: &command, environment: &[] };
    let input = serde_json::to_vec(task).expect("numbers and texts have a JSON form");
    let outcome = run(directory, &invocation, &input)?;
    if outcome.code != 0 {
        return Err(AskError::Failed(String::from_utf8_lossy(&outcome.errors).trim().into()));
    }
    serde_json::from_slice(&outcome.output).map_err(|error| AskError::Failed(error.to_string()))
}

fn connect(directory: &Directory) -> Result<UnixStream, RunError> {
    let none = || DirectoryError::None(directory.path().into());
    let open = File::open(directory.path()).map_err(|_| none())?;
    Ok(UnixStream::connect(keeper::socket_path(&open)).map_err(|_| none())?)
}

/// Asks the keeper how the lab is.
///
/// # Errors
/// [`RunError`] if none is there.
pub fn status(directory: &Directory) -> Result<Status, RunError> {
    let mut stream = connect(directory)?;
    let mut bytes = Vec::new();
    protocol::encode(&mut bytes, LAB, Kind::Status, &[]);
    stream.write_all(&bytes).map_err(RunError::Io)?;
    let mut read = Vec::new();
    loop {
        let mut buffer = vec![0; FRAME_BYTES_MAX];
        let length = stream.read(&mut buffer).map_err(RunError::Io)?;
        if length == 0 {
            return Err(RunError::Ended);
        }
        read.extend_from_slice(&buffer[..length]);
        if let Ok(Some(frame)) = protocol::decode(&mut read) {
            return serde_json::from_slice(&frame.bytes)
                .map_err(|error| RunError::Io(io::Error::other(error)));
        }
    }
}

/// Tells the keeper to end; it has when its process has.
pub(crate) fn ask_to_end(directory: &Directory) -> Result<(), RunError> {
    let mut bytes = Vec::new();
    protocol::encode(&mut bytes, LAB, Kind::PowerOff, &[]);
    connect(directory)?.write_all(&bytes).map_err(RunError::Io)
}

/// Runs a command with streams, and gives its exit code.
///
/// # Errors
/// [`RunError`] if it was not started or the lab ended meanwhile.
pub fn attach(
    directory: &Directory,
    invocation: &Invocation<'_>,
    streams: Streams<'_>,
) -> Result<u8, RunError> {
    let stream = connect(directory)?;
    stream.set_nonblocking(true).map_err(RunError::Io)?;
    let start = Start {
        space: invocation.space.map(str::to_owned),
        command: invocation.command.iter().map(|&part| part.to_owned()).collect(),
        environment: invocation.environment.to_vec(),
    };
    let mut to_write = Vec::new();
    protocol::encode_start(&mut to_write, 1, &start);
    if streams.input.is_none() {
        protocol::encode(&mut to_write, 1, Kind::InputEnd, &[]);
    }
    let input = streams.input.map(File::from);
    let mut attached = Attached {
        stream,
        read: Vec::new(),
        to_write,
        input,
        credit: WINDOW_BYTES,
        output: streams.output,
        errors: streams.errors,
        signals: streams.signals,
    };
    loop {
        if let Some(code) = attached.turn()? {
            return Ok(code);
        }
    }
}

struct Attached<'a> {
    stream: UnixStream,
    read: Vec<u8>,
    to_write: Vec<u8>,
    input: Option<File>,
    credit: usize,
    output: &'a mut dyn Write,
    errors: &'a mut dyn Write,
    signals: Option<UnixStream>,
}

impl Attached<'_> {
    fn turn(&mut self) -> Result<Option<u8>, RunError> {
        let stream = self.stream.as_fd();
        let input = self.input.as_ref().filter(|_| self.credit > 0).map(AsFd::as_fd);
        let signals = self.signals.as_ref().map(AsFd::as_fd);
        // Where there is no source, nothing is waited for.
        let interests = [
            Interest { fd: stream, read: true, write: !self.to_write.is_empty() },
            Interest { fd: input.unwrap_or(stream), read: input.is_some(), write: false },
            Interest { fd: signals.unwrap_or(stream), read: signals.is_some(), write: false },
        ];
        let ready = system::wait(&interests, None).map_err(RunError::Io)?;
        if ready[1].read {
            self.read_input()?;
        }
        if ready[2].read {
            self.read_signals()?;
        }
        if ready[0].write {
            match self.stream.write(&self.to_write) {
                Ok(written) => drop(self.to_write.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Err(RunError::Ended),
            }
        }
        if ready[0].read { self.read_frames() } else { Ok(None) }
    }

    fn read_input(&mut self) -> Result<(), RunError> {
        let Some(input) = &mut self.input else { return Ok(()) };
        let mut buffer = vec![0; FRAME_BYTES_MAX.min(self.credit)];
        match input.read(&mut buffer) {
            Ok(0) => {
                self.input = None;
                protocol::encode(&mut self.to_write, 1, Kind::InputEnd, &[]);
            }
            Ok(length) => {
                self.credit -= length;
                protocol::encode(&mut self.to_write, 1, Kind::Input, &buffer[..length]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(RunError::Io(error)),
        }
        Ok(())
    }

    fn read_signals(&mut self) -> Result<(), RunError> {
        let Some(signals) = &mut self.signals else { return Ok(()) };
        let mut buffer = [0; 16];
        let length = signals.read(&mut buffer).map_err(RunError::Io)?;
        for signal in &buffer[..length] {
            protocol::encode(&mut self.to_write, 1, Kind::Signal, &[*signal]);
        }
        if length == 0 {
            self.signals = None;
        }
        Ok(())
    }

    fn read_frames(&mut self) -> Result<Option<u8>, RunError> {
        let mut buffer = vec![0; 4 * FRAME_BYTES_MAX];
        match self.stream.read(&mut buffer) {
            Ok(0) => return Err(RunError::Ended),
            Ok(length) => self.read.extend_from_slice(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(_) => return Err(RunError::Ended),
        }
        let wrong = |error| RunError::Io(io::Error::other(error));
        while let Some(frame) = protocol::decode(&mut self.read).map_err(wrong)? {
            if let Some(code) = self.handle(&frame)? {
                return Ok(Some(code));
            }
        }
        Ok(None)
    }

    fn handle(&mut self, frame: &Frame) -> Result<Option<u8>, RunError> {
        match frame.kind {
            Kind::Output | Kind::Errors => {
                let (number, to) = if frame.kind == Kind::Output {
                    (1, &mut self.output)
                } else {
                    (2, &mut self.errors)
                };
                to.write_all(&frame.bytes).and_then(|()| to.flush()).map_err(RunError::Output)?;
                protocol::encode_credit(&mut self.to_write, 1, number, frame.bytes.len());
            }
            Kind::Credit => {
                if let Some((0, count)) = protocol::decode_credit(&frame.bytes) {
                    self.credit += count;
                }
            }
            Kind::Ended => return Ok(Some(frame.bytes.first().copied().unwrap_or(u8::MAX))),
            Kind::Refused => {
                return Err(RunError::Refused(String::from_utf8_lossy(&frame.bytes).into_owned()));
            }
            _ => {}
        }
        Ok(None)
    }
}
