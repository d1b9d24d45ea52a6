//! The files that a compaction makes: none is visible before all are whole.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use arrow::array::{AsArray as _, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::TimestampNanosecondType;
use arrow::error::ArrowError;

use super::summaries::TableSummary;
use super::{CompactError, parquet_error, sync_directory, system};
use crate::format::Kind;
use crate::layout::{self, ParquetName, hour_of};
use crate::manifest::FileEntry;
use crate::parquet_file::{Facts, FileStatistics, TableFile};
use crate::schema::TableSchema;

/// What ends a temporary name, behind the final one; a dot is in front.
pub(super) const TEMPORARY: &str = ".tmp";

/// Files under temporary names.
#[derive(Debug)]
pub(super) struct NewFiles<'a> {
    dir: &'a Path,
    name: ParquetName,
    kind: Kind,
    made: Vec<Made>,
}

#[derive(Debug)]
struct Made {
    temporary: PathBuf,
    path: PathBuf,
    table: String,
    hour: i64,
    /// What the file became, once it is whole.
    became: Arc<OnceLock<FileStatistics>>,
}

/// A file that is being written.
pub(super) struct OpenFile {
    path: PathBuf,
    file: TableFile,
    became: Arc<OnceLock<FileStatistics>>,
}

impl OpenFile {
    pub(super) fn write(&mut self, rows: &RecordBatch) -> Result<(), CompactError> {
        self.file.write(rows).map_err(parquet_error(&self.path))
    }

    pub(super) fn finish(self) -> Result<FileStatistics, CompactError> {
        let statistics = self.file.finish().map_err(parquet_error(&self.path))?;
        Ok(*self.became.get_or_init(|| statistics))
    }
}

impl<'a> NewFiles<'a> {
    pub(super) fn new(dir: &'a Path, name: ParquetName, kind: Kind) -> Self {
        Self { dir, name, kind, made: Vec::new() }
    }

    /// Begins the file of a table and an hour.
    pub(super) fn create(
        &mut self,
        schema: &TableSchema,
        hour: i64,
    ) -> Result<OpenFile, CompactError> {
        let directory = layout::hour_dir(self.dir, &schema.name, hour);
        fs::create_dir_all(&directory).map_err(system("create", &directory))?;
        let file_name = self.name.file_name();
        let path = directory.join(format!(".{file_name}{TEMPORARY}"));
        let became = Arc::<OnceLock<_>>::default();
        self.made.push(Made {
            temporary: path.clone(),
            path: directory.join(file_name),
            table: schema.name.clone(),
            hour,
            became: Arc::clone(&became),
        });
        let file = File::create(&path).map_err(system("create", &path))?;
        let facts = Facts { name: &self.name, kind: self.kind, schema };
        let file = TableFile::new(file, &facts).map_err(parquet_error(&path))?;
        Ok(OpenFile { path, file, became })
    }

    /// Renames all files into place and makes that last.
    pub(super) fn publish(&self) -> Result<(), CompactError> {
        let mut directories: Vec<&Path> = Vec::new();
        for Made { temporary, path, .. } in &self.made {
            fs::rename(temporary, path).map_err(system("rename", temporary))?;
            // The directories above may be new too: table, date and hour.
            directories.extend(path.ancestors().skip(1).take(4));
        }
        directories.sort_unstable();
        directories.dedup();
        directories.into_iter().try_for_each(sync_directory)
    }

    /// What the manifest says of the files.
    pub(super) fn entries(&self) -> Vec<FileEntry> {
        let entry = |made: &Made| {
            let FileStatistics { rows, bytes, tail } = *made.became.get()?;
            Some(FileEntry {
                table: made.table.clone(),
                hour: made.hour,
                bytes,
                rows,
                tail: tail.begin,
                tail_crc: tail.crc,
                deleted: false,
            })
        };
        self.made.iter().filter_map(entry).collect()
    }

    /// Removes what is there under temporary names.
    pub(super) fn discard(&self) {
        for file in &self.made {
            // An error has been met already; a file that stays is removed next time.
            drop(fs::remove_file(&file.temporary));
        }
    }

    /// Files that were begun.
    pub(super) fn count(&self) -> u64 {
        self.made.len() as u64
    }
}

/// Rows of the row groups of a summary, all levels together. Their encoded columns are in memory
/// until the groups are written.
const GROUP_ROWS: usize = 1 << 17;

/// The files of one summary, an hour each.
#[derive(Default)]
pub(super) struct SummaryFiles {
    files: BTreeMap<i64, OpenFile>,
    /// Rows in the open groups.
    rows: usize,
}

impl SummaryFiles {
    /// Writes what a summary has gathered, a row group for each level: who reads a level reads
    /// nothing else (measured: a day of 256 series in a third of the time).
    pub(super) fn write(
        &mut self,
        segment: &Path,
        files: &mut NewFiles<'_>,
        summary: &mut TableSummary<'_>,
    ) -> Result<(), CompactError> {
        let Some((schema, levels)) = summary.take_rows().map_err(parquet_error(segment))? else {
            return Ok(());
        };
        for (lane, rows) in levels.enumerate() {
            let rows = rows.map_err(parquet_error(segment))?;
            for (hour, rows) in by_hour(&rows).map_err(parquet_error(segment))? {
                let open = match self.files.entry(hour) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) => new.insert(files.create(schema, hour)?),
                };
                self.rows += rows.num_rows();
                open.file.write_lane(lane, &rows).map_err(parquet_error(&open.path))?;
            }
        }
        if self.rows >= GROUP_ROWS { self.end_groups() } else { Ok(()) }
    }

    /// Ends the row groups: the hour has ended, and the labels begin again.
    pub(super) fn end_groups(&mut self) -> Result<(), CompactError> {
        self.rows = 0;
        let mut files = self.files.values_mut();
        files.try_for_each(|open| open.file.end_groups().map_err(parquet_error(&open.path)))
    }

    /// Ends the files; their octets.
    pub(super) fn finish(self) -> Result<u64, CompactError> {
        self.files.into_values().map(|open| Ok(open.finish()?.bytes)).sum()
    }
}

/// Rows of a summary by the hours that they lie in.
fn by_hour(rows: &RecordBatch) -> Result<Vec<(i64, RecordBatch)>, ArrowError> {
    let times = rows.column(0).as_primitive::<TimestampNanosecondType>().values();
    let hours: Vec<_> = times.iter().map(|&time| hour_of(time)).collect();
    let (Some(&least), Some(&greatest)) = (hours.iter().min(), hours.iter().max()) else {
        return Ok(Vec::new());
    };
    if least == greatest {
        return Ok(vec![(least, rows.clone())]);
    }
    let mut found = hours.clone();
    found.sort_unstable();
    found.dedup();
    let part = |hour: i64| {
        let of_hour: BooleanArray = hours.iter().map(|&other| Some(other == hour)).collect();
        Ok((hour, filter_record_batch(rows, &of_hour)?))
    };
    found.into_iter().map(part).collect()
}
