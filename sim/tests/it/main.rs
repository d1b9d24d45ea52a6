//! The kernel from outside.

mod drawn;
mod escapes;
mod law;
mod refusals;
