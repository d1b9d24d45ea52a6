//! A past replayed: the rows of a recording handed out at the pace at which they came, or faster.
//!
//! A thread reads ahead, one slice while another is played; both end when the viewer lets go of his
//! queue. Rows are found by time, which the files are not sorted by, so that a slice costs a pass
//! over the pages of its files; ten seconds are long enough that this is seldom.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use meikyo_recording::{ReadError, Selection};
use meikyo_units::{Nanos, WallTime};

use crate::frames::{Event, Interval, Step};
use crate::freshness::freshness;
use crate::opened::Opened;
use crate::queue::{BEHIND_MAX, Queue};
use crate::rates::Values;
use crate::readings::Polls;
use crate::stored::{Answered, Beside, Ordered, beside, ordered};
use crate::wish::Wish;

/// Recorded time that is read at once.
const SLICE: Nanos = Nanos::from_secs(10);
/// Rows whose due instants lie in one such span are one step.
const STEP: i64 = 20_000_000;
/// The most that a replay may be faster than life.
pub const SPEED_MAX: f64 = 1_000.0;

/// A past that is to be played.
#[derive(Debug, Clone)]
pub struct Replay {
    /// What the viewer sees of it.
    pub wish: Wish,
    /// The first instant that is played.
    pub from: WallTime,
    /// The end of what is played, exclusive.
    pub to: WallTime,
    /// Recorded seconds a second, above 0 and at most [`SPEED_MAX`].
    pub speed: f64,
}

/// Begins a replay; it ends when the queue is let go of, or at the end of the recording.
///
/// # Errors
/// When the system gives no thread.
///
/// # Panics
/// When the speed is none that a [`Replay`] can have.
pub fn start(opened: &Arc<Opened>, replay: Replay) -> std::io::Result<Arc<Queue>> {
    assert!(replay.speed > 0.0 && replay.speed <= SPEED_MAX, "a replay at {} x", replay.speed);
    let room = scaled(BEHIND_MAX, 1.0 / replay.speed).max(Nanos::from_millis(200));
    let queue = Arc::new(Queue::with_room(room));
    let (loaded, slices) = sync_channel(1);
    let (source, to_load) = (Arc::clone(opened), replay.clone());
    std::thread::Builder::new().name(format!("read {}", opened.id)).spawn(move || {
        meikyo_recording::lower_priority();
        if let Err(error) = load(&source, &to_load, &loaded) {
            tracing::warn!(%error, "a replay ends early");
        }
    })?;
    let (viewer, opened) = (Arc::downgrade(&queue), Arc::clone(opened));
    std::thread::Builder::new().name(format!("replay {}", opened.id)).spawn(move || {
        meikyo_recording::lower_priority();
        play(&opened, &replay, &slices, &viewer);
        if let Some(queue) = viewer.upgrade() {
            queue.end();
        }
    })?;
    Ok(queue)
}

/// The rows of a slice in order of time.
#[derive(Debug)]
struct Slice {
    rows: Ordered,
    polls: Vec<Answered>,
    intervals: Vec<Interval>,
    events: Vec<Event>,
}

fn load(opened: &Opened, replay: &Replay, loaded: &SyncSender<Slice>) -> Result<(), ReadError> {
    let mut from = replay.from;
    while from < replay.to {
        let to = (from + SLICE).min(replay.to);
        let slice = read_slice(opened, &replay.wish, from, to)?;
        if loaded.send(slice).is_err() {
            return Ok(());
        }
        from = to;
    }
    Ok(())
}

fn read_slice(
    opened: &Opened,
    wish: &Wish,
    from: WallTime,
    to: WallTime,
) -> Result<Slice, ReadError> {
    let within = |table: &str, columns: &[&str]| Selection {
        columns: Some(columns.iter().map(|&column| column.to_owned()).collect()),
        from: Some(from),
        to: Some(to),
        ..Selection::all(table)
    };
    let rows = ordered(opened, wish, within)?;
    let Beside { polls, intervals, events } = beside(opened, within)?;
    let mut slice = Slice { rows, polls, intervals, events };
    slice.polls.sort_by_key(|(due, _, _)| *due);
    slice.intervals.sort_by_key(|interval| interval.time);
    slice.events.sort_by_key(|event| event.time);
    Ok(slice)
}

/// Hands out slices at their pace.
fn play(
    opened: &Arc<Opened>,
    replay: &Replay,
    slices: &Receiver<Slice>,
    viewer: &std::sync::Weak<Queue>,
) {
    let freshness = freshness(opened).unwrap_or_default();
    let mut values = Values::new(replay.wish.clone());
    let mut polls = Polls::default();
    let mut begun: Option<WallTime> = None;
    while let Ok(slice) = slices.recv() {
        let begin = *begun.get_or_insert_with(WallTime::now);
        let mut cursor = Cursor::default();
        while let Some((step_from, step)) = cursor.next(&slice) {
            let passed = WallTime::from_nanos(step_from).since(replay.from);
            wait_until(begin + scaled(passed, replay.speed));
            let Some(queue) = viewer.upgrade() else { return };
            polls.begin_chunk();
            for &(due, device, poll) in &slice.polls[step.polls] {
                polls.add(device, due, poll);
            }
            let readings = slice.rows.readings.picked(&slice.rows.order[step.readings]);
            let frame = values.frame(opened, &readings, &polls, &freshness);
            queue.push(Arc::new(Step {
                newest: step_from,
                frames: vec![frame],
                intervals: slice.intervals[step.intervals].to_vec(),
                events: slice.events[step.events].to_vec(),
            }));
        }
    }
}

/// Waits until an instant of the wall clock.
fn wait_until(instant: WallTime) {
    loop {
        let left = instant.since(WallTime::now());
        if left == Nanos::ZERO {
            return;
        }
        std::thread::park_timeout(left.to_std());
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a pace: ns over days are exact to some µs, and the speed is positive"
)]
fn scaled(span: Nanos, speed: f64) -> Nanos {
    Nanos::new((span.get() as f64 / speed) as u64)
}

/// Where a slice was played to.
#[derive(Debug, Default)]
struct Cursor {
    readings: usize,
    polls: usize,
    intervals: usize,
    events: usize,
}

/// What belongs to one step.
struct Parts {
    readings: Range<usize>,
    polls: Range<usize>,
    intervals: Range<usize>,
    events: Range<usize>,
}

impl Cursor {
    /// The next step: its first instant, and what belongs to it.
    fn next(&mut self, slice: &Slice) -> Option<(i64, Parts)> {
        let reading = |at: usize| slice.rows.due(at);
        let poll = |at: usize| slice.polls.get(at).map(|(due, _, _)| *due);
        let interval = |at: usize| slice.intervals.get(at).map(|interval| interval.time);
        let event = |at: usize| slice.events.get(at).map(|event| event.time);
        let next = [
            reading(self.readings),
            poll(self.polls),
            interval(self.intervals),
            event(self.events),
        ];
        let first = next.into_iter().flatten().min()?;
        let end = first.saturating_add(STEP);
        let parts = Parts {
            readings: pass(&mut self.readings, end, reading),
            polls: pass(&mut self.polls, end, poll),
            intervals: pass(&mut self.intervals, end, interval),
            events: pass(&mut self.events, end, event),
        };
        Some((first, parts))
    }
}

/// Moves a cursor past everything before `end`.
fn pass(at: &mut usize, end: i64, time: impl Fn(usize) -> Option<i64>) -> Range<usize> {
    let begin = *at;
    while time(*at).is_some_and(|time| time < end) {
        *at += 1;
    }
    begin..*at
}
