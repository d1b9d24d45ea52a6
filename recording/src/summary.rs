//! Summaries: what a table held in every second, 10 s, minute and 10 minutes.
//!
//! A view of a month cannot read every reading. [`Summariser::summarise`] condenses sorted rows of
//! a table to rows of its summary table (named `TABLE.summary`, see [`Summariser::schema`]), one a
//! zoom level, series and span of time:
//!
//! - a gauge `x` becomes `x_min`, `x_mean`, `x_max` and `x_count` (its readings, nulls not counted);
//! - a counter `x` becomes its rate, `x_per_s_min`, `x_per_s_mean`, `x_per_s_max`, taken between
//!   update edges (see [`crate::rate`]), and `x_covered_us`, the part of the span in which the rate
//!   is known, so that mean * covered is what was counted;
//! - a state becomes `x_worst`;
//! - `rows` says how many rows there were.
//!
//! Two rows of the same level, series and `time` may exist, from two files whose border lies in the
//! span; a reader merges them: least, greatest and worst as they are, means weighted by count or
//! covered time. What a counter counted across the border is kept, since a summariser remembers
//! where its series stood.
//!
//! The module reads and writes no files.

mod cells;
mod counters;
mod merge;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, AsArray as _, RecordBatch, TimestampNanosecondArray, UInt32Array,
    UInt64Array,
};
use arrow::compute::{concat, concat_batches, take};
use arrow::datatypes::{SchemaRef, TimestampNanosecondType};
use arrow::error::ArrowError;
use meikyo_units::Nanos;

use crate::rate::{Edges, Freshness, Span};
use crate::schema::{Column, ColumnKind, Meaning, TableSchema};
use crate::series::{self, PollTimes};
use cells::{Cells, Columns};
pub use merge::merge;

/// The spans that every table is summarised over; each is a multiple of the first.
pub const ZOOM_LEVELS: [Nanos; 4] =
    [Nanos::from_secs(1), Nanos::from_secs(10), Nanos::from_secs(60), Nanos::from_secs(600)];

/// What ends the name of a summary table.
pub const SUFFIX: &str = ".summary";

/// Spans before the first row of its file that a series can have rows for, with what was counted
/// since the file before; more are not written, which a long gap would ask for.
const SPANS_BEFORE_MAX: i64 = 64;

/// What rows are joined with to be summarised.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// How often values are updated.
    pub freshness: &'a Freshness,
    /// When answers were received; without it the due instants count.
    pub polls: Option<&'a PollTimes>,
}

/// Condenses the rows of one table, file after file.
#[derive(Debug)]
pub struct Summariser {
    table: TableSchema,
    schema: TableSchema,
    arrow: SchemaRef,
    levels: Vec<i64>,
    /// Positions of the values that are summarised.
    values: Vec<usize>,
    /// Where the counters of each series stood, by labels.
    edges: BTreeMap<Vec<Option<String>>, Vec<Edges>>,
    gathered: Gathered,
}

/// What was condensed and not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// By level.
    outputs: Vec<Output>,
    /// The labels of the series, by column; parts as they came.
    labels: Vec<Vec<ArrayRef>>,
    /// Series in those parts.
    series: usize,
}

impl Summariser {
    /// A summariser of a table over [`ZOOM_LEVELS`]; `None` when the table has nothing to
    /// summarise: no labels that make series, or no values.
    pub fn new(table: &TableSchema) -> Option<Self> {
        let makes_series = series::labels(table).next().is_some();
        let measures = !value_positions(table, None).is_empty();
        (makes_series && measures).then(|| Self::over(table, &ZOOM_LEVELS, None))
    }

    /// A summariser over other spans, each a multiple of the first, and if wanted of some columns
    /// only.
    ///
    /// # Panics
    /// If there is no span, one is zero, or one is not a multiple of the first.
    pub fn over(table: &TableSchema, levels: &[Nanos], columns: Option<&[String]>) -> Self {
        let levels: Vec<_> = levels
            .iter()
            .map(|level| level.get().min(i64::MAX.unsigned_abs()).cast_signed())
            .collect();
        assert!(
            levels
                .first()
                .is_some_and(|&first| first > 0
                    && levels.iter().all(|level| *level > 0 && level % first == 0)),
            "zoom levels are multiples of the first"
        );
        let values = value_positions(table, columns);
        let schema = summary_schema(table, &values);
        let arrow = series::arrow_schema(&schema);
        let gathered = Gathered::default();
        Self {
            table: table.clone(),
            schema,
            arrow,
            levels,
            values,
            edges: BTreeMap::new(),
            gathered,
        }
    }

    /// The table that is summarised.
    pub fn table(&self) -> &TableSchema {
        &self.table
    }

    /// The schema of the summary table.
    pub fn schema(&self) -> &TableSchema {
        &self.schema
    }

    /// Condenses rows that are sorted by their labels and then by time; columns that they do not
    /// have are taken for null. The result is sorted by level, labels and time.
    ///
    /// # Errors
    /// When a column is not of the type that [`series::arrow_schema`] gives it.
    pub fn summarise(
        &mut self,
        rows: &RecordBatch,
        context: Context<'_>,
    ) -> Result<RecordBatch, ArrowError> {
        self.add(rows, context)?;
        self.finish()
    }

    /// As [`Summariser::summarise`], but keeps the result until [`Summariser::finish`]. What is
    /// added between two of those shares one result, and must be sorted by labels in all.
    ///
    /// # Errors
    /// As [`Summariser::summarise`], and when rows of a series are not in order of time, as those of
    /// a damaged file.
    pub fn add(&mut self, rows: &RecordBatch, context: Context<'_>) -> Result<(), ArrowError> {
        let input = Input::new(&self.table, rows)?;
        let Gathered { outputs, labels, series: ordinal } = &mut self.gathered;
        outputs.resize_with(self.levels.len(), || Output::new(&self.table, &self.values));
        labels.resize_with(input.labels.len(), Vec::new);
        let mut cells: Vec<_> =
            self.values.iter().map(|&value| Cells::new(&self.table.columns[value])).collect();
        let coarsest = self.levels.iter().max().copied().unwrap_or(0);
        let margin = (2 * coarsest).max(self.levels[0] * SPANS_BEFORE_MAX);
        let counts = self.values.iter().any(|&value| self.table.columns[value].counts());
        let runs = series::runs(&input.labels, rows.num_rows())?;
        if runs.iter().any(|run| !input.times[run.clone()].is_sorted()) {
            return Err(ArrowError::ComputeError(
                "rows of a series are not in order of time".into(),
            ));
        }
        let first_rows: UInt32Array =
            runs.iter().map(|run| u32::try_from(run.start).ok()).collect();
        for run in runs {
            let mut none = Vec::new();
            let edges = if counts {
                let edges = self.edges.entry(input.labels_of(run.start)).or_default();
                edges.resize_with(self.values.len(), Edges::default);
                edges
            } else {
                &mut none
            };
            let mut series = Series::begin(&input, run, *ordinal, self.levels[0]);
            series.fill(&input, &self.values, edges, &mut cells, context, margin)?;
            series.emit(&self.levels, &mut cells, outputs);
            *ordinal += 1;
        }
        for (parts, label) in labels.iter_mut().zip(&input.labels) {
            parts.push(take(label, &first_rows, None)?);
        }
        Ok(())
    }

    /// What was added since the last time, sorted by level, labels and time.
    ///
    /// # Errors
    /// When a label is not of the type that [`series::arrow_schema`] gives it.
    pub fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let gathered = self.take_gathered();
        let levels: Result<Vec<_>, _> = self.by_level(gathered)?.collect();
        concat_batches(&self.arrow, &levels?)
    }

    /// What was added since the last time.
    pub(crate) fn take_gathered(&mut self) -> Gathered {
        std::mem::take(&mut self.gathered)
    }

    /// The rows of each level, sorted by labels and time; made when they are asked for.
    pub(crate) fn by_level(
        &self,
        gathered: Gathered,
    ) -> Result<impl Iterator<Item = Result<RecordBatch, ArrowError>>, ArrowError> {
        let Gathered { outputs, labels, .. } = gathered;
        let positions = series::labels(&self.table);
        let labels: Result<Vec<_>, ArrowError> = labels
            .iter()
            .zip(positions)
            .map(|(parts, position)| {
                let parts: Vec<_> = parts.iter().map(AsRef::as_ref).collect();
                let kind = series::arrow_type(self.table.columns[position].kind);
                series::as_type(&concat(&parts)?, &kind)
            })
            .collect();
        let labels = labels?;
        let outputs = outputs.into_iter().zip(&self.levels);
        Ok(outputs.map(move |(output, level)| self.level(output, *level, &labels)))
    }

    /// Forgets where the counters of all series stood: what comes next does not follow.
    pub fn forget(&mut self) {
        self.edges.clear();
        self.gathered = Gathered::default();
    }

    fn level(
        &self,
        output: Output,
        level: i64,
        labels: &[ArrayRef],
    ) -> Result<RecordBatch, ArrowError> {
        let count = output.times.len();
        let times = TimestampNanosecondArray::from(output.times).with_timezone("UTC");
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(times),
            Arc::new(UInt64Array::from(vec![level.unsigned_abs() / 1_000_000; count])),
        ];
        let from = UInt32Array::from(output.series);
        for label in labels {
            columns.push(take(label, &from, None)?);
        }
        columns.push(Arc::new(UInt64Array::from(output.rows)));
        for mut value in output.values {
            value.pad(count);
            value.into_columns(&mut columns)?;
        }
        RecordBatch::try_new(self.arrow.clone(), columns)
    }
}

/// The columns of a table that a summary describes, out of the wanted ones.
fn value_positions(table: &TableSchema, wanted: Option<&[String]>) -> Vec<usize> {
    let summarised = |column: &Column| match column.meaning {
        _ if wanted.is_some_and(|wanted| !wanted.contains(&column.name)) => false,
        Meaning::Label | Meaning::Detail => false,
        Meaning::State => true,
        Meaning::Counter32 | Meaning::Counter64 => column.kind == ColumnKind::U64,
        Meaning::Gauge => {
            matches!(column.kind, ColumnKind::U64 | ColumnKind::I64 | ColumnKind::F64)
        }
    };
    let columns = table.columns.iter().enumerate();
    columns.filter(|(_, column)| summarised(column)).map(|(position, _)| position).collect()
}

fn summary_schema(table: &TableSchema, values: &[usize]) -> TableSchema {
    let gauge = |name: String, kind, doc: String| Column::new(&name, kind, Meaning::Gauge, &doc);
    let mut columns =
        vec![Column::new("level_ms", ColumnKind::U64, Meaning::Label, "span of the row, ms")];
    columns.extend(series::labels(table).map(|label| table.columns[label].clone()));
    columns.push(gauge("rows".into(), ColumnKind::U64, "rows of the table in the span".into()));
    for &value in values {
        let Column { name, kind, meaning, doc, .. } = &table.columns[value];
        match meaning {
            Meaning::State => {
                let worst = Column::new(
                    &format!("{name}_worst"),
                    ColumnKind::Symbol,
                    Meaning::State,
                    &format!("worst of: {doc}"),
                );
                columns.push(worst.ordered(table.columns[value].order.clone()));
            }
            Meaning::Counter32 | Meaning::Counter64 => {
                for part in ["min", "mean", "max"] {
                    let doc = format!("{part} rate a second of: {doc}");
                    columns.push(gauge(format!("{name}_per_s_{part}"), ColumnKind::F64, doc));
                }
                let doc = "part of the span in which the rate is known, µs".into();
                columns.push(gauge(format!("{name}_covered_us"), ColumnKind::U64, doc));
            }
            Meaning::Gauge | Meaning::Label | Meaning::Detail => {
                for (part, kind) in [("min", *kind), ("mean", ColumnKind::F64), ("max", *kind)] {
                    columns.push(gauge(format!("{name}_{part}"), kind, format!("{part}: {doc}")));
                }
                let doc = "readings that are not null".into();
                columns.push(gauge(format!("{name}_count"), ColumnKind::U64, doc));
            }
        }
    }
    TableSchema {
        name: format!("{}{SUFFIX}", table.name),
        doc: format!("{}: condensed to spans of 1 s, 10 s, 1 min and 10 min", table.doc),
        columns: std::iter::once(Column::new(
            "time",
            ColumnKind::Time,
            Meaning::Label,
            "begin of the span",
        ))
        .chain(columns)
        .collect(),
        role: None,
        title: None,
        part: None,
    }
}

/// Hands out, for every series of sorted rows, the instants at which its rows were received and the
/// spans of constant rate of some counters.
///
/// # Errors
/// When a column is not of the type that [`series::arrow_schema`] gives it.
pub(crate) fn spans_of_series(
    table: &TableSchema,
    rows: &RecordBatch,
    names: &[String],
    context: Context<'_>,
    mut take: impl FnMut(&[i64], &[Vec<Span>]),
) -> Result<(), ArrowError> {
    let input = Input::new(table, rows)?;
    let values: Vec<_> = names.iter().filter_map(|name| table.column(name)).collect();
    for run in series::runs(&input.labels, rows.num_rows())? {
        let mut edges = vec![Edges::default(); values.len()];
        let spans = counters::spans(&input, &run, &values, &mut edges, context);
        take(&counters::instants(&input, &run, context), &spans);
    }
    Ok(())
}

/// Spans of the finest level from the first to the last of a series: half a year of seconds. Damaged
/// times must not ask for memory without bound.
const SPANS_MAX: usize = 1 << 24;

/// The columns of the rows that are being condensed.
struct Input<'a> {
    table: &'a TableSchema,
    times: &'a [i64],
    labels: Vec<ArrayRef>,
    /// By position in the table; `None` where the rows have no such column.
    columns: Vec<Option<ArrayRef>>,
}

impl<'a> Input<'a> {
    fn new(table: &'a TableSchema, rows: &'a RecordBatch) -> Result<Self, ArrowError> {
        let columns: Vec<_> =
            table.columns.iter().map(|column| rows.column_by_name(&column.name).cloned()).collect();
        let wrong =
            |name: &str| ArrowError::SchemaError(format!("column `{name}` has no usable type"));
        let times = rows
            .column_by_name("time")
            .and_then(|time| time.as_primitive_opt::<TimestampNanosecondType>())
            .ok_or_else(|| wrong("time"))?
            .values();
        let mut labels = Vec::new();
        for label in series::labels(table) {
            let column =
                columns[label].as_ref().ok_or_else(|| wrong(&table.columns[label].name))?;
            labels.push(column.clone());
        }
        Ok(Self { table, times, labels, columns })
    }

    fn labels_of(&self, row: usize) -> Vec<Option<String>> {
        let text = |label: &ArrayRef| Some(series::Texts::new(label)?.get(row)?.to_owned());
        self.labels.iter().map(text).collect()
    }

    fn label(&self, name: &str, row: usize) -> String {
        let position = self.table.column(name).and_then(|label| self.columns[label].as_ref());
        let text =
            position.and_then(|column| Some(series::Texts::new(column)?.get(row)?.to_owned()));
        text.unwrap_or_default()
    }

    /// The label after the device, which names the instance.
    fn instance(&self, row: usize) -> String {
        let second = series::labels(self.table).nth(1);
        second.map(|label| self.label(&self.table.columns[label].name, row)).unwrap_or_default()
    }

    fn column<T: Clone + 'static>(&self, position: usize) -> Option<&T> {
        self.columns[position].as_ref()?.as_any().downcast_ref::<T>()
    }
}

/// The rows of a series that lie in one span of the finest level.
#[derive(Debug)]
struct Slot {
    slot: usize,
    rows: Range<usize>,
}

/// One series while it is condensed to the finest level.
struct Series {
    rows: Range<usize>,
    /// Its number among those gathered.
    ordinal: u32,
    /// The finest level.
    span: i64,
    /// Ordinals of the spans of the first and the last row.
    first: i64,
    last: i64,
    /// Ordinal of the span that `counts[0]` and the first of all cells stand for.
    base: i64,
    /// Rows in each span.
    counts: Vec<u64>,
}

impl Series {
    fn begin(input: &Input<'_>, rows: Range<usize>, ordinal: usize, span: i64) -> Self {
        let first = input.times[rows.start].div_euclid(span);
        let last = input.times[rows.end - 1].div_euclid(span);
        let ordinal = u32::try_from(ordinal).expect("fewer than 2^32 series");
        Self { rows, ordinal, span, first, last, base: first, counts: Vec::new() }
    }

    fn fill(
        &mut self,
        input: &Input<'_>,
        values: &[usize],
        edges: &mut [Edges],
        cells: &mut [Cells],
        context: Context<'_>,
        margin: i64,
    ) -> Result<(), ArrowError> {
        let mut spans = counters::spans(input, &self.rows, values, edges, context);
        let floor = input.times[self.rows.start].saturating_sub(margin);
        // No answer is received so late: whoever says so would ask for memory without bound.
        let ceiling = input.times[self.rows.end - 1].saturating_add(margin);
        let (mut from, mut to) = (self.first, self.last);
        for spans in &mut spans {
            spans.retain(|span| span.to > floor && span.from < ceiling);
            spans.iter_mut().for_each(|span| span.clip(floor, ceiling));
            if let Some(least) = spans.iter().map(|span| span.from).min() {
                from = from.min(least.div_euclid(self.span));
            }
            if let Some(greatest) = spans.iter().map(|span| span.to).max() {
                to = to.max((greatest - 1).div_euclid(self.span));
            }
        }
        self.base = from;
        let count = usize::try_from(to.saturating_sub(from).saturating_add(1))
            .expect("rows are in order of time");
        if count > SPANS_MAX {
            let what = format!("rows of a series are {count} spans apart, which no writer makes");
            return Err(ArrowError::ComputeError(what));
        }
        self.counts = vec![0; count];
        let slots = self.slots(input.times);
        for slot in &slots {
            self.counts[slot.slot] += slot.rows.len() as u64;
        }
        for ((cells, &value), spans) in cells.iter_mut().zip(values).zip(&spans) {
            // A column without a value has no cells, which costs nothing.
            let column = input.columns[value].as_ref();
            let column = column.filter(|column| column.null_count() < column.len());
            cells.reset(if column.is_some() { count } else { 0 });
            let Some(column) = column else { continue };
            match cells {
                Cells::Rates(rates) => {
                    for span in spans {
                        cells::add_span(rates, span, self.base, self.span);
                    }
                }
                Cells::Numbers(numbers) => numbers.add_column(column, &slots),
                Cells::States(states) => states.add_column(column, &slots),
            }
        }
        Ok(())
    }

    /// The slots that have rows, in order; rows are in order of time.
    fn slots(&self, times: &[i64]) -> Vec<Slot> {
        let mut slots: Vec<Slot> = Vec::with_capacity(self.counts.len());
        let mut begin = self.rows.start;
        while begin < self.rows.end {
            let span = times[begin].div_euclid(self.span);
            let border = (span + 1).saturating_mul(self.span);
            let same = times[begin..self.rows.end].iter().take_while(|&&time| time < border);
            let end = begin + same.count().max(1);
            let slot = usize::try_from(span - self.base).expect("no row is before the first span");
            slots.push(Slot { slot, rows: begin..end });
            begin = end;
        }
        slots
    }

    /// Writes the series' rows of every level, folding the finest into the coarser ones.
    fn emit(&mut self, levels: &[i64], cells: &mut [Cells], outputs: &mut [Output]) {
        for (&level, output) in levels.iter().zip(outputs) {
            let factor = level / self.span;
            if factor > 1 {
                self.fold(factor, cells);
            }
            let before = output.times.len();
            for (to, from) in output.values.iter_mut().zip(&*cells) {
                if !from.is_empty() {
                    to.pad(before);
                }
            }
            for slot in 0..self.counts.len() {
                let span = self.base + i64::try_from(slot).expect("at most `SPANS_MAX`");
                let between = span > self.first && span < self.last;
                let too_early = span < self.first - SPANS_BEFORE_MAX;
                let empty = self.counts[slot] == 0;
                if empty && (between || too_early || cells.iter().all(|cells| cells.none_at(slot)))
                {
                    continue;
                }
                let at = output.times.len();
                output.times.push(span * level);
                output.series.push(self.ordinal);
                output.rows.push(self.counts[slot]);
                for (to, from) in output.values.iter_mut().zip(&*cells) {
                    if !from.is_empty() {
                        to.push(from, slot, at);
                    }
                }
            }
        }
    }

    /// Makes every cell stand for `factor` times its span.
    fn fold(&mut self, factor: i64, cells: &mut [Cells]) {
        let base = self.base.div_euclid(factor);
        let offset = usize::try_from(self.base - base * factor).expect("it is rounded down");
        let width = usize::try_from(factor).expect("spans are positive and far apart by less");
        let slots = (self.counts.len() + offset).div_ceil(width);
        let add = |sum: &mut u64, count: &u64| *sum += count;
        cells::fold(&mut self.counts, offset, width, slots, 0, add);
        for cells in cells {
            cells.fold(offset, width, slots);
        }
        self.base = base;
        self.first = self.first.div_euclid(factor);
        self.last = self.last.div_euclid(factor);
        self.span *= factor;
    }
}

/// The rows of one level as they come.
#[derive(Debug)]
struct Output {
    times: Vec<i64>,
    /// The series of each row, by their numbers among those gathered.
    series: Vec<u32>,
    rows: Vec<u64>,
    /// Shorter than `times` where the last ones have no value.
    values: Vec<Columns>,
}

impl Output {
    fn new(table: &TableSchema, values: &[usize]) -> Self {
        let values = values.iter().map(|&value| Columns::new(&table.columns[value])).collect();
        Self { times: Vec::new(), series: Vec::new(), rows: Vec::new(), values }
    }
}
