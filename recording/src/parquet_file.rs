//! Writing one Parquet file.
//!
//! What the choices come to is printed by
//! `cargo run --release -p meikyo-recording --example cost`:
//!
//! - integers and times are `DELTA_BINARY_PACKED` with mini blocks of 32: counters of one series
//!   follow each other, so that their deltas are the increments;
//! - symbols, doubles and texts are dictionary encoded; doubles fall back to `BYTE_STREAM_SPLIT`,
//!   and begin with it in summaries, whose means hardly ever repeat;
//! - every page is compressed with zstd, level 1;
//! - pages of at most 20,000 rows carry their own least and greatest values (page index), so that
//!   one series of a file can be read alone.

use std::fs::File;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
    StringBuilder, TimestampNanosecondArray, UInt64Array, new_null_array,
};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{Int32Type, SchemaRef};
use arrow::error::ArrowError;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{
    DeltaBinaryPackedEncoderOptions, EnabledStatistics, WriterProperties, WriterPropertiesBuilder,
};
use parquet::schema::types::ColumnPath;

use crate::compact::{Place, Rows};
use crate::format::{FORMAT_VERSION, Kind};
use crate::layout::ParquetName;
use crate::schema::{ColumnKind, TableSchema};

/// Rows of a row group. A reader decides by row groups first; a column of one is 8 MB in memory.
const ROW_GROUP_ROWS: usize = 1 << 20;

/// The key of the table's schema as JSON in a file's metadata.
pub const SCHEMA_KEY: &str = "meikyo.table";

/// What a file is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) name: &'a ParquetName,
    pub(crate) kind: Kind,
    pub(crate) schema: &'a TableSchema,
}

/// What a file became.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileStatistics {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

/// A file that is being written, batch after batch.
#[derive(Debug)]
pub(crate) struct TableFile {
    writer: ArrowWriter<File>,
    rows: u64,
}

impl TableFile {
    pub(crate) fn new(file: File, facts: &Facts<'_>) -> Result<Self, ParquetError> {
        let options = ArrowWriterOptions::new()
            .with_properties(properties(facts.schema, Some(facts))?)
            .with_skip_arrow_metadata(true);
        let schema = crate::series::arrow_schema(facts.schema);
        Ok(Self { writer: ArrowWriter::try_new_with_options(file, schema, options)?, rows: 0 })
    }

    pub(crate) fn write(&mut self, rows: &RecordBatch) -> Result<(), ParquetError> {
        self.rows += rows.num_rows() as u64;
        self.writer.write(rows)
    }

    /// Ends the row group, so that what follows is sorted anew.
    pub(crate) fn end_group(&mut self) -> Result<(), ParquetError> {
        self.writer.flush()
    }

    /// Ends the file and makes it last.
    pub(crate) fn finish(self) -> Result<FileStatistics, ParquetError> {
        let file = self.writer.into_inner()?;
        file.sync_all()?;
        Ok(FileStatistics { rows: self.rows, bytes: file.metadata()?.len() })
    }
}

/// The properties of files of that table; `facts` go into the metadata.
fn properties(
    schema: &TableSchema,
    facts: Option<&Facts<'_>>,
) -> Result<WriterProperties, ParquetError> {
    let mut builder = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_created_by(format!("meikyo {}", env!("CARGO_PKG_VERSION")))
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_delta_binary_packed_encoder_options(DeltaBinaryPackedEncoderOptions::try_new(128, 4)?)
        .set_data_page_row_count_limit(20_000)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS));
    // Means hardly ever repeat, and a dictionary that is given up has cost its time.
    let repeats = !schema.name.ends_with(crate::summary::SUFFIX);
    for column in &schema.columns {
        let path = ColumnPath::from(column.name.as_str());
        if column.kind == ColumnKind::F64 {
            builder = builder.set_column_dictionary_enabled(path.clone(), repeats);
        }
        builder = encoded(builder, path, column.kind);
    }
    let sorted_by = crate::series::labels(schema).chain([0]);
    let sorting = sorted_by
        .map(|position| SortingColumn {
            column_idx: i32::try_from(position).unwrap_or(i32::MAX),
            descending: false,
            nulls_first: true,
        })
        .collect();
    builder = builder.set_sorting_columns(Some(sorting));
    if let Some(facts) = facts {
        builder = builder.set_key_value_metadata(Some(metadata(facts)));
    }
    Ok(builder.build())
}

fn encoded(
    builder: WriterPropertiesBuilder,
    path: ColumnPath,
    kind: ColumnKind,
) -> WriterPropertiesBuilder {
    match kind {
        ColumnKind::Time | ColumnKind::U64 | ColumnKind::I64 => builder
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
        ColumnKind::F64 => builder.set_column_encoding(path, Encoding::BYTE_STREAM_SPLIT),
        ColumnKind::Symbol | ColumnKind::Text => builder,
    }
}

fn metadata(facts: &Facts<'_>) -> Vec<KeyValue> {
    let entry = |key: &str, value: String| KeyValue::new(key.to_owned(), value);
    let schema = serde_json::to_string(facts.schema).unwrap_or_default();
    vec![
        entry("meikyo.format", FORMAT_VERSION.to_string()),
        entry("meikyo.kind", facts.kind.word().to_owned()),
        entry("meikyo.stream", facts.name.stream.clone()),
        entry("meikyo.first", facts.name.first.to_string()),
        entry("meikyo.last", facts.name.last.to_string()),
        entry(SCHEMA_KEY, schema),
    ]
}

/// Brings rows of the log into the columns of a file.
#[derive(Debug)]
pub(crate) struct Gatherer<'a> {
    rows: &'a Rows<'a>,
    table: &'a TableSchema,
    schema: SchemaRef,
    /// Texts of the symbols by their numbers; at least one, so that there is a dictionary.
    symbols: ArrayRef,
}

impl<'a> Gatherer<'a> {
    pub(crate) fn new(
        rows: &'a Rows<'a>,
        table: &'a TableSchema,
        symbols: &[Option<String>],
    ) -> Self {
        let texts = symbols.iter().map(|symbol| symbol.as_deref().unwrap_or_default());
        let none = symbols.is_empty().then_some("");
        let symbols = Arc::new(StringArray::from_iter_values(texts.chain(none)));
        Self { rows, table, schema: crate::series::arrow_schema(table), symbols }
    }

    /// The rows at `places`, in that order.
    pub(crate) fn batch(&self, places: &[Place]) -> Result<RecordBatch, ArrowError> {
        let columns = self.table.columns.iter().enumerate();
        let columns: Result<Vec<_>, _> =
            columns.map(|(position, column)| self.column(places, position, column.kind)).collect();
        RecordBatch::try_new(Arc::clone(&self.schema), columns?)
    }

    fn column(
        &self,
        places: &[Place],
        column: usize,
        kind: ColumnKind,
    ) -> Result<ArrayRef, ArrowError> {
        if self.rows.is_all_null(column) {
            return Ok(new_null_array(self.schema.field(column).data_type(), places.len()));
        }
        if kind == ColumnKind::Text {
            return Ok(Arc::new(self.texts(places, column)));
        }
        let nulls = self.nulls(places, column);
        let bits = places.iter().map(|&place| {
            let (view, row) = self.rows.at(place, column);
            view.bits(row)
        });
        let signed = |bits: u64| bits.cast_signed();
        Ok(match kind {
            ColumnKind::Time => {
                let values = bits.map(signed).collect::<Vec<_>>().into();
                Arc::new(TimestampNanosecondArray::new(values, None).with_timezone("UTC"))
            }
            ColumnKind::I64 => {
                Arc::new(Int64Array::new(bits.map(signed).collect::<Vec<_>>().into(), nulls))
            }
            ColumnKind::U64 => Arc::new(UInt64Array::new(bits.collect::<Vec<_>>().into(), nulls)),
            ColumnKind::F64 => {
                let values = bits.map(f64::from_bits).collect::<Vec<_>>().into();
                Arc::new(Float64Array::new(values, nulls))
            }
            ColumnKind::Symbol | ColumnKind::Text => {
                let known = self.symbols.len() as u64;
                let key = |bits| if bits < known { i32::try_from(bits).unwrap_or(0) } else { 0 };
                let keys = Int32Array::new(bits.map(key).collect::<Vec<_>>().into(), nulls);
                let symbols = Arc::clone(&self.symbols);
                Arc::new(DictionaryArray::<Int32Type>::try_new(keys, symbols)?)
            }
        })
    }

    /// Which rows are not null; `None` when all are not.
    fn nulls(&self, places: &[Place], column: usize) -> Option<NullBuffer> {
        if self.rows.is_full(column) {
            return None;
        }
        let valid = |&place: &Place| {
            let (view, row) = self.rows.at(place, column);
            !view.is_null(row)
        };
        if places.iter().all(valid) {
            return None;
        }
        let buffer = BooleanBuffer::collect_bool(places.len(), |at| valid(&places[at]));
        Some(NullBuffer::new(buffer))
    }

    fn texts(&self, places: &[Place], column: usize) -> StringArray {
        let mut texts = StringBuilder::new();
        for &place in places {
            let (view, row) = self.rows.at(place, column);
            texts.append_option(view.text(row));
        }
        texts.finish()
    }
}
