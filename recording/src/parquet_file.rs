//! Writing one Parquet file.
//!
//! What the choices come to is printed by
//! `cargo run --release -p meikyo-recording --example cost`:
//!
//! - integers and times are `DELTA_BINARY_PACKED` with mini blocks of 32: counters of one series
//!   follow each other, so that their deltas are the increments;
//! - symbols are dictionary encoded from their runs, see `parquet_file/symbols.rs`;
//! - doubles and texts are dictionary encoded; doubles fall back to `BYTE_STREAM_SPLIT`, and begin
//!   with it in summaries, whose means hardly ever repeat;
//! - pages are compressed with zstd, level 1, except data pages of symbols, which are runs already;
//! - pages of at most 20,000 rows carry their own least and greatest values (page index), so that
//!   one series of a file can be read alone.

mod gather;
mod hybrid;
mod symbols;

use std::fs::File;
use std::io;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{
    ArrowColumnWriter, ArrowRowGroupWriterFactory, ArrowWriterOptions, compute_leaves,
};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{
    DeltaBinaryPackedEncoderOptions, EnabledStatistics, WriterProperties, WriterPropertiesBuilder,
};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;

pub(crate) use gather::Gatherer;
use symbols::SymbolChunk;

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
    writer: SerializedFileWriter<File>,
    groups: ArrowRowGroupWriterFactory,
    schema: SchemaRef,
    group: Option<Group>,
    rows: u64,
}

/// A row group whose rows are still coming.
#[derive(Debug)]
struct Group {
    columns: Vec<Chunk>,
    rows: usize,
}

#[derive(Debug)]
enum Chunk {
    Symbols(SymbolChunk),
    Values(Box<ArrowColumnWriter>),
}

impl TableFile {
    pub(crate) fn new(file: File, facts: &Facts<'_>) -> Result<Self, ParquetError> {
        let options = ArrowWriterOptions::new()
            .with_properties(properties(facts.schema, Some(facts))?)
            .with_skip_arrow_metadata(true);
        let schema = crate::series::arrow_schema(facts.schema);
        // A writer makes encoders for all of its columns; this one is for those that need one.
        let values = (0..schema.fields().len()).filter(|&at| !is_symbols(&schema, at));
        let values = Arc::new(schema.project(&values.collect::<Vec<_>>())?);
        let values = ArrowWriter::try_new_with_options(io::sink(), values, options.clone())?;
        let (_, groups) = values.into_serialized_writer()?;
        let writer = ArrowWriter::try_new_with_options(file, Arc::clone(&schema), options)?;
        let (writer, _) = writer.into_serialized_writer()?;
        Ok(Self { writer, groups, schema, group: None, rows: 0 })
    }

    pub(crate) fn write(&mut self, rows: &RecordBatch) -> Result<(), ParquetError> {
        self.rows += rows.num_rows() as u64;
        let mut first = 0;
        while first < rows.num_rows() {
            let group = match &mut self.group {
                Some(group) => group,
                none => none.insert(Group::new(&self.groups, &self.schema, &self.writer)?),
            };
            let count = (rows.num_rows() - first).min(ROW_GROUP_ROWS - group.rows);
            group.write(&self.schema, &rows.slice(first, count))?;
            first += count;
            if group.rows == ROW_GROUP_ROWS {
                self.end_group()?;
            }
        }
        Ok(())
    }

    /// Ends the row group, so that what follows is sorted anew.
    pub(crate) fn end_group(&mut self) -> Result<(), ParquetError> {
        match self.group.take() {
            Some(group) => group.finish(&mut self.writer),
            None => Ok(()),
        }
    }

    /// Ends the file and makes it last.
    pub(crate) fn finish(mut self) -> Result<FileStatistics, ParquetError> {
        self.end_group()?;
        let file = self.writer.into_inner()?;
        file.sync_all()?;
        Ok(FileStatistics { rows: self.rows, bytes: file.metadata()?.len() })
    }
}

impl Group {
    fn new(
        groups: &ArrowRowGroupWriterFactory,
        schema: &SchemaRef,
        writer: &SerializedFileWriter<File>,
    ) -> Result<Self, ParquetError> {
        let mut values =
            groups.create_column_writers(writer.flushed_row_groups().len())?.into_iter();
        let columns = (0..schema.fields().len()).map(|column| {
            if is_symbols(schema, column) {
                return Some(Chunk::Symbols(SymbolChunk::default()));
            }
            values.next().map(|values| Chunk::Values(Box::new(values)))
        });
        let columns: Option<Vec<_>> = columns.collect();
        let columns = columns.expect("as many encoders as columns that need one");
        Ok(Self { columns, rows: 0 })
    }

    fn write(&mut self, schema: &SchemaRef, rows: &RecordBatch) -> Result<(), ParquetError> {
        for ((chunk, field), column) in
            self.columns.iter_mut().zip(schema.fields()).zip(rows.columns())
        {
            match chunk {
                Chunk::Symbols(symbols) => symbols.write(column)?,
                Chunk::Values(values) => {
                    for leaf in compute_leaves(field, column)? {
                        values.write(&leaf)?;
                    }
                }
            }
        }
        self.rows += rows.num_rows();
        Ok(())
    }

    fn finish(self, writer: &mut SerializedFileWriter<File>) -> Result<(), ParquetError> {
        let columns = writer.schema_descr().columns().to_vec();
        let mut group = writer.next_row_group()?;
        for (chunk, column) in self.columns.into_iter().zip(&columns) {
            match chunk {
                Chunk::Symbols(symbols) => {
                    let (octets, close) = symbols.finish(column, compression()?)?;
                    group.append_column(&octets, close)?;
                }
                Chunk::Values(values) => values.close()?.append_to_row_group(&mut group)?,
            }
        }
        group.close()?;
        Ok(())
    }
}

fn is_symbols(schema: &SchemaRef, column: usize) -> bool {
    *schema.field(column).data_type() == crate::series::arrow_type(ColumnKind::Symbol)
}

fn compression() -> Result<Compression, ParquetError> {
    Ok(Compression::ZSTD(ZstdLevel::try_new(1)?))
}

/// The properties of files of that table; `facts` go into the metadata.
fn properties(
    schema: &TableSchema,
    facts: Option<&Facts<'_>>,
) -> Result<WriterProperties, ParquetError> {
    let mut builder = WriterProperties::builder()
        .set_compression(compression()?)
        .set_created_by(format!("meikyo {}", env!("CARGO_PKG_VERSION")))
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_delta_binary_packed_encoder_options(DeltaBinaryPackedEncoderOptions::try_new(128, 4)?)
        .set_data_page_row_count_limit(symbols::PAGE_ROWS)
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
