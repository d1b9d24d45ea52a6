//! Rows of a table as text: for people, as CSV, and as JSON, one object a line.

use std::fmt::{Display, Write as _};

use arrow::array::RecordBatch;
use meikyo_console::output::{self, PrintError, TextTable};
use meikyo_console::printable;
use meikyo_live::csv;
use meikyo_live::values::{JSON_INTEGER_MAX, Value, Values};

/// How rows are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A table for people.
    Table,
    /// Comma-separated values with a heading, see [`csv()`]; only on a terminal are control
    /// characters shown instead.
    Csv,
    /// One JSON object a line; a missing value is `null`.
    Json,
}

/// Rows that a table for people aligns together.
const ALIGNED_ROWS: usize = 4_096;

/// Prints batches of rows of one table.
#[derive(Debug)]
pub(crate) struct RowPrinter {
    form: Form,
    headed: bool,
}

impl RowPrinter {
    /// A printer that has printed nothing yet.
    pub(crate) fn new(form: Form) -> Self {
        Self { form, headed: false }
    }

    /// The text of a batch, with the heading before the first one.
    pub(crate) fn render(&mut self, rows: &RecordBatch) -> String {
        let schema = rows.schema();
        let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let columns: Vec<_> = rows.columns().iter().map(Values::new).collect();
        let first = !std::mem::replace(&mut self.headed, true);
        match self.form {
            Form::Table => table(&names, &columns, rows.num_rows(), first),
            Form::Csv => csv(rows, first),
            Form::Json => json(&names, &columns, rows.num_rows()),
        }
    }

    /// Prints a batch.
    ///
    /// # Errors
    /// As [`output::print`].
    pub(crate) fn print(&mut self, rows: &RecordBatch) -> Result<(), PrintError> {
        for start in (0..rows.num_rows().max(1)).step_by(ALIGNED_ROWS) {
            let length = ALIGNED_ROWS.min(rows.num_rows() - start);
            // Before any row the heading of a table would be aligned with nothing.
            if length > 0 || self.form == Form::Csv {
                let text = self.render(&rows.slice(start, length));
                match self.form {
                    Form::Table => output::print(&text)?,
                    Form::Csv | Form::Json => output::print_document(&text)?,
                }
            }
        }
        Ok(())
    }
}

fn table(names: &[&str], columns: &[Values<'_>], rows: usize, first: bool) -> String {
    let mut table = TextTable::new(names);
    for row in 0..rows {
        table.row(columns.iter().map(|column| match column.value(row) {
            Value::Missing => "-".to_owned(),
            Value::Time(time) => time.to_string(),
            Value::Text(text) => text.to_owned(),
            Value::Unsigned(value) => value.to_string(),
            Value::Signed(value) => value.to_string(),
            Value::Real(value) => real_for_people(value),
        }));
    }
    let text = table.to_string();
    if first {
        return text;
    }
    text.split_once('\n').map(|(_, rows)| rows.to_owned()).unwrap_or_default()
}

/// A real number with the digits that matter to a person.
fn real_for_people(value: f64) -> String {
    if value.abs() >= 1_000.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}

fn json(names: &[&str], columns: &[Values<'_>], rows: usize) -> String {
    let names: Vec<_> = names.iter().map(|name| json_text(name)).collect();
    let mut text = String::new();
    for row in 0..rows {
        text.push('{');
        for (position, (name, column)) in names.iter().zip(columns).enumerate() {
            if position > 0 {
                text.push(',');
            }
            text.push_str(name);
            text.push(':');
            match column.value(row) {
                Value::Time(time) => push(&mut text, format_args!("\"{time}\"")),
                Value::Text(word) => text.push_str(&json_text(word)),
                Value::Unsigned(value) if value > JSON_INTEGER_MAX => {
                    push(&mut text, format_args!("\"{value}\""));
                }
                Value::Signed(value) if value.unsigned_abs() > JSON_INTEGER_MAX => {
                    push(&mut text, format_args!("\"{value}\""));
                }
                Value::Unsigned(value) => push(&mut text, value),
                Value::Signed(value) => push(&mut text, value),
                Value::Real(value) if value.is_finite() => push(&mut text, value),
                Value::Missing | Value::Real(_) => text.push_str("null"),
            }
        }
        text.push_str("}\n");
    }
    text
}

fn push(text: &mut String, value: impl Display) {
    write!(text, "{value}").expect("writing to a string cannot fail");
}

fn json_text(text: &str) -> String {
    printable::json(&serde_json::Value::from(text).to_string()).into_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, Float64Array, StringArray, TimestampNanosecondArray, UInt64Array,
    };

    use super::*;

    fn batch() -> RecordBatch {
        let times = TimestampNanosecondArray::from(vec![1_700_000_000_100_000_000, 0]);
        RecordBatch::try_from_iter([
            ("time", Arc::new(times.with_timezone("UTC")) as ArrayRef),
            ("device", Arc::new(StringArray::from(vec![Some("a,\"b\""), None]))),
            ("octets", Arc::new(UInt64Array::from(vec![Some(u64::MAX), None]))),
            ("load", Arc::new(Float64Array::from(vec![Some(0.25), Some(f64::NAN)]))),
        ])
        .unwrap()
    }

    #[test]
    fn json_keeps_great_integers_as_texts_and_missing_values_as_null() {
        let text = RowPrinter::new(Form::Json).render(&batch());
        insta::assert_snapshot!(text, @r#"
        {"time":"2023-11-14T22:13:20.1Z","device":"a,\"b\"","octets":"18446744073709551615","load":0.25}
        {"time":"1970-01-01T00:00:00Z","device":null,"octets":null,"load":null}
        "#);
    }

    #[test]
    fn control_characters_of_a_device_are_shown_quoted_or_escaped() {
        let hostile = "a\u{1b}[2J\nroot: \u{202e}x\"";
        let texts: ArrayRef = Arc::new(StringArray::from(vec![hostile]));
        let rows = RecordBatch::try_from_iter([("interface", texts)]).unwrap();
        let render = |form| RowPrinter::new(form).render(&rows);
        assert_eq!(render(Form::Table), "interface\na\\u{1b}[2J\\nroot: \\u{202e}x\"\n");
        assert_eq!(render(Form::Json), "{\"interface\":\"a\\u001b[2J\\nroot: \\u202ex\\\"\"}\n");
        let quoted = format!("interface\r\n\"{}\"\r\n", hostile.replace('"', "\"\""));
        assert_eq!(render(Form::Csv), quoted);
    }
}
