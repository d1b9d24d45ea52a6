//! Values at the readings that brought them, as live frames have them.
//!
//! The rate of a counter is known when the reading comes that ends its span. A live frame has it with
//! that reading, and shows it until the next one is known. Here the same is made of a past, by the same
//! code: what was seen live stands in the same pixels when it is read again, however late readings were.
//!
//! # Cost
//! Every reading is read, 90 octets each while its piece is in memory and about 1 µs; so many that an answer
//! takes longer than some seconds are refused.

use meikyo_recording::Selection;
use meikyo_recording::schema::Role;
use meikyo_recording::schema::role::answers;
use meikyo_units::{Nanos, WallTime};

use super::cells::{Cell, Cells};
use super::source::{Source, margin};
use super::{READINGS_MAX, RangeError};
use crate::freshness::freshness;
use crate::opened::FileProblem;
use crate::rates::Values;
use crate::readings::Polls;
use crate::stored::{ordered, polls};
use crate::wish::Wish;

/// Recorded time of a great cluster that is read at once.
const PIECE: Nanos = Nanos::from_secs(2);
/// The series of a great cluster; of fewer, more time is read at once.
const SERIES: usize = 10_000;
/// How often as much is read at once at most.
const PIECES_MOST: u64 = 30;
/// Where so few rows came, the next piece is twice as long, up to [`GROWTH`] times the first.
const ROWS_FEW: usize = 50_000;
/// How much longer than the first a piece becomes at most: rows that begin within it fit into memory.
const GROWTH: u64 = 4;

impl Source<'_> {
    /// Fills the cells from the readings of `series` series, and notes what could not be read.
    pub(super) fn fill_as_read(
        &self,
        series: usize,
        cells: &mut Cells,
        problems: &mut Vec<FileProblem>,
    ) -> Result<(), RangeError> {
        let (opened, table) = (self.opened, &self.request.table);
        if let Some(answers) = opened.table_for(Role::Answers)? {
            // The numbers of devices, by which rows find their answers.
            opened.with_series(&answers, |_| ())?;
        }
        let columns = table.column(&self.request.column.name).into_iter().collect();
        let mut values = Values::new(Wish { table: table.clone(), columns });
        let freshness = freshness(opened)?;
        let before = if self.request.column.counts() { margin(&freshness) } else { Nanos::ZERO };
        let mut from = WallTime::from_nanos(self.bins.from).before(before);
        let end = WallTime::from_nanos(self.bins.to);
        // What is missing from the list of files is told also where no file is left to be read.
        let listed = opened.recording.scan(&self.within(from, end)(&table.name, &["time"]))?;
        problems.extend(listed.problems().iter().map(|problem| opened.problem(problem)));
        let mut pieces = Pieces::of(series);
        for hour in opened.recording.hours(&table.name)? {
            let (begin, next) = hour_bounds(hour);
            from = from.max(begin);
            let end = end.min(next);
            while from < end {
                let to = (from + pieces.length).min(end);
                let rows = ordered(opened, values.wish(), self.within(from, to))?;
                let (answered, of_answers) = polls(opened, self.within(from, to))?;
                problems.extend(rows.problems.into_iter().chain(of_answers));
                let mut of_devices = Polls::default();
                for (due, device, poll) in answered {
                    of_devices.add(device, due, poll);
                }
                let readings = rows.readings.picked(&rows.order);
                pieces.take(readings.due.len())?;
                let frame = values.frame(opened, &readings, &of_devices, &freshness);
                for (value, (&series, &due)) in
                    frame.values.iter().flatten().zip(frame.series.iter().zip(&frame.times))
                {
                    put(cells, series, self.bins.bin_of(due), *value);
                }
                from = to;
            }
        }
        Ok(())
    }

    /// Makes the selection of a table and some of its columns, of the wanted series.
    fn within(&self, from: WallTime, to: WallTime) -> impl Fn(&str, &[&str]) -> Selection {
        move |table, columns| {
            let of_readings = table == self.request.table.name;
            let labels = self.request.labels.iter();
            let labels = labels.filter(|(label, _)| of_readings || label == answers::DEVICE.name());
            Selection {
                columns: Some(columns.iter().map(|&column| column.to_owned()).collect()),
                labels: labels.cloned().collect(),
                from: Some(from),
                to: Some(to),
                ..Selection::all(table)
            }
        }
    }
}

/// Adds what a reading brought to its pixel; nothing where it brought no value.
fn put(cells: &mut Cells, series: u32, bin: Option<usize>, value: f32) {
    let (Some(bin), false) = (bin, value.is_nan()) else { return };
    if let Some(pixels) = cells.of_series(series) {
        pixels[bin].add(&Cell { min: value, mean: value, max: value, weight: 1.0, count: 1 });
    }
}

/// Begin and end of an hour since the epoch.
fn hour_bounds(hour: i64) -> (WallTime, WallTime) {
    const HOUR: i64 = 3_600_000_000_000;
    let begin = hour.saturating_mul(HOUR);
    (WallTime::from_nanos(begin), WallTime::from_nanos(begin.saturating_add(HOUR)))
}

/// How much time is read at once, and how much was read.
#[derive(Debug)]
struct Pieces {
    length: Nanos,
    longest: Nanos,
    rows: usize,
}

impl Pieces {
    fn of(series: usize) -> Self {
        let share = (SERIES / series.max(1)) as u64;
        let length = Nanos::new(PIECE.get() * share.clamp(1, PIECES_MOST));
        Self { length, longest: Nanos::new(length.get() * GROWTH), rows: 0 }
    }

    /// Takes note of the rows of a piece.
    fn take(&mut self, rows: usize) -> Result<(), RangeError> {
        self.rows += rows;
        if self.rows > READINGS_MAX {
            return Err(RangeError::TooManyReadings);
        }
        if rows < ROWS_FEW {
            self.length = Nanos::new(self.length.get() * 2).min(self.longest);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_at_once_is_bounded_and_so_is_the_whole() {
        let mut few = Pieces::of(1);
        let first = few.length;
        assert_eq!(first, Nanos::from_secs(60));
        for _ in 0..10 {
            few.take(ROWS_FEW - 1).unwrap();
        }
        assert_eq!(few.length, Nanos::new(first.get() * GROWTH));

        let mut many = Pieces::of(50_000);
        assert_eq!(many.length, PIECE);
        many.take(READINGS_MAX).unwrap();
        assert_eq!(many.length, PIECE);
        assert!(matches!(many.take(1), Err(RangeError::TooManyReadings)));
    }
}
