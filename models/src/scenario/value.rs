//! The values of a scenario.

use std::fmt;

use meikyo_units::{BitsPerSecond, Bytes, Nanos};
use toml::de::DeValue;

use crate::scenario::keys::Expected;

/// A value of the kind that its key expects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value {
    Count(u64),
    Share(f64),
    Span(Nanos),
    Size(Bytes),
    Rate(BitsPerSecond),
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
            (Expected::Count { .. } | Expected::Share, _) => Err(mismatch(expected, kind(value))),
            (_, DeValue::String(text)) => Self::from_text(expected, text),
            _ => Err(mismatch(expected, kind(value))),
        }
    }

    /// The value if it is in the range that is expected.
    fn within(self, expected: Expected) -> Result<Self, String> {
        let fits = match (expected, self) {
            (Expected::Count { least, greatest }, Self::Count(count)) => {
                (least..=greatest).contains(&count)
            }
            (Expected::Share, Self::Share(share)) => (0.0..=1.0).contains(&share),
            (Expected::PositiveSpan, Self::Span(span)) => span > Nanos::ZERO,
            (Expected::Size, Self::Size(size)) => size > Bytes::ZERO,
            (Expected::Rate, Self::Rate(rate)) => rate.get() > 0,
            _ => true,
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

fn kind(value: &DeValue<'_>) -> &'static str {
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
