//! `tables.json` of a stream: the tables that its writers fill, also those that have no rows.
//!
//! While a segment is there, its head says it; compaction makes files of rows only. A stream without
//! one, written by an earlier version, is whole: its tables are those that have rows.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::{fs, process};

use serde::{Deserialize, Serialize};

use crate::layout::{self, ListError};
use crate::schema::TableSchema;

/// The file in a stream's directory.
pub const FILE_NAME: &str = "tables.json";

#[derive(Debug, Serialize, Deserialize)]
struct File {
    tables: Vec<TableSchema>,
}

/// The tables that the writers of all streams of the recording in `dir` have declared, by name.
///
/// What cannot be read declares nothing: the tables that have rows are known without it.
///
/// # Errors
/// When the log's directory cannot be read.
pub fn read(dir: &Path) -> Result<BTreeMap<String, TableSchema>, ListError> {
    let streams = layout::entries(&dir.join(layout::LOG))?.into_iter();
    let tables = streams.flat_map(|(_, stream_dir)| of_stream(&stream_dir));
    Ok(tables.map(|table| (table.name.clone(), table)).collect())
}

fn of_stream(stream_dir: &Path) -> Vec<TableSchema> {
    let text = fs::read_to_string(stream_dir.join(FILE_NAME)).unwrap_or_default();
    serde_json::from_str(&text).map_or_else(|_| Vec::new(), |file: File| file.tables)
}

/// Adds the tables of a writer to those that the stream's writers have declared before.
///
/// # Errors
/// When the file cannot be written, with its path.
pub(crate) fn add(stream_dir: &Path, tables: &[TableSchema]) -> Result<(), (PathBuf, io::Error)> {
    let before = of_stream(stream_dir);
    let is_gone = |table: &&TableSchema| tables.iter().all(|new| new.name != table.name);
    let gone = before.iter().filter(is_gone).cloned();
    let all = File { tables: tables.iter().cloned().chain(gone).collect() };
    if all.tables == before {
        return Ok(());
    }
    let path = stream_dir.join(FILE_NAME);
    let temporary = stream_dir.join(format!(".{FILE_NAME}.{}.tmp", process::id()));
    serde_json::to_vec(&all)
        .map_err(io::Error::from)
        .and_then(|text| fs::write(&temporary, text))
        .and_then(|()| fs::rename(&temporary, &path))
        .map_err(|error| (path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_writer_declared_stays_and_the_newest_schema_counts() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()).unwrap(), BTreeMap::new());
        let stream = layout::stream_dir(dir.path(), "snmp");
        fs::create_dir_all(&stream).unwrap();
        let table = |name: &str, doc: &str| TableSchema::new(name, doc, Vec::new());
        add(&stream, &[table("load", "first"), table("storage", "first")]).unwrap();
        add(&stream, &[table("load", "second"), table("cpu", "second")]).unwrap();
        let found = read(dir.path()).unwrap();
        let found: Vec<_> = found.values().map(|table| (&*table.name, &*table.doc)).collect();
        assert_eq!(found, [("cpu", "second"), ("load", "second"), ("storage", "first")]);
        fs::write(stream.join(FILE_NAME), "{").unwrap();
        assert_eq!(read(dir.path()).unwrap(), BTreeMap::new());
    }
}
