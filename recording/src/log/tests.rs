use proptest::prelude::*;

use super::*;
use crate::batch::Batch;
use crate::schema::{Column, ColumnKind, Meaning};

fn at(sequence: u64) -> Ordinal {
    Ordinal { sequence, before: sequence.checked_sub(1) }
}

const KINDS: [ColumnKind; 5] =
    [ColumnKind::U64, ColumnKind::I64, ColumnKind::F64, ColumnKind::Symbol, ColumnKind::Text];

fn schema() -> TableSchema {
    let columns = KINDS
        .iter()
        .enumerate()
        .map(|(at, &kind)| Column::new(&format!("c{at}"), kind, Meaning::Gauge, ""))
        .collect();
    TableSchema::new("t", "one column of each kind", columns)
}

type Row = (i64, Option<u64>, Option<i64>, Option<f64>, Option<u32>, Option<String>);

fn filled(schema: &TableSchema, rows: &[Row]) -> Batch {
    let mut batch = Batch::new(0, schema);
    for (time, unsigned, signed, real, symbol, text) in rows {
        let symbol = symbol.map(crate::Symbol);
        put_row(&mut batch, *time, (*unsigned, *signed, *real, symbol, text.as_deref()));
    }
    batch
}

/// A value of each kind of column, or none.
pub(in crate::log) type Values<'a> =
    (Option<u64>, Option<i64>, Option<f64>, Option<crate::Symbol>, Option<&'a str>);

/// Puts a row into a batch whose columns are of these kinds, in this order.
pub(in crate::log) fn put_row(batch: &mut Batch, time: i64, values: Values<'_>) {
    let (unsigned, signed, real, symbol, text) = values;
    batch.begin_row(time);
    if let Some(value) = unsigned {
        batch.put_u64(1, value);
    }
    if let Some(value) = signed {
        batch.put_i64(2, value);
    }
    if let Some(value) = real {
        batch.put_f64(3, value);
    }
    if let Some(value) = symbol {
        batch.put_symbol(4, value);
    }
    if let Some(value) = text {
        batch.put_text(5, value);
    }
}

fn read_back(schema: &TableSchema, frame: &[u8]) -> Vec<Row> {
    let header = FrameHeader::decode(frame).unwrap();
    assert_eq!(crc32fast::hash(&frame[HEADER_LEN..]), header.payload_crc);
    let views = columns_of(&frame[HEADER_LEN..], header.rows, schema).unwrap();
    let value = |column: usize, row| (!views[column].is_null(row)).then(|| views[column].bits(row));
    (0..header.rows)
        .map(|row| {
            (
                value(0, row).unwrap().cast_signed(),
                value(1, row),
                value(2, row).map(u64::cast_signed),
                value(3, row).map(f64::from_bits),
                value(4, row).map(|bits| u32::try_from(bits).unwrap()),
                views[5].text(row).map(str::to_owned),
            )
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn rows_come_back_as_they_were(rows: Vec<Row>) {
        prop_assume!(!rows.is_empty());
        prop_assume!(rows.iter().all(|row| row.3.is_none_or(|real| !real.is_nan())));
        let schema = schema();
        let mut frame = Vec::new();
        let times = encode_rows(&mut filled(&schema, &rows), at(7), &mut frame).unwrap();
        prop_assert_eq!(times.0, rows.iter().map(|row| row.0).min().unwrap());
        prop_assert_eq!(times.1, rows.iter().map(|row| row.0).max().unwrap());
        prop_assert_eq!(read_back(&schema, &frame), rows.clone());

        let mut batch = Batch::new(0, &schema);
        decode_rows(&frame[HEADER_LEN..], rows.len(), &schema, &mut batch).unwrap();
        let mut again = Vec::new();
        encode_rows(&mut batch, at(7), &mut again).unwrap();
        prop_assert_eq!(again, frame);
    }

    #[test]
    fn no_octets_make_a_decoder_panic(octets: Vec<u8>, rows in 0_usize..100) {
        let schema = schema();
        let mut batch = Batch::new(0, &schema);
        FrameHeader::decode(&octets);
        head_of(&octets);
        symbols_of(&octets, rows);
        decode_rows(&octets, rows, &schema, &mut batch);
    }

    #[test]
    fn a_flipped_bit_in_a_header_is_seen(sequence: u64, bit in 0_usize..HEADER_LEN * 8) {
        let mut frame = Vec::new();
        encode_symbols(&["eth0".into()], 0, at(sequence), &mut frame);
        prop_assert!(FrameHeader::decode(&frame).is_some());
        frame[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(FrameHeader::decode(&frame).is_none());
    }
}

#[test]
fn values_are_kept_in_the_width_that_their_range_needs() {
    let schema =
        TableSchema::new("t", "", vec![Column::new("a", ColumnKind::I64, Meaning::Gauge, "")]);
    for (greatest, width) in [(0, 0), (255, 1), (256, 2), (65_536, 4), (1 << 32, 8)] {
        let mut batch = Batch::new(0, &schema);
        for row in 0..10 {
            batch.begin_row(1_700_000_000_000_000_000);
            batch.put_i64(1, if row == 9 { greatest - 100 } else { -100 });
        }
        let mut frame = Vec::new();
        encode_rows(&mut batch, at(1), &mut frame).unwrap();
        assert_eq!(frame.len(), HEADER_LEN + 10 + 10 + 10 * width, "range {greatest}");
    }
}

#[test]
fn a_head_of_tables_whose_rows_have_no_time_is_none() {
    let head = |columns: &str| {
        let table = format!(r#"{{"name":"t","doc":"","columns":[{columns}]}}"#);
        let head = format!(r#"{{"format":1,"kind":"measured","stream":"s","tables":[{table}]}}"#);
        head_of(head.as_bytes()).is_some()
    };
    let column = |name: &str, kind: &str| {
        format!(r#"{{"name":"{name}","kind":"{kind}","meaning":"gauge","doc":""}}"#)
    };
    let (time, value) = (column("time", "time"), column("value", "u64"));
    assert!(head(&time) && head(&format!("{time},{value}")));
    for wrong in [String::new(), value.clone(), format!("{value},{time}"), format!("{time},{time}")]
    {
        assert!(!head(&wrong), "{wrong}");
    }
}
