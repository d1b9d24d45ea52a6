//! What goes wrong while it is measured is told at once and written down: a disk that is full,
//! agents that are damaged or gone.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use meikyo_units::WallTime;
use serde_json::Value;

use crate::running::{Farm, PATIENCE, Process, instant, interrupt, is_ok, meikyo, rows, text};

/// A small file system over a directory, in a mount namespace of the command's own.
fn on_a_small_disk(directory: &Path, command: &Command) -> Command {
    let mut confined = Command::new("unshare");
    let script = "mount -t tmpfs -o size=4m none \"$0\" && exec \"$@\"";
    confined.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]).arg(directory);
    confined.arg(command.get_program()).args(command.get_args());
    confined
}

/// Rows of `events` of one kind, once there are some.
fn wait_for_events(recording: &Path, kind: &str) -> Vec<Value> {
    let deadline = WallTime::now() + PATIENCE;
    loop {
        let mut events = rows(recording, "events");
        events.retain(|row| row["event"] == kind);
        if !events.is_empty() {
            return events;
        }
        assert!(WallTime::now() < deadline, "there was never `{kind}`");
    }
}

#[test]
fn a_full_disk_is_told_at_once_and_stands_in_the_events_when_there_is_room_again() {
    let farm = Farm::start(4);
    fs::create_dir(farm.recording()).unwrap();
    let probe = on_a_small_disk(&farm.recording(), &Command::new("true")).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        return meikyo_testing::skipped("no mount namespace of its own can be had");
    }
    let measure = farm.measure(&["--no-compact"]);
    let mut confined = on_a_small_disk(&farm.recording(), &measure);
    let mut measure = Process(confined.stderr(Stdio::piped()).spawn().unwrap());
    let mut told = BufReader::new(measure.0.stderr.take().unwrap()).lines().map(Result::unwrap);
    // The recording as the process sees it.
    let root = PathBuf::from(format!("/proc/{}/root", measure.0.id()));
    let recording = root.join(farm.recording().strip_prefix("/").unwrap());
    let deadline = WallTime::now() + PATIENCE;
    while !rows(&recording, "polls").iter().any(is_ok) {
        assert!(WallTime::now() < deadline, "nothing was ever recorded");
    }
    let filled_from = WallTime::now();
    let filler = recording.join("filler");
    let mut file = fs::File::create(&filler).unwrap();
    while file.write(&[0; 4096]).is_ok() {}
    let refused = told.find(|line| line.contains("cannot write")).unwrap();
    let filled_to = WallTime::now();
    let seen = farm.recording().display().to_string();
    for part in [&seen, "No space left on device", "make room"] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    fs::remove_file(&filler).unwrap();
    drop(file);
    assert!(told.any(|line| line.contains("rows are kept again")));
    let events = wait_for_events(&recording, "disk_refused");
    let at = instant(&events[0]["time"]);
    assert!(at >= filled_from && at <= filled_to, "{at:?} is not when it was refused");
    wait_for_events(&recording, "resumed");
    interrupt(&measure.0);
    assert_eq!(measure.0.wait().unwrap().code(), Some(1), "not every reading is kept");
}

#[test]
fn damaged_answers_are_told_as_such_by_measure_and_probe() {
    let farm = Farm::start_with(2, &["--fault", "truncate=100%"]);
    let output = farm.measure(&["--for", "3s"]).output().unwrap();
    let told = text(&output);
    for name in ["node001", "node002"] {
        let mut lines = told.lines().filter(|line| line.starts_with(&format!("`{name}` (line ")));
        let line = lines.next().unwrap();
        assert!(line.contains("cannot be read") && line.contains("cuts or changes"), "{told}");
        assert_eq!(lines.next(), None, "one line a device: {told}");
    }
    assert!(!told.contains("host is down"), "{told}");
    let summary = String::from_utf8_lossy(&output.stdout);
    assert!(summary.contains("no valid answer at the end from node001, node002"), "{summary}");
    for device in [&["node001"][..], &[]] {
        let mut probe = meikyo();
        probe.arg("probe").args(device).arg("--cluster").arg(farm.cluster());
        let output = probe.output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(printed.contains("could be read"), "{printed}");
        assert!(printed.contains("cuts or changes"), "{printed}");
        assert!(!printed.contains("host is down"), "{printed}");
    }
}

#[test]
fn of_many_silent_devices_ten_are_told_and_the_number_of_the_others() {
    let mut farm = Farm::start(60);
    farm.end();
    let output = farm.measure(&["--for", "6s"]).output().unwrap();
    let told = text(&output);
    let lines = told.lines().filter(|line| line.starts_with("`node")).count();
    assert!((10..=20).contains(&lines), "{told}");
    assert!(told.lines().count() < 30, "{told}");
    let others = told.lines().any(|line| line.contains(" more fail and "));
    assert!(others, "{told}");
    let summary = String::from_utf8_lossy(&output.stdout);
    assert!(summary.contains("node010 and 50 others"), "{summary}");
    let mut devices: Vec<String> = farm
        .rows("events")
        .iter()
        .filter(|row| row["event"] == "failing")
        .map(|row| row["device"].to_string())
        .collect();
    devices.sort_unstable();
    devices.dedup();
    assert_eq!(devices.len(), 60, "each stands in the events");
}

/// Removes a directory that somebody writes to.
fn remove(directory: &Path) {
    let deadline = WallTime::now() + PATIENCE;
    while fs::remove_dir_all(directory).is_err() {
        assert!(WallTime::now() < deadline, "the directory cannot be removed");
    }
}

/// A measurement that writes, and what it says.
fn measuring(farm: &Farm, arguments: &[&str]) -> (Process, impl Iterator<Item = String>) {
    let mut measure = farm.measure(arguments);
    let mut measure = Process(measure.stderr(Stdio::piped()).spawn().unwrap());
    let told = BufReader::new(measure.0.stderr.take().unwrap()).lines().map(Result::unwrap);
    farm.wait_for("polls", 40, is_ok);
    (measure, told)
}

#[test]
fn a_recording_that_is_removed_is_told_and_measuring_goes_on_in_a_new_one() {
    let farm = Farm::start(4);
    let (mut measure, mut told) = measuring(&farm, &[]);
    remove(&farm.recording());
    let line = told.find(|line| line.contains("was removed while it was written")).unwrap();
    for part in [&farm.recording().display().to_string(), "rows went with it", "--if-removed"] {
        assert!(line.contains(part), "{part}: {line}");
    }
    assert!(told.any(|line| line.contains("a new recording was begun at")));
    assert!(told.any(|line| line.contains("rows are kept again")));
    farm.wait_for("polls", 40, is_ok);
    wait_for_events(&farm.recording(), "removed");
    // Also what lies beside the rows is there again.
    let mark = meikyo().args(["mark", "again", "--recording"]).arg(farm.recording()).output();
    assert!(mark.unwrap().status.success());
    assert!(farm.recording().join("devices.json").exists());
    interrupt(&measure.0);
    assert_eq!(measure.0.wait().unwrap().code(), Some(1), "not every reading is kept");
    let rest: Vec<_> = told.collect();
    assert!(rest.iter().all(|line| !line.contains("stay in the log")), "{rest:?}");
}

#[test]
fn a_measurement_that_is_to_end_without_its_recording_ends() {
    let farm = Farm::start(4);
    let (mut measure, mut told) = measuring(&farm, &["--if-removed", "end"]);
    remove(&farm.recording());
    assert!(told.any(|line| line.contains("was removed while it was written")));
    assert_eq!(measure.0.wait().unwrap().code(), Some(1), "not every reading is kept");
    assert!(!farm.recording().exists());
}
