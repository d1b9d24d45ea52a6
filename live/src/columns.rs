//! Columns of batches as plain values, for answers of few rows.

use arrow::array::{ArrayRef, AsArray as _, Float64Array, RecordBatch};
use arrow::datatypes::{Float64Type, Int64Type, TimestampNanosecondType, UInt64Type};
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

/// The values of a column of numbers as reals, each the nearest; `None` when it holds no numbers.
#[expect(
    clippy::cast_precision_loss,
    reason = "drawn and told as a real; 53 bits are exact enough"
)]
pub fn reals(column: &ArrayRef) -> Option<Float64Array> {
    if let Some(reals) = column.as_primitive_opt::<Float64Type>() {
        return Some(reals.clone());
    }
    if let Some(unsigned) = column.as_primitive_opt::<UInt64Type>() {
        return Some(unsigned.unary(|value| value as f64));
    }
    Some(column.as_primitive_opt::<Int64Type>()?.unary(|value| value as f64))
}

/// The text of a row; `None` where it is null or there is no such column.
pub fn text<'a>(batch: &'a RecordBatch, name: &str, row: usize) -> Option<&'a str> {
    batch.column_by_name(name).and_then(Texts::new)?.get(row)
}
