//! States, and whose change it is.

use std::any::Any;

use crate::wire::WireError;

/// The field that was changed, by its address. Addresses are only compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(usize);

impl Place {
    /// The place of `field`, for as long as it is not moved.
    pub fn of<T>(field: &T) -> Self {
        Self(std::ptr::from_ref(field).addr())
    }
}

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
    pub fn old_value<T: 'static>(&mut self) -> T {
        self.took_value = true;
        let kept = self.value.as_mut().and_then(|value| value.take());
        *kept.and_then(|kept| kept.downcast().ok()).expect("a field takes what it kept")
    }
}

/// A state whose changes can be taken back.
///
/// Made by `#[derive(State)]`, and implemented by the fields themselves. Every field must be a state, or
/// say `#[state(fixed)]` if it never changes while a log is kept; one that is forgotten does not compile:
///
/// ```
/// # use meikyo_undo::{Cell, Deque, State};
/// #[derive(Clone, Debug, PartialEq, State)]
/// struct Port {
///     #[state(fixed)]
///     rate: u64,
///     queue: Deque<u32>,
///     busy: Cell<bool>,
/// }
///
/// #[derive(Clone, Debug, PartialEq, State)]
/// enum Device {
///     Idle,
///     Switch { ports: Vec<Port> },
///     Host(Port),
/// }
/// ```
///
/// ```compile_fail
/// # use meikyo_undo::{Cell, State};
/// #[derive(State)]
/// struct Port {
///     rate: u64, // neither a state nor fixed
///     busy: Cell<bool>,
/// }
/// ```
///
/// [`fields!`](crate::fields), [`variants!`](crate::variants) and [`copied!`](crate::copied) do the same
/// without a derive, by lists that are written by hand.
#[diagnostic::on_unimplemented(
    message = "changes of `{Self}` cannot be taken back",
    label = "not a state",
    note = "wrap it in `Cell` or `Held`, or mark the field `#[state(fixed)]` if it never changes"
)]
pub trait State {
    /// Whether the state writes no log and is copied whole before every event instead.
    const COPIED: bool;

    /// Takes `change` back if it was made here, and says whether it was.
    fn revert(&mut self, change: &mut Change<'_>) -> bool;

    /// Appends what may change as bytes to `into`.
    ///
    /// # Errors
    /// If the type of something in here cannot be written as bytes.
    fn save(&self, into: &mut Vec<u8>) -> Result<(), WireError>;

    /// Takes what may change from the beginning of `from`, where a state wrote it that was made the
    /// same way.
    ///
    /// # Errors
    /// If no such thing stands there.
    fn load(&mut self, from: &mut &[u8]) -> Result<(), WireError>;
}

/// `save` and `load` of a state that is a sequence of states; how many there are never changes.
macro_rules! bytes_of_elements {
    () => {
        fn save(&self, into: &mut Vec<u8>) -> Result<(), WireError> {
            self.iter().try_for_each(|element| element.save(into))
        }

        fn load(&mut self, from: &mut &[u8]) -> Result<(), WireError> {
            self.iter_mut().try_for_each(|element| element.load(from))
        }
    };
}

impl<T: State> State for Vec<T> {
    const COPIED: bool = T::COPIED;

    fn revert(&mut self, change: &mut Change<'_>) -> bool {
        self.iter_mut().any(|element| element.revert(change))
    }

    bytes_of_elements!();
}

impl<T: State> State for Box<T> {
    const COPIED: bool = T::COPIED;

    fn revert(&mut self, change: &mut Change<'_>) -> bool {
        (**self).revert(change)
    }

    fn save(&self, into: &mut Vec<u8>) -> Result<(), WireError> {
        (**self).save(into)
    }

    fn load(&mut self, from: &mut &[u8]) -> Result<(), WireError> {
        (**self).load(from)
    }
}

impl<T: State> State for Option<T> {
    const COPIED: bool = T::COPIED;

    fn revert(&mut self, change: &mut Change<'_>) -> bool {
        self.iter_mut().any(|element| element.revert(change))
    }

    bytes_of_elements!();
}

impl<T: State> State for Box<[T]> {
    const COPIED: bool = T::COPIED;

    fn revert(&mut self, change: &mut Change<'_>) -> bool {
        self.iter_mut().any(|element| element.revert(change))
    }

    bytes_of_elements!();
}

impl<T: State, const N: usize> State for [T; N] {
    const COPIED: bool = T::COPIED;

    fn revert(&mut self, change: &mut Change<'_>) -> bool {
        self.iter_mut().any(|element| element.revert(change))
    }

    bytes_of_elements!();
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

            $crate::bytes_of_fields!($($field),*);
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

            $crate::bytes_of_variants!($($variant),+);
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

            $crate::bytes_of_copied!();
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::{Cell, Deque, Mark, State, UndoLog};

    #[derive(Clone, Debug, PartialEq, State)]
    struct Pair<T: Clone + Send + crate::Wire + 'static>(Cell<u32>, #[state(fixed)] u8, Deque<T>);

    #[derive(Clone, Debug, PartialEq, State)]
    enum Device {
        Nothing,
        Named { pair: Pair<u16>, spare: Option<Cell<bool>> },
        Listed(Vec<Cell<i64>>, Cell<u8>),
    }

    #[derive(Clone, Debug, PartialEq, State)]
    #[state(copied)]
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Whole {
        plain: u64,
    }

    #[derive(Clone, Debug, PartialEq, State)]
    struct Around {
        cell: Cell<u8>,
        whole: Whole,
    }

    #[test]
    fn every_field_of_a_derived_state_is_taken_back() {
        let mut devices = vec![
            Device::Nothing,
            Device::Named {
                pair: Pair(Cell::new(1), 2, Deque::default()),
                spare: Some(Cell::new(false)),
            },
            Device::Listed(vec![Cell::new(-1), Cell::new(-2)], Cell::new(3)),
        ];
        let before = devices.clone();
        let mut log = UndoLog::new();
        for device in &mut devices {
            match device {
                Device::Nothing => {}
                Device::Named { pair, spare } => {
                    pair.0.set(&mut log, 9);
                    pair.2.push_back(&mut log, 4);
                    spare.as_mut().expect("it is there").set(&mut log, true);
                }
                Device::Listed(list, cell) => {
                    list[1].set(&mut log, 7);
                    cell.set(&mut log, 8);
                }
            }
        }
        assert_ne!(devices, before);
        log.revert(Mark::default(), log.mark(), &mut devices).unwrap();
        assert_eq!(devices, before);
    }

    #[test]
    fn what_holds_a_copied_state_is_copied_itself() {
        const { assert!(Whole::COPIED && Around::COPIED && !Device::COPIED) };
    }
}
