//! A daemon's directory: who it is, its votes, its generations; and those that are kept in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::fs::{FallocateFlags, fallocate};

use super::DaemonError;
use super::memory::Memory;
use super::room::{room, used_in};
use crate::charter::{Generation, Incarnation};
use crate::journal::{FILE_BYTES_MAX, Files, NAMES};
use crate::layout::Layout;
use crate::level::Level;
use crate::recovery::Prepared;
use crate::shelf::{OpenStoredError, Stored, sync_directory};

/// The file that says which incarnation this is.
const IDENTITY: &str = "identity";

/// The directory of generations.
const GENERATIONS: &str = "generations";

/// A votes file that is not in use, with its room on the disk.
const SPARE: &str = "votes-spare";

/// Room that every votes file has though the disk is full: all that is written before it is left for the
/// other, and a record more.
const VOTES_BYTES: u64 = 2 * FILE_BYTES_MAX as u64;

/// What is behind the number of a generation that is being rebuilt, beside what there was of it.
const REBUILT: &str = ".rebuilt";

/// What is behind the number of what was there and cannot be used, until it was rebuilt.
const ASIDE: &str = ".aside";

/// What is behind the number of what is being deleted.
const FREED: &str = ".freed";

pub(super) struct Storage {
    directory: PathBuf,
    /// Where generations in memory are, if any are.
    memory: Option<Memory>,
    /// Generations that are there and not in the directory.
    in_memory: BTreeSet<Generation>,
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
    pub(super) fn open(directory: &Path, memory: Option<Memory>) -> Result<Self, DaemonError> {
        let unusable = |source| DaemonError::Directory { path: directory.to_owned(), source };
        crate::shelf::create_directory(&directory.join(GENERATIONS)).map_err(unusable)?;
        Ok(Self { directory: directory.to_owned(), memory, in_memory: BTreeSet::new() })
    }

    /// Who this is: what the directory says, or somebody new. A directory without a vote has forgotten what
    /// it promised, whoever it was.
    pub(super) fn incarnation(&self, remembers: bool) -> io::Result<Incarnation> {
        let path = self.directory.join(IDENTITY);
        if remembers {
            let text = fs::read_to_string(&path)?;
            let number = u64::from_str_radix(text.trim(), 16).map_err(io::Error::other)?;
            return Ok(Incarnation(number));
        }
        let incarnation = Incarnation(random());
        let beside = self.directory.join(format!("{IDENTITY}.unfinished"));
        let mut file = private().create(true).truncate(true).open(&beside)?;
        file.write_all(format!("{:016x}\n", incarnation.0).as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, &path)?;
        self.sync()?;
        Ok(incarnation)
    }

    /// Takes room for votes, so that a disk that others have filled still takes them. Where the file system
    /// cannot do that, or is full already, votes take their chance.
    pub(super) fn reserve_votes(&self) -> io::Result<()> {
        for name in NAMES {
            if let Some(file) = self.existing(name)? {
                drop(reserve(&file));
            }
        }
        let spare = private().create(true).truncate(false).open(self.directory.join(SPARE))?;
        drop(reserve(&spare));
        self.sync()
    }

    /// Octets that still fit where a generation lies.
    pub(super) fn room_for(&self, generation: Generation) -> io::Result<u64> {
        match &self.memory {
            Some(memory) if self.is_in_memory(generation) => memory.left(),
            _ => room(&self.directory),
        }
    }

    /// Octets of all generations on the disk, whole or not.
    pub(super) fn used(&self) -> io::Result<u64> {
        used_in(&self.directory.join(GENERATIONS))
    }

    /// Whether there are generations, whole or not.
    pub(super) fn has_generations(&self) -> io::Result<bool> {
        Ok(fs::read_dir(self.directory.join(GENERATIONS))?.next().is_some())
    }

    /// Generations in memory, if any are kept there.
    pub(super) const fn memory(&self) -> Option<&Memory> {
        self.memory.as_ref()
    }

    /// Whether a generation lies in memory.
    pub(super) fn is_in_memory(&self, generation: Generation) -> bool {
        self.in_memory.contains(&generation)
    }

    /// A generation is about to be written on this level: on the disk, where this host keeps none in memory.
    pub(super) fn put(&mut self, generation: Generation, level: Level) {
        if level == Level::Memory && self.memory.is_some() {
            self.in_memory.insert(generation);
        } else {
            self.in_memory.remove(&generation);
        }
    }

    /// Whether there is anything of a generation on this host, whole or not.
    pub(super) fn has_any_of(&self, generation: Generation) -> bool {
        let is_there = |home: PathBuf| {
            ["", ASIDE].iter().any(|ending| home.join(name_of(generation, ending)).exists())
        };
        self.homes().any(is_there)
    }

    /// The directories that generations are in, the disk's first.
    fn homes(&self) -> impl Iterator<Item = PathBuf> {
        let memory = self.memory.as_ref().map(|memory| memory.directory().to_owned());
        [self.directory.join(GENERATIONS)].into_iter().chain(memory)
    }

    fn home(&self, generation: Generation) -> PathBuf {
        match &self.memory {
            Some(memory) if self.is_in_memory(generation) => memory.directory().to_owned(),
            _ => self.directory.join(GENERATIONS),
        }
    }

    /// Where a generation lies.
    pub(super) fn generation(&self, generation: Generation) -> PathBuf {
        self.home(generation).join(name_of(generation, ""))
    }

    /// Where a generation is rebuilt, beside what there may be of it.
    pub(super) fn rebuilt(&self, generation: Generation) -> PathBuf {
        self.home(generation).join(name_of(generation, REBUILT))
    }

    /// Deletes what there is of a generation, the manifest first; files that are large take long, and are
    /// deleted by a thread of their own.
    pub(super) fn remove(&mut self, generation: Generation) {
        let mut freed = Vec::new();
        for home in self.homes() {
            freed.extend(set_apart(&home, generation));
        }
        self.in_memory.remove(&generation);
        delete_behind(freed);
    }

    /// Puts what was rebuilt in the place of what was there, which stays until then.
    pub(super) fn adopt(directory: &Path, rebuilt: &Path) -> io::Result<()> {
        let mut aside = directory.as_os_str().to_owned();
        aside.push(ASIDE);
        let aside = PathBuf::from(aside);
        if directory.exists() {
            remove_directory(&aside)?;
            fs::rename(directory, &aside)?;
        }
        fs::rename(rebuilt, directory)?;
        sync_directory(directory)?;
        remove_directory(&aside)
    }

    /// What is whole; it is on the disk when this returns, and everything else is deleted.
    ///
    /// # Errors
    /// When something cannot be read, or is of another job.
    pub(super) fn whole_generations(
        &mut self,
        layout: &Layout,
        block: u32,
    ) -> Result<BTreeMap<Generation, Prepared>, DaemonError> {
        let whole = self
            .read_generations()
            .map_err(|source| DaemonError::Directory { path: self.directory.clone(), source })?;
        let other = whole.values().find(|stored| {
            stored.geometry().layout() != layout || stored.geometry().block() != block
        });
        if let Some(other) = other {
            let (stored, of) = (other.geometry(), other.geometry().layout());
            let what = format!(
                "generation {} is of `{}` on {} hosts in blocks of {} octets",
                other.manifest().generation.0,
                of.scheme(),
                of.hosts(),
                stored.block(),
            );
            return Err(DaemonError::OtherJob { path: self.directory.clone(), what });
        }
        let prepared = |stored: Stored| Prepared {
            lens: stored.geometry().lens().to_vec(),
            manifest: stored.checksum(),
        };
        Ok(whole.into_iter().map(|(generation, stored)| (generation, prepared(stored))).collect())
    }

    fn read_generations(&mut self) -> io::Result<BTreeMap<Generation, Stored>> {
        let mut whole = BTreeMap::new();
        for (place, home) in self.homes().collect::<Vec<_>>().into_iter().enumerate() {
            tidy(&home)?;
            for (generation, stored) in read_home(&home)? {
                if whole.contains_key(&generation) {
                    // It was being written down when the daemon was killed, and is on the disk.
                    remove_directory(&home.join(name_of(generation, "")))?;
                    continue;
                }
                if place > 0 {
                    self.in_memory.insert(generation);
                }
                whole.insert(generation, stored);
            }
        }
        Ok(whole)
    }

    /// Writes a generation that lies in memory to the disk, where it is from then on.
    ///
    /// # Errors
    /// When the disk does not take it: it stays in memory then.
    pub(super) fn write_down(&mut self, generation: Generation) -> io::Result<()> {
        let from = self.generation(generation);
        let home = self.directory.join(GENERATIONS);
        let (beside, to) =
            (home.join(name_of(generation, REBUILT)), home.join(name_of(generation, "")));
        remove_directory(&beside)?;
        crate::shelf::create_directory(&beside)?;
        for entry in fs::read_dir(&from)? {
            let entry = entry?;
            let copy = beside.join(entry.file_name());
            fs::copy(entry.path(), &copy)?;
            File::open(copy)?.sync_all()?;
        }
        fs::rename(&beside, &to)?;
        sync_directory(&to)?;
        self.in_memory.remove(&generation);
        remove_directory(&from)
    }

    fn sync(&self) -> io::Result<()> {
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

fn name_of(generation: Generation, ending: &str) -> String {
    format!("{:012}{ending}", generation.0)
}

/// Takes what there is of a generation out of sight; the directories that are to be deleted.
fn set_apart(home: &Path, generation: Generation) -> Vec<PathBuf> {
    let mut freed = Vec::new();
    for ending in ["", REBUILT, ASIDE] {
        let directory = home.join(name_of(generation, ending));
        // What cannot be deleted takes room, and nothing else: it is tried again at the next start.
        drop(fs::remove_file(directory.join("manifest")));
        let to = home.join(name_of(generation, &format!("{FREED}-{:016x}", random())));
        if fs::rename(&directory, &to).is_ok() {
            freed.push(to);
        }
    }
    freed
}

/// Deletes directories without being waited for.
fn delete_behind(freed: Vec<PathBuf>) {
    if !freed.is_empty() {
        thread::spawn(move || freed.iter().for_each(|path| drop(fs::remove_dir_all(path))));
    }
}

/// What is whole in a directory of generations; what is not is deleted, but for what others may need.
fn read_home(home: &Path) -> io::Result<Vec<(Generation, Stored)>> {
    let mut whole = Vec::new();
    for entry in fs::read_dir(home)? {
        let entry = entry?;
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(generation) = number.map(Generation) else { continue };
        match Stored::open(&entry.path()) {
            // A disk that cannot be read now may be read later: nothing is deleted for it.
            Err(OpenStoredError::Read { source, .. })
                if source.kind() != io::ErrorKind::NotFound =>
            {
                return Err(source);
            }
            Ok(stored) if stored.manifest().generation == generation => {
                // Whoever wrote it may have been killed before it was on the disk.
                stored.sync()?;
                whole.push((generation, stored));
            }
            // The rest may be what others need if it cannot be rebuilt.
            Err(OpenStoredError::Manifest { .. }) => {
                let aside = home.join(name_of(generation, ASIDE));
                remove_directory(&aside)?;
                fs::rename(entry.path(), aside)?;
            }
            _ => delete_behind(set_apart(home, generation)),
        }
    }
    Ok(whole)
}

/// Ends what a daemon that was killed had begun: deletes what was being deleted or rebuilt, and puts back
/// what was set aside and has not been replaced.
fn tidy(home: &Path) -> io::Result<()> {
    for entry in fs::read_dir(home)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.contains(FREED) || name.ends_with(REBUILT) {
            fs::remove_dir_all(&path)?;
        } else if let Some(number) = name.strip_suffix(ASIDE) {
            let place = home.join(number);
            if place.exists() {
                fs::remove_dir_all(&path)?;
            } else {
                fs::rename(&path, place)?;
            }
        }
    }
    Ok(())
}

/// Takes room for a votes file beyond its end.
fn reserve(file: &File) -> io::Result<()> {
    Ok(fallocate(file, FallocateFlags::KEEP_SIZE, 0, VOTES_BYTES)?)
}

fn remove_directory(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
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
        if is_new {
            // Where there is none, a new one is made.
            drop(fs::rename(self.directory.join(SPARE), &path));
            drop(self.reserve_votes());
        }
        let mut file = private().create(true).append(true).open(path)?;
        file.write_all(octets)?;
        file.sync_data()?;
        if is_new { Self::sync(self) } else { Ok(()) }
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        self.existing(name)?.map_or(Ok(()), |file| file.sync_all())?;
        Self::sync(self)
    }

    fn truncate(&mut self, name: &str, len: usize) -> io::Result<()> {
        let Some(file) = self.existing(name)? else { return Ok(()) };
        file.set_len(len as u64)?;
        // Cutting gives room back.
        drop(reserve(&file));
        file.sync_all()
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        let Some(file) = self.existing(name)? else { return Ok(()) };
        file.set_len(0)?;
        drop(reserve(&file));
        fs::rename(self.directory.join(name), self.directory.join(SPARE))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;
    use crate::charter::Charter;
    use crate::journal::Journal;
    use crate::register::Vote;

    #[test]
    fn votes_have_their_room_on_the_disk_whichever_file_they_go_to() {
        let home = tempfile::tempdir().unwrap();
        let mut storage = Storage::open(home.path(), None).unwrap();
        let (mut journal, _) = Journal::open(&mut storage).unwrap();
        storage.reserve_votes().unwrap();
        let mut vote = Vote::first(Charter::founding(vec![Incarnation(u64::MAX); 64]));
        let mut turns = 0;
        let mut before = None;
        for round in 0..600 {
            vote.promised.round = round;
            journal.keep(&mut storage, &vote).unwrap();
            let there: Vec<&str> =
                NAMES.into_iter().filter(|name| home.path().join(name).exists()).collect();
            assert_eq!(there.len(), 1);
            turns += u32::from(before.replace(there[0]) != Some(there[0]));
            for name in [there[0], SPARE] {
                let room = fs::metadata(home.path().join(name)).unwrap().blocks() * 512;
                assert!(room >= VOTES_BYTES, "{name} has {room} octets in round {round}");
            }
        }
        assert!(turns > 3, "{turns}");
        assert_eq!(Journal::open(&mut storage).unwrap().1, Some(vote));
    }
}
