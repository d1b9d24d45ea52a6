//! Tests of the crate from outside.
#![expect(clippy::disallowed_methods, reason = "tests start real programs")]

mod built;
mod check;
mod deploy;
mod described;
mod dialect;
mod emulator;
mod failover;
mod fewest;
mod loads;
mod open_vswitch;
mod paths;
mod plans;
mod planted;
mod random;
mod shapes;
mod sound;
mod spare;
mod warnings;
