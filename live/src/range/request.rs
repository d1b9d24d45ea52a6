//! What is asked for of a column.

use meikyo_recording::{Column, TableSchema};
use meikyo_units::WallTime;

/// In which pixels the rate of a counter lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rates {
    /// In those in which it was counted, each for its share of the time.
    Counted,
    /// In those whose readings had it as the newest that was known, as live frames do. Every reading is
    /// read: for pixels of about one interval.
    AsRead,
}

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
    /// In which pixels rates lie; gauges are the same either way.
    pub rates: Rates,
    /// Texts or patterns that labels are wanted to have; all series when empty.
    pub labels: Vec<(String, Vec<String>)>,
}
