//! Rows of a past, from files and log alike, as the readings that rates are made of.

use arrow::array::{Array as _, AsArray as _, RecordBatch};
use arrow::datatypes::{Float64Type, Int64Type, UInt64Type};
use meikyo_recording::schema::role::{answers, health};
use meikyo_recording::schema::{Role, State};
use meikyo_recording::tables::events;
use meikyo_recording::{ReadError, Selection};

use crate::columns::times;
use crate::frames::{Event, Interval};
use crate::opened::{FileProblem, Opened};
use crate::readings::{Poll, Readings};
use crate::wish::Wish;

/// The readings of one table, and in which order they came.
#[derive(Debug)]
pub(crate) struct Ordered {
    pub(crate) readings: Readings,
    /// Positions of the readings by due instant.
    pub(crate) order: Vec<usize>,
    /// Files that could not be read wholly.
    pub(crate) problems: Vec<FileProblem>,
}

impl Ordered {
    /// The due instant of a reading by its place in the order; `None` behind the last one.
    pub(crate) fn due(&self, place: usize) -> Option<i64> {
        self.order.get(place).map(|&row| self.readings.due[row])
    }
}

/// Due instant, device and answer.
pub(crate) type Answered = (i64, u32, Poll);

/// What goes with the readings of a past, whatever the table: answers by due instant and device,
/// intervals, events.
pub(crate) struct Beside {
    pub(crate) polls: Vec<Answered>,
    pub(crate) intervals: Vec<Interval>,
    pub(crate) events: Vec<Event>,
}

/// Reads what goes with readings; `within` makes the selection of a table and some of its columns.
pub(crate) fn beside(
    opened: &Opened,
    within: impl Fn(&str, &[&str]) -> Selection,
) -> Result<Beside, ReadError> {
    let (mut intervals, mut events) = (Vec::new(), Vec::new());
    let (polls, _) = polls(opened, &within)?;
    of_role(opened, Role::Health, &within, |batch| take_intervals(batch, &mut intervals))?;
    of_role(opened, Role::Events, &within, |batch| events.extend(events_of(batch)))?;
    Ok(Beside { polls, intervals, events })
}

/// The answers by due instant and device, and the files that could not be read wholly; `within` makes
/// the selection of a table and some of its columns.
pub(crate) fn polls(
    opened: &Opened,
    within: impl Fn(&str, &[&str]) -> Selection,
) -> Result<(Vec<Answered>, Vec<FileProblem>), ReadError> {
    let mut polls = Vec::new();
    let take = |batch: &RecordBatch| take_polls(opened, batch, &mut polls);
    let problems = of_role(opened, Role::Answers, within, take)?;
    Ok((polls, problems))
}

/// Reads what the table of a role must have, of events every column.
fn of_role(
    opened: &Opened,
    role: Role,
    within: impl Fn(&str, &[&str]) -> Selection,
    mut take: impl FnMut(&RecordBatch),
) -> Result<Vec<FileProblem>, ReadError> {
    let Some(table) = opened.table_for(role)? else { return Ok(Vec::new()) };
    let contract = table.role().contract().iter().map(|(name, _)| *name);
    let of_role = contract.filter(|name| table.column(name).is_some());
    let columns: Vec<_> = match role {
        Role::Events => table.columns.iter().map(|column| column.name.as_str()).collect(),
        _ => std::iter::once("time").chain(of_role).collect(),
    };
    each(opened, &within(&table.name, &columns), |batch| {
        take(batch);
        Ok(())
    })
}

/// Reads what a wish is about; `within` makes the selection of a table and some of its columns.
pub(crate) fn ordered(
    opened: &Opened,
    wish: &Wish,
    within: impl Fn(&str, &[&str]) -> Selection,
) -> Result<Ordered, ReadError> {
    let labels = meikyo_recording::series::labels(&wish.table);
    let names = labels.map(|label| wish.table.columns[label].name.as_str());
    let wanted = wish.wanted().map(|column| column.name.as_str());
    let hints = wish.hint_names().into_iter().flatten();
    let mut columns: Vec<&str> = Vec::new();
    for name in std::iter::once("time").chain(names).chain(wanted).chain(hints) {
        if !columns.contains(&name) {
            columns.push(name);
        }
    }
    let mut readings = Readings::new(wish.columns.len());
    let problems = each(opened, &within(&wish.table.name, &columns), |batch| {
        take_readings(opened, wish, batch, &mut readings)
    })?;
    let mut order: Vec<_> = (0..readings.due.len()).collect();
    order.sort_by_key(|&row| readings.due[row]);
    Ok(Ordered { readings, order, problems })
}

/// Hands on the rows of a selection; the files that could not be read wholly.
fn each(
    opened: &Opened,
    selection: &Selection,
    mut take: impl FnMut(&RecordBatch) -> Result<(), ReadError>,
) -> Result<Vec<FileProblem>, ReadError> {
    let mut scan = match opened.recording.scan(selection) {
        Ok(scan) => scan,
        Err(ReadError::UnknownTable { .. } | ReadError::UnknownColumn { .. }) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error),
    };
    for batch in &mut scan {
        take(&batch?)?;
    }
    Ok(scan.problems().iter().map(|problem| opened.problem(problem)).collect())
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

pub(crate) fn take_readings(
    opened: &Opened,
    wish: &Wish,
    batch: &RecordBatch,
    readings: &mut Readings,
) -> Result<(), ReadError> {
    let runs = opened.with_known_series(&wish.table, |series| series.ordinals_of_runs(batch))?;
    for (ordinal, run) in runs {
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

pub(crate) fn take_polls(opened: &Opened, batch: &RecordBatch, polls: &mut Vec<Answered>) {
    let [pdus, received, uptimes] =
        [answers::PDU.name(), answers::RECEIVED_US.name(), answers::UPTIME_CS.name()]
            .map(|name| bits(batch, name));
    let (Some(devices), Some(states)) =
        (answers::DEVICE.values_in(batch), answers::STATE.values_in(batch))
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
            state: states.get(row).map_or(u8::MAX, State::rank),
        };
        polls.push((due, number, poll));
    }
}

pub(crate) fn take_intervals(batch: &RecordBatch, intervals: &mut Vec<Interval>) {
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
pub fn events_of(batch: &RecordBatch) -> Vec<Event> {
    let (devices, kinds) = (events::DEVICE.values_in(batch), events::EVENT.values_in(batch));
    let (objects, texts) = (events::OBJECT.values_in(batch), events::TEXT.values_in(batch));
    let counts = events::COUNT.values_in(batch);
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
