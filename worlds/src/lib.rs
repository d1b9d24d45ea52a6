//! Seeded virtual worlds, in which cores without IO are tried.
//!
//! A world is an [`Agenda`] of what happens at which virtual instant, [`Random`] numbers that follow
//! from one seed, [`Line`]s between its parties that delay, stall and break, and [`Disk`]s that tear
//! what was not synced when the power goes. The same seed makes the same history to the last bit, on
//! every machine, so that a failed run is repeated by its seed.
//!
//! The parties themselves are not here: a world hands octets and instants to the cores that it was
//! made for and takes theirs. Nothing here reads a clock, waits, or opens a file.
//!
//! ```
//! use meikyo_units::{Nanos, SimTime};
//! use meikyo_worlds::{Agenda, Line, LineOptions, Random};
//!
//! let mut random = Random::new(7);
//! let mut line = Line::new(LineOptions { delay: Nanos::from_millis(50), ..LineOptions::FAST });
//! let mut agenda = Agenda::new();
//! agenda.add(line.carry(SimTime::START, 1_000, &mut random), "arrived");
//! let (at, what) = agenda.pop().expect("one thing happens");
//! assert!(at >= SimTime::from_nanos(50_000_000) && what == "arrived");
//! ```

mod agenda;
mod disk;
mod line;
pub mod random;

pub use agenda::Agenda;
pub use disk::{Disk, DiskError};
pub use line::{Line, LineOptions};
pub use random::Random;
