//! Rows as comma-separated values (RFC 4180).
//!
//! A missing value is empty, and an empty text is quoted, so that the two differ. Texts are exact:
//! those with control characters stand in quotes. Times are RFC 3339 with the digits that they need.

use std::fmt::{Display, Write as _};

use arrow::array::RecordBatch;

use crate::values::{Value, Values};

/// The rows of a batch; with a line of the columns' names before them if they are the first.
pub fn csv(rows: &RecordBatch, first: bool) -> String {
    let mut text = String::new();
    let schema = rows.schema();
    if first {
        for (position, field) in schema.fields().iter().enumerate() {
            if position > 0 {
                text.push(',');
            }
            push_quoted(&mut text, field.name());
        }
        text.push_str("\r\n");
    }
    let columns: Vec<_> = rows.columns().iter().map(Values::new).collect();
    for row in 0..rows.num_rows() {
        for (position, column) in columns.iter().enumerate() {
            if position > 0 {
                text.push(',');
            }
            match column.value(row) {
                Value::Missing => {}
                Value::Time(time) => push(&mut text, time),
                Value::Text(word) => push_quoted(&mut text, word),
                Value::Unsigned(value) => push(&mut text, value),
                Value::Signed(value) => push(&mut text, value),
                Value::Real(value) => push(&mut text, value),
            }
        }
        text.push_str("\r\n");
    }
    text
}

fn push(text: &mut String, value: impl Display) {
    write!(text, "{value}").expect("writing to a string cannot fail");
}

/// Appends a text as one field: in quotes where it has to be, since it is empty or has commas, quotes or
/// control characters.
pub fn push_quoted(text: &mut String, word: &str) {
    if word.is_empty() || word.contains(|c: char| matches!(c, ',' | '"') || c.is_control()) {
        text.push('"');
        text.push_str(&word.replace('"', "\"\""));
        text.push('"');
    } else {
        text.push_str(word);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, Float64Array, StringArray, TimestampNanosecondArray, UInt64Array,
    };

    use super::*;

    #[test]
    fn texts_are_quoted_where_they_have_to_be_and_there_is_one_heading() {
        let times = TimestampNanosecondArray::from(vec![1_700_000_000_100_000_000, 0, 1]);
        let rows = RecordBatch::try_from_iter([
            ("time", Arc::new(times.with_timezone("UTC")) as ArrayRef),
            ("device", Arc::new(StringArray::from(vec![Some("a,\"b\""), None, Some("")]))),
            ("octets", Arc::new(UInt64Array::from(vec![Some(u64::MAX), None, Some(0)]))),
            ("load", Arc::new(Float64Array::from(vec![Some(0.25), Some(f64::NAN), None]))),
        ])
        .unwrap();
        assert_eq!(
            csv(&rows, true),
            "time,device,octets,load\r\n\
             2023-11-14T22:13:20.1Z,\"a,\"\"b\"\"\",18446744073709551615,0.25\r\n\
             1970-01-01T00:00:00Z,,,NaN\r\n\
             1970-01-01T00:00:00.000000001Z,\"\",0,\r\n"
        );
        assert!(!csv(&rows, false).contains("time"));
    }
}
