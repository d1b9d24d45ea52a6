//! `meikyo measure --realtime`: what it takes of the kernel, and what not.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;

use crate::running::{Farm, PATIENCE, Process, is_ok};
use meikyo_units::WallTime;

/// Policy and priority of a thread (`proc_pid_stat(5)`, fields 41 and 40).
fn scheduling(task: &Path) -> (u32, u32) {
    let stat = fs::read_to_string(task.join("stat")).unwrap();
    let behind_name = stat.rsplit(") ").next().unwrap();
    let field = |number: usize| behind_name.split(' ').nth(number - 3).unwrap().parse().unwrap();
    (field(41), field(40))
}

/// Stacks of threads that were started by the standard library, and how many of them are locked.
fn stacks(process: &Path) -> (usize, usize) {
    let smaps = fs::read_to_string(process.join("smaps")).unwrap();
    let (mut all, mut locked, mut is_stack) = (0, 0, false);
    for line in smaps.lines() {
        if let Some(size) = line.strip_prefix("Size:") {
            is_stack = size.trim() == "2048 kB";
        } else if let Some(flags) = line.strip_prefix("VmFlags:").filter(|_| is_stack) {
            all += 1;
            locked += usize::from(flags.split(' ').any(|flag| flag == "lo"));
        }
    }
    (all, locked)
}

#[test]
fn realtime_is_one_thread_and_memory_that_was_there_at_the_start() {
    let farm = Farm::start(2);
    let mut measure =
        Process(farm.measure(&["--realtime"]).stderr(Stdio::piped()).spawn().unwrap());
    let deadline = WallTime::now() + PATIENCE;
    while !farm.rows("polls").iter().any(is_ok) {
        if measure.0.try_wait().unwrap().is_some() {
            let mut said = String::new();
            measure.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            assert!(said.contains("not permitted"), "{said}");
            meikyo_testing::skipped("real-time priority or locked memory is not permitted");
            return;
        }
        assert!(WallTime::now() < deadline, "nothing is measured");
    }
    let process = Path::new("/proc").join(measure.0.id().to_string());
    let status = fs::read_to_string(process.join("status")).unwrap();
    let locked = status.lines().find_map(|line| line.strip_prefix("VmLck:")).unwrap();
    let locked_kb: u64 = locked.trim_end_matches("kB").trim().parse().unwrap();
    assert!(locked_kb > 1_024, "{locked_kb} kB are locked");
    let mut fifo = Vec::new();
    for task in fs::read_dir(process.join("task")).unwrap() {
        let task = task.unwrap().path();
        let name = fs::read_to_string(task.join("comm")).unwrap().trim().to_owned();
        match scheduling(&task) {
            (1, priority) => fifo.push((name, priority)),
            (_, priority) => assert_eq!(priority, 0, "{name}"),
        }
    }
    assert_eq!(fifo, [("collector".to_owned(), 40)]);
    // What a compaction takes must go back to the system: nothing is locked that came later.
    let (all, later) = stacks(&process);
    assert!(all >= 3 && later == 0, "{later} of {all} stacks are locked");
}
