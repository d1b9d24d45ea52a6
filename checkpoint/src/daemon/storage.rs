//! A daemon's directory: who it is, its votes, its generations.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::DaemonError;
use crate::charter::{Generation, Incarnation};
use crate::journal::Files;
use crate::member::Prepared;
use crate::shelf::{OpenStoredError, Stored};

/// The file that says which incarnation this is.
const IDENTITY: &str = "identity";

/// The directory of generations.
const GENERATIONS: &str = "generations";

pub(super) struct Storage {
    directory: PathBuf,
}

/// The incarnation that founds a place.
pub(super) const fn founder(place: usize) -> Incarnation {
    Incarnation(place as u64 + 1)
}

/// A number that no other start of a daemon has.
pub(super) fn random() -> u64 {
    let mut octets = [0; 8];
    let random = ring::rand::SystemRandom::new();
    ring::rand::SecureRandom::fill(&random, &mut octets)
        .expect("the system gave random numbers for the job's key");
    u64::from_le_bytes(octets)
}

impl Storage {
    pub(super) fn open(directory: &Path) -> Result<Self, DaemonError> {
        let unusable = |source| DaemonError::Directory { path: directory.to_owned(), source };
        crate::shelf::create_directory(&directory.join(GENERATIONS)).map_err(unusable)?;
        Ok(Self { directory: directory.to_owned() })
    }

    /// Who this is: what the directory says, or who founds the group, or somebody new.
    pub(super) fn incarnation(&self, founds: Option<usize>) -> io::Result<Incarnation> {
        let path = self.directory.join(IDENTITY);
        match fs::read_to_string(&path) {
            Ok(text) => {
                let number = u64::from_str_radix(text.trim(), 16).map_err(io::Error::other)?;
                Ok(Incarnation(number))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let incarnation = founds.map_or_else(|| Incarnation(random()), founder);
                let mut file = private().create_new(true).open(&path)?;
                file.write_all(format!("{:016x}\n", incarnation.0).as_bytes())?;
                file.sync_all()?;
                self.sync_directory()?;
                Ok(incarnation)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether there are generations, whole or not.
    pub(super) fn has_generations(&self) -> io::Result<bool> {
        Ok(fs::read_dir(self.directory.join(GENERATIONS))?.next().is_some())
    }

    /// Where a generation lies.
    pub(super) fn generation(&self, generation: Generation) -> PathBuf {
        self.directory.join(GENERATIONS).join(format!("{:012}", generation.0))
    }

    /// Deletes what there is of a generation, the manifest first.
    pub(super) fn remove(&self, generation: Generation) {
        let directory = self.generation(generation);
        // What cannot be deleted takes room, and nothing else: it is tried again at the next start.
        drop(fs::remove_file(directory.join("manifest")));
        drop(fs::remove_dir_all(&directory));
    }

    /// What is whole; it is on the disk when this returns, and everything else is deleted.
    pub(super) fn whole_generations(&self) -> io::Result<BTreeMap<Generation, Prepared>> {
        let mut whole = BTreeMap::new();
        for entry in fs::read_dir(self.directory.join(GENERATIONS))? {
            let entry = entry?;
            let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
            let Some(generation) = number.map(Generation) else { continue };
            let stored = Stored::open(&self.generation(generation));
            match stored {
                // A disk that cannot be read now may be read later: nothing is deleted for it.
                Err(OpenStoredError::Read { source, .. })
                    if source.kind() != io::ErrorKind::NotFound =>
                {
                    return Err(source);
                }
                Ok(stored) if stored.manifest().generation == generation => {
                    // Whoever wrote it may have been killed before it was on the disk.
                    stored.sync()?;
                    let (lens, manifest) = (stored.geometry().lens().to_vec(), stored.checksum());
                    whole.insert(generation, Prepared { lens, manifest });
                }
                _ => self.remove(generation),
            }
        }
        Ok(whole)
    }

    fn sync_directory(&self) -> io::Result<()> {
        File::open(&self.directory)?.sync_all()
    }

    fn existing(&self, name: &str) -> io::Result<Option<File>> {
        match OpenOptions::new().read(true).write(true).open(self.directory.join(name)) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

impl Files for Storage {
    type Error = io::Error;

    fn read(&mut self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.directory.join(name)) {
            Ok(octets) => Ok(Some(octets)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn append(&mut self, name: &str, octets: &[u8]) -> io::Result<()> {
        let path = self.directory.join(name);
        let is_new = !path.exists();
        let mut file = private().create(true).append(true).open(path)?;
        file.write_all(octets)?;
        file.sync_data()?;
        if is_new { self.sync_directory() } else { Ok(()) }
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        self.existing(name)?.map_or(Ok(()), |file| file.sync_all())?;
        self.sync_directory()
    }

    fn truncate(&mut self, name: &str, len: usize) -> io::Result<()> {
        let Some(file) = self.existing(name)? else { return Ok(()) };
        file.set_len(len as u64)?;
        file.sync_all()
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.directory.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
