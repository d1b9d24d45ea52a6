//! Generations in a directory of a file system that all hosts share: for when more is lost than parity makes up for.
//!
//! A drained generation is a directory, named by the run and the step that it is of, with one file per host:
//! `PLACE-of-HOSTS`, a head and the host's image. A file has its name only when it is on the disk, so a generation with
//! the files of all hosts is whole; each host writes its own, and deletes its own of those that are older than the ones
//! to keep. Nothing here knows who decides what is drained.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::charter::Reached;
use crate::geometry::MANIFEST_BYTES_MAX;
use crate::pace::Pace;
use crate::shelf::{Stored, sync_directory};

/// The first octets of a file: what it is, and the version of its form.
const MAGIC: [u8; 8] = *b"meikyoD1";

/// The magic, and the length of the head.
const BEGIN_BYTES: usize = 16;

/// Behind the place of a file that is being written.
const UNFINISHED: &str = ".unfinished";

/// Octets that are written at once: few large requests are what shared file systems are good at.
const PIECE_BYTES: usize = 8 << 20;

/// What a file says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The group that has written it.
    pub group: u64,
    /// How far the program had come.
    pub reached: Reached,
    /// The place of the host.
    pub place: usize,
    /// How many hosts the group has.
    pub hosts: usize,
    /// Octets of the image.
    pub bytes: u64,
    /// Octets of a block; the last may have fewer.
    pub block: u32,
    /// The CRC-32 of each block.
    pub checksums: Vec<u32>,
}

/// Why a drained generation cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DrainError {
    /// A file or directory cannot be read or written.
    #[error("cannot use `{path}`")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is none of these, or is damaged.
    #[error("`{path}` is damaged: {what}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// There is no generation with the files of all hosts.
    #[error("`{0}` has no generation that is whole")]
    None(PathBuf),
    /// Two jobs have written into one directory.
    #[error("`{0}` has files of several jobs: each job needs a directory of its own")]
    Mixed(PathBuf),
}

/// A generation that is whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drained {
    /// How far the program had come.
    pub reached: Reached,
    /// The file of each host, by place.
    pub files: Vec<PathBuf>,
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> DrainError {
    let path = path.to_owned();
    |source| DrainError::File { path, source }
}

impl Head {
    fn octets(&self) -> Vec<u8> {
        let fields =
            postcard::to_stdvec(self).expect("numbers and lists of numbers can be written");
        let mut octets = MAGIC.to_vec();
        octets.extend_from_slice(&(fields.len() as u64).to_le_bytes());
        octets.extend_from_slice(&fields);
        let checksum = crc32fast::hash(&octets);
        octets.extend_from_slice(&checksum.to_le_bytes());
        octets
    }

    /// Reads the head of a file, and leaves the image behind it to be read.
    ///
    /// # Errors
    /// What is wrong with it, or that it cannot be read.
    pub fn read(from: &mut impl io::Read) -> io::Result<Result<Self, &'static str>> {
        let mut begin = [0; BEGIN_BYTES];
        from.read_exact(&mut begin)?;
        let (magic, len) = begin.split_at(MAGIC.len());
        let len = len.try_into().map_or(u64::MAX, u64::from_le_bytes);
        if magic != MAGIC || len > MANIFEST_BYTES_MAX {
            return Ok(Err("it does not begin as a file of this version does"));
        }
        let mut rest = Vec::new();
        from.take(len + 4).read_to_end(&mut rest)?;
        let Some((fields, checksum)) = rest.split_last_chunk() else {
            return Ok(Err("it ends before its head does"));
        };
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&begin);
        hasher.update(fields);
        if hasher.finalize() != u32::from_le_bytes(*checksum) {
            return Ok(Err("the checksum of its head is that of something else"));
        }
        let head: Result<Self, _> = postcard::from_bytes(fields);
        Ok(head.ok().filter(Self::is_possible).ok_or("the fields of its head cannot be read"))
    }

    fn is_possible(&self) -> bool {
        let blocks = self
            .bytes
            .checked_div(u64::from(self.block))
            .map(|whole| whole + u64::from(!self.bytes.is_multiple_of(u64::from(self.block))));
        self.place < self.hosts && blocks == Some(self.checksums.len() as u64)
    }
}

/// The directory of a generation.
fn name_of(reached: Reached) -> String {
    format!("{:08}-{:020}", reached.run, reached.step)
}

fn reached_of(name: &str) -> Option<Reached> {
    let (run, step) = name.split_once('-')?;
    Some(Reached { run: run.parse().ok()?, step: step.parse().ok()? })
}

fn file_of(place: usize, hosts: usize) -> String {
    format!("{place:03}-of-{hosts:03}")
}

/// Writes this host's image of a generation that is on its disk, at this pace; octets that were written.
///
/// # Errors
/// When a block is damaged, or a file cannot be written.
pub fn write(
    stored: &Stored,
    (group, reached): (u64, Reached),
    directory: &Path,
    pace: &Pace,
) -> Result<u64, DrainError> {
    let manifest = stored.manifest();
    let (place, hosts) = (manifest.place, manifest.lens.len());
    let home = directory.join(name_of(reached));
    fs::create_dir_all(&home).map_err(failed(&home))?;
    let path = home.join(file_of(place, hosts));
    let beside = home.join(format!("{}{UNFINISHED}", file_of(place, hosts)));
    let head = Head {
        group,
        reached,
        place,
        hosts,
        bytes: manifest.lens[place],
        block: manifest.block,
        checksums: manifest.image.clone(),
    };
    let written = write_file(stored, &head, &beside, pace).and_then(|bytes| {
        fs::rename(&beside, &path)?;
        sync_directory(&home)?;
        Ok(bytes)
    });
    written.map_err(|error| {
        // It takes room that others may need.
        drop(fs::remove_file(&beside));
        failed(&path)(error)
    })
}

fn write_file(stored: &Stored, head: &Head, to: &Path, pace: &Pace) -> io::Result<u64> {
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(to)?;
    let mut piece = head.octets();
    let mut bytes = 0;
    let mut put = |piece: &mut Vec<u8>| {
        pace.wait_for(piece.len());
        file.write_all(piece)?;
        bytes += piece.len() as u64;
        piece.clear();
        io::Result::Ok(())
    };
    stored.read_image(|octets| {
        piece.extend_from_slice(octets);
        if piece.len() >= PIECE_BYTES { put(&mut piece) } else { Ok(()) }
    })?;
    put(&mut piece)?;
    file.sync_all()?;
    Ok(bytes)
}

/// The generations that are whole, the newest first.
///
/// # Errors
/// When the directory cannot be read.
pub fn whole(directory: &Path) -> Result<Vec<Drained>, DrainError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed(directory))? {
        let path = entry.map_err(failed(directory))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some(reached) = reached_of(name) else { continue };
        let mut files: BTreeMap<usize, BTreeMap<usize, PathBuf>> = BTreeMap::new();
        for entry in fs::read_dir(&path).map_err(failed(&path))? {
            let path = entry.map_err(failed(&path))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let parts = name.split_once("-of-");
            let parts =
                parts.and_then(|(place, hosts)| Some((place.parse().ok()?, hosts.parse().ok()?)));
            if let Some((place, hosts)) = parts.filter(|(place, hosts)| place < hosts) {
                files.entry(hosts).or_default().insert(place, path);
            }
        }
        let complete = files.into_iter().find(|(hosts, files)| files.len() == *hosts);
        found.extend(
            complete.map(|(_, files)| Drained { reached, files: files.into_values().collect() }),
        );
    }
    found.sort_by_key(|drained| std::cmp::Reverse(drained.reached));
    Ok(found)
}

/// The newest generation that is whole, all of whose files are of one group.
///
/// # Errors
/// When there is none, or a head is damaged.
pub fn newest(directory: &Path) -> Result<Drained, DrainError> {
    let newest = whole(directory)?.into_iter().next();
    let newest = newest.ok_or_else(|| DrainError::None(directory.to_owned()))?;
    let mut groups = Vec::new();
    for (place, path) in newest.files.iter().enumerate() {
        let mut file = File::open(path).map_err(failed(path))?;
        let head = Head::read(&mut file).map_err(failed(path))?;
        let damaged = |what| DrainError::Damaged { path: path.clone(), what };
        let head = head.map_err(damaged)?;
        if (head.place, head.hosts, head.reached) != (place, newest.files.len(), newest.reached) {
            return Err(damaged("it has the name of another"));
        }
        groups.push(head.group);
    }
    if groups.windows(2).any(|pair| pair[0] != pair[1]) {
        return Err(DrainError::Mixed(directory.to_owned()));
    }
    Ok(newest)
}

/// Writes the image of a host into a file, and compares every block with its checksum; how far the program had come.
///
/// # Errors
/// When a block is damaged, or a file cannot be read or written.
pub fn restore(from: &Path, to: &Path) -> Result<Reached, DrainError> {
    let mut file = File::open(from).map_err(failed(from))?;
    let damaged = |what| DrainError::Damaged { path: from.to_owned(), what };
    let head = Head::read(&mut file).map_err(failed(from))?.map_err(damaged)?;
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    let mut image = options.open(to).map_err(failed(to))?;
    let mut block = Vec::new();
    let mut left = head.bytes;
    for checksum in &head.checksums {
        block.clear();
        let len = left.min(u64::from(head.block));
        (&mut file).take(len).read_to_end(&mut block).map_err(failed(from))?;
        if block.len() as u64 != len || crc32fast::hash(&block) != *checksum {
            return Err(damaged("a block is not what was written"));
        }
        image.write_all(&block).map_err(failed(to))?;
        left -= len;
    }
    image.sync_all().map_err(failed(to))?;
    Ok(head.reached)
}

/// Deletes this host's files of generations that are older than the newest `keep` that are whole, and with the last file
/// the directory.
///
/// # Errors
/// When the directory cannot be read, or a file not be deleted.
pub fn prune(directory: &Path, place: usize, keep: usize) -> Result<(), DrainError> {
    let kept = whole(directory)?;
    let Some(oldest) = keep.checked_sub(1).and_then(|last| kept.get(last)) else { return Ok(()) };
    for entry in fs::read_dir(directory).map_err(failed(directory))? {
        let path = entry.map_err(failed(directory))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if reached_of(name).is_none_or(|reached| reached >= oldest.reached) {
            continue;
        }
        for entry in fs::read_dir(&path).map_err(failed(&path))? {
            let file = entry.map_err(failed(&path))?.path();
            let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.starts_with(&format!("{place:03}-of-")) {
                fs::remove_file(&file).map_err(failed(&file))?;
            }
        }
        // It is not empty as long as others have theirs.
        drop(fs::remove_dir(&path));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn head(place: usize, step: u64, image: &[u8]) -> Head {
        Head {
            group: 7,
            reached: Reached { run: 1, step },
            place,
            hosts: 2,
            bytes: image.len() as u64,
            block: 64,
            checksums: image.chunks(64).map(crc32fast::hash).collect(),
        }
    }

    fn put(directory: &Path, head: &Head, image: &[u8]) -> PathBuf {
        let home = directory.join(name_of(head.reached));
        fs::create_dir_all(&home).unwrap();
        let path = home.join(file_of(head.place, head.hosts));
        fs::write(&path, [&head.octets(), image].concat()).unwrap();
        path
    }

    #[test]
    fn a_generation_is_whole_with_the_files_of_all_hosts_and_old_ones_go() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path();
        let image = [1; 100];
        for step in 1..=4 {
            put(directory, &head(0, step, &image), &image);
            if step != 3 {
                put(directory, &head(1, step, &image), &image);
            }
        }
        let steps = || -> Vec<u64> {
            whole(directory).unwrap().iter().map(|drained| drained.reached.step).collect()
        };
        assert_eq!(steps(), [4, 2, 1]);
        assert_eq!(newest(directory).unwrap().reached.step, 4);
        // One that is being written, or was never whole, counts for nothing and stays if it is newer.
        prune(directory, 0, 2).unwrap();
        assert_eq!(steps(), [4, 2]);
        assert!(directory.join(name_of(Reached { run: 1, step: 1 })).is_dir());
        prune(directory, 1, 2).unwrap();
        assert!(!directory.join(name_of(Reached { run: 1, step: 1 })).exists());
        assert!(directory.join(name_of(Reached { run: 1, step: 3 })).is_dir());
        prune(directory, 0, 5).unwrap();
        assert_eq!(steps(), [4, 2]);
        let other = Head { group: 8, ..head(1, 4, &image) };
        put(directory, &other, &image);
        assert!(matches!(newest(directory), Err(DrainError::Mixed(_))));
    }

    #[test]
    fn any_changed_octet_of_a_file_or_missing_end_is_found() {
        let home = tempfile::tempdir().unwrap();
        let image: Vec<u8> = (0..150).collect();
        let path = put(home.path(), &head(0, 1, &image), &image);
        let to = home.path().join("image");
        assert_eq!(restore(&path, &to).unwrap(), Reached { run: 1, step: 1 });
        assert_eq!(fs::read(&to).unwrap(), image);
        let octets = fs::read(&path).unwrap();
        for at in 0..octets.len() {
            let mut damaged = octets.clone();
            damaged[at] ^= 1;
            fs::write(&path, &damaged).unwrap();
            assert!(restore(&path, &to).is_err(), "octet {at}");
            fs::write(&path, &octets[..at]).unwrap();
            assert!(restore(&path, &to).is_err(), "cut at {at}");
        }
    }

    proptest! {
        #[test]
        fn no_octets_make_a_head_panic(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
            drop(Head::read(&mut &octets[..]));
            let mut begun = MAGIC.to_vec();
            begun.extend_from_slice(&octets);
            drop(Head::read(&mut &begun[..]));
        }
    }
}
