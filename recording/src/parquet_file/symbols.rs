//! Symbol columns of a row group, written as runs.
//!
//! Rows are sorted by their labels, so that a symbol column is a few long runs. The encoder of
//! `parquet` hashes and compares the text of every row; this one looks at keys, and at a text where
//! a run begins.
//!
//! The chunk (`parquet_file/chunk.rs`) has
//!
//! - a dictionary: the texts in order of appearance, `PLAIN`, zstd from [`COMPRESSED_FROM`] octets
//!   on;
//! - data pages of indexes into the dictionary, in the RLE/bit-packing hybrid as the levels are.
//!   They are stored as they are, which a page of version 2 may be whatever the codec of the chunk:
//!   runs have nothing left to compress.
//!
//! Texts are not shortened in the statistics.

mod pages;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray as _, DictionaryArray, StringArray};
use arrow::datatypes::Int32Type;
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, Type};
use parquet::column::page::{CompressedPage, Page};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::schema::types::ColumnDescPtr;

use super::chunk::{Chunk, Description, Zstd, narrow};
use pages::{NULL, Run, bounds, data_page, pages_of};

/// Octets from which a dictionary is compressed: a codec costs more than a short one takes.
const COMPRESSED_FROM: usize = 256;

/// A symbol column of one row group while its rows come.
#[derive(Debug, Default)]
pub(super) struct SymbolChunk {
    /// The dictionary.
    texts: Vec<String>,
    indexes: BTreeMap<String, u32>,
    /// The dictionary of the rows that came last, and our index for each of its keys.
    known: Option<Known>,
    runs: Vec<Run>,
}

#[derive(Debug)]
struct Known {
    values: ArrayRef,
    indexes: Vec<Option<u32>>,
}

impl SymbolChunk {
    /// Takes the next rows of the column.
    pub(super) fn write(&mut self, column: &ArrayRef) -> Result<(), ParquetError> {
        let wrong = || ParquetError::General("a symbol column is a dictionary of texts".to_owned());
        let column: &DictionaryArray<Int32Type> = column.as_dictionary_opt().ok_or_else(wrong)?;
        let texts: &StringArray = column.values().as_string_opt().ok_or_else(wrong)?;
        let same = |known: &Known| Arc::ptr_eq(&known.values, column.values());
        let mut known = self.known.take().filter(same).unwrap_or_else(|| Known {
            values: Arc::clone(column.values()),
            indexes: vec![None; texts.len()],
        });
        let keys = column.keys();
        if keys.null_count() == 0 {
            for run in keys.values().chunk_by(|a, b| a == b) {
                let index = self.index_of(run[0], texts, &mut known)?;
                self.push(index, run.len());
            }
        } else {
            for key in keys {
                let index = key.map_or(Ok(NULL), |key| self.index_of(key, texts, &mut known))?;
                self.push(index, 1);
            }
        }
        self.known = Some(known);
        Ok(())
    }

    fn push(&mut self, index: u32, rows: usize) {
        match self.runs.last_mut() {
            Some(last) if last.index == index => last.rows += rows,
            _ => self.runs.push(Run { index, rows }),
        }
    }

    /// The index of the text that `texts` has at `key`.
    fn index_of(
        &mut self,
        key: i32,
        texts: &StringArray,
        known: &mut Known,
    ) -> Result<u32, ParquetError> {
        let unknown =
            || ParquetError::General(format!("symbol {key} of {} in a column", texts.len()));
        let at = usize::try_from(key).map_err(|_| unknown())?;
        let slot = known.indexes.get_mut(at).ok_or_else(unknown)?;
        if let Some(index) = slot {
            return Ok(*index);
        }
        let text = texts.value(at);
        let index = match self.indexes.get(text) {
            Some(index) => *index,
            None => {
                let index = u32::try_from(self.texts.len())
                    .map_err(|_| ParquetError::General("too many symbols".to_owned()))?;
                self.texts.push(text.to_owned());
                self.indexes.insert(text.to_owned(), index);
                index
            }
        };
        *slot = Some(index);
        Ok(index)
    }

    /// Ends the chunk: its octets and what is said about them.
    pub(super) fn finish(
        self,
        column: &ColumnDescPtr,
        zstd: &mut Zstd,
    ) -> Result<(Bytes, ColumnCloseResult), ParquetError> {
        let dictionary_len: usize = self.texts.iter().map(|text| text.len() + 4).sum();
        let small = dictionary_len < COMPRESSED_FROM;
        let compression = if small { Compression::UNCOMPRESSED } else { Zstd::codec()? };
        let mut chunk = Chunk::new(Type::BYTE_ARRAY, Encoding::RLE_DICTIONARY);
        chunk.dictionary(dictionary_page(&self.texts, (!small).then_some(zstd))?)?;
        let width = width_of(self.texts.len());
        let mut all = Vec::new();
        for runs in pages_of(&self.runs) {
            chunk.page(data_page(&runs, &self.texts, width))?;
            all.extend(bounds(&runs, &self.texts));
        }
        let least = all.iter().map(|page| page.0).min().map(ByteArray::from);
        let greatest = all.iter().map(|page| page.1).max().map(ByteArray::from);
        let nulls = Some(chunk.nulls() as u64);
        let statistics = ValueStatistics::new(least, greatest, None, nulls, false);
        let statistics = Statistics::ByteArray(statistics);
        let ascending = all.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1);
        chunk.finish(column, Description { compression, statistics, ascending })
    }
}

/// Bits of an index into a dictionary of so many texts.
fn width_of(texts: usize) -> u8 {
    let greatest = texts.saturating_sub(1);
    u8::try_from(usize::BITS - greatest.leading_zeros()).expect("an address has at most 64 bits")
}

/// The dictionary page, compressed if a codec is given.
fn dictionary_page(
    texts: &[String],
    zstd: Option<&mut Zstd>,
) -> Result<CompressedPage, ParquetError> {
    let mut plain = Vec::new();
    for text in texts {
        plain.extend_from_slice(&narrow::<u32>(text.len())?.to_le_bytes());
        plain.extend_from_slice(text.as_bytes());
    }
    let size = plain.len();
    let buf = match zstd {
        Some(zstd) => zstd.compress(&plain)?,
        None => plain,
    };
    let page = Page::DictionaryPage {
        buf: buf.into(),
        num_values: narrow(texts.len())?,
        encoding: Encoding::PLAIN,
        is_sorted: false,
    };
    Ok(CompressedPage::new(page, size))
}

#[cfg(test)]
mod tests;
