//! A column over time: least, mean and greatest value per series and pixel.
//!
//! A range that is wide against its pixels is answered from the summaries that compaction wrote, at
//! the coarsest level that is at most one pixel long; a narrow one from the raw readings. Either
//! way the least and the greatest value of every pixel are those of the readings in it, so that no
//! spike vanishes. Rows that are still in the log are condensed on the way.
//!
//! The rate of a counter lies in the pixels in which it was counted ([`Rates::Counted`]), or, of short
//! ranges on request, in that of the reading that brought it ([`Rates::AsRead`]), as live frames have it.
//!
//! # Cost
//! 24 hours of 256 devices are 144 files, of each 10 spans of a minute per series: some pages of 6
//! columns a file, about 1 ms a file, and nothing but memory the second time ([`BlockCache`]). What is
//! held while a range is answered is 20 octets a series and pixel, at most [`CELLS_MAX`] of them.

mod as_read;
mod blocks;
mod cells;
mod request;
mod source;

use meikyo_recording::ReadError;

pub use blocks::BlockCache;
pub use cells::{Cell, Cells};
pub use request::{RangeRequest, Rates};

use crate::bins::Bins;
use crate::opened::{FileProblem, Opened, once_a_file};

/// Most series times pixels of one answer.
pub const CELLS_MAX: usize = 8_000_000;

/// Most readings that are looked at for one answer with [`Rates::AsRead`].
pub const READINGS_MAX: usize = 8_000_000;

/// The answer to a [`RangeRequest`].
#[derive(Debug)]
pub struct Range {
    /// The pixels, which cover what was asked for.
    pub bins: Bins,
    /// Their values, by series.
    pub cells: Cells,
    /// How many series went into one row; 1 when nothing was folded.
    pub series_per_row: u32,
    /// Files that could not be read: what they held is missing.
    pub problems: Vec<FileProblem>,
}

/// Why a range cannot be answered.
#[derive(Debug, thiserror::Error)]
pub enum RangeError {
    /// The recording could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// More would be held in memory than one answer may.
    #[error("{series} series of {bins} pixels are more than {CELLS_MAX} values")]
    TooMuch {
        /// Series that were chosen.
        series: usize,
        /// Pixels of each of them.
        bins: usize,
    },
    /// More would be read one by one than one answer may take.
    #[error("there are more than {READINGS_MAX} readings")]
    TooManyReadings,
}

/// Answers a request. Blocks while files are read.
///
/// # Errors
/// When the recording cannot be read, or too much is asked for at once.
pub fn read(
    opened: &Opened,
    cache: &BlockCache,
    request: &RangeRequest,
) -> Result<Range, RangeError> {
    let summary = match request.rates {
        Rates::Counted => source::summary_table(opened, &request.table)?,
        Rates::AsRead => None,
    };
    let bins = Bins::choose(request.from, request.to, request.width, summary.is_some());
    let chosen = opened.with_series(&request.table, |series| series.chosen(&request.labels))?;
    if chosen.len().saturating_mul(bins.count()) > CELLS_MAX {
        return Err(RangeError::TooMuch { series: chosen.len(), bins: bins.count() });
    }
    let mut cells = Cells::new(&chosen, bins.count());
    let mut problems = opened.series_problems(&request.table, (request.from, request.to));
    let source = source::Source { opened, cache, request, bins, summary };
    match request.rates {
        Rates::Counted => source.fill(&mut cells, &mut problems)?,
        Rates::AsRead => source.fill_as_read(chosen.len(), &mut cells, &mut problems)?,
    }
    let series_per_row = request.fold.map_or(1, |rows| cells.fold(rows));
    let problems = once_a_file(problems);
    Ok(Range { bins, cells, series_per_row, problems })
}
