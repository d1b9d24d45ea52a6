//! The service as its clients see it.

mod against_the_tree;
mod concurrent;
mod tree;
mod world;
