use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

use arrow::array::{Array as _, ArrayRef, AsArray as _, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampNanosecondType, UInt64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::*;
use crate::files::list;
use crate::layout::ParquetFile;
use crate::schema::{Column, ColumnKind, Meaning};
use crate::{Batch, Kind, StreamOptions, StreamWriter, Symbol};

const HOUR: i64 = 3_600_000_000_000;

pub(super) fn schema() -> TableSchema {
    let column = |name: &str, kind| Column::new(name, kind, Meaning::Gauge, "");
    let label = |name: &str| Column::new(name, ColumnKind::Symbol, Meaning::Label, "");
    TableSchema::new(
        "t",
        "all kinds",
        vec![
            label("device"),
            label("interface"),
            column("unsigned", ColumnKind::U64),
            column("signed", ColumnKind::I64),
            column("real", ColumnKind::F64),
            column("text", ColumnKind::Text),
        ],
    )
}

/// A row as the test knows it, sorted as a file is.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub(super) struct Row {
    pub(super) device: Option<String>,
    pub(super) interface: Option<String>,
    pub(super) time: i64,
    pub(super) unsigned: Option<u64>,
    pub(super) signed: Option<i64>,
    pub(super) real: Option<f64>,
    pub(super) text: Option<String>,
}

pub(super) fn submit(writer: &mut StreamWriter, rows: &[Row]) {
    let mut batch = writer.batch(0);
    for row in rows {
        let symbols = [&row.device, &row.interface]
            .map(|text| text.as_deref().map(|text| writer.symbol(text)));
        put_row(&mut batch, row, symbols);
    }
    writer.submit(batch);
}

/// Puts a row into a batch, with the symbols of its labels.
pub(super) fn put_row(batch: &mut Batch, row: &Row, symbols: [Option<Symbol>; 2]) {
    batch.begin_row(row.time);
    for (column, symbol) in (1..).zip(symbols) {
        if let Some(symbol) = symbol {
            batch.put_symbol(column, symbol);
        }
    }
    if let Some(value) = row.unsigned {
        batch.put_u64(3, value);
    }
    if let Some(value) = row.signed {
        batch.put_i64(4, value);
    }
    if let Some(value) = row.real {
        batch.put_f64(5, value);
    }
    if let Some(value) = &row.text {
        batch.put_text(6, value);
    }
}

pub(super) fn rows_of(file: &ParquetFile) -> Vec<Row> {
    let opened = File::open(&file.path).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(opened).unwrap().build().unwrap();
    reader.flat_map(|batch| rows_of_batch(&batch.unwrap())).collect()
}

/// The rows of a batch of a scan, whose labels are dictionaries.
pub(super) fn rows_of_scan(batch: &RecordBatch) -> Vec<Row> {
    let plain = |column: &ArrayRef| match column.data_type() {
        DataType::Dictionary(..) => cast(column, &DataType::Utf8).unwrap(),
        _ => column.clone(),
    };
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns());
    let columns = columns.map(|(field, column)| (field.name().clone(), plain(column)));
    rows_of_batch(
        &RecordBatch::try_from_iter_with_nullable(
            columns.map(|(name, column)| (name, column, true)),
        )
        .unwrap(),
    )
}

fn rows_of_batch(batch: &RecordBatch) -> Vec<Row> {
    let text = |column: usize, row| {
        let texts = batch.column(column).as_string::<i32>();
        texts.is_valid(row).then(|| texts.value(row).to_owned())
    };
    (0..batch.num_rows())
        .map(|row| {
            let valid = |column: usize| batch.column(column).is_valid(row);
            Row {
                time: batch.column(0).as_primitive::<TimestampNanosecondType>().value(row),
                device: text(1, row),
                interface: text(2, row),
                unsigned: valid(3).then(|| batch.column(3).as_primitive::<UInt64Type>().value(row)),
                signed: valid(4).then(|| batch.column(4).as_primitive::<Int64Type>().value(row)),
                real: valid(5).then(|| batch.column(5).as_primitive::<Float64Type>().value(row)),
                text: text(6, row),
            }
        })
        .collect()
}

/// Rows of many devices over two hours, out of order where `late` says so.
pub(super) fn rows(count: u64) -> Vec<Row> {
    (0..count)
        .map(|at| {
            let late = if at % 97 == 0 { 5_000_000_000 } else { 0 };
            Row {
                time: HOUR * 100 - 40_000_000_000 + at.cast_signed() * 10_000_000 - late,
                device: (at % 101 != 0).then(|| format!("node{:02}", at * 7 % 13)),
                interface: (at % 5 != 0).then(|| format!("eth{}", at * 3 % 4)),
                unsigned: (at % 3 != 0).then(|| at.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
                signed: (at % 4 != 1).then(|| at.cast_signed() - 500),
                real: (at % 7 == 0).then(|| f64::from_bits(0x3ff0_0000_0000_0000 + at)),
                text: (at % 11 == 0).then(|| format!("text {at}")),
            }
        })
        .collect()
}

#[test]
fn files_hold_every_row_once_sorted_by_labels_and_time() {
    let dir = tempfile::tempdir().unwrap();
    let options = StreamOptions::COLLECTOR;
    let tables = vec![schema(), TableSchema::new("empty", "", Vec::new())];
    let mut writer = StreamWriter::open(dir.path(), Kind::Simulated, "s", tables, options).unwrap();
    let mut expected = rows(10_000);
    for rows in expected.chunks(37) {
        submit(&mut writer, rows);
    }
    let counters = writer.close().unwrap().counters;
    assert_eq!(counters.rows_compacted, 10_000);

    let listing = list(dir.path()).unwrap();
    assert!(listing.segments.is_empty());
    let hours: Vec<_> = listing.parquet.iter().map(|file| file.hour).collect();
    assert!(hours.contains(&99) && hours.contains(&100), "{hours:?}");
    let mut found = Vec::new();
    let mut bytes = 0;
    for file in listing.parquet.iter().filter(|file| file.table == "t") {
        let rows = rows_of(file);
        assert!(rows.is_sorted(), "{}", file.path.display());
        assert!(rows.iter().all(|row| row.time.div_euclid(HOUR) == file.hour));
        bytes += fs::metadata(&file.path).unwrap().len();
        found.extend(rows);
    }
    assert_eq!(counters.parquet_bytes, bytes);
    let by_order = |a: &Row, b: &Row| a.partial_cmp(b).unwrap();
    expected.sort_by(by_order);
    found.sort_by(by_order);
    assert_eq!(found, expected);
}

#[test]
fn what_a_killed_compaction_left_is_hidden_and_then_removed() {
    let dir = tempfile::tempdir().unwrap();
    let open = |compact| {
        let options = StreamOptions { compact, ..StreamOptions::COLLECTOR };
        StreamWriter::open(dir.path(), Kind::Simulated, "s", vec![schema()], options).unwrap()
    };
    let mut writer = open(false);
    submit(&mut writer, &rows(500));
    writer.close().unwrap();
    let segment = list(dir.path()).unwrap().segments.remove(0);
    let copy = fs::read(&segment.path).unwrap();
    compact(dir.path(), &segment.path, &mut Summaries::default()).unwrap();
    let whole = list(dir.path()).unwrap().parquet;
    // As it was before the unlink, and with a file that was not renamed yet.
    fs::write(&segment.path, copy).unwrap();
    let unfinished = whole[0].path.with_file_name(".s-1-3.parquet.tmp");
    fs::write(&unfinished, "half").unwrap();
    let listing = list(dir.path()).unwrap();
    assert!(listing.parquet.is_empty());
    assert_eq!(listing.hidden, whole);

    open(true).close().unwrap();
    let listing = list(dir.path()).unwrap();
    assert_eq!(listing.parquet, whole);
    assert!(listing.segments.is_empty());
    assert!(!unfinished.exists());
    let of_table = listing.parquet.iter().filter(|file| file.table == "t");
    let found: usize = of_table.map(|file| rows_of(file).len()).sum();
    assert_eq!(found, 500);
}

#[test]
fn sequence_numbers_go_on_after_everything_is_compacted() {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..3 {
        let options = StreamOptions::COLLECTOR;
        let mut writer =
            StreamWriter::open(dir.path(), Kind::Simulated, "s", vec![schema()], options).unwrap();
        submit(&mut writer, &rows(10));
        writer.close().unwrap();
        // Without the note the names of the files tell.
        drop(fs::remove_file(layout::next_path(dir.path(), "s")));
    }
    let mut ranges = BTreeMap::new();
    let files = list(dir.path()).unwrap().parquet;
    for file in files.into_iter().filter(|file| file.table == "t") {
        *ranges.entry((file.name.first, file.name.last)).or_insert(0) += rows_of(&file).len();
    }
    assert_eq!(ranges.into_iter().collect::<Vec<_>>(), [((1, 3), 10), ((4, 6), 10), ((7, 9), 10)]);
}

#[test]
fn a_damaged_segment_is_kept_aside_when_its_other_rows_are_compacted() {
    let dir = tempfile::tempdir().unwrap();
    let options = StreamOptions { compact: false, ..StreamOptions::COLLECTOR };
    let mut writer =
        StreamWriter::open(dir.path(), Kind::Simulated, "s", vec![schema()], options).unwrap();
    for rows in rows(300).chunks(100) {
        submit(&mut writer, rows);
    }
    writer.close().unwrap();
    let segment = list(dir.path()).unwrap().segments.remove(0).path;
    let mut octets = fs::read(&segment).unwrap();
    let middle = octets.len() / 2;
    octets[middle] ^= 0x10;
    fs::write(&segment, octets).unwrap();
    let compacted = compact(dir.path(), &segment, &mut Summaries::default()).unwrap();
    assert_eq!(compacted.rows, 200);
    assert!(compacted.damaged_bytes > 1_000);
    assert!(!segment.exists());
    assert!(Path::new(&segment).with_extension("log.damaged").exists());
}

/// A recording of 10,000 rows in two hours, compacted.
fn two_hours() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let options = StreamOptions::COLLECTOR;
    let mut writer =
        StreamWriter::open(dir.path(), Kind::Simulated, "s", vec![schema()], options).unwrap();
    submit(&mut writer, &rows(10_000));
    writer.close().unwrap();
    dir
}

#[test]
fn hours_that_are_too_old_are_deleted_and_counted() {
    let dir = two_hours();
    let before = list(dir.path()).unwrap().parquet;
    let old = before.iter().filter(|file| file.hour == 99 && file.table == "t");
    let old: u64 = old.map(|file| rows_of(file).len() as u64).sum();
    let limit = meikyo_units::WallTime::from_nanos(HOUR * 100 + 5);
    let deleted = crate::retention::delete_before(dir.path(), "s", |_| Some(limit));
    // The table's and its summary's.
    assert_eq!((deleted.rows, deleted.files, &deleted.error), (old, 2, &None));
    assert_eq!(deleted.in_words(), format!("`t` {old} of the hour 1970-01-05T03:00:00Z"));
    let after = list(dir.path()).unwrap().parquet;
    assert_eq!(after.len(), before.len() - 2);
    assert!(after.iter().all(|file| file.hour >= 100));
}

#[test]
fn a_table_and_its_summary_go_each_by_its_own_limit_and_the_rest_is_whole() {
    let dir = two_hours();
    let of_table = |table: &str| {
        let files = list(dir.path()).unwrap().parquet.into_iter();
        files.filter(|file| file.table == table).map(|file| file.hour).collect::<Vec<_>>()
    };
    assert_eq!((of_table("t"), of_table("t.summary")), (vec![99, 100], vec![99, 100]));
    let limit = |hour: i64| meikyo_units::WallTime::from_nanos(HOUR * hour + 5);
    let only_rows = |table: &str| (table == "t").then(|| limit(100));
    let deleted = crate::retention::delete_before(dir.path(), "s", only_rows);
    assert_eq!((deleted.files, deleted.tables.len(), &deleted.error), (1, 1, &None));
    assert_eq!((of_table("t"), of_table("t.summary")), (vec![100], vec![99, 100]));
    assert_eq!(crate::check::check(dir.path()).unwrap().damage, []);
    let only_summaries = |table: &str| (table == "t.summary").then(|| limit(101));
    let deleted = crate::retention::delete_before(dir.path(), "s", only_summaries);
    assert_eq!((deleted.files, deleted.rows), (2, 0));
    assert_eq!((of_table("t"), of_table("t.summary")), (vec![100], vec![]));
    assert_eq!(crate::check::check(dir.path()).unwrap().damage, []);
}
