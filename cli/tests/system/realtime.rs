//! `meikyo measure --realtime`: what it takes of the kernel, and what not.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;

use crate::running::{Farm, PATIENCE, Process, is_ok};
use meikyo_units::WallTime;

/// Policy and priority of a thread (`proc_pid_stat(5)`, fields 41 and 40); `None` after it has ended.
fn scheduling(task: &Path) -> Option<(u32, u32)> {
    let stat = fs::read_to_string(task.join("stat")).ok()?;
    let behind_name = stat.rsplit(") ").next().unwrap();
    let field = |number: usize| behind_name.split(' ').nth(number - 3).unwrap().parse().unwrap();
    Some((field(41), field(40)))
}

/// Whether what a thread waits on top of is locked; `None` while it runs, and after it has ended.
fn has_locked_stack(process: &Path, task: &Path) -> Option<bool> {
    // Number, six arguments, stack pointer, program counter (`proc(5)`).
    let call = fs::read_to_string(task.join("syscall")).ok()?;
    let pointer = call.trim_end().rsplit(' ').nth(1)?.strip_prefix("0x")?;
    let pointer = u64::from_str_radix(pointer, 16).unwrap();
    let smaps = fs::read_to_string(process.join("smaps")).unwrap();
    let mut is_in = false;
    for line in smaps.lines() {
        let (first, rest) = line.split_once(' ').unwrap();
        if let Some((from, to)) = first.split_once('-') {
            let address = |text| u64::from_str_radix(text, 16).unwrap();
            is_in = (address(from)..address(to)).contains(&pointer);
        } else if first == "VmFlags:" && is_in {
            return Some(rest.split(' ').any(|flag| flag == "lo"));
        }
    }
    None
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
    // What a compaction takes must go back to the system: nothing is locked that came later.
    let mut stacks = BTreeMap::new();
    while stacks.len() < 3 {
        assert!(WallTime::now() < deadline, "threads never wait: {stacks:?}");
        let mut fifo = Vec::new();
        for task in fs::read_dir(process.join("task")).unwrap() {
            let task = task.unwrap().path();
            // A thread may have ended since it was listed.
            let (Ok(name), Some(scheduling)) =
                (fs::read_to_string(task.join("comm")), scheduling(&task))
            else {
                continue;
            };
            match scheduling {
                (1, priority) => fifo.push((name.trim().to_owned(), priority)),
                (_, priority) => assert_eq!(priority, 0, "{name}"),
            }
            let is_main = task.file_name() == process.file_name();
            if let Some(locked) = has_locked_stack(&process, &task).filter(|_| !is_main) {
                stacks.insert(task, locked);
            }
        }
        assert_eq!(fifo, [("collector".to_owned(), 40)]);
    }
    assert!(stacks.values().all(|locked| !locked), "{stacks:?}");
}
