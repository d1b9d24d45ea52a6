//! Rows of one Parquet file, with everything left out that its statistics rule out.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray as _, BooleanArray, RecordBatch, new_null_array};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{Field, Schema, TimestampNanosecondType, UInt64Type};
use arrow::error::ArrowError;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowPredicateFn, ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder, RowFilter, RowSelection,
};
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::{
    ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::statistics::Statistics;

use super::ReadCost;
use super::plan::Plan;
use super::verified::{Meter, OpenError, Verification, VerifiedFile};
use super::wanted::Wanted;
use crate::layout::{ParquetFile, hour_of};
use crate::series;

/// Rows that a batch has at most.
const BATCH_ROWS: usize = 1 << 16;

/// The least and the greatest `time` of a file; `None` when it has no rows or cannot be read.
pub(super) fn time_span(file: &ParquetFile) -> Option<(i64, i64)> {
    let (_, metadata) = VerifiedFile::open(file, &Meter::default(), Verification::Always).ok()?;
    time_span_of(&metadata)
}

/// A count in a footer; a damaged one can tell less than nothing, which is none.
fn count_told(count: i64) -> usize {
    usize::try_from(count.max(0)).expect("an address has 64 bits")
}

/// The least and the greatest `time` that a footer names.
pub(crate) fn time_span_of(metadata: &ParquetMetaData) -> Option<(i64, i64)> {
    let time = column_of(metadata, "time")?;
    let spans = metadata.row_groups().iter().filter_map(|group| times_of(group.column(time)));
    spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

fn column_of(metadata: &ParquetMetaData, name: &str) -> Option<usize> {
    let columns = metadata.file_metadata().schema_descr().columns();
    columns.iter().position(|column| column.name() == name)
}

fn times_of(chunk: &ColumnChunkMetaData) -> Option<(i64, i64)> {
    match chunk.statistics()? {
        Statistics::Int64(of) => Some((*of.min_opt()?, *of.max_opt()?)),
        _ => None,
    }
}

/// What the columns that rows are chosen by allow, in some rows.
enum Verdict {
    None,
    Some,
    All,
}

/// What the statistics of a row group say.
fn judge(group: &RowGroupMetaData, plan: &Plan, columns: &[Option<usize>]) -> Verdict {
    let mut all = true;
    if let Some((least, greatest)) = columns[0].and_then(|time| times_of(group.column(time))) {
        if !plan.wants_span(least, greatest) {
            return Verdict::None;
        }
        all &= plan.wants_all_of(least, greatest);
    } else {
        all = false;
    }
    for ((_, wanted), column) in plan.labels.iter().zip(&columns[1..]) {
        let Some(column) = *column else { return Verdict::None };
        let Some(statistics) = group.column(column).statistics() else {
            all = false;
            continue;
        };
        if let Some((least, greatest)) = times_of(group.column(column)) {
            if !wanted.may_count_between(least, greatest) {
                return Verdict::None;
            }
            // A row group of a summary holds one level: rows need not be looked at one by one.
            all &= least == greatest;
            continue;
        }
        all = false;
        let ends = (statistics.min_bytes_opt(), statistics.max_bytes_opt());
        if let (Some(least), Some(greatest)) = ends
            && !wanted.may_lie_between(least, greatest)
        {
            return Verdict::None;
        }
    }
    if all { Verdict::All } else { Verdict::Some }
}

/// Opens a file for the rows that the plan wants; `None` when it has none of them.
pub(super) fn open(
    file: &ParquetFile,
    plan: &Plan,
    meter: &Meter,
    cost: &mut ReadCost,
    verification: Verification,
) -> Result<Option<ParquetRecordBatchReader>, OpenError> {
    let (opened, metadata) = VerifiedFile::open(file, meter, verification)?;
    cost.files_opened += 1;
    let span = time_span_of(&metadata);
    if span.is_some_and(|(least, greatest)| {
        hour_of(least) != file.hour || hour_of(greatest) != file.hour
    }) {
        return Err(OpenError::Unfit("its rows are not of the hour of its directory".into()));
    }
    open_file(opened, metadata, plan, cost).map_err(|error| OpenError::Unfit(error.to_string()))
}

fn open_file(
    file: VerifiedFile,
    mut metadata: ParquetMetaData,
    plan: &Plan,
    cost: &mut ReadCost,
) -> ParquetResult<Option<ParquetRecordBatchReader>> {
    let name = |position: usize| plan.table.columns[position].name.as_str();
    let choosing: Vec<_> =
        plan.choosing().map(|position| column_of(&metadata, name(position))).collect();
    let (mut groups, mut whole) = (Vec::new(), true);
    for (index, group) in metadata.row_groups().iter().enumerate() {
        match judge(group, plan, &choosing) {
            Verdict::None => {}
            Verdict::Some => {
                groups.push(index);
                whole = false;
            }
            Verdict::All => groups.push(index),
        }
    }
    if groups.is_empty() {
        return Ok(None);
    }
    if !whole {
        let mut reader = ParquetMetaDataReader::new_with_metadata(metadata)
            .with_page_index_policy(PageIndexPolicy::Optional);
        reader.read_page_indexes(&file)?;
        metadata = reader.finish()?;
    }
    let metadata = Arc::new(metadata);
    let wanted: Vec<_> =
        plan.columns.iter().filter_map(|&column| column_of(&metadata, name(column))).collect();
    cost.row_groups_read += groups.len() as u64;
    let chosen = choosing.iter().flatten().filter(|_| !whole);
    let touched: BTreeSet<_> = wanted.iter().chain(chosen).collect();
    cost.columns_read += (groups.len() * touched.len()) as u64;
    let selection = (!whole).then(|| pages(&metadata, &groups, plan, &choosing));
    let projection = ProjectionMask::roots(metadata.file_metadata().schema_descr(), wanted);
    let choosing = ProjectionMask::roots(
        metadata.file_metadata().schema_descr(),
        choosing.into_iter().flatten(),
    );
    let arrow = reader_metadata(metadata, plan)?;
    let mut builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, arrow)
        .with_batch_size(BATCH_ROWS)
        .with_row_groups(groups)
        .with_projection(projection);
    if let Some(selection) = selection {
        builder = builder.with_row_selection(selection);
        let chooser = Chooser::new(plan);
        let predicate = ArrowPredicateFn::new(choosing, move |batch| chooser.choose(&batch));
        builder = builder.with_row_filter(RowFilter::new(vec![Box::new(predicate)]));
    }
    Ok(Some(builder.build()?))
}

/// The file's columns with the types that our batches have.
fn reader_metadata(
    metadata: Arc<ParquetMetaData>,
    plan: &Plan,
) -> ParquetResult<ArrowReaderMetadata> {
    let plain = ArrowReaderMetadata::try_new(metadata.clone(), ArrowReaderOptions::new())?;
    let typed = |field: &Arc<Field>| {
        let known = plan.table.column(field.name());
        let kind = known.map(|column| series::arrow_type(plan.table.columns[column].kind));
        match kind {
            Some(kind) => Arc::new(Field::new(field.name(), kind, field.is_nullable())),
            None => field.clone(),
        }
    };
    let fields: Vec<_> = plain.schema().fields().iter().map(typed).collect();
    let options = ArrowReaderOptions::new().with_schema(Arc::new(Schema::new(fields)));
    ArrowReaderMetadata::try_new(metadata, options)
}

/// The rows of the chosen row groups that lie in pages which may hold a wanted row.
fn pages(
    metadata: &ParquetMetaData,
    groups: &[usize],
    plan: &Plan,
    columns: &[Option<usize>],
) -> RowSelection {
    let mut ranges = Vec::new();
    let mut base = 0;
    for &group in groups {
        let rows = count_told(metadata.row_group(group).num_rows());
        let mut wanted = RowSelection::from_consecutive_ranges(std::iter::once(0..rows), rows);
        for (ordinal, column) in columns.iter().enumerate() {
            let Some(column) = *column else { continue };
            let index = metadata.page_index_for_row_group(group);
            let (Some(bounds), Some(places)) =
                (index.column_index(column), index.offset_index(column))
            else {
                continue;
            };
            let starts: Vec<_> = places
                .page_locations()
                .iter()
                .map(|page| count_told(page.first_row_index))
                .collect();
            let kept = (0..starts.len())
                .filter(|&page| page_may_hold(bounds, page, plan, ordinal))
                .map(|page| starts[page]..starts.get(page + 1).copied().unwrap_or(rows));
            let of_column = RowSelection::from_consecutive_ranges(kept, rows);
            wanted = wanted.intersection(&of_column);
        }
        let mut at = base;
        for run in wanted.iter() {
            if !run.skip {
                ranges.push(at..at + run.row_count);
            }
            at += run.row_count;
        }
        base += rows;
    }
    RowSelection::from_consecutive_ranges(ranges.into_iter(), base)
}

/// Whether a page of the `ordinal`-th choosing column may hold a wanted row.
fn page_may_hold(bounds: &ColumnIndexMetaData, page: usize, plan: &Plan, ordinal: usize) -> bool {
    match bounds {
        ColumnIndexMetaData::INT64(times) if ordinal == 0 => {
            let ends = times.min_value(page).zip(times.max_value(page));
            ends.is_none_or(|(least, greatest)| plan.wants_span(*least, *greatest))
        }
        ColumnIndexMetaData::INT64(numbers) => {
            let ends = numbers.min_value(page).zip(numbers.max_value(page));
            let wanted = &plan.labels[ordinal - 1].1;
            ends.is_none_or(|(least, greatest)| wanted.may_count_between(*least, *greatest))
        }
        ColumnIndexMetaData::BYTE_ARRAY(texts) if ordinal > 0 => {
            let ends = texts.min_value(page).zip(texts.max_value(page));
            let wanted = &plan.labels[ordinal - 1].1;
            ends.is_none_or(|(least, greatest)| wanted.may_lie_between(least, greatest))
        }
        _ => true,
    }
}

/// Chooses rows by time and labels.
struct Chooser {
    from: i64,
    to: i64,
    labels: Vec<(String, Wanted)>,
}

impl Chooser {
    fn new(plan: &Plan) -> Self {
        let label = |(position, texts): &(usize, Wanted)| {
            (plan.table.columns[*position].name.clone(), texts.clone())
        };
        let labels = plan.labels.iter().map(label).collect();
        Self { from: plan.from, to: plan.to, labels }
    }

    fn choose(&self, batch: &RecordBatch) -> Result<BooleanArray, ArrowError> {
        let missing = |name: &str| ArrowError::SchemaError(format!("no usable column `{name}`"));
        let times = batch
            .column_by_name("time")
            .and_then(|time| time.as_primitive_opt::<TimestampNanosecondType>())
            .ok_or_else(|| missing("time"))?
            .values();
        let mut chosen = BooleanBuffer::collect_bool(times.len(), |row| {
            times[row] >= self.from && times[row] < self.to
        });
        for (name, wanted) in &self.labels {
            let numbers = batch
                .column_by_name(name)
                .and_then(|column| column.as_primitive_opt::<UInt64Type>());
            let of_label = if let Some(numbers) = numbers {
                BooleanBuffer::collect_bool(times.len(), |row| {
                    numbers.is_valid(row) && wanted.has_number(numbers.value(row))
                })
            } else {
                let texts = series::texts(batch, name).ok_or_else(|| missing(name))?;
                matching(texts, times.len(), wanted)
            };
            chosen = &chosen & &of_label;
        }
        Ok(BooleanArray::new(chosen, None))
    }
}

/// The rows that have one of the wanted texts; a dictionary is looked at once and not row by row.
fn matching(texts: series::Texts<'_>, rows: usize, wanted: &Wanted) -> BooleanBuffer {
    match texts {
        series::Texts::Plain(_) => BooleanBuffer::collect_bool(rows, |row| {
            texts.get(row).is_some_and(|text| wanted.matches(text))
        }),
        series::Texts::Coded(keys, values) => {
            let among: Vec<_> = (0..values.len())
                .map(|value| values.is_valid(value) && wanted.matches(values.value(value)))
                .collect();
            BooleanBuffer::collect_bool(rows, |row| {
                keys.is_valid(row)
                    && usize::try_from(keys.value(row))
                        .is_ok_and(|key| among.get(key) == Some(&true))
            })
        }
    }
}

/// Whether the rows of a batch lie in the hour of their directory; columns of a file that has
/// checksums are not looked at again.
pub(super) fn compare_times(batch: &RecordBatch, file: &ParquetFile) -> Result<(), String> {
    let times = batch.column_by_name("time");
    let times = times.and_then(|times| times.as_primitive_opt::<TimestampNanosecondType>());
    let Some(times) = times.filter(|_| file.claim.is_none()) else { return Ok(()) };
    if times.values().iter().all(|time| hour_of(*time) == file.hour) {
        return Ok(());
    }
    Err("rows of it are not of the hour of its directory".into())
}

/// The columns of a file's batch in the order in which they are wanted, null where it has none.
pub(super) fn arranged(batch: &RecordBatch, plan: &Plan) -> Result<RecordBatch, ArrowError> {
    let column = |field: &Arc<Field>| -> Result<ArrayRef, ArrowError> {
        match batch.column_by_name(field.name()) {
            Some(column) => series::as_type(column, field.data_type()),
            None => Ok(new_null_array(field.data_type(), batch.num_rows())),
        }
    };
    let columns: Result<Vec<_>, _> = plan.arrow.fields().iter().map(column).collect();
    RecordBatch::try_new(plan.arrow.clone(), columns?)
}
