//! The kernel from outside.

mod cascade;
mod drawn;
mod escapes;
mod examples;
mod law;
mod many_groups;
mod never;
mod panics;
mod rebuilt;
mod refusals;
