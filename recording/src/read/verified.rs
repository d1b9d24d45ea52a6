//! A Parquet file whose octets are verified as they are read.
//!
//! Whole blocks are read where a checksum is of one, at most [`BLOCK`] octets more at both ends of
//! what is wanted, and each is summed once while the file is open. A reader goes through several
//! columns at once, page by page: what was read last of each is kept, and who reads on gets
//! [`AHEAD`] octets at once, so that no octet is asked of the system twice.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::{ChunkReader, Length};

use crate::layout::{Claim, ParquetFile};
use crate::parquet_file::{BLOCK, Checksums, SCHEMA_KEY};
use crate::problem::{decoded, open_regular};
use crate::schema::TableSchema;

/// What is read at once of a column that somebody reads on in.
const AHEAD: u64 = 64 << 10;

/// What is wrong with a file of a stream whose manifest does not name it, or is gone.
pub(crate) const UNNAMED: &str = "no manifest names it, and it was written with one";
/// Places of a file that are read on at, as many as a table has columns that anybody reads at once. Each
/// takes [`AHEAD`] octets, or a page.
const WINDOWS_MAX: usize = 32;

/// Octets read from files.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meter(Arc<AtomicU64>);

impl Meter {
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// How a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verification {
    /// Every octet that is read is compared with its checksum.
    Always,
    /// Sizes, names and structure alone: what verification costs is measured against this.
    Never,
}

/// An open Parquet file.
#[derive(Debug, Clone)]
pub(crate) struct VerifiedFile(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    file: File,
    len: u64,
    meter: Meter,
    /// The verified octets from some place to the end.
    tail: Option<(u64, Bytes)>,
    sums: Option<Sums>,
    windows: Mutex<Windows>,
}

/// What was read last at each of some places, the newest at the end.
#[derive(Debug, Default)]
struct Windows(Vec<Window>);

#[derive(Debug)]
struct Window {
    begin: u64,
    octets: Bytes,
}

#[derive(Debug)]
struct Sums {
    of: Checksums,
    /// The blocks that were found to be right.
    right: Vec<AtomicBool>,
}

/// Why a file is not read.
#[derive(Debug)]
pub(crate) enum OpenError {
    /// There is nothing of that name any more, not even a link.
    Vanished,
    /// It is not the file that belongs there, or is damaged.
    Unfit(String),
}

impl VerifiedFile {
    /// Opens a file and reads its footer; its size, its tail and what the footer says of itself are
    /// compared with the manifest and the path.
    pub(crate) fn open(
        file: &ParquetFile,
        meter: &Meter,
        verification: Verification,
    ) -> Result<(Self, ParquetMetaData), OpenError> {
        let unfit = |error: &dyn std::error::Error| OpenError::Unfit(error.to_string());
        let opened = open_regular(&file.path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound if !file.path.is_symlink() => OpenError::Vanished,
            io::ErrorKind::NotFound => OpenError::Unfit("it is a link to nothing".into()),
            _ => unfit(&error),
        })?;
        let len = opened.metadata().map_err(|error| unfit(&error))?.len();
        let windows = Mutex::default();
        let mut inner =
            Inner { file: opened, len, meter: meter.clone(), tail: None, sums: None, windows };
        if let Some(claim) = &file.claim {
            inner.read_tail(claim, verification).map_err(OpenError::Unfit)?;
        }
        let mut this = Self(Arc::new(inner));
        let reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Skip);
        let metadata = decoded(|| reader.parse_and_finish(&this)).map_err(OpenError::Unfit)?;
        let metadata = metadata.map_err(|error| unfit(&error))?;
        compare_with_path(file, &metadata).map_err(OpenError::Unfit)?;
        if verification == Verification::Always {
            let sums = Checksums::read_from(metadata.file_metadata()).map_err(OpenError::Unfit)?;
            if sums.is_some() && file.claim.is_none() {
                return Err(OpenError::Unfit(UNNAMED.into()));
            }
            let inner = Arc::get_mut(&mut this.0).expect("nobody else has it yet");
            inner.sums = sums.map(|of| {
                let right = of.blocks.iter().map(|_| AtomicBool::new(false)).collect();
                Sums { of, right }
            });
        }
        Ok((this, metadata))
    }

    /// Verifies every octet.
    pub(crate) fn verify_all(&self) -> Result<(), String> {
        let Some(sums) = &self.0.sums else { return Ok(()) };
        let mut at = 0;
        while at < sums.of.octets {
            let length = (BLOCK as u64 * 64).min(sums.of.octets - at);
            let length = usize::try_from(length).map_err(|error| error.to_string())?;
            self.0.read(at, length).map_err(|error| error.to_string())?;
            at += length as u64;
        }
        Ok(())
    }
}

/// Compares what the footer says of the file with the file's place and name.
fn compare_with_path(file: &ParquetFile, metadata: &ParquetMetaData) -> Result<(), String> {
    let name = &file.name;
    let pairs = metadata.file_metadata().key_value_metadata();
    let value =
        |key: &str| pairs.into_iter().flatten().find(|pair| pair.key == key)?.value.as_deref();
    let expected = [
        ("meikyo.stream", name.stream.clone()),
        ("meikyo.first", name.first.to_string()),
        ("meikyo.last", name.last.to_string()),
    ];
    for (key, expected) in expected {
        if let Some(found) = value(key).filter(|found| *found != expected) {
            return Err(format!("it belongs elsewhere: its `{key}` is `{found}`"));
        }
    }
    let schema = table_schema_of(metadata)?;
    if schema.name != file.table {
        return Err(format!("it belongs elsewhere: its table is `{}`", schema.name));
    }
    let rows = rows_told(metadata);
    match &file.claim {
        Some(claim) if claim.rows != rows => {
            Err(format!("it has {rows} rows, and {} were written", claim.rows))
        }
        _ => Ok(()),
    }
}

/// How many rows a file's footer tells. A damaged one can tell less than nothing, which is no row and
/// no number that was written.
pub(crate) fn rows_told(metadata: &ParquetMetaData) -> u64 {
    metadata.file_metadata().num_rows().max(0).cast_unsigned()
}

/// The schema of the table that a file belongs to.
pub(crate) fn table_schema_of(metadata: &ParquetMetaData) -> Result<TableSchema, String> {
    let pairs = metadata.file_metadata().key_value_metadata();
    let schema = pairs.and_then(|pairs| pairs.iter().find(|pair| pair.key == SCHEMA_KEY));
    let json = schema.and_then(|pair| pair.value.as_deref());
    let json = json.ok_or_else(|| format!("it has no `{SCHEMA_KEY}` in its metadata"))?;
    let damaged = |error: String| format!("its `{SCHEMA_KEY}` is damaged: {error}");
    let table: TableSchema =
        serde_json::from_str(json).map_err(|error| damaged(error.to_string()))?;
    table.check_form().map_err(|error| damaged(error.to_string()))?;
    Ok(table)
}

/// The schema in the footer of a file of which nothing else is wanted.
pub(crate) fn table_schema(path: &Path) -> Result<TableSchema, String> {
    let file = open_regular(path).map_err(|error| error.to_string())?;
    let reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Skip);
    let metadata = reader.parse_and_finish(&file).map_err(|error| error.to_string())?;
    table_schema_of(&metadata)
}

impl Inner {
    /// Compares the file's size, and reads what is behind the summed blocks at once.
    fn read_tail(&mut self, claim: &Claim, verification: Verification) -> Result<(), String> {
        if self.len != claim.bytes {
            return Err(format!("it has {} octets, and {} were written", self.len, claim.bytes));
        }
        let length =
            claim.bytes.checked_sub(claim.tail).and_then(|rest| usize::try_from(rest).ok());
        let length = length.ok_or("the manifest's place of its footer is not in it")?;
        let mut octets = vec![0; length];
        self.file.read_exact_at(&mut octets, claim.tail).map_err(|error| error.to_string())?;
        self.meter.add(length);
        if verification == Verification::Always && crc32fast::hash(&octets) != claim.tail_crc {
            return Err("its footer is damaged: it does not have its checksum".into());
        }
        self.tail = Some((claim.tail, octets.into()));
        Ok(())
    }

    fn read(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let end = start.saturating_add(length as u64);
        if end > self.len {
            return Err(ParquetError::EOF(format!("{length} octets at {start} of {}", self.len)));
        }
        if let Some((begin, tail)) = &self.tail
            && let Some(from) = start.checked_sub(*begin)
        {
            let from = usize::try_from(from)?;
            return Ok(tail.slice(from..from + length));
        }
        if length == 0 {
            return Ok(Bytes::new());
        }
        let limit = match (&self.sums, &self.tail) {
            (Some(sums), _) => sums.of.octets,
            (None, Some((begin, _))) => *begin,
            (None, None) => self.len,
        };
        if end > limit {
            return Err(ParquetError::General(format!("octet {end} has no checksum")));
        }
        let window = match self.windows().take_at(start) {
            Some(window) if end <= window.end() => window,
            Some(window) => {
                let kept = window.octets.slice(usize::try_from(start - window.begin)?..);
                self.read_on(start, &kept, end, limit)?
            }
            None => self.read_on(start, &Bytes::new(), end, end)?,
        };
        let from = usize::try_from(start - window.begin)?;
        let octets = window.octets.slice(from..from + length);
        self.windows().keep(window);
        Ok(octets)
    }

    fn windows(&self) -> MutexGuard<'_, Windows> {
        self.windows.lock().expect("nothing that holds the windows can panic")
    }

    /// Reads to `end` at least, and some more up to `limit`, where `kept` are octets from `start` that
    /// were read before. Of files with checksums, whole blocks that were not verified yet.
    fn read_on(&self, start: u64, kept: &Bytes, end: u64, limit: u64) -> ParquetResult<Window> {
        let from = start + kept.len() as u64;
        let until = end.max(limit.min(from + AHEAD));
        let Some(sums) = &self.sums else {
            let octets = self.read_behind(kept, from, until)?;
            return Ok(Window { begin: start, octets: octets.into() });
        };
        let block_octets = BLOCK as u64;
        let first = usize::try_from(from / block_octets)?;
        let last = usize::try_from((until - 1) / block_octets)?;
        let is_right = |block: usize| sums.right[block].load(Ordering::Relaxed);
        // What is kept ends with a block, or with the octets that have a checksum.
        let begin = if is_right(first) { from } else { first as u64 * block_octets };
        let stop = ((last as u64 + 1) * block_octets).min(sums.of.octets);
        let mut octets = self.read_behind(kept, begin, stop)?;
        let shift = kept.len();
        for block in (first..=last).filter(|&block| !is_right(block)) {
            let of_block = block as u64 * block_octets;
            let to = (of_block + block_octets).min(stop);
            let range =
                shift + usize::try_from(of_block - begin)?..shift + usize::try_from(to - begin)?;
            if crc32fast::hash(&octets[range.clone()]) != sums.of.blocks[block] {
                if of_block >= end {
                    // Nobody has asked for it yet.
                    octets.truncate(range.start);
                    break;
                }
                let what = format!(
                    "octets {of_block} to {to} are damaged: they do not match their checksum"
                );
                return Err(ParquetError::General(what));
            }
            sums.right[block].store(true, Ordering::Relaxed);
        }
        Ok(Window { begin: start.min(begin), octets: octets.into() })
    }

    /// What is kept, and behind it what the file has from `from` to `until`.
    fn read_behind(&self, kept: &Bytes, from: u64, until: u64) -> ParquetResult<Vec<u8>> {
        let length = usize::try_from(until - from)?;
        let mut octets = Vec::with_capacity(kept.len() + length);
        octets.extend_from_slice(kept);
        octets.resize(kept.len() + length, 0);
        self.file.read_exact_at(&mut octets[kept.len()..], from)?;
        self.meter.add(length);
        Ok(octets)
    }
}

impl Window {
    fn end(&self) -> u64 {
        self.begin + self.octets.len() as u64
    }
}

impl Windows {
    /// The window that a place lies in, or right behind.
    fn take_at(&mut self, place: u64) -> Option<Window> {
        let at =
            self.0.iter().rposition(|window| (window.begin..=window.end()).contains(&place))?;
        Some(self.0.remove(at))
    }

    fn keep(&mut self, window: Window) {
        if self.0.len() == WINDOWS_MAX {
            self.0.remove(0);
        }
        self.0.push(window);
    }
}

impl Length for VerifiedFile {
    fn len(&self) -> u64 {
        self.0.len
    }
}

impl ChunkReader for VerifiedFile {
    type T = VerifiedRead;

    fn get_read(&self, start: u64) -> ParquetResult<VerifiedRead> {
        Ok(VerifiedRead { file: self.clone(), at: start, octets: Bytes::new() })
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        self.0.read(start, length)
    }
}

/// Reads on from one place of a file.
#[derive(Debug)]
pub(crate) struct VerifiedRead {
    file: VerifiedFile,
    at: u64,
    octets: Bytes,
}

/// Octets that are read ahead: a page's header is some tens.
const READ_AHEAD: u64 = 1 << 10;

impl Read for VerifiedRead {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.octets.is_empty() {
            let inner = &self.file.0;
            let end = match (&inner.tail, &inner.sums) {
                (Some((begin, _)), _) if self.at < *begin => *begin,
                (None, Some(sums)) if self.at < sums.of.octets => sums.of.octets,
                _ => inner.len,
            };
            let wanted = (into.len() as u64).max(READ_AHEAD).min(end.saturating_sub(self.at));
            let wanted = usize::try_from(wanted).map_err(io::Error::other)?;
            self.octets = inner.read(self.at, wanted).map_err(io::Error::other)?;
            self.at += wanted as u64;
        }
        let count = into.len().min(self.octets.len());
        into[..count].copy_from_slice(&self.octets.split_to(count));
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    const OCTETS: usize = 20 * BLOCK + 77;

    fn content() -> Vec<u8> {
        (0..OCTETS).map(|at| (at * 31 % 251).to_le_bytes()[0]).collect()
    }

    /// A file that holds `octets`, whose checksums are those of [`content`].
    fn file_of(octets: &[u8]) -> VerifiedFile {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(octets).unwrap();
        let blocks: Vec<_> = content().chunks(BLOCK).map(crc32fast::hash).collect();
        let right = blocks.iter().map(|_| AtomicBool::new(false)).collect();
        let sums = Some(Sums { of: Checksums { octets: OCTETS as u64, blocks }, right });
        let (meter, windows) = (Meter::default(), Mutex::default());
        let len = octets.len() as u64;
        VerifiedFile(Arc::new(Inner { file, len, meter, tail: None, sums, windows }))
    }

    #[test]
    fn what_is_read_in_any_order_is_what_the_file_has() {
        let (content, file) = (content(), file_of(&content()));
        let mut state = 7_u64;
        let mut draw = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(state >> 33).unwrap() % below
        };
        // More places than there are windows, each of them read on at, now and then somewhere else.
        let mut places = [0; WINDOWS_MAX + 3];
        for round in 0..4_000 {
            let place = &mut places[draw(WINDOWS_MAX + 3)];
            if round % 9 == 0 || *place == OCTETS {
                *place = draw(OCTETS);
            }
            let length = (1 + draw(3 * BLOCK)).min(OCTETS - *place);
            let read = file.0.read(*place as u64, length).unwrap();
            assert_eq!(read, content[*place..*place + length], "{length} octets at {place}");
            *place += length;
        }
    }

    #[test]
    fn who_reads_columns_page_by_page_in_turn_reads_each_octet_once() {
        let file = file_of(&content());
        let (pages, page) = (7, BLOCK * 2 / 3);
        for at in 0..pages {
            for column in [0, 7 * BLOCK, 14 * BLOCK] {
                file.0.read((column + at * page) as u64, page).unwrap();
            }
        }
        // Beyond the last page of each is what was read ahead.
        let ahead = u64::try_from(3 * (pages * page + BLOCK)).unwrap() + 3 * AHEAD;
        let read = file.0.meter.bytes();
        assert!(read <= ahead.min(OCTETS as u64 + 3 * BLOCK as u64), "{read} octets");
    }

    #[test]
    fn damage_ahead_is_told_when_it_is_asked_for_and_not_before() {
        let mut damaged = content();
        damaged[3 * BLOCK + 5] ^= 1;
        let file = file_of(&damaged);
        let (page, mut at) = (BLOCK / 2, 0);
        while at < 3 * BLOCK {
            assert_eq!(file.0.read(at as u64, page).unwrap(), content()[at..at + page]);
            at += page;
        }
        let error = file.0.read(at as u64, page).unwrap_err().to_string();
        assert!(error.contains("octets 49152 to 65536 are damaged"), "{error}");
        assert!(file.0.read((4 * BLOCK) as u64, page).is_ok(), "what is behind is whole");
    }
}
