//! What a running measurement keeps of passwords in its memory.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::process::Stdio;

use crate::running::{Farm, Process, interrupt, is_ok};

/// The passwords of simulated agents (`meikyo_snmp::farm`).
const PASSWORDS: [&str; 2] = ["simulated-authentication", "simulated-privacy"];

/// How often a text stands in what a process can write to: heap, stacks, variables. The program's
/// own constants are left out; simulated passwords are among them.
fn occurrences(pid: u32, text: &str) -> usize {
    let memory = File::open(format!("/proc/{pid}/mem")).unwrap();
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let mut found = 0;
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let (span, rights) = (words.next().unwrap(), words.next().unwrap());
        if !rights.starts_with("rw") {
            continue;
        }
        let (begin, end) = span.split_once('-').unwrap();
        let at = |text: &str| u64::from_str_radix(text, 16).unwrap();
        let mut octets = vec![0; usize::try_from(at(end) - at(begin)).unwrap()];
        // Parts may be gone by now, and some cannot be read.
        if memory.read_exact_at(&mut octets, at(begin)).is_ok() {
            // The help of `meikyo farm`, which every process has, names them in backquotes.
            let is_text = |of: &&[u8]| of[0] != b'`' && of[1..] == *text.as_bytes();
            found += octets.windows(text.len() + 1).filter(is_text).count();
        }
    }
    found
}

#[test]
fn passwords_are_gone_from_memory_when_keys_are_made() {
    let farm = Farm::start_with(300, &["--snmp-version", "3"]);
    let child = farm.measure(&[]).stdout(Stdio::null()).spawn().unwrap();
    let mut measurement = Process(child);
    farm.wait_for("polls", 600, is_ok);
    let pid = measurement.0.id();
    // The name of the user is in every request: what is searched can be found.
    assert!(occurrences(pid, "meikyo") > 0);
    assert_eq!(PASSWORDS.map(|password| occurrences(pid, password)), [0, 0]);
    interrupt(&measurement.0);
    assert!(measurement.0.wait().unwrap().success());
}
