//! `meikyo measure` as a process: simulated agents in another one, marks, a file that changes while it
//! runs, a kill, and what a second collector is told.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use meikyo_units::{Nanos, WallTime};
use serde_json::Value;

use crate::query::record;
use crate::running::{Farm, Process, instant, interrupt, is_ok, meikyo, text};

#[test]
fn every_device_is_measured_and_the_summary_counts_it() {
    let farm = Farm::start(4);
    let output = farm.measure(&["--for", "3s", "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["devices"], 4);
    assert_eq!(summary["rows_dropped"], 0);
    let polls = farm.rows("polls");
    let ok = polls.iter().filter(|row| is_ok(row)).count();
    assert_eq!(summary["ok"], ok);
    assert!(ok > 4 * 20, "{ok} polls");
    assert!(farm.rows("interfaces").len() > 4 * 20);
}

#[test]
fn a_mark_stands_among_the_events_and_needs_a_measurement() {
    let farm = Farm::start(1);
    fs::create_dir(farm.recording()).unwrap();
    let mark = |text: &str| {
        meikyo().args(["mark", text, "--recording"]).arg(farm.recording()).output().unwrap()
    };
    let nobody = mark("too early");
    assert_eq!(nobody.status.code(), Some(2));
    assert!(text(&nobody).contains("no measurement is writing into"), "{}", text(&nobody));
    let mut measure = Process(farm.measure(&[]).spawn().unwrap());
    farm.wait_for("polls", 1, is_ok);
    let marked = mark("rto_min 20ms");
    assert!(marked.status.success(), "{}", text(&marked));
    let done = format!("marked in {}: rto_min 20ms\n", farm.recording().display());
    assert_eq!(String::from_utf8_lossy(&marked.stdout), done);
    for nothing in ["", " \t"] {
        let refused = mark(nothing);
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused).contains("hint: meikyo mark"), "{}", text(&refused));
    }
    let second = farm.measure(&["--for", "1s"]).output().unwrap();
    assert_eq!(second.status.code(), Some(2));
    assert!(text(&second).contains("hint: another `meikyo measure` writes"), "{}", text(&second));
    farm.wait_for("events", 1, |row| row["event"] == "mark" && row["text"] == "rto_min 20ms");
    interrupt(&measure.0);
    assert!(measure.0.wait().unwrap().success());
}

#[test]
fn a_changed_file_is_taken_over_and_no_interval_of_the_others_is_missed() {
    let farm = Farm::start(3);
    let all = fs::read_to_string(farm.cluster()).unwrap();
    let one = all.replace("node[001-003]", "node001").replace("127.1.0.[1-3]", "127.1.0.1");
    assert_ne!(one, all);
    fs::write(farm.cluster(), one).unwrap();
    let mut measure = Process(farm.measure(&[]).spawn().unwrap());
    farm.wait_for("polls", 10, is_ok);
    fs::write(farm.cluster(), &all).unwrap();
    farm.wait_for("polls", 5, |row| is_ok(row) && row["device"] == "node003");
    fs::write(farm.cluster(), "name = 3\n").unwrap();
    farm.wait_for("events", 1, |row| row["event"] == "reload_refused");
    let seen = farm.rows("polls").len();
    farm.wait_for("polls", seen + 10, |_| true);
    interrupt(&measure.0);
    assert!(measure.0.wait().unwrap().success());
    let times: Vec<WallTime> = farm
        .rows("polls")
        .iter()
        .filter(|row| row["device"] == "node001")
        .map(|row| instant(&row["time"]))
        .collect();
    for pair in times.windows(2) {
        assert_eq!(pair[1].since(pair[0]), Nanos::from_millis(100), "a gap after {pair:?}");
    }
}

#[test]
fn what_was_kept_survives_a_kill_and_is_continued() {
    let farm = Farm::start(2);
    let mut first = farm.measure(&[]).spawn().unwrap();
    let kept = farm.wait_for("polls", 20, is_ok).len();
    let second = farm.measure(&["--for", "1s"]).output().unwrap();
    assert_eq!(second.status.code(), Some(2), "two collectors on one stream");
    first.kill().unwrap();
    first.wait().unwrap();
    let after = farm.rows("polls");
    assert!(after.len() >= kept);
    let output = farm.measure(&["--for", "2s"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let continued = farm.rows("polls");
    assert!(continued.len() > after.len());
    let unique: std::collections::BTreeSet<(String, String)> =
        continued.iter().map(|row| (row["device"].to_string(), row["time"].to_string())).collect();
    assert_eq!(unique.len(), continued.len(), "no row is there twice");
}

/// What a collector that was killed has left is compacted when the next one starts, and what is too old
/// goes then.
#[test]
fn what_is_older_than_keep_goes_while_the_collector_runs_and_is_told() {
    let farm = Farm::start(1);
    record(&farm.recording(), true);
    let is_old = |row: &Value| row["device"] == "node002";
    let old = farm.rows("polls").into_iter().filter(is_old).count();
    assert_eq!(old, 600);
    let mut killed = farm.measure(&[]).spawn().unwrap();
    farm.wait_for("polls", 3 * 600 + 5, |_| true);
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(farm.rows("polls").into_iter().filter(is_old).count(), old, "all is kept");

    let all = fs::read_to_string(farm.cluster()).unwrap();
    fs::write(farm.cluster(), format!("recording = {{ keep = \"1h\" }}\n{all}")).unwrap();
    let mut measure = Process(farm.measure(&["--json"]).stdout(Stdio::piped()).spawn().unwrap());
    let told = farm.wait_for("events", 1, |row| row["event"] == "deleted");
    // 600 polls of three devices in two tables, and a finding each.
    let text = told[0]["text"].as_str().unwrap();
    assert!(text.starts_with("3603 rows older than 1h were deleted, "), "{text}");
    let hour = "of the hour 2026-11-21T20:00:00Z";
    for of_table in ["`freshness` 3", "`interfaces` 1800", "`polls` 1800"] {
        assert!(text.contains(&format!("{of_table} {hour}")), "{text}");
    }
    assert_eq!(farm.rows("polls").into_iter().filter(is_old).count(), 0);
    assert!(farm.rows("polls").iter().any(is_ok), "what is young stays");
    interrupt(&measure.0);
    assert!(measure.0.wait().unwrap().success());
}

#[test]
fn a_silent_agent_and_an_unreadable_secret_are_told() {
    let farm = Farm::start(1);
    fs::write(
        farm.cluster(),
        "name = \"dark\"\nmeasure = [\"load\"]\n[snmp]\nversion = \"2c\"\n\
         community = \"env:MEIKYO_TEST_NO_SUCH\"\n[[hosts]]\nname = \"a\"\naddress = \"127.0.0.9:9\"\n",
    )
    .unwrap();
    let refused = farm.measure(&["--for", "1s"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let told = text(&refused);
    assert!(told.contains("`a` (line 6 of") && told.contains("`MEIKYO_TEST_NO_SUCH`"), "{told}");
    let mut silent = farm.measure(&["--for", "6s", "--json"]);
    let output = silent.env("MEIKYO_TEST_NO_SUCH", "public").output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let told = text(&output);
    let lines: Vec<&str> = told.lines().filter(|line| line.starts_with("`a` (line 6 of")).collect();
    assert_eq!(lines.len(), 1, "one line a device: {told}");
    for part in ["no answer from 127.0.0.9:9", "`env:MEIKYO_TEST_NO_SUCH`", "config snmpd"] {
        assert!(lines[0].contains(part), "{part}: {told}");
    }
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["failing"], serde_json::json!(["a"]));
    let begun = farm.rows("events").into_iter().filter(|row| row["event"] == "failing");
    let devices: Vec<Value> = begun.map(|row| row["device"].clone()).collect();
    assert_eq!(devices, ["a"]);
    let states: std::collections::BTreeSet<String> =
        farm.rows("polls").iter().map(|row| row["state"].to_string()).collect();
    assert_eq!(states, ["\"missed\"", "\"skipped\""].map(str::to_owned).into());
}

#[test]
fn a_file_with_a_typo_is_refused_with_line_and_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let file: &Path = &directory.path().join("cluster.toml");
    fs::write(file, "name = \"x\"\nmesure = [\"load\"]\n").unwrap();
    let output = meikyo().args(["measure", "--cluster"]).arg(file).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let told = text(&output);
    assert!(told.contains(":2") && told.contains("`measure`"), "{told}");
    assert!(told.contains("hint: meikyo config check"), "{told}");
}
