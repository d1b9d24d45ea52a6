//! Tests of the crate from outside.

mod built;
mod check;
mod described;
mod dialect;
mod emulator;
mod failover;
mod plans;
mod planted;
mod random;
mod shapes;
