//! Rates of counters that an agent's cache holds still, from the agent to `meikyo query`.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::path::Path;

use serde_json::Value;

use crate::running::{meikyo, text};

/// How often an agent of the farm reads its counters, and the same in seconds.
const CACHES: [(&str, f64); 2] = [("3s", 3.0), ("1s", 1.0)];
/// Polls after which the period is surely known: five updates of 3 s.
const KNOWN_AFTER: usize = 150;

fn out_octets(recording: &Path, column: &str, more: &[&str]) -> Vec<Option<f64>> {
    let mut query = meikyo();
    query.arg("query").arg(recording).args(["interfaces", "--columns", "out_octets", "--json"]);
    let output = query.args(more).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let lines = String::from_utf8(output.stdout).unwrap();
    let value = |line| serde_json::from_str::<Value>(line).unwrap()[column].as_f64();
    lines.lines().map(value).collect()
}

/// Between two updates the true rate is what was counted between the instants at which the agent read
/// its counter: its cache's time apart, whenever they were polled.
#[test]
fn behind_a_cache_the_rate_at_every_poll_is_that_of_the_update_it_lies_in() {
    for (cache, seconds) in CACHES {
        let directory = tempfile::tempdir().unwrap();
        let recording = directory.path().join("recording");
        let mut agents = meikyo();
        agents.args(["farm", "--count", "1", "--virtual", "60s", "--cache", cache, "--out"]);
        let output = agents.arg(&recording).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));

        let counts = out_octets(&recording, "out_octets", &[]);
        let rates = out_octets(&recording, "out_octets_per_s", &["--rate"]);
        assert_eq!(counts.len(), rates.len());
        let updates: Vec<usize> =
            (KNOWN_AFTER..counts.len()).filter(|&at| counts[at] != counts[at - 1]).collect();
        assert!(updates.len() > 10, "{cache}: {} updates", updates.len());
        for pair in updates.windows(2) {
            let [from, to] = [pair[0], pair[1]];
            let true_rate = (counts[to].unwrap() - counts[from].unwrap()) / seconds;
            // In the polls at its ends two updates meet.
            for (at, rate) in (from + 1..).zip(&rates[from + 1..to - 1]) {
                let rate = rate.unwrap();
                let off = (rate / true_rate - 1.0).abs();
                assert!(off < 0.02, "{cache}, poll {at}: {rate}, truly {true_rate}");
            }
        }
    }
}
