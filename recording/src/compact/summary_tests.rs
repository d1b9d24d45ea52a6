//! Summaries against sums over the rows that were submitted, taken the naive way.

use std::collections::BTreeMap;
use std::fs::File;

use arrow::array::{Array as _, AsArray as _, RecordBatch};
use arrow::datatypes::{Float64Type, Int64Type, TimestampNanosecondType, UInt64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::{Summaries, compact};
use crate::files::list;
use crate::layout::{self, ParquetFile};
use crate::schema::{Column, ColumnKind, Meaning, TableSchema};
use crate::{Kind, StreamOptions, StreamWriter};

const SECOND: i64 = 1_000_000_000;
/// 2026-11-21T21:00:00Z.
const HOUR: i64 = 1_795_294_800 * SECOND;
const STATES: [&str; 5] = ["ok", "late", "skipped", "error", "missed"];

fn tables_of_test() -> Vec<TableSchema> {
    let label = |name: &str| Column::new(name, ColumnKind::Symbol, Meaning::Label, "");
    let gauge = |name: &str, kind| Column::new(name, kind, Meaning::Gauge, "");
    let detail = |name: &str| Column::new(name, ColumnKind::U64, Meaning::Detail, "");
    let state = Column::new("state", ColumnKind::Symbol, Meaning::State, "");
    let counter = Column::new("in_octets", ColumnKind::U64, Meaning::Counter64, "");
    vec![
        // The table that needs the others comes first, as none may count on the order.
        TableSchema::new("interfaces", "", vec![label("device"), counter, detail("pdu")]),
        TableSchema::new(
            "load",
            "",
            vec![label("device"), gauge("level", ColumnKind::I64), gauge("real", ColumnKind::F64)],
        ),
        TableSchema::new(
            "polls",
            "",
            vec![label("device"), detail("pdu"), state, gauge("received_us", ColumnKind::I64)],
        ),
        TableSchema::new("batches", "", vec![gauge("requests", ColumnKind::U64)]),
        TableSchema::new("events", "", vec![label("device"), detail("count")]),
        TableSchema::new(
            "freshness",
            "",
            vec![label("device"), label("table"), label("column"), label("class")],
        ),
    ]
}

#[derive(Debug, Clone, Copy)]
struct Row {
    device: u64,
    time: i64,
    level: i64,
    real: Option<f64>,
    octets: u64,
    state: usize,
    received_us: i64,
}

fn mix(seed: u64) -> u64 {
    let bits = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// Every 0.25 s from 95 s before the hour's end to 150 s after it, counters of 400 kB/s to 403 kB/s.
fn rows() -> Vec<Row> {
    let polls = (0..980_i64).flat_map(|poll| (0..3_u64).map(move |device| (poll, device)));
    polls
        .map(|(poll, device)| {
            let random = mix(poll.cast_unsigned() * 3 + device + 1);
            let received_us = 1_000 + (random >> 50).cast_signed();
            let time = HOUR - 95 * SECOND + poll * SECOND / 4;
            let since_us = 250_000 * poll.cast_unsigned() + received_us.cast_unsigned();
            Row {
                device,
                time,
                level: (random >> 44).cast_signed() - (1 << 19),
                real: (!random.is_multiple_of(7))
                    .then(|| f64::from_bits(0x3ff << 52 | random >> 12) - 1.5),
                octets: since_us * (400 + device) / 1_000,
                state: usize::try_from(random % 40).unwrap().saturating_sub(35),
                received_us,
            }
        })
        .collect()
}

fn submit(writer: &mut StreamWriter, rows: &[Row]) {
    let mut batches = [0, 1, 2, 3, 4].map(|table| writer.batch(table));
    for row in rows {
        let device = writer.symbol(&format!("node{}", row.device));
        let [interfaces, load, polls, batches, events] = &mut batches;
        for batch in [&mut *interfaces, &mut *load, &mut *polls, &mut *events] {
            batch.begin_row(row.time);
            batch.put_symbol(1, device);
        }
        interfaces.put_u64(2, row.octets);
        interfaces.put_u64(3, 0);
        load.put_i64(2, row.level);
        if let Some(real) = row.real {
            load.put_f64(3, real);
        }
        polls.put_u64(2, 0);
        polls.put_symbol(3, writer.symbol(STATES[row.state]));
        polls.put_i64(4, row.received_us);
        batches.begin_row(row.time);
        batches.put_u64(1, 3);
        events.put_u64(2, 1);
    }
    for batch in batches {
        writer.submit(batch);
    }
}

/// Says of every device that its counter is fresh at every poll.
fn submit_freshness(writer: &mut StreamWriter) {
    let mut batch = writer.batch(5);
    for device in 0..3 {
        batch.begin_row(HOUR - 90 * SECOND);
        let device = format!("node{device}");
        let words = [device.as_str(), "interfaces", "in_octets", "every_poll"];
        for (column, word) in (1..).zip(words) {
            batch.put_symbol(column, writer.symbol(word));
        }
    }
    writer.submit(batch);
}

/// The rows of a summary, checked to lie in their hour and to be sorted in every row group.
fn read(dir: &std::path::Path, table: &str) -> Vec<RecordBatch> {
    let mut batches = Vec::new();
    for file in list(dir).unwrap().parquet.iter().filter(|file| file.table == table) {
        let open = || {
            let opened = File::open(&file.path).unwrap();
            ParquetRecordBatchReaderBuilder::try_new(opened).unwrap().with_batch_size(1 << 20)
        };
        let groups = open().metadata().num_row_groups();
        for batch in
            (0..groups).flat_map(|group| open().with_row_groups(vec![group]).build().unwrap())
        {
            let batch = batch.unwrap();
            let levels = u64s(&batch, "level_ms");
            let devices = batch.column_by_name("device").unwrap().as_string::<i32>();
            let keys: Vec<_> = (0..batch.num_rows())
                .map(|row| (levels[row], devices.value(row), time(&batch, row)))
                .collect();
            assert!(keys.is_sorted(), "{}", file.path.display());
            assert_eq!(keys.first().map(|key| key.0), keys.last().map(|key| key.0), "one level");
            assert!(keys.iter().all(|key| key.2.div_euclid(3_600 * SECOND) == file.hour));
            batches.push(batch);
        }
    }
    batches
}

fn time(batch: &RecordBatch, row: usize) -> i64 {
    batch.column(0).as_primitive::<TimestampNanosecondType>().value(row)
}

fn u64s(batch: &RecordBatch, name: &str) -> Vec<u64> {
    batch.column_by_name(name).unwrap().as_primitive::<UInt64Type>().values().to_vec()
}

/// The span of a row: level in ns, device and begin.
type Key = (i64, u64, i64);

fn keys(batch: &RecordBatch) -> Vec<Key> {
    let devices = batch.column_by_name("device").unwrap().as_string::<i32>();
    let levels = u64s(batch, "level_ms");
    (0..batch.num_rows())
        .map(|row| {
            let device = devices.value(row).strip_prefix("node").unwrap().parse().unwrap();
            (levels[row].cast_signed() * 1_000_000, device, time(batch, row))
        })
        .collect()
}

/// The submitted rows by every span that they lie in.
fn spans(rows: &[Row]) -> BTreeMap<Key, Vec<Row>> {
    let mut spans: BTreeMap<Key, Vec<Row>> = BTreeMap::new();
    for level in [1, 10, 60, 600].map(|seconds| seconds * SECOND) {
        for row in rows {
            let begin = row.time.div_euclid(level) * level;
            spans.entry((level, row.device, begin)).or_default().push(*row);
        }
    }
    spans
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + a.abs().max(b.abs()))
}

/// Writes the rows in segments of 10 minutes: one ends with the hour.
fn recorded(rows: &[Row]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let options = StreamOptions::COLLECTOR;
    let mut writer =
        StreamWriter::open(dir.path(), Kind::Measured, "s", tables_of_test(), options).unwrap();
    submit_freshness(&mut writer);
    for rows in rows.chunks(30) {
        submit(&mut writer, rows);
    }
    let counters = writer.close().unwrap().counters;
    assert_eq!(counters.compactions, 2);
    let files = list(dir.path()).unwrap().parquet;
    let bytes = |summary: bool| -> u64 {
        let files = files.iter().filter(|file| file.table.ends_with(".summary") == summary);
        files.map(|file| std::fs::metadata(&file.path).unwrap().len()).sum()
    };
    assert_eq!(counters.parquet_bytes, bytes(false));
    assert_eq!(counters.summary_bytes, bytes(true));
    assert_eq!(counters.rows_compacted, rows.len() as u64 * 5 + 3);
    dir
}

#[test]
fn summaries_of_gauges_and_states_are_those_of_the_rows() {
    let rows = rows();
    let dir = recorded(&rows);
    let mut expected = spans(&rows);
    for batch in read(dir.path(), "load.summary") {
        let column = |name: &str| batch.column_by_name(name).unwrap();
        let i64s = |name: &str| column(name).as_primitive::<Int64Type>().clone();
        let f64s = |name: &str| column(name).as_primitive::<Float64Type>().clone();
        for (at, key) in keys(&batch).into_iter().enumerate() {
            let rows = expected.remove(&key).unwrap_or_else(|| panic!("{key:?} twice or never"));
            let levels: Vec<_> = rows.iter().map(|row| row.level).collect();
            assert_eq!(u64s(&batch, "rows")[at], rows.len() as u64);
            assert_eq!(i64s("level_min").value(at), *levels.iter().min().unwrap());
            assert_eq!(i64s("level_max").value(at), *levels.iter().max().unwrap());
            assert_eq!(u64s(&batch, "level_count")[at], rows.len() as u64);
            let mean = levels.iter().map(|&level| i32::try_from(level).unwrap()).map(f64::from);
            let mean = mean.sum::<f64>() / f64::from(u32::try_from(rows.len()).unwrap());
            assert!(close(f64s("level_mean").value(at), mean), "{key:?}");
            let reals: Vec<_> = rows.iter().filter_map(|row| row.real).collect();
            assert_eq!(u64s(&batch, "real_count")[at], reals.len() as u64);
            assert_eq!(f64s("real_min").is_valid(at), !reals.is_empty());
            if let Some(least) = reals.iter().copied().reduce(f64::min) {
                let mean =
                    reals.iter().sum::<f64>() / f64::from(u32::try_from(reals.len()).unwrap());
                let greatest = reals.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                assert_eq!(f64s("real_min").value(at).to_bits(), least.to_bits());
                assert_eq!(f64s("real_max").value(at).to_bits(), greatest.to_bits());
                assert!(close(f64s("real_mean").value(at), mean), "{key:?}");
            }
        }
    }
    assert!(expected.is_empty(), "{} spans are missing", expected.len());

    let mut expected = spans(&rows);
    for batch in read(dir.path(), "polls.summary") {
        assert!(batch.column_by_name("pdu_min").is_none(), "a detail is no quantity");
        let worst = batch.column_by_name("state_worst").unwrap().as_string::<i32>();
        for (at, key) in keys(&batch).into_iter().enumerate() {
            let rows = expected.remove(&key).unwrap();
            let rank = rows.iter().map(|row| row.state).max().unwrap();
            assert_eq!(worst.value(at), STATES[rank], "{key:?}");
        }
    }
    assert!(expected.is_empty());
}

#[test]
fn rates_hold_all_that_was_counted_also_across_segments_and_hours() {
    let rows = rows();
    let dir = recorded(&rows);
    let mut counted: BTreeMap<(i64, u64), f64> = BTreeMap::new();
    for batch in read(dir.path(), "interfaces.summary") {
        let rate = |name: &str| batch.column_by_name(name).unwrap().as_primitive::<Float64Type>();
        let covered_us = u64s(&batch, "in_octets_covered_us");
        for (at, (level, device, _)) in keys(&batch).into_iter().enumerate() {
            if covered_us[at] == 0 {
                continue;
            }
            // 1 octet of rounding in 0.23 s, over receive times that jitter by 16 ms.
            for name in ["in_octets_per_s_min", "in_octets_per_s_mean", "in_octets_per_s_max"] {
                let error =
                    rate(name).value(at) - f64::from(u32::try_from(device).unwrap() + 400) * 1e3;
                assert!(error.abs() < 10.0, "{name} is off by {error}");
            }
            let covered_s = f64::from(u32::try_from(covered_us[at]).unwrap()) / 1e6;
            *counted.entry((level, device)).or_default() +=
                rate("in_octets_per_s_mean").value(at) * covered_s;
        }
    }
    for ((level, device), counted) in counted {
        let of_device: Vec<_> = rows.iter().filter(|row| row.device == device).collect();
        let truth = of_device.last().unwrap().octets - of_device[0].octets;
        let truth = f64::from(u32::try_from(truth).unwrap());
        // What is covered is kept in whole µs.
        assert!((counted / truth - 1.0).abs() < 2e-6, "{level} ns: {counted} of {truth}");
    }
}

#[test]
fn what_makes_no_series_or_measures_nothing_has_no_summary() {
    let dir = recorded(&rows());
    let mut tables: Vec<_> =
        list(dir.path()).unwrap().parquet.into_iter().map(|file| file.table).collect();
    tables.dedup();
    let summaries: Vec<_> =
        tables.iter().filter_map(|table| table.strip_suffix(".summary")).collect();
    assert_eq!(summaries, ["interfaces", "load", "polls"]);
    assert_eq!(tables.len(), 9);
}

#[test]
fn a_rate_that_reaches_back_lies_in_the_hour_of_its_time_and_is_removed_with_the_rest() {
    let rows = rows();
    let dir = recorded(&rows);
    let before = list(dir.path()).unwrap().parquet;
    let hour = HOUR / SECOND / 3_600;
    let reaches_back = |file: &ParquetFile| file.hour == hour - 1 && file.name.first > 1;
    let of_second: Vec<_> = before.iter().filter(|file| reaches_back(file)).collect();
    let tables: Vec<_> = of_second.iter().map(|file| file.table.as_str()).collect();
    assert_eq!(tables, ["interfaces.summary"]);

    // A segment of the same range hides all of it, and is compacted to the same again.
    let first = of_second[0].name.first;
    let of_first = |file: &ParquetFile| file.name.first < first;
    let other = tempfile::tempdir().unwrap();
    let options = StreamOptions { compact: false, ..StreamOptions::COLLECTOR };
    let mut writer =
        StreamWriter::open(other.path(), Kind::Measured, "s", tables_of_test(), options).unwrap();
    submit_freshness(&mut writer);
    for rows in rows.chunks(30) {
        submit(&mut writer, rows);
    }
    writer.close().unwrap();
    let segments = list(other.path()).unwrap().segments;
    let segment = segments.iter().find(|segment| segment.first == first).unwrap();
    let back = layout::segment_path(dir.path(), "s", first);
    std::fs::copy(&segment.path, &back).unwrap();
    let hidden = list(dir.path()).unwrap();
    assert!(hidden.parquet.iter().all(of_first));
    compact(dir.path(), &back, &mut Summaries::default()).unwrap();
    let after = list(dir.path()).unwrap().parquet;
    // What went before is not known to a new `Summaries`: nothing reaches back.
    let expected: Vec<_> = before.into_iter().filter(|file| !reaches_back(file)).collect();
    assert_eq!(after, expected);
}

#[test]
fn one_level_of_a_summary_is_read_alone() {
    let dir = recorded(&rows());
    let recording = crate::Recording::open(dir.path()).unwrap();
    let of_level = |level: &str| crate::Selection {
        labels: vec![("level_ms".into(), vec![level.into()])],
        ..crate::Selection::all("interfaces.summary")
    };
    let expected = read(dir.path(), "interfaces.summary");
    let count = |level: u64| -> usize {
        let levels = expected.iter().flat_map(|batch| u64s(batch, "level_ms"));
        levels.filter(|of| *of == level).count()
    };
    for level in [1_000, 10_000, 60_000, 600_000] {
        let mut scan = recording.scan(&of_level(&level.to_string())).unwrap();
        let rows: usize = (&mut scan).map(|batch| batch.unwrap().num_rows()).sum();
        assert_eq!(rows, count(level), "level {level}");
        assert!(rows > 0);
    }
    assert_eq!(recording.scan(&of_level("7")).unwrap().count(), 0);
    assert_eq!(recording.scan(&of_level("6*")).unwrap().count(), 0, "numbers have no patterns");
}
