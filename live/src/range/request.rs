//! What is asked for of a column.

use meikyo_recording::{Column, TableSchema};
use meikyo_units::WallTime;

/// A column of some series over some time.
#[derive(Debug, Clone)]
pub struct RangeRequest {
    /// The table, as its recording declares it.
    pub table: TableSchema,
    /// One of its quantities, see [`drawable()`](crate::drawable()).
    pub column: Column,
    /// The first instant.
    pub from: WallTime,
    /// The end, exclusive; behind `from`.
    pub to: WallTime,
    /// At most that many and one pixels are answered.
    pub width: u32,
    /// Most rows; neighbouring series are folded into one until they fit.
    pub fold: Option<u32>,
    /// Texts or patterns that labels are wanted to have; all series when empty.
    pub labels: Vec<(String, Vec<String>)>,
}
