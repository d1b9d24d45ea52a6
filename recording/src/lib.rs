//! The recording: an append log, Parquet tables, and reading both.

mod batch;
pub mod counter;
pub mod rate;
pub mod schema;
pub mod series;
pub mod summary;

pub use batch::{Batch, Symbol};
pub use schema::{Column, ColumnKind, Meaning, TableSchema};
