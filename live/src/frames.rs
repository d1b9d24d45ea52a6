//! What one step of a measurement brought.

use std::sync::Arc;

/// Rows of one table as they came, column by column.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Frame {
    /// Name of the table.
    pub table: Arc<str>,
    /// Names of the columns.
    pub columns: Arc<[String]>,
    /// The due instant of each row, ns since the epoch.
    pub times: Vec<i64>,
    /// The series of each row.
    pub series: Vec<u32>,
    /// Values by column, counters as rates a second; NaN where not known.
    pub values: Vec<Vec<f32>>,
    /// The state of the poll that brought the row: 0 ok, 1 late, 2 skipped, 3 error, 4 missed.
    pub states: Vec<u8>,
    /// How long before its receive time the value was true, ms; NaN where not known.
    pub ages_ms: Vec<f32>,
}

impl Frame {
    /// Puts rows of the same table behind its own.
    fn append(&mut self, later: &Self) {
        assert_eq!(self.columns, later.columns, "frames of `{}` differ in columns", self.table);
        self.times.extend_from_slice(&later.times);
        self.series.extend_from_slice(&later.series);
        for (values, later) in self.values.iter_mut().zip(&later.values) {
            values.extend_from_slice(later);
        }
        self.states.extend_from_slice(&later.states);
        self.ages_ms.extend_from_slice(&later.ages_ms);
    }

    /// The newest row of each series, by its number; of rows of one time the last.
    fn newest_of_series(&self) -> Vec<Option<usize>> {
        let count = self.series.iter().max().map_or(0, |series| *series as usize + 1);
        let mut newest: Vec<Option<usize>> = vec![None; count];
        for (row, series) in self.series.iter().enumerate() {
            let of = &mut newest[*series as usize];
            if of.is_none_or(|of| self.times[row] >= self.times[of]) {
                *of = Some(row);
            }
        }
        newest
    }

    /// The rows at some places, in the order of the places.
    fn picked(&self, rows: &[usize]) -> Self {
        Self {
            table: Arc::clone(&self.table),
            columns: Arc::clone(&self.columns),
            times: rows.iter().map(|&row| self.times[row]).collect(),
            series: rows.iter().map(|&row| self.series[row]).collect(),
            values: self
                .values
                .iter()
                .map(|values| rows.iter().map(|&row| values[row]).collect())
                .collect(),
            states: rows.iter().map(|&row| self.states[row]).collect(),
            ages_ms: rows.iter().map(|&row| self.ages_ms[row]).collect(),
        }
    }
}

/// One interval as the collector saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Interval {
    /// Due instant, ns since the epoch.
    pub time: i64,
    /// Devices that ended ok.
    pub ok: u64,
    /// Devices that answered after the interval.
    pub late: u64,
    /// Devices that did not answer.
    pub missed: u64,
    /// Devices that answered with an error.
    pub errors: u64,
    /// Devices that were not asked.
    pub skipped: u64,
    /// When the last answer was received, µs after `time`.
    pub complete_us: Option<i64>,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// When, ns since the epoch.
    pub time: i64,
    /// The device; `None` for the collector itself.
    pub device: Option<String>,
    /// Kind.
    pub event: String,
    /// Interface, disk or object.
    pub object: Option<String>,
    /// For people.
    pub text: Option<String>,
    /// How many, where the kind counts something.
    pub count: Option<u64>,
}

/// What a step brought.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Step {
    /// The newest due instant in it, ns since the epoch.
    pub newest: i64,
    /// Rows by table.
    pub frames: Vec<Frame>,
    /// What the collector says of its intervals.
    pub intervals: Vec<Interval>,
    /// What happened.
    pub events: Vec<Event>,
}

impl Step {
    /// The rows and intervals that are due after `had`, and the newest of each series anyway.
    pub(crate) fn newer_than(&self, had: i64) -> Self {
        let frames = self.frames.iter().map(|frame| {
            let newest = frame.newest_of_series();
            let rows = 0..frame.times.len();
            let kept = |&row: &usize| {
                frame.times[row] > had || newest[frame.series[row] as usize] == Some(row)
            };
            frame.picked(&rows.filter(kept).collect::<Vec<_>>())
        });
        let last = self.intervals.last().map_or(i64::MAX, |interval| interval.time);
        let recent = |time: i64| time > had || time == last;
        Self {
            newest: self.newest,
            frames: frames.collect(),
            intervals: self.intervals.iter().copied().filter(|of| recent(of.time)).collect(),
            events: self.events.iter().filter(|event| event.time > had).cloned().collect(),
        }
    }

    /// Puts what came later behind it. Frames are of the same tables and columns in both, if there are
    /// some.
    pub(crate) fn append(&mut self, later: &Self) {
        self.newest = self.newest.max(later.newest);
        if self.frames.is_empty() {
            self.frames.clone_from(&later.frames);
        } else {
            for (frame, later) in self.frames.iter_mut().zip(&later.frames) {
                frame.append(later);
            }
        }
        self.intervals.extend_from_slice(&later.intervals);
        self.events.extend_from_slice(&later.events);
    }

    /// How many rows it has.
    pub(crate) fn rows(&self) -> usize {
        self.frames.iter().map(|frame| frame.times.len()).sum()
    }

    /// Whether it brought nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.frames.iter().all(|frame| frame.times.is_empty())
            && self.intervals.is_empty()
            && self.events.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_view_gets_the_newest_row_of_each_series_and_what_is_new() {
        let frame = Frame {
            times: vec![10, 10, 20, 30],
            series: vec![0, 1, 0, 0],
            values: vec![vec![1.0, 2.0, 3.0, 4.0]],
            states: vec![0; 4],
            ages_ms: vec![0.0; 4],
            ..Frame::default()
        };
        let step = Step { newest: 30, frames: vec![frame], ..Step::default() };
        assert_eq!(step.newer_than(i64::MAX).frames[0].values[0], [2.0, 4.0]);
        assert_eq!(step.newer_than(10).frames[0].values[0], [2.0, 3.0, 4.0]);
    }

    #[test]
    fn steps_that_are_joined_piece_by_piece_are_the_whole_step() {
        let frame = |rows: &[(i64, u32)]| Frame {
            times: rows.iter().map(|row| row.0).collect(),
            series: rows.iter().map(|row| row.1).collect(),
            values: vec![
                rows.iter().map(|row| f32::from(i16::try_from(row.0).expect("small"))).collect(),
            ],
            states: vec![0; rows.len()],
            ages_ms: vec![0.0; rows.len()],
            ..Frame::default()
        };
        let step = |rows: &[(i64, u32)]| Step {
            newest: rows.iter().map(|row| row.0).max().unwrap_or(0),
            frames: vec![frame(rows)],
            intervals: rows
                .iter()
                .map(|&(time, _)| Interval { time, ..Interval::default() })
                .collect(),
            ..Step::default()
        };
        let rows = [(10, 0), (10, 1), (20, 0), (30, 2), (40, 0), (40, 2), (50, 1)];
        for had in [i64::MAX, 0, 10, 35] {
            for cut in 0..=rows.len() {
                let mut whole = Step::default();
                for piece in [&rows[..cut], &rows[cut..]].into_iter().filter(|it| !it.is_empty()) {
                    whole.append(&step(piece));
                    whole = whole.newer_than(had);
                }
                assert_eq!(whole, step(&rows).newer_than(had), "cut at {cut}, had {had}");
            }
        }
    }
}
