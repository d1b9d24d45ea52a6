//! Turning a finished log segment into Parquet files.
//!
//! A segment's rows are sorted by labels and then by time, table by table, and written to one file
//! for each hour that they lie in. Files appear under temporary names, are synced, are renamed, and
//! only then is the segment unlinked: a crash at any point leaves the segment, which hides what was
//! renamed already (see [`crate::layout`]), or the files alone.
//!
//! Summaries are made on the way, see `compact/summaries.rs`.
//!
//! Rows are not copied to be sorted: the payloads of one table are in memory as they are in the log,
//! and the order is 8 octets a row, 20 while it is made. At the limit of 8 million rows a table that
//! is some 300 MB, for the largest table; a smaller `segment_rows` makes it less.

mod files;
mod order;
mod summaries;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::layout::{self, ListError, ParquetName};
use crate::log::FrameHeader;
use crate::parquet_file::Gatherer;
use crate::schema::TableSchema;
use crate::segment::{ReadSegmentError, SegmentReader};
use crate::views;
use files::{NewFiles, SummaryFiles, TEMPORARY, parquet};
use order::RowOrder;
pub(crate) use order::{PART_ROWS_MAX, Place, Rows};
use summaries::SegmentSummaries;
pub use summaries::Summaries;

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
}

/// Why a segment could not be compacted; it is still there.
#[derive(Debug, thiserror::Error)]
pub enum CompactError {
    /// The segment cannot be read.
    #[error("cannot compact segment `{path}`")]
    Segment {
        /// The segment.
        path: PathBuf,
        /// Why.
        source: ReadSegmentError,
    },
    /// A Parquet file could not be written.
    #[error("cannot write `{path}`")]
    Parquet {
        /// The file.
        path: PathBuf,
        /// Why.
        source: parquet::errors::ParquetError,
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
    #[error("cannot look for what an earlier compaction left")]
    List {
        /// Why.
        source: ListError,
    },
}

/// What the headers of a segment say, before any payload is read.
struct Survey {
    reader: SegmentReader,
    first: u64,
    last: u64,
    /// By table, its frames that have rows and where their payloads begin.
    frames: Vec<Vec<(FrameHeader, u64)>>,
    /// The hours that the first and the last row lie in.
    hours: (i64, i64),
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
    let Some(survey) = survey(path)? else {
        unlink(path)?;
        return Ok(Compacted::default());
    };
    remove_leftovers(dir, &survey)?;
    summaries.begin(dir, survey.first);
    let head = survey.reader.head();
    let name = ParquetName { stream: head.stream.clone(), first: survey.first, last: survey.last };
    let mut files = NewFiles::new(dir, name, head.kind);
    let compacted = write_tables(path, &survey, summaries, &mut files);
    match compacted.and_then(|compacted| files.publish().map(|()| compacted)) {
        Ok(compacted) => {
            summaries.end(survey.last);
            note_next(dir, &survey)?;
            views::refresh(dir).map_err(system("write", &dir.join(views::FILE_NAME)))?;
            if compacted.damaged_bytes > 0 {
                let aside = path.with_extension("log.damaged");
                fs::rename(path, &aside).map_err(system("rename", path))?;
            } else {
                unlink(path)?;
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
        let file = match File::open(&lock) {
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
    let mut hours = (i64::MAX, i64::MIN);
    reader
        .next_rows_at(|header, payload| {
            if header.rows > 0 {
                frames[header.table].push((*header, payload));
            }
            hours.0 = hours.0.min(layout::hour_of(header.least_time));
            hours.1 = hours.1.max(layout::hour_of(header.greatest_time));
            false
        })
        .map_err(failed)?;
    let last = reader.ending().last_sequence;
    Ok(Some(Survey { reader, first, last, frames, hours }))
}

/// Removes what an earlier compaction of the same segment left when it was killed.
fn remove_leftovers(dir: &Path, survey: &Survey) -> Result<(), CompactError> {
    let stream = &survey.reader.head().stream;
    let range = survey.first..=survey.last;
    let stale = |name: &ParquetName| name.stream == *stream && range.contains(&name.first);
    let hours = survey.hours.0 - summaries::HOURS_BEFORE..=survey.hours.1;
    let wanted = |_: &str, hour| hours.contains(&hour);
    let files = layout::parquet_files_with(dir, wanted, |file_name| {
        let name = file_name.strip_prefix('.').and_then(|name| name.strip_suffix(TEMPORARY));
        let name = name.unwrap_or(file_name);
        ParquetName::parse(name).filter(|name| stale(name))
    })
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
    let mut summaries = SegmentSummaries::new(summaries, used.iter().map(|&table| &tables[table]));
    for table in used {
        let (payloads, damaged_bytes) = payloads_of(segment, survey, table)?;
        total.damaged_bytes = total.damaged_bytes.max(damaged_bytes);
        let rows = Rows::new(&payloads, &tables[table], segment)?;
        write_table(segment, survey, &tables[table], &rows, &mut summaries, files, &mut total)?;
    }
    total.files = files.count();
    Ok(total)
}

/// Writes the rows of one table and their summary.
fn write_table(
    segment: &Path,
    survey: &Survey,
    schema: &TableSchema,
    rows: &Rows<'_>,
    summaries: &mut SegmentSummaries<'_>,
    files: &mut NewFiles<'_>,
    total: &mut Compacted,
) -> Result<(), CompactError> {
    let symbols = survey.reader.symbols();
    let gatherer = Gatherer::new(rows, schema, symbols);
    let mut summary = summaries.table(schema).map_err(parquet(segment))?;
    let mut summary_files = SummaryFiles::default();
    for (hour, order) in RowOrder::by_hour(rows, schema, symbols) {
        let mut file = files.create(schema, hour)?;
        for part in order.parts(rows, schema) {
            let batch = gatherer.batch(part).map_err(parquet(segment))?;
            file.write(&batch)?;
            let condensed = summary.add(&batch).map_err(parquet(segment))?;
            summary_files.write_all(files, summary.schema(), &condensed)?;
        }
        let condensed = summary.take().map_err(parquet(segment))?;
        summary_files.write_all(files, summary.schema(), &condensed)?;
        let written = file.finish()?;
        total.rows += written.rows;
        total.bytes += written.bytes;
    }
    total.summary_bytes += summary_files.finish()?;
    Ok(())
}

/// The frames of one table with their payloads.
type Payloads = Vec<(FrameHeader, Vec<u8>)>;

/// The frames of one table, and the damaged octets that were met on the way.
fn payloads_of(
    segment: &Path,
    survey: &Survey,
    table: usize,
) -> Result<(Payloads, u64), CompactError> {
    let file = File::open(segment).map_err(system("open", segment))?;
    let mut payloads = Vec::with_capacity(survey.frames[table].len());
    for &(header, begin) in &survey.frames[table] {
        let mut payload = vec![0; header.payload_len];
        file.read_exact_at(&mut payload, begin).map_err(system("read", segment))?;
        if crc32fast::hash(&payload) != header.payload_crc {
            return payloads_around_damage(segment, table);
        }
        payloads.push((header, payload));
    }
    Ok((payloads, survey.reader.ending().damaged_bytes))
}

/// As [`payloads_of`] where a frame is damaged: a reader looks for whole ones behind it.
fn payloads_around_damage(segment: &Path, table: usize) -> Result<(Payloads, u64), CompactError> {
    let failed = |source| CompactError::Segment { path: segment.into(), source };
    let mut payloads = Vec::new();
    let Some(mut reader) = SegmentReader::open(segment).map_err(failed)? else {
        return Ok((payloads, 0));
    };
    while let Some(header) = reader.next_rows(|header| header.table == table).map_err(failed)? {
        payloads.push((header, reader.payload().to_vec()));
    }
    Ok((payloads, reader.ending().damaged_bytes))
}

/// Notes the sequence number that goes on from here, for a log without segments.
fn note_next(dir: &Path, survey: &Survey) -> Result<(), CompactError> {
    let path = layout::next_path(dir, &survey.reader.head().stream);
    let known = fs::read_to_string(&path).ok().and_then(|text| text.trim().parse::<u64>().ok());
    let next = known.unwrap_or(0).max(survey.last + 1);
    let temporary = path.with_extension("tmp");
    fs::write(&temporary, format!("{next}\n")).map_err(system("write", &temporary))?;
    fs::rename(&temporary, &path).map_err(system("rename", &temporary))
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
fn misfit(segment: &Path, header: &FrameHeader) -> CompactError {
    let source =
        ReadSegmentError::Schema { path: segment.to_path_buf(), sequence: header.sequence };
    CompactError::Segment { path: segment.into(), source }
}

/// The positions of the columns that rows are sorted by, most significant first.
fn sort_columns(schema: &TableSchema) -> Vec<usize> {
    crate::series::labels(schema)
        .filter(|&position| schema.columns[position].kind == crate::schema::ColumnKind::Symbol)
        .collect()
}

#[cfg(test)]
mod summary_tests;
#[cfg(test)]
mod tests;
