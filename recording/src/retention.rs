//! Deleting what is older than it is to be kept.
//!
//! Whole hours go, never parts of a file: an hour is deleted when all of it is too old. Only Parquet
//! files are looked at, since the log is minutes old. Everything deleted is counted by its rows.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;

use meikyo_units::WallTime;
use parquet::file::reader::{FileReader as _, SerializedFileReader};

use crate::layout::{self, ParquetFile};

/// What was deleted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Deleted {
    /// Rows of tables; those of summaries are not readings and not counted.
    pub rows: u64,
    /// Octets of the files.
    pub bytes: u64,
    /// Files.
    pub files: u64,
    /// Rows of tables, and the hours that they were of, by table; without summaries.
    pub tables: BTreeMap<String, DeletedTable>,
    /// What could not be deleted first, if anything.
    pub error: Option<String>,
}

/// What was deleted of one table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeletedTable {
    /// Rows.
    pub rows: u64,
    /// Hours since the epoch of which there were some.
    pub hours: BTreeSet<i64>,
}

impl Deleted {
    /// What was deleted, for people: each table with its rows and the hours that they were of.
    pub fn in_words(&self) -> String {
        let hours = |hours: &BTreeSet<i64>| match (hours.first(), hours.last(), hours.len()) {
            (Some(&first), Some(&last), count) if count > 1 => {
                format!("{count} hours from {} to {}", hour_text(first), hour_text(last))
            }
            (Some(&only), ..) => format!("the hour {}", hour_text(only)),
            (None, ..) => "no hour".to_owned(),
        };
        let of_tables = self
            .tables
            .iter()
            .map(|(name, table)| format!("`{name}` {} of {}", table.rows, hours(&table.hours)));
        of_tables.collect::<Vec<_>>().join(", ")
    }
}

/// The begin of an hour since the epoch: `2026-11-21T20:00:00Z`.
fn hour_text(hour: i64) -> String {
    let begin = jiff::Timestamp::from_second(hour.saturating_mul(3_600));
    begin.map_or_else(|_| format!("{hour} h since 1970"), |begin| begin.to_string())
}

/// Deletes the Parquet files of all hours that end before `limit`, of every stream.
pub fn delete_before(dir: &Path, limit: WallTime) -> Deleted {
    let mut deleted = Deleted::default();
    let limit = layout::hour_of(limit.as_nanos());
    let listing = layout::list_hours(dir, |_, hour| hour < limit);
    let files = match listing {
        Ok(listing) => listing.parquet,
        Err(error) => {
            deleted.error = Some(error.to_string());
            return deleted;
        }
    };
    for file in files {
        if let Err(error) = delete(&file, &mut deleted) {
            let text = format!("cannot delete `{}`: {error}", file.path.display());
            deleted.error.get_or_insert(text);
        }
    }
    deleted
}

fn delete(file: &ParquetFile, deleted: &mut Deleted) -> Result<(), std::io::Error> {
    let bytes = fs::metadata(&file.path)?.len();
    // A file that cannot be read is deleted too; its rows could not be read any more either.
    let rows = rows_of(&file.path).unwrap_or(0);
    fs::remove_file(&file.path)?;
    deleted.bytes += bytes;
    deleted.files += 1;
    if !file.table.ends_with(crate::summary::SUFFIX) {
        deleted.rows += rows;
        let table = deleted.tables.entry(file.table.clone()).or_default();
        table.rows += rows;
        table.hours.insert(file.hour);
    }
    // The hour's and the day's directory go with their last file, and stay as long as others have
    // files in them.
    for directory in file.path.ancestors().skip(1).take(2) {
        if fs::remove_dir(directory).is_err() {
            break;
        }
    }
    Ok(())
}

/// The rows of a Parquet file by its footer; `None` when it cannot be read.
pub(crate) fn rows_of(path: &Path) -> Option<u64> {
    let reader = SerializedFileReader::new(File::open(path).ok()?).ok()?;
    u64::try_from(reader.metadata().file_metadata().num_rows()).ok()
}
