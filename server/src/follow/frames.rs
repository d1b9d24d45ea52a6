//! What one step of a measurement brought, and the bounded queue that it waits in for a viewer.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use meikyo_units::Nanos;
use tokio::sync::Notify;

/// What a viewer may be behind before the oldest that waits for him is dropped.
pub(super) const BEHIND_MAX: Nanos = Nanos::from_secs(2);

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
    /// Some of its rows.
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
    /// Late.
    pub late: u64,
    /// Missed.
    pub missed: u64,
    /// In error.
    pub errors: u64,
    /// Skipped.
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
    pub(super) fn newer_than(&self, had: i64) -> Self {
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

/// Steps that wait for one viewer.
///
/// The follower never waits: when the newest step is too far ahead of the oldest that waits, the
/// oldest are dropped whole and counted, and the viewer goes on with what is new.
#[derive(Debug)]
pub(crate) struct Queue {
    /// What the oldest may be behind, ns of the recording's time.
    behind_max: i64,
    steps: Mutex<VecDeque<Arc<Step>>>,
    dropped: AtomicU64,
    /// Told when a step was put in, or the source has ended.
    pub(crate) arrived: Notify,
    ended: AtomicBool,
}

impl Default for Queue {
    fn default() -> Self {
        Self::with_room(BEHIND_MAX)
    }
}

impl Queue {
    /// A queue for a recording that is played so much faster than life that `behind_max` of its
    /// time are [`BEHIND_MAX`] of a viewer's.
    pub(crate) fn with_room(behind_max: Nanos) -> Self {
        Self {
            behind_max: i64::try_from(behind_max.get()).unwrap_or(i64::MAX),
            steps: Mutex::default(),
            dropped: AtomicU64::new(0),
            arrived: Notify::new(),
            ended: AtomicBool::new(false),
        }
    }

    /// Puts a step in; drops what is too old. How many were dropped.
    pub(crate) fn push(&self, step: Arc<Step>) -> u64 {
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        let least = step.newest.saturating_sub(self.behind_max);
        let mut dropped = 0;
        while steps.front().is_some_and(|oldest| oldest.newest < least) {
            steps.pop_front();
            dropped += 1;
        }
        steps.push_back(step);
        drop(steps);
        self.dropped.fetch_add(dropped, Ordering::Relaxed);
        self.arrived.notify_one();
        dropped
    }

    /// Takes everything that waits, and how many were dropped since the last time.
    pub(crate) fn take(&self) -> (Vec<Arc<Step>>, u64) {
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        (steps.drain(..).collect(), self.dropped.swap(0, Ordering::Relaxed))
    }

    /// Whether there is anything to take or to tell.
    pub(crate) fn waits(&self) -> bool {
        let steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        !steps.is_empty() || self.has_ended()
    }

    /// Says that nothing more will come.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.arrived.notify_one();
    }

    /// Whether nothing more will come.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
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
    fn a_viewer_who_does_not_take_loses_the_oldest_and_it_is_counted() {
        let queue = Queue::default();
        let step = |tenths: i64| Arc::new(Step { newest: tenths * 100_000_000, ..Step::default() });
        let dropped: u64 = (0..100).map(|tenths| queue.push(step(tenths))).sum();
        // 2 s of steps at 10 Hz, both ends included.
        assert_eq!(dropped, 79);
        let (steps, told) = queue.take();
        assert_eq!((steps.len(), told), (21, 79));
        assert_eq!(steps[0].newest, 7_900_000_000);
        assert_eq!(queue.take().1, 0);
        assert!(!queue.has_ended());
        queue.end();
        assert!(queue.has_ended());
    }
}
