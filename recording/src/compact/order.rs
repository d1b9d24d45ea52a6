//! The order in which rows go into a Parquet file: by labels, then by time.
//!
//! A comparison sort of 6 million rows by two symbols and a time takes seconds; rows come in order
//! of time, so a stable counting sort by each label, the least significant first, does it in two
//! passes a label, and in one where a label is the same in all rows. Where time did go backwards (late rows, a stepped clock), the series concerned is sorted
//! again by itself.

use std::path::Path;

use super::{CompactError, misfit, sort_columns};
use crate::layout::hour_of;
use crate::log::{ColumnView, FrameHeader, columns_of};
use crate::schema::TableSchema;

/// Rows that are encoded at once: enough that the cache lines of the log that one series touches
/// serve the next ones too, few enough that their columns stay small.
const PART_ROWS: usize = 1 << 15;

/// Rows at which a part ends within a series.
pub(crate) const PART_ROWS_MAX: usize = 1 << 17;

/// All rows of one table of a segment, where they lie in their frames.
#[derive(Debug)]
pub(crate) struct Rows<'a> {
    /// By column, the views of all frames: who follows a series through the frames stays within
    /// one column.
    columns: Vec<Vec<ColumnView<'a>>>,
    /// By column, whether no row is null, and whether all are.
    full: Vec<bool>,
    all_null: Vec<bool>,
    /// Rows of each frame.
    frames: Vec<usize>,
    /// Whether no row is earlier than the one before it in the log.
    in_order: bool,
    /// The hours of the earliest and the latest row.
    hours: (i64, i64),
}

/// Where one row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) frame: u32,
    pub(crate) row: u32,
}

/// The rows of one file in their order.
#[derive(Debug)]
pub(crate) struct RowOrder(Vec<Place>);

impl<'a> Rows<'a> {
    pub(super) fn new(
        payloads: &'a [(FrameHeader, Vec<u8>)],
        schema: &TableSchema,
        segment: &Path,
    ) -> Result<Self, CompactError> {
        let mut columns: Vec<_> =
            schema.columns.iter().map(|_| Vec::with_capacity(payloads.len())).collect();
        let mut frames = Vec::with_capacity(payloads.len());
        let mut hours = (i64::MAX, i64::MIN);
        let mut in_order = payloads.is_sorted_by(|a, b| a.0.greatest_time <= b.0.least_time);
        for (header, payload) in payloads {
            let views = columns_of(payload, header.rows, schema);
            for (column, view) in
                columns.iter_mut().zip(views.ok_or_else(|| misfit(segment, header))?)
            {
                column.push(view);
            }
            frames.push(header.rows);
            hours.0 = hours.0.min(hour_of(header.least_time));
            hours.1 = hours.1.max(hour_of(header.greatest_time));
            let times = columns.first().and_then(|times| times.last());
            in_order &= header.least_time == header.greatest_time
                || times
                    .is_some_and(|times| (0..header.rows).is_sorted_by_key(|row| time(times, row)));
        }
        let full = columns.iter().map(|views| views.iter().all(ColumnView::is_full)).collect();
        let all_null =
            columns.iter().map(|views| views.iter().all(ColumnView::is_all_null)).collect();
        Ok(Self { columns, full, all_null, frames, in_order, hours })
    }

    /// How many rows there are.
    pub(crate) fn len(&self) -> usize {
        self.frames.iter().sum()
    }

    /// The view of `column` that the row at `place` lies in, and the row's number in it.
    #[inline]
    pub(crate) fn at(&self, place: Place, column: usize) -> (&ColumnView<'a>, usize) {
        (&self.columns[column][place.frame as usize], place.row as usize)
    }

    /// The view of `column` in a frame.
    pub(crate) fn view(&self, column: usize, frame: usize) -> &ColumnView<'a> {
        &self.columns[column][frame]
    }

    /// Whether no row has a value in `column`.
    pub(crate) fn is_all_null(&self, column: usize) -> bool {
        self.all_null[column]
    }

    /// Whether every row has a value in `column`.
    pub(crate) fn is_full(&self, column: usize) -> bool {
        self.full[column]
    }

    fn time(&self, place: Place) -> i64 {
        let (view, row) = self.at(place, 0);
        time(view, row)
    }

    /// Whether the rows at two places agree in the columns `labels`.
    fn same_series(&self, labels: &[usize], a: Place, b: Place) -> bool {
        labels.iter().all(|&column| {
            let ((view, row), (other, other_row)) = (self.at(a, column), self.at(b, column));
            match (view.is_null(row), other.is_null(other_row)) {
                (false, false) => view.bits(row) == other.bits(other_row),
                (null, other_null) => null == other_null,
            }
        })
    }

    /// The ranks of the symbols in `column`, row by row as they are in the log.
    fn ranks(&self, column: usize, of_symbols: &[u32]) -> Vec<u32> {
        let mut ranks = vec![0; self.len()];
        let mut rest = ranks.as_mut_slice();
        for (view, &rows) in self.columns[column].iter().zip(&self.frames) {
            let (ranks, others) = rest.split_at_mut(rows);
            rest = others;
            view.each((0..rows).map(|row| (row, row)), |row, bits| {
                let symbol = usize::try_from(bits).unwrap_or(usize::MAX);
                ranks[row] = of_symbols.get(symbol).copied().unwrap_or(0);
            });
            if !view.is_full() {
                (0..rows).filter(|&row| view.is_null(row)).for_each(|row| ranks[row] = 0);
            }
        }
        ranks
    }

    fn places(&self) -> Vec<Place> {
        let mut places = Vec::with_capacity(self.len());
        for (frame, &rows) in self.frames.iter().enumerate() {
            let frame = narrow(frame);
            places.extend((0..narrow(rows)).map(|row| Place { frame, row }));
        }
        places
    }
}

fn time(times: &ColumnView<'_>, row: usize) -> i64 {
    times.bits(row).cast_signed()
}

fn narrow(count: usize) -> u32 {
    u32::try_from(count).expect("a segment is bounded by its rows")
}

impl RowOrder {
    /// The rows by the hours that they lie in, each sorted.
    pub(super) fn by_hour(
        rows: &Rows<'_>,
        schema: &TableSchema,
        symbols: &[Option<String>],
    ) -> Vec<(i64, Self)> {
        let ranks = ranks_of(symbols);
        let labels = sort_columns(schema);
        let mut order = None;
        for &column in labels.iter().rev() {
            if !rows.is_all_null(column) {
                order = sort_by_rank(&rows.ranks(column, &ranks), ranks.len(), order);
            }
        }
        let mut places = rows.places();
        if let Some(order) = order {
            places = order.into_iter().map(|ordinal| places[ordinal as usize]).collect();
        }
        sort_series_by_time(rows, &labels, &mut places);
        split_by_hour(rows, places)
    }

    /// The rows in their order, in parts that end with a series where they can.
    pub(super) fn parts(
        &self,
        rows: &Rows<'_>,
        schema: &TableSchema,
    ) -> impl Iterator<Item = &[Place]> {
        let labels = sort_columns(schema);
        let mut rest = self.0.as_slice();
        std::iter::from_fn(move || {
            let last = *rest.get(..PART_ROWS).unwrap_or(rest).last()?;
            let begin = rest.len().min(PART_ROWS);
            let candidates = &rest[begin..rest.len().min(PART_ROWS_MAX)];
            let more = candidates.partition_point(|&place| rows.same_series(&labels, last, place));
            let (part, after) = rest.split_at(begin + more);
            rest = after;
            Some(part)
        })
    }
}

/// For each symbol its rank among the texts; 0 is for null.
fn ranks_of(symbols: &[Option<String>]) -> Vec<u32> {
    let mut order: Vec<usize> = (0..symbols.len()).collect();
    order.sort_unstable_by(|&a, &b| symbols[a].cmp(&symbols[b]));
    let mut ranks = vec![0; symbols.len()];
    for (rank, symbol) in order.into_iter().enumerate() {
        ranks[symbol] = narrow(rank + 1);
    }
    ranks
}

/// Sorts rows, which are in that order if any and else in that of the log, by their ranks; stable.
fn sort_by_rank(ranks: &[u32], symbols: usize, order: Option<Vec<u32>>) -> Option<Vec<u32>> {
    let mut starts = vec![0; symbols + 2];
    for &rank in ranks {
        starts[rank as usize + 1] += 1;
    }
    if starts.contains(&narrow(ranks.len())) {
        return order;
    }
    for rank in 1..starts.len() {
        starts[rank] += starts[rank - 1];
    }
    let mut sorted = vec![0; ranks.len()];
    let mut put = |ordinal: u32| {
        let start = &mut starts[ranks[ordinal as usize] as usize];
        sorted[*start as usize] = ordinal;
        *start += 1;
    };
    match order {
        Some(order) => order.into_iter().for_each(&mut put),
        None => (0..narrow(ranks.len())).for_each(&mut put),
    }
    Some(sorted)
}

/// Sorts the runs of rows that agree in their labels by time, where they are not.
fn sort_series_by_time(rows: &Rows<'_>, labels: &[usize], places: &mut [Place]) {
    if rows.in_order {
        return;
    }
    let same_series = |a: &Place, b: &Place| rows.same_series(labels, *a, *b);
    for series in places.chunk_by_mut(same_series) {
        if !series.is_sorted_by_key(|place| rows.time(*place)) {
            series.sort_by_key(|place| rows.time(*place));
        }
    }
}

fn split_by_hour(rows: &Rows<'_>, places: Vec<Place>) -> Vec<(i64, RowOrder)> {
    if rows.hours.0 == rows.hours.1 {
        return vec![(rows.hours.0, RowOrder(places))];
    }
    let hours = places.iter().map(|&place| hour_of(rows.time(place)));
    let mut found: Vec<i64> = hours.collect();
    found.sort_unstable();
    found.dedup();
    let mut parts: Vec<_> = found.into_iter().map(|hour| (hour, RowOrder(Vec::new()))).collect();
    for place in places {
        let hour = hour_of(rows.time(place));
        if let Ok(part) = parts.binary_search_by_key(&hour, |part| part.0) {
            parts[part].1.0.push(place);
        }
    }
    parts
}
