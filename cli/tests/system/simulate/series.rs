//! Series that a run records, read back and compared with what it prints.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::collections::BTreeMap;
use std::path::Path;

use meikyo_units::WallTime;
use serde_json::Value;

use super::{example, json, run};
use crate::running::{instant, text};

#[test]
fn series_become_a_recording_that_is_queried_like_a_measured_one() {
    let dir = tempfile::tempdir().unwrap();
    let recording = dir.path().join("simulated").display().to_string();
    let file = example("simulate-metadata.toml");
    let settings = ["--set", "clients=4", "--set", "operations=25", "--out", &recording];
    let report = json(&[&["simulate", &file][..], &settings].concat());
    assert_eq!(report["figures"]["operations_total"], 100.0);
    let info = std::fs::read_to_string(Path::new(&recording).join("recording.toml")).unwrap();
    assert!(info.contains("kind = \"simulated\""), "{info}");
    let out = dir.path().join("out");
    let to = out.display().to_string();
    let output = run(&["export", &recording, "objects", "--format", "csv", "--out", &to]);
    assert!(output.status.success(), "{}", text(&output));
    let csv = std::fs::read_to_string(out.join("objects.csv")).unwrap();
    let rows: Vec<&str> = csv.lines().skip(1).filter(|row| row.contains("create")).collect();
    assert_eq!(rows.len(), 100, "{csv}");
    for client in 0..4 {
        let of = rows.iter().filter(|row| row.contains(&format!("client {client}")));
        assert_eq!(of.count(), 25, "{csv}");
    }
}

/// What a run of a scenario prints, and the rows of its series.
#[track_caller]
fn recorded(scenario: &str) -> (Value, Vec<Value>) {
    let dir = tempfile::tempdir().unwrap();
    let [file, recording] = ["scenario.toml", "recording"].map(|name| dir.path().join(name));
    std::fs::write(&file, scenario).unwrap();
    let [file, recording] = [file, recording].map(|path| path.display().to_string());
    let report = json(&["simulate", &file, "--out", &recording]);
    let rows = run(&["query", &recording, "objects", "--json"]);
    assert!(rows.status.success(), "{}", text(&rows));
    let rows = String::from_utf8(rows.stdout).unwrap();
    (report, rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect())
}

/// Times in s and values of one series, for each LP.
fn series(rows: &[Value], name: &str) -> BTreeMap<String, Vec<(f64, f64)>> {
    let mut series: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row["object"] == name) {
        assert!(row["integer"].is_null() && row["counter"].is_null(), "{row}");
        let value = (since_start_s(&row["time"]), row["real"].as_f64().unwrap());
        series.entry(row["device"].as_str().unwrap().to_owned()).or_default().push(value);
    }
    series
}

/// A simulated instant as `query` prints it, in s.
fn since_start_s(time: &Value) -> f64 {
    instant(time).since(WallTime::from_nanos(0)).as_secs_f64()
}

#[track_caller]
fn assert_close(value: f64, expected: &Value) {
    let expected = expected.as_f64().unwrap();
    assert!((value / expected - 1.0).abs() < 1e-9, "{value} instead of {expected}");
}

#[test]
fn the_series_of_queues_give_the_figures_that_are_printed() {
    let scenario = "model = \"queue\"\nqueues = 3\nservers = 2\ncustomers = 400\n\
                    interarrival = \"20us\"\nservice = \"36us\"\n";
    let (report, rows) = recorded(scenario);
    let waits: Vec<f64> =
        series(&rows, "wait_us").into_values().flatten().map(|(_, v)| v).collect();
    let statistic = &report["statistics"][0];
    assert_eq!(waits.len(), 1200);
    assert_eq!(statistic["count"], 1200);
    assert_close(waits.iter().sum(), &statistic["sum"]);
    assert_close(waits.iter().copied().fold(0.0, f64::max), &statistic["greatest"]);
    for (name, figure) in [("queued", "queued_mean"), ("busy_share", "busy_share")] {
        let queues = series(&rows, name);
        assert_eq!(queues.keys().collect::<Vec<_>>(), ["queue 0", "queue 1", "queue 2"]);
        // A value holds until the next one; nothing waits and nobody is served before the first.
        let mean = |steps: &Vec<(f64, f64)>| {
            let area: f64 = steps.windows(2).map(|two| (two[1].0 - two[0].0) * two[0].1).sum();
            area / steps.last().unwrap().0
        };
        assert!(queues.values().all(|steps| steps.len() == 800 && steps[799].1 == 0.0));
        assert_close(queues.values().map(mean).sum::<f64>() / 3.0, &report["figures"][figure]);
    }
}

#[test]
fn the_series_of_phold_is_its_events_and_their_rate_is_that_of_the_load() {
    let scenario = "model = \"phold\"\nlps = 64\nevents_per_lp = 8\nremote = 0.3\n\
                    lookahead = \"100ms\"\nmean = \"1s\"\nuntil = \"30s\"\n";
    let (report, rows) = recorded(scenario);
    let spans = series(&rows, "events").remove("holders").unwrap();
    assert_eq!(rows.len(), spans.len());
    let begins: Vec<f64> = spans.iter().map(|(begin, _)| *begin).collect();
    assert_eq!(begins, (0..30).map(f64::from).collect::<Vec<_>>());
    let total: f64 = spans.iter().map(|(_, events)| events).sum();
    assert_close(total, &report["events"]);
    // 512 events are always pending, and each comes back after one span in the mean.
    assert!((total / 30.0 / 512.0 - 1.0).abs() < 0.02, "{total}");
    assert!(spans.iter().all(|(_, events)| (events / 512.0 - 1.0).abs() < 0.25), "{spans:?}");
}

#[test]
fn series_keep_the_fractions_of_their_values() {
    let (report, rows) = recorded("model = \"closed\"\ncustomers = 5\njobs = 40\n");
    let values: Vec<f64> =
        series(&rows, "response_us").into_values().flatten().map(|(_, value)| value).collect();
    assert_eq!(values.len(), 200);
    assert_close(values.iter().sum(), &report["statistics"][0]["sum"]);
    assert_close(
        values.iter().copied().fold(f64::MAX, f64::min),
        &report["statistics"][0]["least"],
    );
}
