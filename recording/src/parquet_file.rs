//! Writing one Parquet file.
//!
//! What the choices come to is printed by
//! `cargo run --release -p meikyo-recording --example cost`:
//!
//! - integers and times are `DELTA_BINARY_PACKED` with mini blocks of 32: counters of one series
//!   follow each other, so that their deltas are the increments, see `parquet_file/numbers.rs`;
//! - symbols are dictionary encoded from their runs, see `parquet_file/symbols.rs`;
//! - doubles and texts are dictionary encoded; doubles fall back to `BYTE_STREAM_SPLIT`, and are
//!   written so at once in summaries, see `parquet_file/numbers.rs`;
//! - pages are compressed with zstd, level 1, except data pages of symbols, which are runs already;
//! - pages of at most 20,000 rows carry their own least and greatest values (page index), so that
//!   one series of a file can be read alone.

mod checksums;
mod chunk;
mod delta;
mod hybrid;
mod numbers;
#[cfg(test)]
mod read_back;
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
use parquet::basic::Encoding;
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;

use checksums::Summed;
pub(crate) use checksums::{BLOCK, Checksums, Tail};
use chunk::{PAGE_ROWS, Zstd};
use numbers::{NumberChunk, Numbers};
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
    pub(crate) tail: Tail,
}

/// A file that is being written, batch after batch.
pub(crate) struct TableFile {
    writer: SerializedFileWriter<Summed<File>>,
    groups: ArrowRowGroupWriterFactory,
    columns: Vec<Encoder>,
    schema: SchemaRef,
    zstd: Zstd,
    /// The row groups whose rows are still coming, by lane.
    groups_open: Vec<Option<Group>>,
    rows: u64,
}

/// A row group whose rows are still coming.
struct Group {
    columns: Vec<Column>,
    rows: usize,
}

enum Column {
    Numbers(Box<NumberChunk>),
    Symbols(SymbolChunk),
    /// Texts, and doubles that may repeat.
    Others(Box<ArrowColumnWriter>),
}

impl TableFile {
    pub(crate) fn new(file: File, facts: &Facts<'_>) -> Result<Self, ParquetError> {
        let options = ArrowWriterOptions::new()
            .with_properties(properties(facts.schema, Some(facts))?)
            .with_skip_arrow_metadata(true);
        let schema = crate::series::arrow_schema(facts.schema);
        let columns: Vec<_> =
            facts.schema.columns.iter().map(|column| Encoder::of(facts.schema, column)).collect();
        // A writer makes encoders for all of its columns; this one is for those that need one.
        let others = (0..columns.len()).filter(|&at| columns[at] == Encoder::Others);
        let others = Arc::new(schema.project(&others.collect::<Vec<_>>())?);
        let others = ArrowWriter::try_new_with_options(io::sink(), others, options.clone())?;
        let (_, groups) = others.into_serialized_writer()?;
        let summed = Summed::new(file);
        let writer = ArrowWriter::try_new_with_options(summed, Arc::clone(&schema), options)?;
        let (writer, _) = writer.into_serialized_writer()?;
        let (zstd, groups_open) = (Zstd::new()?, Vec::new());
        Ok(Self { writer, groups, columns, schema, zstd, groups_open, rows: 0 })
    }

    pub(crate) fn write(&mut self, rows: &RecordBatch) -> Result<(), ParquetError> {
        self.write_lane(0, rows)
    }

    /// Writes rows to a row group of their own for each lane; several may be open, and end in the
    /// order of the lanes.
    pub(crate) fn write_lane(
        &mut self,
        lane: usize,
        rows: &RecordBatch,
    ) -> Result<(), ParquetError> {
        self.rows += rows.num_rows() as u64;
        self.groups_open.resize_with(self.groups_open.len().max(lane + 1), || None);
        let mut first = 0;
        while first < rows.num_rows() {
            let group = match &mut self.groups_open[lane] {
                Some(group) => group,
                none => none.insert(Group::new(&self.groups, &self.columns, &self.writer)?),
            };
            let count = (rows.num_rows() - first).min(ROW_GROUP_ROWS - group.rows);
            group.write(&self.schema, &rows.slice(first, count), &mut self.zstd)?;
            first += count;
            if group.rows == ROW_GROUP_ROWS {
                self.end_group(lane)?;
            }
        }
        Ok(())
    }

    fn end_group(&mut self, lane: usize) -> Result<(), ParquetError> {
        match self.groups_open[lane].take() {
            Some(group) => group.finish(&mut self.writer, &mut self.zstd),
            None => Ok(()),
        }
    }

    /// Ends the row groups, so that what follows is sorted anew.
    pub(crate) fn end_groups(&mut self) -> Result<(), ParquetError> {
        (0..self.groups_open.len()).try_for_each(|lane| self.end_group(lane))
    }

    /// Ends the file and makes it last.
    pub(crate) fn finish(mut self) -> Result<FileStatistics, ParquetError> {
        self.end_groups()?;
        self.writer.flush()?;
        let (key, sums) = self.writer.inner_mut().begin_tail();
        self.writer.append_key_value_metadata(KeyValue::new(key, sums));
        let (file, tail) = self.writer.into_inner()?.finish();
        file.sync_all()?;
        Ok(FileStatistics { rows: self.rows, bytes: file.metadata()?.len(), tail })
    }
}

impl Group {
    fn new(
        groups: &ArrowRowGroupWriterFactory,
        columns: &[Encoder],
        writer: &SerializedFileWriter<Summed<File>>,
    ) -> Result<Self, ParquetError> {
        let mut others =
            groups.create_column_writers(writer.flushed_row_groups().len())?.into_iter();
        let columns = columns.iter().map(|&encoder| match encoder {
            Encoder::Numbers(kind) => Some(Column::Numbers(Box::new(NumberChunk::new(kind)))),
            Encoder::Symbols => Some(Column::Symbols(SymbolChunk::default())),
            Encoder::Others => others.next().map(|other| Column::Others(Box::new(other))),
        });
        let columns: Option<Vec<_>> = columns.collect();
        let columns = columns.expect("as many encoders as columns that need one");
        Ok(Self { columns, rows: 0 })
    }

    fn write(
        &mut self,
        schema: &SchemaRef,
        rows: &RecordBatch,
        zstd: &mut Zstd,
    ) -> Result<(), ParquetError> {
        for ((to, field), column) in
            self.columns.iter_mut().zip(schema.fields()).zip(rows.columns())
        {
            match to {
                Column::Numbers(numbers) => numbers.write(column, zstd)?,
                Column::Symbols(symbols) => symbols.write(column)?,
                Column::Others(others) => {
                    for leaf in compute_leaves(field, column)? {
                        others.write(&leaf)?;
                    }
                }
            }
        }
        self.rows += rows.num_rows();
        Ok(())
    }

    fn finish(
        self,
        writer: &mut SerializedFileWriter<Summed<File>>,
        zstd: &mut Zstd,
    ) -> Result<(), ParquetError> {
        let descriptions = writer.schema_descr().columns().to_vec();
        let mut group = writer.next_row_group()?;
        for (column, description) in self.columns.into_iter().zip(&descriptions) {
            let (octets, close) = match column {
                Column::Numbers(numbers) => numbers.finish(description, zstd)?,
                Column::Symbols(symbols) => symbols.finish(description, zstd)?,
                Column::Others(others) => {
                    others.close()?.append_to_row_group(&mut group)?;
                    continue;
                }
            };
            group.append_column(&octets, close)?;
        }
        group.close()?;
        Ok(())
    }
}

/// Who encodes a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoder {
    Numbers(Numbers),
    Symbols,
    /// The encoders of `parquet`.
    Others,
}

impl Encoder {
    fn of(table: &TableSchema, column: &crate::schema::Column) -> Self {
        match column.kind {
            ColumnKind::Time => Self::Numbers(Numbers::Times),
            ColumnKind::I64 => Self::Numbers(Numbers::Signed),
            ColumnKind::U64 => Self::Numbers(Numbers::Unsigned),
            // Each encoder of `parquet` has a context of zstd, and a summary has dozens of columns.
            ColumnKind::F64 if !repeats(table) => Self::Numbers(Numbers::Doubles),
            ColumnKind::Symbol => Self::Symbols,
            ColumnKind::F64 | ColumnKind::Text => Self::Others,
        }
    }
}

/// Whether doubles of a table are worth a dictionary: the means of summaries hardly ever repeat, and
/// a dictionary that is given up has cost its time.
fn repeats(table: &TableSchema) -> bool {
    !table.name.ends_with(crate::summary::SUFFIX)
}

/// The properties of files of that table; `facts` go into the metadata.
fn properties(
    schema: &TableSchema,
    facts: Option<&Facts<'_>>,
) -> Result<WriterProperties, ParquetError> {
    let mut builder = WriterProperties::builder()
        .set_compression(Zstd::codec()?)
        .set_created_by(format!("meikyo {}", env!("CARGO_PKG_VERSION")))
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS));
    for column in schema.columns.iter().filter(|column| column.kind == ColumnKind::F64) {
        let path = ColumnPath::from(column.name.as_str());
        builder = builder
            .set_column_dictionary_enabled(path.clone(), repeats(schema))
            .set_column_encoding(path, Encoding::BYTE_STREAM_SPLIT);
    }
    let sorted_by = crate::series::labels(schema).chain([0]);
    let sorting = sorted_by
        .map(|position| SortingColumn {
            column_idx: i32::try_from(position).expect("a table has fewer than 2^31 columns"),
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
