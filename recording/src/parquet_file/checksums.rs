//! Checksums of every octet of a Parquet file, made while it is written.
//!
//! The octets before page indexes and footer are summed in blocks of [`BLOCK`]; the sums stand in
//! the footer's metadata under [`CHECKSUMS_KEY`]. Indexes and footer, the file's tail, are summed
//! together, and the sum stands in the stream's manifest. A reader can so verify what it reads, and
//! nothing else; `examples/verification.rs` measures what that adds to a scan.

use std::fmt::Write as _;
use std::io::{self, Write};

use crc32fast::Hasher;
use parquet::file::metadata::FileMetaData;

/// Octets that are summed together. A reader of one page reads that much more at most at both ends;
/// a sum of 8 digits in the footer is 0.05 % of a block.
pub(crate) const BLOCK: usize = 1 << 14;

/// The key of the sums: octets that they are of, and 8 hexadecimal digits a block.
pub(crate) const CHECKSUMS_KEY: &str = "meikyo.crc32_16k";

/// The sums of the octets before a file's tail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Checksums {
    /// Octets that are summed; the last block may be shorter than others.
    pub(crate) octets: u64,
    pub(crate) blocks: Vec<u32>,
}

impl Checksums {
    fn text(&self) -> String {
        let mut text = format!("{} ", self.octets);
        for sum in &self.blocks {
            write!(text, "{sum:08x}").expect("writing to a string cannot fail");
        }
        text
    }

    fn parse(text: &str) -> Option<Self> {
        let (octets, digits) = text.split_once(' ')?;
        let octets: u64 = octets.parse().ok()?;
        let (digits, rest) = digits.as_bytes().as_chunks::<8>();
        let sum =
            |digits: &[u8; 8]| u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
        let blocks = digits.iter().map(sum).collect::<Option<Vec<_>>>()?;
        let whole = rest.is_empty() && blocks.len() as u64 == octets.div_ceil(BLOCK as u64);
        whole.then_some(Self { octets, blocks })
    }

    /// The sums that a footer names; `None` when it has none, as those of earlier versions.
    ///
    /// # Errors
    /// When it has some that cannot be understood.
    pub(crate) fn read_from(metadata: &FileMetaData) -> Result<Option<Self>, String> {
        let mut pairs = metadata.key_value_metadata().into_iter().flatten();
        let Some(pair) = pairs.find(|pair| pair.key == CHECKSUMS_KEY) else { return Ok(None) };
        let sums = pair.value.as_deref().and_then(Self::parse);
        sums.map(Some).ok_or_else(|| format!("its `{CHECKSUMS_KEY}` is damaged"))
    }
}

/// What a file became.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tail {
    /// Where it begins.
    pub(crate) begin: u64,
    pub(crate) crc: u32,
}

/// Hands octets on and sums them.
#[derive(Debug)]
pub(super) struct Summed<W> {
    inner: W,
    sums: Checksums,
    hasher: Hasher,
    in_block: usize,
    is_tail: bool,
}

impl<W: Write> Summed<W> {
    pub(super) fn new(inner: W) -> Self {
        Self {
            inner,
            sums: Checksums { octets: 0, blocks: Vec::new() },
            hasher: Hasher::new(),
            in_block: 0,
            is_tail: false,
        }
    }

    /// Begins the tail; the key and the value of the sums of what is before it.
    pub(super) fn begin_tail(&mut self) -> (String, String) {
        if self.in_block > 0 {
            self.end_block();
        }
        self.is_tail = true;
        (CHECKSUMS_KEY.to_owned(), self.sums.text())
    }

    /// The writer, and the sum of the tail.
    pub(super) fn finish(self) -> (W, Tail) {
        (self.inner, Tail { begin: self.sums.octets, crc: self.hasher.finalize() })
    }

    fn end_block(&mut self) {
        self.sums.blocks.push(std::mem::take(&mut self.hasher).finalize());
        self.in_block = 0;
    }

    fn sum(&mut self, mut octets: &[u8]) {
        if self.is_tail {
            self.hasher.update(octets);
            return;
        }
        self.sums.octets += octets.len() as u64;
        while !octets.is_empty() {
            let (now, rest) = octets.split_at(octets.len().min(BLOCK - self.in_block));
            self.hasher.update(now);
            self.in_block += now.len();
            if self.in_block == BLOCK {
                self.end_block();
            }
            octets = rest;
        }
    }
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(octets)?;
        self.sum(&octets[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_those_of_the_octets_however_they_come() {
        let octets: Vec<u8> = (0..=250_u8).cycle().take(3 * BLOCK + 100).collect();
        for piece in [1, 100, BLOCK, BLOCK + 1, octets.len()] {
            let mut summed = Summed::new(Vec::new());
            octets.chunks(piece).for_each(|piece| summed.write_all(piece).unwrap());
            let (_, text) = summed.begin_tail();
            summed.write_all(b"tail").unwrap();
            let (written, tail) = summed.finish();
            let sums = Checksums::parse(&text).unwrap();
            let expected: Vec<_> = octets.chunks(BLOCK).map(crc32fast::hash).collect();
            assert_eq!(sums, Checksums { octets: octets.len() as u64, blocks: expected });
            assert_eq!(tail, Tail { begin: octets.len() as u64, crc: crc32fast::hash(b"tail") });
            assert_eq!(written[octets.len()..], *b"tail");
            assert_eq!(Checksums::parse(&text[..text.len() - 1]), None);
        }
    }
}
