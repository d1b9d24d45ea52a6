//! Scans of recordings that are made here, with what they touch.

use std::fs;
use std::path::Path;

use arrow::array::{Array as _, ArrayRef, AsArray as _, RecordBatch};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, TimestampNanosecondType, UInt64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use super::*;
use crate::layout::{ParquetName, hour_dir};
use crate::schema::{Column, ColumnKind, Meaning};
use crate::series;
use crate::writer::{StreamOptions, StreamWriter};
use crate::{Kind, WhenFull};

const SECOND: i64 = 1_000_000_000;
const HOUR: i64 = 3_600 * SECOND;

fn schema() -> TableSchema {
    TableSchema::new(
        "interfaces",
        "interface counters",
        vec![
            Column::new("device", ColumnKind::Symbol, Meaning::Label, ""),
            Column::new("interface", ColumnKind::Symbol, Meaning::Label, ""),
            Column::new("in_octets", ColumnKind::U64, Meaning::Counter64, ""),
            Column::new("offset", ColumnKind::I64, Meaning::Gauge, ""),
            Column::new("load", ColumnKind::F64, Meaning::Gauge, ""),
            Column::new("note", ColumnKind::Text, Meaning::Gauge, ""),
        ],
    )
}

/// Writes one row a second and device to the log: octets are the seconds since the epoch times the
/// device's number; every third row has nothing else.
fn write_log(dir: &Path, stream: &str, seconds: std::ops::Range<i64>) {
    let options =
        StreamOptions { compact: false, when_full: WhenFull::Wait, ..StreamOptions::COLLECTOR };
    let mut writer =
        StreamWriter::open(dir, Kind::Measured, stream, vec![schema()], options).unwrap();
    let devices: Vec<_> = (1..=8).map(|number| writer.symbol(&format!("node{number}"))).collect();
    let interface = writer.symbol("eth0");
    for second in seconds {
        let mut batch = writer.batch(0);
        for (device, number) in devices.iter().rev().zip((1..=8_u64).rev()) {
            batch.begin_row(second * SECOND);
            batch.put_symbol(1, *device);
            batch.put_symbol(2, interface);
            batch.put_u64(3, second.unsigned_abs() * number);
            if second % 3 != 0 {
                batch.put_i64(4, -second);
                batch.put_f64(5, 0.5);
                batch.put_text(6, &format!("at {second}"));
            }
        }
        writer.submit(batch);
    }
    writer.close().unwrap();
}

fn rows(scan: &mut Scan) -> RecordBatch {
    let batches: Vec<_> = scan.by_ref().map(Result::unwrap).collect();
    concat_batches(&scan.schema(), &batches).unwrap()
}

/// Moves what the log holds to Parquet files of an hour each, with pages of 100 rows and row groups
/// of 800, as a compaction would.
fn compact_log(dir: &Path, stream: &str, first: u64, last: u64) {
    let recording = Recording::open(dir).unwrap();
    let all = rows(&mut recording.scan(&Selection::all("interfaces")).unwrap());
    let times = all.column(0).as_primitive::<TimestampNanosecondType>().values().to_vec();
    let hours: BTreeSet<_> = times.iter().map(|time| time / HOUR).collect();
    for hour in hours {
        let of_hour = times.iter().map(|time| Some(time / HOUR == hour)).collect();
        let part = arrow::compute::filter_record_batch(&all, &of_hour).unwrap();
        let path = hour_dir(dir, "interfaces", hour);
        fs::create_dir_all(&path).unwrap();
        let name = ParquetName { stream: stream.into(), first, last }.file_name();
        let schema = serde_json::to_string(&schema()).unwrap();
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(800))
            .set_data_page_row_count_limit(100)
            .set_write_batch_size(100)
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_statistics_enabled(EnabledStatistics::Page)
            .set_key_value_metadata(Some(vec![KeyValue::new("meikyo.table".to_owned(), schema)]))
            .build();
        let file = File::create(path.join(name)).unwrap();
        let mut writer = ArrowWriter::try_new(file, part.schema(), Some(properties)).unwrap();
        writer.write(&part).unwrap();
        writer.close().unwrap();
    }
    fs::remove_dir_all(dir.join("log")).unwrap();
}

/// Rows as text.
fn lines(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::new().with_null("null");
    let plain = |column: &ArrayRef| match column.data_type() {
        DataType::Timestamp(..) => cast(column, &DataType::Int64).unwrap(),
        _ => column.clone(),
    };
    let plain: Vec<_> = batch.columns().iter().map(plain).collect();
    let columns: Vec<_> =
        plain.iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
    let line = |row| columns.iter().map(|column| column.value(row).to_string() + " ").collect();
    (0..batch.num_rows()).map(line).collect()
}

fn only(device: &str) -> Selection {
    Selection {
        labels: vec![("device".into(), vec![device.into()])],
        ..Selection::all("interfaces")
    }
}

fn between(from: i64, to: i64, selection: Selection) -> Selection {
    let at = |second| Some(WallTime::from_nanos(second * SECOND));
    Selection { from: at(from), to: at(to), ..selection }
}

#[test]
fn rows_of_the_log_come_sorted_and_whole() {
    let dir = tempfile::tempdir().unwrap();
    write_log(dir.path(), "snmp", 100..400);
    let recording = Recording::open(dir.path()).unwrap();
    let mut scan = recording.scan(&Selection::all("interfaces")).unwrap();
    let all = rows(&mut scan);
    assert_eq!(all.num_rows(), 300 * 8);
    assert_eq!(all.schema(), series::arrow_schema(&schema()));
    let devices = series::texts(&all, "device").unwrap();
    let times = all.column(0).as_primitive::<TimestampNanosecondType>();
    let octets = all.column(3).as_primitive::<UInt64Type>();
    let notes = series::texts(&all, "note").unwrap();
    for row in 0..all.num_rows() {
        let (device, second) = (row / 300 + 1, i64::try_from(row % 300).unwrap() + 100);
        assert_eq!(devices.get(row).unwrap(), format!("node{device}"));
        assert_eq!(times.value(row), second * SECOND);
        assert_eq!(octets.value(row), second.unsigned_abs() * device as u64);
        let note = (second % 3 != 0).then(|| format!("at {second}"));
        assert_eq!(notes.get(row), note.as_deref());
        assert_eq!(all.column(4).is_null(row), second % 3 == 0);
    }
    assert!(scan.problems().is_empty());
    let span = recording.span("interfaces").unwrap().unwrap();
    assert_eq!((span.0.as_nanos(), span.1.as_nanos()), (100 * SECOND, 399 * SECOND));
}

#[test]
fn parquet_rows_are_those_that_the_log_had() {
    let dir = tempfile::tempdir().unwrap();
    write_log(dir.path(), "snmp", 3_000..4_200);
    let recording = Recording::open(dir.path()).unwrap();
    let selections = [
        Selection::all("interfaces"),
        between(3_100, 3_700, only("node3")),
        between(3_599, 3_601, Selection::all("interfaces")),
        Selection {
            columns: Some(vec!["note".into(), "time".into()]),
            ..between(4_000, 9_000, only("node8"))
        },
        only("nobody"),
    ];
    let read = || -> Vec<_> {
        let sorted = |selection: &Selection| {
            let mut scan = recording.scan(selection).unwrap();
            let mut lines: Vec<_> =
                scan.by_ref().map(Result::unwrap).flat_map(|batch| lines(&batch)).collect();
            assert_eq!(scan.problems(), []);
            lines.sort();
            lines
        };
        selections.iter().map(sorted).collect()
    };
    let of_log = read();
    assert_eq!(of_log.iter().map(Vec::len).collect::<Vec<_>>(), [9_600, 600, 16, 200, 0]);
    compact_log(dir.path(), "snmp", 1, 9_999);
    assert_eq!(read(), of_log);
    let span = recording.span("interfaces").unwrap().unwrap();
    assert_eq!((span.0.as_nanos(), span.1.as_nanos()), (3_000 * SECOND, 4_199 * SECOND));
    assert_eq!(recording.tables().unwrap().get("interfaces"), Some(&schema()));
}

#[test]
fn only_what_a_selection_needs_is_touched() {
    let dir = tempfile::tempdir().unwrap();
    write_log(dir.path(), "snmp", 0..4 * 3_600);
    compact_log(dir.path(), "snmp", 1, 99_999);
    let recording = Recording::open(dir.path()).unwrap();
    let touched = |selection: &Selection| {
        let mut scan = recording.scan(selection).unwrap();
        let found = rows(&mut scan).num_rows();
        (found, scan.cost())
    };
    let (found, all) = touched(&Selection::all("interfaces"));
    assert_eq!((found, all.files_opened), (4 * 3_600 * 8, 4));
    assert_eq!(all.row_groups_read, 4 * 36);
    assert_eq!(all.columns_read, 4 * 36 * 7);
    // One hour of one device, one column: its file, the row groups of the device, the column and
    // those that rows are chosen by.
    let narrow = Selection { columns: Some(vec!["in_octets".into()]), ..only("node5") };
    let (found, one) = touched(&between(3_700, 3_760, narrow));
    assert_eq!((found, one.files_opened), (60, 1));
    assert!(one.row_groups_read <= 2, "{one:?}");
    assert!(one.columns_read <= 2 * 3, "{one:?}");
    assert!(one.bytes_read * 10 < all.bytes_read, "{one:?} {all:?}");
    // An hour that is wanted whole needs no choosing.
    let (found, hour) = touched(&between(3_600, 7_200, Selection::all("interfaces")));
    assert_eq!((found, hour.files_opened, hour.columns_read), (3_600 * 8, 1, 36 * 7));
    let (found, none) = touched(&between(90_000, 99_000, Selection::all("interfaces")));
    assert_eq!((found, none.files_opened, none.bytes_read), (0, 0, 0));
}

#[test]
fn a_damaged_file_is_named_and_the_rest_is_read() {
    let dir = tempfile::tempdir().unwrap();
    write_log(dir.path(), "snmp", 0..7_200);
    compact_log(dir.path(), "snmp", 1, 99_999);
    let damaged = hour_dir(dir.path(), "interfaces", 0).join("snmp-1-99999.parquet");
    let octets = fs::read(&damaged).unwrap();
    for broken in [&octets[..octets.len() / 2], &[], b"PAR1 no such thing PAR1"] {
        fs::write(&damaged, broken).unwrap();
        let recording = Recording::open(dir.path()).unwrap();
        let mut scan = recording.scan(&Selection::all("interfaces")).unwrap();
        assert_eq!(rows(&mut scan).num_rows(), 3_600 * 8);
        assert_eq!(scan.problems().len(), 1);
        assert_eq!(scan.problems()[0].path, damaged);
    }
    let mut holed = octets;
    let third = holed.len() / 3;
    holed[third..2 * third].fill(0);
    fs::write(&damaged, holed).unwrap();
    let recording = Recording::open(dir.path()).unwrap();
    let mut scan = recording.scan(&Selection::all("interfaces")).unwrap();
    let found = rows(&mut scan).num_rows();
    assert!((3_600 * 8..7_200 * 8).contains(&found), "{found}");
    assert_eq!(scan.problems().len(), 1, "{:?}", scan.problems());
}

#[test]
fn unknown_tables_and_columns_are_refused_with_what_there_is() {
    let dir = tempfile::tempdir().unwrap();
    write_log(dir.path(), "snmp", 0..10);
    let recording = Recording::open(dir.path()).unwrap();
    let error = recording.scan(&Selection::all("interface")).unwrap_err().to_string();
    assert!(error.ends_with("has no table `interface`; it has `interfaces`"), "{error}");
    let selection =
        Selection { columns: Some(vec!["octets".into()]), ..Selection::all("interfaces") };
    let error = recording.scan(&selection).unwrap_err().to_string();
    assert_eq!(
        error,
        "table `interfaces` has no column `octets`; it has `time`, `device`, `interface`, \
         `in_octets`, `offset`, `load`, `note`"
    );
}

#[test]
fn a_declared_table_without_rows_is_there_and_empty_before_and_after_compaction() {
    let dir = tempfile::tempdir().unwrap();
    let events = TableSchema::new("events", "what happened", schema().columns.split_off(1));
    let tables = vec![schema(), events.clone()];
    let options = StreamOptions { when_full: WhenFull::Wait, ..StreamOptions::COLLECTOR };
    let mut writer =
        StreamWriter::open(dir.path(), Kind::Measured, "snmp", tables, options).unwrap();
    let mut batch = writer.batch(0);
    batch.begin_row(SECOND);
    batch.put_u64(3, 1);
    writer.submit(batch);
    let recording = Recording::open(dir.path()).unwrap();
    let columns = |table: &str| {
        let mut scan = recording.scan(&Selection::all(table)).unwrap();
        (scan.table(), rows(&mut scan).num_rows())
    };
    writer.sync_now().unwrap();
    assert_eq!(columns("events"), (events.clone(), 0));
    writer.close().unwrap();
    assert!(files::list(dir.path()).unwrap().segments.is_empty(), "all is compacted");
    assert_eq!(columns("events"), (events, 0));
    assert_eq!(columns("interfaces").1, 1);
    assert_eq!(recording.span("events").unwrap(), None);
    assert!(matches!(recording.table("event"), Err(ReadError::UnknownTable { .. })));
    let views = fs::read_to_string(dir.path().join("views.sql")).unwrap();
    assert!(views.contains("CREATE OR REPLACE VIEW \"events\""), "{views}");
}

#[test]
fn a_newer_recording_and_no_recording_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let error = Recording::open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("is not a recording"), "{error}");
    fs::write(dir.path().join("recording.toml"), "format = 99\n").unwrap();
    let error = Recording::open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("format version 99"), "{error}");
}

#[test]
fn a_scan_that_began_keeps_its_rows_when_the_log_is_compacted_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    write_log(dir.path(), "snmp", 0..600);
    let recording = Recording::open(dir.path()).unwrap();
    let mut before = recording.scan(&Selection::all("interfaces")).unwrap();
    compact_log(dir.path(), "snmp", 1, 9_999);
    let mut after = recording.scan(&Selection::all("interfaces")).unwrap();
    assert_eq!(rows(&mut before).num_rows(), 600 * 8);
    assert_eq!(rows(&mut after).num_rows(), 600 * 8);
}

#[test]
fn a_column_that_a_later_version_adds_is_null_in_the_rows_before() {
    for compacted in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        write_log(dir.path(), "snmp", 1..3);
        if compacted {
            compact_log(dir.path(), "snmp", 1, 9);
        }
        let mut wider = schema();
        let added = Column::new("unreadable", ColumnKind::U64, Meaning::Counter64, "");
        wider.columns.push(added);
        let options =
            StreamOptions { compact: false, when_full: WhenFull::Wait, ..StreamOptions::COLLECTOR };
        let mut writer =
            StreamWriter::open(dir.path(), Kind::Measured, "snmp", vec![wider], options).unwrap();
        let mut batch = writer.batch(0);
        batch.begin_row(5 * SECOND);
        batch.put_symbol(1, writer.symbol("node1"));
        batch.put_u64(7, 11);
        writer.submit(batch);
        writer.close().unwrap();
        let recording = Recording::open(dir.path()).unwrap();
        let all = rows(&mut recording.scan(&only("node1")).unwrap());
        let lines = lines(&all);
        assert_eq!(lines.len(), 3, "{lines:?}");
        // The columns of a table are those of its newest file, until there is a newer one.
        let Some(unreadable) = all.column_by_name("unreadable") else {
            assert!(compacted, "the log's newest segment has the column");
            continue;
        };
        let read: Vec<_> = unreadable.as_primitive::<UInt64Type>().iter().collect();
        assert_eq!(read, [None, None, Some(11)], "{lines:?}");
    }
}
