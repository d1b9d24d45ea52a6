//! Deleting what is older than it is to be kept.
//!
//! Whole hours go, never parts of a file: an hour is deleted when all of it is too old. Only Parquet
//! files are looked at, since the log is minutes old. Everything deleted is counted by its rows.
//!
//! The manifest of a stream says first that the files are deleted: whoever is killed in between
//! leaves files that do not count any more, and the next deletion removes them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use meikyo_units::{Nanos, WallTime};
use parquet::file::reader::{FileReader as _, SerializedFileReader};

use crate::files;
use crate::layout::{self, ParquetFile};
use crate::manifest;
use crate::problem::open_regular;
use crate::summary::SUFFIX;

/// How long rows are kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Keep {
    /// Rows of every table that is not in `tables`; `None` is for ever.
    pub all: Option<Nanos>,
    /// Rows of some tables, by name. A summary whose name is not here is kept as long as its table.
    pub tables: BTreeMap<String, Nanos>,
}

impl Keep {
    /// Nothing is ever deleted.
    pub const FOREVER: Self = Self { all: None, tables: BTreeMap::new() };

    /// How long rows of a table are kept; `None` is for ever.
    pub fn limit_of(&self, table: &str) -> Option<Nanos> {
        let summarised = table.strip_suffix(SUFFIX);
        let own = self.tables.get(table);
        own.or_else(|| self.tables.get(summarised?)).copied().or(self.all)
    }

    /// Whether everything is kept for ever.
    pub fn is_forever(&self) -> bool {
        self.all.is_none() && self.tables.is_empty()
    }
}

/// What was deleted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Deleted {
    /// Rows of tables; those of summaries are not readings and not counted.
    pub rows: u64,
    /// Octets of the files.
    pub bytes: u64,
    /// How many files were deleted.
    pub files: u64,
    /// Rows of tables, and the hours that they were of, by table; without summaries.
    pub tables: BTreeMap<String, DeletedTable>,
    /// What could not be deleted first, if anything.
    pub error: Option<String>,
}

/// What was deleted of one table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeletedTable {
    /// Rows of the files that were deleted.
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

/// Deletes the Parquet files of all hours that end before the limit of their table, which `limit_of`
/// tells; tables that have none are left alone. Deleted are files of the stream `own`, whose lock the
/// caller holds, and of streams that nobody writes.
pub fn delete_before(
    dir: &Path,
    own: &str,
    limit_of: impl Fn(&str) -> Option<WallTime>,
) -> Deleted {
    let mut deleted = Deleted::default();
    let limit_of = |table: &str| Some(layout::hour_of(limit_of(table)?.as_nanos()));
    let is_old = |table: &str, hour| limit_of(table).is_some_and(|limit| hour < limit);
    let files = match files::list_hours(dir, is_old) {
        Ok(listing) => listing.parquet,
        Err(error) => {
            deleted.error = Some(error.to_string());
            return deleted;
        }
    };
    let mut streams: BTreeMap<String, Vec<ParquetFile>> = BTreeMap::new();
    for file in files {
        streams.entry(file.name.stream.clone()).or_default().push(file);
    }
    for (stream, files) in streams {
        let tables: BTreeSet<_> = files.iter().map(|file| file.table.as_str()).collect();
        let limits =
            tables.iter().filter_map(|table| Some(((*table).to_owned(), limit_of(table)?)));
        let limits = limits.collect();
        delete_of_stream(dir, &stream, stream == own, (&limits, files), &mut deleted);
    }
    deleted
}

fn delete_of_stream(
    dir: &Path,
    stream: &str,
    is_own: bool,
    (limits, files): (&BTreeMap<String, i64>, Vec<ParquetFile>),
    deleted: &mut Deleted,
) {
    let stream_dir = layout::stream_dir(dir, stream);
    let lock = open_regular(&stream_dir.join("lock"));
    // A stream that was written by nobody who locks it has no writer.
    let is_free = lock.as_ref().map_or(true, |lock| lock.try_lock().is_ok());
    if !is_own && !is_free {
        return;
    }
    if let Err(error) = manifest::delete_before(&stream_dir, limits) {
        let path = stream_dir.join(manifest::FILE_NAME);
        let text = format!(
            "nothing of stream `{stream}` is deleted: cannot write `{}`: {error}",
            path.display()
        );
        deleted.error.get_or_insert(text);
        return;
    }
    let mut all = true;
    for file in files {
        if let Err(error) = delete(&file, deleted) {
            let text = format!("cannot delete `{}`: {error}", file.path.display());
            deleted.error.get_or_insert(text);
            all = false;
        }
    }
    if all && let Err(error) = manifest::prune(&stream_dir) {
        let path = stream_dir.join(manifest::FILE_NAME);
        let text = format!("cannot write `{}`: {error}", path.display());
        deleted.error.get_or_insert(text);
    }
}

fn delete(file: &ParquetFile, deleted: &mut Deleted) -> Result<(), std::io::Error> {
    let bytes = fs::symlink_metadata(&file.path)?.len();
    // A file that cannot be read is deleted too; its rows could not be read any more either.
    let rows = rows_of(&file.path).unwrap_or(0);
    fs::remove_file(&file.path)?;
    deleted.bytes += bytes;
    deleted.files += 1;
    if !file.table.ends_with(SUFFIX) {
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
    let reader = SerializedFileReader::new(open_regular(path).ok()?).ok()?;
    u64::try_from(reader.metadata().file_metadata().num_rows()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_kept_as_long_as_the_nearest_word_says() {
        let hours = |hours: u64| Some(Nanos::from_secs(3_600 * hours));
        let tables = [("cpu", 7), ("load", 8), ("load.summary", 900)];
        let tables = tables.map(|(table, keep)| (table.to_owned(), hours(keep).unwrap()));
        let keep = Keep { all: hours(30), tables: tables.into() };
        for (table, expected) in [
            ("cpu", 7),
            ("cpu.summary", 7),
            ("load", 8),
            ("load.summary", 900),
            ("polls", 30),
            ("polls.summary", 30),
        ] {
            assert_eq!(keep.limit_of(table), hours(expected), "{table}");
        }
        let some = Keep { all: None, ..keep };
        assert_eq!((some.limit_of("polls"), some.limit_of("cpu")), (None, hours(7)));
        assert!(Keep::FOREVER.is_forever() && !some.is_forever());
    }
}
