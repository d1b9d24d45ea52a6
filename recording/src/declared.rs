//! `tables.json` of a stream: the tables that its writers fill, also those that have no rows.
//!
//! While a segment is there, its head says it; compaction makes files of rows only. A stream without
//! one, written by an earlier version, is whole: its tables are those that have rows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::{Deserialize, Serialize};

use crate::layout::{self, ListError};
use crate::problem::{Problem, read_regular};
use crate::schema::TableSchema;
use crate::summary::SUFFIX;
use crate::unfinished::{Durability, replace_file};

/// The file in a stream's directory.
pub const FILE_NAME: &str = "tables.json";

#[derive(Debug, Serialize, Deserialize)]
struct File {
    /// The stream, where its segments can hold no rows but of these tables. Nobody knows that where the
    /// file was lost once, and earlier versions did not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    complete_for: Option<String>,
    tables: Vec<TableSchema>,
    /// CRC-32 of the JSON of `tables` without white space; earlier versions wrote none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    crc32: Option<u32>,
}

impl File {
    fn new(complete_for: Option<String>, tables: Vec<TableSchema>) -> Self {
        let crc32 = Some(sum(&tables));
        Self { complete_for, tables, crc32 }
    }

    fn is_complete_for(&self, stream: &str) -> bool {
        self.complete_for.as_deref() == Some(stream)
    }
}

fn sum(tables: &[TableSchema]) -> u32 {
    crc32fast::hash(&serde_json::to_vec(tables).unwrap_or_default())
}

/// The tables that the writers of all streams of the recording in `dir` have declared, by name.
///
/// What cannot be read declares nothing, and is told in `problems`: the tables that have rows are
/// known without it.
///
/// # Errors
/// When the log's directory cannot be read.
pub fn read(
    dir: &Path,
    problems: &mut Vec<Problem>,
) -> Result<BTreeMap<String, TableSchema>, ListError> {
    let of_all = by_stream(dir, problems)?.into_values().flat_map(|declared| declared.tables);
    Ok(of_all.map(|table| (table.name.clone(), table)).collect())
}

/// What the writers of one stream have declared.
#[derive(Debug)]
pub(crate) struct Declared {
    /// The tables, each as it was declared last.
    pub(crate) tables: Vec<TableSchema>,
    /// Whether the stream's segments can hold no rows of other tables.
    pub(crate) is_complete: bool,
}

/// As [`read`], by stream.
///
/// # Errors
/// As [`read`].
pub(crate) fn by_stream(
    dir: &Path,
    problems: &mut Vec<Problem>,
) -> Result<BTreeMap<String, Declared>, ListError> {
    let mut declared = BTreeMap::new();
    for (stream, stream_dir) in layout::entries(&dir.join(layout::LOG))? {
        match file_of(&stream_dir) {
            Ok(Some(file)) => {
                let is_complete = file.is_complete_for(&stream);
                declared.insert(stream, Declared { tables: file.tables, is_complete });
            }
            Ok(None) => {}
            Err(what) => problems.push(Problem::new(&stream_dir.join(FILE_NAME), what)),
        }
    }
    Ok(declared)
}

/// The file of a stream; `None` where there is none.
fn file_of(stream_dir: &Path) -> Result<Option<File>, String> {
    let path = stream_dir.join(FILE_NAME);
    let text = match read_regular(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {
            return Ok(None);
        }
        Err(error) => return Err(error.to_string()),
    };
    let file: File =
        serde_json::from_str(&text).map_err(|error| format!("it cannot be understood: {error}"))?;
    if file.crc32.is_some_and(|named| named != sum(&file.tables)) {
        return Err("it does not have the checksum that it names".into());
    }
    let checked = file.tables.iter().try_for_each(TableSchema::check_form);
    checked.map_err(|error| error.to_string())?;
    Ok(Some(file))
}

/// The streams whose segments can hold no row of a table, by what their writers declared. A request
/// for the table need not open them, however many there are.
///
/// # Errors
/// When the log's directory cannot be read.
pub(crate) fn streams_without(dir: &Path, table: &str) -> Result<BTreeSet<String>, ListError> {
    // Summaries are made of a table's rows, and a segment hides those that were made of its own.
    let table = table.strip_suffix(SUFFIX).unwrap_or(table);
    let streams = layout::entries(&dir.join(layout::LOG))?.into_iter();
    let is_without = |(stream, path): &(String, PathBuf)| {
        file_of(path).is_ok_and(|file| {
            file.is_some_and(|file| {
                file.is_complete_for(stream)
                    && file.tables.iter().all(|declared| declared.name != table)
            })
        })
    };
    Ok(streams.filter(is_without).map(|(stream, _)| stream).collect())
}

/// Why the tables of a writer could not be added.
#[derive(Debug)]
pub(crate) struct AddError {
    /// The `tables.json` that could not be read or written.
    pub(crate) path: PathBuf,
    /// What the system said.
    pub(crate) source: io::Error,
    /// Whether a list is still there that says it is complete, and is not: rows would be passed over.
    pub(crate) misleads: bool,
}

/// Adds the tables of a writer to those that the stream's writers have declared before, on the disk
/// before the first row of them is.
///
/// # Errors
/// When the file cannot be written. The list of before is then taken away.
pub(crate) fn add(stream_dir: &Path, tables: &[TableSchema]) -> Result<(), AddError> {
    add_by(|path, text| replace_file(path, text, Durability::Disk), stream_dir, tables)
}

fn add_by(
    write: impl FnOnce(&Path, &[u8]) -> io::Result<()>,
    stream_dir: &Path,
    tables: &[TableSchema],
) -> Result<(), AddError> {
    let path = stream_dir.join(FILE_NAME);
    let before = file_of(stream_dir).ok().flatten();
    let complete_for = match &before {
        Some(file) => file.complete_for.clone(),
        // A segment that is there already may hold anything.
        None => match layout::segments_of(stream_dir) {
            Ok(segments) if segments.is_empty() => {
                stream_dir.file_name().and_then(|name| name.to_str()).map(str::to_owned)
            }
            _ => None,
        },
    };
    let before = before.map_or_else(Vec::new, |file| file.tables);
    let is_gone = |table: &&TableSchema| tables.iter().all(|new| new.name != table.name);
    let gone = before.iter().filter(is_gone).cloned();
    let all = File::new(complete_for, tables.iter().cloned().chain(gone).collect());
    if all.tables == before {
        return Ok(());
    }
    let written = serde_json::to_vec(&all).map_err(io::Error::from);
    written.and_then(|text| write(&path, &text)).map_err(|source| {
        // Told by what is looked up next.
        drop(fs::remove_file(&path));
        let left = file_of(stream_dir).ok().flatten();
        AddError { path, source, misleads: left.is_some_and(|file| file.complete_for.is_some()) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_writer_declared_stays_and_the_newest_schema_counts() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path(), &mut Vec::new()).unwrap(), BTreeMap::new());
        let stream = layout::stream_dir(dir.path(), "snmp");
        fs::create_dir_all(&stream).unwrap();
        let table = |name: &str, doc: &str| TableSchema::new(name, doc, Vec::new());
        let without =
            |table| -> Vec<_> { streams_without(dir.path(), table).unwrap().into_iter().collect() };
        add(&stream, &[table("load", "first"), table("storage", "first")]).unwrap();
        add(&stream, &[table("load", "second"), table("cpu", "second")]).unwrap();
        let mut problems = Vec::new();
        let found = read(dir.path(), &mut problems).unwrap();
        assert_eq!(problems, []);
        let found: Vec<_> = found.values().map(|table| (&*table.name, &*table.doc)).collect();
        assert_eq!(found, [("cpu", "second"), ("load", "second"), ("storage", "first")]);
        assert_eq!(without("samples"), ["snmp"]);
        assert!(without("load").is_empty());
        fs::write(stream.join(FILE_NAME), "{").unwrap();
        assert!(without("samples").is_empty(), "nobody knows");
        assert_eq!(read(dir.path(), &mut problems).unwrap(), BTreeMap::new());
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].path, stream.join(FILE_NAME));
    }

    #[test]
    fn a_list_that_is_not_of_all_segments_keeps_no_reader_away() {
        let dir = tempfile::tempdir().unwrap();
        let stream = layout::stream_dir(dir.path(), "snmp");
        fs::create_dir_all(&stream).unwrap();
        let without = || streams_without(dir.path(), "samples").unwrap();
        let tables = [TableSchema::new("load", "", Vec::new())];
        add(&stream, &tables).unwrap();
        assert_eq!(without().len(), 1);
        // Put in the place of another stream's.
        let other = layout::stream_dir(dir.path(), "profile");
        fs::create_dir_all(&other).unwrap();
        fs::copy(stream.join(FILE_NAME), other.join(FILE_NAME)).unwrap();
        assert_eq!(without(), BTreeSet::from(["snmp".to_owned()]));
        // Lost, and made again beside a segment of an earlier writer.
        fs::remove_file(stream.join(FILE_NAME)).unwrap();
        fs::write(layout::segment_path(dir.path(), "snmp", 1), "").unwrap();
        add(&stream, &tables).unwrap();
        assert!(without().is_empty());
    }

    #[test]
    fn a_list_that_could_not_be_replaced_keeps_no_reader_away() {
        let dir = tempfile::tempdir().unwrap();
        let stream = layout::stream_dir(dir.path(), "snmp");
        fs::create_dir_all(&stream).unwrap();
        let table = |name: &str| TableSchema::new(name, "", Vec::new());
        add(&stream, &[table("load")]).unwrap();
        assert_eq!(streams_without(dir.path(), "cpu").unwrap().len(), 1);
        let full = |_: &Path, _: &[u8]| Err(io::Error::from(io::ErrorKind::StorageFull));
        let error = add_by(full, &stream, &[table("load"), table("cpu")]).unwrap_err();
        assert_eq!((error.path, error.misleads), (stream.join(FILE_NAME), false));
        assert!(streams_without(dir.path(), "cpu").unwrap().is_empty());
    }
}
