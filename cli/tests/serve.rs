//! `meikyo serve` and `meikyo measure --serve` as processes.
#![expect(clippy::disallowed_methods, reason = "tests start real programs")]
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use meikyo_testing::http;
use meikyo_units::{Nanos, WallTime};
use serde_json::Value;

fn meikyo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_meikyo"));
    command.args(arguments);
    command
}

/// A process that ends with the test, and the first line that it told of a kind.
struct Process {
    child: Child,
    told: String,
}

impl Process {
    fn start(mut command: Command, beginning: &str) -> Self {
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let told =
            lines.find(|line| line.as_ref().unwrap().starts_with(beginning)).unwrap().unwrap();
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Self { child, told }
    }

    /// Asks it to end, and whether it did so with 0.
    fn interrupt(mut self) -> bool {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        self.child.wait().unwrap().success()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already, which is no mistake.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// What is at a path of a server, as JSON.
fn get(url: &str, path: &str) -> Value {
    let answer = http::ask(url.split('/').nth(2).unwrap(), "GET", path, "").unwrap();
    serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("{path}: {answer:?}"))
}

fn url(process: &Process) -> String {
    process.told.strip_prefix("serving at ").unwrap().to_owned()
}

fn virtual_recording(out: &Path) {
    let out = out.to_str().unwrap();
    let made = meikyo(&["farm", "--count", "2", "--virtual", "30s", "--out", out]);
    assert!({ made }.stderr(Stdio::null()).status().unwrap().success());
}

#[test]
fn page_and_terminal_name_the_same_value_as_the_oldest() {
    let dir = tempfile::tempdir().unwrap();
    let recording = dir.path().join("rec");
    let out = recording.to_str().unwrap();
    let made = meikyo(&["farm", "--count", "3", "--virtual", "60s", "--cache", "3s", "--out", out]);
    assert!({ made }.stderr(Stdio::null()).status().unwrap().success());
    let mut command = meikyo(&["serve", "--listen", "127.0.0.1:0"]);
    command.arg(&recording);
    let server = Process::start(command, "serving at ");
    let page = get(&url(&server), "/api/v1/recordings/rec/health")["stalest"].clone();
    let top = meikyo(&["top", out, "--once", "--json"]).output().unwrap();
    let top: Value = serde_json::from_slice(&top.stdout).unwrap();
    assert_eq!(page["device"], top["stalest"]["device"], "{page} {top}");
    assert_eq!(page["object"], top["stalest"]["object"], "{page} {top}");
    let [page_us, top_us] = [&page, &top["stalest"]].map(|of| of["age_us"].as_u64().unwrap());
    assert!(page_us.abs_diff(top_us) < 1_000, "{page_us} and {top_us}");
    // Caches of 3 s are seen: the oldest of three devices is older than an interval, and not than a cache.
    assert!((100_000..3_400_000).contains(&page_us), "{page_us}");
    assert!(server.interrupt());
}

#[test]
fn a_finished_recording_is_served_until_a_signal_comes() {
    let dir = tempfile::tempdir().unwrap();
    let recording = dir.path().join("rec");
    virtual_recording(&recording);
    let mut command = meikyo(&["serve", "--listen", "127.0.0.1:0"]);
    command.arg(&recording);
    let server = Process::start(command, "serving at ");
    let recordings = get(&url(&server), "/api/v1/recordings");
    assert_eq!(recordings[0]["id"], "rec");
    assert_eq!(recordings[0]["devices"][0]["role"], "host");
    assert_eq!(recordings[0]["kind"], "simulated");
    assert!(server.interrupt());
}

#[test]
fn a_measurement_serves_itself() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let mut farm = meikyo(&["farm", "--port", "0", "--count", "3", "--write-cluster"]);
    farm.arg(dir.path());
    let _farm = Process::start(farm, "ready: ");
    let measure = meikyo(&[
        "measure",
        "--cluster",
        &at("cluster.toml"),
        "--out",
        &at("rec"),
        "--quiet",
        "--serve",
        "127.0.0.1:0",
    ]);
    let measurement = Process::start(measure, "serving at ");
    let url = url(&measurement);
    let deadline = WallTime::now() + Nanos::from_secs(30);
    loop {
        let health = get(&url, "/api/v1/recordings/rec/health?from=-30s");
        if health["totals"]["ok"].as_u64().unwrap() >= 30 {
            break;
        }
        assert!(WallTime::now() < deadline, "{health}");
    }
    assert_eq!(get(&url, "/api/v1/recordings")[0]["running"], true);
    assert!(measurement.interrupt());
}

#[test]
fn an_open_address_without_protection_is_refused_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    virtual_recording(&dir.path().join("rec"));
    let mut command = meikyo(&["serve", "--listen", "0.0.0.0:0"]);
    let output = command.arg(dir.path().join("rec")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("need TLS and a token") && text.contains("--new-token"), "{text}");
}

#[test]
fn what_cannot_be_served_or_written_to_is_said_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    std::fs::create_dir(at("papers")).unwrap();
    std::fs::write(at("papers") + "/thesis.tex", "precious").unwrap();
    let hash = meikyo(&["serve", "--new-token"]).output().unwrap().stdout;
    let hash = String::from_utf8(hash).unwrap();
    std::fs::write(at("tokens"), format!("ingest node/* {hash}")).unwrap();
    let (rec, papers, tokens, missing) = (at("rec"), at("papers"), at("tokens"), at("missing"));
    for (more, texts) in [
        (
            vec![missing.as_str(), "--ingest", &rec],
            ["there is no directory", "meikyo measure --out RECORDING"],
        ),
        (vec!["--ingest", &papers], ["is no recording, and it is not empty", "--ingest DIR"]),
        (vec!["--ingest", &rec, "--token-file", &tokens], [":1: this is no", "`*` and `?`"]),
    ] {
        let mut command = meikyo(&["serve", "--listen", "127.0.0.1:0"]);
        let output = command.args(&more).env_remove("MEIKYO_RECORDING").output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(texts.iter().all(|part| text.contains(part)), "{more:?}: {text}");
    }
    // Alone it is served itself, and the recording of that name need not be there.
    let mut command = meikyo(&["serve", "--listen", "127.0.0.1:0", "--ingest", &rec]);
    command.env_remove("MEIKYO_RECORDING");
    let server = Process::start(command, "serving at ");
    assert_eq!(get(&url(&server), "/api/v1/recordings")[0]["id"], "rec");
    assert!(server.interrupt());
}
