//! Looking at every octet of a recording for damage.
//!
//! Log frames have checksums: any change is found. Parquet files are compared octet by octet with
//! theirs, decoded to the end, and compared with what their footers and names say: rows, times
//! within the hour. What should be there stands in the manifest and in the chain of sequence numbers
//! (see `read/listing.rs`). Files that an earlier version wrote have no checksums: they are only
//! decoded, and counted as unverified.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arrow::array::{Array as _, AsArray as _};
use arrow::datatypes::TimestampNanosecondType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use meikyo_units::in_one_line;

use crate::batch::Batch;
use crate::declared;
use crate::devices;
use crate::format::{self, IdentityError};
use crate::layout::{self, ListError, ParquetFile, SegmentFile, hour_of};
use crate::manifest;
use crate::problem::{Problem, decoded};
use crate::read::{
    Meter, OpenError, ReadError, Recording, UNNAMED, Verification, VerifiedFile, Wanted, rows_told,
    time_span_of,
};
use crate::segment::{Ending, ReadSegmentError, SegmentReader};

/// What was looked at and found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckReport {
    /// Segments read.
    pub segments: u64,
    /// Parquet files read.
    pub files: u64,
    /// Rows read.
    pub rows: u64,
    /// Octets behind the last whole frame of a log; the next writer removes them. No damage: the
    /// program was killed or is in the middle of a write.
    pub torn_bytes: u64,
    /// Files that a segment hides, left by a compaction that was killed; the next one removes them.
    pub hidden_files: u64,
    /// Parquet files that have no checksums: an earlier version wrote them.
    pub unverified_files: u64,
    /// What is damaged, missing or does not belong, with the place.
    pub damage: Vec<Damage>,
}

/// One thing that is damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Path of the file that is damaged.
    pub path: PathBuf,
    /// The octet in it, where one can be named.
    pub at: Option<u64>,
    /// Description of the damage, for people.
    pub what: String,
}

/// Why a recording could not be checked at all.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// Its files cannot be compared with what should be there.
    #[error("cannot check recording `{path}`")]
    Read {
        /// Recording that was to be checked.
        path: PathBuf,
        /// What the reader met.
        source: Box<ReadError>,
    },
    /// The directory is no recording that this program reads.
    #[error("cannot check recording `{path}`")]
    Identity {
        /// Directory that was to be a recording.
        path: PathBuf,
        /// What is wrong with `recording.toml`.
        source: IdentityError,
    },
    /// The files cannot be listed.
    #[error("cannot check recording `{path}`")]
    List {
        /// Recording whose files could not be listed.
        path: PathBuf,
        /// Which directory cannot be listed.
        source: ListError,
    },
}

/// Reads everything in the recording in `dir`.
///
/// # Errors
/// When it is no recording or cannot be listed; whatever is wrong with a file is in the report.
pub fn check(dir: &Path) -> Result<CheckReport, CheckError> {
    format::read(dir).map_err(|source| CheckError::Identity { path: dir.into(), source })?;
    let refused = |source| CheckError::Read { path: dir.into(), source: Box::new(source) };
    let recording = Recording::open(dir).map_err(refused)?;
    let listing = recording.listing(&Wanted::ALL).map_err(refused)?;
    let mut problems = listing.problems;
    let unlisted = |source| CheckError::List { path: dir.into(), source };
    declared::read(dir, &mut problems).map_err(unlisted)?;
    if let Err(error) = devices::read(dir) {
        problems.push(Problem::new(&dir.join(devices::FILE_NAME), in_one_line(&error)));
    }
    tell_strangers(dir, &mut problems).map_err(unlisted)?;
    let damage = |Problem { path, what }: Problem| Damage { path, at: None, what };
    let mut report = CheckReport {
        hidden_files: listing.hidden.len() as u64,
        damage: problems.into_iter().map(damage).collect(),
        ..CheckReport::default()
    };
    for segment in listing.segments {
        let path = segment.path.clone();
        if let Err(error) = check_segment(segment, &mut report) {
            report.damage.push(Damage { path, at: None, what: in_one_line(&error) });
        }
    }
    let mut unnamed: BTreeMap<PathBuf, u64> = BTreeMap::new();
    for file in &listing.parquet {
        report.files += 1;
        let checked = decoded(|| check_parquet(file, &mut report)).and_then(|checked| checked);
        let manifest = layout::stream_dir(dir, &file.name.stream).join(manifest::FILE_NAME);
        match checked {
            Err(what) if what == UNNAMED && !manifest.exists() => {
                *unnamed.entry(manifest).or_default() += 1;
                continue;
            }
            Err(what) => report.damage.push(Damage { path: file.path.clone(), at: None, what }),
            Ok(()) => {}
        }
        report.unverified_files += u64::from(file.claim.is_none());
    }
    let lost = unnamed.into_iter().map(|(path, files)| {
        let what = format!(
            "it is missing: {files} files were written with it, and none of them is read without"
        );
        Damage { path, at: None, what }
    });
    report.damage.extend(lost);
    Ok(report)
}

/// Tells of files that end in `.parquet` and have no name of ours: other programs that read the
/// directory take them for rows.
fn tell_strangers(dir: &Path, problems: &mut Vec<Problem>) -> Result<(), ListError> {
    for (table, path) in layout::entries(dir)? {
        if table == layout::LOG || !layout::is_name(&table) || !path.is_dir() {
            continue;
        }
        let mut within = vec![path];
        for depth in 0..3 {
            let mut deeper = Vec::new();
            for (name, path) in within.iter().flat_map(|path| layout::entries(path)).flatten() {
                let is_ours = depth == 2 && layout::ParquetName::parse(&name).is_some();
                if name.ends_with(".parquet") && !name.starts_with('.') && !is_ours {
                    let what = "it is not one of the recording's files; no row of it is read";
                    problems.push(Problem::new(&path, what));
                }
                // Not through links, which may lead in circles.
                if path.is_dir() && !path.is_symlink() {
                    deeper.push(path);
                }
            }
            within = deeper;
        }
    }
    Ok(())
}

fn check_segment(segment: SegmentFile, report: &mut CheckReport) -> Result<(), ReadSegmentError> {
    report.segments += 1;
    let SegmentFile { stream, path, file, ends_with, .. } = segment;
    let len = file.metadata().map_or(0, |metadata| metadata.len());
    let tell = |at, what: Option<String>, damage: &mut Vec<Damage>| {
        damage.extend(what.map(|what| Damage { path: path.clone(), at, what }));
    };
    let Some(mut reader) = SegmentReader::from_file(file, &path)? else {
        report.torn_bytes += len;
        tell(None, Ending::default().problem(ends_with), &mut report.damage);
        return Ok(());
    };
    if reader.head().stream != stream {
        let what = format!("it belongs elsewhere: its stream is `{}`", reader.head().stream);
        tell(None, Some(what), &mut report.damage);
        return Ok(());
    }
    let mut batches: Vec<_> =
        reader.head().tables.iter().enumerate().map(|(at, table)| Batch::new(at, table)).collect();
    while let Some(header) = reader.next_rows(|_| true)? {
        if reader.decode(&header, &mut batches[header.table]).is_ok() {
            report.rows += header.rows as u64;
        }
    }
    report.torn_bytes += reader.ending().torn_bytes;
    tell(reader.ending().first_damage, reader.problem(ends_with), &mut report.damage);
    Ok(())
}

fn check_parquet(file: &ParquetFile, report: &mut CheckReport) -> Result<(), String> {
    let opened = VerifiedFile::open(file, &Meter::default(), Verification::Always);
    let (opened, metadata) = match opened {
        Ok(opened) => opened,
        // Deleted or compacted anew meanwhile.
        Err(OpenError::Vanished) => return Ok(()),
        Err(OpenError::Unfit(what)) => return Err(what),
    };
    opened.verify_all()?;
    let times_of_footer = time_span_of(&metadata);
    let rows_of_footer = rows_told(&metadata);
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
        let (least, greatest) = times_of_footer.unwrap_or((i64::MIN, i64::MAX));
        if times.values().iter().any(|time| *time < least || *time > greatest) {
            return Err("a row lies outside of the times in the footer".into());
        }
    }
    // What a summary condenses is counted where it was measured.
    if !file.table.ends_with(crate::summary::SUFFIX) {
        report.rows += rows;
    }
    if rows == rows_of_footer {
        Ok(())
    } else {
        Err(format!("{rows} rows can be read of the {rows_of_footer} in the footer"))
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
