//! Reading a recording, finished or still being written.
//!
//! [`Recording::scan`] hands out the rows of one table as Arrow batches, from the Parquet files and
//! from the log alike. It touches only what the selection needs: the hours of the time range, in
//! these files the row groups and pages whose statistics allow a wanted row, in these the wanted
//! columns; [`ReadCost`] counts it.
//!
//! A scan sees the recording as it was when the scan began. It opens the log segments before it
//! lists the Parquet files, so that rows which move from one to the other meanwhile are read once
//! (see [`crate::layout`]). A damaged file costs its own rows: it is named in [`Scan::problems`],
//! and the rest is read.
//!
//! Every batch is sorted by its labels and then by time; batches of one stream follow each other in
//! time for every series.

#[cfg(test)]
mod beside_tests;
mod listing;
mod log_rows;
mod parquet_rows;
mod plan;
mod scan;
#[cfg(test)]
mod tests;
mod verified;
mod wanted;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::AsArray as _;
use arrow::datatypes::TimestampNanosecondType;
use arrow::error::ArrowError;
use meikyo_units::{WallTime, in_one_line};

use crate::declared;
use crate::files::{self, KnownSegment, Listing, Opening};
use crate::format::{self, Identity, IdentityError};
use crate::layout::{self, ListError, ParquetFile, SegmentFile};
use crate::manifest::Manifest;
pub use crate::problem::Problem;
use crate::problem::open_regular;
use crate::remembered::Remembered;
use crate::schema::{Role, TableSchema};
use crate::segment::ended::EndedSegments;
use crate::segment::{Ending, ReadSegmentError, SegmentIndex, SegmentReader};
use crate::summary::SUFFIX;

pub use listing::Wanted;
pub(crate) use parquet_rows::time_span_of;
pub use scan::Scan;
pub use verified::Verification;
pub(crate) use verified::{
    Meter, OpenError, UNNAMED, VerifiedFile, rows_told, table_schema, table_schema_of,
};

/// Hours of a span of frames that are all taken to have rows.
const HOURS_OF_A_SPAN: i64 = 24;

/// A recording that is read.
#[derive(Debug, Clone)]
pub struct Recording {
    dir: PathBuf,
    identity: Identity,
    remembered: Arc<Notes>,
    verification: Verification,
}

/// What was read of the recording's small files.
#[derive(Debug, Default)]
struct Notes {
    manifests: Remembered<Manifest>,
    ended: Remembered<EndedSegments>,
}

/// Which rows and columns of which table are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// Name of the table.
    pub table: String,
    /// The columns in the order in which they are wanted; all when `None`.
    pub columns: Option<Vec<String>>,
    /// Label columns with the texts of which a row has one; for example `device`. A text with `*`
    /// (any octets) or `?` (one octet) in it stands for all that match it; numbers are written in
    /// decimal, for example the `level_ms` of a summary.
    pub labels: Vec<(String, Vec<String>)>,
    /// The least `time`; from the begin when `None`.
    pub from: Option<WallTime>,
    /// The first `time` that is not wanted any more; to the end when `None`.
    pub to: Option<WallTime>,
}

impl Selection {
    /// All rows and columns of a table.
    pub fn all(table: &str) -> Self {
        Self { table: table.into(), columns: None, labels: Vec::new(), from: None, to: None }
    }
}

/// What a scan touched so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadCost {
    /// Parquet files opened.
    pub files_opened: u64,
    /// Log segments opened.
    pub segments_opened: u64,
    /// Row groups of which rows were decoded.
    pub row_groups_read: u64,
    /// Column chunks of them that were decoded.
    pub columns_read: u64,
    /// Octets read from Parquet files and of log segments.
    pub bytes_read: u64,
    /// Rows handed out.
    pub rows: u64,
}

/// Why a recording could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is none, or of a newer format.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// Its files could not be listed.
    #[error(transparent)]
    List(#[from] ListError),
    /// A log segment was written by a newer version.
    #[error(transparent)]
    Segment(#[from] ReadSegmentError),
    /// There is no such table.
    #[error("`{dir}` has no table `{table}`; it has {}", listed(.known))]
    UnknownTable {
        /// Recording that was asked.
        dir: PathBuf,
        /// The table asked for.
        table: String,
        /// The tables that there are.
        known: Vec<String>,
    },
    /// The table has no such column.
    #[error("table `{table}` has no column `{column}`; it has {}", listed(.known))]
    UnknownColumn {
        /// The table that was asked for.
        table: String,
        /// The column asked for.
        column: String,
        /// The columns that there are.
        known: Vec<String>,
    },
    /// Rows could not be put into Arrow columns.
    #[error("cannot assemble rows of table `{table}`")]
    Arrow {
        /// The table that was read.
        table: String,
        /// What Arrow said.
        source: ArrowError,
    },
}

fn listed(names: &[String]) -> String {
    if names.is_empty() {
        return "none".into();
    }
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

impl Recording {
    /// Opens the recording in `dir`.
    ///
    /// # Errors
    /// When there is none, or it is of a newer format.
    pub fn open(dir: &Path) -> Result<Self, ReadError> {
        let (remembered, verification) = (Arc::default(), Verification::Always);
        Ok(Self { dir: dir.into(), identity: format::read(dir)?, remembered, verification })
    }

    /// The same recording read without or with checksums: for benches, which compare.
    #[must_use]
    pub fn with_verification(mut self, verification: Verification) -> Self {
        self.verification = verification;
        self
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What it says about itself.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The tables that have rows or that a writer has declared, by name; summary tables end in
    /// `.summary`.
    ///
    /// # Errors
    /// When the directory cannot be read, or the log is of a newer format.
    pub fn tables(&self) -> Result<BTreeMap<String, TableSchema>, ReadError> {
        Ok(self.tables_of(self.listing_of_all()?)?.0)
    }

    /// The tables as [`Recording::tables`] names them, and what is wrong with the recording as far
    /// as that is seen without reading rows: files that are missing, do not belong, or whose footer
    /// is needed here and cannot be read, and segments that are damaged between their frames or end
    /// too early.
    ///
    /// # Errors
    /// As [`Recording::tables`].
    pub fn catalogue(&self) -> Result<(BTreeMap<String, TableSchema>, Vec<Problem>), ReadError> {
        let mut listing = self.listing_of_all()?;
        let mut of_segments = Vec::new();
        for KnownSegment { path, ended, ends_with, .. } in &listing.known {
            let what = ended.index.ending().problem(*ends_with);
            of_segments.extend(what.map(|what| Problem::new(path, what)));
        }
        for segment in &listing.segments {
            let what = segment_problem(segment).unwrap_or_else(|error| Some(in_one_line(&error)));
            of_segments.extend(what.map(|what| Problem::new(&segment.path, what)));
        }
        listing.problems.extend(of_segments);
        let (tables, mut problems) = self.tables_of(listing)?;
        problems.sort();
        problems.dedup();
        Ok((tables, problems))
    }

    fn tables_of(
        &self,
        listing: Listing,
    ) -> Result<(BTreeMap<String, TableSchema>, Vec<Problem>), ReadError> {
        let mut problems = listing.problems;
        let declared = declared::by_stream(&self.dir, &mut problems)?;
        let of_all = declared.values().flat_map(|of_stream| of_stream.tables.iter().cloned());
        let mut tables: BTreeMap<_, _> = of_all.map(|table| (table.name.clone(), table)).collect();
        let mut known = BTreeSet::new();
        for file in listing.parquet.iter().rev() {
            if known.contains(&file.table) {
                continue;
            }
            match VerifiedFile::open(file, &Meter::default(), self.verification) {
                Ok((_, metadata)) => {
                    if let Ok(schema) = table_schema_of(&metadata) {
                        known.insert(file.table.clone());
                        tables.insert(file.table.clone(), schema);
                    }
                }
                Err(OpenError::Vanished) => {}
                Err(OpenError::Unfit(what)) => problems.push(Problem::new(&file.path, what)),
            }
        }
        // The heads of segments say no more than what was declared for all of a stream.
        let (of_declared, known): (Vec<_>, Vec<_>) = listing.known.into_iter().partition(|known| {
            declared.get(&known.stream).is_some_and(|of_stream| of_stream.is_complete)
        });
        let streams: BTreeSet<_> = of_declared.iter().map(|known| &known.stream).collect();
        for table in streams.into_iter().flat_map(|stream| &declared[stream].tables) {
            tables.insert(table.name.clone(), table.clone());
        }
        // Segments of one writer have the same head: one of them is read.
        let mut heads = BTreeSet::new();
        let mut read = |file: File, path: &Path| match SegmentReader::from_file(file, path) {
            Ok(Some(reader)) => {
                let of_log = reader.head().tables.iter();
                tables.extend(of_log.map(|table| (table.name.clone(), table.clone())));
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(error @ ReadSegmentError::Newer { .. }) => Err(ReadError::from(error)),
            Err(error) => {
                problems.push(Problem::new(path, in_one_line(&error)));
                Ok(false)
            }
        };
        for KnownSegment { stream, path, ended, .. } in known {
            let (length, crc) = ended.head();
            let head = (stream, length, crc);
            // One that was compacted meanwhile is in the declarations, and in files.
            if !heads.contains(&head)
                && let Ok(file) = open_regular(&path)
                && read(file, &path)?
            {
                heads.insert(head);
            }
        }
        for segment in listing.segments {
            let header = listing::first_header(&segment);
            let head = header
                .map(|header| (segment.stream.clone(), header.payload_len, header.payload_crc));
            let is_known = head.as_ref().is_some_and(|head| heads.contains(head));
            if !is_known && read(segment.file, &segment.path)? {
                heads.extend(head);
            }
        }
        Ok((tables, problems))
    }

    /// The schema of one table.
    ///
    /// # Errors
    /// As [`Recording::tables`], and when there is no such table, with those that there are.
    pub fn table(&self, name: &str) -> Result<TableSchema, ReadError> {
        let listing = self.listing(&Wanted::table(name))?;
        if let Some(file) = listing.parquet.last()
            && let Ok((_, metadata)) =
                VerifiedFile::open(file, &Meter::default(), self.verification)
            && let Ok(schema) = table_schema_of(&metadata)
        {
            return Ok(schema);
        }
        let mut tables = self.tables()?;
        tables.remove(name).ok_or_else(|| ReadError::UnknownTable {
            dir: self.dir.clone(),
            table: name.into(),
            known: tables.into_keys().collect(),
        })
    }

    /// The tables of a role, by name; summaries are of none.
    ///
    /// What writers declared is asked first, which costs a small file; only a recording that
    /// declares none is looked through as a whole.
    ///
    /// # Errors
    /// As [`Recording::tables`].
    pub fn tables_for(&self, role: Role) -> Result<Vec<TableSchema>, ReadError> {
        let of_role = |tables: BTreeMap<String, TableSchema>| -> Vec<_> {
            let own = |table: &TableSchema| table.role() == role;
            tables.into_values().filter(|it| own(it) && !it.name.ends_with(SUFFIX)).collect()
        };
        let declared = of_role(declared::read(&self.dir, &mut Vec::new())?);
        if declared.is_empty() { Ok(of_role(self.tables()?)) } else { Ok(declared) }
    }

    /// The least and the greatest `time` of a table; `None` when it has no rows.
    ///
    /// Only the statistics of its first and last hours and the headers of the log are read.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn span(&self, table: &str) -> Result<Option<(WallTime, WallTime)>, ReadError> {
        Ok(self.span_told(table)?.0)
    }

    /// As [`Recording::span`], and what is wrong with the list of the table's files: rows that are
    /// missing may have been earlier or later.
    ///
    /// # Errors
    /// As [`Recording::span`].
    #[expect(clippy::type_complexity, reason = "said once")]
    pub fn span_told(
        &self,
        table: &str,
    ) -> Result<(Option<(WallTime, WallTime)>, Vec<Problem>), ReadError> {
        let listing = self.listing(&Wanted::table(table))?;
        let hours = listing.parquet.iter().map(|file| file.hour);
        let ends = hours.clone().min().into_iter().chain(hours.max()).collect::<Vec<_>>();
        let at_ends = listing.parquet.iter().filter(|file| ends.contains(&file.hour));
        let mut spans: Vec<_> = at_ends.filter_map(parquet_rows::time_span).collect();
        for segment in listing.segments {
            spans.extend(segment_spans(segment, table));
        }
        let least = spans.iter().map(|span| span.0).min();
        let greatest = spans.iter().map(|span| span.1).max();
        let span = least.zip(greatest);
        let span = span.map(|(a, b)| (WallTime::from_nanos(a), WallTime::from_nanos(b)));
        Ok((span, listing.problems))
    }

    /// The hours, counted from the epoch, in which a table has rows.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn hours(&self, table: &str) -> Result<BTreeSet<i64>, ReadError> {
        let listing = self.listing(&Wanted::table(table))?;
        let mut hours: BTreeSet<_> = listing.parquet.iter().map(|file| file.hour).collect();
        let spans = listing.segments.into_iter().flat_map(|segment| segment_spans(segment, table));
        let spans =
            spans.map(|(least, greatest)| layout::hour_of(least)..=layout::hour_of(greatest));
        let (narrow, wide): (Vec<_>, Vec<_>) =
            spans.partition(|hours| hours.end() - hours.start() < HOURS_OF_A_SPAN);
        hours.extend(narrow.into_iter().flatten());
        if !wide.is_empty() {
            self.hours_in_log(table, &mut hours)?;
        }
        Ok(hours)
    }

    /// Adds the hours of a table's rows in the log, row by row: a frame can hold rows that are years
    /// apart, of a host whose clock was set in between.
    fn hours_in_log(&self, table: &str, hours: &mut BTreeSet<i64>) -> Result<(), ReadError> {
        let selection = Selection { columns: Some(vec!["time".into()]), ..Selection::all(table) };
        for batch in Scan::of_log(self, &selection)? {
            let batch = batch?;
            let times = batch.column(0).as_primitive::<TimestampNanosecondType>().values();
            hours.extend(times.iter().map(|&time| layout::hour_of(time)));
        }
        Ok(())
    }

    /// The rows of a table that a selection wants.
    ///
    /// # Errors
    /// When there is no such table or column, with those that there are; when the directory cannot
    /// be read; when the log is of a newer format.
    pub fn scan(&self, selection: &Selection) -> Result<Scan, ReadError> {
        Scan::begin(self, selection)
    }

    /// The rows of one of the table's Parquet files that a selection wants, for readers that keep
    /// what a file held: files never change. `table` is the table's schema.
    ///
    /// # Errors
    /// When the table has no such column.
    pub fn scan_file(
        &self,
        file: ParquetFile,
        table: TableSchema,
        selection: &Selection,
    ) -> Result<Scan, ReadError> {
        Scan::of_file(self, file, table, selection)
    }

    /// The earliest `time` among the rows of a table that are still in the log; `None` when none
    /// is. Only headers of frames are read.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn log_begin(&self, table: &str) -> Result<Option<WallTime>, ReadError> {
        let without = declared::streams_without(&self.dir, table)?;
        let with_stream = |stream: &str| !without.contains(stream);
        let listing = files::list_streams(&self.dir, with_stream, |_, _| false, Opening::All)?;
        let segments = listing.segments;
        let spans = segments.into_iter().flat_map(|segment| segment_spans(segment, table));
        Ok(spans.map(|(least, _)| WallTime::from_nanos(least)).min())
    }
}

/// What is wrong with a segment, as far as the headers of its frames show it.
fn segment_problem(segment: &SegmentFile) -> Result<Option<String>, ReadSegmentError> {
    let SegmentFile { path, file, ends_with, .. } = segment;
    let refused = |source| ReadSegmentError::System { path: path.clone(), source };
    let index = SegmentIndex::read_beside(segment);
    let length = file.metadata().map_err(refused)?.len();
    if let Some(index) = index.as_ref().filter(|index| index.bytes == length) {
        return Ok(index.ending().problem(*ends_with));
    }
    let file = file.try_clone().map_err(refused)?;
    let Some(mut reader) = SegmentReader::from_file(file, path)? else {
        return Ok(Ending::default().problem(*ends_with));
    };
    if let Some(index) = index {
        reader.pass_over(&index)?;
    }
    reader.next_rows(|_| false)?;
    Ok(reader.problem(*ends_with))
}

/// Spans of time that hold every frame of a table in a segment, and begin and end with one.
fn segment_spans(segment: SegmentFile, table: &str) -> Vec<(i64, i64)> {
    let index = SegmentIndex::read_beside(&segment);
    let length = segment.file.metadata().map_or(0, |metadata| metadata.len());
    if let Some(index) = index.as_ref().filter(|index| index.bytes == length) {
        return index.spans_of(table).to_vec();
    }
    let Ok(Some(mut reader)) = SegmentReader::from_file(segment.file, &segment.path) else {
        return Vec::new();
    };
    let found = reader.head().tables.iter().position(|of_log| of_log.name == table);
    let mut spans = Vec::new();
    if let Some(index) = index
        && reader.pass_over(&index).is_ok_and(|passed| passed)
    {
        spans.extend(index.spans_of(table));
    }
    let headers = reader.next_rows(|header| {
        if Some(header.table) == found && header.rows > 0 {
            spans.push((header.least_time, header.greatest_time));
        }
        false
    });
    // What was seen before the system refused still counts; a scan reports the refusal.
    drop(headers);
    spans
}
