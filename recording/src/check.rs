//! Looking at every octet of a recording for damage.
//!
//! Log frames have checksums: any change is found. Parquet files are read to the end and compared
//! with what their footers and names say: rows, order, times within the hour. Their pages carry no
//! checksum, so that a flipped bit inside of a value can stay unseen.

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow::array::{Array as _, AsArray as _};
use arrow::datatypes::TimestampNanosecondType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::batch::Batch;
use crate::format::{self, IdentityError};
use crate::inventory::Footer;
use crate::layout::{self, ListError, ParquetFile, SegmentFile, hour_of};
use crate::segment::{ReadSegmentError, SegmentReader};

/// What was looked at and found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckReport {
    /// Segments read.
    pub segments: u64,
    /// Parquet files read.
    pub files: u64,
    /// Rows read.
    pub rows: u64,
    /// Octets behind the last whole frame of a log; the next writer cuts them. No damage: the
    /// program was killed or is in the middle of a write.
    pub torn_bytes: u64,
    /// Files that a segment hides, left by a compaction that was killed; the next one removes them.
    pub hidden_files: u64,
    /// What is damaged, with the place.
    pub damage: Vec<Damage>,
}

/// One thing that is damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// The octet in it, where one can be named.
    pub at: Option<u64>,
    /// What is wrong.
    pub what: String,
}

/// Why a recording could not be checked at all.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The directory is no recording that this program reads.
    #[error("cannot check recording `{path}`")]
    Identity {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: IdentityError,
    },
    /// The files cannot be listed.
    #[error("cannot check recording `{path}`")]
    List {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: ListError,
    },
}

/// Reads everything in the recording in `dir`.
///
/// # Errors
/// When it is no recording or cannot be listed; whatever is wrong with a file is in the report.
pub fn check(dir: &Path) -> Result<CheckReport, CheckError> {
    format::read(dir).map_err(|source| CheckError::Identity { path: dir.into(), source })?;
    let listing =
        layout::list(dir).map_err(|source| CheckError::List { path: dir.into(), source })?;
    let mut report =
        CheckReport { hidden_files: listing.hidden.len() as u64, ..CheckReport::default() };
    let streams = layout::entries(&dir.join(layout::LOG))
        .map_err(|source| CheckError::List { path: dir.into(), source })?;
    for (_, stream) in streams {
        let files = layout::entries(&stream)
            .map_err(|source| CheckError::List { path: dir.into(), source })?;
        let aside = files.into_iter().filter(|(name, _)| name.ends_with(".damaged"));
        report.damage.extend(aside.map(|(_, path)| Damage {
            path,
            at: None,
            what: "a damaged segment was put aside".into(),
        }));
    }
    for segment in listing.segments {
        let path = segment.path.clone();
        if let Err(error) = check_segment(segment, &mut report) {
            report.damage.push(Damage { path, at: None, what: chain(&error) });
        }
    }
    for file in &listing.parquet {
        report.files += 1;
        if let Err(what) = check_parquet(file, &mut report) {
            report.damage.push(Damage { path: file.path.clone(), at: None, what });
        }
    }
    Ok(report)
}

fn check_segment(segment: SegmentFile, report: &mut CheckReport) -> Result<(), ReadSegmentError> {
    report.segments += 1;
    let len = segment.file.metadata().map_or(0, |metadata| metadata.len());
    let Some(mut reader) = SegmentReader::from_file(segment.file, &segment.path)? else {
        report.torn_bytes += len;
        return Ok(());
    };
    let mut batches: Vec<_> =
        reader.head().tables.iter().enumerate().map(|(at, table)| Batch::new(at, table)).collect();
    while let Some(header) = reader.next_rows(|_| true)? {
        reader.decode(&header, &mut batches[header.table])?;
        report.rows += header.rows as u64;
    }
    let ending = reader.ending();
    report.torn_bytes += ending.torn_bytes;
    if let Some(at) = ending.first_damage {
        let what = format!("{} bytes of frames are damaged", ending.damaged_bytes);
        report.damage.push(Damage { path: segment.path, at: Some(at), what });
    }
    Ok(())
}

fn check_parquet(file: &ParquetFile, report: &mut CheckReport) -> Result<(), String> {
    let footer = Footer::read(&file.path).ok_or("it is not a whole Parquet file")?;
    let opened = File::open(&file.path).map_err(|error| error.to_string())?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(opened)
        .and_then(ParquetRecordBatchReaderBuilder::build)
        .map_err(|error| said(&error.to_string()))?;
    let mut rows = 0;
    for batch in reader {
        let batch = batch.map_err(|error| said(&error.to_string()))?;
        rows += batch.num_rows() as u64;
        let times = batch
            .column_by_name("time")
            .and_then(|column| column.as_primitive_opt::<TimestampNanosecondType>())
            .ok_or("it has no column `time`")?;
        if times.null_count() > 0 {
            return Err("a `time` is null".into());
        }
        let in_hour = |time: &i64| hour_of(*time) == file.hour;
        if let Some(time) = times.values().iter().find(|time| !in_hour(time)) {
            return Err(format!("a row of time {time} ns is not in the hour of its directory"));
        }
        let (least, greatest) = footer.times.unwrap_or((i64::MIN, i64::MAX));
        if times.values().iter().any(|time| *time < least || *time > greatest) {
            return Err("a row lies outside of the times in the footer".into());
        }
    }
    // What a summary condenses is counted where it was measured.
    if !file.table.ends_with(crate::summary::SUFFIX) {
        report.rows += rows;
    }
    if rows == footer.rows {
        Ok(())
    } else {
        Err(format!("{rows} rows can be read of the {} in the footer", footer.rows))
    }
}

/// What the library says, without the names of its own kinds of errors, which it puts before each other.
fn said(text: &str) -> String {
    const KINDS: [&str; 5] =
        ["Parquet argument error: ", "Parquet error: ", "Arrow: ", "External: ", "EOF: "];
    let mut rest = text;
    while let Some(inner) = KINDS.iter().find_map(|kind| rest.strip_prefix(kind)) {
        rest = inner;
    }
    format!("its Parquet data cannot be decoded: {rest}")
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        text = format!("{text}: {source}");
        cause = source.source();
    }
    text
}
