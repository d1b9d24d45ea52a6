//! A section of the file while it is read: values with their lines, problems noted on the way.

use std::path::Path;

use meikyo_places::{Collected, Lines, Problem, hint, kind_of, nearest};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::keys::{Keys, Kind};
use crate::{LoadError, ObjectCheck, UnfoldError};

/// Texts reach messages, tables and the agents' configuration, where a line is a line.
const NO_CONTROL: &str = "must be one line without control characters";

/// A value and the line where the file says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sourced<T> {
    pub(crate) value: T,
    pub(crate) line: usize,
}

/// What the reading of one file shares: where its lines start, and what is wrong so far.
#[derive(Debug)]
pub(crate) struct Reading {
    lines: Lines,
    problems: Collected,
    /// Who knows which objects there are; this crate knows no OID.
    object_check: Option<ObjectCheck>,
}

impl Reading {
    pub(crate) fn new(lines: Lines, object_check: Option<ObjectCheck>) -> Self {
        Self { lines, problems: Collected::default(), object_check }
    }

    /// The line that holds the byte at `offset`; 1 for the first.
    pub(crate) fn line(&self, offset: usize) -> usize {
        self.lines.line(offset)
    }

    pub(crate) fn note(&mut self, line: usize, key: impl Into<String>, text: impl Into<String>) {
        self.problems.note(line, key, text);
    }

    pub(crate) fn add(&mut self, problem: Problem) {
        self.problems.add(problem);
    }

    /// See [`Collected::note_alike`].
    pub(crate) fn note_alike(
        &mut self,
        line: usize,
        key: String,
        kind_and_subject: (&'static str, &str),
        text: impl FnOnce() -> String,
    ) {
        self.problems.note_alike(line, key, kind_and_subject, text);
    }

    /// Why an object cannot be asked for, if that is known.
    pub(crate) fn check_object(&self, name: &str) -> Result<(), String> {
        self.object_check.map_or(Ok(()), |check| check(name))
    }

    pub(crate) fn has_problems(&self) -> bool {
        !self.problems.is_empty()
    }

    pub(crate) fn into_error(self, path: &Path) -> LoadError {
        LoadError::Invalid(self.problems.into_problems(path))
    }
}

/// A table of the file with the keys that it may hold.
#[derive(Debug, Clone)]
pub(crate) struct Section<'a> {
    /// The keys that lead here, with a dot behind: `hosts.snmp.`; empty at the top.
    path: String,
    keys: Keys,
    table: &'a DeTable<'a>,
    /// The line where it begins.
    pub(crate) line: usize,
}

impl<'a> Section<'a> {
    /// Opens the table and notes every key that it may not hold.
    pub(crate) fn open(
        reading: &mut Reading,
        path: String,
        keys: Keys,
        table: &'a DeTable<'a>,
        line: usize,
    ) -> Self {
        let section = Self { path, keys, table, line };
        for key in table.keys() {
            let name: &str = key.get_ref();
            if !keys.iter().any(|known| known.name == name) {
                let line = reading.line(key.span().start);
                let shown = name.escape_debug().to_string();
                reading.note(line, section.key(&shown), section.unknown(name));
            }
        }
        section
    }

    fn unknown(&self, name: &str) -> String {
        let names = || self.keys.iter().map(|key| key.name);
        let allowed: Vec<_> = names().map(|name| format!("`{name}`")).collect();
        format!("unknown key{}; allowed are {}", hint(name, names()), allowed.join(", "))
    }

    /// The full name of one of its keys.
    pub(crate) fn key(&self, name: &str) -> String {
        format!("{}{name}", self.path)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.table.contains_key(name)
    }

    /// Whether it has the key, or an unknown one that was noted and probably means it: that the key is
    /// missing is then no news.
    pub(crate) fn means(&self, name: &str) -> bool {
        let known = || self.keys.iter().map(|key| key.name);
        self.table.keys().map(|key| key.get_ref().as_ref()).any(|key: &str| {
            key == name
                || (!known().any(|known| known == key) && nearest(key, known()) == Some(name))
        })
    }

    /// Notes a problem with one of its keys, at the key's line.
    pub(crate) fn note(&self, reading: &mut Reading, name: &str, text: impl Into<String>) {
        let line = self.line_of(reading, name);
        reading.note(line, self.key(name), text);
    }

    /// The line of one of its keys; of the section where the key is missing.
    pub(crate) fn line_of(&self, reading: &Reading, name: &str) -> usize {
        self.table.get(name).map_or(self.line, |value| reading.line(value.span().start))
    }

    /// A text, read by `parse`; its error is noted.
    pub(crate) fn parsed<T, E: ToString>(
        &self,
        reading: &mut Reading,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<Sourced<T>> {
        let text = self.text(reading, name)?;
        match parse(&text.value) {
            Ok(value) => Some(Sourced { value, line: text.line }),
            Err(error) => {
                reading.note(text.line, self.key(name), error.to_string());
                None
            }
        }
    }

    /// A text in quotes that is not empty.
    pub(crate) fn text(&self, reading: &mut Reading, name: &str) -> Option<Sourced<String>> {
        let value = self.table.get(name)?;
        let line = reading.line(value.span().start);
        match value.get_ref() {
            DeValue::String(text) if text.trim().is_empty() => {
                reading.note(line, self.key(name), "must not be empty");
                None
            }
            DeValue::String(text) if text.contains(char::is_control) => {
                reading.note(line, self.key(name), NO_CONTROL);
                None
            }
            DeValue::String(text) => Some(Sourced { value: text.to_string(), line }),
            other => {
                self.wrong_kind(reading, line, name, other);
                None
            }
        }
    }

    /// One of the words that the key allows, by its position among them.
    pub(crate) fn word(&self, reading: &mut Reading, name: &str) -> Option<Sourced<&'static str>> {
        let Kind::Word(words) = self.kind(name) else { return None };
        self.parsed(reading, name, |text| {
            words.iter().find(|word| **word == text).copied().ok_or_else(|| {
                let meant = hint(text, words.iter().copied());
                let allowed: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
                format!("\"{text}\" is not known{meant}; allowed are {}", allowed.join(", "))
            })
        })
    }

    /// A whole number in the key's range.
    pub(crate) fn count(&self, reading: &mut Reading, name: &str) -> Option<Sourced<u32>> {
        let Kind::Count(least, greatest) = self.kind(name) else { return None };
        let value = self.table.get(name)?;
        let line = reading.line(value.span().start);
        let DeValue::Integer(digits) = value.get_ref() else {
            self.wrong_kind(reading, line, name, value.get_ref());
            return None;
        };
        let number = u32::from_str_radix(digits.as_str(), digits.radix()).ok();
        let Some(value) = number.filter(|number| (least..=greatest).contains(number)) else {
            let text = format!("{digits} is out of range; allowed are {least} to {greatest}");
            reading.note(line, self.key(name), text);
            return None;
        };
        Some(Sourced { value, line })
    }

    /// The digits of a number, or a text with a number in it.
    pub(crate) fn number(&self, reading: &mut Reading, name: &str) -> Option<Sourced<String>> {
        let value = self.table.get(name)?;
        let line = reading.line(value.span().start);
        let digits = match value.get_ref() {
            DeValue::Integer(digits) if digits.radix() == 10 => digits.as_str(),
            DeValue::Float(digits) => digits.as_str(),
            DeValue::String(_) => return self.text(reading, name),
            other => {
                self.wrong_kind(reading, line, name, other);
                return None;
            }
        };
        Some(Sourced { value: digits.to_owned(), line })
    }

    /// true or false.
    pub(crate) fn flag(&self, reading: &mut Reading, name: &str) -> Option<Sourced<bool>> {
        let value = self.table.get(name)?;
        let line = reading.line(value.span().start);
        let DeValue::Boolean(value) = value.get_ref() else {
            self.wrong_kind(reading, line, name, value.get_ref());
            return None;
        };
        Some(Sourced { value: *value, line })
    }

    /// A list of texts, each with its line; a single text counts as a list of one where `Names` are
    /// expected.
    pub(crate) fn texts(
        &self,
        reading: &mut Reading,
        name: &str,
    ) -> Option<Sourced<Vec<Sourced<String>>>> {
        let value = self.table.get(name)?;
        let line = reading.line(value.span().start);
        let one = std::slice::from_ref(value);
        let items: &[Spanned<DeValue<'_>>] = match (value.get_ref(), self.kind(name)) {
            (DeValue::Array(items), _) => items,
            (DeValue::String(_), Kind::Names) => one,
            (other, _) => {
                self.wrong_kind(reading, line, name, other);
                return None;
            }
        };
        if items.is_empty() {
            reading.note(line, self.key(name), "must not be empty");
            return None;
        }
        let mut texts = Vec::with_capacity(items.len());
        for item in items {
            let line = reading.line(item.span().start);
            match item.get_ref() {
                DeValue::String(text) if text.contains(char::is_control) => {
                    reading.note(line, self.key(name), NO_CONTROL);
                }
                DeValue::String(text) => texts.push(Sourced { value: text.to_string(), line }),
                other => self.wrong_kind(reading, line, name, other),
            }
        }
        Some(Sourced { value: texts, line })
    }

    /// A section inside of this one.
    pub(crate) fn section(&self, reading: &mut Reading, name: &str) -> Option<Self> {
        let Kind::Section(keys) = self.kind(name) else { return None };
        let value = self.table.get(name)?;
        self.open_value(reading, name, keys, value, format!("{}.", self.key(name)))
    }

    /// A list of sections inside of this one.
    pub(crate) fn sections(&self, reading: &mut Reading, name: &str) -> Vec<Self> {
        let (Kind::Sections(keys), Some(value)) = (self.kind(name), self.table.get(name)) else {
            return Vec::new();
        };
        let path = format!("{}.", self.key(name));
        match value.get_ref() {
            DeValue::Array(items) => items
                .iter()
                .filter_map(|item| self.open_value(reading, name, keys, item, path.clone()))
                .collect(),
            other => {
                let line = reading.line(value.span().start);
                self.wrong_kind(reading, line, name, other);
                Vec::new()
            }
        }
    }

    /// Sections by their names, in the order of the file.
    pub(crate) fn named(&self, reading: &mut Reading, name: &str) -> Vec<(String, Self)> {
        let (Kind::Named(keys), Some(value)) = (self.kind(name), self.table.get(name)) else {
            return Vec::new();
        };
        let DeValue::Table(table) = value.get_ref() else {
            let line = reading.line(value.span().start);
            self.wrong_kind(reading, line, name, value.get_ref());
            return Vec::new();
        };
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let mut sections = Vec::new();
        for (key, value) in entries {
            let path = format!("{}.{}.", self.key(name), key.get_ref().escape_debug());
            if key.get_ref().contains(char::is_control) {
                let line = reading.line(key.span().start);
                reading.note(line, path.trim_end_matches('.'), NO_CONTROL);
                continue;
            }
            if let Some(section) = self.open_value(reading, name, keys, value, path) {
                sections.push((key.get_ref().to_string(), section));
            }
        }
        sections
    }

    fn open_value(
        &self,
        reading: &mut Reading,
        name: &str,
        keys: Keys,
        value: &'a Spanned<DeValue<'a>>,
        path: String,
    ) -> Option<Self> {
        let line = reading.line(value.span().start);
        match value.get_ref() {
            DeValue::Table(table) => Some(Self::open(reading, path, keys, table, line)),
            other => {
                self.wrong_kind(reading, line, name, other);
                None
            }
        }
    }

    fn kind(&self, name: &str) -> Kind {
        self.keys
            .iter()
            .find(|key| key.name == name)
            .map(|key| key.kind)
            .expect("the parser asks only for keys of the section's list")
    }

    fn wrong_kind(&self, reading: &mut Reading, line: usize, name: &str, found: &DeValue<'_>) {
        let expected = match self.kind(name) {
            Kind::Text => "a text in quotes".to_owned(),
            Kind::Names => "a text in quotes such as \"node[001-225]\", or a list of them".into(),
            Kind::Word(words) => {
                let words: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
                format!("one of {}", words.join(", "))
            }
            Kind::Secret => "a reference in quotes, \"env:NAME\" or \"file:PATH\"".into(),
            Kind::Span => "a span of time in quotes such as \"100ms\"".into(),
            Kind::Count(least, greatest) => {
                format!("a whole number from {least} to {greatest}, without quotes")
            }
            Kind::Level => {
                "a number, or a text with a number and its unit such as \"900Mbit/s\"".into()
            }
            Kind::Flag => "true or false".into(),
            Kind::Measures => "a list of texts such as [\"interfaces\", \"load\"]".into(),
            Kind::Section(keys) => format!("a section with the keys {}", list_keys(keys)),
            Kind::Sections(_) => format!("sections, each under its own `[[{}]]`", self.key(name)),
            Kind::Named(_) => format!("sections by name such as `[{}.rack1]`", self.key(name)),
        };
        let text = format!("expected {expected}; found {}", kind_of(found));
        reading.note(line, self.key(name), text);
    }
}

fn list_keys(keys: Keys) -> String {
    let names: Vec<_> = keys.iter().map(|key| format!("`{}`", key.name)).collect();
    names.join(", ")
}

/// Names of a key, unfolded, each with its line.
pub(crate) fn read_names(
    reading: &mut Reading,
    section: &Section<'_>,
    key: &str,
    unfold: fn(&str) -> Result<Vec<String>, UnfoldError>,
) -> Vec<Sourced<String>> {
    let mut names = Vec::new();
    for text in section.texts(reading, key).map(|texts| texts.value).unwrap_or_default() {
        match unfold(&text.value) {
            Ok(unfolded) => {
                names.extend(unfolded.into_iter().map(|value| Sourced { value, line: text.line }))
            }
            Err(error) => reading.note(text.line, section.key(key), error.to_string()),
        }
    }
    names
}
