//! What is known of a key: its name, what its value is, its default and what it is for.

use std::fmt;

use crate::parameters::value::{Expected, Value};

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
