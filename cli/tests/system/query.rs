//! `meikyo query` and `meikyo export` on recordings that are made here, and the same recordings
//! read by DuckDB and pandas.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use meikyo_recording::{Batch, Kind, StreamOptions, StreamWriter, WhenFull};
use meikyo_snmp::tables::{self, Table};
use serde_json::Value;

/// 2026-11-21T20:00:00Z, ns since the epoch.
const BEGIN: i64 = 1_795_291_200_000_000_000;
const MS: i64 = 1_000_000;

/// The position of a column.
fn column(table: Table, name: &str) -> usize {
    tables::schema(table).column(name).expect("the table has the column")
}

/// How late the answer to poll `poll` of device `device` is, µs.
fn late_us(device: u64, poll: i64) -> i64 {
    100 + i64::try_from(device).unwrap() * 10 + poll % 7
}

/// The counter of a device that counts 1 kB * its number a ms and refreshes every 3 s.
fn octets(device: u64, poll: i64) -> u64 {
    let ms = poll * 100 / 3_000 * 3_000;
    ms.unsigned_abs() * 1_000 * device
}

/// A minute of three devices at 10 Hz; what is not compacted stays in the log.
pub(crate) fn record(dir: &Path, compact: bool) {
    let options = StreamOptions { compact, when_full: WhenFull::Wait, ..StreamOptions::COLLECTOR };
    let mut writer =
        StreamWriter::open(dir, Kind::Measured, "snmp", tables::schemas(), options).unwrap();
    let devices: Vec<_> = (1..=3).map(|n| writer.symbol(&format!("node{n:03}"))).collect();
    let [eth0, ok, name, periodic, in_octets] =
        ["eth0", "ok", "interfaces", "periodic", "in_octets"].map(|text| writer.symbol(text));
    let mut found: Batch = writer.batch(Table::Freshness.index());
    for device in &devices {
        found.begin_row(BEGIN);
        found.put_symbol(column(Table::Freshness, "device"), *device);
        found.put_symbol(column(Table::Freshness, "table"), name);
        found.put_symbol(column(Table::Freshness, "instance"), eth0);
        found.put_symbol(column(Table::Freshness, "column"), in_octets);
        found.put_symbol(column(Table::Freshness, "class"), periodic);
        found.put_u64(column(Table::Freshness, "period_us"), 3_000_000);
        found.put_i64(column(Table::Freshness, "phase_us"), 0);
    }
    writer.submit(found);
    for poll in 0..600 {
        let mut polls = writer.batch(Table::Polls.index());
        let mut interfaces = writer.batch(Table::Interfaces.index());
        for (device, number) in devices.iter().zip(1_u64..) {
            let time = BEGIN + poll * 100 * MS;
            polls.begin_row(time);
            polls.put_symbol(column(Table::Polls, "device"), *device);
            polls.put_u64(column(Table::Polls, "pdu"), 0);
            polls.put_symbol(column(Table::Polls, "state"), ok);
            polls.put_i64(column(Table::Polls, "received_us"), late_us(number, poll));
            polls.put_u64(column(Table::Polls, "uptime_cs"), 5_000_000 + poll.unsigned_abs() * 10);
            interfaces.begin_row(time);
            interfaces.put_symbol(column(Table::Interfaces, "device"), *device);
            interfaces.put_symbol(column(Table::Interfaces, "interface"), eth0);
            interfaces.put_u64(column(Table::Interfaces, "in_octets"), octets(number, poll));
            interfaces.put_u64(column(Table::Interfaces, "pdu"), 0);
        }
        writer.submit(polls);
        writer.submit(interfaces);
    }
    writer.close().unwrap();
}

fn meikyo(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_meikyo")).args(args).output().unwrap()
}

/// The lines of JSON that a command prints.
fn json(args: &[&str]) -> Vec<Value> {
    let output = meikyo(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A recording in the log, and one in Parquet files.
fn recordings() -> [(tempfile::TempDir, String); 2] {
    [false, true].map(|compact| {
        let dir = tempfile::tempdir().unwrap();
        record(dir.path(), compact);
        let path = dir.path().to_str().unwrap().to_owned();
        (dir, path)
    })
}

#[test]
fn readings_are_printed_as_they_were_written() {
    for (_dir, path) in recordings() {
        let rows = json(&[
            "query",
            &path,
            "interfaces",
            "--device",
            "node[001-002]",
            "--columns",
            "time,device,in_octets",
            "--from",
            "2026-11-21T20:00:30Z",
            "--to",
            "2026-11-21T20:00:31Z",
            "--json",
        ]);
        assert_eq!(rows.len(), 20);
        for row in &rows {
            let number = if row["device"] == "node001" { 1 } else { 2 };
            assert_eq!(row["in_octets"], octets(number, 300), "{row}");
        }
        assert_eq!(rows[0]["time"], "2026-11-21T20:00:30Z");
        assert_eq!(rows[1]["time"], "2026-11-21T20:00:30.1Z");
        let last = json(&["query", &path, "polls", "--device", "*3", "--from", "-1s", "--json"]);
        assert_eq!(last.len(), 11, "relative to the end, which is included");
    }
}

#[test]
fn a_cached_counter_has_its_true_rate_in_every_second() {
    for (_dir, path) in recordings() {
        let rows = json(&[
            "query",
            &path,
            "interfaces",
            "--columns",
            "in_octets",
            "--every",
            "1s",
            "--device",
            "node002",
            "--from",
            "2026-11-21T20:00:06Z",
            "--to",
            "2026-11-21T20:00:50Z",
            "--json",
        ]);
        assert!(rows.len() >= 40, "{}", rows.len());
        for row in rows.iter().take(40) {
            for part in ["min", "mean", "max"] {
                let rate = row[format!("in_octets_per_s_{part}")].as_f64().unwrap();
                assert!((rate / 2e6 - 1.0).abs() < 0.02, "{row}");
            }
        }
        let rates = json(&[
            "query",
            &path,
            "interfaces",
            "--columns",
            "time,in_octets",
            "--rate",
            "--device",
            "node002",
            "--json",
        ]);
        assert_eq!(rates.len(), 600);
        for row in &rates[60..500] {
            let rate = row["in_octets_per_s"].as_f64().unwrap();
            assert!((rate / 2e6 - 1.0).abs() < 0.02, "{row}");
        }
    }
}

#[test]
fn receive_times_are_joined() {
    for (_dir, path) in recordings() {
        for table in ["interfaces", "polls"] {
            let columns = ["--columns", "time,device"];
            let device = ["--device", "node003"];
            let rows = [&["query", &path, table, "--received", "--json"][..], &columns, &device];
            let rows = json(&rows.concat());
            assert_eq!(rows.len(), 600);
            for (row, poll) in rows.iter().zip(0..) {
                let received: jiff::Timestamp = row["received"].as_str().unwrap().parse().unwrap();
                let due = BEGIN + poll * 100 * MS;
                assert_eq!(received.as_nanosecond(), i128::from(due + late_us(3, poll) * 1_000));
            }
        }
    }
}

#[test]
fn what_cannot_be_answered_says_what_there_is() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path(), true);
    let path = dir.path().to_str().unwrap();
    for (args, expected) in [
        (vec!["query", path, "interface"], "has no table `interface`; it has"),
        (vec!["query", path, "polls", "--columns", "rtt"], "has no column `rtt`; it has"),
        (vec!["query", path, "polls", "--from", "yesterday"], "`yesterday` is not a time"),
        (vec!["query", "/nowhere"], "there is no directory `/nowhere`"),
    ] {
        let output = meikyo(&args);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains(expected), "{args:?}: {text}");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
    std::fs::write(dir.path().join("recording.toml"), "format = 99\n").unwrap();
    let output = meikyo(&["query", path, "load"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("format version 99"));
}

#[test]
fn devices_that_the_recording_does_not_have_are_refused_with_those_that_it_has() {
    for (_dir, path) in recordings() {
        let out = tempfile::tempdir().unwrap();
        let out = out.path().join("csv").display().to_string();
        for verb in [
            &["query", &path, "polls"][..],
            &["export", &path, "--format", "csv", "--out", &out],
            &["top", &path, "--once"],
        ] {
            for (list, unknown) in
                [("nodexx", "nodexx"), ("node001,node[003-005]", "node004"), ("sw*", "sw*")]
            {
                let output = meikyo(&[verb, &["--device", list]].concat());
                let told = String::from_utf8_lossy(&output.stderr).into_owned();
                assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{told}");
                let expected = format!(
                    "error: `{path}` has no device `{unknown}`\nhint: it has node[001-003]\n"
                );
                assert_eq!(told, expected, "{verb:?}");
            }
        }
        assert!(!Path::new(&out).exists(), "nothing is written for them");
        assert_eq!(json(&["query", &path, "polls", "--device", "*3", "--json"]).len(), 600);
    }
}

#[test]
fn a_range_that_ends_before_it_begins_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path(), false);
    let path = dir.path().to_str().unwrap();
    for (from, to) in [("-1s", "-5s"), ("-1s", "-1s"), ("2026-11-22", "2026-11-21")] {
        let output = meikyo(&["query", path, "polls", "--from", from, "--to", to]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.starts_with("error: `--from` (") && told.contains("is not before"), "{told}");
    }
    let output = meikyo(&["query", path, "polls", "--from", "-1m"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("did you mean `1min` or `1ms`?"), "{told}");
    let rows = json(&["query", path, "polls", "--from", "-5s", "--to", "-1s", "--json"]);
    assert_eq!(rows.len(), 3 * 40);
}

#[test]
fn exported_files_hold_the_rows_with_their_receive_times() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path(), true);
    let (path, out) = (dir.path().to_str().unwrap(), dir.path().join("csv"));
    let args = ["export", path, "interfaces", "--format", "csv", "--out", out.to_str().unwrap()];
    assert!(meikyo(&args).status.success());
    let text = std::fs::read_to_string(out.join("interfaces.csv")).unwrap();
    assert_eq!(text.lines().count(), 1 + 3 * 600);
    assert!(text.starts_with("time,received,device,interface,in_octets,"), "{}", &text[..80]);
    let again = meikyo(&args);
    assert_eq!(again.status.code(), Some(2), "nothing is overwritten");
}

/// The interpreter that has what `examples/requirements.txt` pins, if there is one.
pub(crate) fn python() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let named = std::env::var_os("MEIKYO_PYTHON").map(PathBuf::from);
    let interpreter = named.unwrap_or_else(|| root.join("target/venv/bin/python"));
    let usable = |interpreter: &PathBuf| {
        let output =
            Command::new(interpreter).args(["-c", "import duckdb, pandas, pyarrow"]).output();
        output.is_ok_and(|output| output.status.success())
    };
    Some(interpreter).filter(usable)
}

#[test]
fn duckdb_and_pandas_see_what_our_reader_sees() {
    let Some(python) = python() else {
        meikyo_testing::lacking(
            "no Python with duckdb, pandas and pyarrow (MEIKYO_PYTHON, target/venv)",
        );
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    record(dir.path(), true);
    let path = dir.path().to_str().unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/open_recording.py");
    let shown = |arguments: &[&str]| {
        let output = Command::new(&python).arg(&example).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    // For people: a head, two lines for each of the three devices, and where to find the rest.
    assert_eq!(shown(&[path]).lines().count(), 8, "{}", shown(&[path]));
    let text = shown(&["--json", path]);
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 6, "three devices from each: {text}");
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    let (mean, real) = (|sum: i64| sum as f64 / 600.0, |value: u64| value as f64);
    let ours = json(&["query", path, "interfaces", "--columns", "device,in_octets", "--json"]);
    for row in &rows {
        let device = &row["device"];
        let number: u64 = device.as_str().unwrap()[4..].parse().unwrap();
        let of_device = ours.iter().filter(|row| row["device"] == *device);
        let readings: Vec<_> = of_device.map(|row| row["in_octets"].as_u64().unwrap()).collect();
        assert_eq!(row["readings"].as_u64(), Some(readings.len() as u64));
        let greatest = row["greatest"].as_f64().unwrap();
        assert!((greatest - real(*readings.iter().max().unwrap())).abs() < 0.5);
        let delays = (0..600).map(|poll| late_us(number, poll)).sum::<i64>();
        assert!((row["delay_us_mean"].as_f64().unwrap() - mean(delays)).abs() < 1e-6);
    }
}
