//! Quantities that carry their unit in the type.
//!
//! Everything public in Meikyo that has a unit is one of these exact integers: a span is [`Nanos`],
//! an instant of the wall clock is [`WallTime`], one of a simulation
//! [`SimTime`], an amount of data is [`Bytes`], a rate is
//! [`BitsPerSecond`]. Instants and spans differ: the difference of two instants is a span, and the
//! sum of two instants does not compile.
//!
//! ```
//! use meikyo_units::{Nanos, WallTime};
//!
//! let interval: Nanos = "100ms".parse()?;
//! let now = WallTime::from_nanos(1_700_000_000_123_456_789);
//! let due = now.floor(interval) + interval;
//! assert_eq!(due - now, Nanos::new(76_543_211));
//! assert_eq!(interval.to_string(), "100ms");
//! # Ok::<(), meikyo_units::ParseQuantityError>(())
//! ```
//!
//! Names are not quantities, but how they are selected is a word that all crates share: [`glob`].
//!
//! The same holds for errors as one line of text: [`in_one_line`].
//!
//! This crate reads no clock and does no input or output.

mod causes;
mod data;
pub mod glob;
mod quantity;
mod time;

pub use causes::in_one_line;
pub use data::{BitsPerSecond, Bytes};
pub use quantity::ParseQuantityError;
pub use time::{Nanos, SimTime, WallTime};
