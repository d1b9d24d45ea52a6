//! The kernel from outside.

mod drawn;
mod escapes;
mod examples;
mod law;
mod refusals;
