//! Callers by `.eh_frame`: a program without frame pointers says by its text who called whom.

use std::collections::BTreeMap;
use std::process::Command;

use meikyo_profile::export::{ExportOptions, Format, Hashing, export};
use meikyo_profile::sampler::{CallChains, SamplerOptions};
use meikyo_profile::tables;
use meikyo_profile::wanted::Wanted;
use meikyo_recording::{Recording, Selection};

use crate::programs::{Program, compiled};
use crate::recordings::{options, recorded};
use crate::{PLAIN, may_sample};

/// How often `descend` calls itself, with the call from `compare`.
const DEPTH: usize = 20;

fn by_eh_frame(copied: u16) -> SamplerOptions {
    SamplerOptions { stacks: Some(CallChains::EhFrame { copied }), on_exec: true, ..PLAIN }
}

/// Functions from the innermost out, by how many samples have them.
type Stacks = BTreeMap<Vec<String>, u64>;

/// Those in text as `perf script` writes it.
fn folded(text: &str) -> Stacks {
    let mut found = Stacks::new();
    for paragraph in text.split("\n\n") {
        let lines = paragraph.lines().filter(|line| line.starts_with(['\t', ' ']));
        let names = lines.filter_map(|line| {
            let (_, rest) = line.trim_start().split_once(' ')?;
            let name = rest.rsplit_once(" (").map_or(rest, |(name, _)| name);
            // Parts of functions that the compiler made have its own endings.
            Some(name.split(['+', '.']).next().unwrap_or(name).to_owned())
        });
        let names: Vec<String> = names.collect();
        if !names.is_empty() {
            *found.entry(names).or_default() += 1;
        }
    }
    found
}

fn stacks(recording: &Recording) -> Stacks {
    let mut out = Vec::new();
    let (wanted, format, hashing) = (Wanted::EVERYTHING, Format::PerfScript, Hashing::default());
    let told = export(recording, &ExportOptions { wanted, format, hashing }, &mut out).unwrap();
    assert!(told.problems.is_empty(), "{:?}", told.problems);
    folded(&String::from_utf8(out).unwrap())
}

/// Samples in `spin`, and those of them whose callers are as expected.
fn in_spin(stacks: &Stacks, is_expected: impl Fn(&[String]) -> bool) -> (u64, u64) {
    let of_spin = stacks.iter().filter(|(names, _)| names.first().is_some_and(|of| of == "spin"));
    of_spin.fold((0, 0), |(all, right), (names, count)| {
        (all + count, right + if is_expected(&names[1..]) { *count } else { 0 })
    })
}

/// Whether callers are `descend` as often as it calls itself, `compare`, something of libc, `sort_once`
/// and `main`.
fn are_those_of_sort(callers: &[String]) -> bool {
    let Some((descend, rest)) = callers.split_at_checked(DEPTH) else { return false };
    let of_libc = rest.iter().position(|name| name == "sort_once");
    descend.iter().all(|name| name == "descend")
        && rest.first().is_some_and(|name| name == "compare")
        && of_libc.is_some_and(|at| at > 1 && rest.get(at + 1).is_some_and(|name| name == "main"))
}

#[test]
fn callers_are_found_without_frame_pointers_through_libc_and_as_deep_as_they_are() {
    if !may_sample() {
        return;
    }
    let Some(program) = compiled(Program::Frames) else { return };
    let path = program.path().to_str().unwrap();
    let taken = recorded(&[path, "600", "sort"], &options(by_eh_frame(8_192), None), |_| {});
    let unwinding = taken.counts.unwinding.unwrap();
    let stacks = stacks(&taken.open());
    let (all, right) = in_spin(&stacks, are_those_of_sort);
    // The others are of the beginning of the process, which takes long on a busy CPU.
    assert!(all > 100 && all * 2 > taken.counts.samples, "{all} of {:?}", taken.counts);
    assert_eq!(right, all, "{stacks:#?}");
    // The beginning and the end of a process run in the dynamic loader.
    assert!(unwinding.not_followed * 20 <= taken.counts.samples, "{unwinding:?}");
    assert_eq!(unwinding.copy_ended, 0);
    assert!(unwinding.copied_bytes > 0 && unwinding.table_bytes > 0 && unwinding.cpu.get() > 0);
    // By frame pointers `main` is hardly found: this is not what the kernel would have done anyway.
    let pointers = SamplerOptions { stacks: Some(CallChains::FramePointers), ..by_eh_frame(8) };
    let taken = recorded(&[path, "300", "sort"], &options(pointers, None), |_| {});
    let stacks = self::stacks(&taken.open());
    let (all, right) = in_spin(&stacks, are_those_of_sort);
    assert!(all > 50 && right * 10 < all, "{right} of {all}");
    assert_eq!(taken.counts.unwinding, None);
}

/// A CPU is read before others that have older things to tell of the same process.
#[test]
fn a_program_is_followed_that_is_executed_on_another_cpu_than_the_one_before_it() {
    if !may_sample() {
        return;
    }
    if !Command::new("taskset")
        .args(["-c", "1", "taskset", "-c", "0", "true"])
        .status()
        .is_ok_and(|ended| ended.success())
    {
        meikyo_testing::lacking("CPUs 0 and 1");
        return;
    }
    let Some(program) = compiled(Program::Frames) else { return };
    let path = program.path().to_str().unwrap();
    for (first, last) in [("0", "1"), ("1", "0")] {
        let words = ["taskset", "-c", first, "taskset", "-c", last, path, "200", "sort"];
        let taken = recorded(&words, &options(by_eh_frame(8_192), None), |_| {});
        let stacks = stacks(&taken.open());
        let (all, right) = in_spin(&stacks, are_those_of_sort);
        assert!(all > 50 && right == all, "CPU {first}, then {last}: {right} of {all}");
    }
}

#[test]
fn who_was_interrupted_by_a_signal_is_found_behind_its_handler() {
    if !may_sample() {
        return;
    }
    let Some(program) = compiled(Program::Frames) else { return };
    let path = program.path().to_str().unwrap();
    let taken = recorded(&[path, "400", "signal"], &options(by_eh_frame(8_192), None), |_| {});
    let stacks = stacks(&taken.open());
    let (all, right) = in_spin(&stacks, |callers| {
        let interrupted = callers.iter().position(|name| name == "interrupted");
        callers.first().is_some_and(|name| name == "handler")
            && interrupted.is_some_and(|at| callers.get(at + 1).is_some_and(|name| name == "main"))
    });
    assert!(all > 50 && right == all, "{right} of {all}: {stacks:#?}");
}

#[test]
fn stacks_that_go_on_behind_what_was_copied_are_counted_and_right_as_far_as_they_go() {
    if !may_sample() {
        return;
    }
    let Some(program) = compiled(Program::Frames) else { return };
    let path = program.path().to_str().unwrap();
    let taken = recorded(&[path, "300", "sort"], &options(by_eh_frame(1_024), None), |_| {});
    let recording = taken.open();
    let (all, right) = in_spin(&stacks(&recording), |callers| {
        (5..DEPTH).contains(&callers.len()) && callers.iter().all(|name| name == "descend")
    });
    assert!(all > 50 && right == all, "{right} of {all}");
    let unwinding = taken.counts.unwinding.unwrap();
    assert!(unwinding.copy_ended >= all, "{unwinding:?}");
    let mut losses = BTreeMap::new();
    for rows in recording.scan(&Selection::all("losses")).unwrap() {
        let rows = rows.unwrap();
        let (loss, count) =
            (tables::losses::LOSS.values_in(&rows), tables::losses::COUNT.values_in(&rows));
        let (loss, count) = (loss.unwrap(), count.unwrap());
        for row in 0..rows.num_rows() {
            *losses.entry(loss.get(row).unwrap().to_owned()).or_insert(0) +=
                count.get(row).unwrap();
        }
    }
    assert_eq!(losses.get("copy_ended"), Some(&unwinding.copy_ended), "{losses:?}");
}

/// Shares of stacks as `perf` finds them from the same program, where it is here.
#[test]
fn the_callers_are_those_that_perf_finds() {
    if !may_sample() {
        return;
    }
    let Some(program) = compiled(Program::Frames) else { return };
    let path = program.path().to_str().unwrap();
    let data = program.path().with_extension("data");
    // Without that perf has been seen to abort over build IDs when it ends.
    let mut perf = Command::new("perf");
    perf.args([
        "record",
        "-q",
        "--buildid-mmap",
        "-e",
        "cpu-clock",
        "-F",
        "1000",
        "--call-graph",
        "dwarf,8192",
    ]);
    let Ok(recorded_by_perf) = perf.arg("-o").arg(&data).args([path, "300", "sort"]).output()
    else {
        meikyo_testing::lacking("perf, which Debian has in linux-perf");
        return;
    };
    assert!(recorded_by_perf.status.success(), "{recorded_by_perf:?}");
    let mut script = Command::new("perf");
    script.args(["script", "-F", "ip,sym,dso", "--no-inline", "-i"]).arg(&data);
    let by_perf = folded(&String::from_utf8(script.output().unwrap().stdout).unwrap());
    let taken = recorded(&[path, "300", "sort"], &options(by_eh_frame(8_192), None), |_| {});
    let ours = stacks(&taken.open());
    // Named functions only, and not those before `main`: names of libc's own ones depend on its symbols.
    let most = |stacks: &Stacks| {
        let in_spin =
            stacks.iter().filter(|(names, _)| names.first().is_some_and(|of| of == "spin"));
        let (names, _) = in_spin.max_by_key(|(_, count)| **count).unwrap();
        let (own, libc): (Vec<_>, Vec<_>) = names.iter().cloned().partition(|name| {
            ["spin", "descend", "compare", "sort_once", "main"].contains(&&**name)
        });
        (own, libc.len())
    };
    assert_eq!(most(&ours), most(&by_perf));
}
