//! The rows that senders make: each says by itself which it is and whether it is whole.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use arrow::array::{Array as _, AsArray as _};
use arrow::datatypes::UInt64Type;
use meikyo_recording::{
    Column, ColumnKind, Meaning, PackedRows, Packer, Recording, Selection, TableSchema,
};

pub(crate) const STREAM: &str = "afar";

/// 2026-11-21T20:59:59Z.
const START: i64 = 1_795_294_799_000_000_000;

pub(crate) fn table() -> TableSchema {
    let columns = vec![
        Column::new("host", ColumnKind::Symbol, Meaning::Label, "who made it"),
        Column::new("run", ColumnKind::U64, Meaning::Gauge, "in which life"),
        Column::new("block", ColumnKind::U64, Meaning::Gauge, "in which block"),
        Column::new("row", ColumnKind::U64, Meaning::Gauge, "where in it"),
        Column::new("check", ColumnKind::U64, Meaning::Gauge, "what `check` says of them"),
    ];
    TableSchema::new("made", "rows of a test", columns)
}

/// How many rows a block has.
fn count(block: u64) -> u64 {
    1 + block * 37 % 50
}

/// A number that no damaged row has by chance (the mixer of splitmix64).
fn check(run: u64, block: u64, row: u64) -> u64 {
    let mut bits = run << 48 ^ block << 16 ^ row;
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

pub(crate) fn block(host: &str, run: u64, block: u64) -> PackedRows {
    let mut packer = Packer::new(table());
    let host = packer.symbol(host);
    for row in 0..count(block) {
        let batch = packer.batch();
        batch.begin_row(START + (block * 1_000_000 + row).cast_signed());
        batch.put_symbol(1, host);
        batch.put_u64(2, run);
        batch.put_u64(3, block);
        batch.put_u64(4, row);
        batch.put_u64(5, check(run, block, row));
    }
    packer.pack().unwrap()
}

/// What a recording holds.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Rows of each block, by host, run and block.
    blocks: BTreeMap<(String, u64), BTreeMap<u64, BTreeSet<u64>>>,
    /// Gaps that tell of a loss.
    pub(crate) losses: Vec<String>,
}

impl Found {
    pub(crate) fn rows(&self) -> usize {
        self.blocks.values().flat_map(BTreeMap::values).map(BTreeSet::len).sum()
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.blocks.values().map(|blocks| blocks.len() as u64).sum()
    }

    /// How many blocks of a run there are; panics unless they are its first ones, and whole.
    pub(crate) fn blocks_of(&self, host: &str, run: u64) -> u64 {
        let Some(blocks) = self.blocks.get(&(host.to_owned(), run)) else { return 0 };
        for ((number, rows), expected) in blocks.iter().zip(0..) {
            assert_eq!(*number, expected, "{host} {run}: a block is missing");
            let all: BTreeSet<u64> = (0..count(*number)).collect();
            assert_eq!(*rows, all, "{host} {run} {number}");
        }
        blocks.len() as u64
    }
}

pub(crate) fn read(dir: &Path) -> Found {
    let recording = Recording::open(dir).unwrap();
    let mut found = Found::default();
    let mut scan = recording.scan(&Selection::all("made")).unwrap();
    for batch in scan.by_ref() {
        let batch = batch.unwrap();
        let text = |name: &str| batch.column_by_name(name).unwrap().clone();
        let hosts = arrow::compute::cast(&text("host"), &arrow::datatypes::DataType::Utf8).unwrap();
        let hosts = hosts.as_string::<i32>();
        let [runs, blocks, rows, checks] = ["run", "block", "row", "check"].map(text);
        let numbers = [&runs, &blocks, &rows, &checks].map(|of| of.as_primitive::<UInt64Type>());
        for at in 0..batch.num_rows() {
            let [run, block, row, sum] = numbers.map(|of| of.value(at));
            assert_eq!(sum, check(run, block, row), "a row that nobody made");
            let of_run = found.blocks.entry((hosts.value(at).to_owned(), run)).or_default();
            let is_new = of_run.entry(block).or_default().insert(row);
            assert!(is_new, "row {row} of block {block} of run {run} is there twice");
        }
    }
    assert_eq!(scan.problems(), []);
    let mut scan = recording.scan(&Selection::all("transport_gaps")).unwrap();
    for batch in scan.by_ref() {
        let batch = batch.unwrap();
        let reasons = batch.column_by_name("reason").unwrap();
        let reasons = arrow::compute::cast(reasons, &arrow::datatypes::DataType::Utf8).unwrap();
        let reasons = reasons.as_string::<i32>().clone();
        for at in 0..batch.num_rows() {
            assert!(!reasons.is_null(at));
            if reasons.value(at) != "ended" {
                let names = ["sender", "reason", "boot", "first", "last", "blocks", "rows"];
                let values = names.map(|name| {
                    let column = batch.column_by_name(name).unwrap();
                    let value = arrow::util::display::array_value_to_string(column, at).unwrap();
                    format!("{name} {value}")
                });
                found.losses.push(values.join(", "));
            }
        }
    }
    found
}
