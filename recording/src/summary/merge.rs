//! Rows of a summary that describe the same span of the same series, made one.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, ArrowPrimitiveType, AsArray as _, Float64Array, PrimitiveArray,
    RecordBatch, StringArray, TimestampNanosecondArray, UInt32Array, UInt64Array,
};
use arrow::compute::{SortColumn, concat_batches, lexsort_to_indices, take, take_record_batch};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampNanosecondType, UInt64Type};
use arrow::error::ArrowError;
use meikyo_units::Nanos;

use crate::schema::{ColumnKind, Meaning, TableSchema};
use crate::series;

/// Sorts rows of a summary table by its labels and time, and makes one row of those that agree in
/// both: the least of the least values, the greatest of the greatest, the worst state, sums of
/// counts, and means weighted by the count of readings or by the time in which a rate is known.
///
/// With `span`, times are first rounded down to its multiples, which makes coarser spans of finer
/// ones.
///
/// # Errors
/// When a batch is not of the summary table's schema.
pub fn merge(
    summary: &TableSchema,
    batches: &[RecordBatch],
    span: Option<Nanos>,
) -> Result<RecordBatch, ArrowError> {
    let schema = series::arrow_schema(summary);
    let mut rows = concat_batches(&schema, batches)?;
    if let Some(span) = span {
        // Saturates: rows of 292 years and more are one.
        rows = rounded(&rows, i64::try_from(span.get()).unwrap_or(i64::MAX))?;
    }
    let mut by: Vec<_> = series::labels(summary).map(|label| rows.column(label).clone()).collect();
    by.push(rows.column(0).clone());
    let sort = |values: &ArrayRef| SortColumn { values: values.clone(), options: None };
    let order = lexsort_to_indices(&by.iter().map(sort).collect::<Vec<_>>(), None)?;
    let rows = take_record_batch(&rows, &order)?;
    let mut by: Vec<_> = series::labels(summary).map(|label| rows.column(label).clone()).collect();
    by.push(rows.column(0).clone());
    let groups = series::runs(&by, rows.num_rows())?;
    if groups.len() == rows.num_rows() {
        return Ok(rows);
    }
    let first: UInt32Array = groups.iter().map(|group| u32::try_from(group.start).ok()).collect();
    let columns: Result<Vec<_>, _> = summary
        .columns
        .iter()
        .enumerate()
        .map(|(position, column)| {
            let values = rows.column(position);
            if column.kind == ColumnKind::Time || column.meaning == Meaning::Label {
                take(values, &first, None)
            } else if column.meaning == Meaning::State {
                worst(values, &groups, &column.order())
            } else {
                merged(&rows, &column.name, values, &groups)
            }
        })
        .collect();
    RecordBatch::try_new(schema, columns?)
}

fn rounded(rows: &RecordBatch, span: i64) -> Result<RecordBatch, ArrowError> {
    let times = rows.column(0).as_primitive::<TimestampNanosecondType>();
    let times: TimestampNanosecondArray = times.unary(|time| time - time.rem_euclid(span));
    let mut columns = rows.columns().to_vec();
    columns[0] = Arc::new(times.with_timezone("UTC"));
    RecordBatch::try_new(rows.schema(), columns)
}

fn merged(
    rows: &RecordBatch,
    name: &str,
    values: &ArrayRef,
    groups: &[Range<usize>],
) -> Result<ArrayRef, ArrowError> {
    if let Some(value) = name.strip_suffix("_mean") {
        let weight = match value.strip_suffix("_per_s") {
            Some(counter) => format!("{counter}_covered_us"),
            None => format!("{value}_count"),
        };
        let weights = rows.column_by_name(&weight).map(|column| column.as_primitive());
        let weights = weights
            .ok_or_else(|| ArrowError::SchemaError(format!("a summary lacks `{weight}`")))?;
        return Ok(Arc::new(weighted(values.as_primitive(), weights, groups)));
    }
    let (least, greatest) = (name.ends_with("_min"), name.ends_with("_max"));
    let f64_of = |a: f64, b: f64| if least { a.min(b) } else { a.max(b) };
    Ok(match values.data_type() {
        DataType::Float64 => Arc::new(folded::<Float64Type>(values, groups, f64_of)),
        DataType::Int64 => {
            Arc::new(folded::<Int64Type>(
                values,
                groups,
                |a, b| {
                    if least { a.min(b) } else { a.max(b) }
                },
            ))
        }
        _ => Arc::new(folded::<UInt64Type>(values, groups, |a, b| match (least, greatest) {
            (true, _) => a.min(b),
            (_, true) => a.max(b),
            _ => a.saturating_add(b),
        })),
    })
}

fn folded<T: ArrowPrimitiveType>(
    values: &ArrayRef,
    groups: &[Range<usize>],
    fold: impl Fn(T::Native, T::Native) -> T::Native,
) -> PrimitiveArray<T> {
    let values = values.as_primitive::<T>();
    let of_group = |group: &Range<usize>| {
        let known = group.clone().filter(|&row| values.is_valid(row));
        known.map(|row| values.value(row)).reduce(&fold)
    };
    groups.iter().map(of_group).collect()
}

#[expect(clippy::cast_precision_loss, reason = "weights of a mean")]
fn weighted(means: &Float64Array, weights: &UInt64Array, groups: &[Range<usize>]) -> Float64Array {
    let of_group = |group: &Range<usize>| {
        let (mut sum, mut weight) = (0.0, 0.0);
        for row in group.clone().filter(|&row| means.is_valid(row)) {
            let own = weights.value(row) as f64;
            sum += means.value(row) * own;
            weight += own;
        }
        (weight > 0.0).then(|| sum / weight)
    };
    groups.iter().map(of_group).collect()
}

/// The state of each group that stands last in `order`; a word that is not in it is worse.
fn worst(
    states: &ArrayRef,
    groups: &[Range<usize>],
    order: &[String],
) -> Result<ArrayRef, ArrowError> {
    let texts = series::Texts::new(states)
        .ok_or_else(|| ArrowError::SchemaError("states are texts".into()))?;
    let of_group = |group: &Range<usize>| {
        let rank = |word: &&str| order.iter().position(|known| known == word);
        let words = group.clone().filter_map(|row| texts.get(row));
        words.max_by_key(|word| rank(word).unwrap_or(order.len()))
    };
    let words: ArrayRef = Arc::new(groups.iter().map(of_group).collect::<StringArray>());
    series::as_type(&words, states.data_type())
}
