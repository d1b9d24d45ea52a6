//! A past replayed: the rows of a recording handed out at the pace at which they came, or faster.
//!
//! A thread reads ahead, one slice while another is played; both end when the viewer lets go of his
//! queue. Rows are found by time, which the files are not sorted by, so that a slice costs a pass
//! over the pages of its files; [`SLICE`] is long enough that this is seldom.

use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use arrow::array::{Array as _, AsArray as _, RecordBatch};
use arrow::datatypes::{Float64Type, Int64Type, UInt64Type};
use meikyo_recording::schema::Role;
use meikyo_recording::schema::role::{answers, health};
use meikyo_recording::tables::events;
use meikyo_recording::{ReadError, Selection};
use meikyo_units::{Nanos, WallTime};

use super::frames::{BEHIND_MAX, Event, Interval, Queue, Step};
use super::rates::Values;
use super::readings::{Poll, Polls, Readings, Wish, state_number};
use crate::catalog::{Opened, ordinals_of_runs};
use crate::columns::times;

/// Recorded time that is read at once.
const SLICE: Nanos = Nanos::from_secs(10);
/// Rows whose due instants lie in one such span are one step.
const STEP: i64 = 20_000_000;
/// The most that a replay may be faster than life.
pub(crate) const SPEED_MAX: f64 = 1_000.0;

/// What is replayed.
#[derive(Debug, Clone)]
pub(crate) struct Replay {
    pub(crate) wish: Wish,
    pub(crate) from: WallTime,
    pub(crate) to: WallTime,
    /// Recorded seconds a second.
    pub(crate) speed: f64,
}

/// Begins a replay; it ends when the queue is let go of, or at the end of the recording.
pub(crate) fn start(opened: &Arc<Opened>, replay: Replay) -> std::io::Result<Arc<Queue>> {
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
#[derive(Debug, Default)]
struct Slice {
    readings: Readings,
    /// Positions of the readings by due instant.
    order: Vec<usize>,
    polls: Vec<(i64, u32, Poll)>,
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
    let mut slice = Slice { readings: Readings::new(wish.columns.len()), ..Slice::default() };
    let within = |table: &str, columns: Vec<String>| Selection {
        columns: Some(columns),
        from: Some(from),
        to: Some(to),
        ..Selection::all(table)
    };
    let hints = wish.hints().into_iter().flatten();
    let labels = meikyo_recording::series::labels(&wish.table);
    let mut positions: Vec<_> =
        std::iter::once(0).chain(labels).chain(wish.columns.iter().copied()).chain(hints).collect();
    positions.sort_unstable();
    positions.dedup();
    let columns = positions.iter().map(|&column| wish.table.columns[column].name.clone());
    each(opened, &within(&wish.table.name, columns.collect()), |batch| {
        take_readings(opened, wish, batch, &mut slice.readings)
    })?;
    let Beside { polls, intervals, events } = beside(opened, |table, columns| {
        within(table, columns.iter().map(|&column| column.to_owned()).collect())
    })?;
    (slice.polls, slice.intervals, slice.events) = (polls, intervals, events);
    let due = &slice.readings.due;
    slice.order = (0..due.len()).collect();
    slice.order.sort_by_key(|&row| due[row]);
    slice.polls.sort_by_key(|(due, _, _)| *due);
    slice.intervals.sort_by_key(|interval| interval.time);
    slice.events.sort_by_key(|event| event.time);
    Ok(slice)
}

/// What goes with the readings of a past, whatever the table: answers by due instant and device,
/// intervals, events.
pub(super) struct Beside {
    pub(super) polls: Vec<(i64, u32, Poll)>,
    pub(super) intervals: Vec<Interval>,
    pub(super) events: Vec<Event>,
}

/// Reads what goes with readings; `within` makes the selection of a table and some of its columns.
pub(super) fn beside(
    opened: &Opened,
    within: impl Fn(&str, &[&str]) -> Selection,
) -> Result<Beside, ReadError> {
    let mut beside = Beside { polls: Vec::new(), intervals: Vec::new(), events: Vec::new() };
    for role in [Role::Answers, Role::Health, Role::Events] {
        let Some(table) = opened.table_for(role)? else { continue };
        let contract = table.role().contract().iter().map(|(name, _)| *name);
        let of_role = contract.filter(|name| table.column(name).is_some());
        let columns: Vec<_> = match role {
            Role::Events => table.columns.iter().map(|column| column.name.as_str()).collect(),
            _ => std::iter::once("time").chain(of_role).collect(),
        };
        each(opened, &within(&table.name, &columns), |batch| {
            match role {
                Role::Answers => take_polls(opened, batch, &mut beside.polls),
                Role::Health => take_intervals(batch, &mut beside.intervals),
                _ => beside.events.extend(events_of(batch)),
            }
            Ok(())
        })?;
    }
    Ok(beside)
}

pub(super) fn each(
    opened: &Opened,
    selection: &Selection,
    mut take: impl FnMut(&RecordBatch) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let mut scan = match opened.recording.scan(selection) {
        Ok(scan) => scan,
        Err(ReadError::UnknownTable { .. } | ReadError::UnknownColumn { .. }) => return Ok(()),
        Err(error) => return Err(error),
    };
    for batch in &mut scan {
        take(&batch?)?;
    }
    for problem in scan.problems() {
        opened.problem(problem);
    }
    Ok(())
}

/// The raw bits of a column; all null where there is none.
fn bits(batch: &RecordBatch, name: &str) -> Vec<Option<u64>> {
    let Some(column) = batch.column_by_name(name) else { return vec![None; batch.num_rows()] };
    let valid = |row: usize| column.is_valid(row);
    let rows = 0..batch.num_rows();
    if let Some(values) = column.as_primitive_opt::<UInt64Type>() {
        return rows.map(|row| valid(row).then(|| values.value(row))).collect();
    }
    if let Some(values) = column.as_primitive_opt::<Int64Type>() {
        return rows.map(|row| valid(row).then(|| values.value(row).cast_unsigned())).collect();
    }
    if let Some(values) = column.as_primitive_opt::<Float64Type>() {
        return rows.map(|row| valid(row).then(|| values.value(row).to_bits())).collect();
    }
    vec![None; batch.num_rows()]
}

pub(super) fn take_readings(
    opened: &Opened,
    wish: &Wish,
    batch: &RecordBatch,
    readings: &mut Readings,
) -> Result<(), ReadError> {
    let runs = opened.with_known_series(&wish.table, |series| ordinals_of_runs(batch, series));
    let table = wish.table.name.clone();
    for (ordinal, run) in runs.map_err(|source| ReadError::Arrow { table, source })? {
        readings.series.extend(run.map(|_| ordinal));
    }
    readings.due.extend_from_slice(times(batch));
    for (values, column) in readings.values.iter_mut().zip(wish.wanted()) {
        values.extend(bits(batch, &column.name));
    }
    for (values, name) in readings.hints.iter_mut().zip(wish.hint_names()) {
        match name {
            Some(name) => values.extend(bits(batch, name)),
            None => values.extend(std::iter::repeat_n(None, batch.num_rows())),
        }
    }
    Ok(())
}

pub(super) fn take_polls(opened: &Opened, batch: &RecordBatch, polls: &mut Vec<(i64, u32, Poll)>) {
    let [pdus, received, uptimes] =
        [answers::PDU.name(), answers::RECEIVED_US.name(), answers::UPTIME_CS.name()]
            .map(|name| bits(batch, name));
    let (Some(devices), Some(states)) = (answers::DEVICE.of(batch), answers::STATE.of(batch))
    else {
        return;
    };
    let mut last: Option<(&str, u32)> = None;
    for (row, &due) in times(batch).iter().enumerate() {
        let device = devices.get(row).unwrap_or_default();
        if last.is_none_or(|(name, _)| name != device) {
            last = opened.device_number(device).map(|number| (device, number));
        }
        let Some((_, number)) = last else { continue };
        let after = received[row].map(|us| us.cast_signed().saturating_mul(1_000));
        let poll = Poll {
            pdu: pdus[row],
            received: after.map(|after| due.saturating_add(after)),
            uptime_cs: uptimes[row],
            state: states.get(row).map_or(u8::MAX, state_number),
        };
        polls.push((due, number, poll));
    }
}

pub(super) fn take_intervals(batch: &RecordBatch, intervals: &mut Vec<Interval>) {
    let counted = [health::OK, health::LATE, health::MISSED, health::ERRORS, health::SKIPPED];
    let [ok, late, missed, errors, skipped] = counted.map(|count| bits(batch, count.name()));
    let complete = bits(batch, health::COMPLETE_US.name());
    for (row, &time) in times(batch).iter().enumerate() {
        let count = |values: &[Option<u64>]| values[row].unwrap_or(0);
        intervals.push(Interval {
            time,
            ok: count(&ok),
            late: count(&late),
            missed: count(&missed),
            errors: count(&errors),
            skipped: count(&skipped),
            complete_us: complete[row].map(u64::cast_signed),
        });
    }
}

/// The events in some rows.
pub(crate) fn events_of(batch: &RecordBatch) -> Vec<Event> {
    let (devices, kinds) = (events::DEVICE.of(batch), events::EVENT.of(batch));
    let (objects, texts) = (events::OBJECT.of(batch), events::TEXT.of(batch));
    let counts = events::COUNT.of(batch);
    let event = |(row, &time): (usize, &i64)| Event {
        time,
        device: devices.and_then(|values| values.get(row)).map(str::to_owned),
        event: kinds.and_then(|values| values.get(row)).unwrap_or_default().to_owned(),
        object: objects.and_then(|values| values.get(row)).map(str::to_owned),
        text: texts.and_then(|values| values.get(row)).map(str::to_owned),
        count: counts.and_then(|values| values.get(row)),
    };
    times(batch).iter().enumerate().map(event).collect()
}

/// Hands out slices at their pace.
fn play(
    opened: &Arc<Opened>,
    replay: &Replay,
    slices: &Receiver<Slice>,
    viewer: &std::sync::Weak<Queue>,
) {
    let freshness = super::freshness(opened).unwrap_or_default();
    let mut values = Values::new(replay.wish.clone());
    let mut polls = Polls::default();
    let mut begun: Option<WallTime> = None;
    while let Ok(slice) = slices.recv() {
        let begin = *begun.get_or_insert_with(WallTime::now);
        let mut cursor = Cursor::default();
        while let Some((step_from, step)) = cursor.next(&slice) {
            let passed = WallTime::from_nanos(step_from).since(replay.from);
            if !wait_until(begin + scaled(passed, replay.speed)) {
                return;
            }
            let Some(queue) = viewer.upgrade() else { return };
            polls.begin_chunk();
            for &(due, device, poll) in &slice.polls[step.polls] {
                polls.add(device, due, poll);
            }
            let readings = picked(&slice.readings, &slice.order[step.readings]);
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

/// Waits until an instant of the wall clock; false when that cannot be done.
fn wait_until(instant: WallTime) -> bool {
    let (never, lock) = (Condvar::new(), Mutex::new(()));
    loop {
        let left = instant.since(WallTime::now());
        if left == Nanos::ZERO {
            return true;
        }
        let guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
        if never.wait_timeout(guard, left.to_std()).is_err() {
            return false;
        }
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
        let reading = |at: usize| slice.order.get(at).map(|&row| slice.readings.due[row]);
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

pub(super) fn picked(readings: &Readings, rows: &[usize]) -> Readings {
    let pick = |values: &[Option<u64>]| rows.iter().map(|&row| values[row]).collect::<Vec<_>>();
    Readings {
        due: rows.iter().map(|&row| readings.due[row]).collect(),
        series: rows.iter().map(|&row| readings.series[row]).collect(),
        values: readings.values.iter().map(|values| pick(values)).collect(),
        hints: [0, 1, 2, 3].map(|hint| pick(&readings.hints[hint])),
    }
}
