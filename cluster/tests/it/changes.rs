//! What a changed file means.

use std::path::Path;

use meikyo_cluster::{Cluster, Device, diff, parse};

const BEFORE: &str = r#"
name = "x"
measure = ["load"]
snmp = { version = "2c", community = "env:C" }

[[hosts]]
name = "node[1-4]"
address = "10.0.0.[1-4]"
"#;

fn read(text: &str) -> Cluster {
    parse(text, Path::new("cluster.toml")).unwrap_or_else(|error| panic!("{error}"))
}

fn names(devices: &[&Device]) -> Vec<String> {
    devices.iter().map(|device| device.name.clone()).collect()
}

#[test]
fn devices_are_added_removed_and_changed_by_name() {
    let (old, new) = (
        read(BEFORE),
        read(
            r#"
name = "x"
measure = ["load"]
snmp = { version = "2c", community = "env:C" }
recording = { keep = "30d" }

[[hosts]]
name = "node[2-3,5]"
address = "10.0.0.[2,33,5]"

[[hosts]]
name = "node4"
address = "10.0.0.4"
measure = ["load every 1s"]
"#,
        ),
    );
    let difference = diff(&old, &new);
    assert_eq!(names(&difference.added), ["node5"]);
    assert_eq!(names(&difference.removed), ["node1"]);
    assert!(difference.keep_changed);
    let changed: Vec<_> = difference
        .changed
        .iter()
        .map(|change| (change.new.name.as_str(), change.is_other_agent()))
        .collect();
    assert_eq!(changed, [("node3", true), ("node4", false)]);
}

#[test]
fn comments_order_and_the_way_of_writing_are_no_difference() {
    let old = read(BEFORE);
    let new = read(
        r#"# The same in other words.
name = "x"
[snmp]
version = "2c"
community = "env:C"
interval = "0.1s"
[[hosts]]
name = ["node4", "node[1-3]"]
address = "10.0.0.[4,1-3]"
measure = [ "load" ]
"#,
    );
    assert!(diff(&old, &new).is_empty(), "{:?}", diff(&old, &new));
}

#[test]
fn any_setting_is_a_difference() {
    let old = read(BEFORE);
    for (from, to) in [
        ("\"2c\"", "\"1\""),
        ("env:C", "env:D"),
        ("community", "interval = \"1s\", community"),
        ("community", "timeout = \"2s\", community"),
        ("community", "rate_max = 99, community"),
        ("community", "write = { community = \"env:W\" }, community"),
        ("community", "port = 1610, community"),
        ("\"load\"", "\"load(load_1min)\""),
        ("\"load\"", "\"load\", \"cpu\""),
        ("[[hosts]]", "[[hosts]]\ngroup = \"rack1\""),
        ("hosts", "switches"),
    ] {
        let new = read(&BEFORE.replacen(from, to, 1));
        assert_eq!(diff(&old, &new).changed.len(), 4, "{from} -> {to}");
        assert_eq!(diff(&new, &new), meikyo_cluster::Difference::default());
    }
}

#[test]
fn changed_rules_of_alerts_are_seen_and_moved_ones_are_not() {
    let rule = |level: &str| {
        format!(
            "{BEFORE}\n[[alerts]]\nname = \"a\"\nvalue = \"load(load_1min)\"\nabove = {level}\n"
        )
    };
    let changed = |old: &str, new: &str| diff(&read(old), &read(new)).alerts_changed;
    assert!(changed(BEFORE, &rule("1")));
    assert!(changed(&rule("1"), &rule("2")));
    assert!(!changed(&rule("1"), &format!("\n\n{}", rule("1"))));
    assert!(diff(&read(&rule("1")), &read(&rule("1"))).is_empty());
}
