//! Columns of numbers of a row group: integers, times among them, and the doubles of summaries.
//!
//! They are most of a recording, so that what it costs to encode them is most of what a recording
//! costs: a page is gathered, its bounds taken and its differences packed in one loop each (see
//! `parquet_file/delta.rs`), and all columns of a file share one context of zstd, which the column
//! writers of `parquet` make for every chunk, and which takes a megabyte.
//!
//! Doubles are written as `BYTE_STREAM_SPLIT`: the first octets of all values, then the second ones,
//! and so on.

use arrow::array::{Array as _, ArrayRef, AsArray as _};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampNanosecondType, UInt64Type};
use bytes::Bytes;
use parquet::basic::{Encoding, Type};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::schema::types::ColumnDescPtr;

use super::chunk::{Chunk, DataPage, Description, PAGE_ROWS, Zstd};
use super::delta;
use super::hybrid::Hybrid;

/// What the numbers of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbers {
    /// Never null.
    Times,
    Signed,
    Unsigned,
    Doubles,
}

/// A column of numbers of one row group while its rows come.
pub(super) struct NumberChunk {
    numbers: Numbers,
    chunk: Chunk,
    /// The page that is being filled.
    values: Vec<i64>,
    levels: Hybrid,
    rows: usize,
    /// The bounds of the pages that have a value.
    bounds: Vec<(i64, i64)>,
}

impl Numbers {
    fn is_nullable(self) -> bool {
        self != Self::Times
    }

    /// An integer in the same order, and back.
    fn flipped(self, bits: i64) -> i64 {
        match self {
            Self::Times | Self::Signed => bits,
            Self::Unsigned => bits ^ i64::MIN,
            // Negative doubles are the smaller the greater their other bits are (IEEE 754).
            Self::Doubles => bits ^ ((bits >> 63) & i64::MAX),
        }
    }

    /// The least and the greatest value; `None` where there is none but NaN.
    fn bounds(self, values: &[i64]) -> Option<(i64, i64)> {
        if self == Self::Doubles {
            return double_bounds(values);
        }
        let (least, greatest) =
            values.iter().fold((i64::MAX, i64::MIN), |(least, greatest), &value| {
                let value = self.flipped(value);
                (least.min(value), greatest.max(value))
            });
        (!values.is_empty()).then_some((self.flipped(least), self.flipped(greatest)))
    }
}

/// As the format asks for: NaN does not count, a least zero is the negative one and a greatest the
/// positive one.
fn double_bounds(bits: &[i64]) -> Option<(i64, i64)> {
    let doubles = bits.iter().map(|bits| f64::from_bits(bits.cast_unsigned()));
    let doubles = doubles.filter(|double| !double.is_nan());
    let (least, greatest) = doubles
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, greatest), double| {
            (least.min(double), greatest.max(double))
        });
    let zero = |double: f64, zero: f64| if double.abs() > 0.0 { double } else { zero };
    let octets = |double: f64| double.to_bits().cast_signed();
    (least <= greatest).then(|| (octets(zero(least, -0.0)), octets(zero(greatest, 0.0))))
}

/// The octets of `BYTE_STREAM_SPLIT`.
fn split(values: &[i64], octets: &mut Vec<u8>) {
    for shift in (0..64).step_by(8) {
        let octet = |value: &i64| value.cast_unsigned().to_le_bytes()[shift / 8];
        octets.extend(values.iter().map(octet));
    }
}

impl NumberChunk {
    /// A column of those numbers.
    pub(super) fn new(numbers: Numbers) -> Self {
        let chunk = match numbers {
            Numbers::Doubles => Chunk::new(Type::DOUBLE, Encoding::BYTE_STREAM_SPLIT),
            _ => Chunk::new(Type::INT64, Encoding::DELTA_BINARY_PACKED),
        };
        Self {
            numbers,
            chunk,
            values: Vec::new(),
            levels: Hybrid::new(1, Vec::new()),
            rows: 0,
            bounds: Vec::new(),
        }
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
        if self.numbers.is_nullable() && column.null_count() == column.len() {
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
            DataType::Float64 => {
                let values = column.as_primitive::<Float64Type>().values();
                self.values.extend(values.iter().map(|value| value.to_bits().cast_signed()));
            }
            DataType::Timestamp(..) => {
                let times = column.as_primitive_opt::<TimestampNanosecondType>();
                let times = times.ok_or_else(|| wrong(column.data_type()))?;
                self.values.extend_from_slice(times.values());
            }
            other => return Err(wrong(other)),
        }
        match column.nulls().filter(|_| column.null_count() > 0) {
            None if self.numbers.is_nullable() => self.levels.put(1, column.len()),
            None => {}
            Some(_) if !self.numbers.is_nullable() => {
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
        let bounds = self.numbers.bounds(&self.values);
        self.bounds.extend(bounds);
        let mut values = Vec::with_capacity(8 * self.values.len());
        match self.numbers {
            Numbers::Doubles => split(&self.values, &mut values),
            _ => delta::encode(&self.values, &mut values),
        }
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
        let key = |bits: &i64| self.numbers.flipped(*bits);
        let least = self.bounds.iter().map(|page| page.0).min_by_key(key);
        let greatest = self.bounds.iter().map(|page| page.1).max_by_key(key);
        let ascending =
            self.bounds.is_sorted_by(|a, b| key(&a.0) <= key(&b.0) && key(&a.1) <= key(&b.1));
        let nulls = Some(self.chunk.nulls() as u64);
        let statistics = match self.numbers {
            Numbers::Doubles => {
                let double = |bits: i64| f64::from_bits(bits.cast_unsigned());
                let (least, greatest) = (least.map(double), greatest.map(double));
                Statistics::Double(ValueStatistics::new(least, greatest, None, nulls, false))
            }
            _ => Statistics::Int64(ValueStatistics::new(least, greatest, None, nulls, false)),
        };
        let compression = Zstd::codec()?;
        self.chunk.finish(column, Description { compression, statistics, ascending })
    }
}

fn wrong(found: &DataType) -> ParquetError {
    ParquetError::General(format!("a column of numbers has values of type {found}"))
}

#[cfg(test)]
mod tests;
