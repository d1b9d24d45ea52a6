//! Writing one Parquet file.
//!
//! What was chosen, and what it lost against, is in the table of `docs/recording-format.md`,
//! measured with `cargo run --release -p meikyo-recording --example cost`:
//!
//! - integers and times are `DELTA_BINARY_PACKED` with mini blocks of 32: counters of one series
//!   follow each other, so that their deltas are the increments;
//! - symbols, doubles and texts are dictionary encoded; doubles fall back to `BYTE_STREAM_SPLIT`;
//! - every page is compressed with zstd, level 1;
//! - pages of at most 20,000 rows carry their own least and greatest values (page index), so that
//!   one series of a file can be read alone.

use std::fs::File;
use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, DictionaryArray, Float64Array, Int32Array, Int64Array, StringArray,
    StringBuilder, TimestampNanosecondArray, UInt64Array,
};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::Int32Type;
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::{ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{
    DeltaBinaryPackedEncoderOptions, EnabledStatistics, WriterProperties, WriterPropertiesBuilder,
};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;

use crate::compact::{Place, RowOrder, Rows};
use crate::format::{FORMAT_VERSION, Kind};
use crate::layout::ParquetName;
use crate::schema::{ColumnKind, TableSchema};

/// Rows of a row group. A reader decides by row groups first; a column of one is 8 MB in memory.
pub(crate) const ROW_GROUP_ROWS: usize = 1 << 20;

/// Rows that are handed to the encoder at once: their arrays stay in the cache.
const CHUNK_ROWS: usize = 1 << 14;

/// The key of the table's schema as JSON in a file's metadata.
pub const SCHEMA_KEY: &str = "meikyo.table";

/// What a file is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) name: &'a ParquetName,
    pub(crate) kind: Kind,
    pub(crate) schema: &'a TableSchema,
    /// Texts of the symbols by their numbers.
    pub(crate) symbols: &'a [Option<String>],
}

/// What a file became.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileStatistics {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

/// Writes the rows in their order, and makes the file last.
pub(crate) fn write(
    file: File,
    facts: &Facts<'_>,
    rows: &Rows<'_>,
    order: &RowOrder,
) -> Result<FileStatistics, ParquetError> {
    let arrow_schema = crate::series::arrow_schema(facts.schema);
    let parquet_schema = ArrowSchemaConverter::new().convert(&arrow_schema)?;
    let properties = Arc::new(properties(facts.schema, Some(facts))?);
    let root = parquet_schema.root_schema_ptr();
    let mut writer = SerializedFileWriter::new(&file, root, properties)?;
    let factory = ArrowRowGroupWriterFactory::new(&writer, Arc::clone(&arrow_schema));
    let texts: StringArray = facts
        .symbols
        .iter()
        .map(|symbol| symbol.as_deref().unwrap_or_default())
        .collect::<Vec<_>>()
        .into();
    let texts: ArrayRef = Arc::new(texts);
    for (group, places) in order.places().chunks(ROW_GROUP_ROWS).enumerate() {
        let columns = factory.create_column_writers(group)?;
        let mut row_group = writer.next_row_group()?;
        for (position, mut column) in columns.into_iter().enumerate() {
            let field = arrow_schema.field(position);
            let kind = facts.schema.columns[position].kind;
            for chunk in places.chunks(CHUNK_ROWS) {
                let array = gather(rows, chunk, position, kind, &texts)?;
                for leaf in compute_leaves(field, &array)? {
                    column.write(&leaf)?;
                }
            }
            column.close()?.append_to_row_group(&mut row_group)?;
        }
        row_group.close()?;
    }
    writer.close()?;
    file.sync_all()?;
    let bytes = file.metadata()?.len();
    Ok(FileStatistics { rows: order.len() as u64, bytes })
}

/// The properties of files of that table; `facts` go into the metadata.
pub(crate) fn properties(
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
    for column in &schema.columns {
        builder = encoded(builder, ColumnPath::from(column.name.as_str()), column.kind);
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

/// The values of one column in the order of `places`.
fn gather(
    rows: &Rows<'_>,
    places: &[Place],
    column: usize,
    kind: ColumnKind,
    symbols: &ArrayRef,
) -> Result<ArrayRef, ParquetError> {
    if kind == ColumnKind::Text {
        return Ok(Arc::new(gather_texts(rows, places, column)));
    }
    let nulls = gather_nulls(rows, places, column);
    let bits = places.iter().map(|&place| {
        let (view, row) = rows.at(place, column);
        view.bits(row)
    });
    Ok(match kind {
        ColumnKind::Time => {
            let values = bits.map(u64::cast_signed).collect::<Vec<_>>().into();
            Arc::new(TimestampNanosecondArray::new(values, None).with_timezone("UTC"))
        }
        ColumnKind::I64 => {
            Arc::new(Int64Array::new(bits.map(u64::cast_signed).collect::<Vec<_>>().into(), nulls))
        }
        ColumnKind::U64 => Arc::new(UInt64Array::new(bits.collect::<Vec<_>>().into(), nulls)),
        ColumnKind::F64 => {
            Arc::new(Float64Array::new(bits.map(f64::from_bits).collect::<Vec<_>>().into(), nulls))
        }
        ColumnKind::Symbol | ColumnKind::Text => {
            let known = symbols.len() as u64;
            let keys =
                bits.map(|bits| if bits < known { i32::try_from(bits).unwrap_or(0) } else { 0 });
            let keys = Int32Array::new(keys.collect::<Vec<_>>().into(), nulls);
            if symbols.is_empty() {
                let none: ArrayRef = Arc::new(StringArray::from(vec![""]));
                return Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, none)?));
            }
            Arc::new(DictionaryArray::<Int32Type>::try_new(keys, Arc::clone(symbols))?)
        }
    })
}

/// Which rows are not null; `None` when all are not.
fn gather_nulls(rows: &Rows<'_>, places: &[Place], column: usize) -> Option<NullBuffer> {
    let valid = |&place: &Place| {
        let (view, row) = rows.at(place, column);
        !view.is_null(row)
    };
    if places.iter().all(valid) {
        return None;
    }
    let buffer = BooleanBuffer::collect_bool(places.len(), |at| valid(&places[at]));
    Some(NullBuffer::new(buffer))
}

fn gather_texts(rows: &Rows<'_>, places: &[Place], column: usize) -> StringArray {
    let mut texts = StringBuilder::new();
    for &place in places {
        let (view, row) = rows.at(place, column);
        texts.append_option(view.text(row));
    }
    texts.finish()
}
