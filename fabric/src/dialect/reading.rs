//! Texts line by line, and what is wrong with them.

use thiserror::Error;

use crate::{Vlan, VlanSet};

/// Why a text of a switch is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}{problem}", place(*.line, .text))]
pub struct ParseError {
    /// The line, the first being 1; `None` if the text as a whole is wrong.
    pub line: Option<usize>,
    /// The line itself, without blanks at its ends; empty if `line` is `None`.
    pub text: String,
    /// What is wrong with it, and what is allowed.
    pub problem: String,
}

fn place(line: Option<usize>, text: &str) -> String {
    line.map_or_else(String::new, |line| format!("line {line}: `{text}`: "))
}

impl ParseError {
    /// What is wrong with the text as a whole.
    pub(super) const fn whole(problem: String) -> Self {
        Self { line: None, text: String::new(), problem }
    }
}

/// A line of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    /// Its number, the first being 1.
    pub(super) number: usize,
    /// Without blanks at its ends.
    pub(super) text: &'a str,
}

impl Line<'_> {
    /// What is wrong with this line.
    pub(super) fn wrong(&self, problem: impl Into<String>) -> ParseError {
        ParseError { line: Some(self.number), text: self.text.to_owned(), problem: problem.into() }
    }

    /// A word of it as a number.
    pub(super) fn number<T: std::str::FromStr>(&self, word: &str) -> Result<T, ParseError> {
        word.parse().map_err(|_| self.wrong(format!("`{word}` is not a number that fits here")))
    }

    /// A word of it as a VLAN.
    pub(super) fn vlan(&self, word: &str) -> Result<Vlan, ParseError> {
        word.parse().map_err(|error: crate::ParseVlanError| self.wrong(error.to_string()))
    }

    /// A word of it as a set of VLANs.
    pub(super) fn vlans(&self, word: &str) -> Result<VlanSet, ParseError> {
        word.parse().map_err(|error: crate::ParseVlanError| self.wrong(error.to_string()))
    }
}

/// The lines of a text that say something, numbered, without blanks at their ends: not the empty ones,
/// nor those that start with what starts a comment.
pub(super) fn statements(text: &str, comment: char) -> impl Iterator<Item = Line<'_>> {
    let lines = text.lines().enumerate();
    lines
        .map(|(at, text)| Line { number: at + 1, text: text.trim() })
        .filter(move |line| !line.text.is_empty() && !line.text.starts_with(comment))
}
