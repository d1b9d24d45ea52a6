//! Values as bytes, so that states and messages can go to other processes.
//!
//! The bytes are those of [postcard](https://postcard.jamesmunns.com/wire-format): they name no types
//! and no fields, so the reader must be the same program as the writer.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// What can be written as bytes and read back: everything that [`serde`] knows how to.
pub trait Wire: Serialize + DeserializeOwned {}
impl<T: Serialize + DeserializeOwned> Wire for T {}

/// A value that cannot be written as bytes, or bytes that are no such value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a value of type `{name}` cannot be written as bytes or read from them")]
pub struct WireError {
    name: &'static str,
    source: postcard::Error,
}

impl WireError {
    fn of<T>(source: postcard::Error) -> Self {
        Self { name: std::any::type_name::<T>(), source }
    }
}

/// Appends `value` to `into`.
///
/// # Errors
/// If its type leaves out fields or lets readers guess, as some of [`serde`]'s attributes ask.
pub fn write_value<T: Serialize>(value: &T, into: &mut Vec<u8>) -> Result<(), WireError> {
    *into = postcard::to_extend(value, std::mem::take(into)).map_err(WireError::of::<T>)?;
    Ok(())
}

/// Takes a value from the beginning of `from`.
///
/// # Errors
/// If there is none.
pub fn read_value<T: DeserializeOwned>(from: &mut &[u8]) -> Result<T, WireError> {
    let (value, rest) = postcard::take_from_bytes(from).map_err(WireError::of::<T>)?;
    *from = rest;
    Ok(value)
}

/// The methods of [`State`](crate::State) that make bytes of the fields given, for a state that is
/// implemented by hand.
#[macro_export]
macro_rules! bytes_of_fields {
    ($($field:ident),* $(,)?) => {
        fn save(&self, into: &mut ::std::vec::Vec<u8>) -> Result<(), $crate::WireError> {
            let _ = &into;
            $($crate::State::save(&self.$field, into)?;)*
            Ok(())
        }

        fn load(&mut self, from: &mut &[u8]) -> Result<(), $crate::WireError> {
            let _ = &from;
            $($crate::State::load(&mut self.$field, from)?;)*
            Ok(())
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! bytes_of_variants {
    ($($variant:ident),+) => {
        fn save(&self, into: &mut ::std::vec::Vec<u8>) -> Result<(), $crate::WireError> {
            match self {
                $(Self::$variant(inner) => $crate::State::save(inner, into),)+
            }
        }

        fn load(&mut self, from: &mut &[u8]) -> Result<(), $crate::WireError> {
            match self {
                $(Self::$variant(inner) => $crate::State::load(inner, from),)+
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! bytes_of_arms {
    ($(($($pattern:tt)+) => [$($field:ident)*]),*) => {
        fn save(&self, into: &mut ::std::vec::Vec<u8>) -> Result<(), $crate::WireError> {
            let _ = &into;
            match self {
                $($($pattern)+ => { $($crate::State::save($field, into)?;)* })*
            }
            Ok(())
        }

        fn load(&mut self, from: &mut &[u8]) -> Result<(), $crate::WireError> {
            let _ = &from;
            match self {
                $($($pattern)+ => { $($crate::State::load($field, from)?;)* })*
            }
            Ok(())
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! bytes_of_copied {
    () => {
        fn save(&self, into: &mut ::std::vec::Vec<u8>) -> Result<(), $crate::WireError> {
            $crate::write_value(self, into)
        }

        fn load(&mut self, from: &mut &[u8]) -> Result<(), $crate::WireError> {
            *self = $crate::read_value(from)?;
            Ok(())
        }
    };
}

/// The same for what a collection keeps, which is its only field.
macro_rules! bytes_of_inside {
    () => {
        fn save(&self, into: &mut Vec<u8>) -> Result<(), $crate::WireError> {
            $crate::write_value(&self.0, into)
        }

        fn load(&mut self, from: &mut &[u8]) -> Result<(), $crate::WireError> {
            self.0 = $crate::read_value(from)?;
            Ok(())
        }
    };
}
pub(crate) use bytes_of_inside;

#[cfg(test)]
mod tests {
    use crate::{Cell, Deque, Forget, Held, List, Map, State};

    #[derive(Clone, Debug, PartialEq, Default)]
    struct Shelf {
        place: u32,
        books: Map<String, Option<u32>>,
        queue: Deque<u8>,
        list: List<(u64, bool)>,
        name: Held<String>,
        weight: Cell<f64>,
        parts: Vec<Part>,
    }
    crate::fields!(Shelf { books, queue, list, name, weight, parts });

    #[derive(Clone, Debug, PartialEq)]
    enum Part {
        Board(Cell<i64>),
        Whole(Whole),
    }
    crate::variants!(Part { Board(Cell<i64>), Whole(Whole) });

    #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    struct Whole(Vec<u16>);
    crate::copied!(Whole);

    #[test]
    fn a_state_is_read_back_into_one_that_was_made_the_same_way() {
        let made = Shelf {
            place: 7,
            parts: vec![Part::Board(Cell::new(0)), Part::Whole(Whole(Vec::new()))],
            ..Shelf::default()
        };
        let mut used = made.clone();
        used.books.insert(&mut Forget, "Euler".to_owned(), Some(3));
        used.books.insert(&mut Forget, "Abel".to_owned(), None);
        used.queue.push_front(&mut Forget, 255);
        used.list.push(&mut Forget, (u64::MAX, true));
        used.name.set(&mut Forget, "north".to_owned());
        used.weight.set(&mut Forget, f64::NEG_INFINITY);
        used.parts[0] = Part::Board(Cell::new(-5));
        used.parts[1] = Part::Whole(Whole(vec![1, 2]));

        let mut bytes = Vec::new();
        used.save(&mut bytes).unwrap();
        let (mut read, mut from) = (made, bytes.as_slice());
        read.load(&mut from).unwrap();
        assert_eq!((&read, from), (&used, [].as_slice()));
        assert!(read.load(&mut from).is_err());
    }
}
