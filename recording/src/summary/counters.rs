//! The counters of a series as spans of constant rate.

use std::ops::Range;

use arrow::array::{Array as _, UInt64Array};

use super::{Context, Input};
use crate::counter::{Bounds, Reading, Width};
use crate::rate::{Edges, Span};
use crate::schema::role::answers;
use crate::schema::{Column, Hint, Meaning, Unit};

/// The spans of the counters among `values`, none for what is no counter.
pub(super) fn spans(
    input: &Input<'_>,
    rows: &Range<usize>,
    values: &[usize],
    edges: &mut [Edges],
    context: Context<'_>,
) -> Vec<Vec<Span>> {
    let column_of = |value: usize| {
        let column = input.column::<UInt64Array>(value)?;
        let used = input.table.columns[value].counts() && column.null_count() < column.len();
        used.then_some(column)
    };
    let mut spans = vec![Vec::new(); values.len()];
    if !values.iter().any(|&value| column_of(value).is_some()) {
        return spans;
    }
    let device = input.label(answers::DEVICE.name(), rows.start);
    let instance = input.instance(rows.start);
    let hints = Hints::new(input);
    let readings = hints.readings(&device, rows, input, context);
    for ((&value, edges), spans) in values.iter().zip(edges).zip(&mut spans) {
        let Some(column) = column_of(value) else { continue };
        let described = &input.table.columns[value];
        let name = &described.name;
        let limits = hints.limits(described);
        let timeline = context.freshness.timeline(&device, &input.table.name, &instance, name);
        for (row, reading) in rows.clone().zip(&readings) {
            if column.is_valid(row) {
                let reading = Reading { value: column.value(row), ..*reading };
                let updates = timeline.at(reading.at);
                edges.push(reading, updates, limits.at(row), |span| spans.push(span));
            }
        }
    }
    spans
}

/// When the rows of a series were received; where that is not known, when they were due.
pub(super) fn instants(input: &Input<'_>, rows: &Range<usize>, context: Context<'_>) -> Vec<i64> {
    let device = input.label(answers::DEVICE.name(), rows.start);
    let readings = Hints::new(input).readings(&device, rows, input, context);
    readings.iter().map(|reading| reading.at).collect()
}

/// Columns that say how a row's counters count, see [`Hint`].
struct Hints<'a> {
    answer: Option<&'a UInt64Array>,
    discontinuity_cs: Option<&'a UInt64Array>,
    counter_bits: Option<&'a UInt64Array>,
    line_mbps: Option<&'a UInt64Array>,
}

impl<'a> Hints<'a> {
    fn new(input: &'a Input<'_>) -> Self {
        let column = |hint: Hint| input.column::<UInt64Array>(input.table.hint(hint)?);
        Self {
            answer: column(Hint::Answer),
            discontinuity_cs: column(Hint::Discontinuity),
            counter_bits: column(Hint::CounterBits),
            line_mbps: column(Hint::LineRate),
        }
    }

    /// The rows as readings without a value: when they were received, and the agent's uptime.
    fn readings(
        &self,
        device: &str,
        rows: &Range<usize>,
        input: &Input<'_>,
        context: Context<'_>,
    ) -> Vec<Reading> {
        let mut polls = context.polls.map(|polls| polls.device(device));
        let reading = |row: usize| {
            let due = input.times[row];
            let answer = value(self.answer, row);
            let received = polls.as_mut().and_then(|polls| polls.at(due, answer));
            Reading {
                at: received.map_or(due, |received| received.at),
                asked: Some(due),
                uptime_cs: received.and_then(|received| received.uptime_cs),
                discontinuity_cs: value(self.discontinuity_cs, row),
                ..Reading::default()
            }
        };
        rows.clone().map(reading).collect()
    }

    /// What limits a counter, row for row.
    fn limits(&self, counter: &Column) -> Limits<'_> {
        let unit = counter.unit();
        let follows_hint = matches!(unit, Some(Unit::Octets | Unit::Packets));
        Limits {
            narrow: counter.meaning == Meaning::Counter32,
            octets: unit == Some(Unit::Octets),
            counter_bits: self.counter_bits.filter(|_| follows_hint),
            line_mbps: self.line_mbps,
        }
    }
}

/// What limits one counter.
struct Limits<'a> {
    narrow: bool,
    octets: bool,
    counter_bits: Option<&'a UInt64Array>,
    line_mbps: Option<&'a UInt64Array>,
}

impl Limits<'_> {
    /// How wide the counter is, and how fast it can count where the line's speed says so: a
    /// tenth more than line rate, for the jitter of readings.
    #[inline]
    fn at(&self, row: usize) -> Bounds {
        let narrow = self.narrow || value(self.counter_bits, row) == Some(32);
        let width = if narrow { Width::Bits32 } else { Width::Bits64 };
        Bounds::of_interface(width, self.octets, value(self.line_mbps, row))
    }
}

#[inline]
fn value(column: Option<&UInt64Array>, row: usize) -> Option<u64> {
    column.filter(|column| column.is_valid(row)).map(|column| column.value(row))
}
