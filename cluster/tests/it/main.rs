//! The cluster file, read as a whole.

mod problems;
mod values;
