//! Integer columns of a row group, times among them.
//!
//! They are most of a recording, so that what it costs to encode them is most of what a recording
//! costs: a page is gathered, its bounds taken and its differences packed in one loop each (see
//! `parquet_file/delta.rs`), and all columns of a file share one context of zstd, which the column
//! writers of `parquet` make for every chunk.

use arrow::array::{Array as _, ArrayRef, AsArray as _};
use arrow::datatypes::{DataType, Int64Type, TimestampNanosecondType, UInt64Type};
use bytes::Bytes;
use parquet::basic::{Encoding, Type};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::schema::types::ColumnDescPtr;

use super::chunk::{Chunk, DataPage, Description, PAGE_ROWS, Zstd};
use super::delta;
use super::hybrid::Hybrid;
use crate::schema::ColumnKind;

/// An integer column of one row group while its rows come.
pub(super) struct IntegerChunk {
    order: Order,
    chunk: Chunk,
    /// The page that is being filled.
    values: Vec<i64>,
    levels: Hybrid,
    rows: usize,
    /// The bounds of the pages that have a value.
    bounds: Vec<(i64, i64)>,
}

/// In which order values are compared, and whether rows can be null.
#[derive(Debug, Clone, Copy)]
struct Order {
    /// What the bits of a value are changed by, so that signed comparison gives its order.
    flip: i64,
    nullable: bool,
}

impl IntegerChunk {
    /// A column of that kind; `None` if it is none of integers.
    pub(super) fn new(kind: ColumnKind) -> Option<Self> {
        let order = match kind {
            ColumnKind::Time => Order { flip: 0, nullable: false },
            ColumnKind::I64 => Order { flip: 0, nullable: true },
            ColumnKind::U64 => Order { flip: i64::MIN, nullable: true },
            ColumnKind::F64 | ColumnKind::Symbol | ColumnKind::Text => return None,
        };
        Some(Self {
            order,
            chunk: Chunk::new(Type::INT64, Encoding::DELTA_BINARY_PACKED),
            values: Vec::new(),
            levels: Hybrid::new(1, Vec::new()),
            rows: 0,
            bounds: Vec::new(),
        })
    }

    /// Takes the next rows of the column.
    pub(super) fn write(&mut self, column: &ArrayRef, zstd: &mut Zstd) -> Result<(), ParquetError> {
        let mut first = 0;
        while first < column.len() {
            let count = (column.len() - first).min(PAGE_ROWS - self.rows);
            self.gather(&column.slice(first, count))?;
            first += count;
            if self.rows == PAGE_ROWS {
                self.end_page(zstd)?;
            }
        }
        Ok(())
    }

    /// Takes rows that fit into the page.
    fn gather(&mut self, column: &ArrayRef) -> Result<(), ParquetError> {
        self.rows += column.len();
        if self.order.nullable && column.null_count() == column.len() {
            self.levels.put(0, column.len());
            return Ok(());
        }
        let begin = self.values.len();
        match column.data_type() {
            DataType::UInt64 => {
                let values = column.as_primitive::<UInt64Type>().values();
                self.values.extend(values.iter().map(|value| value.cast_signed()));
            }
            DataType::Int64 => {
                self.values.extend_from_slice(column.as_primitive::<Int64Type>().values());
            }
            DataType::Timestamp(..) => {
                let times = column.as_primitive_opt::<TimestampNanosecondType>();
                let times = times.ok_or_else(|| wrong(column.data_type()))?;
                self.values.extend_from_slice(times.values());
            }
            other => return Err(wrong(other)),
        }
        match column.nulls().filter(|_| column.null_count() > 0) {
            None if self.order.nullable => self.levels.put(1, column.len()),
            None => {}
            Some(_) if !self.order.nullable => {
                return Err(ParquetError::General("a time is null".to_owned()));
            }
            Some(nulls) => {
                let (mut from, mut to) = (0, begin);
                for (valid, until) in nulls.valid_slices() {
                    self.levels.put(0, valid - from);
                    self.levels.put(1, until - valid);
                    self.values.copy_within(begin + valid..begin + until, to);
                    to += until - valid;
                    from = until;
                }
                self.levels.put(0, column.len() - from);
                self.values.truncate(to);
            }
        }
        Ok(())
    }

    fn end_page(&mut self, zstd: &mut Zstd) -> Result<(), ParquetError> {
        let flip = self.order.flip;
        let (least, greatest) =
            self.values.iter().fold((i64::MAX, i64::MIN), |(least, greatest), value| {
                (least.min(value ^ flip), greatest.max(value ^ flip))
            });
        let bounds = (!self.values.is_empty()).then_some((least ^ flip, greatest ^ flip));
        self.bounds.extend(bounds);
        let mut values = Vec::with_capacity(2 * self.values.len());
        delta::encode(&self.values, &mut values);
        let compressed = zstd.compress(&values)?;
        let octets = |value: i64| value.to_le_bytes().to_vec();
        let levels = std::mem::replace(&mut self.levels, Hybrid::new(1, Vec::new()));
        self.chunk.page(DataPage {
            rows: self.rows,
            nulls: self.rows - self.values.len(),
            bounds: bounds.map(|(least, greatest)| (octets(least), octets(greatest))),
            levels: levels.finish(),
            compressed: (compressed.len() < values.len()).then_some(compressed),
            values,
        })?;
        self.values.clear();
        self.rows = 0;
        Ok(())
    }

    /// Ends the chunk: its octets and what is said about them.
    pub(super) fn finish(
        mut self,
        column: &ColumnDescPtr,
        zstd: &mut Zstd,
    ) -> Result<(Bytes, ColumnCloseResult), ParquetError> {
        if self.rows > 0 {
            self.end_page(zstd)?;
        }
        let flip = self.order.flip;
        let least = self.bounds.iter().map(|page| page.0).min_by_key(|least| least ^ flip);
        let greatest = self.bounds.iter().map(|page| page.1).max_by_key(|most| most ^ flip);
        let ascending =
            self.bounds.is_sorted_by(|a, b| a.0 ^ flip <= b.0 ^ flip && a.1 ^ flip <= b.1 ^ flip);
        let nulls = Some(self.chunk.nulls() as u64);
        let statistics =
            Statistics::Int64(ValueStatistics::new(least, greatest, None, nulls, false));
        let compression = Zstd::codec()?;
        self.chunk.finish(column, Description { compression, statistics, ascending })
    }
}

fn wrong(found: &DataType) -> ParquetError {
    ParquetError::General(format!("a column of integers has values of type {found}"))
}

#[cfg(test)]
mod tests;
