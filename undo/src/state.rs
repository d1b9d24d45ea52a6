//! States, and whose change it is.

use std::any::Any;

use crate::log::Place;

/// One change that is to be taken back.
#[derive(Debug)]
pub struct Change<'a> {
    place: Place,
    word: u64,
    value: Option<&'a mut Option<Box<dyn Any + Send>>>,
    took_value: bool,
}

impl<'a> Change<'a> {
    pub(crate) fn new(
        place: Place,
        word: u64,
        value: Option<&'a mut Option<Box<dyn Any + Send>>>,
    ) -> Self {
        Self { place, word, value, took_value: false }
    }

    pub(crate) fn took_value(&self) -> bool {
        self.took_value
    }

    /// Whether `field` was changed.
    pub fn is_at<T>(&self, field: &T) -> bool {
        self.place == Place::of(field)
    }

    /// The word that was kept.
    pub fn word(&self) -> u64 {
        self.word
    }

    /// The value that was kept.
    ///
    /// # Panics
    /// If the change kept no value of this type, or it is taken twice.
    pub fn take<T: 'static>(&mut self) -> T {
        self.took_value = true;
        let kept = self.value.as_mut().and_then(|value| value.take());
        *kept.and_then(|kept| kept.downcast().ok()).expect("a field takes what it kept")
    }
}

/// A state whose changes can be taken back.
///
/// Made by [`fields!`](crate::fields), [`variants!`](crate::variants) or
/// [`copied!`](crate::copied), and implemented by the fields themselves.
pub trait State {
    /// Whether the state writes no log and is copied whole before every event instead.
    const COPIED: bool;

    /// Takes `change` back if it was made here, and says whether it was.
    fn revert(&mut self, change: &mut Change<'_>) -> bool;
}

impl<T: State> State for Vec<T> {
    const COPIED: bool = T::COPIED;

    fn revert(&mut self, change: &mut Change<'_>) -> bool {
        self.iter_mut().any(|element| element.revert(change))
    }
}

impl<T: State> State for Box<[T]> {
    const COPIED: bool = T::COPIED;

    fn revert(&mut self, change: &mut Change<'_>) -> bool {
        self.iter_mut().any(|element| element.revert(change))
    }
}

impl<T: State, const N: usize> State for [T; N] {
    const COPIED: bool = T::COPIED;

    fn revert(&mut self, change: &mut Change<'_>) -> bool {
        self.iter_mut().any(|element| element.revert(change))
    }
}

/// States the fields of a struct that may change: each is a [`State`] itself.
///
/// Fields that are not listed never change while a log is kept; the simulation's check mode finds
/// those that do.
///
/// ```
/// # use meikyo_undo::{Cell, Deque, fields};
/// #[derive(Clone, Debug, PartialEq)]
/// struct Port {
///     rate: u64, // never changes
///     queue: Deque<u32>,
///     busy: Cell<bool>,
/// }
/// fields!(Port { queue, busy });
/// ```
#[macro_export]
macro_rules! fields {
    ($type:ident $(<$($parameter:ident),+>)? { $($field:ident),* $(,)? }) => {
        impl $(<$($parameter),+>)? $crate::State for $type $(<$($parameter),+>)? {
            const COPIED: bool = false;

            fn revert(&mut self, change: &mut $crate::Change<'_>) -> bool {
                let _ = &change;
                false $(|| $crate::State::revert(&mut self.$field, change))*
            }
        }
    };
}

/// States that an enum changes through what its variants hold, one [`State`] each.
///
/// ```
/// # use meikyo_undo::{Cell, fields, variants};
/// # #[derive(Clone, Debug, PartialEq)] struct Client { sent: Cell<u64> }
/// # fields!(Client { sent });
/// # #[derive(Clone, Debug, PartialEq)] struct Server { served: Cell<u64> }
/// # fields!(Server { served });
/// #[derive(Clone, Debug, PartialEq)]
/// enum Host {
///     Client(Client),
///     Server(Server),
/// }
/// variants!(Host { Client(Client), Server(Server) });
/// ```
#[macro_export]
macro_rules! variants {
    ($type:ident { $($variant:ident($inner:ty)),+ $(,)? }) => {
        impl $crate::State for $type {
            const COPIED: bool = false $(|| <$inner as $crate::State>::COPIED)+;

            fn revert(&mut self, change: &mut $crate::Change<'_>) -> bool {
                match self {
                    $(Self::$variant(inner) => $crate::State::revert(inner, change),)+
                }
            }
        }
    };
}

/// States that a type keeps no log: it is copied whole before every event that may be taken back.
#[macro_export]
macro_rules! copied {
    ($type:ty) => {
        impl $crate::State for $type {
            const COPIED: bool = true;

            fn revert(&mut self, _change: &mut $crate::Change<'_>) -> bool {
                false
            }
        }
    };
}
