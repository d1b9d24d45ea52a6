//! Bad input: one clear message with place and remedy, exit code 2, nothing on standard output.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::fs;
use std::net::UdpSocket;
use std::path::Path;

use crate::running::{meikyo, text};

/// Runs it in `directory`, and sees that it is refused with one message that says all of `parts`.
fn refused(directory: &Path, arguments: &[&str], parts: &[&str]) {
    let output = meikyo()
        .current_dir(directory)
        .args(arguments)
        .env_remove("MEIKYO_RECORDING")
        .env_remove("MEIKYO_CLUSTER")
        .output()
        .unwrap();
    let told = text(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
    assert!(output.stdout.is_empty(), "{arguments:?} printed data");
    assert!(told.starts_with("error: "), "{arguments:?}: {told}");
    assert_eq!(told.matches("error:").count(), 1, "{arguments:?}: {told}");
    assert!(!told.contains("panicked"), "{told}");
    for part in parts {
        assert!(told.contains(part), "{arguments:?} does not say {part:?}: {told}");
    }
}

#[test]
fn what_is_no_recording_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    fs::create_dir(dir.join("empty")).unwrap();
    fs::write(dir.join("file"), "text").unwrap();
    fs::create_dir(dir.join("damaged")).unwrap();
    fs::write(dir.join("damaged/recording.toml"), "format = \"one\"\n").unwrap();
    for verb in ["info", "check", "compact"] {
        refused(dir, &["recording", verb, "empty"], &["`empty` is not a recording"]);
        refused(dir, &["recording", verb, "nowhere"], &["there is no directory `nowhere`"]);
        refused(dir, &["recording", verb, "file"], &["file"]);
        refused(dir, &["recording", verb, "damaged"], &["damaged/recording.toml", "format"]);
        refused(dir, &["recording", verb], &["there is no directory `recording`"]);
    }
    refused(dir, &["serve"], &["there is no directory `recording`", "meikyo measure --out"]);
    refused(dir, &["serve", "file"], &["`file` is a file, and a recording is a directory"]);
    refused(dir, &["serve", "empty"], &["`empty` is not a recording"]);
    let ages = ["--round-samples-after", "9d", "--sum-up-samples-after", "1d"];
    let args: Vec<_> = ["serve", "--ingest", "new"].into_iter().chain(ages).collect();
    refused(dir, &args, &["summed up after 1d", "rounded after 9d", "--round-samples-after 1d"]);
    let job = ["--job", "job.toml", "--host", "a", "--directory", "new", "--mtbf", "0s"];
    let args: Vec<_> = ["checkpoint", "daemon"].into_iter().chain(job).collect();
    refused(dir, &args, &["--mtbf", "no time at all", "365d"]);
    refused(dir, &["recording", "mend", "empty"], &["'mend'", "Usage"]);
}

#[test]
fn spellings_of_earlier_versions_are_refused_with_the_new_one_named() {
    let directory = tempfile::tempdir().unwrap();
    for (old, new) in [
        (&["agents", "--count", "2"][..], "meikyo farm"),
        (&["config", "agents"], "meikyo config snmpd"),
        (&["config", "check", "my.toml"], "meikyo config check --cluster FILE"),
        (&["fabric", "plan", "my.toml", "--json"], "meikyo fabric plan --cluster FILE"),
        (&["fabric", "templates", "own"], "meikyo fabric templates --out DIR"),
        (
            &["fabric", "deploy", "--from", "factory", "--dry-run"],
            "meikyo fabric deploy --current DIR",
        ),
        (&["lab", "up", "my.toml"], "meikyo lab up --cluster FILE"),
        (&["alerts", "rec"], "meikyo alerts --recording RECORDING"),
        (&["query", "rec", "load", "--until", "-1s"], "meikyo query --to TIME"),
        (&["export", "rec", "--to", "csv", "--out", "x"], "meikyo export --format FORMAT"),
        (&["profile", "agent", "--to=http://127.0.0.1:1"], "meikyo profile agent --server URL"),
        (&["simulate", "s.toml", "--record", "x"], "meikyo simulate --out RECORDING"),
        (&["simulate", "s.toml", "--until", "1s"], "meikyo simulate --for SPAN"),
        (&["checkpoint", "key", "job.key"], "meikyo checkpoint key --out FILE"),
    ] {
        let spelling = format!("is written `{new}` now");
        refused(
            directory.path(),
            old,
            &[&spelling, &format!("hint: {}", new.rsplit_once(" --").map_or(new, |it| it.0))],
        );
    }
    // What was never a spelling is refused as before.
    refused(directory.path(), &["query", "--untill", "1s"], &["unexpected argument '--untill'"]);
    refused(directory.path(), &["config", "chek"], &["unrecognized subcommand 'chek'"]);
}

#[test]
fn the_environment_names_recording_and_cluster_file_for_every_verb_that_reads_one() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out").display().to_string();
    for verb in [
        &["query"][..],
        &["export", "--format", "csv", "--out", &out],
        &["recording", "info"],
        &["recording", "check"],
        &["recording", "compact"],
        &["alerts"],
        &["top", "--once"],
        &["probe"],
    ] {
        let mut command = meikyo();
        command.current_dir(directory.path()).args(verb);
        command.env("MEIKYO_RECORDING", "named-there").env("MEIKYO_CLUSTER", "named-there");
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{verb:?}");
        assert!(text(&output).contains("`named-there"), "{verb:?}: {}", text(&output));
    }
}

#[test]
fn without_a_cluster_file_every_verb_tells_how_to_come_by_one() {
    let directory = tempfile::tempdir().unwrap();
    for verb in [
        &["config", "check"][..],
        &["config", "show"],
        &["config", "snmpd"],
        &["probe"],
        &["measure"],
        &["fabric", "plan"],
        &["fabric", "check"],
        &["fabric", "worksheet", "--out", "sheets"],
        &["fabric", "draw"],
        &["lab", "up"],
    ] {
        let parts =
            ["cannot read the cluster file `cluster.toml`", "--cluster", "meikyo config init"];
        refused(directory.path(), verb, &parts);
    }
    let plan = ["checkpoint", "plan", "--bytes", "1GiB", "--cluster", "none.toml"];
    refused(directory.path(), &plan, &["none.toml", "meikyo config init"]);
}

#[test]
fn an_agent_that_cannot_serve_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    fs::write(dir.join("secret"), "a secret word").unwrap();
    fs::write(dir.join("short"), "short").unwrap();
    let agent = |arguments: &[&str], parts: &[&str]| {
        let listen = ["agent", "--listen", "127.0.0.1:0"];
        refused(dir, &[&listen[..], arguments].concat(), parts);
    };
    agent(&[], &["this agent would answer nobody", "hint: meikyo agent --user"]);
    agent(&["--community", "public"], &["public", "env:NAME", "file:PATH"]);
    agent(&["--community", "file:nowhere"], &["nowhere"]);
    agent(&["--community", "env:MEIKYO_TEST_NOT_SET"], &["MEIKYO_TEST_NOT_SET"]);
    agent(&["--user", "m", "--auth", "SHA-9:file:secret"], &["SHA-9", "SHA-256"]);
    agent(&["--user", "m", "--auth", "SHA-256:secret"], &["PROTOCOL:file:PATH"]);
    let auth = ["--user", "m", "--auth", "SHA-256:file:secret"];
    agent(&[&auth[..], &["--privacy", "DES:file:secret"]].concat(), &["DES", "AES-128"]);
    agent(&["--auth", "SHA-256:file:secret"], &["--user"]);
    agent(&["--user", "m", "--privacy", "AES-128:file:secret"], &["--auth"]);
    agent(&["--user", "m", "--auth", "SHA-256:file:short"], &["8"]);
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    refused(
        dir,
        &["agent", "--community", "file:secret", "--listen", &address],
        &[&address, "hint: see which program listens there"],
    );
    refused(dir, &["agent", "--listen", "here"], &["here", "--listen"]);
}

#[test]
fn a_farm_that_cannot_be_is_refused_with_what_is_allowed() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    fs::write(dir.join("script"), "# a comment\nat 1s restart node001\nat 2s explode node001\n")
        .unwrap();
    let agents = |arguments: &[&str], parts: &[&str]| {
        let few = ["farm", "--port", "0", "--count", "2"];
        refused(dir, &[&few[..], arguments].concat(), parts);
    };
    let nobody = ["farm", "--port", "0", "--count", "0"];
    refused(dir, &nobody, &["without agents", "hint: meikyo farm --count"]);
    agents(&["--fault", "lost=5%"], &["`lost=5%`", "`loss=`"]);
    agents(&["--loss", "many"], &["many", "`5%`"]);
    agents(&["--do", "at 5s explode node001"], &["`at 5s explode node001`", "`restart`"]);
    agents(&["--do", "at 5s restart node009"], &["`node009`", "`node001`"]);
    agents(&["--script", "nowhere"], &["`nowhere`"]);
    agents(&["--script", "script"], &["script:3: `at 2s explode node001`"]);
    agents(&["--first", "10.0.0.1"], &["10.0.0.1", "127.0.0.0/8", "hint: meikyo farm --first"]);
    agents(&["--first", "127.255.255.255"], &["leave 127.0.0.0/8", "lower --count"]);
    agents(&["--user", "m:SHA"], &["`m:SHA`", "SHA-256"]);
    agents(&["--cache", "soon"], &["soon"]);
    agents(&["--ports", "0"], &["--ports", "1..=1024"]);
    agents(&["--virtual", "1h"], &["--out"]);
    agents(&["--truth", "nowhere/truth"], &["`nowhere/truth`"]);
    agents(&["--step", "0s"], &["--step"]);
    for more in [&["--print-cluster"][..], &["--write-cluster", "here"]] {
        agents(&[more, &["--measure", "lod"]].concat(), &["measure: `lod`", "hint: docs/cluster"]);
        agents(&[more, &["--measure", "disk:"]].concat(), &["measure: ", "hint: docs/cluster"]);
    }
    let taken = UdpSocket::bind("0.0.0.0:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    refused(dir, &["farm", "--port", &port], &[&port, "hint: ", "another `--port`"]);
}

#[test]
fn a_bench_that_cannot_run_is_refused_before_it_starts() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    let collect = |arguments: &[&str], parts: &[&str]| {
        refused(dir, &[&["bench", "collect"][..], arguments].concat(), parts);
    };
    collect(&["--agents", "none"], &["--agents", "none"]);
    collect(&["--agents", "0"], &["--agents"]);
    collect(&["--every", "0s"], &["--every"]);
    collect(&["--every", "often"], &["often"]);
    collect(&["--version", "4"], &["4", "3"]);
    collect(&["--dead", "150%"], &["150%"]);
    collect(&["--figure", "5"], &["5", "3", "4"]);
    refused(dir, &["bench", "everything"], &["everything"]);
}
