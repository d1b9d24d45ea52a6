//! The process on the host that keeps a lab: it starts the inside and stands between it and commands.
//!
//! When it ends, whatever ends it, the kernel ends everything inside: the inside is the first process
//! of a PID namespace and dies with its parent.
#![expect(clippy::disallowed_methods, reason = "starts the inside of a lab")]
#![expect(unsafe_code, reason = "namespaces are made between fork and exec")]

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use meikyo_spaces::process;
use meikyo_units::{Nanos, in_one_line};

use crate::confinement::{Confinement, Kernel, SCRATCH_INSIDE};
use crate::directory::{self, CONSOLE, Directory, Record, SOCKET, Status};
use crate::engine::{self, Engine};
use crate::inside::CHANNEL;
use crate::keep_error::{KeepError, failed};
use crate::protocol::{
    self, BadFrame, FRAME_BYTES_MAX, Frame, GREETING, Kind, LAB, LINE_BYTES, Ready,
};
use crate::system::{self, Interest};

/// More commands than this at once wait until others have ended.
const CLIENTS_MAX: usize = 1_024;
/// How long the inside may take to write everything and end.
const END_PATIENCE: Nanos = Nanos::from_secs(5);

/// Keeps the lab of this directory until it is told to end. Says once, on its standard output, that it
/// is ready (a JSON document), or why not (a text that begins with `!`).
///
/// # Errors
/// [`KeepError`], which it has said as well.
pub(crate) fn run(path: &Path) -> Result<(), KeepError> {
    process::new_session().map_err(failed("begin a session"))?;
    let directory = Directory::at(path)?;
    let record = directory.record()?;
    directory.write_keeper()?;
    let kept = Keep::start(directory, record).and_then(Keep::serve);
    if let Err(error) = &kept {
        report(format!("!{}\n", in_one_line(error)).as_bytes());
    }
    kept
}

/// Tells whoever started the keeper; when he has gone nobody is to be told.
fn report(bytes: &[u8]) {
    let mut output = io::stdout();
    if output.write_all(bytes).and_then(|()| output.flush()).is_err() {
        // The lab's console shows it, too.
    }
}

struct Client {
    stream: UnixStream,
    read: Vec<u8>,
    to_write: Vec<u8>,
    started: bool,
    gone: bool,
}

struct Keep {
    directory: Directory,
    record: Record,
    inside: Child,
    channel: File,
    from_inside: Vec<u8>,
    to_inside: Vec<u8>,
    on_the_line: usize,
    greeted: bool,
    ready: Option<Ready>,
    listener: UnixListener,
    clients: BTreeMap<u32, Client>,
    next: u32,
    ends: bool,
}

impl Keep {
    fn start(directory: Directory, record: Record) -> Result<Self, KeepError> {
        let (own, other) = UnixStream::pair().map_err(failed("make the channel"))?;
        let inside = spawn(&directory, &record, &other.into())?;
        system::set_nonblocking(&own).map_err(failed("prepare the channel"))?;
        let listener = listen(&directory).map_err(failed("listen for commands"))?;
        Ok(Self {
            directory,
            record,
            inside,
            channel: File::from(OwnedFd::from(own)),
            from_inside: Vec::new(),
            to_inside: Vec::new(),
            on_the_line: 0,
            greeted: false,
            ready: None,
            listener,
            clients: BTreeMap::new(),
            next: 1,
            ends: false,
        })
    }

    fn serve(mut self) -> Result<(), KeepError> {
        while !self.ends {
            self.turn()?;
        }
        self.end_inside()
    }

    /// Asks the inside to end, and ends it if it does not.
    fn end_inside(&mut self) -> Result<(), KeepError> {
        let handle =
            process::process_handle(self.inside.id()).map_err(failed("watch the inside"))?;
        // Commands that still run are not waited for: what they would be told is dropped.
        self.to_inside.clear();
        protocol::encode(&mut self.to_inside, LAB, Kind::PowerOff, &[]);
        self.on_the_line = 0;
        let channel = Interest { fd: self.channel.as_fd(), read: false, write: true };
        let ready = system::wait(&[channel], Some(END_PATIENCE)).map_err(failed("wait"))?;
        if ready.iter().any(|ready| ready.write) && self.write_inside().is_err() {
            // It has ended already, which the wait below shows.
        }
        let inside = Interest { fd: handle.as_fd(), read: true, write: false };
        let ended = system::wait(&[inside], Some(END_PATIENCE)).map_err(failed("wait"))?;
        if !ended.iter().any(|ready| ready.read) {
            process::kill(&handle).map_err(failed("end the inside"))?;
        }
        self.inside.wait().map_err(failed("wait for the inside")).map(drop)
    }

    fn turn(&mut self) -> Result<(), KeepError> {
        let may_connect = self.ready.is_some() && self.clients.len() < CLIENTS_MAX;
        let mut interests = vec![
            Interest {
                fd: self.channel.as_fd(),
                read: true,
                write: !self.to_inside.is_empty() && self.on_the_line < LINE_BYTES,
            },
            Interest { fd: self.listener.as_fd(), read: may_connect, write: false },
        ];
        let ids: Vec<u32> = self.clients.keys().copied().collect();
        let output = io::stdout();
        interests.extend(self.clients.values().map(|client| Interest {
            fd: client.stream.as_fd(),
            read: true,
            write: !client.to_write.is_empty(),
        }));
        if self.ready.is_none() {
            // Whoever asked for the lab may give up before it is there.
            interests.push(Interest { fd: output.as_fd(), read: true, write: false });
        }
        let ready = system::wait(&interests, None).map_err(failed("wait"))?;
        if self.ready.is_none() && ready.last().is_some_and(|output| output.read) {
            self.ends = true;
            return Ok(());
        }
        if ready[0].write {
            self.write_inside()?;
        }
        if ready[0].read {
            self.read_inside()?;
        }
        if ready[1].read {
            self.accept();
        }
        for (id, ready) in ids.into_iter().zip(ready.into_iter().skip(2)) {
            self.serve_client(id, ready);
        }
        self.dismiss();
        Ok(())
    }

    fn write_inside(&mut self) -> Result<(), KeepError> {
        let length = self.to_inside.len().min(LINE_BYTES.saturating_sub(self.on_the_line));
        match self.channel.write(&self.to_inside[..length]) {
            Ok(written) => {
                self.to_inside.drain(..written);
                self.on_the_line += written;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return Err(self.ended()),
        }
        Ok(())
    }

    fn ended(&self) -> KeepError {
        KeepError::Ended(self.directory.path().join(CONSOLE))
    }

    fn read_inside(&mut self) -> Result<(), KeepError> {
        let mut buffer = vec![0; 4 * FRAME_BYTES_MAX];
        match self.channel.read(&mut buffer) {
            Ok(0) => return Err(self.ended()),
            Ok(length) => self.from_inside.extend_from_slice(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(_) => return Err(self.ended()),
        }
        if !self.greeted {
            let mut windows = self.from_inside.windows(GREETING.len());
            let Some(at) = windows.position(|window| window == GREETING) else { return Ok(()) };
            self.from_inside.drain(..at + GREETING.len());
            self.greeted = true;
        }
        while let Some(frame) = protocol::decode(&mut self.from_inside)
            .map_err(|error: BadFrame| KeepError::Channel(error.to_string()))?
        {
            self.handle(frame)?;
        }
        Ok(())
    }

    /// What the inside says.
    fn handle(&mut self, frame: Frame) -> Result<(), KeepError> {
        match frame.kind {
            Kind::Ready => {
                let ready = serde_json::from_slice(&frame.bytes)
                    .map_err(|error| KeepError::Channel(error.to_string()))?;
                let mut said = frame.bytes;
                said.push(b'\n');
                report(&said);
                self.ready = Some(ready);
            }
            Kind::Failed => {
                let text = String::from_utf8_lossy(&frame.bytes).into_owned();
                self.end_inside()?;
                return Err(KeepError::SetUp(text));
            }
            Kind::Taken => {
                let count = frame.bytes.first_chunk().map_or(0, |count| u32::from_le_bytes(*count));
                let count = usize::try_from(count).expect("32 bits");
                self.on_the_line = self.on_the_line.saturating_sub(count);
            }
            kind => {
                if let Some(client) = self.clients.get_mut(&frame.session) {
                    // To its command a session is the only one.
                    protocol::encode(&mut client.to_write, 1, kind, &frame.bytes);
                }
            }
        }
        Ok(())
    }

    fn accept(&mut self) {
        let Ok((stream, _)) = self.listener.accept() else { return };
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        let client =
            Client { stream, read: Vec::new(), to_write: Vec::new(), started: false, gone: false };
        self.clients.insert(self.next, client);
        self.next = self.next.checked_add(1).unwrap_or(1);
    }

    fn serve_client(&mut self, id: u32, ready: system::Ready) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        if ready.read {
            let mut buffer = vec![0; FRAME_BYTES_MAX];
            match client.stream.read(&mut buffer) {
                Ok(length) if length > 0 => client.read.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                _ => client.gone = true,
            }
        }
        loop {
            let Some(client) = self.clients.get_mut(&id) else { return };
            match protocol::decode(&mut client.read) {
                Ok(Some(frame)) => self.take_from_client(id, &frame),
                Ok(None) => break,
                Err(_) => {
                    client.gone = true;
                    break;
                }
            }
        }
        let Some(client) = self.clients.get_mut(&id) else { return };
        if !client.to_write.is_empty() {
            match client.stream.write(&client.to_write) {
                Ok(written) => drop(client.to_write.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => client.gone = true,
            }
        }
    }

    fn take_from_client(&mut self, id: u32, frame: &Frame) {
        let status = (frame.kind == Kind::Status).then(|| self.status()).flatten();
        let Some(client) = self.clients.get_mut(&id) else { return };
        match frame.kind {
            Kind::PowerOff => self.ends = true,
            Kind::Status => {
                let status = serde_json::to_vec(&status).expect("texts have a JSON form");
                protocol::encode(&mut client.to_write, LAB, Kind::Status, &status);
            }
            kind => {
                client.started |= matches!(kind, Kind::Start | Kind::StartPart);
                protocol::encode(&mut self.to_inside, id, kind, &frame.bytes);
            }
        }
    }

    fn status(&self) -> Option<Status> {
        Some(Status {
            record: self.record.clone(),
            ready: self.ready.clone()?,
            commands: self.clients.values().filter(|client| client.started).count(),
            resident_bytes: resident_bytes(self.inside.id()),
        })
    }

    /// Forgets those who have gone; their commands end.
    fn dismiss(&mut self) {
        let to_inside = &mut self.to_inside;
        self.clients.retain(|&id, client| {
            if client.gone && client.started {
                protocol::encode(to_inside, id, Kind::Abandon, &[]);
            }
            !client.gone
        });
    }
}

/// Resident memory of the inside: of the child of the process that waits for it.
fn resident_bytes(waiter: u32) -> u64 {
    let children = std::fs::read_to_string(format!("/proc/{waiter}/task/{waiter}/children"));
    let children = children.unwrap_or_default();
    let resident = |id: &str| {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    children.split_whitespace().filter_map(resident).map(|kib| kib * 1024).sum()
}

/// A socket in a directory whose path may be longer than a socket's address can be.
pub(crate) fn socket_path(directory: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(SOCKET)
}

fn listen(directory: &Directory) -> io::Result<UnixListener> {
    let open = File::open(directory.path())?;
    let listener = UnixListener::bind(socket_path(&open))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Starts the inside, confined.
fn spawn(directory: &Directory, record: &Record, channel: &OwnedFd) -> Result<Child, KeepError> {
    let program = std::env::current_exe().map_err(failed("find this program"))?;
    directory::plain(&program)?;
    let kernel = match &record.engine {
        Engine::Namespaces => None,
        Engine::UserModeLinux { kernel, .. } => Some(Kernel {
            file: engine::fitting_kernel(kernel)?,
            arguments: kernel_line(record, directory, &program)?,
        }),
    };
    let mut command = Command::new(&program);
    command.args(&record.inside).arg(directory.path()).env_clear();
    let console = directory.path().join(CONSOLE);
    let console = File::create(console).map_err(failed("make the console's file"))?;
    let errors = console.try_clone().map_err(failed("make the console's file"))?;
    command.stdin(Stdio::null()).stdout(console).stderr(errors).current_dir("/");
    let confinement = Confinement::new(directory, record, &program)?;
    let channel = channel.as_fd().as_raw_fd();
    let confine = move || {
        confinement.enter()?;
        system::hand_over(channel, CHANNEL)?;
        system::close_on_exec_beyond(CHANNEL.cast_unsigned())?;
        kernel.as_ref().map_or(Ok(()), Kernel::execute)
    };
    // SAFETY: this process has one thread, so the child may do whatever it could.
    unsafe { command.pre_exec(confine) };
    command.spawn().map_err(failed("start the inside"))
}

fn kernel_line(
    record: &Record,
    directory: &Directory,
    program: &Path,
) -> Result<Vec<CString>, KeepError> {
    let mut line: Vec<String> = [
        "linux",
        "rootfstype=hostfs",
        "rootflags=/",
        "ro",
        "quiet",
        "con=null",
        "con0=null,fd:1",
        "ssl=null",
    ]
    .map(str::to_owned)
    .into();
    line.push(format!("mem={}M", record.memory_mib));
    line.push(format!("ssl0=fd:{CHANNEL}"));
    line.push(format!("uml_dir={SCRATCH_INSIDE}"));
    line.push("umid=lab".into());
    // A kernel that panics ends, and with it the lab.
    line.push("panic=-1".into());
    line.push(format!("init={}", program.display()));
    line.push("--".into());
    line.extend(record.inside.iter().cloned());
    line.push(directory.path().display().to_string());
    let texts = line.into_iter().map(CString::new);
    texts.collect::<Result<_, _>>().map_err(|error| failed("tell the kernel a path")(error.into()))
}
