//! The counters of a series as spans of constant rate.

use std::ops::Range;

use arrow::array::{Array as _, UInt64Array};

use super::{Context, Input};
use crate::counter::{Bounds, Reading, Width};
use crate::rate::{Edges, Span};
use crate::schema::{Column, Meaning};

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
        let used = counts(&input.table.columns[value]) && column.null_count() < column.len();
        used.then_some(column)
    };
    let mut spans = vec![Vec::new(); values.len()];
    if !values.iter().any(|&value| column_of(value).is_some()) {
        return spans;
    }
    let device = input.label("device", rows.start);
    let instance = input.instance(rows.start);
    let hints = Hints::new(input);
    let readings = hints.readings(&device, rows, input, context);
    for ((&value, edges), spans) in values.iter().zip(edges).zip(&mut spans) {
        let Some(column) = column_of(value) else { continue };
        let described = &input.table.columns[value];
        let name = &described.name;
        let limits = hints.limits(name, described.meaning);
        let timeline = context.freshness.of(&device, &input.table.name, &instance, name);
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

/// Whether a column is a counter.
pub(super) fn counts(column: &Column) -> bool {
    matches!(column.meaning, Meaning::Counter32 | Meaning::Counter64)
}

/// When the rows of a series were received; where that is not known, when they were due.
pub(super) fn instants(input: &Input<'_>, rows: &Range<usize>, context: Context<'_>) -> Vec<i64> {
    let device = input.label("device", rows.start);
    let readings = Hints::new(input).readings(&device, rows, input, context);
    readings.iter().map(|reading| reading.at).collect()
}

/// Columns that say how a row's counters count.
struct Hints<'a> {
    pdu: Option<&'a UInt64Array>,
    discontinuity_cs: Option<&'a UInt64Array>,
    counter_bits: Option<&'a UInt64Array>,
    speed_mbps: Option<&'a UInt64Array>,
}

impl<'a> Hints<'a> {
    fn new(input: &'a Input<'_>) -> Self {
        let column = |name: &str| input.column::<UInt64Array>(input.table.column(name)?);
        Self {
            pdu: column("pdu"),
            discontinuity_cs: column("discontinuity_cs"),
            counter_bits: column("counter_bits"),
            speed_mbps: column("speed_mbps"),
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
            let pdu = value(self.pdu, row);
            let received = polls.as_mut().and_then(|polls| polls.at(due, pdu));
            Reading {
                at: received.map_or(due, |received| received.at),
                uptime_cs: received.and_then(|received| received.uptime_cs),
                discontinuity_cs: value(self.discontinuity_cs, row),
                ..Reading::default()
            }
        };
        rows.clone().map(reading).collect()
    }

    /// What limits the counter of that name, row for row.
    fn limits(&self, name: &str, meaning: Meaning) -> Limits<'_> {
        let octets = name.ends_with("_octets");
        let follows_hint = octets || name.ends_with("_packets");
        Limits {
            narrow: meaning == Meaning::Counter32,
            octets,
            counter_bits: self.counter_bits.filter(|_| follows_hint),
            speed_mbps: self.speed_mbps,
        }
    }
}

/// What limits one counter.
struct Limits<'a> {
    narrow: bool,
    octets: bool,
    counter_bits: Option<&'a UInt64Array>,
    speed_mbps: Option<&'a UInt64Array>,
}

impl Limits<'_> {
    /// How wide the counter is, and how fast it can count where the interface's speed says so: a
    /// tenth more than line rate, for the jitter of readings.
    #[inline]
    fn at(&self, row: usize) -> Bounds {
        let narrow = self.narrow || value(self.counter_bits, row) == Some(32);
        let width = if narrow { Width::Bits32 } else { Width::Bits64 };
        Bounds::of_interface(width, self.octets, value(self.speed_mbps, row))
    }
}

#[inline]
fn value(column: Option<&UInt64Array>, row: usize) -> Option<u64> {
    column.filter(|column| column.is_valid(row)).map(|column| column.value(row))
}
