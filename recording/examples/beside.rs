//! What requests cost beside a great log of another stream: `cargo run --release -p
//! meikyo-recording --example beside [GIGABYTES] [ROUNDS]`.
//!
//! The recording of an hour of 64 devices is made twice: fifty minutes in Parquet files and ten in the
//! log, as a collector leaves it. One of the two has packed rows of another table beside it (3 GB unless
//! said) that are still in the log. Requests of both are timed in turn, so that a machine which becomes
//! slower meanwhile does so for both; the median of all rounds counts.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for developers")]

use std::path::Path;
use std::time::Instant;

use meikyo_recording::inventory::inventory;
use meikyo_recording::{
    Column, ColumnKind, Kind, Meaning, PackedRows, Packer, Recording, Selection, StreamOptions,
    StreamWriter, TableSchema, WhenFull,
};
use meikyo_units::WallTime;

const SECOND: i64 = 1_000_000_000;
const BEGIN: i64 = 1_795_294_800 * SECOND;

/// What is asked, and how often in a round: about as long each. A server keeps its recordings open, and
/// so do the page's requests here; a command opens one for each question.
type Request = (&'static str, u32, fn(&Recording));

const REQUESTS: [Request; 5] = [
    ("info", 3, |of| assert_eq!(inventory(of.dir()).unwrap().problems, [])),
    ("tables", 20, |of| drop(of.catalogue().unwrap())),
    ("opened", 20, |of| drop(Recording::open(of.dir()).unwrap().catalogue().unwrap())),
    ("span", 10, |of| assert!(of.span("interfaces").unwrap().is_some())),
    ("range", 3, range),
];

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().unwrap());
    let gigabytes = arguments.next().unwrap_or(3);
    let rounds = arguments.next().unwrap_or(5);
    let base = tempfile::tempdir().unwrap();
    let [alone, beside] = ["alone", "beside"].map(|name| base.path().join(name));
    for dir in [&alone, &beside] {
        measured(dir);
    }
    profiled(&beside, gigabytes * 1_000_000_000);
    let recordings = [&alone, &beside].map(|dir| Recording::open(dir).unwrap());
    let log = inventory(&beside).unwrap();
    println!("{} octets in the log, {:?}", log.log_bytes, log.cost);
    let mut worst = 0.0_f64;
    for (name, repeats, request) in REQUESTS {
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..=rounds {
            // Who is first changes with the round; the first one warms up and does not count.
            for at in 0..2 {
                let at = (at + usize::from(round % 2 == 0)) % 2;
                let begin = now();
                (0..repeats).for_each(|_| request(&recordings[at]));
                if round > 0 {
                    let ms = now().duration_since(begin).as_secs_f64() * 1e3;
                    times[at].push(ms / f64::from(repeats));
                }
            }
        }
        let [alone, beside] = times.map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        });
        let ratio = beside / alone;
        worst = worst.max(ratio);
        println!("{name:8} alone {alone:8.3} ms   beside {beside:8.3} ms   ratio {ratio:.2}");
    }
    println!("greatest ratio {worst:.2}, median of {rounds} rounds each");
}

/// The last minute of one device, as a page asks for it.
fn range(recording: &Recording) {
    let selection = Selection {
        labels: vec![("device".into(), vec!["node7".into()])],
        from: Some(WallTime::from_nanos(BEGIN + (6 * STRETCH_S - 60) * SECOND)),
        ..Selection::all("interfaces")
    };
    let mut scan = recording.scan(&selection).unwrap();
    let rows: usize = scan.by_ref().map(|batch| batch.unwrap().num_rows()).sum();
    assert!(rows > 0 && scan.problems().is_empty());
}

/// Ten minutes, after which a collector compacts.
const STRETCH_S: i64 = 600;

/// An hour of 64 devices: interfaces at 10 Hz, five tables of states at 1 Hz.
fn measured(dir: &Path) {
    for stretch in 0..6_i64 {
        let names = ["interfaces", "load", "cpu", "memory", "storage", "sensors"];
        let tables = names.map(counters).to_vec();
        let mut writer =
            StreamWriter::open(dir, Kind::Measured, "snmp", tables, options(stretch < 5)).unwrap();
        let devices: Vec<_> =
            (0..64).map(|number| writer.symbol(&format!("node{number}"))).collect();
        for interval in 0..STRETCH_S * 10 {
            let time = BEGIN + stretch * STRETCH_S * SECOND + interval * SECOND / 10;
            let tables = if interval % 10 == 0 { 0..names.len() } else { 0..1 };
            for table in tables {
                let mut batch = writer.batch(table);
                for &device in &devices {
                    batch.begin_row(time);
                    batch.put_symbol(1, device);
                    batch.put_u64(2, interval.unsigned_abs() * 12_345);
                    batch.put_u64(3, interval.unsigned_abs() * 54_321);
                }
                writer.submit(batch);
            }
        }
        writer.close().unwrap();
    }
}

/// Two counters of a device.
fn counters(name: &str) -> TableSchema {
    let columns = vec![
        Column::new("device", ColumnKind::Symbol, Meaning::Label, ""),
        Column::new("in_octets", ColumnKind::U64, Meaning::Counter64, ""),
        Column::new("out_octets", ColumnKind::U64, Meaning::Counter64, ""),
    ];
    TableSchema::new(name, "", columns)
}

/// Blocks of samples, together of so many octets.
fn profiled(dir: &Path, octets: u64) {
    let columns = vec![
        Column::new("host", ColumnKind::Symbol, Meaning::Label, ""),
        Column::new("stack", ColumnKind::U64, Meaning::Detail, ""),
    ];
    let table = TableSchema::new("samples", "", columns);
    let mut packer = Packer::new(table.clone());
    let host = packer.symbol("node7");
    let mut random = 1_u64;
    for row in 0..32_768_i64 {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let batch = packer.batch();
        batch.begin_row(BEGIN + row * SECOND / 100);
        batch.put_symbol(1, host);
        batch.put_u64(2, random);
    }
    let block = packer.pack().unwrap();
    let mut writer =
        StreamWriter::open(dir, Kind::Measured, "profile", vec![table], options(false)).unwrap();
    let mut written = 0;
    while written < octets {
        let block = PackedRows::received(block.payload().to_vec(), block.checksum()).unwrap();
        written += u64::try_from(block.payload().len()).unwrap();
        writer.packed(block).unwrap();
    }
    writer.close().unwrap();
}

fn options(compact: bool) -> StreamOptions {
    StreamOptions { compact, when_full: WhenFull::Wait, ..StreamOptions::COLLECTOR }
}

#[expect(clippy::disallowed_methods, reason = "a bench reads the clock on the wall")]
fn now() -> Instant {
    Instant::now()
}
