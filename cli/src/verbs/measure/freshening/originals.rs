//! What the caches were set to before they were freshened, kept in the recording's directory.
//!
//! An agent whose cache was set to 0 does not tell what it was before. So the original is on the disk
//! before the agent is told, and forgotten after it was set back: whatever ends a measurement, also a
//! `kill -9` or a power cut, a later one knows what belongs there.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use meikyo_recording::unfinished::{Durability, replace_file};
use serde::{Deserialize, Serialize};

/// Name of the file in the recording's directory.
const FILE: &str = "freshened.json";

const SCHEMA: &str = "meikyo.freshened/1";

/// The originals of one recording.
#[derive(Debug)]
pub(super) struct Originals {
    directory: PathBuf,
    seconds: BTreeMap<SocketAddr, u32>,
}

/// Contents of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    schema: String,
    caches: Vec<KeptCache>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptCache {
    /// Where the agent listens.
    address: SocketAddr,
    /// nsCacheTimeout of its ifTable before it was set to 0.
    timeout_s: u32,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum OriginalsError {
    /// It cannot be read.
    #[error("cannot read the previous cache settings in `{path}`")]
    Read {
        /// File with the previous settings.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is not what was written.
    #[error("`{path}`, which contains the previous cache settings, is damaged")]
    Damaged {
        /// File with the previous settings.
        path: PathBuf,
        /// What the parser said.
        source: serde_json::Error,
    },
    /// It is of a later version.
    #[error("`{path}` is `{schema}`; this version reads `{SCHEMA}`")]
    Schema {
        /// File with the previous settings.
        path: PathBuf,
        /// Schema that the file names.
        schema: String,
    },
    /// It cannot be written.
    #[error("cannot save the previous cache settings in `{path}`")]
    Write {
        /// File with the previous settings.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Originals {
    /// Those of the recording in `directory`; none where there is no file.
    pub(super) fn load(directory: &Path) -> Result<Self, OriginalsError> {
        let path = directory.join(FILE);
        let mut originals = Self { directory: directory.into(), seconds: BTreeMap::new() };
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(originals),
            Err(source) => return Err(OriginalsError::Read { path, source }),
        };
        let kept: Kept = match serde_json::from_slice(&text) {
            Ok(kept) => kept,
            Err(source) => return Err(OriginalsError::Damaged { path, source }),
        };
        if kept.schema != SCHEMA {
            return Err(OriginalsError::Schema { path, schema: kept.schema });
        }
        let caches = kept.caches.into_iter();
        originals.seconds.extend(caches.map(|cache| (cache.address, cache.timeout_s)));
        Ok(originals)
    }

    /// The timeout of the agent at `address` before it was freshened, seconds.
    pub(super) fn seconds_of(&self, address: SocketAddr) -> Option<u32> {
        self.seconds.get(&address).copied()
    }

    /// The agents that are not set back yet.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.seconds.keys().copied().collect()
    }

    /// Keeps an original; it is on the disk when this returns.
    pub(super) fn remember(
        &mut self,
        address: SocketAddr,
        seconds: u32,
    ) -> Result<(), OriginalsError> {
        if self.seconds.insert(address, seconds) == Some(seconds) {
            return Ok(());
        }
        self.write()
    }

    /// Forgets one that was set back.
    pub(super) fn forget(&mut self, address: SocketAddr) -> Result<(), OriginalsError> {
        if self.seconds.remove(&address).is_none() {
            return Ok(());
        }
        self.write()
    }

    fn write(&self) -> Result<(), OriginalsError> {
        let path = self.directory.join(FILE);
        self.try_write(&path).map_err(|source| OriginalsError::Write { path, source })
    }

    fn try_write(&self, path: &Path) -> io::Result<()> {
        if self.seconds.is_empty() {
            fs::remove_file(path)?;
        } else {
            let caches = self.seconds.iter();
            let caches = caches.map(|(&address, &timeout_s)| KeptCache { address, timeout_s });
            let kept = Kept { schema: SCHEMA.into(), caches: caches.collect() };
            return replace_file(path, &serde_json::to_vec(&kept)?, Durability::Disk);
        }
        File::open(&self.directory)?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn originals_outlive_the_process_until_they_are_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let [one, two]: [SocketAddr; 2] =
            ["127.0.0.1:161", "[::1]:161"].map(|address| address.parse().unwrap());
        let mut originals = Originals::load(directory.path()).unwrap();
        originals.remember(one, 3).unwrap();
        originals.remember(two, 30).unwrap();
        let mut later = Originals::load(directory.path()).unwrap();
        assert_eq!((later.seconds_of(one), later.seconds_of(two)), (Some(3), Some(30)));
        later.forget(one).unwrap();
        assert_eq!(Originals::load(directory.path()).unwrap().addresses(), [two]);
        later.forget(two).unwrap();
        assert!(!directory.path().join(FILE).exists());
    }

    #[test]
    fn a_damaged_file_is_told_with_its_place() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(FILE), "{").unwrap();
        let error = Originals::load(directory.path()).unwrap_err();
        assert!(
            matches!(error, OriginalsError::Damaged { .. }) && error.to_string().contains(FILE)
        );
        fs::write(directory.path().join(FILE), r#"{"schema":"later","caches":[]}"#).unwrap();
        let error = Originals::load(directory.path()).unwrap_err().to_string();
        assert!(error.contains("`later`") && error.contains("`meikyo.freshened/1`"), "{error}");
    }
}
