//! A host as a container: namespaces of its own for processes, mounts, IPC, names and network, in which commands are
//! started from outside.
//!
//! The first process of a container ([`be_first`]) is the same program in another role. It listens at a socket in the
//! file system that all containers of a machine share, so that a container is reached from others as a host is by
//! `ssh` ([`reach`]): the caller's standard streams become those of the command, its signals go to the command's group,
//! and its end is the command's. When the first process ends, whatever ends it, the kernel ends everything inside.

mod first;

use std::fs::File;
use std::io::{self, IoSlice, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::getpid;
use rustix::thread::{LinkNameSpaceType, UnshareFlags};
use serde::{Deserialize, Serialize};

use crate::process;

pub use first::be_first;

/// How long a command with its environment may be.
const START_BYTES_MAX: usize = 4 << 20;

/// What a host is like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerOptions {
    /// What it calls itself, and is called in `hosts`.
    pub name: String,
    /// A file with the names and addresses of all hosts, as `hosts(5)`.
    pub hosts: PathBuf,
    /// The socket at which it is reached.
    pub socket: PathBuf,
    /// Directories of the machine, and where they are seen in the container.
    pub binds: Vec<(PathBuf, PathBuf)>,
}

/// Why a container is not there, or a command in it does not run.
#[derive(Debug, thiserror::Error)]
pub enum ContainerError {
    /// It cannot be made.
    #[error("cannot make the container `{name}`")]
    Make {
        /// The name of the host.
        name: String,
        /// The error of that call.
        #[source]
        source: io::Error,
    },
    /// Its first process has ended before it was ready.
    #[error("the container `{name}` did not come up; what is wrong stands above")]
    Ended {
        /// The name of the host.
        name: String,
    },
    /// Nobody answers at its socket, or it has ended while a command ran.
    #[error("the host at `{socket}` is gone")]
    Gone {
        /// Where it was reached.
        socket: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A command cannot be started in it.
    #[error("{0}")]
    Refused(String),
}

/// A container that runs as long as this is not dropped.
#[derive(Debug)]
pub struct Container {
    first: First,
}

/// A command that is to be started.
#[derive(Debug, Serialize, Deserialize)]
struct Start {
    /// The program and its arguments; of nothing it is only asked whether the container is there.
    command: Vec<String>,
    environment: Vec<(String, String)>,
    directory: PathBuf,
}

impl Container {
    /// Starts a container in a network namespace. `program` with the arguments `role`, to which one is added, calls
    /// [`be_first`] with that one.
    ///
    /// The thread that calls it has to live as long as the container.
    ///
    /// # Errors
    /// When the kernel refuses it: only root may make namespaces, or who is root of a user namespace.
    pub fn start(
        program: &Path,
        role: &[&str],
        network: &File,
        options: &ContainerOptions,
    ) -> Result<Self, ContainerError> {
        let failed = |source| ContainerError::Make { name: options.name.clone(), source };
        let network = network.try_clone().map_err(failed)?;
        let enter = move || {
            process::enter(&network, LinkNameSpaceType::Network)?;
            process::unshare(
                UnshareFlags::NEWNS
                    | UnshareFlags::NEWPID
                    | UnshareFlags::NEWIPC
                    | UnshareFlags::NEWUTS,
            )?;
            process::continue_as_first_process()
        };
        let orders = Some(options.clone());
        let first = First::start(program, role, (&options.name, &options.socket), orders, enter)?;
        Ok(Self { first })
    }

    /// Whether it still runs.
    ///
    /// # Errors
    /// When that cannot be asked.
    pub fn is_running(&mut self) -> io::Result<bool> {
        Ok(self.first.0.try_wait()?.is_none())
    }

    /// The process on this machine that ends with the container.
    pub fn id(&self) -> u32 {
        self.first.0.id()
    }

    /// Ends it with everything inside, as a host ends whose power is cut.
    pub fn end(&mut self) {
        self.first.end();
    }
}

/// Starts commands on this machine itself for those in its containers, as long as this is not dropped.
#[derive(Debug)]
pub struct Outside {
    _server: First,
}

impl Outside {
    /// Listens at a socket. `program` with the arguments `role`, to which one is added, calls [`be_first`] with that one.
    ///
    /// The thread that calls it has to live as long as this.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(program: &Path, role: &[&str], socket: &Path) -> Result<Self, ContainerError> {
        let name = socket.display().to_string();
        Ok(Self { _server: First::start(program, role, (&name, socket), None, || Ok(()))? })
    }
}

/// A process that starts what is asked for at a socket, as long as this one runs and it is not dropped.
#[derive(Debug)]
struct First(Child);

impl First {
    /// `enter` is done between fork and exec, in a session of its own: what is typed on the terminal is not for it.
    #[expect(clippy::disallowed_methods, reason = "starts whoever starts commands")]
    #[expect(unsafe_code, reason = "it enters namespaces, and ends with this process")]
    fn start(
        program: &Path,
        role: &[&str],
        (name, socket): (&str, &Path),
        options: Option<ContainerOptions>,
        mut enter: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
    ) -> Result<Self, ContainerError> {
        let failed = |source| ContainerError::Make { name: name.to_owned(), source };
        let listener = listen(socket).map_err(failed)?;
        let (parent, listening) = (getpid(), listener.as_raw_fd());
        let orders = first::Orders { options, listener: listening };
        let orders = serde_json::to_string(&orders).map_err(|error| failed(error.into()))?;
        let mut command = Command::new(program);
        // What it has to say of itself it says on standard error.
        command.args(role).arg(orders).stdin(Stdio::null()).stdout(Stdio::null());
        let begin = move || {
            process::end_with_parent(Some(parent))?;
            process::new_session()?;
            enter()?;
            process::keep_over_exec(listening)
        };
        // SAFETY: the closure calls only the system, and allocates nothing.
        unsafe { command.pre_exec(begin) };
        let first = Self(command.spawn().map_err(failed)?);
        drop(listener);
        if answers(socket) {
            return Ok(first);
        }
        Err(ContainerError::Ended { name: name.to_owned() })
    }

    fn end(&mut self) {
        // It may have ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Drop for First {
    fn drop(&mut self) {
        self.end();
    }
}

/// Listens at a socket that one before may have left.
fn listen(socket: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => UnixListener::bind(socket),
    }
}

/// Whether somebody starts commands at a socket.
fn answers(socket: &Path) -> bool {
    let nothing = Start { command: Vec::new(), environment: Vec::new(), directory: "/".into() };
    connect(socket).and_then(|socket| exchange(&socket, &nothing, [])).is_ok()
}

fn connect(socket: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(socket)
}

/// Runs a command in a container with the standard streams, the environment and the directory of this process, and gives
/// its exit code. Bytes that come from `signals` are numbers of signals for it.
///
/// # Errors
/// When nobody answers, the container ends meanwhile, or the command cannot be started.
pub fn reach(
    socket: &Path,
    command: &[String],
    signals: &UnixStream,
) -> Result<u8, ContainerError> {
    let gone = |source| ContainerError::Gone { socket: socket.to_owned(), source };
    let connection = connect(socket).map_err(gone)?;
    let start = Start {
        command: command.to_vec(),
        environment: std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect(),
        directory: std::env::current_dir().map_err(gone)?,
    };
    let (input, output, errors) = (io::stdin(), io::stdout(), io::stderr());
    let mut passing = connection.try_clone().map_err(gone)?;
    let mut signals = signals.try_clone().map_err(gone)?;
    std::thread::spawn(move || {
        // It ends with either of the two.
        drop(io::copy(&mut signals, &mut passing));
    });
    exchange(&connection, &start, [input.as_fd(), output.as_fd(), errors.as_fd()]).map_err(
        |error| match error.kind() {
            io::ErrorKind::Other => ContainerError::Refused(error.to_string()),
            _ => gone(error),
        },
    )
}

/// Sends a command, and waits for its end.
fn exchange<const N: usize>(
    mut socket: &UnixStream,
    start: &Start,
    streams: [BorrowedFd<'_>; N],
) -> io::Result<u8> {
    let mut line = serde_json::to_vec(start)?;
    line.push(b'\n');
    let mut room = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut beside = SendAncillaryBuffer::new(&mut room);
    if N > 0 {
        beside.push(SendAncillaryMessage::ScmRights(&streams));
    }
    let sent = sendmsg(socket, &[IoSlice::new(&line)], &mut beside, SendFlags::NOSIGNAL)?;
    socket.write_all(&line[sent..])?;
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer)?;
    match answer.split_first() {
        None => Err(io::ErrorKind::UnexpectedEof.into()),
        Some((code, [])) => Ok(*code),
        Some((_, text)) => Err(io::Error::other(String::from_utf8_lossy(text).into_owned())),
    }
}
