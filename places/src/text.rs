//! A text as TOML, and the lines of what stands in it.

use toml::de::{DeTable, DeValue};

use crate::{Origin, Problem};

/// Where the lines of a text begin.
#[derive(Debug, Clone)]
pub struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    /// Finds the lines of a text; the time is in proportion to its length.
    pub fn new(text: &str) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self { starts: std::iter::once(0).chain(newlines.map(|(at, _)| at + 1)).collect() }
    }

    /// The line that holds the byte at `offset`, 1 for the first.
    pub fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|&start| start <= offset).max(1)
    }
}

/// The table at the top of a file, whose keys and values have spans; `lines` are those of `text`.
///
/// # Errors
/// With everything that is not TOML. What could be read beside that is not given: what was skipped to
/// go on would only make further, false problems.
pub fn read_table<'a>(text: &'a str, lines: &Lines) -> Result<DeTable<'a>, Vec<Problem>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(table.into_inner());
    }
    let problem = |error: &toml::de::Error| {
        let line = error.span().map_or(1, |span| lines.line(span.start));
        let message = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
        Problem::new(Origin::Line(line), "", format!("not valid TOML: {message}"))
    };
    Err(errors.iter().map(problem).collect())
}

/// What a value is, in the words of a problem: `expected ...; found a whole number`.
pub fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a section",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_is_on_the_line_that_an_editor_shows() {
        let content = "a = 1\r\n\nb = \"ü\"\n";
        let lines = Lines::new(content);
        for (offset, letter) in content.char_indices() {
            // An editor counts the line feeds before the letter.
            let expected = 1 + content[..offset].matches('\n').count();
            assert_eq!(lines.line(offset), expected, "{letter:?} at {offset}");
        }
        assert_eq!(Lines::new("").line(0), 1);
    }

    #[test]
    fn what_is_no_toml_is_told_with_its_line_and_nothing_else_is_read() {
        let text = "a = 1\nb = = 2\n";
        let problems = read_table(text, &Lines::new(text)).unwrap_err();
        assert!(problems.iter().all(|problem| problem.line == Some(2)), "{problems:?}");
        assert!(problems[0].text.starts_with("not valid TOML: "), "{problems:?}");
    }
}
