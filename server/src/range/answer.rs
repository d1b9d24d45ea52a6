//! A range as it is sent: JSON, or one Arrow IPC stream with the facts in headers.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, Float32Array, RecordBatch, UInt32Array};
use arrow::datatypes::{Field, Schema};
use arrow::ipc::writer::StreamWriter;
use axum::Json;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};

use super::{Cell, Facet, Form, Range, RangeRequest};
use crate::catalog::Opened;
use crate::errors::ApiError;
use crate::wire::{RangeBody, RangeRowBody};

/// The type of an Arrow IPC stream (IANA media types).
pub(crate) const ARROW_STREAM: &str = "application/vnd.apache.arrow.stream";

/// Writes an answer down in the form that was asked for.
pub(crate) fn write(
    opened: &Opened,
    request: &RangeRequest,
    range: &Range,
) -> Result<Response, ApiError> {
    match request.form {
        Form::Json => Ok(Json(body(opened, request, range)).into_response()),
        Form::Arrow => arrow_answer(range, &request.values),
    }
}

/// Where the pixels that have a value stand, and their values.
fn values(cells: &[Cell]) -> impl Iterator<Item = (u32, &Cell)> {
    (0..).zip(cells).filter(|(_, cell)| cell.is_some())
}

fn body(opened: &Opened, request: &RangeRequest, range: &Range) -> RangeBody {
    let rows = opened.with_known_series(&request.table, |series| {
        let row = |(row, first, cells): (u32, u32, &[Cell])| RangeRowBody {
            series: if range.series_per_row == 1 { first } else { row },
            labels: series.named(first),
            of_bins: values(cells).map(|(bin, _)| bin).collect(),
            min: values(cells).map(|(_, cell)| cell.min).collect(),
            mean: values(cells).map(|(_, cell)| cell.mean).collect(),
            max: values(cells).map(|(_, cell)| cell.max).collect(),
            count: values(cells).map(|(_, cell)| cell.count).collect(),
        };
        range.cells.rows().map(row).filter(|row| !row.of_bins.is_empty()).collect()
    });
    RangeBody {
        from_us: range.bins.from.div_euclid(1_000),
        bin_us: range.bins.length / 1_000,
        bins: u32::try_from(range.bins.count()).unwrap_or(u32::MAX),
        level_ms: range.bins.level_ms(),
        unit: range.unit.clone(),
        rows,
        series_per_row: range.series_per_row,
        problems: range.problems.clone(),
    }
}

fn arrow_answer(range: &Range, values_of: &[Facet]) -> Result<Response, ApiError> {
    let told = || {
        let rows = range.cells.rows();
        rows.flat_map(|(row, first, cells)| {
            let ordinal = if range.series_per_row == 1 { first } else { row };
            values(cells).map(move |(bin, cell)| (ordinal, bin, cell))
        })
    };
    let real = |value: fn(&Cell) -> f32| -> ArrayRef {
        Arc::new(Float32Array::from_iter_values(told().map(|(.., cell)| value(cell))))
    };
    let whole = |value: fn((u32, u32, &Cell)) -> u32| -> ArrayRef {
        Arc::new(UInt32Array::from_iter_values(told().map(value)))
    };
    let mut columns = vec![("bin", whole(|(_, bin, _)| bin)), ("series", whole(|(row, ..)| row))];
    columns.extend(values_of.iter().map(|facet| {
        let column = match facet {
            Facet::Min => real(|cell| cell.min),
            Facet::Mean => real(|cell| cell.mean),
            Facet::Max => real(|cell| cell.max),
            Facet::Count => whole(|(.., cell)| cell.count),
        };
        (facet.name(), column)
    }));
    let field =
        |(name, column): &(&str, ArrayRef)| Field::new(*name, column.data_type().clone(), false);
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    let problems = serde_json::to_string(&range.problems).unwrap_or_default();
    let schema = Arc::new(schema.with_metadata([("problems".to_owned(), problems)]));
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns)?;
    let mut stream = StreamWriter::try_new(Vec::new(), &schema)?;
    stream.write(&batch)?;
    let octets = stream.into_inner()?;
    Ok((headers(range), octets).into_response())
}

fn headers(range: &Range) -> HeaderMap {
    let facts = [
        ("meikyo-from-us", range.bins.from.div_euclid(1_000).to_string()),
        ("meikyo-bin-us", (range.bins.length / 1_000).to_string()),
        ("meikyo-bins", range.bins.count().to_string()),
        ("meikyo-level", range.bins.level_ms().to_string()),
        ("meikyo-unit", range.unit.clone()),
        ("meikyo-series-per-row", range.series_per_row.to_string()),
        ("meikyo-problems", range.problems.len().to_string()),
    ];
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(ARROW_STREAM));
    for (name, value) in facts {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    headers
}
