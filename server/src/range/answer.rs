//! A range as it is sent: JSON, or one Arrow IPC stream with the facts in headers.

use std::sync::Arc;

use arrow::array::{Float32Array, RecordBatch, UInt32Array};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::ipc::writer::StreamWriter;
use axum::Json;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};

use super::{Cell, Form, Range, RangeRequest};
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
        Form::Arrow => arrow_answer(range),
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

fn arrow_answer(range: &Range) -> Result<Response, ApiError> {
    let (mut bins, mut series) = (Vec::new(), Vec::new());
    let (mut min, mut mean, mut max, mut count) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (row, first, cells) in range.cells.rows() {
        let ordinal = if range.series_per_row == 1 { first } else { row };
        for (bin, cell) in values(cells) {
            bins.push(bin);
            series.push(ordinal);
            min.push(cell.min);
            mean.push(cell.mean);
            max.push(cell.max);
            count.push(cell.count);
        }
    }
    let field = |name: &str, kind: DataType| Field::new(name, kind, false);
    let problems = serde_json::to_string(&range.problems).unwrap_or_default();
    let schema = Schema::new(vec![
        field("bin", DataType::UInt32),
        field("series", DataType::UInt32),
        field("min", DataType::Float32),
        field("mean", DataType::Float32),
        field("max", DataType::Float32),
        field("count", DataType::UInt32),
    ]);
    let schema = Arc::new(schema.with_metadata([("problems".to_owned(), problems)]));
    let batch = RecordBatch::try_new(
        Arc::clone(&schema),
        vec![
            Arc::new(UInt32Array::from(bins)),
            Arc::new(UInt32Array::from(series)),
            Arc::new(Float32Array::from(min)),
            Arc::new(Float32Array::from(mean)),
            Arc::new(Float32Array::from(max)),
            Arc::new(UInt32Array::from(count)),
        ],
    )?;
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
