use proptest::prelude::*;

use super::*;
use crate::batch::{Batch, Symbol};
use crate::packed::{Gather, Packer};
use crate::schema::Column as SchemaColumn;

const WORDS: [&str; 6] = ["node003", "ok", "node001", "eth0", "node002", "missed"];

fn schema(name: &str) -> TableSchema {
    let column = |name, kind, meaning| SchemaColumn::new(name, kind, meaning, "");
    TableSchema::new(
        name,
        "",
        vec![
            column("device", ColumnKind::Symbol, Meaning::Label),
            column("interface", ColumnKind::Symbol, Meaning::Label),
            column("octets", ColumnKind::U64, Meaning::Counter64),
            column("offset", ColumnKind::I64, Meaning::Gauge),
            column("load", ColumnKind::F64, Meaning::Gauge),
            column("state", ColumnKind::Symbol, Meaning::State),
            column("text", ColumnKind::Text, Meaning::Detail),
        ],
    )
}

#[derive(Debug, Clone)]
struct Row {
    time: i64,
    labels: (Option<u8>, Option<u8>),
    octets: Option<u64>,
    offset: Option<i64>,
    load: Option<f64>,
    state: Option<u8>,
    text: Option<String>,
}

fn batch_of(schema: &TableSchema, rows: &[Row]) -> Batch {
    let mut batch = Batch::new(0, schema);
    let symbol = |of: u8| Symbol(u32::from(of % 6));
    for row in rows {
        batch.begin_row(row.time);
        for (column, label) in [(1, row.labels.0), (2, row.labels.1), (6, row.state)] {
            if let Some(label) = label {
                batch.put_symbol(column, symbol(label));
            }
        }
        if let Some(octets) = row.octets {
            batch.put_u64(3, octets);
        }
        if let Some(offset) = row.offset {
            batch.put_i64(4, offset);
        }
        if let Some(load) = row.load {
            batch.put_f64(5, load);
        }
        if let Some(text) = &row.text {
            batch.put_text(7, text);
        }
    }
    batch
}

fn numbered(rows: &PackedRows, boot: u64, number: u64) -> PackedRows {
    let source = Source { sender: "west:c".into(), boot, stream: "snmp".into() };
    rows.with_origin(&Origin { source, first: number, last: number }).unwrap()
}

/// The blocks of what one interval brought, numbered from `number` on.
fn blocks(schema: &TableSchema, rows: &[Row], number: u64) -> Vec<PackedRows> {
    let words: Vec<String> = WORDS.map(str::to_owned).into();
    let mut gather = Gather::new(schema.clone());
    gather.append(&mut batch_of(schema, rows));
    let blocks = gather.pack(&words, 2_000).unwrap();
    let numbers = number..;
    blocks.iter().zip(numbers).map(|(block, number)| numbered(block, 7, number)).collect()
}

fn row() -> impl Strategy<Value = Row> {
    let small = prop_oneof![0_u64..9, 1_000_000_u64..1_000_100, any::<u64>()];
    let values = (
        proptest::option::of(small),
        proptest::option::of(any::<i64>()),
        proptest::option::of(any::<f64>()),
    );
    let rest = (any::<Option<u8>>(), proptest::option::weighted(0.002, "[a-z]{0,4}"));
    (0_i64..9, any::<(Option<u8>, Option<u8>)>(), values, rest).prop_map(
        |(time, labels, (octets, offset, load), (state, text))| Row {
            time,
            labels,
            octets,
            offset,
            load,
            state,
            text,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn blocks_arrive_as_they_were_whatever_changed(
        intervals in proptest::collection::vec((any::<bool>(), proptest::collection::vec(row(), 1..60)), 1..12)
    ) {
        let schemas = ["first", "second"].map(schema);
        let (mut encoder, mut decoder) = (DeltaEncoder::new(), DeltaDecoder::new());
        let mut number = 1;
        for (which, rows) in intervals {
            let schema = &schemas[usize::from(which)];
            for block in blocks(schema, &rows, number) {
                number += 1;
                match encoder.encode(&block, schema) {
                    Some(octets) => prop_assert_eq!(decoder.decode(&octets).unwrap(), block),
                    // Free texts are not told so.
                    None => prop_assert!(rows.iter().any(|row| row.text.is_some())),
                }
            }
        }
    }

    #[test]
    fn no_octets_make_a_decoder_panic(octets: Vec<u8>, begin in 0_u8..3) {
        let mut decoder = DeltaDecoder::new();
        let octets: Vec<u8> = std::iter::once(begin).chain(octets).collect();
        drop(decoder.decode(&octets));
        drop(decoder.decode(&octets));
    }

    #[test]
    fn a_change_on_the_way_is_told_or_makes_no_other_block(
        rows in proptest::collection::vec(row(), 1..20), at: usize, bit in 0_u8..8
    ) {
        let schema = schema("t");
        let rows: Vec<Row> = rows.into_iter().map(|row| Row { text: None, ..row }).collect();
        let (mut encoder, mut decoder) = (DeltaEncoder::new(), DeltaDecoder::new());
        for block in blocks(&schema, &rows, 1).iter().chain(&blocks(&schema, &rows, 2)) {
            let mut octets = encoder.encode(block, &schema).unwrap();
            let at = at % octets.len();
            octets[at] ^= 1 << bit;
            match decoder.decode(&octets) {
                Ok(found) => prop_assert_eq!(&found, block),
                Err(_) => return Ok(()),
            }
        }
    }
}

/// What a cluster of 500 hosts measures in an interval: two busy counters, one that stands, a load that
/// seldom changes, an offset with the noise of a network.
fn interval(number: u64) -> Vec<Row> {
    let mut random = number + 1;
    let mut below = |limit: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % limit
    };
    let row = |device: u64| Row {
        time: (number * 100_000_000).cast_signed(),
        labels: (u8::try_from(device % 6).ok(), None),
        octets: Some((device << 40) | (number * 12_500_000)),
        offset: Some(below(200).cast_signed()),
        load: Some(0.25),
        state: Some(1),
        text: None,
    };
    (0..6).map(row).collect()
}

#[test]
fn what_did_not_change_takes_no_octets_and_a_steady_change_few() {
    let schema = schema("t");
    let mut encoder = DeltaEncoder::new();
    let mut decoder = DeltaDecoder::new();
    let mut lengths = Vec::new();
    for number in 0..4 {
        for block in blocks(&schema, &interval(number), number + 1) {
            let octets = encoder.encode(&block, &schema).unwrap();
            assert_eq!(decoder.decode(&octets).unwrap(), block);
            lengths.push(octets.len());
        }
    }
    // The names of tables and devices, and a value each, only once; then 6 noisy offsets and a few
    // octets for all else.
    assert!(lengths[0] > 120, "{lengths:?}");
    assert!(lengths[2] <= 45 && lengths[3] <= 45, "{lengths:?}");
}

#[test]
fn what_an_encoder_does_not_tell_changes_nothing() {
    let schema = schema("t");
    let (mut encoder, mut decoder) = (DeltaEncoder::new(), DeltaDecoder::new());
    let tell = |encoder: &mut DeltaEncoder, decoder: &mut DeltaDecoder, number| {
        let block = &blocks(&schema, &interval(number), number + 1)[0];
        let octets = encoder.encode(block, &schema).unwrap();
        assert_eq!(&decoder.decode(&octets).unwrap(), block);
    };
    tell(&mut encoder, &mut decoder, 0);
    let mut free_text = interval(1);
    free_text[3].text = Some("said".into());
    for block in blocks(&schema, &free_text, 2) {
        assert_eq!(encoder.encode(&block, &schema), None);
    }
    let mut packer = Packer::new(schema.clone());
    packer.batch().begin_row(5);
    let sections = numbered(&packer.pack().unwrap(), 7, 9);
    assert_eq!(encoder.encode(&sections, &schema), None);
    tell(&mut encoder, &mut decoder, 2);
}

#[test]
fn both_ends_begin_anew_before_they_remember_too_much() {
    let narrow = TableSchema::new(
        "t",
        "",
        vec![SchemaColumn::new("device", ColumnKind::Symbol, Meaning::Label, "")],
    );
    let (mut encoder, mut decoder) = (DeltaEncoder::new(), DeltaDecoder::new());
    let mut begun = 0;
    // Ever new devices with long names.
    for number in 0..60_u64 {
        let words: Vec<String> =
            (0..2_000).map(|at| format!("{number:04}-{at:04}-{}", "x".repeat(60))).collect();
        let mut batch = Batch::new(0, &narrow);
        for symbol in 0..2_000 {
            batch.begin_row(5);
            batch.put_symbol(1, Symbol(symbol));
        }
        let mut gather = Gather::new(narrow.clone());
        gather.append(&mut batch);
        let block = numbered(&gather.pack(&words, usize::MAX).unwrap()[0], 7, number + 1);
        let octets = encoder.encode(&block, &narrow).unwrap();
        begun += u32::from(octets[0] == BEGINS);
        assert_eq!(decoder.decode(&octets).unwrap(), block);
        assert!(decoder.history.words_bytes <= WORDS_BYTES_MAX);
        assert!(decoder.history.remembered <= REMEMBERED_MAX);
    }
    assert!(begun > 0, "nothing was ever given up");
}
