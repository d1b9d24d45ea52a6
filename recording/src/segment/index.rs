//! What a segment holds, in a small file beside it: `FIRST.index`.
//!
//! Who wants rows of one table need not walk over the frames of others, of which there may be
//! gigabytes. The writer replaces the file while the segment grows, once in [`EVERY`] octets, and when it
//! ends; recovery makes it anew. Nothing depends on it: without one that fits, readers walk over
//! the headers of all frames. It can describe the begin of a segment only, and readers walk on
//! behind that.
//!
//! It is no proof that the frames are whole. Whoever reads rows compares checksums as ever, and
//! `check` never looks at it.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use meikyo_units::Nanos;
use serde::{Deserialize, Serialize};

use super::{Ending, frame_len};
use crate::layout::SegmentFile;
use crate::log::{Codec, FrameHeader, HEADER_LEN, Head};
use crate::problem::open_regular;
use crate::unfinished::{Durability, replace_file};

/// The least span without a row of a stream that is called a gap. Within a segment the collector
/// records its own stalls; a gap is what a collector that did not run left.
pub const GAP_LEAST: Nanos = Nanos::from_secs(10);

/// Octets that a segment grows by before its index is written again.
pub(crate) const EVERY: u64 = 16 << 20;

/// Spans and places that an index holds at most; a segment that needs more has none.
const ENTRIES_MAX: usize = 1 << 14;

/// Octets of an index that is read: more than [`ENTRIES_MAX`] entries take.
const OCTETS_MAX: u64 = 4 << 20;

/// What the begin of a segment holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SegmentIndex {
    stream: String,
    /// Sequence number of the head.
    first: u64,
    /// CRC-32 of the head's payload.
    head_crc: u32,
    /// Octets from the begin that are described: whole frames.
    pub(crate) bytes: u64,
    /// Where the last of these frames begins.
    last_at: u64,
    /// Its sequence number.
    last: u64,
    /// Frames of a kind that the writer did not know.
    unknown: u64,
    /// Where frames of symbols begin.
    pub(super) symbols: Vec<u64>,
    /// What there is of each table, in the order of the head.
    pub(crate) tables: Vec<TableIndex>,
}

/// What the begin of a segment holds of one table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TableIndex {
    pub(crate) name: String,
    pub(crate) frames: u64,
    pub(crate) rows: u64,
    /// The spans of time of its frames, `(least, greatest)` in order; those nearer to each other than
    /// [`GAP_LEAST`] are one.
    pub(crate) spans: Vec<(i64, i64)>,
}

impl SegmentIndex {
    /// The spans of time of a table's frames.
    pub(crate) fn spans_of(&self, table: &str) -> &[(i64, i64)] {
        let found = self.tables.iter().find(|of_log| of_log.name == table);
        found.map_or(&[], |of_log| &of_log.spans)
    }

    /// The stream that the segment belongs to.
    pub(super) fn stream(&self) -> &str {
        &self.stream
    }

    /// What the segment is known by: sequence number of its head, and CRC-32 of the head's payload.
    pub(super) fn identity(&self) -> (u64, u32) {
        (self.first, self.head_crc)
    }

    /// What a reader finds that walks over these frames.
    pub(crate) fn ending(&self) -> Ending {
        Ending {
            whole_bytes: self.bytes,
            unknown_frames: self.unknown,
            last_sequence: self.last,
            ..Ending::default()
        }
    }

    /// Reads the index of a segment; `None` when there is none that fits the segment.
    pub(crate) fn read_beside(segment: &SegmentFile) -> Option<Self> {
        let mut text = String::new();
        let file = open_regular(&path_of(&segment.path)).ok()?;
        file.take(OCTETS_MAX).read_to_string(&mut text).ok()?;
        let index: Self = unsealed(&text)?;
        index.fits(segment)?.then_some(index)
    }

    /// Whether the segment begins with the frames that are described, by its first and last of them.
    fn fits(&self, segment: &SegmentFile) -> Option<bool> {
        let length = segment.file.metadata().ok()?.len();
        let header = |at| {
            let mut octets = [0; HEADER_LEN];
            segment.file.read_exact_at(&mut octets, at).ok()?;
            FrameHeader::decode(&octets)
        };
        let (head, last) = (header(0)?, header(self.last_at)?);
        Some(
            self.stream == segment.stream
                && self.first == segment.first
                && self.bytes <= length
                && head.codec == Codec::Head
                && (head.sequence, head.payload_crc) == (self.first, self.head_crc)
                && last.sequence == self.last
                && self.last_at.checked_add(frame_len(&last)) == Some(self.bytes),
        )
    }

    /// Writes the index beside its segment, by rename: it is never seen half.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn write(&self, segment: &Path) -> io::Result<()> {
        replace_file(&path_of(segment), sealed(self)?.as_bytes(), Durability::Kernel)
    }
}

/// A line of JSON behind its checksum.
///
/// # Errors
/// When the value cannot be written as JSON.
pub(super) fn sealed(value: &impl Serialize) -> io::Result<String> {
    let json = serde_json::to_string(value).map_err(io::Error::from)?;
    Ok(format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes())))
}

/// What [`sealed`] wrote; `None` when it is not whole.
pub(super) fn unsealed<T: for<'a> Deserialize<'a>>(text: &str) -> Option<T> {
    let (crc, json) = text.strip_suffix('\n')?.split_once(' ')?;
    let is_whole = crc == format!("{:08x}", crc32fast::hash(json.as_bytes()));
    if is_whole { serde_json::from_str(json).ok() } else { None }
}

fn path_of(segment: &Path) -> PathBuf {
    segment.with_extension("index")
}

/// Removes the index of a segment that is not there any more; one that stays is passed over.
pub(crate) fn remove_of(segment: &Path) {
    drop(fs::remove_file(path_of(segment)));
}

/// Gathers the index of a segment frame by frame.
#[derive(Debug)]
pub(crate) struct IndexBuilder {
    index: SegmentIndex,
    entries: usize,
}

impl IndexBuilder {
    /// The index of a segment without frames.
    pub(crate) fn new(head: &Head) -> Self {
        let table = |name: &str| TableIndex {
            name: name.to_owned(),
            frames: 0,
            rows: 0,
            spans: Vec::new(),
        };
        let index = SegmentIndex {
            stream: head.stream.clone(),
            first: 0,
            head_crc: 0,
            bytes: 0,
            last_at: 0,
            last: 0,
            unknown: 0,
            symbols: Vec::new(),
            tables: head.tables.iter().map(|schema| table(&schema.name)).collect(),
        };
        Self { index, entries: 0 }
    }

    /// Takes the next frames, one behind the other.
    pub(crate) fn add_all(&mut self, frames: &[u8]) {
        let mut rest = frames;
        while let Some(header) = FrameHeader::decode(rest) {
            self.add(&header);
            rest = rest.get(HEADER_LEN + header.payload_len..).unwrap_or_default();
        }
    }

    /// Takes the next frame.
    pub(crate) fn add(&mut self, header: &FrameHeader) {
        let index = &mut self.index;
        match header.codec {
            Codec::Head if index.bytes == 0 => {
                (index.first, index.head_crc) = (header.sequence, header.payload_crc);
            }
            Codec::Head => {}
            Codec::Symbols => {
                index.symbols.push(index.bytes);
                self.entries += 1;
            }
            Codec::Rows | Codec::Packed => {
                if let Some(table) = index.tables.get_mut(header.table) {
                    table.frames += 1;
                    table.rows += header.rows as u64;
                    let before = table.spans.len();
                    widen(&mut table.spans, (header.least_time, header.greatest_time));
                    self.entries = (self.entries + table.spans.len()).saturating_sub(before);
                }
            }
            Codec::Unknown(_) => index.unknown += 1,
        }
        index.last_at = index.bytes;
        index.last = header.sequence;
        index.bytes += frame_len(header);
    }

    /// The index of the frames so far; `None` where it has become too long.
    pub(crate) fn index(&self) -> Option<&SegmentIndex> {
        (self.entries <= ENTRIES_MAX && self.index.bytes > 0).then_some(&self.index)
    }
}

/// Adds a span to others that are in order and at least [`GAP_LEAST`] apart.
fn widen(spans: &mut Vec<(i64, i64)>, (least, greatest): (i64, i64)) {
    let gap = i64::try_from(GAP_LEAST.get()).expect("10 s are few ns");
    let begin = spans.partition_point(|span| span.1.saturating_add(gap) <= least);
    let end = spans.partition_point(|span| span.0 < greatest.saturating_add(gap));
    let end = end.max(begin);
    let met = &spans[begin..end];
    let least = met.first().map_or(least, |span| span.0.min(least));
    let greatest = met.last().map_or(greatest, |span| span.1.max(greatest));
    spans.splice(begin..end, [(least, greatest)]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: i64 = 1_000_000_000;

    proptest! {
        #[test]
        fn spans_are_those_that_nearness_joins(
            spans in proptest::collection::vec((0_i64..300, 0_i64..30), 1..40),
        ) {
            let spans = spans.into_iter().map(|(least, length)| (least, least + length));
            let spans: Vec<_> = spans.collect();
            let mut found = Vec::new();
            for (least, greatest) in &spans {
                widen(&mut found, (least * SECOND, greatest * SECOND));
            }
            // A second belongs to a span if it lies in one of the spans, or in a hole below 10 s.
            let covered: Vec<bool> = (0..=330)
                .map(|second| spans.iter().any(|(a, b)| (*a..=*b).contains(&second)))
                .collect();
            let mut expected: Vec<(i64, i64)> = Vec::new();
            for second in (0..=330_i64).filter(|second| covered[usize::try_from(*second).unwrap()]) {
                match expected.last_mut() {
                    Some(last) if second - last.1 < 10 => last.1 = second,
                    _ => expected.push((second, second)),
                }
            }
            let expected: Vec<_> =
                expected.into_iter().map(|(a, b)| (a * SECOND, b * SECOND)).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
