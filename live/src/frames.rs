//! What one step of a measurement brought.

use std::collections::BTreeMap;
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
            let mut newest: BTreeMap<u32, usize> = BTreeMap::new();
            for (row, series) in frame.series.iter().enumerate() {
                let of = newest.entry(*series).or_insert(row);
                if frame.times[row] >= frame.times[*of] {
                    *of = row;
                }
            }
            let rows = 0..frame.times.len();
            let kept = |&row: &usize| {
                frame.times[row] > had || newest.get(&frame.series[row]) == Some(&row)
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
}
