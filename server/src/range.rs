//! A column over time: least, mean and greatest value per series and pixel.
//!
//! A range that is wide against its pixels is answered from the summaries that compaction wrote, at
//! the coarsest level that is at most one pixel long; a narrow one from the raw readings. Either
//! way the least and the greatest value of every pixel are those of the readings in it, so that no
//! spike vanishes. Rows that are still in the log are condensed on the way.
//!
//! # Cost
//! 24 hours of 256 devices are 144 files, of each 10 spans of a minute per series: some pages of 6
//! columns a file, about 1 ms a file, and nothing but memory the second time ([`blocks`]). What is
//! held while a range is answered is 20 octets a series and pixel, at most [`CELLS_MAX`] of them.

pub(crate) mod answer;
pub(crate) mod blocks;
mod cells;
mod level;
mod source;

use meikyo_recording::{Column, ColumnKind, Meaning, TableSchema};
use meikyo_units::WallTime;

use crate::catalog::Opened;
use crate::column_units::unit_of;
use crate::errors::ApiError;
use crate::parameters::Parameters;
use crate::wire::ProblemBody;

pub(crate) use blocks::BlockCache;
pub(crate) use cells::{Cell, Cells};
pub(crate) use level::Bins;

/// Most series times pixels of one answer.
const CELLS_MAX: usize = 8_000_000;

/// Most pixels of one answer.
const WIDTH_MAX: u32 = 10_000;

/// What is asked for.
#[derive(Debug, Clone)]
pub(crate) struct RangeRequest {
    pub(crate) table: TableSchema,
    pub(crate) column: Column,
    pub(crate) from: WallTime,
    pub(crate) to: WallTime,
    pub(crate) width: u32,
    /// Most rows; neighbouring series are folded into one until they fit.
    pub(crate) fold: Option<u32>,
    pub(crate) labels: Vec<(String, Vec<String>)>,
    pub(crate) form: Form,
    /// What of every pixel an Arrow stream carries.
    pub(crate) values: Vec<Facet>,
}

/// What is told of a pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Facet {
    /// The least value.
    Min,
    /// The mean.
    Mean,
    /// The greatest value.
    Max,
    /// The readings.
    Count,
}

impl Facet {
    /// All of them.
    const ALL: [Self; 4] = [Self::Min, Self::Mean, Self::Max, Self::Count];

    /// Its name in queries and answers.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Min => "min",
            Self::Mean => "mean",
            Self::Max => "max",
            Self::Count => "count",
        }
    }
}

/// How a range is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// An Arrow IPC stream.
    Arrow,
    /// JSON.
    Json,
}

/// The answer before it is written down.
#[derive(Debug)]
pub(crate) struct Range {
    pub(crate) bins: Bins,
    pub(crate) unit: String,
    pub(crate) cells: Cells,
    pub(crate) series_per_row: u32,
    pub(crate) problems: Vec<ProblemBody>,
}

impl RangeRequest {
    /// Reads the query of a request.
    pub(crate) fn parse(opened: &Opened, query: Option<&str>) -> Result<Self, ApiError> {
        let mut parameters = Parameters::parse(query)?;
        let table = opened.table(&parameters.need("table")?)?;
        let column = parameters.need("column")?;
        let column = drawable(&table, &column)?;
        let (from, to) = parameters.span(opened.span()?)?;
        let width = parameters.number("width", 600, 1..=WIDTH_MAX)?;
        let fold = parameters.number("fold", 0, 0..=100_000)?;
        let form = match parameters.take("format").as_deref() {
            None | Some("json") => Form::Json,
            Some("arrow") => Form::Arrow,
            Some(other) => {
                let text = format!("`format` is `arrow` or `json`, not `{other}`");
                return Err(ApiError::bad(text, "format"));
            }
        };
        let values = match parameters.take("values") {
            None => Facet::ALL.to_vec(),
            Some(names) => names.split(',').map(facet).collect::<Result<_, _>>()?,
        };
        let labels = parameters.labels(&label_names(&table))?;
        let fold = (fold > 0).then_some(fold);
        Ok(Self { table, column, from, to, width, fold, labels, form, values })
    }
}

fn facet(name: &str) -> Result<Facet, ApiError> {
    Facet::ALL.into_iter().find(|facet| facet.name() == name).ok_or_else(|| {
        let text = format!("`values` are some of `min`, `mean`, `max` and `count`, not `{name}`");
        ApiError::bad(text, "values")
    })
}

/// The names of a table's labels but `time`.
pub(crate) fn label_names(table: &TableSchema) -> Vec<String> {
    let labels = meikyo_recording::series::labels(table);
    labels.map(|label| table.columns[label].name.clone()).collect()
}

/// The column of that name, if its values are quantities.
pub(crate) fn drawable(table: &TableSchema, name: &str) -> Result<Column, ApiError> {
    let quantity = |column: &&Column| {
        matches!(column.kind, ColumnKind::U64 | ColumnKind::I64 | ColumnKind::F64)
            && matches!(column.meaning, Meaning::Gauge | Meaning::Counter32 | Meaning::Counter64)
    };
    let found = table.columns.iter().find(|column| column.name == name);
    found.filter(quantity).cloned().ok_or_else(|| {
        let known: Vec<_> =
            table.columns.iter().filter(quantity).map(|column| column.name.as_str()).collect();
        let text = format!(
            "table `{}` has no quantity `{name}`; it has {}",
            table.name,
            if known.is_empty() { "none".to_owned() } else { known.join(", ") }
        );
        ApiError::bad(text, "column")
    })
}

/// Answers a request. Blocks while files are read.
pub(crate) fn read(
    opened: &Opened,
    cache: &BlockCache,
    request: &RangeRequest,
) -> Result<Range, ApiError> {
    let summary = source::summary_table(opened, &request.table)?;
    let bins = Bins::choose(request.from, request.to, request.width, summary.is_some());
    let chosen = opened.with_series(&request.table, |series| series.chosen(&request.labels))?;
    let most = chosen.len().saturating_mul(bins.count());
    if most > CELLS_MAX {
        let text = format!(
            "{} series of {} pixels are more than {CELLS_MAX} values; name fewer series with a \
             label such as `device=node0*`, or ask for a smaller `width`",
            chosen.len(),
            bins.count()
        );
        return Err(ApiError::bad(text, "width"));
    }
    let mut cells = Cells::new(&chosen, bins.count());
    let mut problems = Vec::new();
    let source = source::Source { opened, cache, request, bins, summary };
    source.fill(&mut cells, &mut problems)?;
    let series_per_row = request.fold.map_or(1, |rows| cells.fold(rows));
    problems.sort();
    problems.dedup();
    Ok(Range { bins, unit: unit_of(&request.column), cells, series_per_row, problems })
}
