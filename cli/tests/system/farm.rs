//! `meikyo farm`: on a network of its own, and under virtual time.

use std::process::Command;

use serde_json::Value;

use crate::running::{meikyo, text};

/// Frames of 1,280 octets, and an answer of a hundred objects.
const SCRIPT: &str = r#"
ip link set dev lo mtu 1280 up || exit 77
"$0" farm --count 1 --port 1161 &
for attempt in $(seq 100); do
    snmpget -v2c -c public -t 0.2 -r 0 127.1.0.1:1161 1.3.6.1.2.1.1.3.0 >&2 && break
done
snmpbulkget -v2c -c public -Cn0 -Cr100 -On 127.1.0.1:1161 1.3.6.1.2.1
kill $!
"#;

#[test]
fn an_answer_that_is_longer_than_the_frames_of_its_way_comes_in_parts() {
    let installed = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    if !installed("snmpbulkget") || !installed("ip") {
        return meikyo_testing::lacking(
            "snmpbulkget or ip is not installed (Debian packages snmp, iproute2)",
        );
    }
    let mut apart = Command::new("unshare");
    apart.args(["--user", "--map-root-user", "--net", "sh", "-c", SCRIPT]);
    let output = apart.arg(meikyo().get_program()).output().unwrap();
    if matches!(output.status.code(), Some(1 | 77)) && output.stdout.is_empty() {
        return meikyo_testing::skipped("no network namespace of its own can be had");
    }
    let answered = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(answered.lines().count(), 100, "{}", text(&output));
    assert!(answered.len() > 2_000);
}

#[test]
fn a_recording_of_simulated_agents_says_so_wherever_its_kind_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let recording = dir.path().join("day").to_str().unwrap().to_owned();
    let printed = |arguments: &[&str]| {
        let output = meikyo().args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", text(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let kind = |document: &str| -> Value {
        serde_json::from_str::<Value>(document).unwrap()["kind"].clone()
    };
    printed(&["farm", "--count", "1", "--virtual", "10s", "--out", &recording]);
    let identity = std::fs::read_to_string(dir.path().join("day/recording.toml")).unwrap();
    assert!(identity.contains("kind = \"simulated\""), "{identity}");
    let info = printed(&["recording", "info", &recording]);
    assert!(info.lines().next().unwrap().contains(": simulated, format"), "{info}");
    assert_eq!(kind(&printed(&["recording", "info", &recording, "--json"])), "simulated");
    let top = printed(&["top", &recording, "--once"]);
    assert!(top.lines().next().unwrap().contains("simulated"), "{top}");
    assert_eq!(kind(&printed(&["top", &recording, "--once", "--json"])), "simulated");
}
