//! A Parquet file whose octets are verified as they are read.
//!
//! Whole blocks are read where a checksum is of one, at most [`BLOCK`] octets more at both ends of
//! what is wanted, and each is summed once while the file is open.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::{ChunkReader, Length};

use crate::layout::{Claim, ParquetFile};
use crate::parquet_file::{BLOCK, Checksums, SCHEMA_KEY};
use crate::problem::{decoded, open_regular};
use crate::schema::TableSchema;

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
        let mut inner = Inner { file: opened, len, meter: meter.clone(), tail: None, sums: None };
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
                let what = "no manifest names it, and it was written with one";
                return Err(OpenError::Unfit(what.into()));
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
        match &self.sums {
            Some(sums) if length > 0 && end <= sums.of.octets => {
                self.read_verified(sums, start, length)
            }
            Some(_) if length > 0 => {
                Err(ParquetError::General(format!("octet {end} has no checksum")))
            }
            _ => self.read_plain(start, length),
        }
    }

    fn read_plain(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let mut octets = vec![0; length];
        self.file.read_exact_at(&mut octets, start)?;
        self.meter.add(length);
        Ok(octets.into())
    }

    /// Reads the blocks that hold some octets, as far as they were not found right before.
    fn read_verified(&self, sums: &Sums, start: u64, length: usize) -> ParquetResult<Bytes> {
        let block = BLOCK as u64;
        let end = start + length as u64;
        let (first, last) = (usize::try_from(start / block)?, usize::try_from((end - 1) / block)?);
        let is_right = |at: usize| sums.right[at].load(Ordering::Relaxed);
        let begin = if is_right(first) { start } else { first as u64 * block };
        let stop =
            if is_right(last) { end } else { ((last as u64 + 1) * block).min(sums.of.octets) };
        let octets = self.read_plain(begin, usize::try_from(stop - begin)?)?;
        for at in (first..=last).filter(|&at| !is_right(at)) {
            let from = (at as u64 * block).max(begin);
            let to = ((at as u64 + 1) * block).min(stop);
            let range = usize::try_from(from - begin)?..usize::try_from(to - begin)?;
            if crc32fast::hash(&octets[range]) != sums.of.blocks[at] {
                let what =
                    format!("octets {from} to {to} are damaged: they do not have their checksum");
                return Err(ParquetError::General(what));
            }
            sums.right[at].store(true, Ordering::Relaxed);
        }
        let skipped = usize::try_from(start - begin)?;
        Ok(octets.slice(skipped..skipped + length))
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
