//! What the values of an answer tell about the agent: how fresh they are, and what it has no more.

use meikyo_units::WallTime;

use crate::freshness::{Class, Finding, Source};
use crate::poll::alerts::Seen;
use crate::poll::device::{Device, asked};
use crate::poll::jumps;
use crate::poll::repeats::Repeated;
use crate::poll::rows::{Event, Rows};
use crate::poll::series::Change;
use crate::tables::{Table, freshness, object_name, schema};

/// What was noticed beside what is written down.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Noticed {
    /// Some values say that a counter began anew, see [`super::resets`].
    pub(super) resets: bool,
    /// Events about objects were held back, see [`super::repeats`].
    pub(super) held_back: bool,
}

/// Compares the values of an answer with the ones before, and writes down findings and events.
pub(super) fn observe(device: &mut Device, seen: &Seen<'_>, rows: &mut Rows) -> Noticed {
    let mut noticed = Noticed::default();
    let Seen { layout, pending, answer, received, .. } = *seen;
    for (position, target) in layout.rows.iter().enumerate() {
        if answer.renamed.contains(&position) {
            continue;
        }
        let activity = &mut device.activity[target.table.index()];
        if seen.uptime_moved {
            activity.uptime_moved(received);
        }
        for (slot, value) in target.values.clone().enumerate() {
            let position_of_series = target.series + slot;
            let series = &mut device.series[position_of_series];
            let (last, polled) = (series.last(), series.freshness.polled());
            let change = series.observe(answer.values[value], &answer.texts);
            let changed = match change {
                Change::Same | Change::First => false,
                Change::Changed => {
                    activity.moved(received);
                    let place = (target.table, target.columns[slot]);
                    let (reading, before) = (answer.values[value], (last, polled));
                    noticed.resets |=
                        device.resets.changed((position, slot), place, before, reading);
                    if target.table == Table::Interfaces
                        && let Some(jump) = jumps::find(series, last, seen, target, slot)
                    {
                        let instance = device.rows[layout.planned[position]].instance.as_deref();
                        let (object, text) = jump.in_words(instance);
                        device.resets.jumped(object, text);
                        noticed.resets = true;
                    }
                    true
                }
                Change::Missing => continue,
                Change::Vanished | Change::Returned => {
                    let plan = &device.rows[layout.planned[position]];
                    // What an agent refuses was told when it was left out.
                    let object = asked(plan).nth(slot).map(|value| &value.oid);
                    if object.is_some_and(|object| device.left_out.holds(object)) {
                        continue;
                    }
                    let object =
                        object_name(target.table, plan.instance.as_deref(), target.columns[slot]);
                    let is_unreadable = answer.unreadable.contains(&value);
                    let (kind, text) = presence(change, is_unreadable);
                    let repeats = device.repeats.get_or_insert_default();
                    noticed.held_back |= !repeats.admit(Repeated::Object, pending.due);
                    if !noticed.held_back {
                        let device = Some(device.name);
                        let event = Event { device, object: Some(&object), text, count: None };
                        rows.event(pending.due, kind, event);
                    }
                    continue;
                }
            };
            if let Some(finding) = series.freshness.observe(received, changed, activity) {
                let place = Place {
                    table: target.table,
                    instance: device.rows[layout.planned[position]].instance.as_deref(),
                    column: target.columns[slot],
                };
                write_finding(pending.due, device.name, &place, finding, rows);
                if finding.class == Class::Frozen
                    && let Some(alerts) = &mut device.alerts
                {
                    alerts.found_frozen(position_of_series);
                }
            }
        }
    }
    noticed
}

/// Kind and text of the event that tells whether an object is there.
fn presence(change: Change, is_unreadable: bool) -> (&'static str, &'static str) {
    if is_unreadable {
        ("unreadable_object", "the agent sends a value that cannot be read")
    } else if change == Change::Vanished {
        ("missing_object", "the agent has no such object")
    } else {
        ("object_returned", "the agent has the object again")
    }
}

/// Writes down what the agent declares of values that polling has not shown yet.
pub(super) fn declare(device: &Device, now: WallTime, rows: &mut Rows) {
    let mut series = device.series.iter();
    for row in &device.rows {
        for value in asked(row) {
            let Some(finding) = series.next().and_then(|series| series.freshness.finding()) else {
                continue;
            };
            if finding.source == Source::Declared {
                let instance = row.instance.as_deref();
                let place = Place { table: row.table, instance, column: value.column };
                write_finding(now, device.name, &place, finding, rows);
            }
        }
    }
}

/// Which value a finding is about.
struct Place<'a> {
    table: Table,
    instance: Option<&'a str>,
    column: usize,
}

/// Writes a row of `freshness`.
fn write_finding(
    due: WallTime,
    device: meikyo_recording::Symbol,
    place: &Place<'_>,
    finding: Finding,
    rows: &mut Rows,
) {
    let schema = schema(place.table);
    let table = rows.symbol(&schema.name);
    let instance = place.instance.map(|instance| rows.symbol(instance));
    let column = rows.symbol(&schema.columns[place.column].name);
    let class = rows.symbol(finding.class.word());
    let source = rows.symbol(finding.source.word());
    let batch = rows.batch(Table::Freshness);
    batch.begin_row(due.as_nanos());
    batch.put(freshness::DEVICE, device);
    batch.put(freshness::TABLE, table);
    if let Some(instance) = instance {
        batch.put(freshness::INSTANCE, instance);
    }
    batch.put(freshness::COLUMN, column);
    batch.put(freshness::CLASS, class);
    match finding.class {
        Class::Periodic { period, phase } => {
            batch.put(freshness::PERIOD_US, period.as_micros());
            if let Some(phase) = phase {
                let after = (phase.as_nanos() - due.as_nanos()).div_euclid(1_000);
                batch.put(freshness::PHASE_US, after);
            }
        }
        Class::Irregular { least, mean, greatest } => {
            batch.put(freshness::PERIOD_US, mean.as_micros());
            batch.put(freshness::PERIOD_US_MIN, least.as_micros());
            batch.put(freshness::PERIOD_US_MAX, greatest.as_micros());
        }
        Class::EveryPoll | Class::Unchanged | Class::Frozen => {}
    }
    batch.put(freshness::SOURCE, source);
}
