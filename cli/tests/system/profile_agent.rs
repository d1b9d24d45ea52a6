//! `meikyo profile agent` and `meikyo serve --ingest`: what was sampled is in the recording, or in a gap
//! that it tells of.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use meikyo_profile::tables::file_symbols;
use meikyo_recording::{Recording, Selection};
use meikyo_testing::http;
use serde_json::Value;

use crate::running::{meikyo, text};

/// How long anything may take that has to happen.
const PATIENCE: Duration = Duration::from_secs(90);

/// A program whose functions `longer` and `shorter` take all of its time.
fn compiled(directory: &Path) -> Option<PathBuf> {
    let [source, path] = ["calls.c", "calls"].map(|name| directory.join(name));
    std::fs::write(&source, include_str!("../../../profile/tests/it/calls.c")).unwrap();
    let mut cc = Command::new("cc");
    let cc = cc.args(["-O0", "-Wl,--build-id", "-o"]).arg(&path).arg(&source).output();
    let Ok(output) = cc else {
        meikyo_testing::lacking("cc, which Debian has in gcc and libc6-dev");
        return None;
    };
    assert!(output.status.success(), "{}", text(&output));
    Some(path)
}

fn may_sample() -> bool {
    let dir = tempfile::tempdir().unwrap();
    let mut record = meikyo();
    record.args(["profile", "record", "--out"]).arg(dir.path().join("rec")).args(["--", "true"]);
    let output = record.output().unwrap();
    let is_refused = text(&output).contains("sampling is not permitted");
    if is_refused {
        meikyo_testing::skipped("sampling needs root or CAP_PERFMON");
    }
    !is_refused
}

/// `meikyo serve --ingest`, once it listens.
fn server(dir: &Path, port: u16) -> Child {
    let mut command = meikyo();
    command.args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--ingest"]).arg(dir);
    // What is waited for is asked for as often as there is an answer.
    command.args(["--requests-per-second", "100000"]);
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert!(first.starts_with("serving at "), "{first}");
    // What it says later is read, so that it never waits for a reader.
    std::thread::spawn(move || lines.for_each(drop));
    child
}

fn agent(port: u16, more: &[&str]) -> Child {
    let mut command = meikyo();
    command.args(["profile", "agent", "--budget", "none", "--json", "--name", "node001"]);
    command.args(["--server", &format!("http://127.0.0.1:{port}")]).args(more);
    command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap()
}

fn interrupt(child: &Child) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
}

/// What an agent says when it is asked to end, and its exit code.
fn ended(agent: Child) -> (Value, Option<i32>) {
    interrupt(&agent);
    let output = agent.wait_with_output().unwrap();
    let summary = serde_json::from_slice(&output.stdout);
    (summary.unwrap_or_else(|_| panic!("{output:?}")), output.status.code())
}

/// The rows of a table that are in a recording now, and the sum of a column of theirs.
fn rows(dir: &Path, table: &str, column: Option<&str>) -> (u64, u64) {
    let Ok(recording) = Recording::open(dir) else { return (0, 0) };
    let Ok(scan) = recording.scan(&Selection::all(table)) else { return (0, 0) };
    let (mut count, mut sum) = (0, 0);
    for rows in scan {
        let rows = rows.unwrap();
        count += rows.num_rows() as u64;
        if let Some(column) = column {
            let values = rows.column_by_name(column).unwrap();
            let values =
                arrow::array::AsArray::as_primitive::<arrow::datatypes::UInt64Type>(values);
            sum += values.iter().flatten().sum::<u64>();
        }
    }
    (count, sum)
}

fn samples(dir: &Path) -> u64 {
    rows(dir, "samples", None).0
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "{what} did not happen");
        std::thread::yield_now();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn every_sample_reaches_the_recording_also_when_the_server_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = compiled(directory.path()).filter(|_| may_sample()) else { return };
    let (dir, port) = (directory.path().join("rec"), free_port());
    let first = server(&dir, port);
    let mut busy = Command::new(&program).arg("4000").stdout(Stdio::null()).spawn().unwrap();
    let spool = directory.path().join("spool");
    let agent = agent(port, &["--spool", spool.to_str().unwrap()]);
    wait_until("the first sample arriving", || samples(&dir) > 0);
    let mut first = first;
    first.kill().unwrap();
    first.wait().unwrap();
    let before = samples(&dir);
    let mut second = server(&dir, port);
    wait_until("a sample arriving after the restart", || samples(&dir) > before);
    busy.wait().unwrap();
    let (summary, code) = ended(agent);
    assert_eq!(code, Some(0), "{summary}");
    interrupt(&second);
    assert!(second.wait().unwrap().success());
    assert_eq!(summary["schema"], "meikyo.profile.agent/1");
    assert_eq!(summary["blocks_waiting"], 0);
    assert_eq!(summary["samples"], samples(&dir), "{summary}");
    // On a busy machine a ring may be full for a moment.
    let told = rows(&dir, "losses", Some("count")).1;
    assert!(summary["lost"].as_u64() <= Some(told), "{told} losses are told: {summary}");
    let gaps = rows(&dir, "transport_gaps", Some("blocks"));
    assert_eq!(gaps.1, 0, "nothing is missing");

    // Who receives it names it, since the files are here.
    let mut report = meikyo();
    report.args(["profile", "report", "--json", "--pid", &busy.id().to_string()]).arg(&dir);
    let report = report.output().unwrap();
    assert_eq!(report.status.code(), Some(0), "{}", text(&report));
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    let hot: u64 = report["lines"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|line| line["name"] == "longer" || line["name"] == "shorter")
        .map(|line| line["samples"].as_u64().unwrap())
        .sum();
    let all = report["samples"].as_u64().unwrap();
    assert!(all > 500 && hot * 10 > all * 8, "{hot} of {all}: {report}");
}

#[test]
fn what_found_no_room_while_the_server_was_away_is_a_gap_with_its_rows() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = compiled(directory.path()).filter(|_| may_sample()) else { return };
    let (dir, port) = (directory.path().join("rec"), free_port());
    let agent = agent(port, &["--spool-max", "2KiB"]);
    // More than two seconds, of which a spool of 2 KiB does not hold the blocks.
    let busy = Command::new(&program).arg("2500").stdout(Stdio::null()).status().unwrap();
    assert!(busy.success());
    let mut server = server(&dir, port);
    wait_until("a sample arriving", || samples(&dir) > 0);
    let (summary, _) = ended(agent);
    interrupt(&server);
    assert!(server.wait().unwrap().success());
    let there: u64 =
        ["samples", "mappings", "threads", "cgroups", "jit_symbols", "rates", "losses"]
            .iter()
            .chain(&["clocks"])
            .map(|table| rows(&dir, table, None).0)
            .sum();
    let (_, missing) = rows(&dir, "transport_gaps", Some("rows"));
    assert!(missing > 0 && summary["blocks_dropped"].as_u64() > Some(0), "{summary}");
    // A block that was dropped while it was under way can be there, too: then it is told of twice, and
    // never not at all.
    let made = summary["rows"].as_u64().unwrap();
    assert!(there < made && there + missing >= made, "{there} there, {missing} told: {summary}");
}

/// What a verb prints as JSON, and its exit code.
fn said(words: &[&str], dir: Option<&Path>) -> (Value, Option<i32>) {
    let output = meikyo().args(words).args(dir).output().unwrap();
    (serde_json::from_slice(&output.stdout).unwrap_or_default(), output.status.code())
}

#[test]
fn an_agent_that_sums_up_keeps_samples_until_somebody_grabs_them() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = compiled(directory.path()).filter(|_| may_sample()) else { return };
    let (dir, port) = (directory.path().join("rec"), free_port());
    let mut server = server(&dir, port);
    let name = format!("summing-{}", std::process::id());
    let mut command = meikyo();
    command.args(["profile", "agent", "--budget", "none", "--json", "--summary", "--name", &name]);
    command.args(["--server", &format!("http://127.0.0.1:{port}")]);
    let agent = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
    wait_until("the agent being there", || rows(&dir, "rates", None).0 > 0);
    let mut busy = Command::new(&program).arg("2500").stdout(Stdio::null()).spawn().unwrap();
    let pid = busy.id().to_string();
    busy.wait().unwrap();
    // What it did is summed up, by places of its functions.
    let report = ["profile", "report", "--json", "--pid", &pid];
    let hot = |more: &[&str]| {
        let (report, _) = said(&[&report[..], more].concat(), Some(&dir));
        let lines = report["lines"].as_array().cloned().unwrap_or_default();
        let is_hot = |line: &&Value| line["name"] == "longer" || line["name"] == "shorter";
        lines.iter().filter(is_hot).map(|line| line["samples"].as_u64().unwrap()).sum::<u64>()
    };
    wait_until("most of it being summed up", || hot(&["--summary"]) > 500);
    // Its samples stay there but around findings, of which a busy machine has many; then they are sent.
    let (grabbed, code) =
        said(&["profile", "grab", "--last", "60s", "--json", "--name", &name], None);
    assert_eq!((code, &grabbed["schema"]), (Some(0), &"meikyo.profile.grab/1".into()), "{grabbed}");
    let sent = |name: &str| grabbed[name].as_u64().unwrap();
    assert!(sent("samples") + sent("samples_sent_before") > 0, "{grabbed}");
    let summed_up = hot(&["--summary"]);
    wait_until("its samples arriving", || hot(&[]) >= summed_up && hot(&[]) > 500);
    let (nobody, code) = said(&["profile", "grab", "--name", "nobody of that name"], None);
    assert_eq!((nobody, code), (Value::Null, Some(2)));
    let (summary, code) = ended(agent);
    assert_eq!(code, Some(0), "{summary}");
    interrupt(&server);
    assert!(server.wait().unwrap().success());
    // Nothing is there twice, and what was not sent is counted.
    let count = |name: &str| summary[name].as_u64().unwrap();
    assert_eq!(count("samples_sent"), samples(&dir), "{summary}");
    assert_eq!(count("samples"), count("samples_sent") + count("samples_forgotten"), "{summary}");
    // Every sample stands in the row of all of its second.
    assert!(rows(&dir, "summaries", None).0 > 0);
}

/// Functions by their samples, of a process, without those that have no name.
fn functions(dir: &Path, pid: u32) -> Vec<(String, u64)> {
    let report = ["profile", "report", "--json", "--pid", &pid.to_string()];
    let (report, _) = said(&report, Some(dir));
    let lines = report["lines"].as_array().cloned().unwrap_or_default();
    let line = |line: Value| Some((line["name"].as_str()?.to_owned(), line["samples"].as_u64()?));
    lines.into_iter().filter_map(line).filter(|(name, _)| name != "[unknown]").collect()
}

/// A program that is ended with the test, however that ends.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        drop((self.0.kill(), self.0.wait()));
    }
}

/// A container: its file system goes with it, and nobody else has its program.
#[test]
fn functions_of_a_program_that_only_its_host_had_are_named_after_it_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = compiled(directory.path()).filter(|_| may_sample()) else { return };
    let inside = directory.path().join("inside");
    std::fs::create_dir(&inside).unwrap();
    let (dir, port) = (directory.path().join("rec"), free_port());
    let mut server = server(&dir, port);
    let agent = agent(port, &[]);
    wait_until("the agent being there", || rows(&dir, "rates", None).0 > 0);
    let script = "mount -t tmpfs none \"$1\" && cp \"$0\" \"$1/only\" && exec \"$1/only\" 600000";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]).arg(&program).arg(&inside);
    let mut child = Ended(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let pid = child.0.id();
    let is_named = || {
        let found = functions(&dir, pid);
        let of = |name: &str| found.iter().find(|(found, _)| found == name).map_or(0, |of| of.1);
        of("longer") > of("shorter") && of("shorter") > 100
    };
    let mut is_refused = false;
    wait_until("its functions being named, or it being refused", || {
        is_refused = child.0.try_wait().unwrap().is_some();
        is_refused || is_named()
    });
    drop(child);
    if is_refused {
        meikyo_testing::skipped("a mount namespace needs root");
        ended(agent);
        server.kill().unwrap();
        server.wait().unwrap();
        return;
    }
    assert!(!inside.join("only").exists());
    assert!(is_named());
    let (summary, code) = ended(agent);
    assert_eq!(code, Some(0), "{summary}");
    interrupt(&server);
    assert!(server.wait().unwrap().success());
    // Each function of each file is there once; other programs of this machine may be in containers, too.
    let recording = Recording::open(&dir).unwrap();
    let mut told = Vec::new();
    for rows in recording.scan(&Selection::all("file_symbols")).unwrap() {
        let rows = rows.unwrap();
        let files = file_symbols::BUILD_ID.values_in(&rows).unwrap();
        let begins = file_symbols::OFFSET_BYTES.values_in(&rows).unwrap();
        told.extend(
            (0..rows.num_rows()).map(|row| (files.get(row).map(str::to_owned), begins.get(row))),
        );
    }
    let count = told.len();
    told.sort_unstable();
    told.dedup();
    assert_eq!(told.len(), count);
}

#[test]
fn while_somebody_watches_samples_come_in_tenths_of_a_second_and_each_once() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = compiled(directory.path()).filter(|_| may_sample()) else { return };
    let (dir, port) = (directory.path().join("rec"), free_port());
    let mut server = server(&dir, port);
    let mut busy = Command::new(&program);
    let busy = Ended(busy.arg("600000").stdout(Stdio::null()).spawn().unwrap());
    let agent = agent(port, &[]);
    wait_until("samples arriving", || samples(&dir) > 1_000);
    let address = format!("127.0.0.1:{port}");
    let heat = |query: &str| {
        let path = format!("/api/v1/recordings/rec/heat?from=-5s&{query}");
        let answer = http::ask(&address, "GET", &path, "").unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
        serde_json::from_slice::<Value>(&answer.body).unwrap()
    };
    // When samples of another tenth of a second have come, several times within one second.
    let newest = |heat: &Value| {
        let tiles = heat["tiles"].as_array().unwrap();
        let last = tiles.iter().rposition(|count| count.as_u64() > Some(0));
        // Before the first of them there is none.
        last.map_or(0, |last| heat["from_us"].as_u64().unwrap() + last as u64 * 20_000)
    };
    let mut ends = std::collections::BTreeSet::new();
    wait_until("samples coming in tenths of a second", || {
        ends.insert(newest(&heat("watch=true")));
        // Five ends of what had come within one second, for two seconds.
        let within = |second: u64| ends.iter().filter(|us| *us / 1_000_000 == second).count();
        ends.iter().any(|us| within(us / 1_000_000) >= 5 && within(us / 1_000_000 + 1) >= 5)
    });
    let wrong = http::ask(&address, "GET", "/api/v1/recordings/rec/heat?watch=soon", "").unwrap();
    assert_eq!(wrong.status, 400, "{}", wrong.text());
    drop(busy);
    let (summary, code) = ended(agent);
    assert_eq!(code, Some(0), "{summary}");
    interrupt(&server);
    assert!(server.wait().unwrap().success());
    assert_eq!(summary["samples"].as_u64(), Some(samples(&dir)), "{summary}");
}
