//! The thread that reads blocks of samples as they are written.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use meikyo_recording::files;
use meikyo_recording::layout::{self, SegmentFile};
use meikyo_recording::schema::Role;
use meikyo_recording::segment::{ReadSegmentError, SegmentReader};

use super::core_seconds::of_block;
use super::file::{Chunk, HeatFile};
use super::sums::Place;
use super::{AGED, Heat};
use crate::watching;

/// How often it is looked what was written.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// How often while somebody watches.
const WATCHED_EVERY: Duration = Duration::from_millis(40);

/// Octets of rows after which a chunk is appended although there is more to read.
const CHUNK_BYTES: usize = 1 << 20;

/// What ends the name of a file of rows, in place of `log`.
const EXTENSION: &str = "heat";

/// A file's place in the recording: its stream, and the first frame of its segment.
type Name = (String, u64);

/// What there is, by segment.
#[derive(Debug, Default)]
pub(super) struct Known {
    hosts: Vec<String>,
    files: BTreeMap<Name, KnownFile>,
    /// Segments that were read to their end, and others follow them.
    over: BTreeSet<Name>,
}

#[derive(Debug)]
struct KnownFile {
    path: PathBuf,
    /// The number of each of the file's hosts among all.
    hosts: Arc<[u32]>,
    chunks: Vec<Chunk>,
}

impl Known {
    /// All hosts by their numbers.
    pub(super) fn hosts(&self) -> Vec<String> {
        self.hosts.clone()
    }

    /// Whether all rows of a segment are there that there will be.
    pub(super) fn is_over(&self, name: &Name) -> bool {
        self.over.contains(name)
    }

    /// Where rows of these seconds can be.
    pub(super) fn places(&self, from_s: i64, until_s: i64) -> Vec<Place> {
        let within = |chunk: &&Chunk| chunk.seconds.0 < until_s && from_s <= chunk.seconds.1;
        let places = self.files.values().map(|file| Place {
            path: file.path.clone(),
            hosts: Arc::clone(&file.hosts),
            chunks: file.chunks.iter().filter(within).copied().collect(),
        });
        places.filter(|place| !place.chunks.is_empty()).collect()
    }

    /// The first and the last second that there are rows of.
    pub(super) fn span(&self) -> Option<(i64, i64)> {
        let chunks = self.files.values().flat_map(|file| &file.chunks);
        let spans = chunks.map(|chunk| chunk.seconds);
        spans.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))
    }

    fn number_of(&mut self, host: &str) -> u32 {
        let at = self.hosts.iter().position(|known| known == host).unwrap_or_else(|| {
            self.hosts.push(host.to_owned());
            self.hosts.len() - 1
        });
        u32::try_from(at).expect("hosts fit the memory")
    }

    fn note(&mut self, name: &Name, path: &Path, hosts: &[String], chunks: &[Chunk]) {
        let hosts: Vec<u32> = hosts.iter().map(|host| self.number_of(host)).collect();
        let known = self.files.entry(name.clone()).or_insert_with(|| KnownFile {
            path: path.to_path_buf(),
            hosts: Arc::default(),
            chunks: Vec::new(),
        });
        known.hosts = hosts.into();
        known.chunks.extend_from_slice(chunks);
    }
}

/// A segment that is read on.
#[derive(Debug)]
struct Open {
    reader: SegmentReader,
    file: HeatFile,
    path: PathBuf,
    /// Positions of the tables of samples.
    tables: BTreeSet<usize>,
    /// The last frame that the file accounts for.
    done: u64,
}

/// The thread's work.
#[derive(Debug)]
pub(super) struct Follower {
    dir: PathBuf,
    heat: Heat,
    open: BTreeMap<Name, Open>,
    has_looked: bool,
    is_told: bool,
}

impl Follower {
    pub(super) fn new(dir: PathBuf, heat: Heat) -> Self {
        Self { dir, heat, open: BTreeMap::new(), has_looked: false, is_told: false }
    }

    /// Follows until the other end of `stopped` is gone.
    pub(super) fn run(&mut self, stopped: &Receiver<()>) {
        loop {
            match self.look() {
                Ok(()) => self.is_told = false,
                Err(error) if !self.is_told => {
                    tracing::warn!(%error, "the heat map cannot be kept; it is tried again");
                    self.is_told = true;
                }
                Err(_) => {}
            }
            let is_watched = self.heat.watching().is_any(watching::now());
            let wait = if is_watched { WATCHED_EVERY } else { LOOK_EVERY };
            if stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    }

    /// Reads what was written since the last time.
    pub(super) fn look(&mut self) -> io::Result<()> {
        let listing = files::list_hours(&self.dir, |_, _| false).map_err(io::Error::other)?;
        let mut newest: BTreeMap<String, u64> = BTreeMap::new();
        for segment in &listing.segments {
            let last = newest.entry(segment.stream.clone()).or_insert(segment.first);
            *last = (*last).max(segment.first);
        }
        let there: BTreeSet<Name> =
            listing.segments.iter().map(|of| (of.stream.clone(), of.first)).collect();
        if !std::mem::replace(&mut self.has_looked, true) {
            remove_lone(&self.dir, &there);
        }
        self.forget_deleted(&there);
        for segment in listing.segments {
            let name = (segment.stream.clone(), segment.first);
            if self.heat.known().is_over(&name) {
                continue;
            }
            if !self.open.contains_key(&name) {
                match self.open_segment(&name, segment)? {
                    Some(open) => drop(self.open.insert(name.clone(), open)),
                    None => continue,
                }
            }
            let Some(mut open) = self.open.remove(&name) else { continue };
            // One whose rows cannot be written is opened anew the next time: it is not put back.
            read_on(&self.heat, &name, &mut open)?;
            if newest.get(&name.0) == Some(&name.1) {
                self.open.insert(name, open);
            } else {
                // Another one follows it: nothing was appended to it since it was listed.
                self.heat.known().over.insert(name);
            }
        }
        Ok(())
    }

    /// Rows of segments that are gone go, too.
    fn forget_deleted(&mut self, there: &BTreeSet<Name>) {
        let mut known = self.heat.known();
        let gone: Vec<Name> =
            known.files.keys().filter(|name| !there.contains(*name)).cloned().collect();
        for name in gone {
            if let Some(file) = known.files.remove(&name) {
                // Whoever deletes the stream's directory is first, perhaps.
                drop(std::fs::remove_file(&file.path));
                drop(std::fs::remove_file(file.path.with_extension(AGED)));
            }
            self.open.remove(&name);
            known.over.remove(&name);
        }
    }

    /// Opens a segment and its rows; `None` when it has no table of samples.
    fn open_segment(&self, name: &Name, segment: SegmentFile) -> io::Result<Option<Open>> {
        let path = segment.path.with_extension(EXTENSION);
        let again = segment.file.try_clone()?;
        let Some(reader) = reader_of(segment.file, &segment.path)? else { return Ok(None) };
        let tables = reader.head().tables.iter().enumerate();
        let tables: BTreeSet<usize> =
            tables.filter(|(_, table)| table.role() == Role::Samples).map(|(at, _)| at).collect();
        if tables.is_empty() {
            return Ok(None);
        }
        let frames = frames_of(reader)?;
        // Rows of samples that were made smaller meanwhile are still those of the samples.
        let is_aged = segment.path.with_extension(AGED).exists();
        let fits = |chunk: &Chunk| {
            let found = frames.get(&chunk.last.0);
            found.is_some_and(|checksum| is_aged || *checksum == chunk.last.1)
        };
        let (file, chunks) = HeatFile::open(&path, fits)?;
        // What is known of an earlier try is known anew.
        self.heat.known().files.remove(name);
        self.heat.known().note(name, &path, file.hosts(), &chunks);
        let done = chunks.last().map_or(0, |chunk| chunk.last.0);
        let Some(reader) = reader_of(again, &segment.path)? else { return Ok(None) };
        Ok(Some(Open { reader, file, path, tables, done }))
    }
}

/// Removes rows of segments that were deleted while no server ran; one that stays is passed over.
fn remove_lone(dir: &Path, there: &BTreeSet<Name>) {
    let entries = |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
    for stream in entries(&dir.join(layout::LOG)) {
        let name = stream.file_name().to_string_lossy().into_owned();
        for file in entries(&stream.path()).map(|entry| entry.path()) {
            let extension = file.extension().and_then(|extension| extension.to_str());
            let is_ours = extension.is_some_and(|of| [EXTENSION, AGED].contains(&of));
            let first = file.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
            if is_ours && first.is_none_or(|first| !there.contains(&(name.clone(), first))) {
                drop(std::fs::remove_file(file));
            }
        }
    }
}

fn reader_of(file: std::fs::File, path: &Path) -> io::Result<Option<SegmentReader>> {
    SegmentReader::from_file(file, path).map_err(of_segment)
}

fn of_segment(error: ReadSegmentError) -> io::Error {
    io::Error::other(error)
}

/// The frames of rows in a segment with the checksums of their payloads, which are not read.
fn frames_of(mut reader: SegmentReader) -> io::Result<BTreeMap<u64, u32>> {
    let mut frames = BTreeMap::new();
    let passed = reader.next_rows(|header| {
        frames.insert(header.sequence, header.payload_crc);
        false
    });
    passed.map_err(of_segment)?;
    Ok(frames)
}

/// Reads frames that came since the last time, and appends their rows.
fn read_on(heat: &Heat, name: &Name, open: &mut Open) -> io::Result<()> {
    open.reader.refresh().map_err(of_segment)?;
    let mut last = None;
    loop {
        let (tables, done) = (&open.tables, open.done);
        let wanted = |header: &meikyo_recording::log::FrameHeader| {
            header.sequence > done && tables.contains(&header.table)
        };
        let header = open.reader.next_rows(wanted).map_err(of_segment)?;
        let Some(header) = header else { break };
        // What cannot be read is told by whoever reads the samples.
        let rows = open.reader.packed_rows(&header);
        let rows = rows.and_then(|rows| of_block(&rows).ok()).unwrap_or_default();
        open.file.add(header.sequence, &rows);
        last = Some((header.sequence, header.payload_crc));
        if open.file.pending() >= CHUNK_BYTES {
            append(heat, name, open, last.take())?;
        }
    }
    append(heat, name, open, last)
}

fn append(heat: &Heat, name: &Name, open: &mut Open, last: Option<(u64, u32)>) -> io::Result<()> {
    let Some(last) = last else { return Ok(()) };
    open.done = last.0;
    if let Some(chunk) = open.file.append(last)? {
        heat.known().note(name, &open.path, open.file.hosts(), &[chunk]);
    }
    Ok(())
}
