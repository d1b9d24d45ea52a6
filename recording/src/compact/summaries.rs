//! The summaries that are written beside the rows of a segment.
//!
//! Rows are summarised as they are encoded, a few series at a time, so that a summary costs no
//! second pass over the log. A rate can reach back behind the first row of a segment, and with it
//! into the hour before; each row of a summary lies in the hour of its own time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::frames::TableFrames;
use super::order::SeriesIndex;
use super::part::{Gatherer, Part};
use super::{CompactError, parquet_error};
use crate::files;
use crate::problem::open_regular;
use crate::rate::Freshness;
use crate::schema::role::answers;
use crate::schema::{Column, ColumnKind, Role, TableSchema};
use crate::series::PollTimes;
use crate::summary::{Context, Summariser};

/// Hours before its first row that a segment can have summaries for.
pub(super) const HOURS_BEFORE: i64 = 1;

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
    /// Prepares for the segment that begins with the sequence number `first` and has these tables.
    pub(super) fn begin(&mut self, dir: &Path, first: u64, tables: &[TableSchema]) {
        if self.next.take() != Some(first) {
            self.tables.values_mut().for_each(Summariser::forget);
        }
        let findings = |name: &str| {
            tables.iter().any(|table| table.name == name && table.role() == Role::Findings)
        };
        self.freshness.get_or_insert_with(|| recorded_freshness(dir, findings));
    }

    /// Notes that everything up to the sequence number `last` has been summarised.
    pub(super) fn end(&mut self, last: u64) {
        self.next = Some(last + 1);
    }
}

/// What the Parquet files of the tables of findings say; `check` tells of those that cannot be
/// read.
fn recorded_freshness(dir: &Path, is_of_findings: impl Fn(&str) -> bool) -> Freshness {
    let mut freshness = Freshness::default();
    let listing = files::list_hours(dir, |table, _| is_of_findings(table));
    for file in listing.map(|listing| listing.parquet).unwrap_or_default() {
        let reader = open_regular(&file.path)
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
    order.sort_by_key(|&table| !matches!(tables[table].role(), Role::Answers | Role::Findings));
    order.into_iter()
}

/// Summarises the tables of one segment.
#[derive(Debug)]
pub(super) struct SegmentSummaries<'a> {
    summaries: &'a mut Summaries,
    /// Whether the receive times of polls are there, and some used table has counters.
    joins_polls: bool,
}

impl<'a> SegmentSummaries<'a> {
    pub(super) fn new<'t>(
        summaries: &'a mut Summaries,
        used: impl IntoIterator<Item = &'t TableSchema>,
    ) -> Self {
        let (mut has_polls, mut counts) = (false, false);
        for table in used {
            has_polls |= has_receive_times(table);
            counts |= has_counters(table);
        }
        Self { summaries, joins_polls: has_polls && counts }
    }

    /// Whether a table has the receive times of others, and they need it.
    pub(super) fn are_polls(&self, table: &TableSchema) -> bool {
        self.joins_polls && table.role() == Role::Answers
    }

    /// Whether the summary of a table is joined with the polls.
    pub(super) fn needs_polls(&self, table: &TableSchema) -> bool {
        self.joins_polls && has_counters(table)
    }

    /// Begins with a table.
    pub(super) fn table(&mut self, table: &TableSchema) -> TableSummary<'_> {
        let tables = &mut self.summaries.tables;
        if tables.get(&table.name).is_none_or(|known| known.table() != table) {
            tables.remove(&table.name);
            if let Some(new) = Summariser::new(table) {
                tables.insert(table.name.clone(), new);
            }
        }
        TableSummary {
            summariser: tables.get_mut(&table.name),
            freshness: self.summaries.freshness.get_or_insert_default(),
            is_freshness: table.role() == Role::Findings,
        }
    }
}

fn has_counters(table: &TableSchema) -> bool {
    table.role() != Role::Answers && table.columns.iter().any(Column::counts)
}

fn has_receive_times(table: &TableSchema) -> bool {
    let is = |name, kind| table.column(name).is_some_and(|at| table.columns[at].kind == kind);
    table.role() == Role::Answers
        && is(answers::DEVICE.name(), ColumnKind::Symbol)
        && is(answers::RECEIVED_US.name(), ColumnKind::I64)
}

/// The polls of a segment, read for a few devices at a time.
#[derive(Debug)]
pub(super) struct Polls<'a> {
    gatherer: Gatherer<'a>,
    index: &'a SeriesIndex,
    /// By symbol of the device, its series and their rows.
    devices: BTreeMap<u32, (Vec<u32>, usize)>,
}

impl<'a> Polls<'a> {
    pub(super) fn new(
        frames: TableFrames<'a>,
        index: &'a SeriesIndex,
        symbols: &'a [Option<String>],
    ) -> Result<Self, ArrowError> {
        let columns = PollTimes::COLUMNS.iter().filter_map(|name| frames.schema.column(name));
        let mut devices: BTreeMap<u32, (Vec<u32>, usize)> = BTreeMap::new();
        for &id in index.order() {
            if let Some(device) = index.device(id) {
                let (series, rows) = devices.entry(device).or_default();
                series.push(id);
                *rows += index.series()[id as usize].rows as usize;
            }
        }
        let gatherer = Gatherer::new(frames, index, symbols, columns.collect())?;
        Ok(Self { gatherer, index, devices })
    }

    /// Octets that grow with the rows.
    pub(super) fn bytes(&self) -> usize {
        self.index.bytes()
    }

    /// Octets that the polls take that the series `id` of the table of `index` needs and the series
    /// `before` does not.
    pub(super) fn octets_of(&self, index: &SeriesIndex, before: Option<u32>, id: u32) -> usize {
        let device = |id| index.device(id);
        let (device, known) = (device(id), before.map(device));
        let polls = device.filter(|_| known != Some(device));
        let rows = polls.and_then(|device| self.devices.get(&device)).map_or(0, |of| of.1);
        rows * self.gatherer.row_octets()
    }

    /// The polls of the devices of a part of the table of `index`.
    pub(super) fn times_of(
        &self,
        index: &SeriesIndex,
        part: &Part,
    ) -> Result<PollTimes, CompactError> {
        let devices: BTreeSet<_> = part.series.iter().filter_map(|&id| index.device(id)).collect();
        let series = devices.iter().filter_map(|device| self.devices.get(device));
        let part = Part::of(self.index, series.flat_map(|(series, _)| series.iter().copied()));
        let batch = self.gatherer.batch(&part)?;
        PollTimes::new([batch]).map_err(parquet_error(self.gatherer.segment()))
    }
}

/// Summarises one table of a segment.
#[derive(Debug)]
pub(super) struct TableSummary<'a> {
    summariser: Option<&'a mut Summariser>,
    freshness: &'a mut Freshness,
    is_freshness: bool,
}

impl TableSummary<'_> {
    /// Takes the next rows, which are sorted by labels and time within their hour.
    pub(super) fn add(
        &mut self,
        rows: &RecordBatch,
        polls: Option<&PollTimes>,
    ) -> Result<(), ArrowError> {
        if self.is_freshness {
            self.freshness.add(rows);
        }
        let Some(summariser) = &mut self.summariser else { return Ok(()) };
        summariser.add(rows, Context { freshness: self.freshness, polls })
    }

    /// The rows of the summary that were not taken yet, level by level, and their schema; `None`
    /// when nothing of the table is summarised.
    #[expect(clippy::type_complexity, reason = "said once")]
    pub(super) fn take_rows(
        &mut self,
    ) -> Result<
        Option<(&TableSchema, impl Iterator<Item = Result<RecordBatch, ArrowError>>)>,
        ArrowError,
    > {
        let Some(summariser) = &mut self.summariser else { return Ok(None) };
        let gathered = summariser.take_gathered();
        let summariser = &**summariser;
        Ok(Some((summariser.schema(), summariser.by_level(gathered)?)))
    }
}
