//! Data on standard output: the one place where it is printed.

use std::fmt;
use std::io::{self, Write as _};

use meikyo_units::{Nanos, WallTime};
use serde::Serialize;

use crate::ranks;

/// Why data could not be printed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrintError {
    /// The reader has gone (`| head`): the command has done all that was wanted.
    #[error("nobody reads standard output any more")]
    Closed,
    /// For example because the disk that it goes to is full.
    #[error("cannot write to standard output")]
    Write(#[source] io::Error),
    /// The data has no JSON form.
    #[error("cannot write the result as JSON")]
    Json(#[source] serde_json::Error),
}

impl From<io::Error> for PrintError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe { Self::Closed } else { Self::Write(error) }
    }
}

/// Prints `text` as it is, on the first of the ranks that have the same to say.
///
/// # Errors
/// [`PrintError::Closed`] when nobody reads any more, which `main` counts as success.
pub(crate) fn print(text: &str) -> Result<(), PrintError> {
    if !ranks::joined().is_first() {
        return Ok(());
    }
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

/// Prints one JSON document on a line of its own.
///
/// # Errors
/// As [`print()`], and when `document` has no JSON form.
pub(crate) fn print_json(document: &impl Serialize) -> Result<(), PrintError> {
    let mut text = serde_json::to_string(document).map_err(PrintError::Json)?;
    text.push('\n');
    print(&text)
}

/// An instant as RFC 3339 with the digits that it needs: `2026-11-21T20:14:00.1Z`.
pub(crate) fn instant_text(time: WallTime) -> String {
    jiff::Timestamp::from_nanosecond(time.as_nanos().into())
        .map_or_else(|_| format!("{} ns", time.as_nanos()), |instant| instant.to_string())
}

/// A number in the greatest of the units that it reaches, least unit last, rounded to a tenth; below all
/// of them whole, in `least`.
pub(crate) fn in_units(value: u64, units: &[(&str, u64)], least: &str) -> String {
    match units.iter().find(|(_, size)| value >= *size) {
        Some((unit, size)) => {
            let tenths = (u128::from(value) * 10 + u128::from(size / 2)) / u128::from(*size);
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
        None => format!("{value} {least}"),
    }
}

/// A span as people read it: `79.1 ms`.
pub(crate) fn span_text(span: Nanos) -> String {
    in_units(span.get(), &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)], "ns")
}

/// A table for people: columns as wide as their widest cell, numbers to the right.
#[derive(Debug, Default)]
pub(crate) struct TextTable {
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// A table with these headings.
    pub(crate) fn new(headings: &[&str]) -> Self {
        Self { rows: vec![headings.iter().map(|heading| (*heading).to_owned()).collect()] }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl fmt::Display for TextTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let cell = |row: &Vec<String>, column: usize| row.get(column).cloned().unwrap_or_default();
        let width = |column| self.rows.iter().map(|row| cell(row, column).chars().count()).max();
        let widths: Vec<_> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        let numeric: Vec<_> = (0..columns)
            .map(|column| self.rows.iter().skip(1).all(|row| is_number(&cell(row, column))))
            .collect();
        for row in &self.rows {
            let mut line = String::new();
            for column in 0..columns {
                let (text, width) = (cell(row, column), widths[column]);
                let gap = if column == 0 { "" } else { "  " };
                line.push_str(gap);
                if numeric[column] {
                    line.push_str(&format!("{text:>width$}"));
                } else {
                    line.push_str(&format!("{text:<width$}"));
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Whether a cell is to stand at the right: a number, or nothing.
fn is_number(cell: &str) -> bool {
    cell.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | ',' | 'e' | '%'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_have_the_digits_that_they_need() {
        let due = WallTime::from_nanos(1_700_000_000_100_000_000);
        assert_eq!(instant_text(due), "2023-11-14T22:13:20.1Z");
    }

    #[test]
    fn spans_are_rounded_to_a_tenth_of_their_unit() {
        for (nanos, text) in [
            (79_114_280, "79.1 ms"),
            (0, "0 ns"),
            (999, "999 ns"),
            (1_050, "1.1 us"),
            (10_000_000_000, "10.0 s"),
        ] {
            assert_eq!(span_text(Nanos::new(nanos)), text);
        }
    }

    #[test]
    fn numbers_stand_right_and_words_left() {
        let mut table = TextTable::new(&["device", "polls"]);
        table.row(["node1".into(), "12".into()]);
        table.row(["switch-7".into(), "3".into()]);
        assert_eq!(table.to_string(), "device    polls\nnode1        12\nswitch-7      3\n");
    }
}
