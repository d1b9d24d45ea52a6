//! Sections: octets of one kind that are compressed by themselves.
//!
//! Values of different columns have little in common, and one table of codes for all of them costs
//! each of them some of its bits. A section of a few hundred octets is worth compressing alone when
//! its frame costs little, so the magic number that every frame of zstd begins with is left out.

use std::borrow::Cow;
use std::fmt;

use zstd::bulk::{Compressor, Decompressor};

use super::Octets;

/// The level of zstd: blocks are made beside the work that is measured.
const LEVEL: i32 = 1;

/// What every frame of zstd begins with (RFC 8878, section 3.1.1).
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Sections shorter than this are stored: the header of a frame would eat what compression saves.
const COMPRESSED_LEN_MIN: usize = 16;

/// The same where octets are worth less than time: to compress a section takes as long as packing a hundred rows.
const COMPRESSED_LEN_MIN_IN_HASTE: usize = 128;

/// Octets of a varint at most.
const VARINT_LEN_MAX: u32 = 10;

/// Writes sections with one context of zstd.
#[derive(Default)]
pub(crate) struct SectionWriter {
    zstd: Option<Compressor<'static>>,
    frame: Vec<u8>,
    /// What sections are made in, kept from block to block.
    pub(super) octets: Vec<u8>,
    pub(super) bits: Vec<u8>,
    /// Octets of all sections since the last [`SectionWriter::begin`], before they were compressed.
    pub(super) plain_len: usize,
    /// Whether octets are worth less than time.
    pub(crate) is_in_haste: bool,
    /// Leaves every section as it is, so that a test reaches what is in it.
    #[cfg(test)]
    is_storing: bool,
}

impl fmt::Debug for SectionWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SectionWriter").field("plain_len", &self.plain_len).finish_non_exhaustive()
    }
}

impl SectionWriter {
    /// A writer that compresses nothing.
    #[cfg(test)]
    pub(super) fn storing() -> Self {
        Self { is_storing: true, ..Self::default() }
    }

    /// Begins the sections of another block.
    pub(super) fn begin(&mut self) {
        self.plain_len = 0;
    }

    /// Appends a section, compressed where that makes it shorter.
    pub(super) fn put(&mut self, octets: &[u8], out: &mut Vec<u8>) {
        self.plain_len = self.plain_len.saturating_add(octets.len());
        let least = if self.is_in_haste { COMPRESSED_LEN_MIN_IN_HASTE } else { COMPRESSED_LEN_MIN };
        let compressed = octets.len() >= least && self.compress(octets).is_some();
        #[cfg(test)]
        let compressed = compressed && !self.is_storing;
        let frame = self.frame.get(MAGIC.len()..).unwrap_or_default();
        if compressed && frame.len() + 2 < octets.len() {
            put_varint((octets.len() as u64) << 1 | 1, out);
            put_varint(frame.len() as u64, out);
            out.extend_from_slice(frame);
        } else {
            put_as_is(octets, out);
        }
    }

    /// Appends a section that is known not to become shorter.
    pub(super) fn put_stored(&mut self, octets: &[u8], out: &mut Vec<u8>) {
        self.plain_len = self.plain_len.saturating_add(octets.len());
        put_as_is(octets, out);
    }

    /// Compresses into `frame`; `None` when zstd refuses, which is no reason to lose a block.
    fn compress(&mut self, octets: &[u8]) -> Option<()> {
        if self.zstd.is_none() {
            let mut zstd = Compressor::new(LEVEL).ok()?;
            zstd.include_checksum(false).ok()?;
            zstd.include_contentsize(false).ok()?;
            self.zstd = Some(zstd);
        }
        self.frame.clear();
        self.frame.reserve(zstd::zstd_safe::compress_bound(octets.len()));
        self.zstd.as_mut()?.compress_to_buffer(octets, &mut self.frame).ok()?;
        self.frame.starts_with(&MAGIC).then_some(())
    }
}

fn put_as_is(octets: &[u8], out: &mut Vec<u8>) {
    put_varint((octets.len() as u64) << 1, out);
    out.extend_from_slice(octets);
}

/// A section as it lies in a body.
#[derive(Debug, Clone, Copy)]
pub(super) struct Section<'a> {
    pub(super) len: usize,
    is_compressed: bool,
    stored: &'a [u8],
}

impl<'a> Section<'a> {
    /// Takes the next section of a body; `room` is how many octets further sections may have.
    pub(super) fn decode(octets: &mut Octets<'a>, room: &mut usize) -> Option<Self> {
        let head = take_varint(octets)?;
        let len = usize::try_from(head >> 1).ok()?;
        *room = room.checked_sub(len)?;
        let is_compressed = head & 1 == 1;
        let stored = if is_compressed { usize::try_from(take_varint(octets)?).ok()? } else { len };
        Some(Self { len, is_compressed, stored: octets.take(stored)? })
    }

    /// The octets as they were before they were compressed.
    pub(super) fn octets(&self, reader: &mut SectionReader) -> Option<Cow<'a, [u8]>> {
        if !self.is_compressed {
            return Some(Cow::Borrowed(self.stored));
        }
        reader.decompress(self.stored, self.len).map(Cow::Owned)
    }
}

/// Reads sections with one context of zstd.
#[derive(Default)]
pub(crate) struct SectionReader {
    zstd: Option<Decompressor<'static>>,
    frame: Vec<u8>,
}

impl fmt::Debug for SectionReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SectionReader").finish_non_exhaustive()
    }
}

impl SectionReader {
    fn decompress(&mut self, stored: &[u8], len: usize) -> Option<Vec<u8>> {
        if self.zstd.is_none() {
            self.zstd = Some(Decompressor::new().ok()?);
        }
        self.frame.clear();
        self.frame.extend_from_slice(&MAGIC);
        self.frame.extend_from_slice(stored);
        let octets = self.zstd.as_mut()?.decompress(&self.frame, len).ok()?;
        (octets.len() == len).then_some(octets)
    }
}

/// Appends a number as unsigned LEB128.
pub(super) fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// Takes a number of at most 64 bits.
pub(super) fn take_varint(octets: &mut Octets<'_>) -> Option<u64> {
    let mut value = 0_u64;
    for at in 0..VARINT_LEN_MAX {
        let octet = octets.take(1)?[0];
        let bits = u64::from(octet & 0x7f);
        if bits.checked_shl(at * 7)? >> (at * 7) != bits {
            return None;
        }
        value |= bits << (at * 7);
        if octet & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// A difference as an unsigned number, small where it is near zero.
pub(super) fn zigzag(difference: u64) -> u64 {
    let signed = difference.cast_signed();
    ((signed << 1) ^ (signed >> 63)).cast_unsigned()
}

/// The difference that [`zigzag`] made a number of.
pub(super) fn unzigzag(number: u64) -> u64 {
    (number >> 1) ^ (number & 1).wrapping_neg()
}
