//! Rows of one log segment, sorted as those of a Parquet file are.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampNanosecondArray, UInt64Array,
};
use arrow::error::ArrowError;

use super::ReadCost;
use super::plan::{Plan, is_text};
use crate::batch::Batch;
use crate::layout::SegmentFile;
use crate::schema::ColumnKind;
use crate::segment::{Ending, Ranks, ReadSegmentError, SegmentIndex, SegmentReader, Symbols};
use crate::series;

/// Rows that are sorted together; a segment of more gives several batches.
const SORTED_ROWS: usize = 1 << 20;

/// Why the rows of a segment could not be read.
pub(super) enum LogError {
    Segment(ReadSegmentError),
    Arrow(ArrowError),
}

impl From<ReadSegmentError> for LogError {
    fn from(error: ReadSegmentError) -> Self {
        Self::Segment(error)
    }
}

impl From<ArrowError> for LogError {
    fn from(error: ArrowError) -> Self {
        Self::Arrow(error)
    }
}

/// The wanted rows of a segment in sorted batches, and what is wrong with the segment if anything.
///
/// A torn tail is no problem: it is what a writer is in the middle of, or a crash left.
pub(super) fn read(
    segment: SegmentFile,
    plan: &Plan,
    cost: &mut ReadCost,
) -> Result<(Vec<RecordBatch>, Option<String>), LogError> {
    let index = SegmentIndex::read_beside(&segment);
    // Not wanted is what the index describes; behind it there may be more.
    let index = index.filter(|index| {
        let spans = index.spans_of(&plan.table.name);
        !spans.iter().any(|&(least, greatest)| plan.wants_span(least, greatest))
    });
    let length = segment.file.metadata().map_or(0, |metadata| metadata.len());
    if let Some(index) = index.as_ref().filter(|index| index.bytes == length) {
        return Ok((Vec::new(), index.ending().problem(segment.ends_with)));
    }
    cost.segments_opened += 1;
    let SegmentFile { stream, path, file, ends_with, .. } = segment;
    let Some(mut reader) = SegmentReader::from_file(file, &path)? else {
        return Ok((Vec::new(), Ending::default().problem(ends_with)));
    };
    if reader.head().stream != stream {
        let what = format!("it belongs elsewhere: its stream is `{}`", reader.head().stream);
        return Ok((Vec::new(), Some(what)));
    }
    let mut batches = Vec::new();
    let found = reader.head().tables.iter().position(|table| table.name == plan.table.name);
    let Some(table) = found else { return Ok((batches, None)) };
    let schema = reader.head().tables[table].clone();
    if let Some(index) = index {
        reader.pass_over(&index)?;
    }
    let mut rows = LogRows::new(plan, &schema);
    let mut batch = Batch::new(table, &schema);
    let mut octets = 0;
    while let Some(frame) = reader.next_rows(|header| {
        header.table == table && plan.wants_span(header.least_time, header.greatest_time)
    })? {
        octets += frame.payload_len as u64;
        if reader.decode(&frame, &mut batch).is_err() {
            continue;
        }
        rows.push(&batch, reader.symbols(), plan);
        if rows.times.len() >= SORTED_ROWS {
            batches.push(rows.sorted(reader.symbols(), plan)?);
        }
    }
    cost.bytes_read += octets;
    if !rows.times.is_empty() {
        batches.push(rows.sorted(reader.symbols(), plan)?);
    }
    Ok((batches, reader.problem(ends_with)))
}

/// Wanted rows as they come, column by column.
struct LogRows {
    times: Vec<i64>,
    columns: Vec<LogColumn>,
}

/// A column that is wanted, sorted by or chosen by.
struct LogColumn {
    /// Position in the plan's table, and in the segment's; `None` where the segment has none.
    position: usize,
    in_segment: Option<usize>,
    kind: ColumnKind,
    bits: Vec<u64>,
    valid: Vec<bool>,
    octets: Vec<u8>,
}

impl LogRows {
    fn new(plan: &Plan, segment: &crate::schema::TableSchema) -> Self {
        let labels = series::labels(&plan.table);
        let positions: BTreeSet<_> =
            plan.columns.iter().copied().chain(labels).chain(plan.choosing()).collect();
        let column = |position: usize| {
            let column = &plan.table.columns[position];
            let in_segment = segment
                .column(&column.name)
                .filter(|&found| segment.columns[found].kind == column.kind);
            LogColumn {
                position,
                in_segment,
                kind: column.kind,
                bits: Vec::new(),
                valid: Vec::new(),
                octets: Vec::new(),
            }
        };
        let columns = positions.into_iter().filter(|position| *position > 0).map(column).collect();
        Self { times: Vec::new(), columns }
    }

    /// Takes the wanted rows of a frame.
    fn push(&mut self, batch: &Batch, symbols: &Symbols, plan: &Plan) {
        let times = &batch.columns[0].bits;
        let mut wanted: Vec<_> = (0..batch.rows)
            .filter(|&row| {
                let time = times[row].cast_signed();
                time >= plan.from && time < plan.to
            })
            .collect();
        for (label, texts) in &plan.labels {
            let of_label = self.columns.iter().find(|column| column.position == *label);
            let Some(source) = of_label.and_then(|column| column.in_segment) else { return };
            let kind = plan.table.columns[*label].kind;
            let column = &batch.columns[source];
            wanted.retain(|&row| {
                !column.is_null(row)
                    && if is_text(kind) {
                        text_of(batch, source, row, symbols).is_some_and(|text| texts.matches(text))
                    } else {
                        texts.has_number(column.bits[row])
                    }
            });
        }
        self.times.extend(wanted.iter().map(|&row| times[row].cast_signed()));
        for to in &mut self.columns {
            let from = to.in_segment.map(|source| &batch.columns[source]);
            let from = from.filter(|from| !from.bits.is_empty());
            let Some(from) = from else {
                to.bits.resize(to.bits.len() + wanted.len(), to.octets.len() as u64);
                to.valid.resize(to.bits.len(), false);
                continue;
            };
            for &row in &wanted {
                let valid = !from.is_null(row);
                to.valid.push(valid);
                if to.kind == ColumnKind::Text {
                    if valid {
                        to.octets.extend_from_slice(octets_of(from, row));
                    }
                    to.bits.push(to.octets.len() as u64);
                } else {
                    to.bits.push(if valid { from.bits[row] } else { 0 });
                }
            }
        }
    }

    /// The rows taken so far as a batch that is sorted by labels and time; empties them.
    fn sorted(&mut self, symbols: &Symbols, plan: &Plan) -> Result<RecordBatch, ArrowError> {
        let ranks = symbols.ranks();
        let labels: Vec<_> = series::labels(&plan.table).collect();
        let of_label = |position: &usize| {
            let column = self.columns.iter().find(|column| column.position == *position)?;
            Some(column.sort_keys(&ranks))
        };
        let keys: Vec<_> = labels.iter().filter_map(of_label).collect();
        let mut order: Vec<_> = (0..self.times.len()).collect();
        order.sort_by(|&a, &b| {
            let labels = keys.iter().map(|keys| keys[a].cmp(&keys[b]));
            let differing = labels.into_iter().find(|order| order.is_ne());
            differing.unwrap_or_else(|| self.times[a].cmp(&self.times[b]))
        });
        let texts = Arc::new(StringArray::from_iter_values(&ranks.texts));
        let mut arrays: Vec<ArrayRef> = Vec::new();
        for &position in &plan.columns {
            arrays.push(if position == 0 {
                let times = order.iter().map(|&row| self.times[row]);
                let times = TimestampNanosecondArray::from_iter_values(times);
                Arc::new(times.with_timezone("UTC"))
            } else {
                let column = self.columns.iter().find(|column| column.position == position);
                column.map_or_else(
                    || Err(ArrowError::SchemaError("a wanted column was not read".into())),
                    |column| column.array(&order, &texts, &ranks),
                )?
            });
        }
        self.times.clear();
        for column in &mut self.columns {
            column.bits.clear();
            column.valid.clear();
            column.octets.clear();
        }
        RecordBatch::try_new(plan.arrow.clone(), arrays)
    }
}

impl LogColumn {
    /// What rows are sorted by: nulls first, symbols by their text.
    fn sort_keys(&self, ranks: &Ranks<'_>) -> Vec<u64> {
        let key = |(bits, valid): (&u64, &bool)| match (valid, self.kind) {
            (false, _) => 0,
            (true, ColumnKind::Symbol) => ranks.rank_of(*bits).map_or(0, |rank| rank as u64 + 1),
            (true, ColumnKind::I64) => (bits ^ (1 << 63)).saturating_add(1),
            (true, _) => bits.saturating_add(1),
        };
        self.bits.iter().zip(&self.valid).map(key).collect()
    }

    fn array(
        &self,
        order: &[usize],
        texts: &Arc<StringArray>,
        ranks: &Ranks<'_>,
    ) -> Result<ArrayRef, ArrowError> {
        let values = order.iter().map(|&row| self.valid[row].then(|| self.bits[row]));
        Ok(match self.kind {
            ColumnKind::Time => {
                let times = values.map(|bits| bits.map(u64::cast_signed));
                Arc::new(times.collect::<TimestampNanosecondArray>().with_timezone("UTC"))
            }
            ColumnKind::U64 => Arc::new(values.collect::<UInt64Array>()),
            ColumnKind::I64 => {
                Arc::new(values.map(|bits| bits.map(u64::cast_signed)).collect::<Int64Array>())
            }
            ColumnKind::F64 => {
                Arc::new(values.map(|bits| bits.map(f64::from_bits)).collect::<Float64Array>())
            }
            ColumnKind::Symbol => {
                // A symbol that damage took is a missing value.
                let known = |bits: u64| i32::try_from(ranks.rank_of(bits)?).ok();
                let keys: Int32Array = values.map(|bits| bits.and_then(known)).collect();
                Arc::new(DictionaryArray::try_new(keys, texts.clone())?)
            }
            ColumnKind::Text => {
                let text = |&row: &usize| {
                    let text = self.octets_of(row).filter(|_| self.valid[row]);
                    text.and_then(|octets| std::str::from_utf8(octets).ok())
                };
                Arc::new(order.iter().map(text).collect::<StringArray>())
            }
        })
    }

    fn octets_of(&self, row: usize) -> Option<&[u8]> {
        let begin = row.checked_sub(1).map_or(0, |before| self.bits[before]);
        let range = usize::try_from(begin).ok()?..usize::try_from(self.bits[row]).ok()?;
        self.octets.get(range)
    }
}

fn octets_of(column: &crate::batch::ColumnBuffer, row: usize) -> &[u8] {
    let begin = row.checked_sub(1).map_or(0, |before| column.bits[before]);
    let [begin, end] = [begin, column.bits[row]]
        .map(|at| usize::try_from(at).expect("texts of a batch lie in memory"));
    &column.octets[begin..end]
}

fn text_of<'a>(
    batch: &'a Batch,
    column: usize,
    row: usize,
    symbols: &'a Symbols,
) -> Option<&'a str> {
    let column = &batch.columns[column];
    match column.kind {
        ColumnKind::Symbol => symbols.text(column.bits[row]),
        ColumnKind::Text => std::str::from_utf8(octets_of(column, row)).ok(),
        _ => None,
    }
}
