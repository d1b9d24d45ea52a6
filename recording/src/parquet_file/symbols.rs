//! Symbol columns of a row group, written as runs.
//!
//! Rows are sorted by their labels, so that a symbol column is a few long runs. The encoder of
//! `parquet` hashes and compares the text of every row; this one looks at keys, and at a text where
//! a run begins.
//!
//! A column chunk is laid out as the format says (<https://parquet.apache.org/docs/file-format/>):
//!
//! - one dictionary page: the texts in order of appearance, `PLAIN`, zstd from
//!   [`COMPRESSED_FROM`] octets on;
//! - data pages, version 2, of at most [`PAGE_ROWS`] rows: definition levels, then indexes into the
//!   dictionary, both in the RLE/bit-packing hybrid. They are stored as they are, which a page of
//!   version 2 may be whatever the codec of the chunk: runs have nothing left to compress;
//! - statistics of the chunk, a column index and an offset index with the least and the greatest
//!   text, the nulls and the place of every page. Texts are not shortened in them.

mod pages;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use arrow::array::{Array as _, ArrayRef, AsArray as _, DictionaryArray, StringArray};
use arrow::datatypes::Int32Type;
use bytes::Bytes;
use parquet::basic::{BoundaryOrder, Compression, Encoding, PageType, Type};
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::column::writer::{ColumnCloseResult, ColumnWriterImpl};
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, ColumnIndexBuilder, OffsetIndexBuilder, PageEncodingStats,
};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

pub(super) use pages::PAGE_ROWS;
use pages::{DataPage, NULL, Run, narrow, pages_of, signed};

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
        let key = usize::try_from(key).unwrap_or(usize::MAX);
        let slot = known.indexes.get_mut(key).ok_or_else(|| {
            ParquetError::General(format!("symbol {key} of {} in a column", texts.len()))
        })?;
        if let Some(index) = slot {
            return Ok(*index);
        }
        let text = texts.value(key);
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
        compression: Compression,
    ) -> Result<(Bytes, ColumnCloseResult), ParquetError> {
        let dictionary_len: usize = self.texts.iter().map(|text| text.len() + 4).sum();
        let small = dictionary_len < COMPRESSED_FROM;
        let compression = if small { Compression::UNCOMPRESSED } else { compression };
        let mut sink = TrackedWrite::new(Vec::new());
        let mut pages = SerializedPageWriter::new(&mut sink);
        let dictionary = dictionary_page(&self.texts, column, compression)?;
        let mut totals = Totals::default();
        totals.add(&pages.write_page(dictionary)?);
        let data_page_offset = totals.compressed;
        let width = width_of(self.texts.len());
        let mut index = ColumnIndexBuilder::new(Type::BYTE_ARRAY);
        let mut offsets = OffsetIndexBuilder::new();
        let mut bounds = Vec::new();
        for runs in pages_of(&self.runs) {
            let page = DataPage::new(&runs, &self.texts, width);
            bounds.extend(page.bounds);
            let (least, greatest) = page.bounds.unwrap_or_default();
            let nulls = signed(page.nulls);
            let null_page = page.bounds.is_none();
            index.append(null_page, least.into(), greatest.into(), nulls, None);
            offsets.append_row_count(signed(page.rows));
            totals.rows += page.rows;
            totals.nulls += page.nulls;
            let written = pages.write_page(page.compressed()?)?;
            offsets
                .append_offset_and_size(signed(written.offset), narrow(written.compressed_size)?);
            totals.add(&written);
        }
        index.set_boundary_order(boundary_order(&bounds));
        pages.close()?;
        let octets = sink.into_inner()?;
        let metadata = totals.metadata(column, compression, data_page_offset, &bounds)?;
        let close = ColumnCloseResult {
            bytes_written: octets.len() as u64,
            rows_written: totals.rows as u64,
            metadata,
            bloom_filter: None,
            column_index: Some(index.build()?),
            offset_index: Some(offsets.build()),
        };
        Ok((octets.into(), close))
    }
}

/// What the pages of a chunk come to.
#[derive(Debug, Default)]
struct Totals {
    pages: i32,
    rows: usize,
    nulls: usize,
    /// Octets, with the headers of the pages.
    compressed: usize,
    uncompressed: usize,
}

impl Totals {
    fn add(&mut self, written: &PageWriteSpec) {
        self.pages += 1;
        self.compressed += written.compressed_size;
        self.uncompressed += written.uncompressed_size;
    }

    fn metadata(
        &self,
        column: &ColumnDescPtr,
        compression: Compression,
        data_page_offset: usize,
        bounds: &[(&str, &str)],
    ) -> Result<ColumnChunkMetaData, ParquetError> {
        let least = bounds.iter().map(|page| page.0).min().map(ByteArray::from);
        let greatest = bounds.iter().map(|page| page.1).max().map(ByteArray::from);
        let has_texts = least.is_some();
        let statistics =
            ValueStatistics::new(least, greatest, None, Some(self.nulls as u64), false)
                .with_min_is_exact(has_texts)
                .with_max_is_exact(has_texts);
        let pages = |page_type, encoding, count| PageEncodingStats { page_type, encoding, count };
        ColumnChunkMetaData::builder(Arc::clone(column))
            .set_compression(compression)
            .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY])
            .set_page_encoding_stats(vec![
                pages(PageType::DICTIONARY_PAGE, Encoding::PLAIN, 1),
                pages(PageType::DATA_PAGE_V2, Encoding::RLE_DICTIONARY, self.pages - 1),
            ])
            .set_total_compressed_size(signed(self.compressed))
            .set_total_uncompressed_size(signed(self.uncompressed))
            .set_num_values(signed(self.rows))
            .set_dictionary_page_offset(Some(0))
            .set_data_page_offset(signed(data_page_offset))
            .set_statistics(Statistics::ByteArray(statistics))
            .build()
    }
}

/// Whether the pages are sorted; those without a text do not count.
fn boundary_order(bounds: &[(&str, &str)]) -> BoundaryOrder {
    let ascending = bounds.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1);
    if ascending { BoundaryOrder::ASCENDING } else { BoundaryOrder::UNORDERED }
}

/// Bits of an index into a dictionary of so many texts.
fn width_of(texts: usize) -> u8 {
    let greatest = texts.saturating_sub(1);
    u8::try_from(usize::BITS - greatest.leading_zeros()).unwrap_or(u8::MAX)
}

/// The dictionary page. `parquet` compresses for its own column writers only, so that one of those
/// makes the page: from each text once.
fn dictionary_page(
    texts: &[String],
    column: &ColumnDescPtr,
    compression: Compression,
) -> Result<CompressedPage, ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_dictionary_page_size_limit(usize::MAX)
        .build();
    let taken = Arc::new(Mutex::new(None));
    let taker = Box::new(DictionaryTaker(Arc::clone(&taken)));
    let mut writer =
        ColumnWriterImpl::<ByteArrayType>::new(Arc::clone(column), Arc::new(properties), taker);
    let values: Vec<_> = texts.iter().map(|text| ByteArray::from(text.as_str())).collect();
    writer.write_batch(&values, Some(&vec![column.max_def_level(); values.len()]), None)?;
    writer.close()?;
    let page = taken.lock().ok().and_then(|mut taken| taken.take());
    page.ok_or_else(|| ParquetError::General("a column without a dictionary".to_owned()))
}

/// Keeps the dictionary page of a column and drops its data pages.
struct DictionaryTaker(Arc<Mutex<Option<CompressedPage>>>);

impl PageWriter for DictionaryTaker {
    fn write_page(&mut self, page: CompressedPage) -> Result<PageWriteSpec, ParquetError> {
        let spec = PageWriteSpec { page_type: page.page_type(), ..PageWriteSpec::default() };
        if page.page_type() == PageType::DICTIONARY_PAGE
            && let Ok(mut taken) = self.0.lock()
        {
            *taken = Some(page);
        }
        Ok(spec)
    }

    fn close(&mut self) -> Result<(), ParquetError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
