//! Rows of a past, from files and log alike, as the readings that rates are made of.

use arrow::array::{Array as _, AsArray as _, RecordBatch};
use arrow::datatypes::{Float64Type, Int64Type, UInt64Type};
use meikyo_recording::schema::role::{answers, health};
use meikyo_recording::schema::{Role, State};
use meikyo_recording::tables::events;
use meikyo_recording::{ReadError, Selection};

use crate::columns::times;
use crate::frames::{Event, Interval};
use crate::opened::Opened;
use crate::readings::{Poll, Readings};
use crate::wish::Wish;

/// What goes with the readings of a past, whatever the table: answers by due instant and device,
/// intervals, events.
pub(crate) struct Beside {
    pub(crate) polls: Vec<(i64, u32, Poll)>,
    pub(crate) intervals: Vec<Interval>,
    pub(crate) events: Vec<Event>,
}

/// Reads what goes with readings; `within` makes the selection of a table and some of its columns.
pub(crate) fn beside(
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

pub(crate) fn each(
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

pub(crate) fn take_polls(opened: &Opened, batch: &RecordBatch, polls: &mut Vec<(i64, u32, Poll)>) {
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
