//! What is asked of a recording: rows as they are, with exact times, as rates, or condensed.
//!
//! Everything that joins tables is here: counters become rates with the help of what was found out
//! about their freshness ([`Role::Findings`]) and of the answers that brought them
//! ([`Role::Answers`]: when each was received, and whether the device restarted). The work is done in slices of 10 minutes, so that a long range does not
//! need to fit into memory; only rates of single readings ([`View::Rates`]) are put together whole.

mod join;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use meikyo_units::{Nanos, WallTime};

use crate::rate::Freshness;
use crate::read::{Problem, ReadCost, ReadError, Recording, Scan, Selection};
use crate::schema::role::answers;
use crate::schema::{Hint, Role, TableSchema};
use crate::series::{self, PollTimes};
use crate::summary::{self, Context, Summariser};

/// Rows of this span are worked on at a time: that of a Parquet file.
const SLICE: i64 = 600_000_000_000;
/// ns of an hour.
const HOUR: i64 = 3_600_000_000_000;

/// How the selected rows are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// As they are.
    Readings,
    /// As they are, with the kernel's receive time in a column `received` after `time`.
    Received,
    /// Counters as rates a second: `x_per_s` is the mean rate since the reading before.
    Rates,
    /// Condensed to spans of this length, as [`crate::summary`] says, counters as rates.
    Every(Nanos),
}

/// What a query touched, and what it could not read.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// What was touched.
    pub cost: ReadCost,
    /// Files that could not be read wholly.
    pub problems: Vec<Problem>,
}

/// Hands the answer to `sink` batch by batch: the first time always, also when it has no rows, so
/// that its columns are known.
///
/// # Errors
/// As [`Recording::scan`], and whatever `sink` refuses with.
pub fn run<E: From<ReadError>>(
    recording: &Recording,
    selection: &Selection,
    view: View,
    mut sink: impl FnMut(&RecordBatch) -> Result<(), E>,
) -> Result<Outcome, E> {
    let mut pass = Pass::begin(recording, selection)?;
    match view {
        View::Readings => {
            let scan = recording.scan(selection)?;
            sink(&RecordBatch::new_empty(scan.schema()))?;
            pass.each(scan, |batch| sink(&batch))?;
        }
        View::Received => pass.received(&mut sink)?,
        View::Rates => {
            let rates = pass.rates()?;
            sink(&rates)?;
        }
        View::Every(span) => {
            let rows = pass.every(span)?;
            sink(&rows)?;
        }
    }
    Ok(pass.outcome)
}

/// A query while it is answered.
struct Pass<'a> {
    recording: &'a Recording,
    selection: &'a Selection,
    table: TableSchema,
    outcome: Outcome,
}

impl<'a> Pass<'a> {
    fn begin(recording: &'a Recording, selection: &'a Selection) -> Result<Self, ReadError> {
        let table = recording.table(&selection.table)?;
        let mut pass = Self { recording, selection, table, outcome: Outcome::default() };
        // What is missing from the list of files is told also where no file is left to be read.
        pass.note(recording.scan(selection)?.problems());
        Ok(pass)
    }

    fn note(&mut self, problems: &[Problem]) {
        for problem in problems {
            if !self.outcome.problems.contains(problem) {
                self.outcome.problems.push(problem.clone());
            }
        }
    }

    /// Hands on the batches of a scan, and notes what it touched.
    fn each<E: From<ReadError>>(
        &mut self,
        mut scan: Scan,
        mut take: impl FnMut(RecordBatch) -> Result<(), E>,
    ) -> Result<(), E> {
        for batch in &mut scan {
            take(batch?)?;
        }
        let (cost, total) = (scan.cost(), &mut self.outcome.cost);
        total.files_opened += cost.files_opened;
        total.segments_opened += cost.segments_opened;
        total.row_groups_read += cost.row_groups_read;
        total.columns_read += cost.columns_read;
        total.bytes_read += cost.bytes_read;
        total.rows += cost.rows;
        self.note(scan.problems());
        Ok(())
    }

    fn collected(&mut self, selection: &Selection) -> Result<Vec<RecordBatch>, ReadError> {
        let scan = self.recording.scan(selection)?;
        let mut batches = Vec::new();
        self.each(scan, |batch| {
            batches.push(batch);
            Ok::<_, ReadError>(())
        })?;
        Ok(batches)
    }

    /// The selection cut into slices that have rows, in order of time.
    fn slices(&self) -> Result<Vec<Selection>, ReadError> {
        let from = self.selection.from.map_or(i64::MIN, WallTime::as_nanos);
        let to = self.selection.to.map_or(i64::MAX, WallTime::as_nanos);
        let mut slices = Vec::new();
        for hour in self.recording.hours(&self.table.name)? {
            let begin = hour.saturating_mul(HOUR);
            for slice in 0..HOUR / SLICE {
                let least = begin.saturating_add(slice * SLICE);
                let (least, end) = (least.max(from), least.saturating_add(SLICE).min(to));
                if least < end {
                    slices.push(Selection {
                        from: Some(WallTime::from_nanos(least)),
                        to: Some(WallTime::from_nanos(end)),
                        ..self.selection.clone()
                    });
                }
            }
        }
        Ok(slices)
    }

    /// What is known of how often values are updated.
    fn freshness(&mut self) -> Result<Freshness, ReadError> {
        let mut freshness = Freshness::default();
        for table in self.recording.tables_for(Role::Findings)? {
            let batches = self.collected(&Selection::all(&table.name))?;
            batches.iter().for_each(|batch| freshness.add(batch));
        }
        Ok(freshness)
    }

    /// The answers of the slice's time and devices; `None` when the table's rows come from none, or
    /// the recording has no such table.
    fn polls(&mut self, slice: &Selection) -> Result<Option<PollTimes>, ReadError> {
        let Some(answers) = self.table.answers().map(str::to_owned) else { return Ok(None) };
        let device = answers::DEVICE.name();
        let selection = Selection {
            table: answers.clone(),
            columns: Some(PollTimes::COLUMNS.map(str::to_owned).to_vec()),
            labels: slice.labels.iter().filter(|(label, _)| label == device).cloned().collect(),
            ..slice.clone()
        };
        match self.collected(&selection) {
            Ok(batches) => {
                Ok(Some(PollTimes::new(batches).map_err(|source| assembling(&answers, source))?))
            }
            Err(ReadError::UnknownTable { .. } | ReadError::UnknownColumn { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The columns that were asked for, and those that joins and rates need.
    fn with_needed(&self, slice: &Selection) -> Selection {
        let Some(wanted) = &self.selection.columns else { return slice.clone() };
        let labels =
            series::labels(&self.table).map(|label| self.table.columns[label].name.clone());
        let hints = Hint::ALL.into_iter().filter_map(|hint| self.table.hint(hint));
        let hints = hints.map(|hint| self.table.columns[hint].name.clone());
        let mut columns = vec!["time".to_owned()];
        for name in labels.chain(wanted.iter().cloned()).chain(hints) {
            if !columns.contains(&name) {
                columns.push(name);
            }
        }
        Selection { columns: Some(columns), ..slice.clone() }
    }

    fn received<E: From<ReadError>>(
        &mut self,
        sink: &mut impl FnMut(&RecordBatch) -> Result<(), E>,
    ) -> Result<(), E> {
        let wanted = self.recording.scan(self.selection)?.table();
        let failed = |source| assembling(&self.selection.table, source);
        let none = RecordBatch::new_empty(series::arrow_schema(&self.table));
        sink(&join::received(&self.table, &wanted, &none, None).map_err(failed)?)?;
        for slice in self.slices()? {
            let polls = self.polls(&slice)?;
            let mut needed = self.with_needed(&slice);
            let own = answers::RECEIVED_US.name();
            if let Some(columns) = &mut needed.columns
                && self.table.role() == Role::Answers
                && columns.iter().all(|column| column != own)
            {
                columns.push(own.to_owned());
            }
            let scan = self.recording.scan(&needed)?;
            let table = self.table.clone();
            self.each(scan, |batch| {
                let joined = join::received(&table, &wanted, &batch, polls.as_ref());
                sink(&joined.map_err(|source| assembling(&table.name, source))?)
            })?;
        }
        Ok(())
    }

    fn rates(&mut self) -> Result<RecordBatch, ReadError> {
        let wanted = self.recording.scan(self.selection)?.table();
        let freshness = self.freshness()?;
        let needed = self.with_needed(self.selection);
        let batches = self.collected(&needed)?;
        let polls = self.polls(self.selection)?;
        let context = Context { freshness: &freshness, polls: polls.as_ref() };
        join::rates(&self.table, &wanted, &batches, context)
            .map_err(|source| assembling(&self.table.name, source))
    }

    fn every(&mut self, span: Nanos) -> Result<RecordBatch, ReadError> {
        // Names that do not exist are refused here.
        let wanted = self.recording.scan(self.selection)?.table();
        let wanted: Vec<_> = wanted.columns.into_iter().map(|column| column.name).collect();
        let mut summariser = Summariser::over(&self.table, &[span], Some(&wanted));
        let freshness = self.freshness()?;
        let table = self.table.name.clone();
        let failed = |source| assembling(&table, source);
        let mut summaries = Vec::new();
        for slice in self.slices()? {
            let polls = self.polls(&slice)?;
            let needed = self.with_needed(&slice);
            let scan = self.recording.scan(&needed)?;
            let context = Context { freshness: &freshness, polls: polls.as_ref() };
            self.each(scan, |batch| {
                let summary = summariser.summarise(&batch, context).map_err(failed)?;
                summaries.push(summary);
                Ok::<_, ReadError>(())
            })?;
        }
        let merged = summary::merge(summariser.schema(), &summaries, None).map_err(failed)?;
        self.within(&join::without(&merged, "level_ms").map_err(failed)?).map_err(failed)
    }

    /// The rows whose span begins in the selected time; rates reach before it.
    fn within(&self, rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let Some(from) = self.selection.from else { return Ok(rows.clone()) };
        join::from(rows, from.as_nanos())
    }
}

fn assembling(table: &str, source: ArrowError) -> ReadError {
    ReadError::Arrow { table: table.into(), source }
}
