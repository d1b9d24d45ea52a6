//! The directory of a lab: what runs there, and what was made for it.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use meikyo_units::WallTime;
use serde::{Deserialize, Serialize};

use crate::blueprint::Blueprint;
use crate::engine::Engine;
use crate::inside::BLUEPRINT;
use crate::protocol::Ready;
use crate::system;

/// Names another directory than the usual one.
pub const DIRECTORY_VARIABLE: &str = "MEIKYO_LAB";
const RECORD: &str = "lab.json";
/// The cluster file as it was when the lab was brought up.
pub(crate) const CLUSTER: &str = "cluster.toml";
const KEEPER: &str = "keeper.json";
pub(crate) const SOCKET: &str = "socket";
pub(crate) const CONSOLE: &str = "console";
pub(crate) const KEEPER_LOG: &str = "keeper.log";
/// Where the root of the inside is put together: seen by no other process.
pub(crate) const SCRATCH: &str = "scratch";
const FILES: &str = "files";

/// What was written down of a lab before it was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The cluster's name.
    pub name: String,
    /// The cluster file as it was then.
    pub cluster: PathBuf,
    /// What it runs on.
    pub engine: Engine,
    /// Memory of a machine of its own, in MiB.
    pub memory_mib: u64,
    /// The directory that can be written inside.
    pub files: PathBuf,
    /// What can be read inside beside the system's directories.
    pub read: Vec<PathBuf>,
    /// How many switches it has.
    pub switches: usize,
    /// How many hosts it has.
    pub hosts: usize,
    /// When it was asked for, in nanoseconds since 1970.
    pub asked_ns: i64,
    /// How this program is started as the first process inside.
    pub inside: Vec<String>,
}

/// The process that keeps a lab. A process id alone could come to mean another process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Keeper {
    pub(crate) process: u32,
    /// In clock ticks since the machine was started, as `/proc` says it.
    pub(crate) start_ticks: u64,
}

/// A lab's state as its keeper tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// What was written down of it.
    pub record: Record,
    /// What the inside said when it was ready.
    pub ready: Ready,
    /// How many commands run in it.
    pub commands: usize,
    /// Resident memory of all its processes, in bytes.
    pub resident_bytes: u64,
}

/// The directory of a lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory(PathBuf);

/// A lab's directory cannot be made or used.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// There is a lab already.
    #[error("a lab runs in {0} already")]
    Running(PathBuf),
    /// Somebody else's files are there.
    #[error("{0} is not a lab's directory, and not empty")]
    Foreign(PathBuf),
    /// No lab is there.
    #[error("no lab runs in {0}")]
    None(PathBuf),
    /// There is nothing that could be written into.
    #[error("a lab cannot write into {0}, which is not a directory")]
    NoFiles(PathBuf),
    /// What can be written inside has a file already where the lab puts one of its own.
    #[error("{0} is there already, and the lab has one of that name")]
    Taken(PathBuf),
    /// What is to be read inside has something that the lab has of its own.
    #[error("{0} cannot be shown inside: the lab has its own files there; name a part of it")]
    Shown(PathBuf),
    /// What can be written inside has the lab's own directory in it.
    #[error("{0} cannot be written inside: the lab's own directory is in it")]
    Inside(PathBuf),
    /// A part cannot be read or written.
    #[error("cannot use {path}")]
    Io {
        /// The part.
        path: PathBuf,
        /// The error of reading or writing.
        #[source]
        source: io::Error,
    },
    /// A kernel's command line would fall apart.
    #[error("the path {0} has spaces or quotes, which a kernel's command line cannot hold")]
    Path(PathBuf),
}

impl Directory {
    /// The directory at this path, which is made absolute.
    ///
    /// # Errors
    /// [`DirectoryError`] if the path has characters that a kernel's command line cannot hold.
    pub fn at(path: &Path) -> Result<Self, DirectoryError> {
        let path = std::path::absolute(path).map_err(failed(path))?;
        plain(&path)?;
        Ok(Self(path))
    }

    /// The directory of this user's lab where none is named.
    pub fn usual() -> PathBuf {
        if let Some(path) = std::env::var_os(DIRECTORY_VARIABLE) {
            return path.into();
        }
        match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_dir()) {
            Some(path) => path.join("meikyo-lab"),
            None => std::env::temp_dir().join(format!("meikyo-lab-{}", system::user().0)),
        }
    }

    /// Where the lab keeps its files on the host.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The directory that can be written inside, unless another one is asked for.
    pub fn own_files(&self) -> PathBuf {
        self.0.join(FILES)
    }

    /// Makes it, in place of what a lab that is gone has left.
    pub(crate) fn make(&self) -> Result<(), DirectoryError> {
        if self.keeper().is_some() {
            return Err(DirectoryError::Running(self.0.clone()));
        }
        if self.0.exists() {
            let is_empty =
                std::fs::read_dir(&self.0).is_ok_and(|mut entries| entries.next().is_none());
            if !is_empty && !self.is_of_a_lab() {
                return Err(DirectoryError::Foreign(self.0.clone()));
            }
            self.remove()?;
        }
        let make = |path: PathBuf| {
            DirBuilder::new().mode(0o700).recursive(true).create(&path).map_err(failed(&path))
        };
        make(self.0.clone())?;
        // First, so that what an end at any moment leaves is known to be a lab's.
        let record = self.0.join(RECORD);
        std::fs::write(&record, "").map_err(failed(&record))?;
        make(self.own_files())?;
        make(self.0.join(SCRATCH))
    }

    /// Whose it is, as a user id; `None` if it is not there.
    pub fn owner(&self) -> Option<u32> {
        std::fs::metadata(&self.0).ok().map(|metadata| metadata.uid())
    }

    /// Whether a lab was begun here.
    pub fn is_of_a_lab(&self) -> bool {
        self.0.join(RECORD).exists()
    }

    /// Waits until no other lab is being brought up beside this one, and lets none until the file is
    /// dropped: two that found nothing here would take each other's place.
    pub(crate) fn alone(&self) -> Result<std::fs::File, DirectoryError> {
        let beside = self.0.parent().unwrap_or_else(|| Path::new("/"));
        DirBuilder::new().recursive(true).create(beside).map_err(failed(beside))?;
        let file = std::fs::File::open(beside).map_err(failed(beside))?;
        file.lock().map_err(failed(beside))?;
        Ok(file)
    }

    /// Waits until nobody else sends frames through the lab to find out where they go, and lets nobody
    /// until the file is dropped.
    pub(crate) fn undisturbed(&self) -> Result<std::fs::File, DirectoryError> {
        let record = self.0.join(RECORD);
        let file = std::fs::File::open(&record).map_err(failed(&record))?;
        file.lock().map_err(failed(&record))?;
        Ok(file)
    }

    /// Takes it away with everything in it.
    pub(crate) fn remove(&self) -> Result<(), DirectoryError> {
        match std::fs::remove_dir_all(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result.map_err(failed(&self.0)),
        }
    }

    pub(crate) fn write(&self, name: &str, value: &impl Serialize) -> Result<(), DirectoryError> {
        let path = self.0.join(name);
        let bytes = serde_json::to_vec(value).expect("numbers and texts have a JSON form");
        std::fs::write(&path, bytes).map_err(failed(&path))
    }

    fn read<T: for<'a> Deserialize<'a>>(&self, name: &str) -> Option<T> {
        serde_json::from_slice(&std::fs::read(self.0.join(name)).ok()?).ok()
    }

    pub(crate) fn write_record(&self, record: &Record) -> Result<(), DirectoryError> {
        self.write(RECORD, record)
    }

    /// What was written down of the lab.
    ///
    /// # Errors
    /// [`DirectoryError::None`] if nothing was.
    pub fn record(&self) -> Result<Record, DirectoryError> {
        self.read(RECORD).ok_or_else(|| DirectoryError::None(self.0.clone()))
    }

    /// What is built in the lab.
    ///
    /// # Errors
    /// [`DirectoryError::None`] if there is none.
    pub fn blueprint(&self) -> Result<Blueprint, DirectoryError> {
        self.read(BLUEPRINT).ok_or_else(|| DirectoryError::None(self.0.clone()))
    }

    pub(crate) fn write_keeper(&self) -> Result<(), DirectoryError> {
        let process = std::process::id();
        let start_ticks = start_ticks(process).unwrap_or(0);
        self.write(KEEPER, &Keeper { process, start_ticks })
    }

    /// The process that keeps the lab, if it lives.
    pub(crate) fn keeper(&self) -> Option<Keeper> {
        let keeper: Keeper = self.read(KEEPER)?;
        (start_ticks(keeper.process) == Some(keeper.start_ticks)).then_some(keeper)
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> DirectoryError {
    let path = path.to_owned();
    move |source| DirectoryError::Io { path, source }
}

/// Refuses a path that would fall apart on a kernel's command line.
pub(crate) fn plain(path: &Path) -> Result<(), DirectoryError> {
    let is_plain = |c: char| !c.is_whitespace() && !matches!(c, '"' | '\'' | ',');
    match path.to_str() {
        Some(text) if text.chars().all(is_plain) => Ok(()),
        _ => Err(DirectoryError::Path(path.into())),
    }
}

/// When a process was started; `None` if it is gone or has ended.
fn start_ticks(process: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, which may hold anything, is in parentheses; the state comes after it.
    let mut rest = stat.rsplit_once(')')?.1.split_whitespace();
    let state = rest.next()?;
    let ticks = rest.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(ticks)
}

/// The present, in nanoseconds of Unix time.
pub(crate) fn now_ns() -> i64 {
    WallTime::now().as_nanos()
}
