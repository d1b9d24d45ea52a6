//! The summaries that are written beside the rows of a segment.
//!
//! Rows are summarised as they are encoded, a few series at a time, so that a summary costs no
//! second pass over the log. A rate can reach back behind the first row of a segment, and with it
//! into the hour before; each row of a summary lies in the hour of its own time.

use std::collections::BTreeMap;
use std::path::Path;

use arrow::array::{AsArray as _, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::TimestampNanosecondType;
use arrow::error::ArrowError;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::layout::{self, hour_of};
use crate::rate::Freshness;
use crate::schema::{ColumnKind, Meaning, TableSchema};
use crate::series::PollTimes;
use crate::summary::{Context, Summariser};

/// The table that has the receive times, and the columns of it that are needed.
const POLLS: &str = "polls";
const POLL_COLUMNS: [&str; 5] = ["time", "device", "pdu", "received_us", "uptime_cs"];

/// The table that says how often values are updated.
const FRESHNESS: &str = "freshness";

/// Hours before its first row that a segment can have summaries for.
pub(super) const HOURS_BEFORE: i64 = 1;

/// Rows of a row group of a summary. They are in memory until the group is written: 50 MB for a
/// table of a dozen values.
const GROUP_ROWS: usize = 1 << 17;

/// What summarising remembers from one segment of a stream to the next: where every counter stood,
/// and how often values are updated.
///
/// A new one begins anew: what counters counted between the segments that it saw and those before
/// is in no summary.
#[derive(Debug, Default)]
pub struct Summaries {
    tables: BTreeMap<String, Summariser>,
    freshness: Option<Freshness>,
    /// The first sequence number of the segment that follows the last one.
    next: Option<u64>,
}

impl Summaries {
    /// Prepares for the segment that begins with the sequence number `first`.
    pub(super) fn begin(&mut self, dir: &Path, first: u64) {
        if self.next.take() != Some(first) {
            self.tables.values_mut().for_each(Summariser::forget);
        }
        self.freshness.get_or_insert_with(|| recorded_freshness(dir));
    }

    /// Notes that everything up to the sequence number `last` has been summarised.
    pub(super) fn end(&mut self, last: u64) {
        self.next = Some(last + 1);
    }
}

/// What the Parquet files of a recording say of freshness; `check` tells of those that cannot be
/// read.
fn recorded_freshness(dir: &Path) -> Freshness {
    let mut freshness = Freshness::default();
    let listing = layout::list_hours(dir, |table, _| table == FRESHNESS);
    for file in listing.map(|listing| listing.parquet).unwrap_or_default() {
        let reader = std::fs::File::open(&file.path)
            .ok()
            .and_then(|file| ParquetRecordBatchReaderBuilder::try_new(file).ok()?.build().ok());
        reader.into_iter().flatten().flatten().for_each(|rows| freshness.add(&rows));
    }
    freshness
}

/// The positions of the tables in the order in which they are compacted: first those that the
/// summaries of others need.
pub(super) fn order_of(tables: &[TableSchema]) -> impl Iterator<Item = usize> {
    let mut order: Vec<_> = (0..tables.len()).collect();
    order.sort_by_key(|&table| !matches!(tables[table].name.as_str(), POLLS | FRESHNESS));
    order.into_iter()
}

/// Summarises the tables of one segment.
#[derive(Debug)]
pub(super) struct SegmentSummaries<'a> {
    summaries: &'a mut Summaries,
    /// Whether the receive times of polls are needed: some used table has counters.
    needs_polls: bool,
    gathered_polls: Vec<RecordBatch>,
    polls: Option<PollTimes>,
}

impl<'a> SegmentSummaries<'a> {
    pub(super) fn new<'t>(
        summaries: &'a mut Summaries,
        used: impl IntoIterator<Item = &'t TableSchema>,
    ) -> Self {
        let (mut has_polls, mut has_counters) = (false, false);
        for table in used {
            has_polls |= table.name == POLLS && has_receive_times(table);
            has_counters |= table.name != POLLS
                && table.columns.iter().any(|column| {
                    matches!(column.meaning, Meaning::Counter32 | Meaning::Counter64)
                });
        }
        let needs_polls = has_polls && has_counters;
        Self { summaries, needs_polls, gathered_polls: Vec::new(), polls: None }
    }

    /// Begins with a table.
    pub(super) fn table(&mut self, table: &TableSchema) -> Result<TableSummary<'_>, ArrowError> {
        if table.name != POLLS && !self.gathered_polls.is_empty() {
            self.polls = Some(PollTimes::new(std::mem::take(&mut self.gathered_polls))?);
        }
        let tables = &mut self.summaries.tables;
        if tables.get(&table.name).is_none_or(|known| known.table() != table) {
            tables.remove(&table.name);
            if let Some(new) = Summariser::new(table) {
                tables.insert(table.name.clone(), new);
            }
        }
        let is_polls = table.name == POLLS;
        Ok(TableSummary {
            summariser: tables.get_mut(&table.name),
            freshness: self.summaries.freshness.get_or_insert_default(),
            is_freshness: table.name == FRESHNESS,
            polls: self.polls.as_ref().filter(|_| !is_polls),
            gathered_polls: (is_polls && self.needs_polls).then_some(&mut self.gathered_polls),
        })
    }
}

fn has_receive_times(polls: &TableSchema) -> bool {
    let is = |name, kind| polls.column(name).is_some_and(|at| polls.columns[at].kind == kind);
    is("device", ColumnKind::Symbol) && is("received_us", ColumnKind::I64)
}

/// Summarises one table of a segment.
#[derive(Debug)]
pub(super) struct TableSummary<'a> {
    summariser: Option<&'a mut Summariser>,
    freshness: &'a mut Freshness,
    is_freshness: bool,
    polls: Option<&'a PollTimes>,
    gathered_polls: Option<&'a mut Vec<RecordBatch>>,
}

/// Rows of a summary by the hours that they lie in, each sorted by level, labels and time.
pub(super) type RowsByHour = Vec<(i64, RecordBatch)>;

impl TableSummary<'_> {
    /// The schema of the summary; `None` when nothing of the table is summarised.
    pub(super) fn schema(&self) -> Option<&TableSchema> {
        self.summariser.as_ref().map(|summariser| summariser.schema())
    }

    /// Takes the next rows, which are sorted by labels and time within their hour; returns rows of
    /// the summary when there are enough for a row group.
    pub(super) fn add(&mut self, rows: &RecordBatch) -> Result<RowsByHour, ArrowError> {
        if self.is_freshness {
            self.freshness.add(rows);
        }
        if let Some(gathered) = &mut self.gathered_polls {
            let schema = rows.schema();
            let wanted: Vec<_> =
                POLL_COLUMNS.iter().filter_map(|name| schema.index_of(name).ok()).collect();
            gathered.push(rows.project(&wanted)?);
        }
        let Some(summariser) = &mut self.summariser else { return Ok(Vec::new()) };
        let context = Context { freshness: self.freshness, polls: self.polls };
        summariser.add(rows, context)?;
        if summariser.gathered_rows() < GROUP_ROWS {
            return Ok(Vec::new());
        }
        self.take()
    }

    /// The rows of the summary that were not returned yet: the hour has ended, and the labels begin
    /// again.
    pub(super) fn take(&mut self) -> Result<RowsByHour, ArrowError> {
        match &mut self.summariser {
            Some(summariser) => by_hour(&summariser.finish()?),
            None => Ok(Vec::new()),
        }
    }
}

fn by_hour(rows: &RecordBatch) -> Result<Vec<(i64, RecordBatch)>, ArrowError> {
    let times = rows.column(0).as_primitive::<TimestampNanosecondType>().values();
    let hours: Vec<_> = times.iter().map(|&time| hour_of(time)).collect();
    let (Some(&least), Some(&greatest)) = (hours.iter().min(), hours.iter().max()) else {
        return Ok(Vec::new());
    };
    if least == greatest {
        return Ok(vec![(least, rows.clone())]);
    }
    let mut found = hours.clone();
    found.sort_unstable();
    found.dedup();
    let part = |hour: i64| {
        let of_hour: BooleanArray = hours.iter().map(|&other| Some(other == hour)).collect();
        Ok((hour, filter_record_batch(rows, &of_hour)?))
    };
    found.into_iter().map(part).collect()
}
