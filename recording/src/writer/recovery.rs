//! Opening a stream: the lock, and putting right what an earlier writer left.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use meikyo_units::WallTime;

use super::{Incident, IncidentKind};
use crate::compact::frames_were_written;
use crate::declared::{self, AddError};
use crate::format::{self, IdentityError, Kind};
use crate::layout::{self, ListError};
use crate::log::FrameHeader;
use crate::manifest::{self, Unit};
use crate::origin::{self, Arrived, Origin, Received};
use crate::progress::{self, Progress};
use crate::schema::{SchemaError, TableSchema};
use crate::segment::{ReadSegmentError, SegmentReader, ended, remove_index};
use crate::unfinished::is_unfinished;
use crate::unsynced;

/// Why a stream could not be opened for writing.
#[derive(Debug, thiserror::Error)]
pub enum OpenStreamError {
    /// The directory is not a recording that this can be written to.
    #[error("cannot write to recording `{path}`")]
    Recording {
        /// Directory that was to be written to.
        path: PathBuf,
        /// What is wrong with `recording.toml`.
        source: IdentityError,
    },
    /// Another writer has the stream.
    #[error("stream `{stream}` of recording `{path}` already has a writer, in another process")]
    Locked {
        /// The stream that somebody else writes.
        stream: String,
        /// Recording with the stream.
        path: PathBuf,
    },
    /// The name cannot be that of a directory.
    #[error(
        "`{name}` cannot name a stream: letters, digits, `_`, `-` and `.` are allowed, a letter or \
         digit first, `log` is taken"
    )]
    Name {
        /// The name as it was given.
        name: String,
    },
    /// A table cannot be written.
    #[error("cannot write stream `{stream}`")]
    Table {
        /// The stream that was to be written.
        stream: String,
        /// What is wrong with the table.
        source: SchemaError,
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
    /// An old segment cannot be read.
    #[error("cannot recover stream `{stream}`")]
    Segment {
        /// The stream that was to be written.
        stream: String,
        /// What the segment's reader met.
        source: ReadSegmentError,
    },
    /// The recording's files cannot be listed.
    #[error("cannot recover stream `{stream}`")]
    List {
        /// The stream that was to be written.
        stream: String,
        /// Which directory cannot be listed.
        source: ListError,
    },
    /// A thread could not be started.
    #[error("cannot start a writer thread")]
    Thread {
        /// What the system said.
        source: io::Error,
    },
}

/// Who only looks whether a stream has a writer holds the lock for some microseconds.
const LOCK_TRIES: usize = 100;

/// Blocks from elsewhere that are told of one by one, the newest ones.
const ARRIVED_MAX: usize = 1 << 16;

/// What is known once a stream has been put right.
pub(super) struct Recovered {
    pub(super) lock: File,
    pub(super) next_sequence: u64,
    /// The last sequence number that was handed to the kernel; 0 when none was.
    pub(super) last_sequence: u64,
    /// The last one that was found; a power cut may have taken what was written behind it.
    pub(super) last_found: u64,
    /// Old segments that hold rows, in order.
    pub(super) leftovers: Vec<PathBuf>,
    pub(super) torn_bytes: u64,
    /// Whether all old segments are on the disk.
    pub(super) is_synced: bool,
    /// The blocks from elsewhere that the stream has, and those of them that its segments hold.
    pub(super) received: Received,
    pub(super) arrived: VecDeque<Arrived>,
    pub(super) incidents: Vec<Incident>,
}

impl Recovered {
    /// Notes a block from elsewhere that a segment holds.
    fn note(&mut self, tables: &[TableSchema], frame: &FrameHeader, origin: Origin) {
        self.received.add(&origin);
        if self.arrived.len() >= ARRIVED_MAX {
            self.arrived.pop_front();
        }
        let table = tables.get(frame.table).map(|table| table.name.clone()).unwrap_or_default();
        let times = (frame.least_time, frame.greatest_time);
        self.arrived.push_back(Arrived { table, origin, times });
    }
}

pub(super) fn recover(
    dir: &Path,
    kind: Kind,
    stream: &str,
    tables: &[TableSchema],
) -> Result<Recovered, OpenStreamError> {
    check_names(stream, tables)?;
    format::create(dir, kind)
        .map_err(|source| OpenStreamError::Recording { path: dir.into(), source })?;
    let stream_dir = layout::stream_dir(dir, stream);
    let lock = lock(dir, &stream_dir, stream)?;
    let declared = declared::add(&stream_dir, tables);
    let listed = |source| OpenStreamError::List { stream: stream.into(), source };
    let mut recovered = Recovered {
        lock,
        next_sequence: 1,
        last_sequence: 0,
        last_found: 0,
        leftovers: Vec::new(),
        torn_bytes: 0,
        is_synced: true,
        received: Received::default(),
        arrived: VecDeque::new(),
        incidents: Vec::new(),
    };
    if let Err(AddError { path, source, misleads }) = declared {
        if misleads {
            return Err(OpenStreamError::System { doing: "replace", path, source });
        }
        let kind = IncidentKind::DiskRefused;
        let text = format!("cannot write `{}`: {source}; rows are kept without it", path.display());
        recovered.incidents.push(Incident { at: WallTime::now(), kind, rows: 0, text });
    }
    let last_compacted = layout::last_sequence(dir, stream).map_err(listed)?;
    recovered.last_sequence = last_compacted;
    let system = |doing, path: &Path| {
        let path = path.to_path_buf();
        move |source| OpenStreamError::System { doing, path, source }
    };
    let manifest_path = stream_dir.join(manifest::FILE_NAME);
    manifest::adopt(&stream_dir, last_compacted).map_err(system("write", &manifest_path))?;
    // What cannot be read is told by every reader; measuring goes on.
    let listed_last = manifest::read(&stream_dir).ok().flatten().map_or(0, |known| known.last());
    let progress = progress::read(&stream_dir).ok().flatten();
    recovered.last_sequence = recovered.last_sequence.max(listed_last);
    match origin::read(&stream_dir) {
        Ok(received) => recovered.received = received,
        Err(error) => {
            let path = stream_dir.join(origin::FILE_NAME);
            let text = format!(
                "cannot read `{}`: {error}; blocks that are sent again may be stored twice",
                path.display()
            );
            let kind = IncidentKind::Damage;
            recovered.incidents.push(Incident { at: WallTime::now(), kind, rows: 0, text });
        }
    }
    let segments = layout::segments_of(&stream_dir).map_err(listed)?;
    remove_lone_indexes(&stream_dir, &segments).map_err(listed)?;
    let was_refused = write_refused_anew(&stream_dir, &segments)?;
    for (first, path) in segments {
        let last = put_right(&path, stream, &mut recovered)?;
        tell_what_is_missing(&path, first, last, progress, &mut recovered);
        recovered.next_sequence = recovered.next_sequence.max(first + 1);
        recovered.last_sequence = recovered.last_sequence.max(last);
    }
    sync_leftovers(&stream_dir, &mut recovered);
    if was_refused && recovered.is_synced {
        let path = stream_dir.join(unsynced::FILE_NAME);
        unsynced::take_back(&stream_dir).map_err(system("remove", &path))?;
    }
    recovered.last_found = recovered.last_sequence;
    recovered.last_sequence = recovered.last_sequence.max(progress.map_or(0, |known| known.last));
    recovered.next_sequence = recovered.next_sequence.max(recovered.last_sequence + 1);
    Ok(recovered)
}

/// Writes segments anew that the disk refused to sync, before anything of them is believed; whether it had
/// refused.
fn write_refused_anew(
    stream_dir: &Path,
    segments: &[(u64, PathBuf)],
) -> Result<bool, OpenStreamError> {
    if !unsynced::is_noted(stream_dir) {
        return Ok(false);
    }
    for (_, path) in segments {
        unsynced::write_anew(path).map_err(|source| OpenStreamError::System {
            doing: "write anew",
            path: path.clone(),
            source,
        })?;
    }
    Ok(true)
}

/// Removes indexes of segments that are not there any more, and files that nobody finished.
fn remove_lone_indexes(stream_dir: &Path, segments: &[(u64, PathBuf)]) -> Result<(), ListError> {
    for (name, path) in layout::entries(stream_dir)? {
        let segment = path.with_extension("log");
        let is_lone = segments.iter().all(|(_, known)| *known != segment);
        if name.ends_with(".index") && is_lone {
            remove_index(&segment);
        }
        // What was written before this version had names of its own.
        if is_unfinished(&name) || name.ends_with(".index.tmp") {
            // Of a writer that was killed while it wrote it; one that stays is passed over.
            drop(fs::remove_file(path));
        }
    }
    Ok(())
}

/// Forces old segments to the disk: a writer that was killed may not have done so, and the watermark
/// begins behind them.
fn sync_leftovers(stream_dir: &Path, recovered: &mut Recovered) {
    let sync = |path: &Path| File::open(path)?.sync_data();
    let mut synced = recovered.leftovers.iter().try_for_each(|path| sync(path));
    if !recovered.leftovers.is_empty() {
        synced = synced.and_then(|()| File::open(stream_dir)?.sync_all());
    }
    if let Err(error) = synced {
        recovered.is_synced = false;
        // Without the note the stream stays refused as long as this writer lives.
        drop(unsynced::note(stream_dir));
        let text = format!(
            "cannot force `{}` to the disk: {error}; a power cut may take rows of it",
            stream_dir.display()
        );
        let kind = IncidentKind::DiskRefused;
        recovered.incidents.push(Incident { at: WallTime::now(), kind, rows: 0, text });
    }
}

/// Reports a newest segment that ends before what its writer had handed to the kernel.
fn tell_what_is_missing(
    path: &Path,
    first: u64,
    last: u64,
    progress: Option<Progress>,
    recovered: &mut Recovered,
) {
    let Some(progress) = progress.filter(|known| known.first == first && known.last > last) else {
        return;
    };
    let text = format!(
        "`{}` ends with frame {last}, and frames up to {} were written: a power cut took the rows \
         in between, or somebody truncated the file",
        path.display(),
        progress.last
    );
    let kind = IncidentKind::Damage;
    recovered.incidents.push(Incident { at: WallTime::now(), kind, rows: 0, text });
}

fn check_names(stream: &str, tables: &[TableSchema]) -> Result<(), OpenStreamError> {
    if !layout::is_name(stream) || stream == layout::LOG {
        return Err(OpenStreamError::Name { name: stream.into() });
    }
    let checked = tables.iter().try_for_each(TableSchema::check);
    checked.map_err(|source| OpenStreamError::Table { stream: stream.into(), source })
}

fn lock(dir: &Path, stream_dir: &Path, stream: &str) -> Result<File, OpenStreamError> {
    let refused = |doing, path: &Path| {
        let path = path.to_path_buf();
        move |source| OpenStreamError::System { doing, path, source }
    };
    fs::create_dir_all(stream_dir).map_err(refused("create", stream_dir))?;
    let path = stream_dir.join("lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(refused("open", &path))?;
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
            Err(TryLockError::Error(source)) => return Err(refused("lock", &path)(source)),
        }
    }
    Err(OpenStreamError::Locked { stream: stream.into(), path: dir.into() })
}

/// Cuts what a killed writer left behind the last whole frame; returns that frame's number.
fn put_right(path: &Path, stream: &str, recovered: &mut Recovered) -> Result<u64, OpenStreamError> {
    let failed = |source| OpenStreamError::Segment { stream: stream.into(), source };
    let system = |doing| move |source| OpenStreamError::System { doing, path: path.into(), source };
    let at = WallTime::now();
    let opened = match SegmentReader::open(path) {
        Ok(None) if frames_were_written(path) => {
            fs::rename(path, path.with_extension(layout::DAMAGED)).map_err(system("rename"))?;
            remove_index(path);
            let text = format!(
                "`{}` holds no whole frame, and some were written; it was renamed to end in `.damaged`",
                path.display()
            );
            recovered.incidents.push(Incident { at, kind: IncidentKind::Damage, rows: 0, text });
            return Ok(0);
        }
        Err(error @ ReadSegmentError::Head { .. }) => {
            // Measuring goes on; whoever wants to rescue the rows finds them in the renamed file.
            fs::rename(path, path.with_extension(layout::DAMAGED)).map_err(system("rename"))?;
            remove_index(path);
            let text = format!("{error}; it was renamed to end in `.damaged`");
            recovered.incidents.push(Incident { at, kind: IncidentKind::Damage, rows: 0, text });
            return Ok(0);
        }
        Ok(opened) => opened,
        Err(error) => return Err(failed(error)),
    };
    let Some(mut reader) = opened else {
        let torn = fs::metadata(path).map_err(system("read"))?.len();
        fs::remove_file(path).map_err(system("remove"))?;
        if torn > 0 {
            recovered.torn_bytes += torn;
            let text =
                format!("`{}` held no whole frame, its {torn} bytes were cut", path.display());
            recovered.incidents.push(Incident { at, kind: IncidentKind::TornTail, rows: 0, text });
        }
        return Ok(0);
    };
    let mut rows = 0;
    reader.begin_index();
    while let Some(frame) = reader.next_rows(|_| true).map_err(failed)? {
        rows += frame.rows;
        if let Some(origin) = reader.origin(&frame) {
            recovered.note(&reader.head().tables, &frame, origin);
        }
    }
    let ending = reader.ending();
    if ending.torn_bytes > 0 {
        let file = OpenOptions::new().write(true).open(path).map_err(system("open"))?;
        file.set_len(ending.whole_bytes).map_err(system("cut"))?;
        file.sync_all().map_err(system("sync"))?;
        recovered.torn_bytes += ending.torn_bytes;
        let torn = ending.torn_bytes;
        let text = format!("the last {torn} bytes of `{}` were cut: a torn frame", path.display());
        recovered.incidents.push(Incident { at, kind: IncidentKind::TornTail, rows: 0, text });
    }
    if let Some(damage) = ending.first_damage {
        let text = format!(
            "{} bytes of `{}` are damaged, the first at {damage}; rows in them are lost",
            ending.damaged_bytes,
            path.display()
        );
        recovered.incidents.push(Incident { at, kind: IncidentKind::Damage, rows: 0, text });
    }
    keep_or_remove(path, &reader, rows, recovered)
        .map_err(|(doing, source)| system(doing)(source))?;
    Ok(ending.last_sequence)
}

/// Removes a segment that holds nothing but its head and symbols; any other is a leftover.
fn keep_or_remove(
    path: &Path,
    reader: &SegmentReader,
    rows: usize,
    recovered: &mut Recovered,
) -> Result<(), (&'static str, io::Error)> {
    let ending = reader.ending();
    if rows == 0 && ending.problem(None).is_none() {
        let (first, before) = reader.begin();
        let stream_dir = path.parent().unwrap_or(path);
        let unit = Unit::without_files(first, ending.last_sequence, before);
        manifest::add(stream_dir, unit).map_err(|error| ("note the end of", error))?;
        fs::remove_file(path).map_err(|error| ("remove", error))?;
        remove_index(path);
        return Ok(());
    }
    match reader.index() {
        // Readers do without one that the system refuses.
        Some(index) => {
            drop(index.write(path));
            drop(ended::note(path, index));
        }
        None => remove_index(path),
    }
    recovered.leftovers.push(path.into());
    Ok(())
}
