//! Columns of numbers against the reader of `parquet`, and their statistics against the rows.

use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, AsArray as _, Float64Array, Int64Array, RecordBatch,
    TimestampNanosecondArray, UInt64Array,
};
use arrow::datatypes::{Float64Type, Int64Type, TimestampNanosecondType, UInt64Type};
use bytes::Bytes;
use proptest::prelude::*;

use crate::parquet_file::chunk::PAGE_ROWS;
use crate::parquet_file::read_back::{file, reader};
use crate::schema::{Column, ColumnKind, Meaning, TableSchema};
use crate::series;

/// A time, an unsigned and a signed integer.
type Row = (i64, Option<u64>, Option<i64>);

fn table() -> TableSchema {
    let gauge = |name: &str, kind| Column::new(name, kind, Meaning::Gauge, "");
    let columns = vec![gauge("u", ColumnKind::U64), gauge("i", ColumnKind::I64)];
    TableSchema::new("t", "", columns)
}

fn batch(rows: &[Row]) -> RecordBatch {
    let times = TimestampNanosecondArray::from_iter_values(rows.iter().map(|row| row.0));
    let unsigned: UInt64Array = rows.iter().map(|row| row.1).collect();
    let signed: Int64Array = rows.iter().map(|row| row.2).collect();
    let columns: Vec<ArrayRef> =
        vec![Arc::new(times.with_timezone("UTC")), Arc::new(unsigned), Arc::new(signed)];
    RecordBatch::try_new(series::arrow_schema(&table()), columns).unwrap()
}

fn rows(file: &Bytes) -> Vec<Row> {
    let batches = reader(file).build().unwrap().map(Result::unwrap);
    batches
        .flat_map(|rows| {
            let times = rows.column(0).as_primitive::<TimestampNanosecondType>();
            let unsigned = rows.column(1).as_primitive::<UInt64Type>();
            let signed = rows.column(2).as_primitive::<Int64Type>();
            let row = |at| {
                let unsigned = unsigned.is_valid(at).then(|| unsigned.value(at));
                (times.value(at), unsigned, signed.is_valid(at).then(|| signed.value(at)))
            };
            (0..rows.num_rows()).map(row).collect::<Vec<_>>()
        })
        .collect()
}

/// The least and the greatest as the format has them.
fn bounds<T: Ord + Copy>(
    values: impl Iterator<Item = T> + Clone,
    octets: impl Fn(T) -> [u8; 8],
) -> Option<[Vec<u8>; 2]> {
    Some([octets(values.clone().min()?).to_vec(), octets(values.max()?).to_vec()])
}

/// What the metadata has to say of some rows, by column: bounds and nulls.
fn expected(rows: &[Row]) -> [(Option<[Vec<u8>; 2]>, usize); 3] {
    let unsigned = rows.iter().filter_map(|row| row.1);
    let signed = rows.iter().filter_map(|row| row.2);
    [
        (bounds(rows.iter().map(|row| row.0), i64::to_le_bytes), 0),
        (bounds(unsigned.clone(), u64::to_le_bytes), rows.len() - unsigned.count()),
        (bounds(signed.clone(), i64::to_le_bytes), rows.len() - signed.count()),
    ]
}

/// Rows in stretches of one habit: widths of differences from 0 to 64 bits, and nulls.
fn stretch() -> impl Strategy<Value = Vec<Row>> {
    let count = prop_oneof![8 => 1_usize..300, 1 => 1_usize..45_000];
    (count, any::<u64>(), 0_u32..=64, 0_u64..4, any::<u64>()).prop_map(
        |(count, begin, width, nulls, seed)| {
            let mut state = seed | 1;
            let mut random = move || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state
            };
            let mut value = begin;
            let mut row = || {
                let step = random().checked_shr(64 - width).unwrap_or(0);
                value = value.wrapping_add(step);
                let valid = nulls == 0 || (nulls < 3 && random().is_multiple_of(nulls + 1));
                (value.cast_signed(), valid.then_some(value), valid.then(|| !value.cast_signed()))
            };
            (0..count).map(|_| row()).collect()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_integers_are_read_back_and_every_page_says_what_is_in_it(
        batches in prop::collection::vec(stretch(), 1..5),
    ) {
        let all: Vec<Row> = batches.concat();
        let file = file(&table(), batches.iter().map(|rows| batch(rows)));
        prop_assert_eq!(&rows(&file), &all);
        let metadata = reader(&file).metadata().clone();
        for (column, (bounds, nulls)) in expected(&all).into_iter().enumerate() {
            let statistics = metadata.row_group(0).column(column).statistics().unwrap().clone();
            let [least, greatest] = bounds.map_or([None, None], |found| found.map(Some));
            prop_assert_eq!(statistics.min_bytes_opt().map(<[u8]>::to_vec), least);
            prop_assert_eq!(statistics.max_bytes_opt().map(<[u8]>::to_vec), greatest);
            prop_assert_eq!(statistics.null_count_opt(), Some(nulls as u64));
            let index = metadata.page_index_for_row_group(0).column_index(column).unwrap().clone();
            let pages: Vec<_> = all.chunks(PAGE_ROWS).map(expected).collect();
            prop_assert_eq!(index.num_pages(), pages.len() as u64);
            for (at, page) in pages.iter().enumerate() {
                let (bounds, nulls) = &page[column];
                prop_assert_eq!(index.null_count(at), i64::try_from(*nulls).ok());
                prop_assert_eq!(index.is_null_page(at), bounds.is_none());
            }
        }
    }
}

/// Doubles of a summary, with the values that order and statistics can stumble over.
fn double() -> impl Strategy<Value = Option<f64>> {
    let special = [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE];
    prop_oneof![
        3 => any::<f64>().prop_map(Some),
        1 => prop::sample::select(special.to_vec()).prop_map(Some),
        1 => Just(None),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_doubles_of_a_summary_are_read_back_with_their_bounds(
        values in prop::collection::vec(double(), 1..200),
        times in prop_oneof![8 => Just(1_usize), 1 => Just(300)],
    ) {
        let mut table = TableSchema::new(
            "t",
            "",
            vec![Column::new("d", ColumnKind::F64, Meaning::Gauge, "")],
        );
        table.name.push_str(crate::summary::SUFFIX);
        let values = values.repeat(times);
        let instants = TimestampNanosecondArray::from_iter_values((0..).take(values.len()));
        let doubles: Float64Array = values.iter().copied().collect();
        let columns: Vec<ArrayRef> = vec![Arc::new(instants.with_timezone("UTC")), Arc::new(doubles)];
        let batch = RecordBatch::try_new(series::arrow_schema(&table), columns).unwrap();
        let file = file(&table, [batch]);
        let read: Vec<_> = reader(&file).build().unwrap().flat_map(|rows| {
            let rows = rows.unwrap();
            let doubles = rows.column(1).as_primitive::<Float64Type>();
            doubles.iter().collect::<Vec<_>>()
        }).collect();
        let bits = |values: &[Option<f64>]| -> Vec<_> {
            values.iter().map(|value| value.map(f64::to_bits)).collect()
        };
        prop_assert_eq!(bits(&read), bits(&values));
        let metadata = reader(&file).metadata().clone();
        let column = metadata.row_group(0).column(1);
        let encodings: Vec<_> = column.encodings().collect();
        prop_assert!(encodings.contains(&parquet::basic::Encoding::BYTE_STREAM_SPLIT));
        let statistics = column.statistics().unwrap();
        let known: Vec<f64> =
            values.iter().flatten().copied().filter(|value| !value.is_nan()).collect();
        let bound = |octets: Option<&[u8]>| {
            octets.map(|octets| f64::from_le_bytes(octets.try_into().unwrap()))
        };
        let (least, greatest) = (bound(statistics.min_bytes_opt()), bound(statistics.max_bytes_opt()));
        prop_assert_eq!(least.is_some(), !known.is_empty());
        if let (Some(least), Some(greatest)) = (least, greatest) {
            prop_assert!(known.iter().all(|value| least <= *value && *value <= greatest));
            prop_assert!(known.contains(&least) && known.contains(&greatest));
        }
        prop_assert_eq!(
            statistics.null_count_opt(),
            Some(values.iter().filter(|value| value.is_none()).count() as u64)
        );
    }
}
