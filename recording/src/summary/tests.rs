//! Summaries against sums taken by hand.

use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, AsArray as _, DictionaryArray, Float64Array, Int64Array, RecordBatch,
    TimestampNanosecondArray, UInt64Array,
};
use arrow::datatypes::{
    ArrowPrimitiveType, Float64Type, Int32Type, TimestampNanosecondType, UInt64Type,
};

use super::*;
use crate::rate::Updates;

const MS: i64 = 1_000_000;

fn table() -> TableSchema {
    let column = Column::new;
    TableSchema::new(
        "interfaces",
        "interface counters",
        vec![
            column("device", ColumnKind::Symbol, Meaning::Label, ""),
            column("interface", ColumnKind::Symbol, Meaning::Label, ""),
            column("in_octets", ColumnKind::U64, Meaning::Counter64, ""),
            column("load", ColumnKind::F64, Meaning::Gauge, ""),
            column("state", ColumnKind::Symbol, Meaning::State, ""),
        ],
    )
}

/// One row: device, time in ms, octets, load, state.
type Row = (&'static str, i64, Option<u64>, Option<f64>, &'static str);

fn batch(rows: &[Row]) -> RecordBatch {
    let words = |words: Vec<&str>| -> ArrayRef {
        Arc::new(words.into_iter().collect::<DictionaryArray<Int32Type>>())
    };
    let times = TimestampNanosecondArray::from_iter_values(rows.iter().map(|row| row.1 * MS));
    RecordBatch::try_new(
        series::arrow_schema(&table()),
        vec![
            Arc::new(times.with_timezone("UTC")),
            words(rows.iter().map(|row| row.0).collect()),
            words(rows.iter().map(|_| "eth0").collect()),
            Arc::new(rows.iter().map(|row| row.2).collect::<UInt64Array>()),
            Arc::new(rows.iter().map(|row| row.3).collect::<Float64Array>()),
            words(rows.iter().map(|row| row.4).collect()),
        ],
    )
    .unwrap()
}

/// The values of a column in the rows of one level and device.
fn values<T: ArrowPrimitiveType>(
    summary: &RecordBatch,
    level_ms: u64,
    device: &str,
    name: &str,
) -> Vec<Option<T::Native>> {
    let levels = summary.column_by_name("level_ms").unwrap().as_primitive::<UInt64Type>();
    let devices = series::texts(summary, "device").unwrap();
    let column = summary.column_by_name(name).unwrap().as_primitive::<T>();
    let rows = (0..summary.num_rows())
        .filter(|&row| levels.value(row) == level_ms && devices.get(row) == Some(device));
    rows.map(|row| column.is_valid(row).then(|| column.value(row))).collect()
}

fn fresh() -> Freshness {
    let mut freshness = Freshness::default();
    for device in ["a", "b"] {
        let series = [device, "interfaces", "eth0", "in_octets"].map(str::to_owned);
        freshness.insert(series, 0, Updates::EveryPoll);
    }
    freshness
}

#[test]
fn gauges_and_states_keep_least_mean_greatest_count_and_worst() {
    let mut summariser = Summariser::new(&table()).unwrap();
    let rows = batch(&[
        ("a", 60_000, None, Some(1.5), "ok"),
        ("a", 60_500, None, None, "missed"),
        ("a", 60_900, None, Some(-2.5), "late"),
        ("a", 61_000, None, Some(7.0), "ok"),
        ("b", 60_000, None, None, "ok"),
    ]);
    let freshness = Freshness::default();
    let context = Context { freshness: &freshness, polls: None };
    let summary = summariser.summarise(&rows, context).unwrap();
    assert_eq!(summary.schema(), series::arrow_schema(summariser.schema()));
    let numbers = |level, name| values::<Float64Type>(&summary, level, "a", name);
    assert_eq!(numbers(1_000, "load_min"), [Some(-2.5), Some(7.0)]);
    assert_eq!(numbers(1_000, "load_mean"), [Some(-0.5), Some(7.0)]);
    assert_eq!(numbers(1_000, "load_max"), [Some(1.5), Some(7.0)]);
    assert_eq!(numbers(600_000, "load_mean"), [Some(2.0)]);
    assert_eq!(values::<UInt64Type>(&summary, 1_000, "a", "rows"), [Some(3), Some(1)]);
    assert_eq!(values::<UInt64Type>(&summary, 1_000, "a", "load_count"), [Some(2), Some(1)]);
    assert_eq!(values::<Float64Type>(&summary, 1_000, "b", "load_mean"), [None]);
    let worst = series::texts(&summary, "state_worst").unwrap();
    assert_eq!(worst.get(0), Some("missed"));
    assert_eq!(worst.get(1), Some("ok"));
    assert_eq!(
        summary.num_rows(),
        3 + 3 * 2,
        "two spans of 1 s and one of each other, two devices"
    );
}

#[test]
fn what_a_counter_counted_is_kept_across_files_on_every_level() {
    let mut summariser = Summariser::new(&table()).unwrap();
    let freshness = fresh();
    let context = Context { freshness: &freshness, polls: None };
    // 1 kB a second, then 5 kB a second from 600 s on; the files meet at 600 s.
    let octets = |ms: i64| {
        let value = if ms < 600_000 { ms } else { 600_000 + (ms - 600_000) * 5 };
        Some(u64::try_from(value).unwrap())
    };
    let file = |from: i64, to: i64| {
        let times = (from..to).step_by(250);
        batch(&times.map(|ms| ("a", ms, octets(ms), None, "ok")).collect::<Vec<_>>())
    };
    let summaries: Vec<_> = [(590_100, 600_000), (600_100, 1_200_000)]
        .into_iter()
        .map(|(from, to)| summariser.summarise(&file(from, to), context).unwrap())
        .collect();
    let counted = octets(1_199_850).unwrap() - octets(590_100).unwrap();
    for level in [1_000, 10_000, 60_000, 600_000] {
        let mut total = 0.0;
        for summary in &summaries {
            let means = values::<Float64Type>(summary, level, "a", "in_octets_per_s_mean");
            let covered = values::<UInt64Type>(summary, level, "a", "in_octets_covered_us");
            for (mean, covered) in means.into_iter().zip(covered) {
                let covered = u32::try_from(covered.unwrap()).unwrap();
                total += mean.unwrap_or(0.0) * f64::from(covered) / 1e6;
            }
        }
        assert!(
            (total - f64::from(u32::try_from(counted).unwrap())).abs() < 1.0,
            "{level} {total}"
        );
    }
    let greatest = values::<Float64Type>(&summaries[1], 600_000, "a", "in_octets_per_s_max");
    assert!(greatest.iter().flatten().all(|rate| *rate < 5_000.1), "{greatest:?}");
    // The 350 ms before the border belong to a span of the file before, which has a second row.
    let times = summaries[1].column(0).as_primitive::<TimestampNanosecondType>();
    assert_eq!(times.value(0), 599_000 * MS);
}

#[test]
fn a_cache_of_3_s_shows_its_true_rate_in_every_second() {
    let mut freshness = Freshness::default();
    let updates = Updates::Periodic { period: Nanos::from_secs(3), phase: Some(0) };
    let series = ["a", "interfaces", "eth0", "in_octets"].map(str::to_owned);
    freshness.insert(series, 0, updates);
    let held = |ms: i64| Some(u64::try_from(ms / 3_000 * 3_000 * 125).unwrap());
    let rows: Vec<_> =
        (0..600).map(|k| ("a", 30_000 + k * 100, held(30_000 + k * 100), None, "ok")).collect();
    let context = Context { freshness: &freshness, polls: None };
    let summary = Summariser::new(&table()).unwrap().summarise(&batch(&rows), context).unwrap();
    let rates = values::<Float64Type>(&summary, 1_000, "a", "in_octets_per_s_mean");
    for rate in rates[..57].iter().flatten() {
        assert!((rate / 125_000.0 - 1.0).abs() < 0.02, "{rate}");
    }
    assert!(rates.len() >= 60 && rates[3..57].iter().all(Option::is_some));
}

#[test]
fn rates_are_taken_over_receive_times() {
    let rows: Vec<_> =
        (1..20).map(|k: i64| ("a", k * 100, Some(k.unsigned_abs() * 1_000), None, "ok")).collect();
    // Every other answer comes 30 ms later than its neighbours, and counts 30 ms more.
    let late = |k: i64| if k % 2 == 0 { 30_000 } else { 0 };
    let octets = |k: i64| u64::try_from(k * 1_000 + late(k) / 100).unwrap();
    let rows: Vec<_> = rows
        .into_iter()
        .zip(1..)
        .map(|((device, ms, _, load, state), k)| (device, ms, Some(octets(k)), load, state))
        .collect();
    let values_batch = batch(&rows);
    let polls = RecordBatch::try_from_iter([
        ("time", values_batch.column(0).clone()),
        ("device", values_batch.column(1).clone()),
        ("received_us", Arc::new(Int64Array::from_iter_values((1..20).map(late))) as ArrayRef),
    ])
    .unwrap();
    let polls = PollTimes::new([polls]).unwrap();
    let freshness = fresh();
    let context = Context { freshness: &freshness, polls: Some(&polls) };
    let summary = Summariser::new(&table()).unwrap().summarise(&values_batch, context).unwrap();
    for name in ["in_octets_per_s_min", "in_octets_per_s_max"] {
        for rate in values::<Float64Type>(&summary, 1_000, "a", name).into_iter().flatten() {
            assert!((rate / 10_000.0 - 1.0).abs() < 1e-9, "{name} {rate}");
        }
    }
}
