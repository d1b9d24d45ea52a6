//! Tests of the crate from outside.

mod built;
mod check;
mod described;
mod deploy;
mod dialect;
mod emulator;
mod failover;
mod loads;
mod plans;
mod planted;
mod random;
mod shapes;
