//! `meikyo bench scan`: what verifying checksums costs a reader.
//!
//! A recording of synthetic counters is scanned whole with and without verification, in turn, so that a
//! machine which becomes slower meanwhile does so for both. Both must give the same rows, and at the
//! end an octet of a file is changed, which only the verifying reader may notice.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use meikyo_console::benches::scan::ScanArgs;
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output::{self, TextTable, real};
use meikyo_recording::read::Verification;
use meikyo_recording::{
    Column, ColumnKind, Kind, Meaning, Recording, Selection, StreamOptions, StreamWriter,
    TableSchema, WhenFull,
};
use serde::Serialize;

use crate::machine::Machine;
use crate::progress;
use crate::statistics::Observations;

const DEVICES: u64 = 241;
const TABLE: &str = "interfaces";
/// When the recording begins; a round hour.
const BEGIN_NS: i64 = 1_795_294_800_000_000_000;
const INTERVAL_NS: i64 = 100_000_000;
/// What verification may cost, in per cent of a scan.
const COST_PERCENT_MAX: f64 = 3.0;

#[derive(Debug, Serialize)]
struct Report {
    schema: &'static str,
    machine: Machine,
    rows: u64,
    bytes_read: u64,
    verified_ms: f64,
    unverified_ms: f64,
    cost_percent: f64,
    /// What only making the checksums of as many octets takes, from the cache.
    checksums_ms: f64,
    reach_percent: f64,
    damage_noticed: bool,
}

/// Runs the bench; the answer is no when verification costs more than it may, or misses damage.
pub(crate) fn run(args: &ScanArgs) -> Result<Answer, Failure> {
    let machine = Machine::observe();
    let directory = tempfile::tempdir()?;
    progress("writing the recording");
    write(directory.path(), args.millions * 1_000_000 / DEVICES)?;
    let verified = Recording::open(directory.path())?;
    let unverified = verified.clone().with_verification(Verification::Never);
    let (mut with, mut without) = (Vec::new(), Vec::new());
    let mut seen = scan(&verified)?;
    for round in 0..args.rounds {
        progress(&format!("round {} of {}", round + 1, args.rounds));
        // Who is first changes with the round.
        for is_verified in [round % 2 == 0, round % 2 == 1] {
            let recording = if is_verified { &verified } else { &unverified };
            let scan = scan(recording)?;
            if (scan.rows, scan.problems) != (seen.rows, 0) {
                return Err(Failure::new(format!("{} rows, and then {}", seen.rows, scan.rows)));
            }
            if is_verified { &mut with } else { &mut without }.push(scan.ms);
            seen = scan;
        }
    }
    let median = |observed| Observations::new(observed).median().unwrap_or_default();
    let (verified_ms, unverified_ms) = (median(with), median(without));
    let checksums_ms = median((0..args.rounds).map(|_| checksums(seen.bytes_read)).collect());
    damage(directory.path())?;
    let reopened = Recording::open(directory.path())?;
    let damage_noticed = scan(&reopened)?.problems > 0;
    let report = Report {
        schema: "meikyo.bench.scan/1",
        machine,
        rows: seen.rows,
        bytes_read: seen.bytes_read,
        verified_ms,
        unverified_ms,
        cost_percent: (verified_ms / unverified_ms - 1.0) * 100.0,
        checksums_ms,
        reach_percent: COST_PERCENT_MAX,
        damage_noticed,
    };
    if args.json {
        output::print_json(&report)?;
    } else {
        output::print(&text(&report))?;
    }
    let is_good = report.cost_percent < COST_PERCENT_MAX && damage_noticed;
    Ok(if is_good { Answer::Yes } else { Answer::No })
}

fn text(report: &Report) -> String {
    let mut table = TextTable::new(&["scan", "ms"]);
    table.row(["with verification".into(), format!("{:.2}", report.verified_ms)]);
    table.row(["without".into(), format!("{:.2}", report.unverified_ms)]);
    table.row(["only the checksums, from the cache".into(), format!("{:.2}", report.checksums_ms)]);
    format!(
        "{}\n{table}\n{} rows, {} bytes read; verification costs {:.2} % (reach: less than {} %); \
         damage was {}\n",
        report.machine,
        report.rows,
        report.bytes_read,
        report.cost_percent,
        report.reach_percent,
        if report.damage_noticed { "noticed" } else { "missed" },
    )
}

/// What one scan of the whole table took and found.
struct Scan {
    ms: f64,
    rows: u64,
    bytes_read: u64,
    problems: usize,
}

#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
fn scan(recording: &Recording) -> Result<Scan, Failure> {
    let begin = Instant::now();
    let mut scan = recording.scan(&Selection::all(TABLE))?;
    // A part that cannot be read is a problem, which the scan counts.
    scan.by_ref().for_each(drop);
    let ms = begin.elapsed().as_secs_f64() * 1e3;
    let cost = scan.cost();
    Ok(Scan { ms, rows: cost.rows, bytes_read: cost.bytes_read, problems: scan.problems().len() })
}

/// How long it takes to make the checksums of so many octets, in blocks as a recording has them, all
/// of which lie in the processor's cache: what no reader that verifies can go below.
#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
fn checksums(octets: u64) -> f64 {
    const BLOCK: u64 = 16 << 10;
    let block: Vec<u8> = (0..BLOCK).map(|at| at.to_le_bytes()[0]).collect();
    let begin = Instant::now();
    let sums = (0..octets.div_ceil(BLOCK)).map(|_| crc32fast::hash(black_box(&block)));
    black_box(sums.fold(0, |all, sum| all ^ sum));
    begin.elapsed().as_secs_f64() * 1e3
}

/// Changes an octet in the middle of a file of the table.
fn damage(recording: &Path) -> Result<(), Failure> {
    let hours = std::fs::read_dir(recording.join(TABLE))?.collect::<Result<Vec<_>, _>>()?;
    let mut places: Vec<_> = hours.iter().map(std::fs::DirEntry::path).collect();
    while let Some(place) = places.pop() {
        if place.is_dir() {
            for entry in std::fs::read_dir(&place)? {
                places.push(entry?.path());
            }
            continue;
        }
        let mut octets = std::fs::read(&place)?;
        let middle = octets.len() / 2;
        octets[middle] ^= 0x40;
        return Ok(std::fs::write(&place, octets)?);
    }
    Err(Failure::new("the recording has no file to damage"))
}

fn write(directory: &Path, intervals: u64) -> Result<(), Failure> {
    let column = |name, kind, meaning| Column::new(name, kind, meaning, "");
    let columns = vec![
        column("device", ColumnKind::Symbol, Meaning::Label),
        column("in_octets", ColumnKind::U64, Meaning::Counter64),
        column("out_octets", ColumnKind::U64, Meaning::Counter64),
        column("in_packets", ColumnKind::U64, Meaning::Counter64),
        column("load", ColumnKind::F64, Meaning::Gauge),
    ];
    let table = TableSchema::new(TABLE, "", columns);
    let options = StreamOptions { when_full: WhenFull::Wait, ..StreamOptions::COLLECTOR };
    let mut writer = StreamWriter::open(directory, Kind::Measured, "s", vec![table], options)?;
    let devices: Vec<_> = (0..DEVICES).map(|at| writer.symbol(&format!("node{at:03}"))).collect();
    let mut noise = 1_u64;
    for interval in 0..intervals {
        let mut batch = writer.batch(0);
        for (&device, at) in devices.iter().zip(1..) {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            batch.begin_row(BEGIN_NS + interval.cast_signed() * INTERVAL_NS);
            batch.put_symbol(1, device);
            batch.put_u64(2, interval * 1_000_000 * at + (noise >> 44));
            batch.put_u64(3, interval * 700_000 * at + (noise >> 46));
            batch.put_u64(4, interval * 1_000 + (noise >> 56));
            batch.put_f64(5, real(noise >> 54) / 100.0);
        }
        writer.submit(batch);
    }
    writer.close()?;
    Ok(())
}
