//! What a person sees on a terminal while a simulation runs, against what it says at the end.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::path::Path;
use std::process::{Command, Stdio};

use meikyo_units::Nanos;
use serde_json::Value;

use super::example;

/// What takes a line back.
const CLEAR: &str = "\r\u{1b}[K";

/// Runs `meikyo` with its standard error on a terminal; what is written there, and the document on
/// standard output.
fn on_a_terminal(dir: &Path, arguments: &[&str]) -> (String, Value) {
    let document = dir.join("document.json");
    let words: Vec<String> = arguments.iter().map(|word| format!("'{word}'")).collect();
    let meikyo = env!("CARGO_BIN_EXE_meikyo");
    let command = format!("exec '{meikyo}' {} --json > '{}'", words.join(" "), document.display());
    let output = Command::new("script")
        .args(["--quiet", "--return", "--command", &command, "/dev/null"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let written = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{written}");
    (written, serde_json::from_slice(&std::fs::read(document).unwrap()).unwrap())
}

/// A line of progress.
#[derive(Debug)]
struct Told {
    virtual_s: f64,
    /// Millions, to one digit behind the point.
    events: f64,
    efficiency_percent: f64,
    rollbacks: u64,
    ahead: Nanos,
}

/// The lines of progress that were written, of which nothing is left to be seen.
fn told(written: &str) -> Vec<Told> {
    let mut lines: Vec<&str> = written.split(CLEAR).collect();
    let ends = [lines.remove(0), lines.pop().unwrap_or_default()];
    assert_eq!(ends, ["", ""], "{written:?}");
    lines.into_iter().map(parsed).collect()
}

fn parsed(line: &str) -> Told {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [
        "at",
        at,
        events,
        "million",
        "events,",
        rate,
        "million",
        "a",
        "second",
        "efficiency",
        share,
        "%",
        rollbacks,
        "rollbacks",
        ahead,
        "ahead",
    ] = words[..]
    else {
        panic!("`{line}`");
    };
    assert!(rate.parse::<f64>().unwrap() >= 0.0, "`{line}`");
    Told {
        virtual_s: at.parse::<Nanos>().unwrap().as_secs_f64(),
        events: events.parse().unwrap(),
        efficiency_percent: share.parse().unwrap(),
        rollbacks: rollbacks.parse().unwrap(),
        ahead: ahead.parse().unwrap(),
    }
}

/// Runs PHOLD, longer and longer until three lines of progress are told.
fn phold_told(dir: &Path, how: &[&str]) -> (Vec<Told>, Value) {
    let file = dir.join("phold.toml");
    let load = "model = \"phold\"\nlps = 1000\nevents_per_lp = 8\nremote = 0.3\n\
                lookahead = \"100ms\"\nmean = \"1s\"\n";
    std::fs::write(&file, load).unwrap();
    let file = file.display().to_string();
    for seconds in [300, 1_500, 7_500, 37_500] {
        let until = format!("until={seconds}s");
        let (written, report) =
            on_a_terminal(dir, &[&["simulate", &file, "--set", &until], how].concat());
        if written.matches(CLEAR).count() > 3 {
            return (told(&written), report);
        }
    }
    panic!("no progress is told");
}

#[test]
fn progress_leads_to_the_statistics_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    for how in [
        &["--scheduler", "sequential"][..],
        &["--scheduler", "conservative", "--threads", "2"],
        &["--scheduler", "optimistic", "--threads", "2"],
    ] {
        let (lines, report) = phold_told(dir.path(), how);
        let committed = report["events"].as_f64().unwrap() / 1e6;
        let end_s = report["end_ns"].as_str().unwrap().parse::<f64>().unwrap() / 1e9;
        let rollbacks = report["effort"]["rollbacks"].as_u64().unwrap();
        let rises = |of: fn(&Told) -> f64| lines.is_sorted_by(|one, next| of(one) <= of(next));
        assert!(rises(|told| told.virtual_s) && rises(|told| told.events), "{how:?}: {lines:?}");
        assert!(lines.is_sorted_by_key(|told| told.rollbacks), "{how:?}: {lines:?}");
        for told in &lines {
            assert!(told.virtual_s <= end_s && told.rollbacks <= rollbacks, "{how:?}: {told:?}");
            assert!(told.events <= committed + 0.05, "{how:?}: {told:?} of {committed}");
            assert!((0.0..=100.0).contains(&told.efficiency_percent), "{how:?}: {told:?}");
            // 8000 events are always pending, and each takes a second in the mean.
            let expected = told.virtual_s * 8000.0 / 1e6;
            assert!((told.events - expected).abs() < 0.03 * expected + 0.1, "{how:?}: {told:?}");
            if how[1] != "optimistic" {
                assert!(told.efficiency_percent > 99.95 && told.rollbacks == 0, "{told:?}");
            } else {
                assert!(told.ahead > Nanos::ZERO, "{told:?}");
            }
        }
    }
}

#[test]
fn a_sweep_fills_its_bar_run_by_run_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let file = example("simulate-metadata.toml");
    let few = ["--set", "operations=20", "--sweep", "servers=1..7"];
    let (written, swept) = on_a_terminal(dir.path(), &[&["simulate", &file][..], &few].concat());
    assert_eq!(swept["rows"].as_array().unwrap().len(), 7);
    let bars: Vec<&str> = written.strip_suffix(CLEAR).unwrap().split('\r').skip(1).collect();
    // Forty places, of which each run fills its share.
    let expected: Vec<String> = [5, 11, 17, 22, 28, 34, 40]
        .into_iter()
        .zip(1..)
        .map(|(filled, run)| {
            format!("[{}{}] {run} of 7 runs", "#".repeat(filled), " ".repeat(40 - filled))
        })
        .collect();
    assert_eq!(bars, expected);
}

#[test]
fn progress_is_for_terminals_only() {
    let quiet = super::run(&["simulate", &example("simulate-phold.toml"), "--set", "until=300s"]);
    assert!(quiet.status.success());
    assert_eq!(crate::running::text(&quiet), "");
}
