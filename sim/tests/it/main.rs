//! The kernel from outside.

mod cascade;
mod drawn;
mod escapes;
mod examples;
mod law;
mod refusals;
