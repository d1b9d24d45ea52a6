//! The models from outside.

mod metadata;
mod queueing;
mod ring;
mod scenario;
