//! The models from outside.

mod metadata;
mod scenario;
