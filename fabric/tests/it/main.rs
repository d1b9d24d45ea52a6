//! Tests of the crate from outside.

mod built;
mod dialect;
mod failover;
mod plans;
