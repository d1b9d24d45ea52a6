//! What a compaction takes of the machine's memory, and gives back.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::fs;
use std::path::Path;

use meikyo_recording::{
    Column, ColumnKind, Kind, Meaning, StreamOptions, StreamWriter, TableSchema, WhenFull, files,
};
use meikyo_units::{Nanos, WallTime};

/// Devices and intervals of ten minutes at 10 Hz.
const DEVICES: u64 = 300;
const INTERVALS: u64 = 6_000;

/// A multiple of ten minutes, in ns since the epoch.
const BEGIN: i64 = 1_795_292_400_000_000_000;

/// What a compaction may take beside what the process has already.
const LIMIT_BYTES: u64 = 64 << 20;

/// What of that may stay in the allocator, since it is between things that are used.
const KEPT_BYTES: u64 = 12 << 20;

/// How long the end of the compaction is waited for.
const PATIENCE: Nanos = Nanos::from_secs(120);

fn tables() -> Vec<TableSchema> {
    let label = |name: &str| Column::new(name, ColumnKind::Symbol, Meaning::Label, "");
    let gauge = |name: &str, kind| Column::new(name, kind, Meaning::Gauge, "");
    let detail = |name: &str| Column::new(name, ColumnKind::U64, Meaning::Detail, "");
    let counter = |name: &str| Column::new(name, ColumnKind::U64, Meaning::Counter64, "");
    vec![
        TableSchema::new(
            "interfaces",
            "",
            vec![
                label("device"),
                label("interface"),
                counter("in_octets"),
                counter("out_octets"),
                counter("in_packets"),
                counter("out_packets"),
                gauge("speed_mbps", ColumnKind::U64),
                gauge("discontinuity_cs", ColumnKind::U64),
                detail("pdu"),
            ],
        ),
        TableSchema::new(
            "load",
            "",
            vec![
                label("device"),
                gauge("load_1min", ColumnKind::F64),
                gauge("load_5min", ColumnKind::F64),
            ],
        ),
        TableSchema::new(
            "polls",
            "",
            vec![
                label("device"),
                detail("pdu"),
                Column::new("state", ColumnKind::Symbol, Meaning::State, ""),
                gauge("received_us", ColumnKind::I64),
                gauge("uptime_cs", ColumnKind::U64),
            ],
        ),
    ]
}

/// Digits that nobody can compress away.
fn noise(seed: u64) -> u64 {
    let bits = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// Writes the rows of one segment, in several frames an interval as a collector does.
fn write(dir: &Path) -> StreamWriter {
    let options = StreamOptions { when_full: WhenFull::Wait, ..StreamOptions::COLLECTOR };
    let mut writer = StreamWriter::open(dir, Kind::Simulated, "snmp", tables(), options).unwrap();
    let devices: Vec<_> =
        (0..DEVICES).map(|device| writer.symbol(&format!("node{device:03}"))).collect();
    let (eth0, ok) = (writer.symbol("eth0"), writer.symbol("ok"));
    for interval in 0..INTERVALS {
        let time = BEGIN + interval.cast_signed() * 100_000_000;
        for some in devices.chunks(100) {
            let [mut interfaces, mut load, mut polls] = [0, 1, 2].map(|table| writer.batch(table));
            for (&device, at) in some.iter().zip(0..) {
                let random = noise(interval << 20 | at);
                for batch in [&mut interfaces, &mut load, &mut polls] {
                    batch.begin_row(time);
                    batch.put_symbol(1, device);
                }
                interfaces.put_symbol(2, eth0);
                for column in 3..7 {
                    let step = 1_000_000 + (random >> (8 * column) & 0xffff);
                    interfaces.put_u64(column, interval * step);
                }
                interfaces.put_u64(7, 1_000);
                interfaces.put_u64(8, 0);
                interfaces.put_u64(9, 0);
                for column in [2, 3] {
                    load.put_f64(column, f64::from_bits(0x3ff << 52 | random >> 12));
                }
                polls.put_u64(2, 0);
                polls.put_symbol(3, ok);
                polls.put_i64(4, 2_000 + (random & 0x3ff).cast_signed());
                polls.put_u64(5, interval * 10);
            }
            [interfaces, load, polls].into_iter().for_each(|batch| writer.submit(batch));
        }
    }
    writer.sync_now().unwrap();
    writer
}

/// A line of `/proc/self/status` that is in kB, as octets.
fn status(key: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap();
    line.trim_matches(|c: char| !c.is_ascii_digit()).parse::<u64>().unwrap() * 1_024
}

#[test]
fn a_compaction_beside_the_writer_takes_bounded_memory_and_gives_it_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = write(dir.path());
    let segment = files::list(dir.path()).unwrap().segments.remove(0).path;
    let log_bytes = fs::metadata(&segment).unwrap().len();
    assert!(log_bytes > LIMIT_BYTES, "the segment itself would fit: {log_bytes}");
    // Pages of the program's file are not the compaction's.
    let own = status("RssAnon:");
    // A row of the next ten minutes ends the segment.
    let mut next = writer.batch(1);
    next.begin_row(BEGIN + 600_000_000_000);
    next.put_symbol(1, writer.symbol("node000"));
    writer.submit(next);
    let deadline = WallTime::now() + PATIENCE;
    let mut taken = 0;
    while writer.counters().compactions == 0 {
        assert!(WallTime::now() < deadline, "the segment is not compacted");
        taken = taken.max(status("RssAnon:").saturating_sub(own));
    }
    assert!(taken > 8 << 20, "{taken} octets: nobody looked while it was compacted");
    assert!(taken < LIMIT_BYTES, "{taken} octets for a segment of {log_bytes}");
    assert!(!segment.exists());
    let compacted = writer.counters();
    assert_eq!(compacted.rows_compacted, 3 * DEVICES * INTERVALS);
    assert!(compacted.summary_bytes > 1_000_000);
    // While the writer goes on: nobody waits for its end to get the memory back.
    loop {
        writer.sync_now().unwrap();
        let kept = status("RssAnon:").saturating_sub(own);
        if kept < KEPT_BYTES {
            break;
        }
        assert!(WallTime::now() < deadline, "{kept} octets of {taken} are not given back");
    }
    writer.close().unwrap();
}
