//! The kernel from outside.
#![expect(clippy::disallowed_methods, reason = "tests start real programs")]

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
mod timers;
