//! What it costs to verify checksums while scanning: `cargo run --release -p meikyo-recording
//! --example verification [MILLION ROWS] [ROUNDS]`.
//!
//! A recording of synthetic counters is scanned whole with and without verification, in turn, so
//! that a machine which becomes slower meanwhile does so for both; the median of all rounds counts.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for developers")]

use std::path::Path;
use std::time::Instant;

use meikyo_recording::read::Verification;
use meikyo_recording::{
    Column, ColumnKind, Kind, Meaning, Recording, Selection, StreamOptions, StreamWriter,
    TableSchema, WhenFull,
};

const DEVICES: u64 = 241;
const TABLE: &str = "interfaces";

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().unwrap());
    let millions = arguments.next().unwrap_or(4);
    let rounds = arguments.next().unwrap_or(11);
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), millions * 1_000_000 / DEVICES);
    let recording = Recording::open(dir.path()).unwrap();
    let kinds = [Verification::Always, Verification::Never];
    let mut times = [Vec::new(), Vec::new()];
    let (mut rows, mut bytes) = (0, 0);
    for round in 0..=rounds {
        // Who is first changes with the round; the first one warms up and does not count.
        for kind in 0..2 {
            let kind = (kind + usize::from(round % 2 == 0)) % 2;
            let of_kind = recording.clone().with_verification(kinds[kind]);
            let (ms, cost) = scan(&of_kind);
            if round > 0 {
                times[kind].push(ms);
            }
            (rows, bytes) = (cost.rows, cost.bytes_read);
        }
    }
    let [with, without] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    });
    println!("{rows} rows, {bytes} octets read, median of {rounds} scans");
    println!("with verification    {with:8.2} ms");
    println!("without              {without:8.2} ms");
    println!("verification costs   {:8.2} %", (with / without - 1.0) * 100.0);
}

fn scan(recording: &Recording) -> (f64, meikyo_recording::ReadCost) {
    let begin = now();
    let mut scan = recording.scan(&Selection::all(TABLE)).unwrap();
    let rows: usize = scan.by_ref().map(|batch| batch.unwrap().num_rows()).sum();
    let ms = now().duration_since(begin).as_secs_f64() * 1e3;
    assert!(rows > 0 && scan.problems().is_empty(), "{:?}", scan.problems());
    (ms, scan.cost())
}

#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
fn now() -> Instant {
    Instant::now()
}

fn write(dir: &Path, intervals: u64) {
    let table = TableSchema::new(
        TABLE,
        "",
        vec![
            Column::new("device", ColumnKind::Symbol, Meaning::Label, ""),
            Column::new("in_octets", ColumnKind::U64, Meaning::Counter64, ""),
            Column::new("out_octets", ColumnKind::U64, Meaning::Counter64, ""),
            Column::new("in_pkts", ColumnKind::U64, Meaning::Counter64, ""),
            Column::new("load", ColumnKind::F64, Meaning::Gauge, ""),
        ],
    );
    let options = StreamOptions { when_full: WhenFull::Wait, ..StreamOptions::COLLECTOR };
    let mut writer = StreamWriter::open(dir, Kind::Measured, "s", vec![table], options).unwrap();
    let devices: Vec<_> = (0..DEVICES).map(|at| writer.symbol(&format!("node{at:03}"))).collect();
    let mut noise = 1_u64;
    for interval in 0..intervals {
        let mut batch = writer.batch(0);
        for (&device, at) in devices.iter().zip(1..) {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            batch.begin_row(1_795_294_800_000_000_000 + interval.cast_signed() * 100_000_000);
            batch.put_symbol(1, device);
            batch.put_u64(2, interval * 1_000_000 * at + (noise >> 44));
            batch.put_u64(3, interval * 700_000 * at + (noise >> 46));
            batch.put_u64(4, interval * 1_000 + (noise >> 56));
            batch.put_f64(5, f64::from(u32::try_from(noise >> 54).unwrap()) / 100.0);
        }
        writer.submit(batch);
    }
    writer.close().unwrap();
}
