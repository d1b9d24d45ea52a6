//! The cluster file, read as a whole.

mod changes;
mod generated;
mod problems;
mod properties;
mod values;
