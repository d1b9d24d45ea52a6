//! What keeps a process from calling the MPI at hand.

use std::path::PathBuf;
use std::process::ExitStatus;

/// Why a library could not be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// There is none under that name, or it cannot be run.
    #[error("cannot run `{}`", .compiler.display())]
    NotThere {
        /// As it was called.
        compiler: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It ended with an error.
    #[error("`{}` fails ({status}){}{said}", .compiler.display(), if said.is_empty() { "" } else { ":\n" })]
    Refused {
        /// As it was called.
        compiler: PathBuf,
        /// How it ended.
        status: ExitStatus,
        /// Its messages.
        said: String,
    },
    /// What it is built from or to cannot be written.
    #[error("cannot write `{}`", .path.display())]
    Unwritten {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Why a process could not join the ranks.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The library of the ranks could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// It was built, and cannot be loaded.
    #[error("cannot load `{}`: {said}", .path.display())]
    NotLoaded {
        /// Where it lies.
        path: PathBuf,
        /// What the loader said.
        said: String,
    },
    /// It belongs to another MPI than the `mpirun` that started this process.
    #[error(
        "`mpirun` started {started} processes, and the MPI of `{}` knows of {joined}",
        .compiler.display()
    )]
    OtherMpi {
        /// What it was built with.
        compiler: PathBuf,
        /// How many ranks the environment tells of.
        started: usize,
        /// How many MPI tells of.
        joined: usize,
    },
}
