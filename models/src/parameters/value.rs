//! Values as they are read from a file or a command line.

use std::fmt;

use meikyo_places::kind_of;
use meikyo_units::{BitsPerSecond, Bytes, Nanos};
use toml::de::DeValue;

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

/// A value of the kind that its key expects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Count(u64),
    /// A number from 0 to 1.
    Share(f64),
    /// A span of simulated time.
    Span(Nanos),
    /// An amount of data.
    Size(Bytes),
    /// A rate of data.
    Rate(BitsPerSecond),
    /// One of the words that the key allows.
    Word(&'static str),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => count.fmt(f),
            Self::Share(share) => share.fmt(f),
            Self::Span(span) => span.fmt(f),
            Self::Size(size) => size.fmt(f),
            Self::Rate(rate) => rate.fmt(f),
            Self::Word(word) => word.fmt(f),
        }
    }
}

impl Value {
    /// The value that a text without quotes means.
    pub(crate) fn from_text(expected: Expected, text: &str) -> Result<Self, String> {
        let told = |error: meikyo_units::ParseQuantityError| error.to_string();
        let value = match expected {
            Expected::Count { .. } => {
                let digits = text.replace('_', "");
                let count = digits.parse().map_err(|_| mismatch(expected, &quoted(text)))?;
                Self::Count(count)
            }
            Expected::Share => {
                Self::Share(text.parse().map_err(|_| mismatch(expected, &quoted(text)))?)
            }
            Expected::Span | Expected::PositiveSpan => Self::Span(text.parse().map_err(told)?),
            Expected::Size => Self::Size(text.parse().map_err(told)?),
            Expected::Rate => Self::Rate(text.parse().map_err(told)?),
            Expected::Word(words) => {
                let word = words.iter().find(|word| **word == text);
                Self::Word(word.ok_or_else(|| mismatch(expected, &quoted(text)))?)
            }
        };
        value.within(expected)
    }

    /// The value that a file says.
    pub(crate) fn from_toml(expected: Expected, value: &DeValue<'_>) -> Result<Self, String> {
        match (expected, value) {
            (Expected::Count { .. }, DeValue::Integer(digits)) => {
                let count = u64::from_str_radix(digits.as_str(), digits.radix());
                count
                    .map_err(|_| mismatch(expected, digits.as_str()))
                    .map(Self::Count)?
                    .within(expected)
            }
            (Expected::Share, DeValue::Integer(digits)) if digits.radix() == 10 => {
                Self::from_text(expected, digits.as_str())
            }
            (Expected::Share, DeValue::Float(digits)) => Self::from_text(expected, digits.as_str()),
            (Expected::Count { .. } | Expected::Share, _) => {
                Err(mismatch(expected, kind_of(value)))
            }
            (
                Expected::Span
                | Expected::PositiveSpan
                | Expected::Size
                | Expected::Rate
                | Expected::Word(_),
                DeValue::String(text),
            ) => Self::from_text(expected, text),
            (
                Expected::Span
                | Expected::PositiveSpan
                | Expected::Size
                | Expected::Rate
                | Expected::Word(_),
                other,
            ) => Err(mismatch(expected, kind_of(other))),
        }
    }

    /// The value if it is in the range that is expected.
    fn within(self, expected: Expected) -> Result<Self, String> {
        let fits = match self {
            Self::Count(count) => match expected {
                Expected::Count { least, greatest } => (least..=greatest).contains(&count),
                other => unreachable!("a count was read where {other} was expected"),
            },
            Self::Share(share) => (0.0..=1.0).contains(&share),
            Self::Span(span) => expected == Expected::Span || span > Nanos::ZERO,
            Self::Size(size) => size > Bytes::ZERO,
            Self::Rate(rate) => rate.get() > 0,
            Self::Word(_) => true,
        };
        if fits { Ok(self) } else { Err(mismatch(expected, &self.to_string())) }
    }
}

fn quoted(text: &str) -> String {
    format!("`{}`", text.escape_debug())
}

fn mismatch(expected: Expected, found: &str) -> String {
    format!("expected {expected}; found {found}")
}
