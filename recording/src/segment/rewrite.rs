//! Ended segments written anew, with other blocks in place of some of theirs.
//!
//! Frame stands for frame: a block that is replaced keeps its number and what was written before it, so that who
//! reads finds no hole, and who sends a block again is known by where it came from. A segment that is damaged is
//! left as it is: nothing of it is to be lost by this.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufWriter, Write as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::{ReadSegmentError, SegmentReader, ended, remove_index};
use crate::log::{Codec, Ordinal};
use crate::packed::PackedRows;
use crate::unfinished::Unfinished;

/// What was written anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    /// Blocks that were replaced.
    pub blocks: u64,
    /// Octets of the segment before.
    pub bytes_before: u64,
    /// Octets of the segment now.
    pub bytes: u64,
}

/// Why a segment was left as it is.
#[derive(Debug, thiserror::Error)]
pub enum RewriteError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadSegmentError),
    /// Parts of it are damaged.
    #[error("segment `{path}` is damaged: it is left as it is")]
    Damaged {
        /// Segment that is damaged.
        path: PathBuf,
    },
    /// A block is of a table that the segment does not have.
    #[error("segment `{path}` has no table `{table}`: it is left as it is")]
    Table {
        /// Segment without the table.
        path: PathBuf,
        /// Table of the block.
        table: String,
    },
    /// It was broken off.
    #[error("writing a segment anew was broken off")]
    Stopped,
    /// The system refused.
    #[error("cannot write segment `{path}` anew")]
    System {
        /// Segment that was to be written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Writes a segment that nobody writes any more anew: where `change` gives a block for one of its packed blocks, that
/// stands in its place, and keeps the origin of the one before. It is replaced as a whole, or not at all.
///
/// # Errors
/// When the segment is damaged or lacks the table of a block, `change` breaks off, or the system refuses.
pub fn rewrite(
    path: &Path,
    mut change: impl FnMut(&PackedRows) -> ControlFlow<(), Option<PackedRows>>,
) -> Result<Rewritten, RewriteError> {
    let system = |source| RewriteError::System { path: path.into(), source };
    let damaged = || RewriteError::Damaged { path: path.into() };
    let mut reader = SegmentReader::open(path)?.ok_or_else(damaged)?;
    let head = reader.begin.ok_or_else(damaged)?;
    let mut file = BufWriter::new(Unfinished::create(path).map_err(system)?);
    file.write_all(&head.encoded()).map_err(system)?;
    file.write_all(&reader.payload).map_err(system)?;
    let tables = reader.head().tables.iter().zip(0..);
    let tables: BTreeMap<String, usize> =
        tables.map(|(table, at)| (table.name.clone(), at)).collect();
    let mut rewritten = Rewritten { blocks: 0, bytes_before: reader.len, bytes: 0 };
    let mut frame = Vec::new();
    while let Some(header) = reader.next_frame(|_, _| true)? {
        let is_packed = header.codec == Codec::Packed;
        let rows = if is_packed { reader.packed_rows(&header) } else { None };
        frame.clear();
        let new = match rows.as_ref().map(&mut change) {
            Some(ControlFlow::Break(())) => return Err(RewriteError::Stopped),
            Some(ControlFlow::Continue(new)) => new,
            None => None,
        };
        if let (Some(rows), Some(new)) = (rows, new) {
            let of_table = || RewriteError::Table { path: path.into(), table: new.table().into() };
            let table = *tables.get(new.table()).ok_or_else(of_table)?;
            let new = match rows.origin() {
                Some(origin) => new.with_origin(origin).map_err(|_| damaged())?,
                None => new,
            };
            let ordinal = Ordinal { sequence: header.sequence, before: header.before };
            new.encode_frame(table, ordinal, &mut frame);
            rewritten.blocks += 1;
        } else {
            frame.extend_from_slice(&header.encoded());
            frame.extend_from_slice(&reader.payload);
        }
        file.write_all(&frame).map_err(system)?;
    }
    let ending = reader.ending();
    if ending.torn_bytes > 0 || ending.problem(None).is_some() {
        return Err(damaged());
    }
    if rewritten.blocks == 0 {
        rewritten.bytes = rewritten.bytes_before;
        return Ok(rewritten);
    }
    let file = file.into_inner().map_err(|error| system(error.into_error()))?;
    // An index tells nothing about another file.
    remove_index(path);
    file.finish_on_disk().map_err(system)?;
    rewritten.bytes = fs::metadata(path).map_err(system)?.len();
    index_anew(path)?;
    Ok(rewritten)
}

/// Makes what readers may do without: the index, and the note that the segment has ended.
fn index_anew(path: &Path) -> Result<(), ReadSegmentError> {
    let Some(mut reader) = SegmentReader::open(path)? else { return Ok(()) };
    reader.begin_index();
    reader.next_rows(|_| false)?;
    if let Some(index) = reader.index() {
        drop(index.write(path));
        drop(ended::note(path, index));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Column, ColumnKind, Kind, Meaning, Packer, Recording, Selection, StreamOptions,
        StreamWriter, TableSchema,
    };

    fn table(name: &str) -> TableSchema {
        TableSchema::new(name, "", vec![Column::new("value", ColumnKind::U64, Meaning::Detail, "")])
    }

    fn block(name: &str, values: &[u64]) -> PackedRows {
        let mut packer = Packer::new(table(name));
        for &value in values {
            packer.batch().begin_row(i64::try_from(value).unwrap() * 1_000);
            packer.batch().put_u64(1, value);
        }
        packer.pack().unwrap()
    }

    /// The values of a table of a recording.
    fn values(dir: &Path, name: &str) -> Vec<u64> {
        let recording = Recording::open(dir).unwrap();
        let mut scan = recording.scan(&Selection::all(name)).unwrap();
        let mut values = Vec::new();
        for rows in scan.by_ref() {
            let rows = rows.unwrap();
            let column = rows.column_by_name("value").unwrap();
            let column =
                arrow::array::AsArray::as_primitive::<arrow::datatypes::UInt64Type>(column);
            values.extend(column.values().iter().copied());
        }
        assert!(scan.problems().is_empty(), "{:?}", scan.problems());
        values
    }

    fn segment(dir: &Path) -> PathBuf {
        let tables = vec![table("samples"), table("sums"), table("other")];
        let options = StreamOptions { compact: false, ..StreamOptions::COLLECTOR };
        let mut writer = StreamWriter::open(dir, Kind::Measured, "s", tables, options).unwrap();
        for block in [
            block("samples", &[1, 2, 3]),
            block("other", &[7]),
            block("samples", &[4, 5]),
            block("other", &[8, 9]),
        ] {
            writer.packed(block).unwrap();
        }
        writer.close().unwrap();
        let segments = crate::layout::segments_of(&crate::layout::stream_dir(dir, "s")).unwrap();
        assert_eq!(segments.len(), 1);
        segments[0].1.clone()
    }

    #[test]
    fn blocks_are_replaced_one_for_one_and_all_else_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = segment(dir.path());
        let sum = |rows: &PackedRows| {
            let is_samples = rows.table() == "samples";
            ControlFlow::Continue(is_samples.then(|| block("sums", &[rows.rows() as u64])))
        };
        let rewritten = rewrite(&path, sum).unwrap();
        assert_eq!(rewritten.blocks, 2);
        assert_eq!(rewritten.bytes, fs::metadata(&path).unwrap().len());
        // By their times, which are those that the test gave them.
        assert_eq!(values(dir.path(), "sums"), [2, 3]);
        assert_eq!(values(dir.path(), "other"), [7, 8, 9]);
        assert!(values(dir.path(), "samples").is_empty());
        // A second time there is nothing to do, and nothing is done.
        let again = rewrite(&path, sum).unwrap();
        assert_eq!((again.blocks, again.bytes), (0, rewritten.bytes));
        let report = crate::check::check(dir.path()).unwrap();
        assert!(report.damage.is_empty(), "{:?}", report.damage);
    }

    #[test]
    fn a_damaged_segment_and_one_without_the_table_stay_as_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let path = segment(dir.path());
        let before = fs::read(&path).unwrap();
        let none = rewrite(&path, |_| ControlFlow::Continue(Some(block("none", &[1]))));
        assert!(matches!(none, Err(RewriteError::Table { .. })), "{none:?}");
        assert_eq!(fs::read(&path).unwrap(), before);
        let stopped = rewrite(&path, |_| ControlFlow::Break(()));
        assert!(matches!(stopped, Err(RewriteError::Stopped)), "{stopped:?}");
        assert_eq!(fs::read(&path).unwrap(), before);
        let mut damaged = before.clone();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 1;
        fs::write(&path, &damaged).unwrap();
        let found = rewrite(&path, |_| ControlFlow::Continue(Some(block("sums", &[1]))));
        assert!(found.is_err(), "{found:?}");
        assert_eq!(fs::read(&path).unwrap(), damaged);
        let names: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
        let unfinished = |entry: &io::Result<fs::DirEntry>| {
            entry.as_ref().unwrap().file_name().to_string_lossy().ends_with(".tmp")
        };
        assert!(!names.iter().any(unfinished), "{names:?}");
    }
}
