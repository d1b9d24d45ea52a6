//! Columns of batches as plain values, for answers of few rows.

use arrow::array::{Array as _, AsArray as _, RecordBatch};
use arrow::datatypes::{Int64Type, TimestampNanosecondType, UInt64Type};
use meikyo_recording::series::Texts;

/// The times of the rows, ns since the epoch; none where there is no such column.
pub(crate) fn times(batch: &RecordBatch) -> &[i64] {
    let column = batch.column_by_name("time");
    let column = column.and_then(|time| time.as_primitive_opt::<TimestampNanosecondType>());
    column.map_or(&[], |times| times.values())
}

/// The values of an unsigned column; none where there is no such column.
pub(crate) fn number(batch: &RecordBatch, name: &str) -> Vec<Option<u64>> {
    let column = batch.column_by_name(name);
    let column = column.and_then(|column| column.as_primitive_opt::<UInt64Type>());
    column.map_or_else(Vec::new, |column| column.iter().collect())
}

/// The values of a signed column; none where there is no such column.
pub(crate) fn signed(batch: &RecordBatch, name: &str) -> Vec<Option<i64>> {
    let column = batch.column_by_name(name);
    let column = column.and_then(|column| column.as_primitive_opt::<Int64Type>());
    column.map_or_else(Vec::new, |column| column.iter().collect())
}

/// The text of a row; `None` where it is null or there is no such column.
pub(crate) fn text<'a>(batch: &'a RecordBatch, name: &str, row: usize) -> Option<&'a str> {
    batch.column_by_name(name).and_then(Texts::new)?.get(row)
}

/// The value of a row as JSON; times as µs, numbers beyond 2^53 as texts.
pub(crate) fn json(batch: &RecordBatch, column: usize, row: usize) -> serde_json::Value {
    use arrow::datatypes::Float64Type;
    use serde_json::Value;
    const EXACT: u64 = 1 << 53;
    let column = batch.column(column);
    if column.is_null(row) {
        return Value::Null;
    }
    if let Some(times) = column.as_primitive_opt::<TimestampNanosecondType>() {
        return times.value(row).div_euclid(1_000).into();
    }
    if let Some(values) = column.as_primitive_opt::<UInt64Type>() {
        let value = values.value(row);
        return if value <= EXACT { value.into() } else { value.to_string().into() };
    }
    if let Some(values) = column.as_primitive_opt::<Int64Type>() {
        let value = values.value(row);
        return if value.unsigned_abs() <= EXACT { value.into() } else { value.to_string().into() };
    }
    if let Some(values) = column.as_primitive_opt::<Float64Type>() {
        return serde_json::Number::from_f64(values.value(row)).map_or(Value::Null, Value::Number);
    }
    Texts::new(column).and_then(|texts| texts.get(row)).map_or(Value::Null, Value::from)
}
