//! Columns of batches as plain values, for answers of few rows.

use arrow::array::{AsArray as _, RecordBatch};
use arrow::datatypes::{Int64Type, TimestampNanosecondType, UInt64Type};
use meikyo_recording::series::Texts;

/// The times of the rows, ns since the epoch; none where there is no such column.
pub fn times(batch: &RecordBatch) -> &[i64] {
    let column = batch.column_by_name("time");
    let column = column.and_then(|time| time.as_primitive_opt::<TimestampNanosecondType>());
    column.map_or(&[], |times| times.values())
}

/// The values of an unsigned column; none where there is no such column.
pub fn number(batch: &RecordBatch, name: &str) -> Vec<Option<u64>> {
    let column = batch.column_by_name(name);
    let column = column.and_then(|column| column.as_primitive_opt::<UInt64Type>());
    column.map_or_else(Vec::new, |column| column.iter().collect())
}

/// The values of a signed column; none where there is no such column.
pub fn signed(batch: &RecordBatch, name: &str) -> Vec<Option<i64>> {
    let column = batch.column_by_name(name);
    let column = column.and_then(|column| column.as_primitive_opt::<Int64Type>());
    column.map_or_else(Vec::new, |column| column.iter().collect())
}

/// The text of a row; `None` where it is null or there is no such column.
pub fn text<'a>(batch: &'a RecordBatch, name: &str, row: usize) -> Option<&'a str> {
    batch.column_by_name(name).and_then(Texts::new)?.get(row)
}
