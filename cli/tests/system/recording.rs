//! `meikyo recording info | check | compact` on recordings that are made here, damaged ones among them.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::query::record;
use crate::running::{meikyo, text};

fn recording(verb: &str, dir: &Path) -> Output {
    meikyo().args(["recording", verb]).arg(dir).arg("--json").output().unwrap()
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// Files below a directory with this extension.
pub(crate) fn files(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|own| own == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn rows_of(info: &Value, table: &str) -> (u64, u64) {
    let tables = info["tables"].as_array().unwrap();
    let row = tables.iter().find(|row| row["table"] == table).unwrap();
    (row["rows"].as_u64().unwrap(), row["log_rows"].as_u64().unwrap())
}

#[test]
fn info_counts_what_was_written_before_and_after_compaction() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path(), false);
    let info = document(&recording("info", dir.path()));
    assert_eq!(rows_of(&info, "polls"), (1_800, 1_800));
    assert_eq!(info["tables"][0]["files"], 0);
    assert_eq!(info["parquet_bytes"], 0);
    assert_eq!(info["streams"][0]["live"], false);
    assert_eq!(info["streams"][0]["gaps"].as_array().unwrap().len(), 0);

    let shown = meikyo().args(["recording", "info"]).arg(dir.path()).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains(" s covered, gaps of 10s or more: 0\n"), "{shown}");

    let compacted = recording("compact", dir.path());
    assert_eq!(compacted.status.code(), Some(0), "{}", text(&compacted));
    let streams = &document(&compacted)["streams"];
    // 600 polls of three devices in two tables, and a finding each.
    assert_eq!(streams[0]["rows"], 3_603, "{streams}");
    let info = document(&recording("info", dir.path()));
    assert_eq!(rows_of(&info, "polls"), (1_800, 0));
    let on_disk: u64 = files(dir.path(), "parquet")
        .iter()
        .filter(|path| !path.to_str().unwrap().contains(".summary/"))
        .map(|path| path.metadata().unwrap().len())
        .sum();
    assert_eq!(info["parquet_bytes"], on_disk);
    let checked = recording("check", dir.path());
    assert_eq!((checked.status.code(), &document(&checked)["whole"]), (Some(0), &true.into()));
    assert_eq!(document(&checked)["rows"], 3_603);
}

#[test]
fn a_damaged_file_is_named_and_answered_with_1() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path(), true);
    let polls = files(&dir.path().join("polls"), "parquet").remove(0);
    let mut octets = fs::read(&polls).unwrap();
    let middle = octets.len() / 3;
    for octet in &mut octets[middle..middle + 64] {
        *octet = !*octet;
    }
    fs::write(&polls, octets).unwrap();
    let checked = recording("check", dir.path());
    assert_eq!(checked.status.code(), Some(1), "{checked:?}");
    let report = document(&checked);
    assert_eq!(report["whole"], false);
    let damage = report["damage"].as_array().unwrap();
    assert_eq!(damage.len(), 1, "{report}");
    let named = damage[0]["path"].as_str().unwrap();
    assert!(polls.ends_with(named) || polls == Path::new(named), "{named}");
    let people = meikyo().args(["recording", "check"]).arg(dir.path()).output().unwrap();
    let people = String::from_utf8(people.stdout).unwrap();
    assert!(people.contains(named) && people.ends_with("not whole\n"), "{people}");
    assert!(people.contains("  remedy: ") && people.contains("`mv "), "{people}");
    assert_eq!(people.to_lowercase().matches("error:").count(), 0, "{people}");
}

#[test]
fn a_damaged_log_is_named_with_the_byte() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path(), false);
    let segment = files(&dir.path().join("log"), "log").remove(0);
    let mut octets = fs::read(&segment).unwrap();
    let middle = octets.len() / 2;
    octets[middle] = !octets[middle];
    fs::write(&segment, octets).unwrap();
    let checked = recording("check", dir.path());
    assert_eq!(checked.status.code(), Some(1), "{checked:?}");
    let damage = document(&checked)["damage"].as_array().unwrap().clone();
    let at = damage[0]["at_byte"].as_u64().expect("the byte is told");
    assert!(at <= middle as u64, "the damaged frame begins at {at}, before {middle}");
    let named = damage[0]["path"].as_str().unwrap();
    assert!(named.ends_with(segment.file_name().unwrap().to_str().unwrap()), "{named}");
    // What the remedy says: rows are kept, the segment is put aside, and then has a remedy of its own.
    let told = |verb: &str| {
        let output = meikyo().args(["recording", verb]).arg(dir.path()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(told("check").contains("remedy: whole frames around it are read"), "{}", told("check"));
    assert!(told("compact").contains("rows"));
    assert!(!segment.exists() && files(&dir.path().join("log"), "damaged").len() == 1);
    assert!(told("check").contains("`rm "), "{}", told("check"));
}

#[test]
fn a_torn_tail_is_told_and_is_no_damage() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path(), false);
    let segment = files(&dir.path().join("log"), "log").pop().unwrap();
    let octets = fs::read(&segment).unwrap();
    // What a crash leaves of a frame that nobody was told of.
    fs::write(&segment, [&octets[..], &octets[..100]].concat()).unwrap();
    let checked = recording("check", dir.path());
    assert_eq!(checked.status.code(), Some(0), "{checked:?}");
    assert_eq!(document(&checked)["torn_bytes"], 100);
    // What was kept and is gone is damage.
    fs::write(&segment, &octets[..octets.len() - 7]).unwrap();
    let checked = recording("check", dir.path());
    assert_eq!(checked.status.code(), Some(1), "{checked:?}");
    assert!(document(&checked)["damage"][0]["what"].as_str().unwrap().contains("truncated"));
}

#[test]
fn a_recording_of_a_newer_version_is_refused_by_every_verb() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path(), true);
    let identity = dir.path().join("recording.toml");
    let newer = fs::read_to_string(&identity).unwrap().replace("format = 1", "format = 2");
    // What a newer version may have added must not be what is complained of.
    fs::write(&identity, newer + "shards = 4\n").unwrap();
    let out = dir.path().join("out");
    let out = out.to_str().unwrap();
    let path = dir.path().to_str().unwrap();
    for arguments in [
        vec!["recording", "info", path],
        vec!["recording", "check", path],
        vec!["recording", "compact", path],
        vec!["query", path, "polls"],
        vec!["export", path, "--format", "csv", "--out", out],
    ] {
        let output = meikyo().args(&arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let told = text(&output);
        assert!(told.contains(path), "{arguments:?}: {told}");
        assert!(
            told.contains("format version 2") && told.contains("up to 1"),
            "{arguments:?}: {told}"
        );
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

/// What is done to a recording of which a copy is asked in every way.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Damage {
    /// A file of rows is gone.
    Deleted,
    /// There is a link to nothing in its place.
    Dangling,
    /// A file of summaries is gone.
    NoSummary,
    /// The log ends in the middle.
    Truncated,
}

impl Damage {
    const ALL: [Self; 4] = [Self::Deleted, Self::Dangling, Self::NoSummary, Self::Truncated];

    /// Damages a recording; the file that is to be named.
    fn harm(self, dir: &Path) -> PathBuf {
        record(dir, self != Self::Truncated);
        let table = if self == Self::NoSummary { "interfaces.summary" } else { "interfaces" };
        if self == Self::Truncated {
            let segment = files(&dir.join("log"), "log").remove(0);
            let octets = fs::read(&segment).unwrap();
            fs::write(&segment, &octets[..octets.len() / 2]).unwrap();
            return segment;
        }
        let file = files(&dir.join(table), "parquet").remove(0);
        fs::remove_file(&file).unwrap();
        if self == Self::Dangling {
            std::os::unix::fs::symlink("nowhere", &file).unwrap();
        }
        file
    }
}

#[test]
fn whatever_reads_a_recording_tells_what_is_missing_and_answers_no() {
    let base = tempfile::tempdir().unwrap();
    let rows = [Damage::Deleted, Damage::Dangling, Damage::Truncated].as_slice();
    for damage in Damage::ALL {
        let dir = base.path().join(format!("{damage:?}"));
        let named = damage.harm(&dir);
        let path = dir.to_str().unwrap();
        let out = dir.with_extension("out");
        let out = out.to_str().unwrap();
        // Each with the damages that concern it.
        let verbs: [(&[&str], &[Damage]); 11] = [
            (&["query", path], &Damage::ALL),
            (&["query", path, "interfaces"], rows),
            (&["query", path, "interfaces", "--rate"], rows),
            (&["query", path, "interfaces", "--received", "--json"], rows),
            (&["query", path, "interfaces", "--every", "10s", "--csv"], rows),
            // It is of the summaries alone, and nobody knows the table any more.
            (&["query", path, "interfaces.summary"], &[Damage::NoSummary, Damage::Truncated]),
            (&["export", path, "--format", "csv", "--out", out], &Damage::ALL),
            (&["top", path, "--once"], &Damage::ALL),
            // Events may have been in what is gone.
            (&["alerts", "--recording", path], &[Damage::Truncated]),
            (&["recording", "info", path], &Damage::ALL),
            (&["recording", "check", path], &Damage::ALL),
        ];
        for (arguments, concerned) in verbs {
            let output = meikyo().args(arguments).output().unwrap();
            let told = text(&output) + &String::from_utf8_lossy(&output.stdout);
            let name = named.file_name().unwrap().to_str().unwrap();
            let is_concerned = concerned.contains(&damage);
            let is_refused = output.status.code() == Some(2);
            assert_eq!(is_refused, told.contains("has no table"), "{arguments:?}: {told}");
            let expected = if is_refused { 2 } else { i32::from(is_concerned) };
            assert_eq!(output.status.code(), Some(expected), "{damage:?} {arguments:?}: {told}");
            assert_eq!(told.contains(name), is_concerned, "{damage:?} {arguments:?}: {told}");
        }
    }
}
