//! Rows joined with the times at which they were received.

use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, AsArray as _, BooleanArray, Float64Builder, RecordBatch,
    TimestampNanosecondArray, UInt64Array,
};
use arrow::compute::{
    SortColumn, concat_batches, filter_record_batch, lexsort_to_indices, take_record_batch,
};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, TimestampNanosecondType, UInt64Type};
use arrow::error::ArrowError;

use crate::rate::Span;
use crate::schema::role::answers;
use crate::schema::{ColumnKind, Hint, Role, TableSchema};
use crate::series::{self, PollTimes};
use crate::summary::{self, Context};

/// The wanted columns with `received` as the second.
pub(super) fn received(
    table: &TableSchema,
    wanted: &TableSchema,
    rows: &RecordBatch,
    polls: Option<&PollTimes>,
) -> Result<RecordBatch, ArrowError> {
    let due = times(rows)?;
    let hint = table.hint(Hint::Answer).map(|hint| table.columns[hint].name.as_str());
    let pdus = hint.and_then(|name| unsigned(rows, name));
    let mut received = vec![None; rows.num_rows()];
    if table.role() == Role::Answers {
        // An answer says itself when it was received.
        if let Some(after_us) = answers::RECEIVED_US.values_in(rows) {
            for (row, received) in received.iter_mut().enumerate() {
                let after_us = after_us.get(row);
                *received = after_us.map(|us| due[row].saturating_add(us.saturating_mul(1_000)));
            }
        }
    } else if let (Some(polls), Some(devices)) = (polls, answers::DEVICE.values_in(rows)) {
        let runs = series::runs(&labels(table, rows), rows.num_rows())?;
        for run in runs {
            let device = devices.get(run.start).unwrap_or_default();
            let mut cursor = polls.device(device);
            for row in run {
                let pdu = pdus.filter(|pdus| pdus.is_valid(row)).map(|pdus| pdus.value(row));
                received[row] = cursor.at(due[row], pdu).map(|received| received.at);
            }
        }
    }
    let received: ArrayRef =
        Arc::new(TimestampNanosecondArray::from(received).with_timezone("UTC"));
    let field: FieldRef =
        Arc::new(Field::new("received", series::arrow_type(ColumnKind::Time), true));
    let mut columns = vec![];
    for column in &wanted.columns {
        columns.push(named(rows, &column.name)?);
    }
    columns.insert(columns.len().min(1), (field, received));
    assemble(columns)
}

/// The wanted columns with counters as mean rates since the reading before.
pub(super) fn rates(
    table: &TableSchema,
    wanted: &TableSchema,
    batches: &[RecordBatch],
    context: Context<'_>,
) -> Result<RecordBatch, ArrowError> {
    let schema = batches.first().map_or_else(|| series::arrow_schema(table), RecordBatch::schema);
    let rows = concat_batches(&schema, batches)?;
    let mut by = labels(table, &rows);
    by.push(rows.column_by_name("time").cloned().ok_or_else(|| missing("time"))?);
    let sort = |values: ArrayRef| SortColumn { values, options: None };
    let order = lexsort_to_indices(&by.into_iter().map(sort).collect::<Vec<_>>(), None)?;
    let rows = take_record_batch(&rows, &order)?;
    let counters: Vec<_> = wanted.columns.iter().filter(|column| column.counts()).collect();
    let mut rates: Vec<_> =
        counters.iter().map(|_| Float64Builder::with_capacity(rows.num_rows())).collect();
    let names: Vec<_> = counters.iter().map(|column| column.name.clone()).collect();
    summary::spans_of_series(table, &rows, &names, context, |instants, spans| {
        for (rates, spans) in rates.iter_mut().zip(spans) {
            append_rates(rates, instants, spans);
        }
    })?;
    let mut rates = rates.into_iter();
    let mut columns = Vec::new();
    for column in &wanted.columns {
        let rate = if column.counts() { rates.next() } else { None };
        columns.push(match rate {
            Some(mut rate) => {
                let field = Field::new(format!("{}_per_s", column.name), DataType::Float64, true);
                (Arc::new(field), Arc::new(rate.finish()) as ArrayRef)
            }
            None => named(&rows, &column.name)?,
        });
    }
    assemble(columns)
}

/// For every reading the mean rate since the one before; null where a part of that is not known.
#[expect(clippy::cast_precision_loss, reason = "a rate; 53 bits are exact enough")]
fn append_rates(rates: &mut Float64Builder, instants: &[i64], spans: &[Span]) {
    let mut spans = spans.iter().peekable();
    rates.append_option(instants.first().and(None::<f64>));
    for pair in instants.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let (mut counted, mut covered) = (0.0, 0);
        while let Some(span) = spans.peek() {
            let overlap = span.to.min(to) - span.from.max(from);
            if overlap > 0 {
                counted += span.per_second() * overlap as f64 / 1e9;
                covered += overlap;
            }
            if span.to > to {
                break;
            }
            spans.next();
        }
        let known = to > from && covered == to - from;
        rates.append_option(known.then(|| counted * 1e9 / covered as f64));
    }
}

/// The rows from `least` on.
pub(super) fn from(rows: &RecordBatch, least: i64) -> Result<RecordBatch, ArrowError> {
    let chosen: BooleanArray = times(rows)?.iter().map(|time| Some(*time >= least)).collect();
    filter_record_batch(rows, &chosen)
}

/// The rows without one of their columns.
pub(super) fn without(rows: &RecordBatch, name: &str) -> Result<RecordBatch, ArrowError> {
    let schema = rows.schema();
    let kept: Vec<_> =
        (0..rows.num_columns()).filter(|&column| schema.field(column).name() != name).collect();
    rows.project(&kept)
}

/// The labels of a table among the columns of some of its rows.
fn labels(table: &TableSchema, rows: &RecordBatch) -> Vec<ArrayRef> {
    let names = series::labels(table).map(|label| &table.columns[label].name);
    names.filter_map(|name| rows.column_by_name(name).cloned()).collect()
}

fn times(rows: &RecordBatch) -> Result<&[i64], ArrowError> {
    let column = rows.column_by_name("time").ok_or_else(|| missing("time"))?;
    let times = column.as_primitive_opt::<TimestampNanosecondType>();
    Ok(times.ok_or_else(|| missing("time"))?.values())
}

fn unsigned<'a>(rows: &'a RecordBatch, name: &str) -> Option<&'a UInt64Array> {
    rows.column_by_name(name)?.as_primitive_opt::<UInt64Type>()
}

fn named(rows: &RecordBatch, name: &str) -> Result<(FieldRef, ArrayRef), ArrowError> {
    let schema = rows.schema();
    let (position, field) = schema.fields().find(name).ok_or_else(|| missing(name))?;
    Ok((field.clone(), rows.column(position).clone()))
}

fn missing(name: &str) -> ArrowError {
    ArrowError::SchemaError(format!("no usable column `{name}`"))
}

fn assemble(columns: Vec<(FieldRef, ArrayRef)>) -> Result<RecordBatch, ArrowError> {
    let (fields, columns): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}
