//! A generation in a directory: the files `image`, `parity` and `manifest` (`docs/checkpoint-format.md`).
//!
//! Everything is written from memory while it is exchanged, and checked whenever it is read. Files are
//! readable by their owner only.

mod changes;
mod stored;
mod update;
mod writing;

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;

use crate::charter::Generation;
use crate::exchange::{Blocks, ExchangeError, ExchangeOptions, Links, Moved, exchange};
use crate::layout::Shard;
use crate::manifest::Manifest;
use crate::pace::Pace;
use crate::schedule::Schedule;

pub use changes::Changes;
pub use stored::{Damage, OpenStoredError, Stored};
use update::{Differences, Updating};
use writing::{NothingToKeep, Writing};

/// The file of an image.
const IMAGE: &str = "image";
/// The file of parity of other hosts' images.
const PARITY: &str = "parity";
/// The file that says that both are whole.
const MANIFEST: &str = "manifest";

/// Which generation, for which host, how.
#[derive(Debug, Clone, Copy)]
pub struct Shelved<'a> {
    /// The directory, which is made.
    pub directory: &'a Path,
    /// The generation that is written or rebuilt.
    pub generation: Generation,
    /// The membership version that it is written under.
    pub version: u64,
    /// The place of this host.
    pub place: usize,
    /// How fast may be written.
    pub pace: &'a Pace,
    /// How blocks go between hosts.
    pub options: ExchangeOptions,
}

/// Why a generation could not be written or rebuilt here.
#[derive(Debug, thiserror::Error)]
pub enum ShelfError {
    /// A file or directory cannot be made, written or synced.
    #[error("cannot write `{path}`")]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The exchange with the other hosts failed.
    #[error("cannot exchange blocks with the other hosts")]
    Exchange(#[from] ExchangeError),
    /// What this host has cannot be read.
    #[error(transparent)]
    Stored(#[from] OpenStoredError),
    /// The generation that changes are told from is not what was stored.
    #[error("cannot make it of the generation before")]
    Base(#[source] io::Error),
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// The checksum of the manifest.
    pub manifest: u32,
    /// What went over the network.
    pub moved: Moved,
}

/// The image of a host, in memory.
struct InMemory<'a> {
    image: &'a [u8],
    schedule: &'a Schedule,
    place: usize,
}

impl Blocks for InMemory<'_> {
    fn block<'a>(&'a self, stripe: u32, shard: Shard, _: &'a mut Vec<u8>) -> io::Result<&'a [u8]> {
        let geometry = self.schedule.geometry();
        let len = geometry.len_of(self.place, stripe, shard);
        if len == 0 {
            // Beyond the image's end, where others still have blocks.
            return Ok(&[]);
        }
        let begin = usize::try_from(geometry.offset(stripe, shard)).ok();
        let octets = begin.and_then(|begin| self.image.get(begin..begin + len));
        octets.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

/// Writes a host's image and the parity that it keeps of others, while parity of its own is made there.
///
/// # Errors
/// When anything cannot be written, or the exchange fails; what was written has no manifest then.
///
/// # Panics
/// If the image is not as long as the schedule says.
pub fn save(
    shelved: &Shelved<'_>,
    schedule: &Schedule,
    image: &[u8],
    links: Links,
) -> Result<Done, ShelfError> {
    let place = shelved.place;
    assert_eq!(
        image.len() as u64,
        schedule.geometry().lens()[place],
        "the image is the agreed one"
    );
    let writing = Writing::begin(shelved, schedule)?;
    let blocks = InMemory { image, schedule, place };
    let moved = write_and_exchange(shelved, image, &writing, links, |links| {
        exchange(schedule, place, &blocks, &writing, links, shelved.options)
    })?;
    finish(shelved, schedule, writing, moved)
}

/// Writes a host's image and the parity that it keeps of others, as [`save`] does: parity is that of an earlier
/// generation with what changed, and only what changed goes over the network. What lies on the disk afterwards is the
/// same, octet for octet.
///
/// # Errors
/// As of [`save`], and when what there is of the earlier generation cannot be read or is damaged.
///
/// # Panics
/// If the image is not as long as the schedule says, or the earlier generation has other blocks.
pub fn update(
    shelved: &Shelved<'_>,
    schedule: &Schedule,
    image: &[u8],
    (base, changes): (&Stored, &Changes),
    links: Links,
) -> Result<Done, ShelfError> {
    let place = shelved.place;
    let is_same = base.geometry() == schedule.geometry() && base.manifest().place == place;
    assert!(is_same, "blocks of one generation lie where those of the other do");
    let writing = Writing::begin(shelved, schedule)?;
    let blocks = Differences { image: InMemory { image, schedule, place }, base, changes };
    let keep = Updating::new(&writing, base);
    let moved = write_and_exchange(shelved, image, &writing, links, |links| {
        exchange(schedule, place, &blocks, &keep, links, shelved.options)
    });
    let moved = moved.map_err(|error| match error {
        // Whatever is found to be damaged while a generation is written is of the one before.
        ShelfError::Exchange(ExchangeError::Read(source) | ExchangeError::Keep(source))
            if source.kind() == io::ErrorKind::InvalidData =>
        {
            ShelfError::Base(source)
        }
        other => other,
    })?;
    keep.write_same().map_err(|source| match source.kind() {
        io::ErrorKind::InvalidData => ShelfError::Base(source),
        _ => in_file(shelved, PARITY)(source),
    })?;
    finish(shelved, schedule, writing, moved)
}

/// Writes the image while blocks are exchanged; what fails ends both.
fn write_and_exchange(
    shelved: &Shelved<'_>,
    image: &[u8],
    writing: &Writing<'_>,
    links: Links,
    exchange: impl FnOnce(Links) -> Result<Moved, ExchangeError>,
) -> Result<Moved, ShelfError> {
    let place = shelved.place;
    let breaker = links.breaker().map_err(|source| ExchangeError::Peer { place, source })?;
    thread::scope(|scope| {
        let own = scope.spawn(|| {
            let written = writing.write_image(image);
            if written.is_err() {
                breaker.cut();
            }
            written
        });
        let moved = exchange(links);
        if moved.is_err() {
            writing.stop();
        }
        let written = own.join().expect("writing an image does not panic");
        match (written, moved) {
            // What was stopped is not why the exchange failed.
            (Err(source), Err(moved)) if source.kind() == io::ErrorKind::Interrupted => {
                Err(moved.into())
            }
            // What this host could not write is why the exchange was broken off.
            (Err(source), _) => Err(in_file(shelved, IMAGE)(source)),
            (Ok(()), moved) => Ok(moved?),
        }
    })
}

/// Takes part in a rebuild: a host that was lost gets its image and parity back, and every other gives
/// what is needed of its own.
///
/// # Errors
/// When this host's blocks cannot be read or are damaged, anything cannot be written, or the exchange
/// fails.
pub fn rebuild(
    shelved: &Shelved<'_>,
    schedule: &Schedule,
    links: Links,
) -> Result<Done, ShelfError> {
    let place = shelved.place;
    if schedule.job().rebuilds(place) {
        let writing = Writing::begin(shelved, schedule)?;
        let nothing = InMemory { image: &[], schedule, place };
        let moved = exchange(schedule, place, &nothing, &writing, links, shelved.options)?;
        return finish(shelved, schedule, writing, moved);
    }
    let stored = Stored::open(shelved.directory)?;
    let moved = exchange(schedule, place, &stored, &NothingToKeep, links, shelved.options)?;
    Ok(Done { manifest: stored.checksum(), moved })
}

fn in_file<'a>(shelved: &Shelved<'a>, name: &str) -> impl Fn(io::Error) -> ShelfError + use<'a> {
    let path = shelved.directory.join(name);
    move |source| ShelfError::Write { path: path.clone(), source }
}

/// Forces image and parity to the disk, and then says that they are whole.
fn finish(
    shelved: &Shelved<'_>,
    schedule: &Schedule,
    writing: Writing<'_>,
    moved: Moved,
) -> Result<Done, ShelfError> {
    let (image, parity) = writing.finish().map_err(in_file(shelved, IMAGE))?;
    let geometry = schedule.geometry();
    let manifest = Manifest {
        generation: shelved.generation,
        version: shelved.version,
        place: shelved.place,
        scheme: geometry.layout().scheme(),
        block: geometry.block(),
        lens: geometry.lens().to_vec(),
        image,
        parity,
    };
    let octets = manifest.octets();
    let whole = |mut file: File| {
        file.write_all(&octets)?;
        file.sync_all()?;
        sync_directory(shelved.directory)
    };
    create(&shelved.directory.join(MANIFEST))
        .and_then(whole)
        .map_err(in_file(shelved, MANIFEST))?;
    Ok(Done { manifest: Manifest::checksum(&octets), moved })
}

/// A file that is new, and its owner's only.
fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// Forces a generation's directory to the disk, and its name in the one above.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()?;
    directory.parent().map_or(Ok(()), |above| File::open(above)?.sync_all())
}

pub(crate) fn create_directory(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}
