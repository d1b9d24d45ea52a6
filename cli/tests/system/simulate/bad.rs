//! What cannot be simulated is refused with its place and a remedy, and nothing is printed as data.

use super::{example, run};
use crate::running::text;

/// Runs with arguments that are wrong: exit code 2 and one message that has all the `words`.
#[track_caller]
fn refused(arguments: &[&str], words: &[&str]) {
    let output = run(arguments);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    assert!(output.stdout.is_empty(), "{arguments:?} printed data");
    assert_eq!(said.matches("error: ").count(), 1, "{said}");
    for word in words {
        assert!(said.contains(word), "`{word}` is not in: {said}");
    }
}

#[test]
fn wrong_numbers_are_told_with_what_is_allowed() {
    for (arguments, words) in [
        ("phold --lps 0", ["--lps", "0 is not in 1..=4294967295"]),
        ("phold --lps -1", ["--lps", "-1 is not in 1..=4294967295"]),
        ("phold --events-per-lp 4294967295", ["4398046510080 pending", "1073741824 allowed"]),
        ("phold --remote -0.1", ["--remote", "allowed are 0 to 1"]),
        ("phold --remote NaN", ["--remote", "allowed are 0 to 1"]),
        ("phold --lookahead 1s", ["--lookahead", "`1s` is not a number"]),
        ("phold --lookahead 5", ["lookahead is part of the mean", "--lookahead 0.1"]),
        ("phold --mean 0 --lookahead 0", ["--mean", "allowed are 1e-9 to 1e9"]),
        ("phold --mean 1e-12 --lookahead 0", ["--mean", "allowed are 1e-9 to 1e9"]),
        ("phold --end -1", ["--end", "allowed are 0 to 1e9"]),
        ("phold --seed -1", ["--seed", "-1"]),
        ("phold --scheduler magic", ["--scheduler", "optimistic"]),
        ("phold --threads 257", ["--threads", "257 is not in 1..=256"]),
        ("phold --memory-limit 512", ["--memory-limit", "`MiB`"]),
        ("phold --memory-limit -1MiB", ["--memory-limit", "-1MiB"]),
        ("metadata --figure 4", ["--figure", "4 is not in 5..=10"]),
        ("metadata --figure -5", ["--figure", "-5 is not in 5..=10"]),
        ("metadata --servers 5000", ["--servers", "5000 is not in 1..=4096"]),
        ("metadata --clients 1,,2", ["--clients", "empty"]),
        ("metadata --creates 9", ["--creates", "9 is not in 10..=4294967295"]),
        ("metadata --parallel-creates 0", ["--parallel-creates", "0 is not in 1..=4294967295"]),
    ] {
        let arguments: Vec<&str> = ["bench"].into_iter().chain(arguments.split(' ')).collect();
        refused(&arguments, &words);
    }
}

#[test]
fn wrong_flags_of_a_simulation_are_told_with_what_to_write() {
    let file = example("simulate-metadata.toml");
    for (arguments, words) in [
        ("--set servers", ["`servers` sets nothing", "--set servers=4"]),
        ("--set =4", ["`=4` sets nothing", "--set servers=4"]),
        ("--set servers=-1", ["servers = -1", "1 to 65535"]),
        ("--set nothing=1", ["nothing = 1: unknown key", "`servers`"]),
        ("--sweep servers", ["`servers` has no values", "clients=11..88:11"]),
        ("--sweep =1,2", ["`=1,2` has no values", "clients=11..88:11"]),
        ("--sweep servers=1,x", ["servers = x", "1 to 65535"]),
        ("--sweep servers=1 servers=2", ["`servers` is swept twice", "--sweep servers=1,2,4"]),
        ("--for 5", ["--for", "no known unit"]),
        ("--for -5s", ["--for", "-5s"]),
        ("--for 999999999h", ["--for", "cannot be kept exactly in 64 bits"]),
        ("--threads 0", ["--threads", "0 is not in 1..=256"]),
        ("--check --threads 2", ["--check", "--threads"]),
        ("--out x --sweep servers=1,2", ["--out", "--sweep"]),
        ("--out x --replications 2", ["--out", "--replications"]),
        ("--replications 0", ["--replications", "0 is not in 1..=100000"]),
        ("--confidence 95%", ["required", "--replications"]),
        ("--replications 3 --confidence 95", ["--confidence", "write `95%` or `0.95`"]),
        ("--warmup soon", ["--warmup", "soon"]),
        ("--csv --json", ["--csv", "--json"]),
        ("--plot x", ["required", "--svg"]),
        ("--replications 60000 --sweep servers=1,2", ["120000 runs", "100000"]),
    ] {
        let arguments: Vec<&str> =
            ["simulate", &file].into_iter().chain(arguments.split(' ')).collect();
        refused(&arguments, &words);
    }
    refused(&["simulate", &example("")], &["cannot read", "directory"]);
}

#[test]
fn files_that_cannot_be_written_are_told_and_a_recording_is_not_mixed_with_another() {
    let dir = tempfile::tempdir().unwrap();
    let name = |name: &str| dir.path().join(name).display().to_string();
    std::fs::write(dir.path().join("file"), "").unwrap();
    let (file, below, recording) = (name("file"), name("file/below"), name("recording"));
    let scenario = example("simulate-queue.toml");
    let record =
        |to: &str| ["simulate", &scenario, "--set", "customers=9", "--out", to].map(str::to_owned);
    let refused_to = |to: &str, words: &[&str]| {
        let arguments = record(to);
        refused(&arguments.each_ref().map(String::as_str), words);
    };
    refused_to(&file, &["cannot write to recording", &file]);
    refused_to(&below, &["cannot write to recording", &below]);
    assert!(run(&record(&recording).each_ref().map(String::as_str)).status.success());
    refused_to(&recording, &["holds a recording already", &recording, "--out"]);
    let few = ["bench", "metadata", "--figure", "5", "--svg"];
    refused(&[&few[..], &[&below]].concat(), &["cannot create", &below, "--svg"]);
}
