//! CRIU as a program of its own, spoken to by its RPC over a socket that it is started with (`criu swrk`).
//!
//! A capture is asked for with notices: CRIU says when everything is written and the processes still stand still, and goes on
//! when it is told to. So whoever captures several hosts lets none of them go before all are written.
//!
//! It does not lock connections. Whoever captures keeps frames from passing from before the first process stands still until
//! all are written: then every octet is either acknowledged, and in the receiver's image, or in the sender's.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use super::message::{Damaged, Message, Value, fields};

/// The oldest version of CRIU that can capture connections on Linux 6.16 and later, which refuses options of sockets that
/// older ones ask for (issue 2705 of CRIU).
pub const VERSION_NEEDED: (u64, u64) = (4, 2);

/// Largest answer.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// A file that nobody can open any more is part of the images up to this size.
const GHOST_BYTES_MAX: u64 = 1 << 30;

/// The log of a capture, among its images.
const DUMP_LOG: &str = "dump.log";

/// The log of a restore there.
const RESTORE_LOG: &str = "restore.log";

/// Says errors and warnings.
const LOG_LEVEL: u64 = 2;

/// What is asked; CRIU's `criu_req_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Dump = 1,
    Restore = 2,
    Check = 3,
    Notify = 6,
    Version = 10,
}

/// Why CRIU has not done something.
#[derive(Debug, thiserror::Error)]
pub enum CriuError {
    /// It cannot be started.
    #[error("cannot start `{program}`")]
    Start {
        /// What was taken for CRIU.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It has ended, or says what is not understood.
    #[error("`{program}` does not answer as CRIU does")]
    Talk {
        /// What was taken for CRIU.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is too old.
    #[error("`{program}` is CRIU {}.{}, and {}.{} is needed", found.0, found.1, VERSION_NEEDED.0, VERSION_NEEDED.1)]
    Old {
        /// What was taken for CRIU.
        program: PathBuf,
        /// Its greater and its lesser number.
        found: (u64, u64),
    },
    /// This kernel, or the rights here, do not do.
    #[error("CRIU cannot work here: {why}")]
    Unable {
        /// What it says.
        why: String,
    },
    /// The processes could not be captured, and go on.
    #[error("CRIU cannot capture process {process}: {why}")]
    Dump {
        /// The first of them.
        process: u32,
        /// What it says.
        why: String,
    },
    /// They could not be brought back.
    #[error("CRIU cannot bring back what `{images}` has: {why}")]
    Restore {
        /// The directory.
        images: PathBuf,
        /// What it says.
        why: String,
    },
}

/// Where CRIU is; each request is answered by one that is started for it.
#[derive(Debug, Clone)]
pub struct Criu {
    program: PathBuf,
}

/// What CRIU says.
#[derive(Debug, Default)]
struct Answer {
    is_done: bool,
    /// The name of a notice.
    notice: Option<String>,
    process: Option<u32>,
    error: Option<String>,
    version: (u64, u64),
}

/// A CRIU that runs.
#[derive(Debug)]
struct Running {
    program: PathBuf,
    child: Child,
    socket: OwnedFd,
}

/// Processes that are written and stand still.
#[derive(Debug)]
pub struct Standing {
    running: Running,
    process: u32,
    images: PathBuf,
}

impl Criu {
    /// The program at a path, or of a name that is searched for as a shell does.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into() }
    }

    /// Which version it is; at least [`VERSION_NEEDED`].
    ///
    /// # Errors
    /// When it does not run, or is older.
    pub fn version(&self) -> Result<(u64, u64), CriuError> {
        let mut running = self.start()?;
        let found = running.ask(&request(Asked::Version, None))?.version;
        if found < VERSION_NEEDED {
            return Err(CriuError::Old { program: self.program.clone(), found });
        }
        Ok(found)
    }

    /// Whether this kernel and the rights of this process do.
    ///
    /// # Errors
    /// When they do not.
    pub fn check(&self) -> Result<(), CriuError> {
        let mut running = self.start()?;
        let options = Message::default().number(1, u64::MAX);
        let answer = running.ask(&request(Asked::Check, Some(&options)))?;
        if answer.is_done {
            return Ok(());
        }
        let why = answer.error.unwrap_or_else(|| "`criu check` says what is missing".to_owned());
        Err(CriuError::Unable { why })
    }

    /// Writes a process and its descendants into a directory, which is made anew, and has them stand still.
    ///
    /// # Errors
    /// When it cannot; they go on then.
    pub fn dump(&self, process: u32, images: &Path) -> Result<Standing, CriuError> {
        let failed = |why: String| CriuError::Dump { process, why };
        if images.exists() {
            fs::remove_dir_all(images).map_err(|error| failed(error.to_string()))?;
        }
        fs::create_dir_all(images).map_err(|error| failed(error.to_string()))?;
        let directory = File::open(images).map_err(|error| failed(error.to_string()))?;
        let options =
            options(&directory, DUMP_LOG).number(2, process.into()).flag(3, true).flag(12, true);
        let mut running = self.start()?;
        running.send(&request(Asked::Dump, Some(&options)))?;
        loop {
            let answer = running.receive()?;
            match answer.notice.as_deref() {
                Some("post-dump") => {
                    let (process, images) = (process, images.to_owned());
                    return Ok(Standing { running, process, images });
                }
                Some(_) => running.confirm(true)?,
                None => return Err(failed(explained(&images.join(DUMP_LOG), &answer))),
            }
        }
    }

    /// Brings back what a directory has; the first process.
    ///
    /// # Errors
    /// When it cannot; nothing of it runs then.
    pub fn restore(&self, images: &Path) -> Result<u32, CriuError> {
        let failed = |why: String| CriuError::Restore { images: images.to_owned(), why };
        let directory = File::open(images).map_err(|error| failed(error.to_string()))?;
        let options = options(&directory, RESTORE_LOG);
        let mut running = self.start()?;
        let answer = running.ask(&request(Asked::Restore, Some(&options)))?;
        match answer.process {
            Some(process) if answer.is_done => Ok(process),
            _ => Err(failed(explained(&images.join(RESTORE_LOG), &answer))),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "CRIU is a program of its own")]
    fn start(&self) -> Result<Running, CriuError> {
        let failed = |source| CriuError::Start { program: self.program.clone(), source };
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        let (socket, other) = rustix::net::socketpair(AddressFamily::UNIX, kind, flags, None)
            .map_err(|error| failed(error.into()))?;
        let child = Command::new(&self.program)
            .args(["swrk", "0"])
            .stdin(Stdio::from(other))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        Ok(Running { program: self.program.clone(), child, socket })
    }
}

impl Standing {
    /// Lets the processes go on. Where others could not be captured, what was written is of no use: it is not `kept`.
    ///
    /// # Errors
    /// When CRIU says that what it has written is not whole.
    pub fn go_on(mut self, is_kept: bool) -> Result<(), CriuError> {
        self.running.confirm(is_kept)?;
        let answer = self.running.receive()?;
        if !is_kept {
            return Ok(());
        }
        let failed = |why| CriuError::Dump { process: self.process, why };
        if !answer.is_done {
            return Err(failed(explained(&self.images.join(DUMP_LOG), &answer)));
        }
        mend(&self.images).map_err(|error| failed(error.to_string()))
    }
}

/// Puts right how shared files that processes write to were opened.
///
/// CRIU takes that from the mapping before, where it is of the same file: of one that is only read, so that what it has
/// written cannot be brought back (seen with the locks of Open MPI's `PMIx`).
fn mend(images: &Path) -> io::Result<()> {
    for entry in fs::read_dir(images)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with("mm-") {
            continue;
        }
        let mut octets = fs::read(&path)?;
        let places = read_only_mappings(&octets).ok_or_else(|| io::Error::other(Damaged))?;
        if places.is_empty() {
            continue;
        }
        for place in places {
            octets[place] = READ_AND_WRITE;
        }
        fs::write(&path, octets)?;
    }
    Ok(())
}

/// `O_RDWR`, as a number of one octet.
const READ_AND_WRITE: u8 = 2;

/// Where in CRIU's `mm_entry`, behind two marks and its length of four octets each, stands a 0 for how the file of a mapping
/// was opened that is shared and can be written.
fn read_only_mappings(octets: &[u8]) -> Option<Vec<usize>> {
    /// The field of `mm_entry` with a `vma_entry`, and the fields of that.
    const MAPPING: u32 = 14;
    const PROTECTION: u32 = 5;
    const FLAGS: u32 = 6;
    const OPENED: u32 = 10;
    const WRITE: u64 = 2;
    const SHARED: u64 = 1;
    const HEAD_BYTES: usize = 12;
    let message = octets.get(HEAD_BYTES..)?;
    let mut places = Vec::new();
    let mut all = fields(message);
    while let Some(field) = all.next() {
        let (MAPPING, Value::Octets(mapping)) = field.ok()? else { continue };
        let begin = octets.len() - all.left() - mapping.len();
        let (mut can_write, mut is_shared, mut opened) = (false, false, None);
        let mut parts = fields(mapping);
        while let Some(part) = parts.next() {
            match part.ok()? {
                (PROTECTION, Value::Number(protection)) => can_write = protection & WRITE != 0,
                (FLAGS, Value::Number(flags)) => is_shared = flags & SHARED != 0,
                // The octet that was read last.
                (OPENED, Value::Number(0)) => {
                    opened = Some(begin + mapping.len() - parts.left() - 1)
                }
                _ => {}
            }
        }
        places.extend(opened.filter(|_| can_write && is_shared));
    }
    Some(places)
}

impl Running {
    fn ask(&mut self, request: &Message) -> Result<Answer, CriuError> {
        self.send(request)?;
        self.receive()
    }

    fn send(&mut self, request: &Message) -> Result<(), CriuError> {
        rustix::net::send(&self.socket, request.bytes(), SendFlags::NOSIGNAL)
            .map(drop)
            .map_err(|error| self.failed(error.into()))
    }

    fn receive(&mut self) -> Result<Answer, CriuError> {
        let mut room = vec![0; ANSWER_BYTES_MAX];
        let received = loop {
            match rustix::net::recv(&self.socket, &mut room[..], RecvFlags::empty()) {
                Err(rustix::io::Errno::INTR) => {}
                Ok((_, count)) => break count,
                Err(error) => return Err(self.failed(error.into())),
            }
        };
        let octets = room.get(..received).unwrap_or_default();
        if octets.is_empty() {
            return Err(self.failed(io::ErrorKind::UnexpectedEof.into()));
        }
        read_answer(octets).map_err(|damaged| self.failed(io::Error::other(damaged)))
    }

    /// Answers a notice.
    fn confirm(&mut self, is_fine: bool) -> Result<(), CriuError> {
        self.send(&request(Asked::Notify, None).flag(3, is_fine))
    }

    fn failed(&self, source: io::Error) -> CriuError {
        CriuError::Talk { program: self.program.clone(), source }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Its socket is closed behind this, and it ends with it; what it has stopped goes on then. A restored program is no
        // part of it.
        if let Ok(None) = self.child.try_wait() {
            let closed = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
            if closed.is_err() {
                // It has ended meanwhile.
            }
        }
        drop(self.child.wait());
    }
}

fn request(asked: Asked, options: Option<&Message>) -> Message {
    let request = Message::default().number(1, asked as u64);
    match options {
        Some(options) => request.message(2, options),
        None => request,
    }
}

/// What capture and restore have in common: CRIU's `criu_opts`.
fn options(images: &File, log: &str) -> Message {
    /// `criu_network_lock_method`: it locks no connection.
    const SKIP: u64 = 3;
    /// `criu_cg_mode`: groups of resources are those of the container.
    const IGNORE: u64 = 0;
    let images = u64::try_from(images.as_raw_fd()).expect("descriptors are not negative");
    Message::default()
        .number(1, images)
        .flag(5, true)
        .flag(8, true)
        .number(9, LOG_LEVEL)
        .text(10, log)
        .flag(18, true)
        .number(34, IGNORE)
        .number(35, GHOST_BYTES_MAX)
        .number(64, SKIP)
}

/// Reads CRIU's `criu_resp`.
fn read_answer(octets: &[u8]) -> Result<Answer, Damaged> {
    let mut answer = Answer::default();
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    for field in fields(octets) {
        match field? {
            (2, Value::Number(is_done)) => answer.is_done = is_done != 0,
            (4, Value::Octets(restored)) => {
                if let Some((1, Value::Number(process))) = fields(restored).next().transpose()? {
                    answer.process = u32::try_from(process).ok();
                }
            }
            (5, Value::Octets(notice)) => {
                for field in fields(notice) {
                    if let (1, Value::Octets(name)) = field? {
                        answer.notice = Some(text(name));
                    }
                }
            }
            (9, Value::Octets(error)) => answer.error = Some(text(error)),
            (10, Value::Octets(version)) => {
                for field in fields(version) {
                    match field? {
                        (1, Value::Number(number)) => answer.version.0 = number,
                        (2, Value::Number(number)) => answer.version.1 = number,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    Ok(answer)
}

/// Why something failed: what CRIU has written of it, or says itself.
fn explained(log: &Path, answer: &Answer) -> String {
    let written = fs::read(log).unwrap_or_default();
    let written = String::from_utf8_lossy(&written).into_owned();
    first_error(&written)
        .or_else(|| answer.error.clone())
        .unwrap_or_else(|| format!("`{}` may say why", log.display()))
}

/// The first error in a log that has a consequence.
fn first_error(log: &str) -> Option<String> {
    // It would raise a limit that it does not need here.
    let errors = log.lines().filter(|line| line.contains("Error (") && !line.contains("rlimit:"));
    let (_, error) = errors.clone().next()?.split_once("Error (")?;
    let (_, text) = error.split_once("): ")?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_error_of_a_log_that_matters_is_told() {
        let log = "(00.05) Error (criu/util.c:1533): rlimit: Can't setup RLIMIT_NOFILE for self: Operation not permitted\n\
                   (00.11) Error (criu/files-reg.c:1790): Can't lookup mount=24 for fd=10 path=/dev/null\n\
                   (00.13) Error (criu/cr-dump.c:2111): Dumping FAILED.\n";
        assert_eq!(
            first_error(log).as_deref(),
            Some("Can't lookup mount=24 for fd=10 path=/dev/null")
        );
        assert_eq!(first_error("(00.1) fine\n"), None);
    }

    #[test]
    fn an_answer_is_read_as_crius_interface_says() {
        let notice = Message::default().text(1, "post-dump").number(2, 77);
        let octets = Message::default().number(1, 6).flag(2, true).message(5, &notice);
        let answer = read_answer(octets.bytes()).expect("it is whole");
        assert!(answer.is_done);
        assert_eq!(answer.notice.as_deref(), Some("post-dump"));
        let version = Message::default().number(1, 4).number(2, 2).text(3, "v4.2");
        let octets = Message::default().number(1, 10).flag(2, true).message(10, &version);
        assert_eq!(read_answer(octets.bytes()).expect("it is whole").version, (4, 2));
    }

    #[test]
    fn a_mapping_that_is_shared_and_written_is_of_a_file_that_was_opened_so() {
        let mapping = |protection: u64, flags: u64, opened: u64| {
            Message::default()
                .number(1, 4_096)
                .number(5, protection)
                .number(6, flags)
                .number(10, opened)
        };
        let image = |mappings: &[Message]| {
            let all = Message::default().number(1, 7);
            let all =
                mappings.iter().fold(all, |all, mapping| all.message(14, mapping)).number(2, 9);
            let mut octets = vec![0; 12];
            octets.extend_from_slice(all.bytes());
            octets
        };
        let home = tempfile::tempdir().expect("a directory");
        // Read only; private; opened rightly; and as CRIU has it wrong.
        let mappings = [mapping(1, 1, 0), mapping(3, 2, 0), mapping(3, 1, 2), mapping(3, 1, 0)];
        let path = home.path().join("mm-7.img");
        fs::write(&path, image(&mappings)).expect("room");
        mend(home.path()).expect("it is mended");
        let expected = [mapping(1, 1, 0), mapping(3, 2, 0), mapping(3, 1, 2), mapping(3, 1, 2)];
        assert_eq!(fs::read(&path).expect("it is there"), image(&expected));
        assert_eq!(read_only_mappings(&[0; 5]), None);
    }

    #[test]
    fn a_program_that_is_no_criu_is_said_to_be_none() {
        let error = Criu::new("/nowhere/criu").version().expect_err("it is not there");
        assert!(matches!(error, CriuError::Start { .. }), "{error:?}");
        let error = Criu::new("true").version().expect_err("it says nothing");
        assert!(matches!(error, CriuError::Talk { .. }), "{error:?}");
    }

    proptest! {
        #[test]
        fn any_answer_is_read_or_refused(octets in proptest::collection::vec(any::<u8>(), 0..300)) {
            drop(read_answer(&octets));
            let places = read_only_mappings(&octets).unwrap_or_default();
            prop_assert!(places.iter().all(|place| octets[*place] == 0));
        }
    }
}
