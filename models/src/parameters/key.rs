//! What is known of a key: its name, what its value is, its default and what it is for.

use std::fmt;

use crate::parameters::value::Value;

/// One key of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// As written in the file.
    pub name: &'static str,
    /// What values it takes.
    pub expected: Expected,
    /// Its value if none is given; none: it has no value then.
    pub default: Option<Value>,
    /// What it is for, in a sentence.
    pub doc: &'static str,
    /// What must hold for it to have an effect.
    pub only_with: Option<OnlyWith>,
}

/// A condition under which a key has an effect: another key has one of these words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnlyWith {
    /// The other key, which takes a word.
    pub key: &'static str,
    /// The other key must have any of these words.
    pub words: Vec<&'static str>,
}

impl fmt::Display for OnlyWith {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.words.iter().map(|word| format!("\"{word}\"")).collect();
        write!(f, "{} = {}", self.key, words.join(" or "))
    }
}

/// What values a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// A whole number in this range.
    Count {
        /// The least that is allowed.
        least: u64,
        /// The greatest that is allowed.
        greatest: u64,
    },
    /// A number from 0 to 1.
    Share,
    /// A span of time with its unit.
    Span,
    /// A span of time with its unit, longer than nothing.
    PositiveSpan,
    /// An amount of data with its unit, more than nothing.
    Size,
    /// A data rate with its unit, more than nothing.
    Rate,
    /// One of these words, which stand for the variants of an enum.
    Word(&'static [&'static str]),
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count { least, greatest } => {
                write!(f, "a whole number from {least} to {greatest}")
            }
            Self::Share => f.write_str("a number from 0 to 1"),
            Self::Span => f.write_str("a span of time in quotes such as \"32us\""),
            Self::PositiveSpan => {
                f.write_str("a span of time in quotes such as \"32us\", longer than 0")
            }
            Self::Size => f.write_str("an amount of data in quotes such as \"1500B\", more than 0"),
            Self::Rate => f.write_str("a data rate in quotes such as \"125MiB/s\", more than 0"),
            Self::Word(words) => {
                let words: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
                write!(f, "one of {}", words.join(", "))
            }
        }
    }
}
