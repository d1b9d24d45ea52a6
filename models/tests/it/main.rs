//! The models from outside.

mod metadata;
