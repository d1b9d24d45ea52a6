//! `meikyo simulate`, `meikyo bench phold` and `meikyo bench metadata` as a person calls them.

mod bad;
mod progress;
mod series;
mod study;

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::running::{meikyo, text};

fn example(name: &str) -> String {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    examples.join(name).display().to_string()
}

fn run(arguments: &[&str]) -> Output {
    meikyo().args(arguments).output().expect("the binary runs")
}

#[track_caller]
fn json(arguments: &[&str]) -> Value {
    let output = run(&[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", text(&output));
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

#[test]
fn the_result_is_the_same_under_every_scheduler() {
    let file = example("simulate-metadata.toml");
    let small = ["simulate", &file, "--set", "servers=3", "--set", "clients=20"];
    let small = [&small[..], &["--set", "operations=30", "--scheduler"]].concat();
    let truth = json(&[&small[..], &["sequential"]].concat());
    assert_eq!(truth["figures"]["operations_total"], 600.0);
    for scheduler in ["conservative", "optimistic", "auto"] {
        for threads in ["1", "2", "4"] {
            let other = json(&[&small[..], &[scheduler, "--threads", threads]].concat());
            for key in ["result_digest", "events", "end_ns", "figures", "statistics", "bottleneck"]
            {
                assert_eq!(other[key], truth[key], "{key}, {scheduler} on {threads}");
            }
        }
    }
    let checked = json(&[&small[..6], &["--set", "operations=30", "--check"]].concat());
    assert_eq!(checked["result_digest"], truth["result_digest"]);
}

#[test]
fn a_sequential_run_is_not_said_to_be_on_several_threads_whatever_was_asked_for() {
    let file = example("simulate-metadata.toml");
    let small = ["simulate", &file, "--set", "operations=20"];
    let how = [&small[..], &["--scheduler", "sequential", "--threads", "2"]].concat();
    let output = run(&how);
    let told = String::from_utf8(output.stdout).unwrap();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert!(told.lines().any(|line| words(line) == ["scheduler", "sequential"]), "{told}");
    assert_eq!(json(&how)["effort"]["threads_used"], 1);
}

/// Customers that come twice as fast as one server serves them: it is busy all the time, not twice.
#[test]
fn an_overloaded_queue_is_called_so_and_times_are_for_people() {
    let file = example("simulate-queue.toml");
    let run_it = |more: &[&str]| {
        let overload = ["--set", "interarrival=1us", "--set", "service=2us"];
        let few = ["simulate", &file, "--set", "customers=40_000"];
        run(&[&few[..], &overload, more].concat())
    };
    let document: Value = serde_json::from_slice(&run_it(&["--json"]).stdout).unwrap();
    assert_eq!(document["figures"]["busy_share_expected"], 1.0);
    assert_eq!(document["figures"]["overloaded_by_factor"], 2.0);
    let shown = String::from_utf8(run_it(&[]).stdout).unwrap();
    assert!(shown.contains("overloaded_by_factor  2\n"), "{shown}");
    // 40,000 services of 2 us in the mean; the seed decides how far from that.
    let end_ns: u64 = document["end_ns"].as_str().unwrap().parse().unwrap();
    let tenths = (end_ns + 50_000) / 100_000;
    let expected = format!(" {}.{} ms", tenths / 10, tenths % 10);
    assert!((780..820).contains(&tenths), "{end_ns}");
    let simulated = shown.lines().find(|line| line.starts_with("simulated ")).unwrap();
    assert!(simulated.ends_with(&expected), "{simulated}");
}

/// More operations than the servers can answer are called so, below the figures and in JSON.
#[test]
fn an_open_loop_above_capacity_is_called_saturated() {
    let file = example("simulate-metadata.toml");
    let dir = tempfile::tempdir().unwrap();
    let open = dir.path().join("open.toml").display().to_string();
    let closed = "load = \"closed\"\nthink = \"0us\"\n";
    let scenario = std::fs::read_to_string(&file).unwrap();
    assert!(scenario.contains(closed), "{scenario}");
    let load = "load = \"open\"\ninterarrival = \"800us\"\n";
    std::fs::write(&open, scenario.replace(closed, load)).unwrap();
    let arguments = ["simulate", &open, "--set", "operations=100"];
    let document = json(&arguments);
    let note = document["notes"][0].as_str().unwrap();
    assert!(note.starts_with("saturated: 110000 operations a second are offered"), "{note}");
    let shown = String::from_utf8(run(&arguments).stdout).unwrap();
    assert!(shown.contains(&format!("note: {note}\n")), "{shown}");
    assert_eq!(
        json(&["simulate", &file, "--set", "operations=30"])["notes"],
        serde_json::json!([])
    );
}

#[test]
fn two_servers_saturate_where_the_paper_saw_it() {
    let file = example("simulate-metadata.toml");
    let sweep = ["--sweep", "clients=44,352", "servers=2"];
    let swept = json(&[&["simulate", &file, "--set", "operations=300"], &sweep[..]].concat());
    let rows = swept["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    let rate = |row: &Value| row["creates_per_s"].as_f64().unwrap();
    // 2 servers, and 33.144 us of each server's sending interface for an answer: 60,343 a second.
    assert!((rate(&rows[1]) / 60_343.0 - 1.0).abs() < 0.005, "{}", rows[1]);
    assert!(rate(&rows[0]) < 58_000.0, "{}", rows[0]);
    let bottleneck = rows[1]["bottleneck"].as_str().unwrap();
    assert!(bottleneck.starts_with("sending interface of server"), "{bottleneck}");
}

#[test]
fn bad_scenarios_say_where_and_what() {
    let dir = tempfile::tempdir().unwrap();
    let wrong = |content: &str, arguments: &[&str]| {
        let file = dir.path().join("scenario.toml");
        std::fs::write(&file, content).unwrap();
        let path = file.display().to_string();
        let output = run(&[&["simulate", &path], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        String::from_utf8(output.stderr).unwrap().replace(&path, "FILE")
    };
    let unit = wrong("model = \"metadata\"\nnet_startup = \"32\"\n", &[]);
    assert!(unit.contains("FILE:2: net_startup: "), "{unit}");
    assert!(unit.contains("`us`"), "{unit}");
    let unknown = wrong("model = \"metadata\"\n\nserver = 2\n", &[]);
    assert!(unknown.contains("FILE:3: server: "), "{unknown}");
    assert!(unknown.contains("servers"), "{unknown}");
    let setting = wrong("model = \"phold\"\n", &["--set", "lps"]);
    assert!(setting.contains("`lps` sets nothing"), "{setting}");
    let sweep = wrong("model = \"phold\"\n", &["--sweep", "lps=9..1"]);
    assert!(sweep.contains("is empty"), "{sweep}");
    let missing = run(&["simulate", "no-such-scenario.toml"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing).contains("cannot read `no-such-scenario.toml`"), "{}", text(&missing));
}

#[test]
fn phold_hashes_follow_the_seed_and_nothing_else() {
    let phold = |seed: &str, scheduler: &str, threads: &str| {
        let load = ["bench", "phold", "--lps", "256", "--events-per-lp", "4", "--remote", "0.25"];
        let how = ["--end", "20", "--seed", seed, "--scheduler", scheduler, "--threads", threads];
        json(&[&load[..], &how].concat())
    };
    let truth = phold("1", "sequential", "1");
    for key in [
        "events_committed",
        "wall_s",
        "cpu_s",
        "events_per_s",
        "cpu_ns_per_event",
        "rollbacks",
        "efficiency",
        "undo_records",
        "threads_used",
        "peak_rss_bytes",
    ] {
        assert!(truth[key].is_number(), "{key}: {truth}");
    }
    assert_eq!(truth["verified"], true);
    for (scheduler, threads) in [("conservative", "2"), ("optimistic", "2"), ("optimistic", "1")] {
        let other = phold("1", scheduler, threads);
        assert_eq!(other["state_hash"], truth["state_hash"], "{scheduler} on {threads}");
        assert_eq!(other["events_committed"], truth["events_committed"]);
    }
    assert_ne!(phold("2", "sequential", "1")["state_hash"], truth["state_hash"]);
}

#[test]
fn figures_have_their_keys_and_lie_between_the_bounds() {
    let dir = tempfile::tempdir().unwrap();
    let svg = dir.path().display().to_string();
    let points = ["--servers", "2", "--clients", "11,88", "--creates", "1000", "--svg", &svg];
    let figure = json(&[&["bench", "metadata", "--figure", "5"][..], &points].concat());
    let rows = figure["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &figure["all_right"]), (2, &true.into()), "{figure}");
    for key in ["figure", "servers", "clients", "startup_ns", "store_ns"] {
        assert!(rows[0][key].is_u64(), "{key}");
    }
    for key in ["creates_per_s", "bound_per_s", "mva_per_s"] {
        assert!(rows[0][key].is_f64(), "{key}");
    }
    let picture = std::fs::read_to_string(dir.path().join("figure5.svg")).unwrap();
    assert!(picture.contains("<svg") && picture.contains("2 servers"), "{picture}");

    let few = ["--servers", "4", "--clients", "64", "--parallel-creates", "5"];
    for (figure, scheduler) in [("9", "optimistic"), ("10", "conservative")] {
        let times = json(&[&["bench", "metadata", "--figure", figure][..], &few].concat());
        let rows = times["rows"].as_array().unwrap();
        assert!(rows.iter().any(|row| row["scheduler"] == scheduler), "{times}");
        for row in rows {
            assert_eq!(row["right"], true, "{row}");
            assert!(row["wall_s"].is_f64() && row["cpu_s"].is_f64() && row["ranks"] == 1, "{row}");
        }
    }
}
