//! Fields that hold one value.

use std::ops::Add;

use meikyo_units::{Nanos, SimTime};

use crate::Wire;
use crate::bytes_of_inside;
use crate::log::Log;
use crate::state::{Change, Place, State};
use crate::{WireError, read_value, write_value};

/// A value that fits into 64 bits and comes back from them unchanged.
pub trait Word: Copy {
    /// The value as bits.
    fn to_word(self) -> u64;
    /// The value that [`Word::to_word`] made bits of.
    fn from_word(word: u64) -> Self;
}

macro_rules! unsigned_words {
    ($($type:ty),*) => {
        $(impl Word for $type {
            fn to_word(self) -> u64 {
                u64::from(self)
            }
            fn from_word(word: u64) -> Self {
                Self::try_from(word).expect("the word was made of this type")
            }
        })*
    };
}
unsigned_words!(u8, u16, u32, u64);

macro_rules! signed_words {
    ($($type:ty),*) => {
        $(impl Word for $type {
            fn to_word(self) -> u64 {
                i64::from(self).cast_unsigned()
            }
            fn from_word(word: u64) -> Self {
                Self::try_from(word.cast_signed()).expect("the word was made of this type")
            }
        })*
    };
}
signed_words!(i8, i16, i32, i64);

impl Word for usize {
    fn to_word(self) -> u64 {
        u64::try_from(self).expect("usize has at most 64 bits")
    }
    fn from_word(word: u64) -> Self {
        Self::try_from(word).expect("the word was made of this type")
    }
}

impl Word for bool {
    fn to_word(self) -> u64 {
        u64::from(self)
    }
    fn from_word(word: u64) -> Self {
        word != 0
    }
}

impl Word for f64 {
    fn to_word(self) -> u64 {
        self.to_bits()
    }
    fn from_word(word: u64) -> Self {
        Self::from_bits(word)
    }
}

impl Word for Nanos {
    fn to_word(self) -> u64 {
        self.get()
    }
    fn from_word(word: u64) -> Self {
        Self::new(word)
    }
}

impl Word for SimTime {
    fn to_word(self) -> u64 {
        self.as_nanos()
    }
    fn from_word(word: u64) -> Self {
        Self::from_nanos(word)
    }
}

/// A field of at most 64 bits.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct Cell<T>(T);

impl<T: Word> Cell<T> {
    /// A cell that holds `value`.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// The present value, by copy.
    pub fn get(&self) -> T {
        self.0
    }

    /// Replaces the value.
    pub fn set(&mut self, log: &mut impl Log, value: T) {
        log.word(Place::of(self), self.0.to_word());
        self.0 = value;
    }
}

impl<T: Word + Add<Output = T>> Cell<T> {
    /// Makes the value greater by `amount`.
    pub fn add(&mut self, log: &mut impl Log, amount: T) {
        self.set(log, self.0 + amount);
    }
}

impl<T: Word> State for Cell<T> {
    const COPIED: bool = false;

    fn revert(&mut self, change: &mut Change<'_>) -> bool {
        let mine = change.is_at(self);
        if mine {
            self.0 = T::from_word(change.word());
        }
        mine
    }

    fn save(&self, into: &mut Vec<u8>) -> Result<(), WireError> {
        write_value(&self.0.to_word(), into)
    }

    fn load(&mut self, from: &mut &[u8]) -> Result<(), WireError> {
        self.0 = T::from_word(read_value(from)?);
        Ok(())
    }
}

/// A field of any type, replaced as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Held<T>(T);

impl<T: Send + 'static> Held<T> {
    /// A field that holds `value`.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// The present value.
    pub fn get(&self) -> &T {
        &self.0
    }

    /// Replaces the value.
    pub fn set(&mut self, log: &mut impl Log, value: T) {
        let place = Place::of(self);
        log.value(place, 0, std::mem::replace(&mut self.0, value));
    }

    /// Replaces the value, and gives the one that it replaces; only a log that keeps copies it.
    pub fn replace<L: Log>(&mut self, log: &mut L, value: T) -> T
    where
        T: Clone,
    {
        let old = std::mem::replace(&mut self.0, value);
        if L::KEEPS {
            log.value(Place::of(self), 0, old.clone());
        }
        old
    }
}

impl<T: Send + Wire + 'static> State for Held<T> {
    const COPIED: bool = false;

    fn revert(&mut self, change: &mut Change<'_>) -> bool {
        let mine = change.is_at(self);
        if mine {
            self.0 = change.old_value();
        }
        mine
    }

    bytes_of_inside!();
}
