//! `recording.toml`: what a recording is, and which version of the format it has.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::problem::read_regular;
use crate::unfinished::Unfinished;

/// The version of the format that this program writes, and the greatest that it reads.
pub const FORMAT_VERSION: u32 = 1;

/// The file in a recording's directory that makes it one.
pub const FILE_NAME: &str = "recording.toml";

const UNIX_EPOCH: &str = "1970-01-01T00:00:00Z";

/// Where the values of a recording come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// From real devices; `time` is wall-clock time.
    Measured,
    /// From a simulation; `time` is simulated, and its 0 is no date unless the epoch says so.
    Simulated,
}

impl Kind {
    /// The word that stands in files.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Simulated => "simulated",
        }
    }
}

/// What `recording.toml` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// The format version.
    pub format: u32,
    /// Measured or simulated.
    pub kind: Kind,
    /// The instant that is 0 in every `time`.
    pub epoch: String,
    /// The clock that `time` is read from.
    pub clock: String,
    /// The program that created the recording, and its version.
    pub created_by: String,
}

/// Why `recording.toml` could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// There is no `recording.toml`.
    #[error("`{path}` is not a recording: it has no `recording.toml`")]
    Missing {
        /// Directory without the file.
        path: PathBuf,
    },
    /// The recording was written by a newer version.
    #[error(
        "recording `{path}` has format version {found}, this program reads versions up to \
         {FORMAT_VERSION}: use the version of meikyo that wrote it, or a newer one"
    )]
    Newer {
        /// Directory of the newer recording.
        path: PathBuf,
        /// Its format version.
        found: u32,
    },
    /// The recording is of the other kind.
    #[error(
        "recording `{path}` is {found}, what is to be written is {wanted}: one recording has one source"
    )]
    OtherKind {
        /// Directory of the recording.
        path: PathBuf,
        /// What the file says.
        found: &'static str,
        /// The kind that was to be written.
        wanted: &'static str,
    },
    /// The file is not what it should be.
    #[error("`{path}` cannot be understood")]
    Syntax {
        /// Path of the `recording.toml`.
        path: PathBuf,
        /// What the TOML parser says.
        source: Box<toml::de::Error>,
    },
    /// The system refused.
    #[error("cannot {doing} `{path}`")]
    System {
        /// What was being done.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Reads what the recording in `dir` is.
///
/// # Errors
/// When there is none, it is of a newer format, or it cannot be read.
pub fn read(dir: &Path) -> Result<Identity, IdentityError> {
    let path = dir.join(FILE_NAME);
    let text = match read_regular(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(IdentityError::Missing { path: dir.into() });
        }
        Err(source) => return Err(IdentityError::System { doing: "read", path, source }),
    };
    // The version is looked at alone and first: a newer file may have keys unknown here.
    let version: Version = toml::from_str(&text)
        .map_err(|source| IdentityError::Syntax { path: path.clone(), source: Box::new(source) })?;
    if version.format > FORMAT_VERSION {
        return Err(IdentityError::Newer { path: dir.into(), found: version.format });
    }
    toml::from_str(&text).map_err(|source| IdentityError::Syntax { path, source: Box::new(source) })
}

#[derive(Deserialize)]
struct Version {
    format: u32,
}

/// Makes `dir` a recording of that kind, or checks that it is one.
///
/// Several streams may do this at once: the file appears whole, and the first one stays.
///
/// # Errors
/// When the directory cannot be made or holds a recording of another kind or a newer format.
pub fn create(dir: &Path, kind: Kind) -> Result<Identity, IdentityError> {
    let epoch = match kind {
        Kind::Measured => UNIX_EPOCH,
        Kind::Simulated => "start of the simulation",
    };
    create_from(dir, kind, epoch)
}

/// The same for simulated devices that count time as real ones do, by dates.
///
/// # Errors
/// As [`create`].
pub fn create_simulated_by_dates(dir: &Path) -> Result<Identity, IdentityError> {
    create_from(dir, Kind::Simulated, UNIX_EPOCH)
}

fn create_from(dir: &Path, kind: Kind, epoch: &str) -> Result<Identity, IdentityError> {
    let refused = |doing, path: &Path| {
        let path = path.to_path_buf();
        move |source| IdentityError::System { doing, path, source }
    };
    fs::create_dir_all(dir).map_err(refused("create", dir))?;
    let path = dir.join(FILE_NAME);
    if !path.exists() {
        // Several streams may do this at once: the first one's file stays.
        let mut file = Unfinished::create(&path).map_err(refused("create", &path))?;
        file.write_all(text_of(kind, epoch).as_bytes()).map_err(refused("write", &path))?;
        file.finish_if_absent().map_err(refused("create", &path))?;
    }
    let identity = read(dir)?;
    if identity.kind != kind {
        return Err(IdentityError::OtherKind {
            path: dir.into(),
            found: identity.kind.word(),
            wanted: kind.word(),
        });
    }
    Ok(identity)
}

fn text_of(kind: Kind, epoch: &str) -> String {
    let clock = match kind {
        Kind::Measured => "CLOCK_REALTIME",
        Kind::Simulated => "simulated",
    };
    format!(
        "# A recording of Meikyo; docs/recording-format.md describes it.\n\
         format = {FORMAT_VERSION}\n\
         kind = \"{}\"\n\
         epoch = \"{epoch}\"\n\
         clock = \"{clock}\"\n\
         created_by = \"meikyo {}\"\n",
        kind.word(),
        env!("CARGO_PKG_VERSION"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_of_one_kind() {
        let dir = tempfile::tempdir().unwrap();
        let created = create(dir.path(), Kind::Measured).unwrap();
        assert_eq!(read(dir.path()).unwrap(), created);
        assert_eq!(create(dir.path(), Kind::Measured).unwrap(), created);
        let error = create(dir.path(), Kind::Simulated).unwrap_err();
        assert!(matches!(error, IdentityError::OtherKind { .. }), "{error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn simulated_time_counts_from_the_start_or_by_dates() {
        let [one, other] = [(), ()].map(|()| tempfile::tempdir().unwrap());
        create_simulated_by_dates(one.path()).unwrap();
        let by_dates = create(one.path(), Kind::Simulated).unwrap();
        assert_eq!((by_dates.kind, &*by_dates.epoch), (Kind::Simulated, UNIX_EPOCH));
        let from_start = create(other.path(), Kind::Simulated).unwrap();
        assert_ne!(from_start.epoch, by_dates.epoch);
        assert_eq!(from_start.clock, by_dates.clock);
    }

    #[test]
    fn a_newer_format_is_refused_with_its_version() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(FILE_NAME), "format = 2\nshape = \"unheard of\"\n").unwrap();
        let message = read(dir.path()).unwrap_err().to_string();
        assert!(message.contains("format version 2"), "{message}");
        assert!(message.contains("up to 1"), "{message}");
    }
}
