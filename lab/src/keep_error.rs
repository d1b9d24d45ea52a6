//! Why a lab could not be kept.

use std::io;
use std::path::PathBuf;

use crate::directory::DirectoryError;
use crate::engine;

/// Why a lab could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// Its directory is not usable.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The kernel for it is not usable.
    #[error(transparent)]
    Engine(#[from] engine::EngineError),
    /// A descriptor, a socket, a process.
    #[error("cannot {doing}")]
    Io {
        /// The operation that failed, in words.
        doing: &'static str,
        /// The error of the system call.
        #[source]
        source: io::Error,
    },
    /// Whoever is root in the lab could not write there.
    #[error(
        "{files} belongs to root, and its file system cannot show it to a lab as another one's; give \
         it to another user, as by `chown nobody {files}`", files = files.display()
    )]
    Owners {
        /// Directory that is shared with the lab.
        files: PathBuf,
        /// The error of changing its owner or mode.
        #[source]
        source: io::Error,
    },
    /// A lab that root starts could not read this program.
    #[error(
        "{path} cannot be read by everybody, and a lab that root starts runs as nobody; type \
         `chmod o+rx {path}`", path = .0.display()
    )]
    Program(PathBuf),
    /// What came over the channel makes no sense.
    #[error("the channel to the inside is broken: {0}")]
    Channel(String),
    /// The inside has ended.
    #[error("the inside has ended; see {0}")]
    Ended(PathBuf),
    /// The inside says why it could not be set up.
    #[error("{0}")]
    SetUp(String),
}

pub(crate) fn failed(doing: &'static str) -> impl FnOnce(io::Error) -> KeepError {
    move |source| KeepError::Io { doing, source }
}
