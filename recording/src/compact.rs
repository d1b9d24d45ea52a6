//! Turning a finished log segment into Parquet files.
//!
//! A segment's rows are sorted by labels and then by time, table by table, and written to one file
//! for each hour that they lie in. Files appear under temporary names, are synced, are renamed, and
//! only then is the segment unlinked: a crash at any point leaves the segment, which hides what was
//! renamed already (see [`crate::layout`]), or the files alone.
//!
//! Summaries are made on the way, see `compact/summaries.rs`.
//!
//! # Memory
//! A segment is never in memory. A first pass over the frames of a table numbers its series
//! (`compact/order.rs`: 2 octets a row), then parts of at most `ROOM` octets are gathered from the
//! frames and written, each in a pass of its own (`compact/part.rs`). Beside that there are the
//! encoded columns of one row group and those of the open groups of a summary. The test
//! `a_compaction_takes_bounded_memory` counts what is allocated.

mod files;
mod frames;
mod order;
mod part;
mod summaries;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

use crate::layout::{self, ListError, ParquetName};
use crate::log::columns_of;
use crate::manifest::{self, Unit};
use crate::origin::{self, Received};
use crate::problem::{open_regular, read_regular};
use crate::progress::{self, Progress};
use crate::schema::TableSchema;
use crate::segment::{ReadSegmentError, SegmentReader, remove_index};
use crate::unfinished::{Durability, replace_file};
use crate::views;
use files::{NewFiles, SummaryFiles, TEMPORARY};
use frames::{Frame, TableFrames, Texts};
use order::SeriesIndex;
use part::{Gatherer, divide};
pub use summaries::Summaries;
use summaries::{Polls, SegmentSummaries};

/// Octets that a part and the numbers of the series of its rows may take together, and those that a
/// part may take in any case: with less, a segment of millions of rows would be read too often.
const ROOM: usize = 20 << 20;
const ROOM_MIN: usize = 12 << 20;

/// What a compaction made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Compacted {
    /// Rows in the files, summaries apart.
    pub rows: u64,
    /// Octets of the files, summaries apart.
    pub bytes: u64,
    /// Octets of the summaries.
    pub summary_bytes: u64,
    /// Files, summaries among them.
    pub files: u64,
    /// Octets of the segment that are damaged; it is then renamed to end in `.damaged` and kept.
    pub damaged_bytes: u64,
    /// Whole frames that do not fit the segment's schema; the segment is then kept, too.
    pub unread_frames: u64,
    /// Whole frames of a kind that this version does not know; the segment is then renamed to end
    /// in `.unknown` if nothing else is wrong with it, and kept.
    pub unknown_frames: u64,
}

impl Compacted {
    /// What ends the name under which the segment is kept, if some of it could not be read.
    fn kept_as(&self) -> Option<&'static str> {
        if self.damaged_bytes > 0 || self.unread_frames > 0 {
            Some(layout::DAMAGED)
        } else {
            (self.unknown_frames > 0).then_some(layout::UNKNOWN)
        }
    }
}

/// Why a segment could not be compacted; it is still there.
#[derive(Debug, thiserror::Error)]
pub enum CompactError {
    /// The segment cannot be read.
    #[error("cannot compact segment `{path}`")]
    Segment {
        /// Segment that was to be compacted.
        path: PathBuf,
        /// What the segment's reader met.
        source: ReadSegmentError,
    },
    /// A Parquet file could not be written.
    #[error("cannot write `{path}`")]
    Parquet {
        /// Parquet file that was to be written.
        path: PathBuf,
        /// What the writer of Parquet met.
        source: ParquetError,
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
    /// The recording's files cannot be listed.
    #[error("cannot look for the remains of an earlier compaction")]
    List {
        /// Which directory cannot be listed.
        source: ListError,
    },
}

/// What the headers of a segment say, before any payload is read.
struct Survey {
    reader: SegmentReader,
    file: File,
    first: u64,
    last: u64,
    /// By table, its frames that have rows.
    frames: Vec<Vec<Frame>>,
    texts: Texts,
    /// Where its packed rows come from.
    received: Received,
    /// The least and the greatest `time`; the least is greater where there is no row.
    times: (i64, i64),
}

impl Survey {
    /// The hours that the first and the last row lie in.
    fn hours(&self) -> (i64, i64) {
        (layout::hour_of(self.times.0), layout::hour_of(self.times.1))
    }
}

/// Compacts the finished segment at `path` of the recording in `dir`, and unlinks it.
///
/// The stream's lock must be held: nobody else may compact or write the segment. `summaries` is
/// that of the stream, whose segments are compacted in their order; out of order the summaries
/// lack what counters counted between two segments.
///
/// # Errors
/// When something cannot be read or written; the segment then stays as it was.
pub fn compact(
    dir: &Path,
    path: &Path,
    summaries: &mut Summaries,
) -> Result<Compacted, CompactError> {
    let survey = match survey(path) {
        Ok(Some(survey)) => survey,
        Ok(None) if !frames_were_written(path) => {
            unlink(path)?;
            return Ok(Compacted::default());
        }
        // Nobody knows what its rows are; who wants to rescue them finds them in the renamed file.
        Ok(None) | Err(CompactError::Segment { source: ReadSegmentError::Head { .. }, .. }) => {
            let damaged_bytes = fs::metadata(path).map_err(system("read", path))?.len();
            put_aside(path, layout::DAMAGED)?;
            return Ok(Compacted { damaged_bytes, ..Compacted::default() });
        }
        Err(error) => return Err(error),
    };
    remove_leftovers(dir, &survey)?;
    summaries.begin(dir, survey.first, &survey.reader.head().tables);
    let head = survey.reader.head();
    let name = ParquetName { stream: head.stream.clone(), first: survey.first, last: survey.last };
    let mut files = NewFiles::new(dir, name, head.kind);
    let compacted = write_tables(path, &survey, summaries, &mut files);
    match compacted.and_then(|compacted| files.publish().map(|()| compacted)) {
        Ok(compacted) => {
            summaries.end(survey.last);
            note_received(dir, &survey)?;
            note_in_manifest(dir, &survey, files.entries())?;
            note_next(dir, &survey)?;
            views::refresh(dir).map_err(system("write", &dir.join(views::FILE_NAME)))?;
            match compacted.kept_as() {
                Some(ending) => put_aside(path, ending)?,
                None => {
                    unlink(path)?;
                    remove_index(path);
                }
            }
            Ok(compacted)
        }
        Err(error) => {
            files.discard();
            Err(error)
        }
    }
}

/// What compacting a stream that nobody writes came to.
#[derive(Debug)]
pub enum StreamOutcome {
    /// Every segment was compacted; what they made together, and how many they were.
    Compacted(Compacted, u64),
    /// A writer has the stream, which compacts it itself.
    Live,
}

/// Compacts every segment of every stream of the recording in `dir` that no writer has.
///
/// Returns the streams by name with what came of them.
///
/// # Errors
/// At the first segment that cannot be compacted; those before it are, and it stays as it was.
pub fn compact_recording(dir: &Path) -> Result<Vec<(String, StreamOutcome)>, CompactError> {
    let listed = |source| CompactError::List { source };
    let mut outcomes = Vec::new();
    for (stream, path) in layout::entries(&dir.join(layout::LOG)).map_err(listed)? {
        let lock = path.join("lock");
        let file = match open_regular(&lock) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(source) => return Err(system("open", &lock)(source)),
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                outcomes.push((stream, StreamOutcome::Live));
                continue;
            }
            Err(fs::TryLockError::Error(source)) => return Err(system("lock", &lock)(source)),
        }
        let mut total = Compacted::default();
        let mut summaries = Summaries::default();
        let mut segments = 0;
        for (_, segment) in layout::segments_of(&path).map_err(listed)? {
            let made = compact(dir, &segment, &mut summaries)?;
            total.rows += made.rows;
            total.bytes += made.bytes;
            total.summary_bytes += made.summary_bytes;
            total.files += made.files;
            total.damaged_bytes += made.damaged_bytes;
            total.unread_frames += made.unread_frames;
            total.unknown_frames += made.unknown_frames;
            segments += 1;
        }
        outcomes.push((stream, StreamOutcome::Compacted(total, segments)));
    }
    Ok(outcomes)
}

fn survey(path: &Path) -> Result<Option<Survey>, CompactError> {
    let failed = |source| CompactError::Segment { path: path.into(), source };
    let Some(mut reader) = SegmentReader::open(path).map_err(failed)? else { return Ok(None) };
    let mut frames = vec![Vec::new(); reader.head().tables.len()];
    let first = reader.ending().last_sequence;
    let mut times = (i64::MAX, i64::MIN);
    reader
        .next_rows_at(|header, payload| {
            if header.rows > 0 {
                frames[header.table].push(Frame::new(header, payload));
            }
            times = (times.0.min(header.least_time), times.1.max(header.greatest_time));
            false
        })
        .map_err(failed)?;
    let last = reader.ending().last_sequence;
    let file = open_regular(path).map_err(system("open", path))?;
    let mut texts = Texts::new(reader.symbols().of_log());
    let mut received = Received::default();
    for (schema, frames) in reader.head().tables.iter().zip(&frames) {
        frames::number_texts((&file, path), schema, frames, (&mut texts, &mut received))?;
    }
    Ok(Some(Survey { reader, file, first, last, frames, texts, received, times }))
}

/// Removes what an earlier compaction of the same segment left when it was killed.
fn remove_leftovers(dir: &Path, survey: &Survey) -> Result<(), CompactError> {
    let stream = &survey.reader.head().stream;
    let range = survey.first..=survey.last;
    let stale = |name: &ParquetName| name.stream == *stream && range.contains(&name.first);
    let hours = survey.hours();
    let hours = hours.0.saturating_sub(summaries::HOURS_BEFORE)..=hours.1;
    let wanted = |_: &str, hour| hours.contains(&hour);
    let parse = |file_name: &str| {
        let name = file_name.strip_prefix('.').and_then(|name| name.strip_suffix(TEMPORARY));
        let name = name.unwrap_or(file_name);
        ParquetName::parse(name).filter(|name| stale(name))
    };
    let files = layout::parquet_files_with(dir, wanted, parse, &mut Vec::new())
        .map_err(|source| CompactError::List { source })?;
    for file in files {
        unlink(&file.path)?;
    }
    Ok(())
}

fn write_tables(
    segment: &Path,
    survey: &Survey,
    summaries: &mut Summaries,
    files: &mut NewFiles<'_>,
) -> Result<Compacted, CompactError> {
    let mut total = Compacted::default();
    let tables = &survey.reader.head().tables;
    let used = |table: &usize| !survey.frames[*table].is_empty();
    let used: Vec<_> = summaries::order_of(tables).filter(used).collect();
    let ending = survey.reader.ending();
    total.unread_frames = ending.unfit_frames;
    total.unknown_frames = ending.unknown_frames;
    total.damaged_bytes = ending.damaged_bytes;
    let mut summaries = SegmentSummaries::new(summaries, used.iter().map(|&table| &tables[table]));
    let mut polls: Option<(usize, Vec<Frame>, SeriesIndex)> = None;
    for table in used {
        let (file, schema, texts) = (&survey.file, &tables[table], &survey.texts);
        let of_table = |frames| TableFrames { segment, file, schema, frames, texts };
        let symbols = texts.texts.as_slice();
        let readable;
        let mut frames = survey.frames[table].as_slice();
        let index = match SeriesIndex::new(&of_table(frames), symbols)? {
            Some(index) => index,
            None => {
                readable = readable_frames(segment, table, &tables[table])?;
                total.damaged_bytes = total.damaged_bytes.max(readable.damaged_bytes);
                total.unread_frames += readable.unread;
                total.unknown_frames += readable.unknown;
                frames = &readable.frames;
                if frames.is_empty() {
                    continue;
                }
                SeriesIndex::new(&of_table(frames), symbols)?.ok_or_else(|| changed(segment))?
            }
        };
        let polls_index = polls.as_ref().filter(|_| summaries.needs_polls(&tables[table]));
        let of_polls = polls_index.map(|(polls, frames, index)| {
            let frames = TableFrames { schema: &tables[*polls], frames, ..of_table(&[]) };
            Polls::new(frames, index, symbols)
        });
        let of_polls = of_polls.transpose().map_err(parquet_error(segment))?;
        let rows = TableRows { frames: of_table(frames), index: &index, symbols, polls: of_polls };
        write_table(&rows, &mut summaries, files, &mut total)?;
        if summaries.are_polls(&tables[table]) {
            polls = Some((table, frames.to_vec(), index));
        }
    }
    total.files = files.count();
    Ok(total)
}

/// The rows of one table, and what their summary is joined with.
struct TableRows<'a> {
    frames: TableFrames<'a>,
    index: &'a SeriesIndex,
    symbols: &'a [Option<String>],
    polls: Option<Polls<'a>>,
}

/// Writes the rows of one table and their summary.
fn write_table(
    rows: &TableRows<'_>,
    summaries: &mut SegmentSummaries<'_>,
    files: &mut NewFiles<'_>,
    total: &mut Compacted,
) -> Result<(), CompactError> {
    let TableSchema { columns, .. } = rows.frames.schema;
    let segment = rows.frames.segment;
    let all = (0..columns.len()).collect();
    let gatherer = Gatherer::new(rows.frames, rows.index, rows.symbols, all);
    let gatherer = gatherer.map_err(parquet_error(segment))?;
    let mut summary = summaries.table(rows.frames.schema);
    let mut summary_files = SummaryFiles::default();
    let polls = rows.polls.as_ref();
    let numbers = rows.index.bytes() + polls.map_or(0, Polls::bytes);
    let room = ROOM.saturating_sub(numbers).max(ROOM_MIN);
    let beside = |before, id| polls.map_or(0, |polls| polls.octets_of(rows.index, before, id));
    let parts = divide(rows.index, gatherer.row_octets(), room, beside);
    for parts in parts.chunk_by(|a, b| a.hour == b.hour) {
        let mut file = files.create(rows.frames.schema, parts[0].hour)?;
        for part in parts {
            let batch = gatherer.batch(part)?;
            file.write(&batch)?;
            let polls = polls.map(|polls| polls.times_of(rows.index, part)).transpose()?;
            summary.add(&batch, polls.as_ref()).map_err(parquet_error(segment))?;
            drop((batch, polls));
            summary_files.write(segment, files, &mut summary)?;
        }
        summary_files.end_groups()?;
        let written = file.finish()?;
        total.rows += written.rows;
        total.bytes += written.bytes;
    }
    total.summary_bytes += summary_files.finish()?;
    Ok(())
}

/// The frames of a table that can be read where some cannot.
struct ReadableFrames {
    frames: Vec<Frame>,
    damaged_bytes: u64,
    /// Frames whose checksum is right and whose payload is not of the schema.
    unread: u64,
    /// Frames of packed rows of a version that this one does not know.
    unknown: u64,
}

/// Looks for whole frames of a table also behind those that are not.
fn readable_frames(
    segment: &Path,
    table: usize,
    schema: &TableSchema,
) -> Result<ReadableFrames, CompactError> {
    let failed = |source| CompactError::Segment { path: segment.into(), source };
    let mut readable =
        ReadableFrames { frames: Vec::new(), damaged_bytes: 0, unread: 0, unknown: 0 };
    let Some(mut reader) = SegmentReader::open(segment).map_err(failed)? else {
        return Ok(readable);
    };
    let mut begin = 0;
    while let Some(header) = reader
        .next_rows_at(|header, payload| {
            begin = payload;
            header.table == table
        })
        .map_err(failed)?
    {
        let unknown = reader.ending().unknown_frames;
        let frame = Frame::new(&header, begin);
        let payload = reader.rows_payload(&header);
        let columns = payload.and_then(|payload| columns_of(payload, header.rows, schema));
        if columns.is_none_or(|columns| header.rows > 0 && !frame.has_times(&columns[0])) {
            // What the reader counts as unknown is not counted twice.
            let newly_unknown = reader.ending().unknown_frames - unknown;
            readable.unknown += newly_unknown;
            readable.unread += 1 - newly_unknown.min(1);
        } else if header.rows > 0 {
            readable.frames.push(frame);
        }
    }
    readable.damaged_bytes = reader.ending().damaged_bytes;
    Ok(readable)
}

fn parquet_error<E: Into<ParquetError>>(path: &Path) -> impl Fn(E) -> CompactError {
    move |source| CompactError::Parquet { path: path.into(), source: source.into() }
}

/// The error of a segment whose frames were whole a moment ago.
fn changed(segment: &Path) -> CompactError {
    let source = io::Error::other("its octets change while it is read");
    CompactError::System { doing: "read", path: segment.into(), source }
}

/// Notes which blocks from elsewhere the files hold, before the segment that says so is gone.
fn note_received(dir: &Path, survey: &Survey) -> Result<(), CompactError> {
    let stream_dir = layout::stream_dir(dir, &survey.reader.head().stream);
    let path = stream_dir.join(origin::FILE_NAME);
    origin::note(&stream_dir, &survey.received).map_err(system("write", &path))
}

/// Notes in the manifest which files were made; from then on they must be there.
fn note_in_manifest(
    dir: &Path,
    survey: &Survey,
    files: Vec<manifest::FileEntry>,
) -> Result<(), CompactError> {
    let stream_dir = layout::stream_dir(dir, &survey.reader.head().stream);
    let (_, before) = survey.reader.begin();
    // Nobody knows the times of frames of an unknown kind, which are kept beside the files.
    let is_known = survey.reader.ending().unknown_frames == 0;
    let times = (is_known && survey.times.0 <= survey.times.1).then_some(survey.times);
    let span = Unit::without_files(survey.first, survey.last, before);
    let path = stream_dir.join(manifest::FILE_NAME);
    manifest::add(&stream_dir, Unit { times, files, ..span }).map_err(system("write", &path))?;
    let path = stream_dir.join(progress::FILE_NAME);
    // What an earlier version wrote has none.
    if matches!(progress::read(&stream_dir), Ok(None)) {
        let progress = Progress { first: survey.first, last: survey.last };
        progress::replace(&stream_dir, progress).map_err(system("write", &path))?;
    }
    Ok(())
}

/// Notes the sequence number that goes on from here, for a log without segments.
fn note_next(dir: &Path, survey: &Survey) -> Result<(), CompactError> {
    let path = layout::next_path(dir, &survey.reader.head().stream);
    let known = read_regular(&path).ok().and_then(|text| text.trim().parse::<u64>().ok());
    let next = known.unwrap_or(0).max(survey.last + 1);
    let text = format!("{next}\n");
    replace_file(&path, text.as_bytes(), Durability::Kernel).map_err(system("write", &path))
}

/// Whether the stream's progress says that frames of the segment were handed to the kernel.
pub(crate) fn frames_were_written(segment: &Path) -> bool {
    let first = segment.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok());
    let progress = segment.parent().map(progress::read);
    match (first, progress) {
        (Some(first), Some(Ok(Some(progress)))) => progress.last >= first,
        _ => false,
    }
}

/// Renames a segment of which not everything could be read to what readers only tell of. It is never
/// deleted: somebody may rescue what is in it, or a later version may know its frames.
fn put_aside(path: &Path, ending: &str) -> Result<(), CompactError> {
    fs::rename(path, path.with_extension(ending)).map_err(system("rename", path))?;
    remove_index(path);
    path.parent().map_or(Ok(()), sync_directory)
}

fn unlink(path: &Path) -> Result<(), CompactError> {
    fs::remove_file(path).map_err(system("remove", path))?;
    path.parent().map_or(Ok(()), sync_directory)
}

fn sync_directory(directory: &Path) -> Result<(), CompactError> {
    let opened = File::open(directory).map_err(system("open", directory))?;
    opened.sync_all().map_err(system("sync", directory))
}

fn system(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> CompactError {
    let path = path.to_path_buf();
    move |source| CompactError::System { doing, path: path.clone(), source }
}

/// The error of a frame whose checksum is right and whose payload is not of the schema.
fn misfit(segment: &Path, sequence: u64) -> CompactError {
    let source = ReadSegmentError::Schema { path: segment.to_path_buf(), sequence };
    CompactError::Segment { path: segment.into(), source }
}

/// The positions of the columns that rows are sorted by, most significant first.
fn sort_columns(schema: &TableSchema) -> Vec<usize> {
    crate::series::labels(schema)
        .filter(|&position| schema.columns[position].kind == crate::schema::ColumnKind::Symbol)
        .collect()
}

#[cfg(test)]
mod packed_tests;
#[cfg(test)]
mod summary_tests;
#[cfg(test)]
mod tests;
