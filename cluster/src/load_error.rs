//! Why a cluster file cannot be used.

use std::io;
use std::path::PathBuf;

use meikyo_places::{Problem, Problems};

/// Why a cluster file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read the cluster file `{path}`")]
    Read {
        /// The file as it was named.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// The file is larger than any cluster needs.
    #[error("the cluster file `{path}` has {size_bytes} bytes; at most {limit_bytes} are read")]
    TooLarge {
        /// The file as it was named.
        path: PathBuf,
        /// How long the file is.
        size_bytes: u64,
        /// How long it may be.
        limit_bytes: u64,
    },
    /// The file can be read and is wrong.
    #[error("{0}")]
    Invalid(Problems),
}

impl LoadError {
    /// The problems of an invalid file; empty if it could not be read at all.
    pub fn problems(&self) -> &[Problem] {
        match self {
            Self::Invalid(problems) => &problems.listed,
            Self::Read { .. } | Self::TooLarge { .. } => &[],
        }
    }
}
