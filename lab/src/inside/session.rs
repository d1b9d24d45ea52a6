//! The commands that run inside, and the one channel over which all of them are spoken to.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Stdio};

use meikyo_spaces::process;
use rustix::process::Signal;

use crate::blueprint::Blueprint;
use crate::protocol::{self, FRAME_BYTES_MAX, Frame, Kind, Start, WINDOW_BYTES};
use crate::system::{self, Interest, Ready};

use super::commands;

/// Streams of a session, as credits name them.
const INPUT: u8 = 0;
const OUTPUT: u8 = 1;
const ERRORS: u8 = 2;
/// More at once than this are refused.
pub(crate) const SESSIONS_MAX: usize = 1_024;
/// A command to be started is at most this long, with its environment.
const START_BYTES_MAX: usize = 2 * 1024 * 1024;

/// What commands can be started in.
#[derive(Debug, Default)]
pub(crate) struct Lab {
    names: std::collections::BTreeSet<String>,
}

impl Lab {
    pub(crate) fn new(blueprint: &Blueprint) -> Self {
        Self { names: blueprint.spaces.iter().map(|space| space.name.clone()).collect() }
    }

    /// Starts a program that runs as long as the lab.
    pub(crate) fn start_service(&self, start: &Start) -> io::Result<Child> {
        let mut command = self.command(start)?;
        command.stdout(Stdio::null()).stderr(Stdio::inherit());
        command.spawn()
    }

    fn command(&self, start: &Start) -> io::Result<std::process::Command> {
        match &start.space {
            Some(name) if !self.names.contains(name) => {
                Err(io::Error::other(format!("there is no host or switch `{name}`")))
            }
            _ => commands::command(start),
        }
    }
}

/// What a command says on one of its streams, and how much more it may say.
struct Outgoing<S> {
    stream: Option<S>,
    credit: usize,
}

/// A command that runs.
struct Session {
    process: u32,
    code: Option<u8>,
    input: Option<ChildStdin>,
    waiting: Vec<u8>,
    input_ends: bool,
    output: Outgoing<ChildStdout>,
    errors: Outgoing<ChildStderr>,
}

impl Session {
    fn is_over(&self) -> bool {
        self.code.is_some() && self.output.stream.is_none() && self.errors.stream.is_none()
    }
}

struct Server<'a> {
    lab: &'a Lab,
    channel: OwnedFd,
    read: Vec<u8>,
    to_write: Vec<u8>,
    starting: BTreeMap<u32, Vec<u8>>,
    sessions: BTreeMap<u32, Session>,
    ends: bool,
}

/// Serves until it is told to end, or nobody is at the other end of the channel.
pub(crate) fn serve(channel: OwnedFd, greeting: Vec<u8>, lab: &Lab) -> io::Result<()> {
    system::set_nonblocking(&channel)?;
    let (ended, trigger) = UnixStream::pair()?;
    ended.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(signal_hook::consts::SIGCHLD, trigger)?;
    let mut server = Server {
        lab,
        channel,
        read: Vec::new(),
        to_write: greeting,
        starting: BTreeMap::new(),
        sessions: BTreeMap::new(),
        ends: false,
    };
    while !server.ends || !server.to_write.is_empty() {
        server.turn(&ended)?;
    }
    Ok(())
}

/// What an interest of a turn belongs to.
#[derive(Clone, Copy)]
enum Source {
    Channel,
    Ended,
    Input(u32),
    Output(u32),
    Errors(u32),
}

impl Server<'_> {
    fn turn(&mut self, mut ended: &UnixStream) -> io::Result<()> {
        let (sources, interests) = self.interests(ended);
        let ready = system::wait(&interests, None)?;
        for (source, ready) in sources.into_iter().zip(ready) {
            match source {
                _ if ready == Ready::default() => {}
                Source::Channel => self.serve_channel(ready)?,
                Source::Ended => {
                    let mut wakes = [0; 64];
                    drop_would_block(ended.read(&mut wakes))?;
                    self.reap();
                }
                Source::Input(id) => self.feed(id),
                Source::Output(id) => self.listen(id, OUTPUT),
                Source::Errors(id) => self.listen(id, ERRORS),
            }
        }
        self.close_sessions();
        Ok(())
    }

    fn interests<'a>(&'a self, ended: &'a UnixStream) -> (Vec<Source>, Vec<Interest<'a>>) {
        let mut list = vec![
            (Source::Channel, self.channel.as_fd(), true, !self.to_write.is_empty()),
            (Source::Ended, ended.as_fd(), true, false),
        ];
        for (&id, session) in &self.sessions {
            if let Some(input) = session.input.as_ref().filter(|_| !session.waiting.is_empty()) {
                list.push((Source::Input(id), input.as_fd(), false, true));
            }
            if let Some(output) =
                session.output.stream.as_ref().filter(|_| session.output.credit > 0)
            {
                list.push((Source::Output(id), output.as_fd(), true, false));
            }
            if let Some(errors) =
                session.errors.stream.as_ref().filter(|_| session.errors.credit > 0)
            {
                list.push((Source::Errors(id), errors.as_fd(), true, false));
            }
        }
        list.into_iter()
            .map(|(source, fd, read, write)| (source, Interest { fd, read, write }))
            .unzip()
    }

    fn serve_channel(&mut self, ready: Ready) -> io::Result<()> {
        let mut channel = std::fs::File::from(self.channel.try_clone()?);
        if ready.write {
            match channel.write(&self.to_write) {
                Ok(written) => drop(self.to_write.drain(..written)),
                result => drop(drop_would_block(result)?),
            }
        }
        if ready.read {
            let mut buffer = vec![0; FRAME_BYTES_MAX];
            match channel.read(&mut buffer) {
                Ok(0) => self.ends = true,
                Ok(length) => {
                    self.read.extend_from_slice(&buffer[..length]);
                    let taken = u32::try_from(length).map_err(io::Error::other)?.to_le_bytes();
                    protocol::encode(&mut self.to_write, protocol::LAB, Kind::Taken, &taken);
                }
                result => drop(drop_would_block(result)?),
            }
            while let Some(frame) = protocol::decode(&mut self.read).map_err(io::Error::other)? {
                self.handle(frame);
            }
        }
        Ok(())
    }

    fn handle(&mut self, frame: Frame) {
        let id = frame.session;
        match frame.kind {
            Kind::PowerOff => self.ends = true,
            Kind::StartPart | Kind::Start => {
                let parts = self.starting.entry(id).or_default();
                parts.extend_from_slice(&frame.bytes);
                if parts.len() > START_BYTES_MAX || frame.kind == Kind::Start {
                    let parts = self.starting.remove(&id).unwrap_or_default();
                    self.start(id, &parts);
                }
            }
            Kind::Input | Kind::InputEnd => {
                let Some(session) = self.sessions.get_mut(&id) else { return };
                session.waiting.extend_from_slice(&frame.bytes);
                session.input_ends |= frame.kind == Kind::InputEnd;
                self.feed(id);
            }
            Kind::Signal => {
                let Some(session) = self.sessions.get(&id).filter(|one| one.code.is_none()) else {
                    return;
                };
                if let [signal] = *frame.bytes
                    && let Some(signal) = Signal::from_named_raw(signal.into())
                {
                    process::signal_group(session.process, signal);
                }
            }
            Kind::Abandon => {
                if let Some(session) = self.sessions.remove(&id) {
                    process::signal_group(session.process, Signal::KILL);
                }
            }
            Kind::Credit => {
                let Some(session) = self.sessions.get_mut(&id) else { return };
                match protocol::decode_credit(&frame.bytes) {
                    Some((OUTPUT, count)) => session.output.credit += count,
                    Some((ERRORS, count)) => session.errors.credit += count,
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn start(&mut self, id: u32, bytes: &[u8]) {
        let started = if self.sessions.len() >= SESSIONS_MAX {
            Err(io::Error::other(format!("{SESSIONS_MAX} commands run here already")))
        } else {
            self.try_start(bytes)
        };
        match started {
            Ok(session) => drop(self.sessions.insert(id, session)),
            Err(error) => {
                let text = error.to_string();
                let text = &text.as_bytes()[..text.len().min(FRAME_BYTES_MAX)];
                protocol::encode(&mut self.to_write, id, Kind::Refused, text);
            }
        }
    }

    fn try_start(&self, bytes: &[u8]) -> io::Result<Session> {
        let start: Start = serde_json::from_slice(bytes).map_err(io::Error::other)?;
        let mut command = self.lab.command(&start)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| {
            let program = start.command.first().map_or("", String::as_str);
            io::Error::other(format!("cannot start `{program}`: {error}"))
        })?;
        let input = child.stdin.take();
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        for fd in [input.as_ref().map(AsFd::as_fd), output.as_ref().map(AsFd::as_fd)] {
            fd.iter().try_for_each(system::set_nonblocking)?;
        }
        errors.iter().try_for_each(system::set_nonblocking)?;
        Ok(Session {
            process: child.id(),
            code: None,
            input,
            waiting: Vec::new(),
            input_ends: false,
            output: Outgoing { stream: output, credit: WINDOW_BYTES },
            errors: Outgoing { stream: errors, credit: WINDOW_BYTES },
        })
    }

    /// Passes on what waits for the standard input of a command.
    fn feed(&mut self, id: u32) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let mut passed_on = 0;
        while let Some(input) = session.input.as_mut().filter(|_| !session.waiting.is_empty()) {
            match input.write(&session.waiting) {
                Ok(written) => {
                    session.waiting.drain(..written);
                    passed_on += written;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // The command reads no more: what comes yet is dropped, as in a shell.
                Err(_) => session.input = None,
            }
        }
        if session.input.is_none() {
            passed_on += session.waiting.len();
            session.waiting.clear();
        } else if session.input_ends && session.waiting.is_empty() {
            session.input = None;
        }
        if passed_on > 0 {
            protocol::encode_credit(&mut self.to_write, id, INPUT, passed_on);
        }
    }

    /// Passes on what a command says.
    fn listen(&mut self, id: u32, stream: u8) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let (heard, kind) = if stream == OUTPUT {
            (hear(&mut session.output), Kind::Output)
        } else {
            (hear(&mut session.errors), Kind::Errors)
        };
        if !heard.is_empty() {
            protocol::encode(&mut self.to_write, id, kind, &heard);
        }
    }

    /// Notes which commands have ended. Processes that lost their parents are ours, too.
    fn reap(&mut self) {
        while let Some(ended) = process::reap() {
            let mut sessions = self.sessions.values_mut();
            if let Some(session) =
                sessions.find(|session| session.process == ended.id && session.code.is_none())
            {
                session.code = Some(ended.code);
            }
        }
    }

    fn close_sessions(&mut self) {
        let to_write = &mut self.to_write;
        self.sessions.retain(|&id, session| {
            if let (true, Some(code)) = (session.is_over(), session.code) {
                protocol::encode(to_write, id, Kind::Ended, &[code]);
            }
            !session.is_over()
        });
    }
}

/// Reads what a stream has, within its credit; the end closes it.
fn hear(outgoing: &mut Outgoing<impl Read>) -> Vec<u8> {
    let mut buffer = vec![0; FRAME_BYTES_MAX.min(outgoing.credit)];
    let Some(stream) = outgoing.stream.as_mut().filter(|_| !buffer.is_empty()) else {
        return Vec::new();
    };
    match stream.read(&mut buffer) {
        Ok(length) if length > 0 => {
            buffer.truncate(length);
            outgoing.credit -= length;
            return buffer;
        }
        Err(error)
            if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
        _ => outgoing.stream = None,
    }
    Vec::new()
}

/// A read or write that would have to wait is none.
fn drop_would_block(result: io::Result<usize>) -> io::Result<usize> {
    match result {
        Err(error)
            if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) =>
        {
            Ok(0)
        }
        result => result,
    }
}
