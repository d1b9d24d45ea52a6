//! A column chunk that we encode ourselves, page by page.
//!
//! A chunk is laid out as the format says (<https://parquet.apache.org/docs/file-format/>): a
//! dictionary page where there is one; data pages, version 2, of at most [`PAGE_ROWS`] rows:
//! definition levels, then values; statistics of the chunk, and a column index and an offset index
//! with the least and the greatest value, the nulls and the place of every page.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{BoundaryOrder, Compression, Encoding, PageType, Type, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriteSpec, PageWriter as _};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, ColumnIndexBuilder, OffsetIndexBuilder, PageEncodingStats,
};
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use zstd::bulk::Compressor;

/// Rows of a data page.
pub(super) const PAGE_ROWS: usize = 20_000;

/// The level of zstd that pages are compressed with.
const ZSTD_LEVEL: i32 = 1;

/// The codec of the chunks of one file.
pub(super) struct Zstd(Compressor<'static>);

impl Zstd {
    pub(super) fn new() -> Result<Self, ParquetError> {
        Ok(Self(Compressor::new(ZSTD_LEVEL)?))
    }

    /// What a chunk says that it is compressed with.
    pub(super) fn codec() -> Result<Compression, ParquetError> {
        Ok(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
    }

    pub(super) fn compress(&mut self, octets: &[u8]) -> Result<Vec<u8>, ParquetError> {
        Ok(self.0.compress(octets)?)
    }
}

/// A data page that was not written yet.
pub(super) struct DataPage {
    pub(super) rows: usize,
    pub(super) nulls: usize,
    /// The least and the greatest value as the format has them; `None` when all rows are null or NaN.
    pub(super) bounds: Option<(Vec<u8>, Vec<u8>)>,
    pub(super) levels: Vec<u8>,
    pub(super) values: Vec<u8>,
    /// The values compressed, where that makes them shorter.
    pub(super) compressed: Option<Vec<u8>>,
}

/// What is said of a chunk beside its pages.
pub(super) struct Description {
    pub(super) compression: Compression,
    /// The least and the greatest value and the nulls.
    pub(super) statistics: Statistics,
    /// Whether the bounds of the pages, those without a value apart, ascend.
    pub(super) ascending: bool,
}

/// A column chunk while its pages come.
pub(super) struct Chunk {
    encoding: Encoding,
    octets: TrackedWrite<Vec<u8>>,
    index: ColumnIndexBuilder,
    offsets: OffsetIndexBuilder,
    /// Octets of the dictionary page with its header.
    dictionary: Option<usize>,
    pages: i32,
    rows: usize,
    nulls: usize,
    /// Octets of all pages, with their headers.
    compressed: usize,
    uncompressed: usize,
}

impl Chunk {
    /// A chunk whose data pages have values of that encoding.
    pub(super) fn new(kind: Type, encoding: Encoding) -> Self {
        Self {
            encoding,
            octets: TrackedWrite::new(Vec::new()),
            index: ColumnIndexBuilder::new(kind),
            offsets: OffsetIndexBuilder::new(),
            dictionary: None,
            pages: 0,
            rows: 0,
            nulls: 0,
            compressed: 0,
            uncompressed: 0,
        }
    }

    pub(super) fn nulls(&self) -> usize {
        self.nulls
    }

    /// Writes the dictionary, before any data page.
    pub(super) fn dictionary(&mut self, page: CompressedPage) -> Result<(), ParquetError> {
        self.dictionary = Some(self.write(page)?.compressed_size);
        Ok(())
    }

    /// Writes the next data page.
    pub(super) fn page(&mut self, page: DataPage) -> Result<(), ParquetError> {
        let null_page = page.nulls == page.rows;
        if page.bounds.is_none() && !null_page {
            // All NaN: no index can speak of such a page.
            self.index.to_invalid();
        }
        let (least, greatest) = page.bounds.unwrap_or_default();
        self.index.append(null_page, least, greatest, signed(page.nulls), None);
        self.offsets.append_row_count(signed(page.rows));
        self.pages += 1;
        self.rows += page.rows;
        self.nulls += page.nulls;
        let def_levels_byte_len = narrow(page.levels.len())?;
        let size = page.levels.len() + page.values.len();
        let mut buf = page.levels;
        buf.extend_from_slice(page.compressed.as_ref().unwrap_or(&page.values));
        let data = Page::DataPageV2 {
            buf: buf.into(),
            num_values: narrow(page.rows)?,
            encoding: self.encoding,
            num_nulls: narrow(page.nulls)?,
            num_rows: narrow(page.rows)?,
            def_levels_byte_len,
            rep_levels_byte_len: 0,
            is_compressed: page.compressed.is_some(),
            statistics: None,
        };
        let written = self.write(CompressedPage::new(data, size))?;
        self.offsets
            .append_offset_and_size(signed(written.offset), narrow(written.compressed_size)?);
        Ok(())
    }

    fn write(&mut self, page: CompressedPage) -> Result<PageWriteSpec, ParquetError> {
        let written = SerializedPageWriter::new(&mut self.octets).write_page(page)?;
        self.compressed += written.compressed_size;
        self.uncompressed += written.uncompressed_size;
        Ok(written)
    }

    /// Ends the chunk: its octets and what is said about them.
    pub(super) fn finish(
        mut self,
        column: &ColumnDescPtr,
        description: Description,
    ) -> Result<(Bytes, ColumnCloseResult), ParquetError> {
        let order = [BoundaryOrder::UNORDERED, BoundaryOrder::ASCENDING];
        self.index.set_boundary_order(order[usize::from(description.ascending)]);
        let metadata = self.metadata(column, description)?;
        let octets = self.octets.into_inner()?;
        let close = ColumnCloseResult {
            bytes_written: octets.len() as u64,
            rows_written: self.rows as u64,
            metadata,
            bloom_filter: None,
            column_index: self.index.valid().then(|| self.index.build()).transpose()?,
            offset_index: Some(self.offsets.build()),
        };
        Ok((octets.into(), close))
    }

    fn metadata(
        &self,
        column: &ColumnDescPtr,
        description: Description,
    ) -> Result<ColumnChunkMetaData, ParquetError> {
        let pages = |page_type, encoding, count| PageEncodingStats { page_type, encoding, count };
        let mut encodings = vec![Encoding::RLE, self.encoding];
        let mut stats = vec![pages(PageType::DATA_PAGE_V2, self.encoding, self.pages)];
        if self.dictionary.is_some() {
            encodings.insert(0, Encoding::PLAIN);
            stats.insert(0, pages(PageType::DICTIONARY_PAGE, Encoding::PLAIN, 1));
        }
        ColumnChunkMetaData::builder(Arc::clone(column))
            .set_compression(description.compression)
            .set_encodings(encodings)
            .set_page_encoding_stats(stats)
            .set_total_compressed_size(signed(self.compressed))
            .set_total_uncompressed_size(signed(self.uncompressed))
            .set_num_values(signed(self.rows))
            .set_dictionary_page_offset(self.dictionary.map(|_| 0))
            .set_data_page_offset(signed(self.dictionary.unwrap_or(0)))
            .set_statistics(description.statistics)
            .build()
    }
}

/// A count of rows or octets as the format has it; they are bounded by the rows of a group.
fn signed<T: TryInto<i64>>(count: T) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

pub(super) fn narrow<T: TryFrom<usize>>(count: usize) -> Result<T, ParquetError> {
    T::try_from(count).map_err(|_| ParquetError::General(format!("a page of {count} octets")))
}
