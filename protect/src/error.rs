//! Why a rank does not get what it asks for.

use std::io;
use std::path::PathBuf;

use meikyo_checkpoint::image::ImageError;

use crate::standstill::StandstillError;

/// Why the daemon does not do what it is asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error("no daemon answers at `{path}`: start `meikyo checkpoint daemon` on this host")]
    Unreachable { path: PathBuf, source: io::Error },
    #[error("the daemon has answered what this version does not know")]
    Foreign,
    #[error("the daemon refuses: {0}")]
    Refused(String),
    #[error(
        "`meikyo_checkpoint_restore` is called before the first save, also by a program that begins anew"
    )]
    NotBegun,
    #[error("threads of the program do not stand still")]
    Standstill(#[from] StandstillError),
    #[error("cannot read `{path}`")]
    Read { path: PathBuf, source: io::Error },
    #[error("`{path}` cannot be read")]
    Image { path: PathBuf, source: ImageError },
    #[error("cannot cut `{path}` back to the length that it had")]
    Cut { path: PathBuf, source: io::Error },
    #[error("there is no memory for the array `{name}`")]
    Memory { name: String, source: io::Error },
    #[error("the array `{0}` is too large")]
    TooLarge(String),
    #[error("there is an array `{0}` already")]
    Twice(String),
    #[error("the checkpoint does not have all of the array `{0}`")]
    Missing(String),
    #[error("the array `{0}` had another type or shape when it was saved")]
    Other(String),
    #[error(
        "the array `{0}` is no block of one that all ranks share: only as many ranks as have saved can go on with it"
    )]
    Alone(String),
}
