//! The first process of a container: it mounts what is the container's own, starts commands, and takes in those that have
//! lost their parents.

use std::collections::BTreeMap;
use std::io::{self, IoSliceMut, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use super::{ContainerOptions, START_BYTES_MAX, Start};
use crate::process;

/// What the first process is told.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Orders {
    /// Nothing where commands are started on the machine itself.
    pub(super) options: Option<ContainerOptions>,
    /// The number of the descriptor that listens.
    pub(super) listener: RawFd,
}

/// Commands and connections at once; more wait.
const CONNECTIONS_MAX: usize = 1_024;

/// Is the first process of a container that [`super::Container::start`] has started, or whoever starts commands for
/// [`super::Outside`], as long as that runs; its exit code.
pub fn be_first(orders: &str) -> u8 {
    match serve(orders) {
        Ok(()) => 0,
        Err(error) => {
            complain(&error);
            1
        }
    }
}

#[expect(clippy::print_stderr, reason = "nobody else is there to tell it")]
fn complain(error: &io::Error) {
    eprintln!("meikyo: a container cannot be set up: {error}");
}

fn serve(orders: &str) -> io::Result<()> {
    let Orders { options, listener } = serde_json::from_str(orders)?;
    let listener = UnixListener::from(process::inherited(listener)?);
    if let Some(options) = options {
        set_up(&options)?;
    }
    let (ended, trigger) = UnixStream::pair()?;
    ended.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(signal_hook::consts::SIGCHLD, trigger)?;
    let mut server = Server { listener, ended, connections: BTreeMap::new(), next: 0 };
    loop {
        server.turn()?;
    }
}

fn doing<T, E: Into<io::Error>>(what: &str, result: Result<T, E>) -> io::Result<T> {
    result.map_err(|error| {
        let error = error.into();
        io::Error::new(error.kind(), format!("{what}: {error}"))
    })
}

fn set_up(options: &ContainerOptions) -> io::Result<()> {
    let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    doing("keep mounts apart", mount_change(c"/", private))?;
    let plain = MountFlags::NOSUID | MountFlags::NODEV;
    doing("mount /proc", mount(c"proc", c"/proc", c"proc", plain, None))?;
    // It shows the network of whoever has mounted it.
    doing("mount /sys", mount(c"sys", c"/sys", c"sysfs", plain, None))?;
    doing("mount /dev/shm", mount(c"shm", c"/dev/shm", c"tmpfs", plain, c"mode=1777"))?;
    // `/dev/ptmx` finds it. What has a terminal here keeps its number when it goes on on another host.
    let (terminals, modes) = (MountFlags::NOSUID | MountFlags::NOEXEC, c"mode=620,ptmxmode=666");
    doing("mount /dev/pts", mount(c"devpts", c"/dev/pts", c"devpts", terminals, modes))?;
    doing("name the host", rustix::system::sethostname(options.name.as_bytes()))?;
    doing("bind /etc/hosts", mount_bind(&options.hosts, "/etc/hosts"))?;
    for (from, to) in &options.binds {
        doing(&format!("bind {}", to.display()), mount_bind(from, to))?;
    }
    Ok(())
}

/// A connection of whoever reached the container.
struct Connection {
    socket: UnixStream,
    read: Vec<u8>,
    streams: Vec<OwnedFd>,
    /// The command that runs for it.
    process: Option<u32>,
    is_over: bool,
}

struct Server {
    listener: UnixListener,
    /// Can be read when a child has ended.
    ended: UnixStream,
    connections: BTreeMap<u64, Connection>,
    next: u64,
}

impl Server {
    fn turn(&mut self) -> io::Result<()> {
        let is_full = self.connections.len() >= CONNECTIONS_MAX;
        let accepts = if is_full { PollFlags::empty() } else { PollFlags::IN };
        let mut polled = vec![
            PollFd::from_borrowed_fd(self.ended.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.listener.as_fd(), accepts),
        ];
        let numbers: Vec<u64> = self.connections.keys().copied().collect();
        let sockets = self.connections.values().map(|connection| connection.socket.as_fd());
        polled.extend(sockets.map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN)));
        match poll(&mut polled, None) {
            Err(Errno::INTR) => return Ok(()),
            result => result?,
        };
        let ready: Vec<bool> = polled.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(polled);
        for (number, _) in numbers.iter().zip(&ready[2..]).filter(|(_, ready)| **ready) {
            if let Some(connection) = self.connections.get_mut(number) {
                connection.read();
            }
        }
        if ready[0] {
            let mut wakes = [0; 64];
            // Whatever it holds, all that have ended are looked for.
            drop((&self.ended).read(&mut wakes));
            self.reap();
        }
        if ready[1]
            && let Ok((socket, _)) = self.listener.accept()
            && socket.set_nonblocking(true).is_ok()
        {
            let (read, streams) = (Vec::new(), Vec::new());
            let connection = Connection { socket, read, streams, process: None, is_over: false };
            self.connections.insert(self.next, connection);
            self.next += 1;
        }
        self.connections.retain(|_, connection| !connection.is_over);
        Ok(())
    }

    fn reap(&mut self) {
        while let Some(ended) = process::reap() {
            let mut all = self.connections.values_mut();
            if let Some(connection) = all.find(|one| one.process == Some(ended.id)) {
                connection.process = None;
                connection.answer(ended.code, "");
            }
        }
    }
}

impl Connection {
    /// Takes what has come: a command, signals for it, or the end of whoever waits for it.
    fn read(&mut self) {
        let mut room = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut beside = RecvAncillaryBuffer::new(&mut room);
        let mut piece = [0; 16_384];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received =
            recvmsg(&self.socket, &mut [IoSliceMut::new(&mut piece)], &mut beside, flags);
        let count = match received {
            Ok(message) => message.bytes,
            Err(Errno::AGAIN | Errno::INTR) => return,
            Err(_) => 0,
        };
        for message in beside.drain() {
            if let RecvAncillaryMessage::ScmRights(streams) = message {
                self.streams.extend(streams);
            }
        }
        if count == 0 {
            self.is_over = true;
            if let Some(process) = self.process.take() {
                process::signal_group(process, Signal::KILL);
            }
            return;
        }
        if let Some(process) = self.process {
            let signals =
                piece[..count].iter().map(|&number| Signal::from_named_raw(number.into()));
            signals.flatten().for_each(|signal| process::signal_group(process, signal));
            return;
        }
        self.read.extend_from_slice(&piece[..count]);
        if self.read.len() > START_BYTES_MAX {
            self.answer(u8::MAX, "the command with its environment is too long");
        } else if self.read.last() == Some(&b'\n') {
            let line = std::mem::take(&mut self.read);
            match self.start(&line) {
                Ok(Some(process)) => self.process = Some(process),
                Ok(None) => self.answer(0, ""),
                Err(error) => self.answer(u8::MAX, &error.to_string()),
            }
        }
    }

    #[expect(clippy::disallowed_methods, reason = "starts commands in a container")]
    #[expect(unsafe_code, reason = "a command begins a session between fork and exec")]
    fn start(&mut self, line: &[u8]) -> io::Result<Option<u32>> {
        let Start { command, environment, directory } = serde_json::from_slice(line)?;
        let Some((program, arguments)) = command.split_first() else { return Ok(None) };
        let mut streams = std::mem::take(&mut self.streams).into_iter().map(Stdio::from);
        let (Some(input), Some(output), Some(errors)) =
            (streams.next(), streams.next(), streams.next())
        else {
            return Err(io::Error::other("the command has no streams"));
        };
        if !Path::new(&directory).is_dir() {
            let directory = directory.display();
            return Err(io::Error::other(format!("there is no directory `{directory}`")));
        }
        let mut command = Command::new(program);
        command.args(arguments).env_clear().envs(environment).current_dir(directory);
        command.stdin(input).stdout(output).stderr(errors);
        // SAFETY: the function calls only the system, and allocates nothing.
        unsafe { command.pre_exec(process::new_session) };
        let child = command
            .spawn()
            .map_err(|error| io::Error::other(format!("cannot start `{program}`: {error}")))?;
        Ok(Some(child.id()))
    }

    fn answer(&mut self, code: u8, text: &str) {
        let mut answer = vec![code];
        answer.extend_from_slice(text.as_bytes());
        // Whoever asked may be gone.
        drop(self.socket.write_all(&answer));
        self.is_over = true;
    }
}
