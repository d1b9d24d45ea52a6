//! Keys that take one of a few words: enums whose every variant has its word.

use std::fmt;

/// A closed set of alternatives, each with the word that stands for it in a file.
///
/// Made by `choice!`, whose match over the variants does not compile as long as one has no word. A
/// model matches over the enum, never over the words.
pub trait Choice: Copy + PartialEq + fmt::Debug + 'static {
    /// Every alternative, in the order in which they are told.
    const ALL: &'static [Self];
    /// The word of each, in the same order.
    const WORDS: &'static [&'static str];

    /// The word that stands for it.
    fn word(self) -> &'static str;
}

/// What a key that takes a word is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen<C> {
    /// The key whose word it was.
    pub(super) key: &'static str,
    /// The alternative that its word stands for.
    pub(super) value: C,
}

impl<C: Copy> Chosen<C> {
    /// The alternative that was chosen.
    pub fn get(self) -> C {
        self.value
    }
}

/// Gives each variant of an enum its word: `choice!(Lookup { Recursive = "recursive" })`.
macro_rules! choice {
    ($name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        impl $crate::parameters::Choice for $name {
            const ALL: &'static [Self] = &[$(Self::$variant),+];
            const WORDS: &'static [&'static str] = &[$($word),+];

            fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }
    };
}

pub(crate) use choice;
