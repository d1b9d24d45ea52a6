//! What one Parquet file of summaries holds of one column at one level, and what is kept of it.
//!
//! Files never change, so what was decoded once need not be decoded again: moving and zooming a
//! view then touches memory only. The cache is bounded in octets; what was not used for longest
//! goes first.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use arrow::array::{Array as _, AsArray as _, Float64Array, RecordBatch};
use arrow::datatypes::{TimestampNanosecondType, UInt64Type};
use arrow::error::ArrowError;
use meikyo_recording::ReadError;

use super::cells::Cell;
use crate::columns::reals;
use crate::opened::FileProblem;
use crate::series::SeriesOfTable;

/// Spans of some series in order of time, series after series.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// The series, and where its spans end.
    runs: Vec<(u32, usize)>,
    /// Begins of the spans, ns since the epoch.
    times: Vec<i64>,
    cells: Vec<Cell>,
    /// What is wrong with the file, if anything.
    pub(crate) problems: Vec<FileProblem>,
}

/// The columns of a summary that describe one value.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    pub(crate) min: String,
    pub(crate) mean: String,
    pub(crate) max: String,
    pub(crate) weight: String,
}

impl Parts {
    /// The columns for a value, which is a counter or a gauge.
    pub(crate) fn of_column(name: &str, counter: bool) -> Self {
        let (value, weight) = if counter {
            (format!("{name}_per_s"), format!("{name}_covered_us"))
        } else {
            (name.to_owned(), format!("{name}_count"))
        };
        let part = |part: &str| format!("{value}_{part}");
        Self { min: part("min"), mean: part("mean"), max: part("max"), weight }
    }

    /// The columns that are read, `time` and labels apart.
    pub(crate) fn columns(&self) -> [String; 5] {
        let Self { min, mean, max, weight } = self.clone();
        ["rows".into(), min, mean, max, weight]
    }
}

/// A value with the digits that a drawing has.
#[expect(clippy::cast_possible_truncation, reason = "a drawing has fewer digits than 32 bits")]
fn drawn(value: f64) -> f32 {
    value as f32
}

impl Block {
    /// Appends rows of a summary that are sorted by their labels and then by time.
    pub(crate) fn push(
        &mut self,
        batch: &RecordBatch,
        parts: &Parts,
        series: &mut SeriesOfTable,
    ) -> Result<(), ReadError> {
        let runs = series.ordinals_of_runs(batch)?;
        self.push_runs(batch, parts, runs).map_err(|source| series.unassembled(source))
    }

    fn push_runs(
        &mut self,
        batch: &RecordBatch,
        parts: &Parts,
        runs: Vec<(u32, Range<usize>)>,
    ) -> Result<(), ArrowError> {
        let missing = |name: &str| ArrowError::SchemaError(format!("a summary lacks `{name}`"));
        let column = |name: &str| batch.column_by_name(name).ok_or_else(|| missing(name));
        let real = |name: &str| -> Result<Float64Array, ArrowError> {
            reals(column(name)?).ok_or_else(|| missing(name))
        };
        let times = column("time")?;
        let times = times.as_primitive_opt::<TimestampNanosecondType>();
        let times = times.ok_or_else(|| missing("time"))?;
        let (min, mean, max) = (real(&parts.min)?, real(&parts.mean)?, real(&parts.max)?);
        let weight = real(&parts.weight)?;
        let rows = column("rows")?.as_primitive_opt::<UInt64Type>();
        let rows = rows.ok_or_else(|| missing("rows"))?;
        for (ordinal, run) in runs {
            for row in run {
                if mean.is_null(row) {
                    continue;
                }
                self.times.push(times.value(row));
                self.cells.push(Cell {
                    min: drawn(min.value(row)),
                    mean: drawn(mean.value(row)),
                    max: drawn(max.value(row)),
                    weight: drawn(weight.value(row)),
                    // Saturates: so many rows are enough for every decision that is made of it.
                    count: u32::try_from(rows.value(row)).unwrap_or(u32::MAX),
                });
            }
            match self.runs.last_mut() {
                Some((last, end)) if *last == ordinal => *end = self.times.len(),
                _ => self.runs.push((ordinal, self.times.len())),
            }
        }
        Ok(())
    }

    /// The spans of each series: its number, their begins, their values.
    pub(crate) fn series(&self) -> impl Iterator<Item = (u32, &[i64], &[Cell])> {
        let begins = std::iter::once(0).chain(self.runs.iter().map(|(_, end)| *end));
        self.runs.iter().zip(begins).map(|(&(ordinal, end), begin)| {
            (ordinal, &self.times[begin..end], &self.cells[begin..end])
        })
    }

    /// Gives back the room that growing left.
    pub(crate) fn shrink(&mut self) {
        self.runs.shrink_to_fit();
        self.times.shrink_to_fit();
        self.cells.shrink_to_fit();
    }

    fn bytes(&self) -> usize {
        self.times.capacity() * (size_of::<i64>() + size_of::<Cell>()) + self.runs.capacity() * 16
    }
}

/// A file, a column and a level.
pub(crate) type BlockKey = (PathBuf, String, i64);

/// What was decoded of summaries and is kept, of all recordings together.
#[derive(Debug)]
pub struct BlockCache {
    bytes_max: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    blocks: BTreeMap<BlockKey, (u64, Arc<Block>)>,
    bytes: usize,
    /// Counts uses, so that the oldest is known.
    clock: u64,
}

impl BlockCache {
    /// A cache of at most so many octets.
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max, kept: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("nothing that holds the blocks can panic")
    }

    /// The block of that key, which `make` reads when it is not kept.
    pub(crate) fn get<E>(
        &self,
        key: &BlockKey,
        make: impl FnOnce() -> Result<Block, E>,
    ) -> Result<Arc<Block>, E> {
        {
            let mut kept = self.lock();
            kept.clock += 1;
            let clock = kept.clock;
            if let Some((used, block)) = kept.blocks.get_mut(key) {
                *used = clock;
                return Ok(Arc::clone(block));
            }
        }
        // Read without the lock: two requests may read the same file, none waits for another.
        let block = Arc::new(make()?);
        let mut kept = self.lock();
        kept.keep(key.clone(), Arc::clone(&block), self.bytes_max);
        Ok(block)
    }
}

impl Kept {
    fn keep(&mut self, key: BlockKey, block: Arc<Block>, bytes_max: usize) {
        let bytes = block.bytes();
        // One block must not push out everything else.
        if bytes > bytes_max / 4 {
            return;
        }
        if let Some((_, replaced)) = self.blocks.insert(key, (self.clock, block)) {
            self.bytes -= replaced.bytes();
        }
        self.bytes += bytes;
        while self.bytes > bytes_max {
            let oldest = self.blocks.iter().min_by_key(|(_, (used, _))| *used);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else { return };
            if let Some((_, block)) = self.blocks.remove(&key) {
                self.bytes -= block.bytes();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_keeps_what_was_used_last_within_its_octets() {
        let cache = BlockCache::new(1_000);
        let key = |n: i64| (PathBuf::from("f"), "c".to_owned(), n);
        let block = |fill: usize| Block { times: Vec::with_capacity(fill), ..Block::default() };
        let mut reads = 0;
        let mut get = |n, fill| {
            let made = cache.get(&key(n), || {
                reads += 1;
                Ok::<_, ()>(block(fill))
            });
            assert!(made.is_ok());
        };
        for n in [1, 2, 3, 4, 1, 5, 1] {
            get(n, 8);
        }
        // 8 spans are 224 octets: four blocks fit, and 1 was used before 5 came.
        get(2, 8);
        // 50 spans are more than a quarter of the cache and are read each time.
        get(9, 50);
        get(9, 50);
        assert_eq!(reads, 8);
    }
}
