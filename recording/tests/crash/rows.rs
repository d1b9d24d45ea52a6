//! The rows that the tests write: each says by itself which it is and whether it is whole.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use arrow::array::{Array as _, AsArray as _};
use arrow::datatypes::UInt64Type;
use meikyo_recording::files::{self, Listing};
use meikyo_recording::segment::SegmentReader;
use meikyo_recording::{
    Batch, Column, ColumnKind, Meaning, PackedRows, Packer, StreamWriter, TableSchema,
};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// 2026-11-21T20:59:59Z: the rows of a second run over the border of an hour.
const START: i64 = 1_795_294_799_000_000_000;

/// Two tables of the same shape, so that frames of both interleave.
pub(crate) fn tables() -> Vec<TableSchema> {
    let columns = || {
        vec![
            Column::new("device", ColumnKind::Symbol, Meaning::Label, "changes with the row"),
            Column::new("run", ColumnKind::U64, Meaning::Gauge, "which process wrote it"),
            Column::new("row", ColumnKind::U64, Meaning::Gauge, "ordinal in the run and table"),
            Column::new("check", ColumnKind::U64, Meaning::Gauge, "what `check` says of them"),
        ]
    };
    vec![TableSchema::new("a", "", columns()), TableSchema::new("b", "", columns())]
}

/// A number that no damaged row has by chance (the mixer of splitmix64).
fn check(table: usize, run: u64, row: u64) -> u64 {
    let mut bits = (table as u64) << 60 ^ run << 40 ^ row;
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

fn device(row: u64) -> String {
    format!("node{:03}", row / 300 % 97)
}

/// Puts the rows `rows` of a run into a table.
pub(crate) fn submit(
    writer: &mut StreamWriter,
    table: usize,
    run: u64,
    rows: std::ops::Range<u64>,
) {
    let mut batch = writer.batch(table);
    for row in rows {
        batch.begin_row(START + row.cast_signed() * 100_000);
        batch.put_symbol(1, writer.symbol(&device(row)));
        batch.put_u64(2, run);
        batch.put_u64(3, row);
        batch.put_u64(4, check(table, run, row));
    }
    writer.submit(batch);
}

/// As [`submit`], as a block of packed rows.
pub(crate) fn submit_packed(
    writer: &mut StreamWriter,
    table: usize,
    run: u64,
    rows: std::ops::Range<u64>,
) {
    if rows.is_empty() {
        return;
    }
    let mut packer = Packer::new(tables()[table].clone());
    for row in rows {
        let device = packer.symbol(&device(row));
        let batch = packer.batch();
        batch.begin_row(START + row.cast_signed() * 100_000);
        batch.put_symbol(1, device);
        batch.put_u64(2, run);
        batch.put_u64(3, row);
        batch.put_u64(4, check(table, run, row));
    }
    let made = packer.pack().unwrap();
    let block = PackedRows::received(made.payload().to_vec(), made.checksum()).unwrap();
    writer.packed(block).unwrap();
}

/// What a recording holds: for each table and run, which rows.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) rows: BTreeMap<(usize, u64), Vec<u64>>,
    /// Octets behind the last whole frames.
    pub(crate) torn_bytes: u64,
    /// Octets in the middle of segments that are not frames.
    pub(crate) damaged_bytes: u64,
}

impl Found {
    fn add(&mut self, table: usize, device_of_row: &str, run: u64, row: u64, check_of_row: u64) {
        assert_eq!(
            check_of_row,
            check(table, run, row),
            "a row that was never written: {run} {row}"
        );
        assert_eq!(device_of_row, device(row), "a symbol of another row: {run} {row}");
        self.rows.entry((table, run)).or_default().push(row);
    }

    /// The rows that were found of a run and table, each once; panics when one is there twice.
    pub(crate) fn sorted(&mut self, table: usize, run: u64) -> &[u64] {
        let rows = self.rows.entry((table, run)).or_default();
        rows.sort_unstable();
        if let Some(twice) = rows.windows(2).find(|pair| pair[0] == pair[1]) {
            panic!("row {} of run {run} in table {table} is there twice", twice[0]);
        }
        rows
    }

    /// How many rows of a run and table there are; panics unless they are its first ones.
    pub(crate) fn prefix(&mut self, table: usize, run: u64) -> u64 {
        let rows = self.sorted(table, run);
        let hole = rows.iter().zip(0..).find(|(row, expected)| *row != expected);
        assert!(hole.is_none(), "run {run}, table {table}: a row is missing before {hole:?}");
        rows.len() as u64
    }
}

/// Reads the log and the Parquet files by the rule of `layout`, with no other code of the reader.
pub(crate) fn read(dir: &Path) -> Found {
    let Listing { segments, parquet, .. } = files::list(dir).unwrap();
    let mut found = Found::default();
    for segment in segments {
        let len = segment.file.metadata().unwrap().len();
        let Some(mut reader) = SegmentReader::from_file(segment.file, &segment.path).unwrap()
        else {
            found.torn_bytes += len;
            continue;
        };
        while let Some(frame) = reader.next_rows(|_| true).unwrap() {
            let mut batch = Batch::new(frame.table, &tables()[frame.table]);
            reader.decode(&frame, &mut batch).unwrap();
            for row in 0..batch.rows() {
                let bits = |column| batch.bits(column, row).unwrap();
                let device = reader.symbol(bits(1)).unwrap();
                found.add(frame.table, device, bits(2), bits(3), bits(4));
            }
        }
        found.torn_bytes += reader.ending().torn_bytes;
        found.damaged_bytes += reader.ending().damaged_bytes;
    }
    for file in parquet {
        let table = tables().iter().position(|table| table.name == file.table);
        // Summaries are no rows.
        let Some(table) = table else { continue };
        let opened = File::open(&file.path).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(opened).unwrap().build().unwrap();
        for batch in reader {
            let batch = batch.unwrap();
            let texts = batch.column(1).as_string::<i32>();
            let bits = |column: usize| batch.column(column).as_primitive::<UInt64Type>();
            let (runs, rows, checks) = (bits(2), bits(3), bits(4));
            for at in 0..batch.num_rows() {
                assert!(texts.is_valid(at));
                found.add(table, texts.value(at), runs.value(at), rows.value(at), checks.value(at));
            }
        }
    }
    found
}
