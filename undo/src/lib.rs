//! Fields and collections that remember how to take their changes back.
//!
//! A state is a struct of [`Cell`], [`Held`], [`List`], [`Deque`] and [`Map`] fields. Whoever changes
//! one hands a [`Log`] along: [`UndoLog`] writes down what was there before, so that a span of changes
//! can be taken back; [`Forget`] writes nothing, and a change is then a plain store.
//!
//! ```
//! use meikyo_undo::{Cell, Forget, Map, State, UndoLog};
//!
//! #[derive(Clone, Debug, PartialEq, Default, State)]
//! struct Shelf {
//!     books: Map<String, u32>,
//!     loans: Cell<u64>,
//! }
//!
//! let mut shelf = Shelf::default();
//! shelf.books.insert(&mut Forget, "Ranganathan".to_owned(), 5);
//! let before = shelf.clone();
//!
//! let mut log = UndoLog::new();
//! let start = log.mark();
//! shelf.loans.add(&mut log, 1);
//! shelf.books.remove(&mut log, "Ranganathan");
//! log.revert(start, log.mark(), &mut shelf)?;
//! assert_eq!(shelf, before);
//! # Ok::<(), meikyo_undo::Unclaimed>(())
//! ```
//!
//! # Cost
//!
//! A changed [`Cell`] costs 16 bytes in the log, every other change 16 bytes and one allocation for
//! what was there before. Taking a change back asks the fields of the state in turn whose it is, so it
//! costs time in proportion to their number; that is the rare direction. With [`Forget`] nothing is
//! copied, kept or asked.
//!
//! A change belongs to the field at its address: a state must not be moved between a change and its
//! taking back. The address is compared, never followed.
//!
//! # As bytes
//!
//! Every state can be written as bytes and read back into one that was made the same way ([`State`]'s
//! `save` and `load`): only what may change is written. What fields and collections hold must be
//! `serde`'s.
//!
//! This crate knows no simulation: a metadata service uses the same map in a real server.

// Derived code names this crate as others do.
#[cfg(test)]
extern crate self as meikyo_undo;

mod cell;
mod collections;
mod log;
mod map;
pub mod state;
mod wire;

pub use cell::{Cell, Held, Word};
pub use collections::{Deque, List};
pub use log::{Forget, Log, Mark, Unclaimed, UndoLog};
pub use map::Map;
pub use meikyo_derive::{ModelState, State};
pub use state::{Change, Place, State};
use wire::bytes_of_inside;
pub use wire::{Wire, WireError, read_value, write_value};
