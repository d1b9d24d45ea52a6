//! Where everything lies in a recording's directory, and which of it counts.
//!
//! ```text
//! DIR/recording.toml
//! DIR/log/STREAM/lock                                 held by the stream's writer
//! DIR/log/STREAM/next                                 the next sequence number
//! DIR/log/STREAM/progress                             how far the log was written
//! DIR/log/STREAM/manifest                             the Parquet files that belong here
//! DIR/log/STREAM/FIRST.log                            segments, named by their first frame
//! DIR/log/STREAM/ended.json                           what those hold that nobody writes any more
//! DIR/log/STREAM/FIRST.log.damaged, .log.unknown      what compaction could not read wholly
//! DIR/TABLE/date=YYYY-MM-DD/hour=HH/STREAM-FIRST-LAST.parquet
//! DIR/TABLE.summary/date=YYYY-MM-DD/hour=HH/STREAM-FIRST-LAST.parquet
//! ```
//!
//! **The rule that no row is doubled by**: a Parquet file whose sequence range holds the first
//! sequence number of a segment that exists does not count. Compaction renames all files of a
//! segment into place and then unlinks the segment, so the unlink is the one instant at which rows
//! move from the log to Parquet. A reader must therefore open the segments first and list the
//! Parquet files afterwards, which [`list`](crate::files::list) does: a segment that is unlinked in between stays
//! readable through its open file, and hides its Parquet files.

use std::fs::{self, DirEntry, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::problem::{Problem, read_regular};

/// The directory of the log in a recording.
pub const LOG: &str = "log";

/// What ends the name of a segment that was compacted as far as it could be read, behind its number.
pub(crate) const DAMAGED: &str = "log.damaged";

/// What ends the name of a segment that was compacted but for its frames of kinds that the program did
/// not know, behind its number.
pub(crate) const UNKNOWN: &str = "log.unknown";

/// The name of a Parquet file: the stream, and the range of sequence numbers that it was made of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ParquetName {
    /// The stream's name.
    pub stream: String,
    /// Sequence number of the first frame of the segment that the file was made of.
    pub first: u64,
    /// Sequence number of its last frame.
    pub last: u64,
}

impl ParquetName {
    /// The name as it stands in a directory: `STREAM-FIRST-LAST.parquet`.
    pub fn file_name(&self) -> String {
        format!("{}-{}-{}.parquet", self.stream, self.first, self.last)
    }

    /// Whether a sequence number lies in its range.
    pub(crate) fn holds(&self, sequence: u64) -> bool {
        (self.first..=self.last).contains(&sequence)
    }

    /// Reads a file's name; `None` when it is not one of ours.
    pub fn parse(file_name: &str) -> Option<Self> {
        let mut parts = file_name.strip_suffix(".parquet")?.rsplitn(3, '-');
        let last = parts.next()?.parse().ok()?;
        let first = parts.next()?.parse().ok()?;
        let stream = parts.next()?;
        is_name(stream).then(|| Self { stream: stream.into(), first, last })
    }
}

/// Whether a text can name a stream or a table: letters, digits, `_`, `-` and `.`, none of them
/// first but a letter or digit.
pub fn is_name(text: &str) -> bool {
    text.len() <= 100
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

/// The directory of a stream's segments.
pub fn stream_dir(dir: &Path, stream: &str) -> PathBuf {
    dir.join(LOG).join(stream)
}

/// The file of the segment whose first frame has the sequence number `first`.
pub fn segment_path(dir: &Path, stream: &str, first: u64) -> PathBuf {
    stream_dir(dir, stream).join(segment_name(first))
}

/// The name of the segment whose first frame has a sequence number.
pub(crate) fn segment_name(first: u64) -> String {
    format!("{first:010}.log")
}

/// The hour that an instant lies in, in hours since the epoch.
pub fn hour_of(time_ns: i64) -> i64 {
    time_ns.div_euclid(3_600_000_000_000)
}

/// The directory of a table's rows of one hour, `hour` in hours since the epoch.
///
/// # Panics
/// If the hour is not one that 64 bits of ns can name.
pub fn hour_dir(dir: &Path, table: &str, hour: i64) -> PathBuf {
    let days = i32::try_from(hour.div_euclid(24)).expect("64 bits of ns are 107,000 days");
    let date = jiff::civil::date(1970, 1, 1) + jiff::Span::new().days(days);
    dir.join(table).join(format!("date={date}")).join(format!("hour={:02}", hour.rem_euclid(24)))
}

/// A segment that exists.
#[derive(Debug)]
pub struct SegmentFile {
    /// The stream's name.
    pub stream: String,
    /// Sequence number of its first frame.
    pub first: u64,
    /// Path of the segment.
    pub path: PathBuf,
    /// The file, open for reading.
    pub file: File,
    /// The least sequence number that its last frame must have, where it is known: what was written
    /// behind the segment names it, or the stream's `progress`.
    pub ends_with: Option<u64>,
}

/// A Parquet file that counts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ParquetFile {
    /// The table's name, which may end in `.summary`.
    pub table: String,
    /// The hour that its rows lie in, in hours since the epoch.
    pub hour: i64,
    /// Its name taken apart.
    pub name: ParquetName,
    /// Path of the file.
    pub path: PathBuf,
    /// What the stream's manifest says of it; `None` when an earlier version wrote it.
    pub claim: Option<Claim>,
}

/// What a manifest says of a Parquet file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim {
    /// Octets of the file.
    pub bytes: u64,
    /// How many rows were written.
    pub rows: u64,
    /// Where page indexes and footer begin.
    pub(crate) tail: u64,
    /// CRC-32 of the octets from there to the end.
    pub(crate) tail_crc: u32,
}

/// Why the files of a recording could not be listed.
#[derive(Debug, thiserror::Error)]
#[error("cannot list `{path}`")]
pub struct ListError {
    /// The directory or file.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

/// What the name of a segment says of its first frame.
pub(crate) fn segment_number(name: &str) -> Option<u64> {
    name.strip_suffix(".log")?.parse().ok()
}

/// The segments in a stream's directory with the sequence numbers of their first frames, in order.
///
/// # Errors
/// When the directory cannot be read.
pub(crate) fn segments_of(stream_dir: &Path) -> Result<Vec<(u64, PathBuf)>, ListError> {
    let found = found_in(stream_dir, segment_number)?.into_iter();
    let mut segments: Vec<_> = found.map(|(first, entry)| (first, entry.path())).collect();
    segments.sort();
    Ok(segments)
}

/// The file that holds a stream's next sequence number.
pub(crate) fn next_path(dir: &Path, stream: &str) -> PathBuf {
    stream_dir(dir, stream).join("next")
}

/// The last sequence number of a stream whose rows are no longer in the log; 0 if there is none.
///
/// The file `next` knows; without it every Parquet file's name is looked at.
pub(crate) fn last_sequence(dir: &Path, stream: &str) -> Result<u64, ListError> {
    let noted = read_regular(&next_path(dir, stream)).ok();
    if let Some(next) = noted.and_then(|text| text.trim().parse::<u64>().ok()) {
        return Ok(next.saturating_sub(1));
    }
    let files = parquet_files_with(dir, |_, _| true, ParquetName::parse, &mut Vec::new())?;
    let of_stream = files.iter().filter(|file| file.name.stream == stream);
    Ok(of_stream.map(|file| file.name.last).max().unwrap_or(0))
}

/// The files in all hours that are wanted whose name `parse` accepts; `problems` takes the
/// directories that cannot be looked into.
pub(crate) fn parquet_files_with(
    dir: &Path,
    wanted: impl Fn(&str, i64) -> bool,
    parse: impl Fn(&str) -> Option<ParquetName>,
    problems: &mut Vec<Problem>,
) -> Result<Vec<ParquetFile>, ListError> {
    let mut files = Vec::new();
    let mut inside = |path: &Path| {
        entries(path).unwrap_or_else(|error| {
            problems.push(Problem::new(path, error.source.to_string()));
            Vec::new()
        })
    };
    for (table, path) in entries(dir)? {
        if table == LOG || !is_name(&table) || !path.is_dir() {
            continue;
        }
        for (date, path) in inside(&path) {
            let Some(day) = date.strip_prefix("date=").and_then(day_of) else { continue };
            for (hour, path) in inside(&path) {
                let hour = hour.strip_prefix("hour=").and_then(|hour| hour.parse::<u8>().ok());
                let Some(hour) = hour.map(|hour| day * 24 + i64::from(hour)) else { continue };
                if !wanted(&table, hour) {
                    continue;
                }
                files.extend(inside(&path).into_iter().filter_map(|(name, path)| {
                    let name = parse(&name)?;
                    Some(ParquetFile { table: table.clone(), hour, name, path, claim: None })
                }));
            }
        }
    }
    Ok(files)
}

/// The hour whose rows the Parquet file at a path has; `None` where its directories name none.
pub fn hour_of_file(path: &Path) -> Option<i64> {
    let mut above = path.ancestors().skip(1).filter_map(|dir| dir.file_name()?.to_str());
    let hour = above.next()?.strip_prefix("hour=")?.parse::<u8>().ok()?;
    Some(day_of(above.next()?.strip_prefix("date=")?)? * 24 + i64::from(hour))
}

fn day_of(date: &str) -> Option<i64> {
    let date: jiff::civil::Date = date.parse().ok()?;
    let since = jiff::civil::date(1970, 1, 1).until(date).ok()?;
    Some(i64::from(since.get_days()))
}

/// Names and paths in a directory, sorted; none when there is no such directory.
pub(crate) fn entries(dir: &Path) -> Result<Vec<(String, PathBuf)>, ListError> {
    let found = found_in(dir, |name| Some(name.to_owned()))?.into_iter();
    let mut found: Vec<_> = found.map(|(name, entry)| (name, entry.path())).collect();
    found.sort();
    Ok(found)
}

/// The entries of a directory that `parse` makes something of, in any order; none when there is no
/// such directory.
pub(crate) fn found_in<T>(
    dir: &Path,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Vec<(T, DirEntry)>, ListError> {
    let refused = |source| ListError { path: dir.into(), source };
    let listing = match fs::read_dir(dir) {
        Ok(listing) => listing,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(refused(source)),
    };
    let mut found = Vec::new();
    for entry in listing {
        let entry = entry.map_err(refused)?;
        if let Some(parsed) = entry.file_name().to_str().and_then(&parse) {
            found.push((parsed, entry));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_parquet_files_read_back() {
        let name = ParquetName { stream: "rack-1.snmp".into(), first: 7, last: 12_345_678_901 };
        assert_eq!(name.file_name(), "rack-1.snmp-7-12345678901.parquet");
        assert_eq!(ParquetName::parse(&name.file_name()), Some(name));
        for other in [".snmp-1-2.parquet", "snmp-1-2.parquet.tmp", "1-2.parquet", "notes.txt"] {
            assert_eq!(ParquetName::parse(other), None, "{other}");
        }
    }

    #[test]
    fn hours_have_directories_also_before_the_epoch() {
        let at = |time| hour_dir(Path::new("r"), "polls", hour_of(time)).display().to_string();
        assert_eq!(at(0), "r/polls/date=1970-01-01/hour=00");
        assert_eq!(at(-1), "r/polls/date=1969-12-31/hour=23");
        // 2026-11-21T20:37:09Z is 1795293429 s after the epoch.
        assert_eq!(at(1_795_293_429_000_000_000), "r/polls/date=2026-11-21/hour=20");
        assert_eq!(day_of("2026-11-21"), Some(1_795_293_429 / 86_400));
        for hour in [0, -1, hour_of(1_795_293_429_000_000_000)] {
            let file = hour_dir(Path::new("r"), "polls", hour).join("snmp-1-2.parquet");
            assert_eq!(hour_of_file(&file), Some(hour));
        }
        assert_eq!(hour_of_file(Path::new("r/log/snmp/0000000001.log")), None);
    }
}
