//! The series of one table and their numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::error::ArrowError;
use meikyo_recording::read::{Problem, Scan, Wanted};
use meikyo_recording::series::{self, Texts};
use meikyo_recording::summary::{SUFFIX, ZOOM_LEVELS};
use meikyo_recording::{ReadError, Recording, Selection, TableSchema};
use meikyo_units::glob::matches;
use meikyo_units::{Nanos, WallTime};

/// The texts of a series' labels, in the order of the table's columns.
pub type Labels = Vec<String>;

/// How far back the log is read again for series, since rows of devices come one after another.
const OVERLAP: Nanos = Nanos::from_secs(2);

/// The series of one table.
#[derive(Debug)]
pub struct SeriesOfTable {
    table: TableSchema,
    names: Vec<String>,
    by_labels: BTreeMap<Labels, u32>,
    labels: Vec<Labels>,
    /// Files whose series are known.
    read: BTreeSet<PathBuf>,
    /// Rows of the log up to here are known.
    log_read_to: Option<WallTime>,
    /// What was wrong with files that are not read again.
    met: BTreeSet<Problem>,
    /// What is wrong with the list of files now.
    listed: Vec<Problem>,
}

impl SeriesOfTable {
    pub(crate) fn new(table: &TableSchema) -> Self {
        let names = series::labels(table).map(|label| table.columns[label].name.clone());
        Self {
            names: names.collect(),
            table: table.clone(),
            by_labels: BTreeMap::new(),
            labels: Vec::new(),
            read: BTreeSet::new(),
            log_read_to: None,
            met: BTreeSet::new(),
            listed: Vec::new(),
        }
    }

    /// What was found wrong while series were looked for: some of them may be unknown.
    pub fn problems(&self) -> BTreeSet<&Problem> {
        self.met.iter().chain(&self.listed).collect()
    }

    /// The labels of all series, by number.
    pub fn labels(&self) -> &[Labels] {
        &self.labels
    }

    /// The number of a series; a new one when it is not known.
    pub(crate) fn ordinal(&mut self, labels: Labels) -> u32 {
        let next = u32::try_from(self.labels.len()).expect("fewer than 2^32 series");
        *self.by_labels.entry(labels).or_insert_with_key(|labels| {
            self.labels.push(labels.clone());
            next
        })
    }

    /// The labels of a series by name.
    pub fn named(&self, ordinal: u32) -> BTreeMap<String, String> {
        let labels = usize::try_from(ordinal).ok().and_then(|ordinal| self.labels.get(ordinal));
        self.names.iter().cloned().zip(labels.into_iter().flatten().cloned()).collect()
    }

    /// The numbers of the series that have one of the wanted texts in every label named.
    pub fn chosen(&self, wanted: &[(String, Vec<String>)]) -> Vec<u32> {
        let position = |name: &String| self.names.iter().position(|of| of == name);
        let wanted: Vec<_> =
            wanted.iter().filter_map(|(name, texts)| Some((position(name)?, texts))).collect();
        let fits = |labels: &Labels| {
            wanted
                .iter()
                .all(|(label, texts)| texts.iter().any(|text| matches(text, &labels[*label])))
        };
        (0..)
            .zip(&self.labels)
            .filter(|(_, labels)| fits(labels))
            .map(|(ordinal, _)| ordinal)
            .collect()
    }

    /// Looks into files and rows of the log that are new.
    pub(crate) fn refresh(&mut self, recording: &Recording) -> Result<(), ReadError> {
        let mut found = BTreeSet::new();
        if self.names.is_empty() {
            found.insert(Vec::new());
        } else {
            self.of_files(recording, &mut found)?;
            self.of_log(recording, &mut found)?;
        }
        for labels in found {
            self.ordinal(labels);
        }
        Ok(())
    }

    fn of_files(
        &mut self,
        recording: &Recording,
        found: &mut BTreeSet<Labels>,
    ) -> Result<(), ReadError> {
        let summary = format!("{}{SUFFIX}", self.table.name);
        let mut source = (summary.clone(), recording.listing(&Wanted::table(&summary))?);
        if source.1.parquet.is_empty() {
            let name = self.table.name.clone();
            source = (name.clone(), recording.listing(&Wanted::table(&name))?);
        }
        let (name, listing) = source;
        self.listed = listing.problems;
        let mut new =
            listing.parquet.into_iter().filter(|file| !self.read.contains(&file.path)).peekable();
        if new.peek().is_none() {
            return Ok(());
        }
        let schema = recording.table(&name)?;
        let coarsest = ZOOM_LEVELS[ZOOM_LEVELS.len() - 1].get() / 1_000_000;
        let level = ("level_ms".to_owned(), vec![coarsest.to_string()]);
        let selection = Selection {
            columns: Some(self.names.clone()),
            labels: if name == summary { vec![level] } else { Vec::new() },
            ..Selection::all(&name)
        };
        for file in new.collect::<Vec<_>>() {
            self.read.insert(file.path.clone());
            let scan = recording.scan_file(file, schema.clone(), &selection)?;
            self.collect_all(scan, found)?;
        }
        Ok(())
    }

    fn of_log(
        &mut self,
        recording: &Recording,
        found: &mut BTreeSet<Labels>,
    ) -> Result<(), ReadError> {
        let Some(begin) = recording.log_begin(&self.table.name)? else { return Ok(()) };
        let from = self.log_read_to.map_or(begin, |to| begin.max(to.before(OVERLAP)));
        let end = recording.span(&self.table.name)?.map(|(_, to)| to);
        let columns = std::iter::once("time".to_owned()).chain(self.names.iter().cloned());
        let selection = Selection {
            columns: Some(columns.collect()),
            from: Some(from),
            ..Selection::all(&self.table.name)
        };
        self.collect_all(recording.scan(&selection)?, found)?;
        self.log_read_to = end;
        Ok(())
    }

    fn collect_all(
        &mut self,
        mut scan: Scan,
        found: &mut BTreeSet<Labels>,
    ) -> Result<(), ReadError> {
        for batch in &mut scan {
            self.collect(&batch?, found)?;
        }
        self.met.extend(scan.problems().iter().cloned());
        Ok(())
    }

    fn collect(&self, batch: &RecordBatch, found: &mut BTreeSet<Labels>) -> Result<(), ReadError> {
        let labels = self.label_columns(batch)?;
        for run in self.runs(&labels, batch.num_rows())? {
            let labels = texts_at(&labels, run.start);
            if !self.by_labels.contains_key(&labels) {
                found.insert(labels);
            }
        }
        Ok(())
    }

    /// The series of rows that are sorted by their labels: the number of each, and its rows.
    ///
    /// # Errors
    /// When the rows lack a label.
    pub(crate) fn ordinals_of_runs(
        &mut self,
        batch: &RecordBatch,
    ) -> Result<Vec<(u32, Range<usize>)>, ReadError> {
        let labels = self.label_columns(batch)?;
        let runs = self.runs(&labels, batch.num_rows())?;
        Ok(runs.into_iter().map(|run| (self.ordinal(texts_at(&labels, run.start)), run)).collect())
    }

    fn label_columns(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>, ReadError> {
        let missing = |name: &str| ArrowError::SchemaError(format!("there is no column `{name}`"));
        let column =
            |name: &String| batch.column_by_name(name).cloned().ok_or_else(|| missing(name));
        let columns: Result<_, _> = self.names.iter().map(column).collect();
        columns.map_err(|source| self.unassembled(source))
    }

    fn runs(&self, labels: &[ArrayRef], rows: usize) -> Result<Vec<Range<usize>>, ReadError> {
        series::runs(labels, rows).map_err(|source| self.unassembled(source))
    }

    pub(crate) fn unassembled(&self, source: ArrowError) -> ReadError {
        ReadError::Arrow { table: self.table.name.clone(), source }
    }
}

fn texts_at(labels: &[ArrayRef], row: usize) -> Labels {
    let text = |label: &ArrayRef| Some(Texts::new(label)?.get(row)?.to_owned());
    labels.iter().map(|label| text(label).unwrap_or_default()).collect()
}
