//! `kill -9` at random moments, recovery and compaction among them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use meikyo_recording::{Kind, StreamOptions, StreamWriter, WhenFull};
use meikyo_units::Nanos;

use super::rows::{self, Found, read};

const KILLS: u64 = 200;
/// Kills of one recording, before it is finished and a new one begun.
const KILLS_OF_ONE: u64 = 10;
/// Reports after which a process is killed at the latest.
const REPORTS_MAX: u64 = 40;
/// Batches that a process has under way at once, so that it is not far ahead of its reports.
const AHEAD_MAX: usize = 8;

/// Small segments, so that there is always one that is being compacted.
fn options() -> StreamOptions {
    StreamOptions {
        segment_rows: 150,
        sync_every: Nanos::from_millis(2),
        when_full: WhenFull::Wait,
        ..StreamOptions::COLLECTOR
    }
}

/// Writes rows, some of them packed, and prints `kept TABLE-A-ROWS TABLE-B-ROWS` as marks come back
/// and `synced` with the same as the watermark passes them, for ever.
pub(crate) fn write_until_killed(dir: &Path) {
    let run: u64 = std::env::var("MEIKYO_CRASH_RUN").unwrap().parse().unwrap();
    let mut writer =
        StreamWriter::open(dir, Kind::Measured, "s", rows::tables(), options()).unwrap();
    let mut out = std::io::stdout().lock();
    writeln!(out, "\ntorn {}", writer.counters().torn_bytes_cut).unwrap();
    let (mut a, mut b) = (0, 0);
    let mut marks = std::collections::VecDeque::new();
    let mut unsynced = std::collections::VecDeque::new();
    for batch in 0_u64.. {
        let rows = 1 + batch * 37 % 20;
        let ways = [rows::submit, rows::submit_packed];
        ways[usize::from(batch % 4 == 1)](&mut writer, 0, run, a..a + rows);
        a += rows;
        if batch % 3 == 0 {
            ways[usize::from(batch % 2 == 0)](&mut writer, 1, run, b..b + rows / 2);
            b += rows / 2;
        }
        writer.mark(batch);
        marks.push_back((batch, a, b));
        while marks.len() >= AHEAD_MAX {
            for kept in writer.take_kept() {
                assert_eq!(kept.lost_rows, 0);
                let (token, a, b) = marks.pop_front().unwrap();
                assert_eq!(token, kept.token);
                writeln!(out, "kept {a} {b}").unwrap();
                out.flush().unwrap();
                unsynced.push_back((kept.sequence, a, b));
            }
            let synced = writer.synced();
            assert!(!synced.is_stopped);
            while let Some((_, a, b)) = unsynced.pop_front_if(|mark| mark.0 <= synced.sequence) {
                writeln!(out, "synced {a} {b}").unwrap();
            }
            std::thread::yield_now();
        }
    }
}

/// What a killed process had said.
#[derive(Debug, Default)]
struct Said {
    torn_bytes: Option<u64>,
    kept: (u64, u64),
    synced: (u64, u64),
}

/// Starts a writer, and kills it after some of its reports.
fn start_and_kill(dir: &Path, run: u64, reports: u64) -> Said {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "started_process", "--nocapture", "--test-threads=1"])
        .env("MEIKYO_CRASH_ROLE", "write")
        .env("MEIKYO_CRASH_DIR", dir)
        .env("MEIKYO_CRASH_RUN", run.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = Said::default();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let hear = |line: String, said: &mut Said| {
        let mut words = line.split(' ');
        match (words.next(), words.next(), words.next()) {
            (Some("torn"), Some(bytes), None) => said.torn_bytes = bytes.parse().ok(),
            (Some("kept"), Some(a), Some(b)) => {
                said.kept = (a.parse().unwrap(), b.parse().unwrap());
                return true;
            }
            (Some("synced"), Some(a), Some(b)) => {
                said.synced = (a.parse().unwrap(), b.parse().unwrap());
            }
            _ => {}
        }
        false
    };
    let mut heard = 0;
    while heard < reports {
        let line = lines.next().expect("it writes until it is killed").unwrap();
        heard += u64::from(hear(line, &mut said));
    }
    process.kill().unwrap();
    process.wait().unwrap();
    // What it said before it was killed counts; a line that was cut has no end and is no report.
    for line in lines.map_while(Result::ok).collect::<Vec<_>>() {
        hear(line, &mut said);
    }
    said
}

/// In memory where that is possible: what a kill leaves is the same, and 200 processes that sync
/// wait minutes for a disk.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn seed() -> u64 {
    std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_261_121)
}

/// xorshift64*: the reports after which each process is killed follow from the seed.
fn next(random: &mut u64) -> u64 {
    *random ^= *random >> 12;
    *random ^= *random << 25;
    *random ^= *random >> 27;
    random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
}

/// Whether a compaction was under way when the process was killed: it left files that are hidden by
/// their segment, or not renamed yet.
fn compaction_was_cut(dir: &Path) -> bool {
    fn has_unfinished(dir: &Path) -> bool {
        std::fs::read_dir(dir).unwrap().any(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let unfinished = name.starts_with('.') && name.ends_with(".parquet.tmp");
            unfinished || entry.file_type().unwrap().is_dir() && has_unfinished(&entry.path())
        })
    }
    has_unfinished(dir) || !meikyo_recording::files::list(dir).unwrap().hidden.is_empty()
}

fn compare(found: &mut Found, run: u64, said: &Said, place: &str) {
    let (a, b) = (found.prefix(0, run), found.prefix(1, run));
    let (kept_a, kept_b) = said.kept;
    assert!(a >= kept_a && b >= kept_b, "{place}: {a}, {b} rows read, {kept_a}, {kept_b} kept");
    assert!(said.synced <= said.kept, "{place}: {said:?}");
    assert_eq!(found.damaged_bytes, 0, "{place}");
}

#[test]
fn what_was_reported_kept_is_read_after_kills_at_200_moments() {
    let seed = seed();
    let mut random = seed | 1;
    let (mut torn_tails, mut cut_compactions, mut acknowledged) = (0, 0, 0);
    for recording in 0..KILLS / KILLS_OF_ONE {
        let dir = scratch();
        let mut torn_bytes = 0;
        let mut lengths = Vec::new();
        for run in 0..KILLS_OF_ONE {
            let place = format!("SEED={seed}, recording {recording}, run {run}");
            // Every fifth is killed before it reports anything: while it recovers.
            let reports = if next(&mut random).is_multiple_of(5) {
                0
            } else {
                next(&mut random) % REPORTS_MAX
            };
            let said = start_and_kill(dir.path(), run, reports);
            if let Some(cut) = said.torn_bytes {
                assert_eq!(cut, torn_bytes, "{place}: torn bytes cut by the next writer");
            }
            if !dir.path().join("log").exists() {
                lengths.push((0, 0));
                continue;
            }
            cut_compactions += u64::from(compaction_was_cut(dir.path()));
            let mut found = read(dir.path());
            torn_bytes = found.torn_bytes;
            torn_tails += u64::from(torn_bytes > 0);
            compare(&mut found, run, &said, &place);
            acknowledged += said.synced.0;
            lengths.push((found.prefix(0, run), found.prefix(1, run)));
            for (earlier, &(a, b)) in lengths.iter().enumerate() {
                let run = earlier as u64;
                assert_eq!((found.prefix(0, run), found.prefix(1, run)), (a, b), "{place}");
            }
        }
        finish(dir.path(), &lengths, seed);
    }
    // A kill hardly ever tears a write; what is done then has a test of its own in the library.
    assert!(cut_compactions > 0, "SEED={seed}: no kill fell into a compaction");
    assert!(acknowledged > 0, "SEED={seed}: the watermark never moved");
    let mut out = std::io::stdout().lock();
    let text = format!("{cut_compactions} in a compaction, {torn_tails} left a torn tail");
    writeln!(out, "SEED={seed}: {KILLS} kills, {text}").unwrap();
}

/// Closes the recording: everything is then in Parquet files, and still the same.
fn finish(dir: &Path, lengths: &[(u64, u64)], seed: u64) {
    let writer = StreamWriter::open(dir, Kind::Measured, "s", rows::tables(), options()).unwrap();
    writer.close().unwrap();
    assert!(meikyo_recording::files::list(dir).unwrap().segments.is_empty());
    let mut found = read(dir);
    for (run, &(a, b)) in lengths.iter().enumerate() {
        let run = run as u64;
        assert_eq!((found.prefix(0, run), found.prefix(1, run)), (a, b), "SEED={seed}, closed");
    }
    let report = meikyo_recording::check::check(dir).unwrap();
    assert_eq!(report.damage, []);
    assert_eq!(report.rows, lengths.iter().map(|(a, b)| a + b).sum::<u64>());
}
