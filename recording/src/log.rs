//! The append log: frames, and how a batch of rows becomes one.
//!
//! A segment file is a row of frames and nothing else. A frame is a header of 56 octets and a
//! payload; both carry a checksum, so that a reader can skip a payload it does not want without
//! reading it, and still knows that the header is whole. All numbers are little endian.
//! `docs/recording-format.md` describes every octet.
//!
//! The codec of rows is chosen for the collector's thread budget, not for size: a column is reduced
//! to 0, 1, 2, 4 or 8 octets a value above its least value (frame of reference), in two passes over
//! memory that is in the cache. Bit packing or deltas would save a third of the log, which lives
//! for minutes, and cost more than the write itself. The log is not compressed and not sorted;
//! compaction does both.

mod decode;
mod encode;
pub(crate) mod packed;

pub(crate) use decode::{ColumnView, columns_of, decode_rows, head_of, symbols_of};
pub(crate) use encode::{Ordinal, encode_head, encode_rows, encode_symbols};

use serde::{Deserialize, Serialize};

use crate::batch::Batch;
use crate::format::Kind;
use crate::schema::TableSchema;

/// The first four octets of every frame.
pub(crate) const MAGIC: [u8; 4] = *b"MKYF";

/// Octets of a frame's header.
pub(crate) const HEADER_LEN: usize = 56;

/// The longest payload that is written or accepted.
///
/// A batch of 241 devices is some kilobytes; the limit keeps a damaged length from being believed.
pub(crate) const PAYLOAD_MAX: usize = 1 << 28;

/// The most rows that a frame has: columns of one value take no room in a payload, and a number of
/// rows that nobody wrote must not be believed either.
pub(crate) const ROWS_MAX: usize = 1 << 24;

/// What a frame's payload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// The segment's [`Head`] as JSON; the first frame of every segment.
    Head,
    /// Texts of symbols, numbered on from the frame's `rows` field of all such frames before.
    Symbols,
    /// Rows of one table, column by column.
    Rows,
    /// Rows of one table, compressed and with texts of their own, see [`crate::PackedRows`].
    Packed,
    /// A codec that this version does not know. Such frames are counted, told and never deleted.
    Unknown(u16),
}

impl Codec {
    /// Whether the payload is rows of a table.
    pub(crate) fn has_rows(self) -> bool {
        matches!(self, Self::Rows | Self::Packed)
    }

    fn number(self) -> u16 {
        match self {
            Self::Head => 0,
            Self::Symbols => 1,
            Self::Rows => 2,
            Self::Packed => 3,
            Self::Unknown(number) => number,
        }
    }

    fn from_number(number: u16) -> Self {
        match number {
            0 => Self::Head,
            1 => Self::Symbols,
            2 => Self::Rows,
            3 => Self::Packed,
            other => Self::Unknown(other),
        }
    }
}

/// What a segment says about itself in its first frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The format version, see [`crate::format::FORMAT_VERSION`].
    pub format: u32,
    /// Measured or simulated.
    pub kind: Kind,
    /// The stream's name.
    pub stream: String,
    /// The stream's tables in the order in which frames number them.
    pub tables: Vec<TableSchema>,
}

/// The header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// What the payload is.
    pub codec: Codec,
    /// The position of the table among the stream's tables; 0 where the codec has none.
    pub table: usize,
    /// Rows in the payload, or symbols.
    pub rows: usize,
    /// Ordinal of the frame in its stream, from 1; the order of everything in the stream.
    pub sequence: u64,
    /// Sequence number of the frame that was written to the stream before this one, 0 before the
    /// first; `None` in frames of an earlier version, which did not note it.
    pub before: Option<u64>,
    /// The least `time` among the rows, in ns since the epoch; 0 where there are none.
    pub least_time: i64,
    /// The greatest `time` among the rows, in ns since the epoch; 0 where there are none.
    pub greatest_time: i64,
    /// Octets of the payload.
    pub payload_len: usize,
    /// CRC-32 (IEEE 802.3) of the payload.
    pub payload_crc: u32,
}

impl FrameHeader {
    /// Whether the times of the frame's rows are those that the header tells: readers choose frames
    /// by it, and files are made for the hours in it.
    pub(crate) fn has_times(&self, rows: &Batch) -> bool {
        let told = self.least_time..=self.greatest_time;
        let times = &rows.columns[0].bits;
        times.len() == self.rows && times.iter().all(|time| told.contains(&time.cast_signed()))
    }

    /// The header's octets.
    pub(crate) fn encoded(&self) -> [u8; HEADER_LEN] {
        let mut octets = [0; HEADER_LEN];
        octets[0..4].copy_from_slice(&MAGIC);
        octets[4..8].copy_from_slice(&narrow_u32(self.payload_len).to_le_bytes());
        octets[8..10].copy_from_slice(&self.codec.number().to_le_bytes());
        let table = u16::try_from(self.table).expect("a stream has fewer than 65,536 tables");
        octets[10..12].copy_from_slice(&table.to_le_bytes());
        octets[12..16].copy_from_slice(&narrow_u32(self.rows).to_le_bytes());
        octets[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        octets[24..32].copy_from_slice(&self.least_time.to_le_bytes());
        octets[32..40].copy_from_slice(&self.greatest_time.to_le_bytes());
        octets[40..44].copy_from_slice(&self.payload_crc.to_le_bytes());
        let before = self.before.map_or(0, |before| before.saturating_add(1));
        octets[44..52].copy_from_slice(&before.to_le_bytes());
        let crc = crc32fast::hash(&octets[..HEADER_LEN - 4]);
        octets[HEADER_LEN - 4..].copy_from_slice(&crc.to_le_bytes());
        octets
    }

    /// Reads a header; `None` when the octets are not a whole and undamaged one.
    pub(crate) fn decode(octets: &[u8]) -> Option<Self> {
        let octets: &[u8; HEADER_LEN] = octets.get(..HEADER_LEN)?.try_into().ok()?;
        if octets[..4] != MAGIC {
            return None;
        }
        if crc32fast::hash(&octets[..HEADER_LEN - 4]) != le_u32(octets, HEADER_LEN - 4) {
            return None;
        }
        let payload_len = usize::try_from(le_u32(octets, 4)).ok()?;
        (payload_len <= PAYLOAD_MAX).then_some(Self {
            codec: Codec::from_number(u16::from_le_bytes([octets[8], octets[9]])),
            table: usize::from(u16::from_le_bytes([octets[10], octets[11]])),
            rows: usize::try_from(le_u32(octets, 12)).ok()?,
            sequence: le_u64(octets, 16),
            before: le_u64(octets, 44).checked_sub(1),
            least_time: le_u64(octets, 24).cast_signed(),
            greatest_time: le_u64(octets, 32).cast_signed(),
            payload_len,
            payload_crc: le_u32(octets, 40),
        })
    }
}

pub(crate) fn narrow_u32(value: usize) -> u32 {
    u32::try_from(value).expect("frames are bounded by PAYLOAD_MAX")
}

fn le_u32(octets: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]])
}

fn le_u64(octets: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&octets[at..at + 8]);
    u64::from_le_bytes(eight)
}

#[cfg(test)]
mod tests;
