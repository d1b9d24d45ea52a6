//! Where the values of a range come from: summaries, then the log and raw readings.

use std::panic::resume_unwind;
use std::sync::Arc;

use meikyo_recording::layout::{self, ParquetFile};
use meikyo_recording::query::{self, View};
use meikyo_recording::rate::Freshness;
use meikyo_recording::read::Wanted;
use meikyo_recording::summary::SUFFIX;
use meikyo_recording::{ReadError, Selection, TableSchema};
use meikyo_units::{Nanos, WallTime};

use super::blocks::{Block, BlockCache, Parts};
use super::cells::Cells;
use super::request::RangeRequest;
use crate::bins::Bins;
use crate::drawable::label_names;
use crate::freshness::freshness;
use crate::opened::{FileProblem, Opened};

/// How far raw readings are read beyond a range, at least, so that rates at its ends are known.
const MARGIN_LEAST: Nanos = Nanos::from_secs(2);
/// How far at most, whatever the agents cache.
const MARGIN_MOST: Nanos = Nanos::from_secs(60);

/// Threads that read the files of one range.
const READING_THREADS: usize = 2;
/// Fewer files are read by one thread.
const FILES_A_THREAD: usize = 4;

/// Everything that a range is filled from.
pub(super) struct Source<'a> {
    pub(super) opened: &'a Opened,
    pub(super) cache: &'a BlockCache,
    pub(super) request: &'a RangeRequest,
    pub(super) bins: Bins,
    pub(super) summary: Option<TableSchema>,
}

/// The summary table of a table; `None` when it has none (yet).
pub(super) fn summary_table(
    opened: &Opened,
    table: &TableSchema,
) -> Result<Option<TableSchema>, ReadError> {
    match opened.recording.table(&format!("{}{SUFFIX}", table.name)) {
        Ok(summary) => Ok(Some(summary)),
        Err(ReadError::UnknownTable { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Source<'_> {
    /// Fills the cells, and notes what could not be read.
    pub(super) fn fill(
        &self,
        cells: &mut Cells,
        problems: &mut Vec<FileProblem>,
    ) -> Result<(), ReadError> {
        let Some(summary) = self.summary.as_ref().filter(|_| self.bins.level > 0) else {
            return self.readings(self.bins.from, self.bins.length, cells, problems);
        };
        // Rows that are still in the log have no summaries. They are condensed from the begin of
        // their span on, and the span in which files and log meet is condensed whole, so that
        // nothing counts twice. The begin of the log is looked at first: what is compacted
        // meanwhile is then read from raw files.
        let log = self.opened.recording.log_begin(&self.request.table.name)?;
        let level = self.bins.level;
        let border = log.map_or(i64::MAX, |log| log.as_nanos() - log.as_nanos().rem_euclid(level));
        self.summaries(summary, border, cells, problems)?;
        if border < self.bins.to {
            self.readings(border.max(self.bins.from), level, cells, problems)?;
        }
        Ok(())
    }

    /// Reads the summaries of spans that begin before `border`.
    fn summaries(
        &self,
        summary: &TableSchema,
        border: i64,
        cells: &mut Cells,
        problems: &mut Vec<FileProblem>,
    ) -> Result<(), ReadError> {
        let column = &self.request.column;
        let parts = Parts::of_column(&column.name, column.counts());
        let hours = layout::hour_of(self.bins.from)..=layout::hour_of(self.bins.to - 1);
        let wanted = Wanted { table: Some(&summary.name), hours };
        let listing = self.opened.recording.listing(&wanted)?;
        problems.extend(listing.problems.iter().map(|problem| self.opened.problem(problem)));
        for block in self.blocks(&listing.parquet, summary, &parts)? {
            problems.extend(block.problems.iter().cloned());
            for (series, times, values) in block.series() {
                let Some(pixels) = cells.of_series(series) else { continue };
                for (&time, value) in times.iter().zip(values) {
                    if time < border
                        && let Some(bin) = self.bins.bin_of(time)
                    {
                        pixels[bin].add(value);
                    }
                }
            }
        }
        Ok(())
    }

    /// The blocks of some files, read by several threads: a file is mostly decoding.
    fn blocks(
        &self,
        files: &[ParquetFile],
        summary: &TableSchema,
        parts: &Parts,
    ) -> Result<Vec<Arc<Block>>, ReadError> {
        let read = |file: &ParquetFile| {
            let key = (file.path.clone(), self.request.column.name.clone(), self.bins.level);
            self.cache.get(&key, || self.block(file.clone(), summary, parts))
        };
        if files.len() < FILES_A_THREAD {
            return files.iter().map(read).collect();
        }
        let share = files.len().div_ceil(READING_THREADS);
        let parts: Result<Vec<_>, _> = std::thread::scope(|scope| {
            let threads: Vec<_> = files
                .chunks(share)
                .map(|files| scope.spawn(|| files.iter().map(read).collect::<Result<Vec<_>, _>>()))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
                .collect()
        });
        Ok(parts?.concat())
    }

    fn block(
        &self,
        file: ParquetFile,
        summary: &TableSchema,
        parts: &Parts,
    ) -> Result<Block, ReadError> {
        let labels = label_names(&self.request.table);
        let columns = std::iter::once("time".to_owned()).chain(labels).chain(parts.columns());
        let selection = Selection {
            columns: Some(columns.collect()),
            labels: vec![("level_ms".into(), vec![self.bins.level_ms().to_string()])],
            ..Selection::all(&summary.name)
        };
        let mut block = Block::default();
        let mut scan = self.opened.recording.scan_file(file, summary.clone(), &selection)?;
        for batch in &mut scan {
            let batch = batch?;
            self.opened.with_known_series(&self.request.table, |series| {
                block.push(&batch, parts, series)
            })?;
        }
        let problems = scan.problems().iter();
        block.shrink();
        block.problems = problems.map(|problem| self.opened.problem(problem)).collect();
        Ok(block)
    }

    /// Condenses readings from `from` on to spans of `span`.
    fn readings(
        &self,
        from: i64,
        span: i64,
        cells: &mut Cells,
        problems: &mut Vec<FileProblem>,
    ) -> Result<(), ReadError> {
        let column = &self.request.column;
        let margin = if column.counts() { margin(&freshness(self.opened)?) } else { Nanos::ZERO };
        let selection = Selection {
            table: self.request.table.name.clone(),
            columns: Some(vec![column.name.clone()]),
            labels: self.request.labels.clone(),
            from: Some(WallTime::from_nanos(from).before(margin)),
            to: Some(WallTime::from_nanos(self.bins.to) + margin),
        };
        let parts = Parts::of_column(&column.name, column.counts());
        let mut block = Block::default();
        let view = View::Every(Nanos::new(span.unsigned_abs()));
        let outcome = query::run(&self.opened.recording, &selection, view, |batch| {
            self.opened
                .with_known_series(&self.request.table, |series| block.push(batch, &parts, series))
        })?;
        problems.extend(outcome.problems.iter().map(|problem| self.opened.problem(problem)));
        for (series, times, values) in block.series() {
            let Some(pixels) = cells.of_series(series) else { continue };
            for (&time, value) in times.iter().zip(values) {
                if time >= from
                    && let Some(bin) = self.bins.bin_of(time)
                {
                    pixels[bin].add(value);
                }
            }
        }
        Ok(())
    }
}

/// How far from a reading its rate can reach.
pub(super) fn margin(freshness: &Freshness) -> Nanos {
    let longest = freshness.longest().unwrap_or(MARGIN_LEAST);
    let margin = Nanos::new(longest.get().saturating_mul(2));
    margin.clamp(MARGIN_LEAST, MARGIN_MOST)
}
