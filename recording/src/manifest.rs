//! `manifest` of a stream: which Parquet files belong to the recording, and what is in them.
//!
//! The file is appended to, one line a compacted segment; a line is the CRC-32 of the JSON behind
//! it, a space, and the JSON. Only who holds the stream's lock writes it. A last line without its
//! end is that of a writer that was killed: the segment is then still there, and hides the files.
//!
//! With the numbers in the heads of segments and in `progress`, the sequence numbers of a stream are
//! one chain: every part of it names the last number before it, and what is missing is a hole.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::layout;
use crate::problem::open_regular;
use crate::remembered::Remembered;
use crate::unfinished::{Durability, replace_file};

/// The file in a stream's directory.
pub(crate) const FILE_NAME: &str = "manifest";

/// One Parquet file as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileEntry {
    pub(crate) table: String,
    /// The hour of its rows, counted from the epoch.
    pub(crate) hour: i64,
    pub(crate) bytes: u64,
    pub(crate) rows: u64,
    /// Where page indexes and footer begin; the octets before have checksums in the footer.
    pub(crate) tail: u64,
    /// CRC-32 of the octets from there to the end.
    pub(crate) tail_crc: u32,
    /// Whether it was deleted because it was too old.
    #[serde(skip)]
    pub(crate) deleted: bool,
}

/// A span of sequence numbers that has left the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Unit {
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// The last sequence number before `first`; `None` where nobody noted it.
    pub(crate) before: Option<u64>,
    /// The least and the greatest `time` of its rows.
    pub(crate) times: Option<(i64, i64)>,
    /// Whether files of this span that nobody listed are there: an earlier version wrote them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) unlisted: bool,
    pub(crate) files: Vec<FileEntry>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands fields over by reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

impl Unit {
    /// A span of frames without rows.
    pub(crate) fn without_files(first: u64, last: u64, before: Option<u64>) -> Self {
        Self { first, last, before, times: None, unlisted: false, files: Vec::new() }
    }

    pub(crate) fn holds(&self, sequence: u64) -> bool {
        (self.first..=self.last).contains(&sequence)
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Record {
    Compacted(Unit),
    Deleted {
        before_hour: i64,
        /// The table that is meant; every one when `None`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        table: Option<String>,
    },
}

/// What the manifest of a stream says.
#[derive(Debug, Default)]
pub(crate) struct Manifest {
    units: BTreeMap<u64, Unit>,
    /// Lines that do not have their checksum.
    pub(crate) damaged_lines: u64,
}

impl Manifest {
    fn parse(octets: &[u8]) -> Self {
        let mut manifest = Self::default();
        let mut lines = octets.split(|&octet| octet == b'\n').peekable();
        while let Some(line) = lines.next() {
            // What is behind the last line end is torn, or nothing.
            if lines.peek().is_none() {
                break;
            }
            match record_of(line) {
                Some(record) => manifest.add_record(record),
                None => manifest.damaged_lines += 1,
            }
        }
        manifest
    }

    fn add_record(&mut self, record: Record) {
        match record {
            Record::Compacted(unit) => {
                // A segment whose compaction was killed is compacted again.
                self.units.retain(|_, old| old.last < unit.first || old.first > unit.last);
                self.units.insert(unit.first, unit);
            }
            Record::Deleted { before_hour, table } => {
                let files = self.units.values_mut().flat_map(|unit| &mut unit.files);
                let is_meant = |file: &&mut FileEntry| {
                    file.hour < before_hour
                        && table.as_ref().is_none_or(|table| *table == file.table)
                };
                files.filter(is_meant).for_each(|file| file.deleted = true);
            }
        }
    }

    /// All spans, in their order.
    pub(crate) fn units(&self) -> impl Iterator<Item = &Unit> {
        self.units.values()
    }

    /// The span that a sequence number lies in.
    pub(crate) fn unit_of(&self, sequence: u64) -> Option<&Unit> {
        let (_, unit) = self.units.range(..=sequence).next_back()?;
        unit.holds(sequence).then_some(unit)
    }

    /// The last sequence number that it names; 0 when it names none.
    pub(crate) fn last(&self) -> u64 {
        self.units.values().next_back().map_or(0, |unit| unit.last)
    }

    /// The lines of a manifest that says the same without the files that were deleted.
    fn pruned(&self) -> Vec<u8> {
        let mut kept: Vec<Unit> = Vec::new();
        for unit in self.units.values() {
            let mut unit = unit.clone();
            unit.files.retain(|file| !file.deleted);
            match kept.last_mut() {
                Some(last)
                    if last.files.is_empty()
                        && unit.files.is_empty()
                        && last.unlisted == unit.unlisted
                        && unit.before == Some(last.last) =>
                {
                    last.last = unit.last;
                    last.times = unit.times;
                }
                _ => kept.push(unit),
            }
        }
        kept.into_iter().flat_map(|unit| line_of(&Record::Compacted(unit))).collect()
    }
}

fn line_of(record: &Record) -> Vec<u8> {
    let json = serde_json::to_string(record).expect("a record has only string keys");
    format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes())).into_bytes()
}

fn record_of(line: &[u8]) -> Option<Record> {
    let (crc, json) = std::str::from_utf8(line).ok()?.split_once(' ')?;
    (crc == format!("{:08x}", crc32fast::hash(json.as_bytes())))
        .then(|| serde_json::from_str(json).ok())?
}

/// The manifest of a stream; `None` when it has none.
///
/// # Errors
/// When the file is there and cannot be read.
pub(crate) fn read(stream_dir: &Path) -> io::Result<Option<Manifest>> {
    let path = stream_dir.join(FILE_NAME);
    match open_regular(&path) {
        Ok(mut file) => Ok(Some(parsed(&mut file)?)),
        Err(error) if is_absent(&error, &path) => Ok(None),
        Err(error) => Err(error),
    }
}

fn parsed(file: &mut File) -> io::Result<Manifest> {
    let mut octets = Vec::new();
    file.read_to_end(&mut octets)?;
    Ok(Manifest::parse(&octets))
}

/// A dangling link is not absent: somebody put it there.
fn is_absent(error: &io::Error, path: &Path) -> bool {
    error.kind() == io::ErrorKind::NotFound && !path.is_symlink()
}

/// Notes that a segment was compacted. What lies before the first span of a new manifest was
/// written by an earlier version.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn add(stream_dir: &Path, unit: Unit) -> io::Result<()> {
    if unit.first > 1 {
        adopt(stream_dir, unit.first - 1)?;
    }
    append(stream_dir, &Record::Compacted(unit))
}

/// Begins the manifest of a stream that has none and was written up to `last` by an earlier version.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn adopt(stream_dir: &Path, last: u64) -> io::Result<()> {
    let path = stream_dir.join(FILE_NAME);
    if last == 0 || path.exists() || path.is_symlink() {
        return Ok(());
    }
    let unit = Unit { unlisted: true, ..Unit::without_files(1, last, None) };
    append(stream_dir, &Record::Compacted(unit))
}

/// Notes that files of some tables are deleted, each of all hours before the one given with it.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn delete_before(stream_dir: &Path, hours: &BTreeMap<String, i64>) -> io::Result<()> {
    if !stream_dir.join(FILE_NAME).exists() {
        return Ok(());
    }
    hours.iter().try_for_each(|(table, &before_hour)| {
        append(stream_dir, &Record::Deleted { before_hour, table: Some(table.clone()) })
    })
}

/// Leaves out what was deleted, so that the file does not grow for ever; files that were deleted
/// must be gone.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn prune(stream_dir: &Path) -> io::Result<()> {
    let Some(manifest) = read(stream_dir)? else { return Ok(()) };
    // Damaged lines are kept as they are: they tell that something is not known.
    if manifest.damaged_lines > 0 {
        return Ok(());
    }
    replace_file(&stream_dir.join(FILE_NAME), &manifest.pruned(), Durability::Disk)
}

fn append(stream_dir: &Path, record: &Record) -> io::Result<()> {
    let path = stream_dir.join(FILE_NAME);
    let is_new = !path.exists();
    let mut file = OpenOptions::new().read(true).append(true).create(true).open(&path)?;
    let mut octets = Vec::new();
    file.read_to_end(&mut octets)?;
    let whole = octets.iter().rposition(|&octet| octet == b'\n').map_or(0, |end| end + 1);
    if whole < octets.len() {
        // The line of a writer that was killed while it wrote it.
        file.set_len(whole as u64)?;
    }
    file.write_all(&line_of(record))?;
    file.sync_all()?;
    if is_new { File::open(stream_dir)?.sync_all() } else { Ok(()) }
}

/// The manifest of a stream, from memory where it has not changed.
///
/// # Errors
/// As [`read`].
pub(crate) fn remembered(
    known: &Remembered<Manifest>,
    dir: &Path,
    stream: &str,
) -> io::Result<Option<Arc<Manifest>>> {
    known.read(&layout::stream_dir(dir, stream).join(FILE_NAME), parsed)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn unit(first: u64, last: u64, hours: &[i64]) -> Unit {
        let file = |&hour: &i64| FileEntry {
            table: "load".into(),
            hour,
            bytes: 100,
            rows: 10,
            tail: 60,
            tail_crc: 7,
            deleted: false,
        };
        let files = hours.iter().map(file).collect();
        let before = Some(first - 1);
        Unit { first, last, before, times: Some((1, 2)), unlisted: false, files }
    }

    fn spans(manifest: &Manifest) -> Vec<(u64, u64, usize)> {
        let kept = |unit: &Unit| unit.files.iter().filter(|file| !file.deleted).count();
        manifest.units().map(|unit| (unit.first, unit.last, kept(unit))).collect()
    }

    #[test]
    fn what_was_added_comes_back_and_a_torn_line_is_gone_on_with() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path()).unwrap().is_none());
        add(dir.path(), unit(10, 19, &[5])).unwrap();
        add(dir.path(), unit(20, 29, &[5, 6])).unwrap();
        let path = dir.path().join(FILE_NAME);
        let mut octets = fs::read(&path).unwrap();
        octets.extend_from_slice(b"0123 {\"torn");
        fs::write(&path, octets).unwrap();
        assert_eq!(
            spans(&read(dir.path()).unwrap().unwrap()),
            [(1, 9, 0), (10, 19, 1), (20, 29, 2)]
        );
        // The same segment again: its compaction was killed.
        add(dir.path(), unit(20, 31, &[6])).unwrap();
        let found = read(dir.path()).unwrap().unwrap();
        assert_eq!(spans(&found), [(1, 9, 0), (10, 19, 1), (20, 31, 1)]);
        assert_eq!((found.damaged_lines, found.last()), (0, 31));
        assert!(found.unit_of(9).unwrap().unlisted);
        assert_eq!(found.unit_of(32), None);
    }

    #[test]
    fn a_line_of_an_earlier_version_deletes_every_table() {
        let dir = tempfile::tempdir().unwrap();
        add(dir.path(), unit(1, 9, &[5])).unwrap();
        let json = r#"{"deleted":{"before_hour":6}}"#;
        let line = format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes()));
        let path = dir.path().join(FILE_NAME);
        fs::write(&path, fs::read_to_string(&path).unwrap() + &line).unwrap();
        assert_eq!(spans(&read(dir.path()).unwrap().unwrap()), [(1, 9, 0)]);
    }

    #[test]
    fn every_changed_bit_costs_its_line_and_is_told() {
        let dir = tempfile::tempdir().unwrap();
        add(dir.path(), unit(1, 9, &[5])).unwrap();
        add(dir.path(), unit(10, 19, &[5])).unwrap();
        let path = dir.path().join(FILE_NAME);
        let whole = fs::read(&path).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut changed = whole.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let manifest = Manifest::parse(&changed);
            // The end of the last line is not told from a torn one: its segment would be there.
            let expected = usize::from(bit / 8 + 1 < whole.len());
            assert!(manifest.damaged_lines >= expected as u64, "bit {bit}");
            assert!(manifest.units().count() < 2, "bit {bit}");
        }
    }

    #[test]
    fn deleted_files_are_left_out_and_the_chain_stays() {
        let dir = tempfile::tempdir().unwrap();
        for first in [1, 10, 20] {
            let hour = i64::try_from(first).unwrap();
            add(dir.path(), unit(first, if first == 1 { 9 } else { first + 9 }, &[hour])).unwrap();
        }
        // Those of another table stay.
        delete_before(dir.path(), &[("cpu".to_owned(), 99)].into()).unwrap();
        assert_eq!(spans(&read(dir.path()).unwrap().unwrap())[0], (1, 9, 1));
        delete_before(dir.path(), &[("load".to_owned(), 20)].into()).unwrap();
        let deleted = [(1, 9, 0), (10, 19, 0), (20, 29, 1)];
        assert_eq!(spans(&read(dir.path()).unwrap().unwrap()), deleted);
        // A clock that went back: what is compacted later counts.
        add(dir.path(), unit(30, 39, &[3])).unwrap();
        prune(dir.path()).unwrap();
        let pruned = [(1, 19, 0), (20, 29, 1), (30, 39, 1)];
        assert_eq!(spans(&read(dir.path()).unwrap().unwrap()), pruned);
    }
}
