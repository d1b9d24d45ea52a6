//! What a recording holds: rows, octets, times and gaps, by the headers of its files alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use meikyo_units::{Nanos, WallTime, in_one_line};

use crate::declared;
use crate::files::KnownSegment;
use crate::format::{self, Identity, IdentityError};
use crate::layout::{self, ListError, ParquetFile, SegmentFile};
use crate::problem::{Problem, open_regular};
use crate::read::{
    Meter, OpenError, ReadCost, ReadError, Recording, Verification, VerifiedFile, rows_told,
    time_span_of,
};
pub use crate::segment::GAP_LEAST;
use crate::segment::{Ending, ReadSegmentError, SegmentIndex, SegmentReader};
use crate::summary::SUFFIX;

/// What a recording holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Inventory {
    /// What `recording.toml` says.
    pub identity: Identity,
    /// The tables that have rows, by name; summaries among them.
    pub tables: Vec<TableInventory>,
    /// Octets of the log.
    pub log_bytes: u64,
    /// Octets of Parquet files, summaries apart.
    pub parquet_bytes: u64,
    /// Octets of summaries.
    pub summary_bytes: u64,
    /// The spans that streams have rows for, and what lies between them.
    pub streams: Vec<StreamInventory>,
    /// Octets that can still be written to the recording's file system; `None` where it does not say.
    pub room_bytes: Option<u64>,
    /// Parquet files that have no checksums: an earlier version wrote them.
    pub unverified_files: u64,
    /// What is missing, damaged or does not belong, as far as headers, footers and the manifest show
    /// it; [`crate::check::check`] reads the rest, too.
    pub problems: Vec<Problem>,
    /// What was touched; of files that verify nothing here, headers of segments alone.
    pub cost: ReadCost,
}

/// What one table holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableInventory {
    /// The table's name.
    pub name: String,
    /// Its rows, in the log and in Parquet files.
    pub rows: u64,
    /// Rows of these that are still in the log.
    pub log_rows: u64,
    /// Octets of its Parquet files.
    pub parquet_bytes: u64,
    /// Its Parquet files.
    pub files: u64,
    /// The least and the greatest `time`.
    pub times: Option<(WallTime, WallTime)>,
}

/// What one stream holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamInventory {
    /// The stream's name.
    pub name: String,
    /// Whether a writer has it now.
    pub live: bool,
    /// The spans without a row, [`GAP_LEAST`] or longer, from the last row to the next.
    pub gaps: Vec<(WallTime, WallTime)>,
    /// The span from the first row to the last, gaps left out.
    pub covered: Nanos,
    /// The part of it that is in Parquet files.
    pub covered_by_files: Nanos,
}

impl Inventory {
    /// Octets of Parquet files, summaries included, a day of measuring; `None` while less than a
    /// second of it is known.
    pub fn bytes_a_day(&self) -> Option<u64> {
        let covered = self.streams.iter().map(|stream| stream.covered_by_files).max()?;
        let bytes = u128::from(self.parquet_bytes) + u128::from(self.summary_bytes);
        let day = u128::from(Nanos::from_secs(86_400).get());
        let known = covered >= Nanos::SECOND && bytes > 0;
        // Saturates: so many a day fill any disk at once.
        known.then(|| u64::try_from(bytes * day / u128::from(covered.get())).unwrap_or(u64::MAX))
    }

    /// Whole days until the disk is full at that rate; `None` while it is not known.
    pub fn days_left(&self) -> Option<u64> {
        Some(self.room_bytes? / self.bytes_a_day()?.max(1))
    }
}

/// Why an inventory could not be made.
#[derive(Debug, thiserror::Error)]
pub enum InventoryError {
    /// The directory is no recording that this program reads.
    #[error("cannot read recording `{path}`")]
    Identity {
        /// Directory that was to be a recording.
        path: PathBuf,
        /// What is wrong with `recording.toml`.
        source: IdentityError,
    },
    /// The files cannot be listed.
    #[error("cannot read recording `{path}`")]
    Read {
        /// Directory that could not be listed.
        path: PathBuf,
        /// What the reader met.
        source: Box<ReadError>,
    },
}

/// Spans of time, `(least, greatest)` in ns since the epoch.
type Spans = Vec<(i64, i64)>;

#[derive(Default)]
struct Gathered {
    tables: BTreeMap<String, TableInventory>,
    /// Each stream's spans in segments and in files.
    spans: BTreeMap<String, (Spans, Spans)>,
    log_bytes: u64,
    unverified_files: u64,
    problems: Vec<Problem>,
    cost: ReadCost,
    meter: Meter,
}

/// Looks at every file's header or footer.
///
/// # Errors
/// When the recording cannot be read; files that cannot are told in [`Inventory::problems`].
pub fn inventory(dir: &Path) -> Result<Inventory, InventoryError> {
    let identity = format::read(dir)
        .map_err(|source| InventoryError::Identity { path: dir.into(), source })?;
    let refused = |source| InventoryError::Read { path: dir.into(), source: Box::new(source) };
    let recording = Recording::open(dir).map_err(refused)?;
    let listing = recording.listing_of_all().map_err(refused)?;
    let mut gathered = Gathered { problems: listing.problems, ..Gathered::default() };
    if let Err(source) = declared::read(dir, &mut gathered.problems) {
        return Err(refused(source.into()));
    }
    for segment in listing.known {
        gathered.add_known(&segment);
    }
    for segment in listing.segments {
        let path = segment.path.clone();
        if let Err(error) = gathered.add_segment(segment) {
            gathered.problems.push(Problem::new(&path, in_one_line(&error)));
        }
    }
    for file in &listing.parquet {
        gathered.add_parquet(file);
    }
    gathered.problems.sort();
    let streams = gathered.spans.into_iter();
    let streams = streams.map(|(name, spans)| stream_of(dir, name, spans)).collect();
    let tables: Vec<_> = gathered.tables.into_values().collect();
    let bytes = |summaries: bool| {
        let wanted = tables.iter().filter(|table| table.name.ends_with(SUFFIX) == summaries);
        wanted.map(|table| table.parquet_bytes).sum()
    };
    Ok(Inventory {
        identity,
        log_bytes: gathered.log_bytes,
        parquet_bytes: bytes(false),
        summary_bytes: bytes(true),
        streams,
        unverified_files: gathered.unverified_files,
        problems: gathered.problems,
        cost: ReadCost {
            bytes_read: gathered.cost.bytes_read + gathered.meter.bytes(),
            ..gathered.cost
        },
        room_bytes: crate::system_calls::room_bytes(dir).ok(),
        tables,
    })
}

impl Gathered {
    fn table(&mut self, name: &str) -> &mut TableInventory {
        self.tables.entry(name.to_owned()).or_insert_with(|| TableInventory {
            name: name.to_owned(),
            rows: 0,
            log_rows: 0,
            parquet_bytes: 0,
            files: 0,
            times: None,
        })
    }

    fn add_known(&mut self, segment: &KnownSegment) {
        let index = &segment.ended.index;
        self.log_bytes += index.bytes;
        self.add_index(&segment.stream, index);
        let what = index.ending().problem(segment.ends_with);
        self.problems.extend(what.map(|what| Problem::new(&segment.path, what)));
    }

    fn add_segment(&mut self, segment: SegmentFile) -> Result<(), ReadSegmentError> {
        let index = SegmentIndex::read_beside(&segment);
        let SegmentFile { stream, path, file, ends_with, .. } = segment;
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        self.log_bytes += length;
        if let Some(index) = index.as_ref().filter(|index| index.bytes == length) {
            self.add_index(&stream, index);
            let what = index.ending().problem(ends_with);
            self.problems.extend(what.map(|what| Problem::new(&path, what)));
            return Ok(());
        }
        self.cost.segments_opened += 1;
        let mut tell = |what: Option<String>| {
            self.problems.extend(what.map(|what| Problem::new(&path, what)));
        };
        let Some(mut reader) = SegmentReader::from_file(file, &path)? else {
            tell(Ending::default().problem(ends_with));
            return Ok(());
        };
        if reader.head().stream != stream {
            tell(Some(format!("it belongs elsewhere: its stream is `{}`", reader.head().stream)));
            return Ok(());
        }
        if let Some(index) = index
            && reader.pass_over(&index)?
        {
            self.add_index(&stream, &index);
        }
        let mut frames = Vec::new();
        reader.next_rows(|header| {
            frames.push(*header);
            false
        })?;
        self.cost.bytes_read += reader.bytes_read();
        self.problems.extend(reader.problem(ends_with).map(|what| Problem::new(&path, what)));
        for header in frames {
            let times = (header.least_time, header.greatest_time);
            let table = self.table(&reader.head().tables[header.table].name);
            table.rows += header.rows as u64;
            table.log_rows += header.rows as u64;
            widen(table, times);
            self.spans.entry(stream.clone()).or_default().0.push(times);
        }
        Ok(())
    }

    /// Adds what an index says of the begin of a segment, or of all of it.
    fn add_index(&mut self, stream: &str, index: &SegmentIndex) {
        for of_log in index.tables.iter().filter(|of_log| of_log.frames > 0) {
            let table = self.table(&of_log.name);
            table.rows += of_log.rows;
            table.log_rows += of_log.rows;
            of_log.spans.iter().for_each(|&times| widen(table, times));
            self.spans.entry(stream.to_owned()).or_default().0.extend(&of_log.spans);
        }
    }

    fn add_parquet(&mut self, file: &ParquetFile) {
        self.cost.files_opened += 1;
        let opened = VerifiedFile::open(file, &self.meter, Verification::Always);
        let metadata = match opened {
            Ok((_, metadata)) => metadata,
            // Deleted or compacted anew meanwhile.
            Err(OpenError::Vanished) => return,
            Err(OpenError::Unfit(what)) => {
                self.problems.push(Problem::new(&file.path, what));
                return;
            }
        };
        self.unverified_files += u64::from(file.claim.is_none());
        let table = self.table(&file.table);
        table.rows += rows_told(&metadata);
        table.files += 1;
        table.parquet_bytes += fs::metadata(&file.path).map_or(0, |metadata| metadata.len());
        let Some(times) = time_span_of(&metadata) else { return };
        widen(table, times);
        if !file.table.ends_with(SUFFIX) {
            self.spans.entry(file.name.stream.clone()).or_default().1.push(times);
        }
    }
}

fn widen(table: &mut TableInventory, (least, greatest): (i64, i64)) {
    let (least, greatest) = (WallTime::from_nanos(least), WallTime::from_nanos(greatest));
    table.times = Some(match table.times {
        None => (least, greatest),
        Some((from, to)) => (from.min(least), to.max(greatest)),
    });
}

fn stream_of(dir: &Path, name: String, (log, files): (Spans, Spans)) -> StreamInventory {
    let (_, covered_by_files) = cover(files.clone());
    let (gaps, covered) = cover([log, files].concat());
    let live = is_locked(&layout::stream_dir(dir, &name).join("lock"));
    StreamInventory { name, live, gaps, covered, covered_by_files }
}

/// The gaps between spans, and the time that they cover without them.
fn cover(mut spans: Spans) -> (Vec<(WallTime, WallTime)>, Nanos) {
    spans.sort_unstable();
    let mut gaps = Vec::new();
    let mut covered = Nanos::ZERO;
    let mut open: Option<(WallTime, WallTime)> = None;
    for (from, to) in spans {
        let (from, to) = (WallTime::from_nanos(from), WallTime::from_nanos(to));
        open = Some(match open {
            None => (from, to),
            Some((begin, end)) if from.since(end) < GAP_LEAST => (begin, end.max(to)),
            Some((begin, end)) => {
                covered += end.since(begin);
                gaps.push((end, from));
                (from, to)
            }
        });
    }
    if let Some((begin, end)) = open {
        covered += end.since(begin);
    }
    (gaps, covered)
}

/// The streams that a writer has now, by name.
///
/// # Errors
/// When the log's directory cannot be read.
pub fn live_streams(dir: &Path) -> Result<Vec<String>, ListError> {
    let streams = layout::entries(&dir.join(layout::LOG))?.into_iter();
    Ok(streams.filter(|(_, path)| is_locked(&path.join("lock"))).map(|(name, _)| name).collect())
}

/// Whether somebody holds the lock of a stream.
fn is_locked(path: &Path) -> bool {
    open_regular(path)
        .is_ok_and(|file| matches!(file.try_lock_shared(), Err(fs::TryLockError::WouldBlock)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_what_no_span_covers_for_10_s() {
        const S: i64 = 1_000_000_000;
        let at = |seconds: i64| WallTime::from_nanos(seconds * S);
        let spans = vec![(30 * S, 40 * S), (0, 5 * S), (4 * S, 9 * S), (18 * S, 20 * S)];
        let (gaps, covered) = cover(spans);
        assert_eq!(gaps, [(at(20), at(30))]);
        assert_eq!(covered, Nanos::from_secs(30));
        assert_eq!(cover(Vec::new()), (Vec::new(), Nanos::ZERO));
    }
}
