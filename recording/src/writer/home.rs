//! Whether a stream still lies where it was opened.
//!
//! Whoever removes a directory takes nothing from a process that has its files open: writes go on
//! without an error, into files that nobody can open any more. The lock, which a writer holds as
//! long as it lives, is looked up by its path and compared with what is open.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::layout;

/// A stream's directory as it was when the stream was opened.
#[derive(Debug)]
pub(super) struct Home {
    lock_path: PathBuf,
    /// Keeps the stream locked, and its inode from being used for another file.
    lock: File,
}

/// What lies at the path of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// The stream's directory stands there.
    Stream,
    /// No file is there.
    Nothing,
    /// Something else that has its name.
    Other,
}

impl Found {
    /// What happened to a recording, for people.
    pub(super) fn words(self, removed: bool) -> &'static str {
        match (self, removed) {
            (Self::Other, _) => "was replaced by another",
            (_, true) => "was removed",
            (_, false) => "was moved away",
        }
    }
}

impl Home {
    pub(super) fn new(dir: &Path, stream: &str, lock: File) -> Self {
        Self { lock_path: layout::stream_dir(dir, stream).join("lock"), lock }
    }

    /// Looks what lies there now. What cannot be looked up for another reason than that it is gone
    /// is taken for the stream: whether it can be written is told by writing.
    pub(super) fn look(&self) -> Found {
        let known = self.lock.metadata();
        match (fs::metadata(&self.lock_path), known) {
            (Ok(found), Ok(known)) if identity(&found) == identity(&known) => Found::Stream,
            (Ok(_), Ok(_)) => Found::Other,
            (Err(error), _) if is_gone(&error) => Found::Nothing,
            (Err(_), _) | (_, Err(_)) => Found::Stream,
        }
    }

    /// Whether what is left of the path lies in the file system that the stream was in: where it was
    /// unmounted, a new directory would fill another disk.
    pub(super) fn has_file_system(&self) -> bool {
        let left = self.lock_path.ancestors().skip(1).find_map(|path| {
            let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
            fs::metadata(path).ok()
        });
        let known = self.lock.metadata().ok();
        left.zip(known).is_some_and(|(left, known)| left.dev() == known.dev())
    }
}

/// Whether a file that is open has no name any more.
pub(super) fn is_removed(file: &File) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.nlink() == 0)
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, StaleNetworkFileHandle};
    matches!(error.kind(), NotFound | NotADirectory | StaleNetworkFileHandle)
}
