//! What is printed, and the one place where it is: data on standard output, all else on standard
//! error. No character that steers a terminal goes through (see [`crate::printable`]).

use std::borrow::Cow;
use std::fmt;
use std::io::{self, IsTerminal as _, Write as _};

use meikyo_units::Nanos;
use serde::Serialize;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::printable;
use crate::ranks::joined::joined;

/// Why data could not be printed.
#[derive(Debug, thiserror::Error)]
pub enum PrintError {
    /// The reader has gone (`| head`): the command has done all that was wanted.
    #[error("standard output was closed by its reader")]
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

/// Prints lines for people, on the first of the ranks that have the same to say. What is not ours in a
/// line went through [`printable::line`], so that it cannot begin another.
///
/// # Errors
/// [`PrintError::Closed`] when nobody reads any more, which `main` counts as success.
pub fn print(text: &str) -> Result<(), PrintError> {
    write(&printable::lines(text))
}

/// Prints a document for programs, such as CSV or a configuration: exactly, but on a terminal, where a
/// person reads it, with the characters shown that would steer it.
///
/// # Errors
/// As [`print()`].
pub fn print_document(text: &str) -> Result<(), PrintError> {
    if io::stdout().is_terminal() { write(&printable::document(text)) } else { write(text) }
}

fn write(text: &str) -> Result<(), PrintError> {
    if !joined().is_first() {
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
pub fn print_json(document: &impl Serialize) -> Result<(), PrintError> {
    let mut text = serde_json::to_string(document).map_err(PrintError::Json)?;
    text.push('\n');
    write(&printable::json(&text))
}

/// Tells a person one line on standard error; where nobody reads it, nothing is missed.
pub fn say(line: &str) {
    tell(&printable::line(line));
}

/// Tells a person lines on standard error, of which all that is not ours went through
/// [`printable::line`]. When the terminal is gone nobody is told, and nothing else fails.
pub fn tell(lines: &str) {
    drop(writeln!(io::stderr(), "{}", printable::lines(lines)));
}

/// A unit for people, the least number of least units that is told in it, and how many of them it is.
type Step = (&'static str, u64, u64);

const SPANS: [Step; 6] = [
    ("d", 172_800_000_000_000, 86_400_000_000_000),
    ("h", 7_200_000_000_000, 3_600_000_000_000),
    ("min", 120_000_000_000, 60_000_000_000),
    ("s", 1_000_000_000, 1_000_000_000),
    ("ms", 1_000_000, 1_000_000),
    ("us", 1_000, 1_000),
];

const AMOUNTS: [Step; 4] = [
    ("TB", 1_000_000_000_000, 1_000_000_000_000),
    ("GB", 1_000_000_000, 1_000_000_000),
    ("MB", 1_000_000, 1_000_000),
    ("kB", 1_000, 1_000),
];

/// A number in the greatest of the units that it reaches, rounded to a tenth; below all of them whole,
/// in `least`.
fn in_units(value: u64, steps: &[Step], least: &str) -> String {
    match steps.iter().find(|(_, from, _)| value >= *from) {
        Some((unit, _, size)) => {
            let tenths = (u128::from(value) * 10 + u128::from(size / 2)) / u128::from(*size);
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
        None => format!("{value} {least}"),
    }
}

/// A span as people read it: `79.1 ms`, `90.0 s`, `2.5 h`.
pub fn span_text(span: Nanos) -> String {
    in_units(span.get(), &SPANS, "ns")
}

/// An amount of data as people read it: `999 bytes`, `2.1 GB`.
pub fn bytes_text(bytes: u64) -> String {
    in_units(bytes, &AMOUNTS, "bytes")
}

/// How many there are of what is called so: `1 host`, `3 hosts`, `4 switches`.
pub fn counted(count: impl TryInto<u64>, one: &str) -> String {
    // Saturates, and is then one of many all the same.
    let count = count.try_into().unwrap_or(u64::MAX);
    let ending = match count {
        1 => "",
        _ if one.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{count} {one}{ending}")
}

/// A count or a size as a real number; those of a run are far below 2^53.
#[expect(clippy::cast_precision_loss, reason = "below 2^53, where it is exact")]
pub fn real(count: u64) -> f64 {
    count as f64
}

/// How wide the terminal is that standard output goes to; `None` where it goes elsewhere.
pub fn terminal_width() -> Option<usize> {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    let columns = rustix::termios::tcgetwinsize(&stdout).map_or(0, |size| size.ws_col);
    // A serial line does not say how wide its terminal is.
    Some(if columns == 0 { 80 } else { columns.into() })
}

/// A table for people: columns as wide as their widest cell, numbers to the right. Cells are one line
/// each, whatever they hold.
#[derive(Debug, Default)]
pub struct TextTable {
    rows: Vec<Vec<String>>,
    width_max: Option<usize>,
}

impl TextTable {
    /// A table with these headings.
    pub fn new(headings: &[&str]) -> Self {
        let headings = headings.iter().map(|heading| printable::line(heading).into_owned());
        Self { rows: vec![headings.collect()], width_max: None }
    }

    /// Cuts texts in the middle where lines would be longer than so many columns; numbers stay whole.
    #[must_use]
    pub fn fitted(self, width_max: Option<usize>) -> Self {
        Self { width_max, ..self }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let fit = |cell: String| match printable::line(&cell) {
            Cow::Borrowed(_) => cell,
            Cow::Owned(escaped) => escaped,
        };
        self.rows.push(cells.into_iter().map(fit).collect());
    }
}

impl fmt::Display for TextTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let cell = |row: &Vec<String>, column: usize| row.get(column).cloned().unwrap_or_default();
        let width = |column| self.rows.iter().map(|row| width_of(&cell(row, column))).max();
        let mut widths: Vec<_> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        let numeric: Vec<_> = (0..columns)
            .map(|column| self.rows.iter().skip(1).all(|row| is_number(&cell(row, column))))
            .collect();
        if let Some(width_max) = self.width_max {
            narrow(
                &mut widths,
                &numeric,
                width_max.saturating_sub(GAP.len() * (columns.max(1) - 1)),
            );
        }
        for row in &self.rows {
            let mut line = String::new();
            for column in 0..columns {
                let (text, width) = (shortened(cell(row, column), widths[column]), widths[column]);
                let gap = if column == 0 { "" } else { GAP };
                let blanks = " ".repeat(width - width_of(&text));
                let (before, behind) =
                    if numeric[column] { (&*blanks, "") } else { ("", &*blanks) };
                for part in [gap, before, &text, behind] {
                    line.push_str(part);
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Stands between two columns.
const GAP: &str = "  ";
/// A column of texts is not made narrower than this: less of a name tells nothing.
const NARROWEST: usize = 12;

/// Narrows the widest columns of texts until all together are no wider than `width_max`.
fn narrow(widths: &mut [usize], numeric: &[bool], width_max: usize) {
    while widths.iter().sum::<usize>() > width_max {
        let texts = widths.iter_mut().zip(numeric).filter(|(_, numeric)| !**numeric);
        let Some((widest, _)) = texts.max_by_key(|(width, _)| **width) else { return };
        if *widest <= NARROWEST {
            return;
        }
        *widest -= 1;
    }
}

/// The text, or its beginning and its end where it is wider than that.
fn shortened(text: String, width: usize) -> String {
    if width_of(&text) <= width {
        return text;
    }
    let kept = width.saturating_sub(1);
    let (head, tail) =
        (prefix(text.chars(), kept - kept / 2), prefix(text.chars().rev(), kept / 2));
    head.into_iter().chain(['…']).chain(tail.into_iter().rev()).collect()
}

/// The characters from the beginning that take at most so many columns.
fn prefix(characters: impl Iterator<Item = char>, width: usize) -> Vec<char> {
    let mut left = width;
    let fits = |c: &char| {
        let rest = left.checked_sub(c.width().unwrap_or(0));
        left = rest.unwrap_or(left);
        rest.is_some()
    };
    characters.take_while(fits).collect()
}

/// How many columns of a terminal a text takes: two for a wide character.
fn width_of(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.width() }
}

/// Whether a cell is to stand at the right: a number, or nothing.
fn is_number(cell: &str) -> bool {
    cell.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | ',' | 'e' | '%'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_rounded_to_a_tenth_of_their_unit() {
        for (nanos, text) in [
            (79_114_280, "79.1 ms"),
            (0, "0 ns"),
            (999, "999 ns"),
            (1_050, "1.1 us"),
            (10_000_000_000, "10.0 s"),
            (119_000_000_000, "119.0 s"),
            (150_000_000_000, "2.5 min"),
            (604_800_000_000_000, "7.0 d"),
        ] {
            assert_eq!(span_text(Nanos::new(nanos)), text);
        }
    }

    #[test]
    fn amounts_are_rounded_to_a_tenth_of_their_unit() {
        assert_eq!(bytes_text(999), "999 bytes");
        assert_eq!(bytes_text(1_050), "1.1 kB");
        assert_eq!(bytes_text(2_149_999_999), "2.1 GB");
        assert_eq!(bytes_text(u64::MAX), "18446744.1 TB");
    }

    #[test]
    fn numbers_stand_right_and_words_left() {
        let mut table = TextTable::new(&["device", "polls"]);
        table.row(["node1".into(), "12".into()]);
        table.row(["switch-7".into(), "3".into()]);
        assert_eq!(table.to_string(), "device    polls\nnode1        12\nswitch-7      3\n");
    }

    #[test]
    fn long_names_are_cut_in_the_middle_to_fit_and_numbers_are_not() {
        let mut table = TextTable::new(&["samples", "file", "name"]);
        let name = format!("begin{}end", "<core::option::Option<T>>".repeat(14));
        table.row(["123456789".into(), "/usr/lib/libc.so.6".into(), name.clone()]);
        table.row(["1".into(), "a".into(), format!("首{}尾", "长".repeat(200))]);
        assert!(table.to_string().contains(&name), "whole where nothing limits it");
        let text = table.fitted(Some(60)).to_string();
        for line in text.lines() {
            assert!(width_of(line) <= 60, "{line}");
        }
        let rows: Vec<_> = text.lines().collect();
        assert!(rows[1].starts_with("123456789  /usr/lib/libc.so.6  begin"), "{text}");
        assert!(rows[1].contains('…') && rows[1].ends_with("end"), "{text}");
        assert!(
            rows[2].contains('首') && rows[2].contains('…') && rows[2].ends_with('尾'),
            "{text}"
        );
    }

    #[test]
    fn a_cell_is_one_line_and_as_wide_as_it_is_shown() {
        let mut table = TextTable::new(&["port", "polls"]);
        table.row(["端口".into(), "1".into()]);
        table.row(["a\n\u{1b}[2J".into(), "2".into()]);
        assert_eq!(
            table.to_string(),
            "port          polls\n端口              1\na\\n\\u{1b}[2J      2\n"
        );
    }
}
