//! One pass over the rows that a selection wants.

use std::vec::IntoIter;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;

use super::plan::Plan;
use super::{
    Meter, OpenError, Problem, ReadCost, ReadError, Recording, Selection, log_rows, parquet_rows,
};
use crate::layout::{ParquetFile, SegmentFile};
use crate::problem::decoded;
use crate::schema::TableSchema;
use crate::segment::ReadSegmentError;

/// One pass over the rows that a selection wants: an iterator of batches.
#[derive(Debug)]
pub struct Scan {
    recording: Recording,
    plan: Plan,
    files: IntoIter<ParquetFile>,
    segments: IntoIter<SegmentFile>,
    file: Option<(ParquetFile, ParquetRecordBatchReader)>,
    /// Batches of the segment that is being read.
    of_log: IntoIter<RecordBatch>,
    /// What the open file has read of its octets.
    meter: Meter,
    cost: ReadCost,
    problems: Vec<Problem>,
}

impl Scan {
    pub(super) fn begin(recording: &Recording, selection: &Selection) -> Result<Self, ReadError> {
        let table = recording.table(&selection.table)?;
        let plan = Plan::new(table, selection)?;
        let listing = recording.listing(&plan.files())?;
        let mut files = listing.parquet;
        files.sort_by_key(|file| (file.hour, file.name.first));
        let mut scan = Self::over(recording, plan, files, listing.segments);
        scan.problems = listing.problems;
        Ok(scan)
    }

    pub(super) fn of_file(
        recording: &Recording,
        file: ParquetFile,
        table: TableSchema,
        selection: &Selection,
    ) -> Result<Self, ReadError> {
        Ok(Self::over(recording, Plan::new(table, selection)?, vec![file], Vec::new()))
    }

    /// The rows that are still in the log.
    pub(super) fn of_log(recording: &Recording, selection: &Selection) -> Result<Self, ReadError> {
        Ok(Self { files: Vec::new().into_iter(), ..Self::begin(recording, selection)? })
    }

    fn over(
        recording: &Recording,
        plan: Plan,
        files: Vec<ParquetFile>,
        segments: Vec<SegmentFile>,
    ) -> Self {
        Self {
            recording: recording.clone(),
            plan,
            files: files.into_iter(),
            segments: segments.into_iter(),
            file: None,
            of_log: Vec::new().into_iter(),
            meter: Meter::default(),
            cost: ReadCost::default(),
            problems: Vec::new(),
        }
    }

    /// The schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        self.plan.arrow.clone()
    }

    /// The wanted columns as the table describes them, in their order.
    pub fn table(&self) -> TableSchema {
        let columns = self.plan.columns.iter();
        TableSchema {
            columns: columns.map(|&column| self.plan.table.columns[column].clone()).collect(),
            ..self.plan.table.clone()
        }
    }

    /// What was touched so far.
    pub fn cost(&self) -> ReadCost {
        ReadCost { bytes_read: self.cost.bytes_read + self.meter.bytes(), ..self.cost }
    }

    /// The files that could not be read wholly so far, are missing or do not belong.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The next batch of the open file, or of the next one; `None` when there is no file left.
    fn next_of_files(&mut self) -> Option<Result<RecordBatch, ReadError>> {
        loop {
            if let Some((file, reader)) = &mut self.file {
                let next = decoded(|| reader.next());
                let next = next.unwrap_or_else(|what| Some(Err(ArrowError::ParquetError(what))));
                match next {
                    Some(Ok(batch)) if batch.num_rows() > 0 => {
                        if let Err(what) = parquet_rows::compare_times(&batch, file) {
                            self.problems.push(Problem::new(&file.path, what));
                            self.file = None;
                            continue;
                        }
                        let columns = parquet_rows::arranged(&batch, &self.plan);
                        return Some(columns.map_err(|source| self.assembling(source)));
                    }
                    Some(Ok(_)) => continue,
                    Some(Err(error)) => {
                        let path = file.path.clone();
                        self.problems.push(Problem { path, what: error.to_string() });
                        self.file = None;
                    }
                    None => self.file = None,
                }
            }
            let file = self.files.next()?;
            let verification = self.recording.verification;
            let (plan, meter, cost) = (&self.plan, &self.meter, &mut self.cost);
            let opened = decoded(|| parquet_rows::open(&file, plan, meter, cost, verification))
                .unwrap_or_else(|what| Err(OpenError::Unfit(what)));
            match opened {
                Ok(Some(reader)) => self.file = Some((file, reader)),
                Ok(None) => {}
                Err(OpenError::Vanished) => {
                    if self.recording.misses(&file) {
                        self.problems.push(Problem::new(&file.path, "it is missing"));
                    }
                }
                Err(OpenError::Unfit(what)) => {
                    self.problems.push(Problem::new(&file.path, what));
                }
            }
        }
    }

    fn next_of_log(&mut self) -> Option<Result<RecordBatch, ReadError>> {
        loop {
            if let Some(batch) = self.of_log.next() {
                return Some(Ok(batch));
            }
            let segment = self.segments.next()?;
            let path = segment.path.clone();
            match log_rows::read(segment, &self.plan, &mut self.cost) {
                Ok((batches, problem)) => {
                    self.of_log = batches.into_iter();
                    self.problems.extend(problem.map(|what| Problem { path, what }));
                }
                Err(log_rows::LogError::Arrow(source)) => {
                    return Some(Err(self.assembling(source)));
                }
                Err(log_rows::LogError::Segment(error @ ReadSegmentError::Newer { .. })) => {
                    return Some(Err(error.into()));
                }
                Err(log_rows::LogError::Segment(error)) => {
                    self.problems.push(Problem { path, what: error.to_string() });
                }
            }
        }
    }

    fn assembling(&self, source: ArrowError) -> ReadError {
        ReadError::Arrow { table: self.plan.table.name.clone(), source }
    }
}

impl Iterator for Scan {
    type Item = Result<RecordBatch, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_of_files().or_else(|| self.next_of_log());
        if let Some(Ok(batch)) = &next {
            self.cost.rows += batch.num_rows() as u64;
        }
        next
    }
}
