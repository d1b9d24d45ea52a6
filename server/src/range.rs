//! Ranges over HTTP: the query taken apart, and the answer as JSON or as one Arrow IPC stream with
//! the facts in headers.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, Float32Array, RecordBatch, UInt32Array};
use arrow::datatypes::{Field, Schema};
use arrow::ipc::writer::StreamWriter;
use axum::Json;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use meikyo_live::range::{Cell, Range, RangeRequest, Rates};
use meikyo_live::{Opened, drawable, label_names};

use crate::column_units::unit_of;
use crate::errors::ApiError;
use crate::parameters::{Parameters, WIDTH_MAX};
use crate::wire::{RangeBody, RangeRowBody, bins_told, problem_bodies};

/// The type of an Arrow IPC stream (IANA media types).
const ARROW_STREAM: &str = "application/vnd.apache.arrow.stream";

/// What is asked for, and how the answer is written down.
#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) request: RangeRequest,
    form: Form,
    /// What of every pixel an Arrow stream carries.
    values: Vec<Facet>,
}

/// What is told of a pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Facet {
    Min,
    Mean,
    Max,
    Count,
}

impl Facet {
    const ALL: [Self; 4] = [Self::Min, Self::Mean, Self::Max, Self::Count];

    /// The facet as it is called in queries and answers.
    fn name(self) -> &'static str {
        match self {
            Self::Min => "min",
            Self::Mean => "mean",
            Self::Max => "max",
            Self::Count => "count",
        }
    }

    fn parse(name: &str) -> Result<Self, ApiError> {
        Self::ALL.into_iter().find(|facet| facet.name() == name).ok_or_else(|| {
            let text =
                format!("`values` are some of `min`, `mean`, `max` and `count`, not `{name}`");
            ApiError::bad(text, "values")
        })
    }
}

/// How a range is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    ArrowStream,
    Json,
}

impl Query {
    /// Reads the query of a request.
    pub(crate) fn parse(opened: &Opened, query: Option<&str>) -> Result<Self, ApiError> {
        let mut parameters = Parameters::parse(query)?;
        let table = opened.table(&parameters.need("table")?)?;
        let column = parameters.need("column")?;
        let column = drawable(&table, &column)?;
        let (from, to) = parameters.span(opened.span()?)?;
        let width = parameters.number("width", 600, 1..=WIDTH_MAX)?;
        let fold = parameters.number("fold", 0, 0..=100_000)?;
        let form = match parameters.optional("format").as_deref() {
            None | Some("json") => Form::Json,
            Some("arrow") => Form::ArrowStream,
            Some(other) => {
                let text = format!("`format` is `arrow` or `json`, not `{other}`");
                return Err(ApiError::bad(text, "format"));
            }
        };
        let values = match parameters.optional("values") {
            None => Facet::ALL.to_vec(),
            Some(names) => names.split(',').map(Facet::parse).collect::<Result<_, _>>()?,
        };
        let rates = match parameters.optional("rates").as_deref() {
            None | Some("counted") => Rates::Counted,
            Some("read") => Rates::AsRead,
            Some(other) => {
                let text = format!("`rates` is `counted` or `read`, not `{other}`");
                return Err(ApiError::bad(text, "rates"));
            }
        };
        let labels = parameters.labels(&label_names(&table))?;
        let fold = (fold > 0).then_some(fold);
        Ok(Self {
            request: RangeRequest { table, column, from, to, width, fold, rates, labels },
            form,
            values,
        })
    }

    /// Writes the answer down in the form that was asked for.
    pub(crate) fn answer(&self, opened: &Opened, range: Range) -> Result<Response, ApiError> {
        match self.form {
            Form::Json => Ok(Json(body(opened, &self.request, range)).into_response()),
            Form::ArrowStream => arrow_answer(&self.request, &range, &self.values),
        }
    }
}

/// Where the pixels that have a value stand, and their values.
fn values(cells: &[Cell]) -> impl Iterator<Item = (u32, &Cell)> {
    (0..).zip(cells).filter(|(_, cell)| cell.is_some())
}

fn body(opened: &Opened, request: &RangeRequest, range: Range) -> RangeBody {
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
        bins: bins_told(range.bins),
        level_ms: range.bins.level_ms(),
        unit: unit_of(&request.column),
        rows,
        series_per_row: range.series_per_row,
        problems: problem_bodies(range.problems),
    }
}

fn arrow_answer(
    request: &RangeRequest,
    range: &Range,
    values_of: &[Facet],
) -> Result<Response, ApiError> {
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
    let mut headers = headers(request, range);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(ARROW_STREAM));
    let problems = problem_bodies(range.problems.clone());
    let problems = serde_json::to_string(&problems).expect("texts can be written as JSON");
    let schema = Arc::new(schema.with_metadata([("problems".to_owned(), problems)]));
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns)?;
    let mut stream = StreamWriter::try_new(Vec::new(), &schema)?;
    stream.write(&batch)?;
    let octets = stream.into_inner()?;
    Ok((headers, octets).into_response())
}

fn headers(request: &RangeRequest, range: &Range) -> HeaderMap {
    let facts = [
        ("meikyo-from-us", range.bins.from.div_euclid(1_000).to_string()),
        ("meikyo-bin-us", (range.bins.length / 1_000).to_string()),
        ("meikyo-bins", range.bins.count().to_string()),
        ("meikyo-level", range.bins.level_ms().to_string()),
        ("meikyo-unit", unit_of(&request.column)),
        ("meikyo-series-per-row", range.series_per_row.to_string()),
        ("meikyo-problems", range.problems.len().to_string()),
    ];
    let mut headers = HeaderMap::new();
    for (name, value) in facts {
        let value = HeaderValue::from_str(&value).expect("numbers and units are ASCII");
        headers.insert(HeaderName::from_static(name), value);
    }
    headers
}
