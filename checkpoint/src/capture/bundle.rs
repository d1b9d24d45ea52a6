//! One image of a host's part of a program: a directory with what CRIU has written and the files in shared memory, as one
//! file that a daemon takes.
//!
//! Everything is cut into pages of 4 KiB, and every page has a place. A page of a process's memory is known by its address,
//! one of another file by where it stands in it; both keep their places from one capture to the next, and the image its
//! length, as long as there is room. So what did not change lies where it lay, though a process has got more memory, and
//! [`crate::increment`] finds the rest.
//!
//! Form (`docs/checkpoint-format.md`): the eight octets `meikyoB1`, the length of the table and its CRC-32 (eight and four
//! octets, little-endian), four zeros, the table, zeros up to where its room ends, then the places.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode};
use serde::{Deserialize, Serialize};

use super::message::{Value, fields};
use super::processes::Written;

/// The first octets.
const MAGIC: [u8; 8] = *b"meikyoB1";

/// Octets before the table.
const HEAD_BYTES: u64 = 24;

/// Octets of a page and of a place.
pub const PAGE_BYTES: u64 = 4_096;

/// Longest table: some millions of pieces of memory.
const TABLE_BYTES_MAX: u64 = 256 << 20;

/// The room of a table is a multiple of this.
const ROOM_BYTES: u64 = 256 << 10;

/// The number of places is a multiple of this.
const PLACES: u64 = 64;

/// When there are too few places, there are made so many parts of them more.
const SPARE_PART: u64 = 16;

/// What directories of CRIU's images are called, before the number of the first process.
pub const IMAGES: &str = "tree-";

/// Octets that are copied at once.
const PIECE_BYTES: usize = 1 << 20;

/// What whoever brings a program back has to know.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The first processes of its trees.
    pub roots: Vec<u32>,
    /// The greatest number of its processes: those that begin later get greater ones.
    pub last: u32,
    /// Files outside of the image that it had open to write.
    pub written: Vec<Written>,
}

/// What a bundle holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// What whoever brings it back has to know.
    pub facts: Facts,
    entries: Vec<Entry>,
    /// Octets before the first place.
    room: u64,
    places: u64,
}

/// A file or directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    /// Below the directory that was bundled.
    path: PathBuf,
    mode: u32,
    owner: (u32, u32),
    content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Content {
    Directory,
    Fifo,
    File {
        bytes: u64,
        /// By what its pages are known.
        known: PathBuf,
        runs: Vec<Run>,
    },
}

/// Pages that are known by numbers in a row, and lie in places in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Run {
    page: u64,
    pages: u64,
    place: u64,
}

/// Why there is no bundle, or nothing is made of one.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// A file or directory cannot be read or written.
    #[error("cannot use `{path}`")]
    File {
        /// What is read or written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What was handed over is no capture.
    #[error("the image holds no captured program")]
    Foreign,
    /// It is not what was written.
    #[error("the image of a captured program is damaged")]
    Damaged,
    /// It holds more files than can be listed.
    #[error("the program has more pieces of memory than an image can list")]
    Large,
}

/// Makes a bundle of all files, directories and pipes of a directory, but CRIU's logs; pages that one before had keep their places.
///
/// # Errors
/// When one cannot be read, or the bundle not written.
pub fn pack(
    from: &Path,
    facts: Facts,
    before: Option<&Table>,
    to: &Path,
) -> Result<Table, BundleError> {
    let mut entries = Vec::new();
    collect(from, Path::new(""), &mut entries)?;
    let mut table = Table { facts, entries, room: 0, places: 0 };
    place(&mut table, before);
    table.room = room(&table, before)?;
    let unwritable = |source| BundleError::File { path: to.to_owned(), source };
    let mut options = fs::OpenOptions::new();
    let options = options.create(true).truncate(true).write(true);
    let target =
        std::os::unix::fs::OpenOptionsExt::mode(options, 0o600).open(to).map_err(unwritable)?;
    target.set_len(table.room + table.places * PAGE_BYTES).map_err(unwritable)?;
    target.write_all_at(&table.octets()?, 0).map_err(unwritable)?;
    let mut piece = vec![0; PIECE_BYTES];
    for entry in &table.entries {
        let Content::File { bytes, runs, .. } = &entry.content else { continue };
        let path = from.join(&entry.path);
        let unreadable = |source| BundleError::File { path: path.clone(), source };
        let source = File::open(&path).map_err(unreadable)?;
        let mut at = 0;
        for run in runs {
            let length = (run.pages * PAGE_BYTES).min(bytes - at);
            copy(&source, at, &target, table.room + run.place * PAGE_BYTES, length, &mut piece)
                .map_err(unreadable)?;
            at += length;
        }
    }
    Ok(table)
}

/// Writes what a bundle holds into a directory, which is made; what it was.
///
/// # Errors
/// When it is no bundle, or something cannot be written.
pub fn unpack(from: &Path, to: &Path) -> Result<Table, BundleError> {
    let unreadable = |source| BundleError::File { path: from.to_owned(), source };
    let source = File::open(from).map_err(unreadable)?;
    let table = Table::of_file(&source).map_err(|error| error.unwrap_or_else(unreadable))?;
    if !to.is_dir() {
        make(to, 0o700)?;
    }
    let mut piece = vec![0; PIECE_BYTES];
    for entry in &table.entries {
        let path = to.join(&entry.path);
        let unwritable = |source| BundleError::File { path: path.clone(), source };
        match &entry.content {
            Content::Directory => make(&path, entry.mode)?,
            Content::Fifo => make_fifo(&path, entry.mode)?,
            Content::File { bytes, runs, .. } => {
                let target = File::create(&path).map_err(unwritable)?;
                let mut at = 0;
                for run in runs {
                    let length = (run.pages * PAGE_BYTES).min(bytes - at);
                    copy(
                        &source,
                        table.room + run.place * PAGE_BYTES,
                        &target,
                        at,
                        length,
                        &mut piece,
                    )
                    .map_err(unwritable)?;
                    at += length;
                }
            }
        }
        same_owner(&path, entry.mode, entry.owner)?;
    }
    Ok(table)
}

/// Makes a directory like another one: with its files, directories and pipes.
///
/// # Errors
/// When one cannot be read or written.
pub fn copy_all(from: &Path, to: &Path) -> Result<(), BundleError> {
    let mut entries = Vec::new();
    collect(from, Path::new(""), &mut entries)?;
    if !to.is_dir() {
        make(to, 0o700)?;
    }
    for entry in entries {
        let path = to.join(&entry.path);
        match entry.content {
            Content::Directory => make(&path, entry.mode)?,
            Content::Fifo => make_fifo(&path, entry.mode)?,
            Content::File { .. } => {
                copy_file(&from.join(&entry.path), &path)?;
                continue;
            }
        }
        same_owner(&path, entry.mode, entry.owner)?;
    }
    Ok(())
}

/// Makes a file like another one, with its owner; one that is there gets its content, and stays the same file.
///
/// # Errors
/// When one cannot be read or written.
pub fn copy_file(from: &Path, to: &Path) -> Result<(), BundleError> {
    let failed = |source| BundleError::File { path: to.to_owned(), source };
    fs::copy(from, to).map_err(failed)?;
    let data = fs::metadata(from).map_err(failed)?;
    same_owner(to, data.mode() & 0o7777, (data.uid(), data.gid()))
}

fn make(path: &Path, mode: u32) -> Result<(), BundleError> {
    let made = fs::create_dir_all(path)
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(mode)));
    made.map_err(|source| BundleError::File { path: path.to_owned(), source })
}

fn make_fifo(path: &Path, mode: u32) -> Result<(), BundleError> {
    let (kind, mode) = (rustix::fs::FileType::Fifo, Mode::from_raw_mode(mode));
    rustix::fs::mknodat(CWD, path, kind, mode, 0)
        .map_err(|error| BundleError::File { path: path.to_owned(), source: error.into() })
}

fn same_owner(path: &Path, mode: u32, (user, group): (u32, u32)) -> Result<(), BundleError> {
    let changed = std::os::unix::fs::chown(path, Some(user), Some(group))
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(mode)));
    changed.map_err(|source| BundleError::File { path: path.to_owned(), source })
}

/// What a directory has, itself not counted; directories before what is in them. Sockets are made by whoever binds them.
fn collect(from: &Path, below: &Path, entries: &mut Vec<Entry>) -> Result<(), BundleError> {
    let directory = from.join(below);
    let failed = |source| BundleError::File { path: directory.clone(), source };
    let read = fs::read_dir(&directory).map_err(failed)?;
    let mut names =
        read.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>().map_err(failed)?;
    names.sort();
    let images = names.iter().filter(|name| name.to_string_lossy().starts_with("pagemap-"));
    let mut memory = BTreeMap::new();
    for name in images {
        let octets = fs::read(directory.join(name)).map_err(failed)?;
        if let Some((number, pages)) = memory_pages(&octets) {
            memory.insert(format!("pages-{number}.img"), (below.join(name), pages));
        }
    }
    for name in names {
        let path = below.join(&name);
        let data = fs::symlink_metadata(from.join(&path)).map_err(failed)?;
        let is_log = is_log(&path);
        let content = if data.is_dir() {
            Content::Directory
        } else if data.file_type().is_fifo() {
            Content::Fifo
        } else if data.is_file() && !is_log {
            let pages = data.len().div_ceil(PAGE_BYTES);
            let known = memory.remove(name.to_string_lossy().as_ref());
            let known = known.filter(|(_, runs)| sum_of(runs) == Some(pages));
            let whole = || (path.clone(), vec![Run { page: 0, pages, place: 0 }]);
            let (known, runs) = known.unwrap_or_else(whole);
            Content::File { bytes: data.len(), known, runs }
        } else {
            continue;
        };
        let is_directory = content == Content::Directory;
        let (mode, owner) = (data.mode() & 0o7777, (data.uid(), data.gid()));
        entries.push(Entry { path: path.clone(), mode, owner, content });
        if is_directory {
            collect(from, &path, entries)?;
        }
    }
    Ok(())
}

/// Whether a file is what CRIU has said beside its images.
fn is_log(path: &Path) -> bool {
    let is_images = |part: Component<'_>| part.as_os_str().to_string_lossy().starts_with(IMAGES);
    path.components().next().is_some_and(is_images)
        && path.extension().is_some_and(|extension| extension == "log")
}

/// Gives all pages their places: those that they had, or the first that are free.
fn place(table: &mut Table, before: Option<&Table>) {
    let had = before.map(Table::by_page).unwrap_or_default();
    let mut taken =
        // Saturates to none: so many places do not fit this machine, and pages get theirs anew.
        vec![false; usize::try_from(before.map_or(0, |before| before.places)).unwrap_or(0)];
    let files = |table: &Table| {
        let files = table.entries.iter().filter_map(|entry| match &entry.content {
            Content::File { known, runs, .. } => Some((known.clone(), runs.clone())),
            _ => None,
        });
        files.collect::<Vec<_>>()
    };
    for (known, runs) in files(table) {
        let Some(places) = had.get(&known) else { continue };
        let pages = runs.iter().flat_map(|run| run.page..run.page + run.pages);
        for place in pages.filter_map(|page| places.get(&page)) {
            if let Some(taken) = usize::try_from(*place).ok().and_then(|place| taken.get_mut(place))
            {
                *taken = true;
            }
        }
    }
    let mut free =
        taken.iter().enumerate().filter(|(_, taken)| !**taken).map(|(place, _)| place as u64);
    let mut end = taken.len() as u64;
    for entry in &mut table.entries {
        let Content::File { known, runs, .. } = &mut entry.content else { continue };
        let places = had.get(known);
        let mut placed: Vec<Run> = Vec::new();
        for page in runs.iter().flat_map(|run| run.page..run.page + run.pages) {
            let place =
                places.and_then(|places| places.get(&page).copied()).or_else(|| free.next());
            let place = place.unwrap_or_else(|| {
                end += 1;
                end - 1
            });
            match placed.last_mut() {
                Some(run) if run.page + run.pages == page && run.place + run.pages == place => {
                    run.pages += 1
                }
                _ => placed.push(Run { page, pages: 1, place }),
            }
        }
        *runs = placed;
    }
    let stood = before.map_or(0, |before| before.places);
    table.places =
        if end <= stood { stood } else { (end + end / SPARE_PART).next_multiple_of(PLACES) };
}

/// How much room the table has: as much as before, where that is enough.
fn room(table: &Table, before: Option<&Table>) -> Result<u64, BundleError> {
    // A number in it may get longer once the room is known.
    let needed = HEAD_BYTES + encoded(table)?.len() as u64 + 16;
    let stood = before.map_or(0, |before| before.room);
    Ok(if needed <= stood { stood } else { (needed + needed / 4).next_multiple_of(ROOM_BYTES) })
}

fn encoded(table: &Table) -> Result<Vec<u8>, BundleError> {
    let octets = postcard::to_stdvec(table).map_err(|_| BundleError::Large)?;
    if octets.len() as u64 > TABLE_BYTES_MAX { Err(BundleError::Large) } else { Ok(octets) }
}

fn copy(
    source: &File,
    from: u64,
    target: &File,
    to: u64,
    length: u64,
    piece: &mut [u8],
) -> io::Result<()> {
    let mut done = 0;
    while done < length {
        // Saturates at a whole piece, of which there may be more.
        let count = usize::try_from(length - done).unwrap_or(usize::MAX).min(piece.len());
        let piece = &mut piece[..count];
        source.read_exact_at(piece, from + done)?;
        target.write_all_at(piece, to + done)?;
        done += count as u64;
    }
    Ok(())
}

/// Which pages a file of CRIU's with a process's memory has, from the file beside it that says so, and the number of the former.
///
/// After two marks of four octets each come messages with their lengths in four octets: `pagemap_head`, then one
/// `pagemap_entry` for each piece of memory.
fn memory_pages(octets: &[u8]) -> Option<(u64, Vec<Run>)> {
    /// `PE_PRESENT`: the pages are in the file.
    const PRESENT: u64 = 1 << 2;
    let mut rest = octets.get(8..)?;
    let (mut number, mut runs) = (None, Vec::new());
    while let Some((length, behind)) = rest.split_first_chunk() {
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (message, behind) = behind.split_at_checked(length)?;
        rest = behind;
        let mut values = BTreeMap::new();
        for field in fields(message) {
            if let (field, Value::Number(value)) = field.ok()? {
                values.insert(field, value);
            }
        }
        let value = |field| values.get(&field).copied();
        if number.is_none() {
            number = Some(value(1)?);
            continue;
        }
        let (address, pages) = (value(1)?, value(5).or_else(|| value(2))?);
        let is_present = value(4).map_or_else(|| value(3) != Some(1), |flags| flags & PRESENT != 0);
        if is_present && pages > 0 {
            let page = address / PAGE_BYTES;
            page.checked_add(pages)?;
            runs.push(Run { page, pages, place: 0 });
        }
    }
    Some((number?, runs))
}

impl Table {
    /// Octets of a bundle with it.
    pub const fn image_bytes(&self) -> u64 {
        self.room + self.places * PAGE_BYTES
    }

    /// As it stands at the begin of a bundle, and in a file by itself.
    ///
    /// # Errors
    /// When it is too long.
    pub fn octets(&self) -> Result<Vec<u8>, BundleError> {
        let table = encoded(self)?;
        let mut octets = MAGIC.to_vec();
        octets.extend_from_slice(&(table.len() as u64).to_le_bytes());
        octets.extend_from_slice(&crc32fast::hash(&table).to_le_bytes());
        octets.extend_from_slice(&[0; 4]);
        octets.extend_from_slice(&table);
        Ok(octets)
    }

    /// Reads what [`Self::octets`] has written.
    ///
    /// # Errors
    /// When it is something else, or damaged.
    pub fn read(octets: &[u8]) -> Result<Self, BundleError> {
        let (head, rest) = octets.split_at_checked(24).ok_or(BundleError::Foreign)?;
        let length = table_length(head)?;
        let length = usize::try_from(length).map_err(|_| BundleError::Damaged)?;
        let table = rest.get(..length).ok_or(BundleError::Damaged)?;
        if head[16..20] != crc32fast::hash(table).to_le_bytes() {
            return Err(BundleError::Damaged);
        }
        let table: Self = postcard::from_bytes(table).map_err(|_| BundleError::Damaged)?;
        if table.is_sound() { Ok(table) } else { Err(BundleError::Damaged) }
    }

    fn of_file(file: &File) -> Result<Self, Result<BundleError, io::Error>> {
        let mut head = [0; 24];
        let length = file.metadata().map_err(Err)?.len();
        if length < HEAD_BYTES {
            return Err(Ok(BundleError::Foreign));
        }
        file.read_exact_at(&mut head, 0).map_err(Err)?;
        let table = table_length(&head).map_err(Ok)?;
        if table > length - HEAD_BYTES {
            return Err(Ok(BundleError::Damaged));
        }
        let mut octets =
            vec![0; usize::try_from(HEAD_BYTES + table).map_err(|_| Ok(BundleError::Large))?];
        file.read_exact_at(&mut octets, 0).map_err(Err)?;
        let table = Self::read(&octets).map_err(Ok)?;
        if table.image_bytes() == length { Ok(table) } else { Err(Ok(BundleError::Damaged)) }
    }

    /// Whether nothing in it leads out of the bundle, or out of the directory that it is unpacked to.
    fn is_sound(&self) -> bool {
        let is_below = |path: &Path| {
            path.components().all(|part| matches!(part, Component::Normal(_)))
                && path.components().next().is_some()
        };
        let length =
            self.places.checked_mul(PAGE_BYTES).and_then(|octets| octets.checked_add(self.room));
        let is_whole = |content: &Content| {
            let Content::File { bytes, runs, .. } = content else { return true };
            let fits = |run: &Run| {
                run.page.checked_add(run.pages).is_some()
                    && run.place.checked_add(run.pages).is_some_and(|end| end <= self.places)
            };
            runs.iter().all(fits) && sum_of(runs) == Some(bytes.div_ceil(PAGE_BYTES))
        };
        length.is_some()
            && self.entries.iter().all(|entry| is_below(&entry.path) && is_whole(&entry.content))
    }

    /// By what pages are known, and their places.
    fn by_page(&self) -> BTreeMap<PathBuf, BTreeMap<u64, u64>> {
        let mut all: BTreeMap<PathBuf, BTreeMap<u64, u64>> = BTreeMap::new();
        for entry in &self.entries {
            let Content::File { known, runs, .. } = &entry.content else { continue };
            let places = all.entry(known.clone()).or_default();
            for run in runs {
                places.extend((0..run.pages).map(|at| (run.page + at, run.place + at)));
            }
        }
        all
    }
}

/// Pages of runs, if they can be so many.
fn sum_of(runs: &[Run]) -> Option<u64> {
    runs.iter().try_fold(0_u64, |sum, run| sum.checked_add(run.pages))
}

/// How long a table is, by the octets before it.
fn table_length(head: &[u8]) -> Result<u64, BundleError> {
    let (magic, rest) = head.split_first_chunk::<8>().ok_or(BundleError::Foreign)?;
    let (length, _) = rest.split_first_chunk().ok_or(BundleError::Foreign)?;
    let length = u64::from_le_bytes(*length);
    match (*magic == MAGIC, length <= TABLE_BYTES_MAX) {
        (true, true) => Ok(length),
        (true, false) => Err(BundleError::Damaged),
        (false, _) => Err(BundleError::Foreign),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::message::Message;
    use super::*;

    fn pagemap(number: u64, pieces: &[(u64, u64)]) -> Vec<u8> {
        let mut octets = vec![0; 8];
        let mut put = |message: Message| {
            octets.extend_from_slice(
                &u32::try_from(message.bytes().len()).expect("short").to_le_bytes(),
            );
            octets.extend_from_slice(message.bytes());
        };
        put(Message::default().number(1, number));
        for &(page, pages) in pieces {
            put(Message::default()
                .number(1, page * PAGE_BYTES)
                .number(2, 0)
                .number(4, 4)
                .number(5, pages));
        }
        octets
    }

    /// A process's memory as CRIU writes it: a page is filled with the number that it has, and a salt.
    fn process(directory: &Path, pieces: &[(u64, u64)], salt: u64) {
        fs::create_dir_all(directory).expect("a directory");
        fs::write(directory.join("pagemap-7.img"), pagemap(1, pieces)).expect("room");
        let pages = pieces.iter().flat_map(|&(page, pages)| page..page + pages);
        let octets: Vec<u8> =
            pages.flat_map(|page| (page * 1_000 + salt).to_le_bytes().repeat(512)).collect();
        fs::write(directory.join("pages-1.img"), octets).expect("room");
    }

    fn tree(directory: &Path) -> BTreeMap<PathBuf, (u32, Option<Vec<u8>>)> {
        let mut entries = Vec::new();
        collect(directory, Path::new(""), &mut entries).expect("it is there");
        let content = |entry: &Entry| fs::read(directory.join(&entry.path)).ok();
        let fifo = |entry: &Entry| entry.content == Content::Fifo;
        entries
            .iter()
            .map(|entry| {
                (entry.path.clone(), (entry.mode, if fifo(entry) { None } else { content(entry) }))
            })
            .collect()
    }

    fn path(home: &tempfile::TempDir, name: &str) -> PathBuf {
        home.path().join(name)
    }

    #[test]
    fn what_was_packed_is_unpacked_octet_for_octet() {
        let home = tempfile::tempdir().expect("a directory");
        let from = path(&home, "from");
        process(&from.join("tree-7"), &[(100, 3), (500, 1)], 0);
        fs::create_dir_all(from.join("memory/deep")).expect("a directory");
        fs::write(from.join("memory/deep/segment"), vec![7; 10_001]).expect("room");
        fs::write(from.join("memory/empty"), []).expect("room");
        fs::set_permissions(from.join("memory/empty"), fs::Permissions::from_mode(0o640))
            .expect("it is ours");
        make_fifo(&from.join("memory/pipe"), 0o600).expect("a pipe");
        fs::write(from.join("tree-7/dump.log"), "said").expect("room");
        fs::write(from.join("memory/of-the-program.log"), "kept").expect("room");
        let facts = Facts { roots: vec![7], last: 9, written: Vec::new() };
        let table = pack(&from, facts.clone(), None, &path(&home, "image")).expect("it is packed");
        assert_eq!(
            fs::metadata(path(&home, "image")).expect("it is there").len(),
            table.image_bytes()
        );
        let read = unpack(&path(&home, "image"), &path(&home, "to")).expect("it is unpacked");
        assert_eq!((&read, &read.facts), (&table, &facts));
        fs::remove_file(from.join("tree-7/dump.log")).expect("it is there");
        assert_eq!(tree(&from), tree(&path(&home, "to")));
        copy_all(&from, &path(&home, "copied")).expect("it is copied");
        assert_eq!(tree(&from), tree(&path(&home, "copied")));
    }

    #[test]
    fn a_page_keeps_its_place_though_a_process_gets_others_before_it() {
        let home = tempfile::tempdir().expect("a directory");
        let packed = |name: &str, pieces: &[(u64, u64)], before: Option<&Table>| {
            let (from, image) = (path(&home, name), path(&home, &format!("{name}.image")));
            process(&from.join("tree-7"), pieces, 0);
            let table = pack(&from, Facts::default(), before, &image).expect("it is packed");
            let to = path(&home, &format!("{name}.to"));
            assert_eq!(unpack(&image, &to).expect("it is unpacked"), table);
            assert_eq!(tree(&from), tree(&to));
            (table, fs::read(image).expect("it is there"))
        };
        let (first, one) = packed("one", &[(100, 200), (1_000, 50)], None);
        // Two pages more before all others, one in between is gone.
        let (second, two) = packed("two", &[(98, 42), (141, 159), (1_000, 50)], Some(&first));
        assert_eq!(one.len(), two.len());
        let differing = |one: &[u8], two: &[u8]| {
            let pages = one.chunks(4_096).zip(two.chunks(4_096));
            pages.filter(|(one, two)| one != two).count()
        };
        // The two, the list of pages, and the table.
        assert!(differing(&one, &two) <= 4, "{}", differing(&one, &two));
        // Without knowing of the first, all behind would have moved.
        let (_, anew) = packed("anew", &[(98, 42), (141, 159), (1_000, 50)], None);
        assert!(differing(&one, &anew) > 100);
        // More than there was room for.
        let (third, _) = packed("three", &[(98, 1_000)], Some(&second));
        assert!(third.places >= 1_000 && third.places.is_multiple_of(PLACES));
    }

    #[test]
    fn what_leads_out_of_a_directory_or_a_bundle_is_refused() {
        let entry = |path: &str, content: Content| Entry {
            path: path.into(),
            mode: 0o600,
            owner: (0, 0),
            content,
        };
        let table = |entry: Entry| Table {
            facts: Facts::default(),
            entries: vec![entry],
            room: 1 << 18,
            places: 64,
        };
        let read = |table: &Table| Table::read(&table.octets().expect("it is short"));
        let file =
            |run: Run, bytes: u64| Content::File { bytes, known: "a".into(), runs: vec![run] };
        let run = Run { page: 0, pages: 2, place: 62 };
        assert!(read(&table(entry("a", file(run, 8_192)))).is_ok());
        for name in ["/etc/passwd", "../a", "a/../../b", ""] {
            assert!(read(&table(entry(name, Content::Directory))).is_err(), "{name}");
        }
        assert!(read(&table(entry("a", file(Run { place: 63, ..run }, 8_192)))).is_err());
        assert!(read(&table(entry("a", file(Run { place: u64::MAX, ..run }, 8_192)))).is_err());
        assert!(read(&table(entry("a", file(run, 8_193)))).is_err());
        let mut octets = table(entry("a", file(run, 8_192))).octets().expect("it is short");
        let last = octets.len() - 1;
        octets[last] ^= 1;
        assert!(matches!(Table::read(&octets), Err(BundleError::Damaged)));
        octets[0] ^= 1;
        assert!(matches!(Table::read(&octets), Err(BundleError::Foreign)));
    }

    proptest! {
        #[test]
        fn any_octets_are_read_or_refused(octets in proptest::collection::vec(any::<u8>(), 0..400)) {
            drop(memory_pages(&octets));
            let mut bundle = MAGIC.to_vec();
            bundle.extend_from_slice(&(octets.len() as u64).to_le_bytes());
            bundle.extend_from_slice(&crc32fast::hash(&octets).to_le_bytes());
            bundle.extend_from_slice(&[0; 4]);
            bundle.extend_from_slice(&octets);
            drop(Table::read(&bundle));
        }
    }
}
