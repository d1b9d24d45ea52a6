//! Recordings of real programs: what is reported is what the programs did.

use std::collections::BTreeSet;
use std::process::Command;

use meikyo_profile::recorder::{Counts, Recorder, RecorderOptions};
use meikyo_profile::report::{self, By, Of, Report, ReportOptions};
use meikyo_profile::sampler::{CallChains, SamplerOptions, Target};
use meikyo_profile::tables::{all, rates};
use meikyo_profile::wanted::Wanted;
use meikyo_profile::{HeldProgram, STREAM};
use meikyo_recording::{
    Kind, PackedRows, Recording, Selection, StreamOptions, StreamWriter, WhenFull,
};
use meikyo_units::Nanos;
use tempfile::TempDir;

use crate::programs::{Program, compiled};
use crate::{PLAIN, may_sample};

const BY_FUNCTION: ReportOptions =
    ReportOptions { by: By::Function, wanted: Wanted::EVERYTHING, of: Of::Samples };

pub(crate) struct Recorded {
    directory: TempDir,
    pub(crate) counts: Counts,
    period: Nanos,
}

impl Recorded {
    pub(crate) fn open(&self) -> Recording {
        Recording::open(self.directory.path()).unwrap()
    }

    pub(crate) fn report(&self, options: &ReportOptions) -> Report {
        let report = report::report(&self.open(), options).unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        report
    }
}

pub(crate) fn options(sampling: SamplerOptions, budget_ppm: Option<u64>) -> RecorderOptions {
    let host = "node001".to_owned();
    RecorderOptions {
        host,
        sampling,
        whole_microseconds: false,
        budget_ppm,
        retell_every: None,
        flight: None,
    }
}

/// Records a program from its begin to its end; `beside` is called once it waits to be released.
pub(crate) fn recorded(
    words: &[&str],
    options: &RecorderOptions,
    beside: impl FnOnce(u32),
) -> Recorded {
    let words: Vec<_> = words.iter().map(|&word| word.to_owned()).collect();
    let mut program = HeldProgram::start(&words).unwrap();
    let pid = program.pid();
    let target = Target::Processes(vec![pid]);
    let mut recorder = Recorder::open(&target, Some(&[pid]), options).unwrap();
    recorder.begin().unwrap();
    beside(pid);
    program.release().unwrap();
    written(recorder, || program.ended().unwrap().is_some())
}

/// Writes what is recorded until something is over.
fn written(mut recorder: Recorder, mut is_over: impl FnMut() -> bool) -> Recorded {
    let directory = tempfile::tempdir().unwrap();
    let stream =
        StreamOptions { compact: false, when_full: WhenFull::Wait, ..StreamOptions::COLLECTOR };
    let mut writer =
        StreamWriter::open(directory.path(), Kind::Measured, STREAM, all(), stream).unwrap();
    let mut sink = |block: PackedRows| writer.packed(block).unwrap();
    while !is_over() {
        if recorder.wait(Nanos::from_millis(20), &[]) {
            recorder.turn(&mut sink).unwrap();
        }
    }
    recorder.finish(&mut sink).unwrap();
    let (counts, period) = (recorder.counts(), recorder.period());
    writer.close().unwrap();
    Recorded { directory, counts, period }
}

fn on_exec(stacks: Option<CallChains>) -> SamplerOptions {
    SamplerOptions { stacks, on_exec: true, ..PLAIN }
}

/// Samples in a function of the report, its own and with what it called, in millionths of all.
fn share(report: &Report, name: &str) -> (u64, u64) {
    let line = report.lines.iter().find(|line| line.name == name);
    let ppm = |count: u64| count * 1_000_000 / report.samples;
    line.map_or((0, 0), |line| (ppm(line.own), ppm(line.total)))
}

#[test]
fn hot_functions_have_the_share_that_the_program_measured_itself() {
    if !may_sample() {
        return;
    }
    let Some(program) = compiled(Program::Calls) else { return };
    let told = program.path().with_extension("told");
    let line = format!("exec {} 1500 > {}", program.path().display(), told.display());
    let recorded = recorded(
        &["sh", "-c", &line],
        &options(on_exec(Some(CallChains::FramePointers)), None),
        |_| {},
    );
    let measured: u64 = std::fs::read_to_string(told).unwrap().trim().parse().unwrap();
    let report = recorded.report(&BY_FUNCTION);
    assert_eq!(report.samples, recorded.counts.samples);
    // 1,500 ms at 1 kHz; a sample is late where the machine does something else.
    assert!((500..=1_700).contains(&report.samples), "{} samples", report.samples);
    let [longer, shorter, work] = ["longer", "shorter", "work"].map(|name| share(&report, name));
    let of_both = longer.0 * 1_000_000 / (longer.0 + shorter.0);
    assert!(of_both.abs_diff(measured) < 50_000, "{of_both} sampled, {measured} measured");
    assert!(longer.0 + shorter.0 > 900_000, "{longer:?} {shorter:?}");
    assert!(work.0 < 50_000 && work.1 > 900_000, "{work:?} in `work` and below");
    let unnamed: u64 = report.unnamed.iter().map(|(_, count)| count).sum();
    assert!(unnamed * 100 <= report.samples, "{unnamed} of {}", report.samples);
    let by_process = recorded.report(&ReportOptions { by: By::Process, ..BY_FUNCTION });
    assert_eq!(by_process.lines[0].name, "calls");
}

#[test]
fn processes_that_live_for_a_moment_are_named_wherever_they_were_loaded() {
    if !may_sample() {
        return;
    }
    let Some(program) = compiled(Program::Calls) else { return };
    let line = format!(
        "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do {} 40 >/dev/null; done",
        program.path().display()
    );
    let recorded = recorded(&["sh", "-c", &line], &options(on_exec(None), None), |_| {});
    let report = recorded.report(&BY_FUNCTION);
    let [longer, shorter] = ["longer", "shorter"].map(|name| share(&report, name).0);
    assert!(longer + shorter > 600_000, "{longer} and {shorter} of {}", report.samples);
    // Each of them had an address space of its own.
    let mapped = Recording::open(recorded.directory.path()).unwrap();
    let mut addresses = BTreeSet::new();
    for rows in mapped.scan(&Selection::all("mappings")).unwrap() {
        let rows = rows.unwrap();
        let (path, address) = (
            meikyo_profile::tables::mappings::PATH.values_in(&rows).unwrap(),
            meikyo_profile::tables::mappings::ADDRESS.values_in(&rows).unwrap(),
        );
        let own = |row: &usize| path.get(*row) == program.path().to_str();
        addresses.extend((0..rows.num_rows()).filter(own).map(|row| address.get(row)));
    }
    assert!(addresses.len() > 1 || !is_randomised(), "{addresses:?}");
}

/// Whether the kernel loads programs at random addresses.
fn is_randomised() -> bool {
    let setting = std::fs::read_to_string("/proc/sys/kernel/randomize_va_space");
    setting.is_ok_and(|setting| setting.trim() != "0")
}

#[test]
fn perf_finds_the_same_functions_in_the_same_run() {
    if !may_sample() {
        return;
    }
    let Some(program) = compiled(Program::Calls) else { return };
    if Command::new("perf").arg("--version").output().is_err() {
        meikyo_testing::lacking("perf, which Debian has in linux-perf");
        return;
    }
    let data = program.path().with_extension("data");
    let mut perf = None;
    let path = program.path().to_str().unwrap();
    let recorded = recorded(&[path, "1500"], &options(on_exec(None), None), |pid| {
        let mut command = Command::new("perf");
        command.args(["record", "-q", "-e", "cpu-clock", "-F", "1000", "-o"]).arg(&data);
        command.args(["-p", &pid.to_string()]);
        perf = Some(command.spawn().unwrap());
        wait_until(|| std::fs::metadata(&data).is_ok_and(|facts| facts.len() > 0));
    });
    assert!(perf.take().unwrap().wait().unwrap().success());
    let report = recorded.report(&BY_FUNCTION);
    let mut script = Command::new("perf");
    let script = script.args(["script", "-F", "ip,sym", "-i"]).arg(&data).output().unwrap();
    let said = String::from_utf8_lossy(&script.stderr);
    let script = String::from_utf8(script.stdout).unwrap();
    // A line is an address and the name of a function.
    let symbols: Vec<_> =
        script.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert!(symbols.len() > 500, "perf took {} samples: {said}", symbols.len());
    for name in ["longer", "shorter"] {
        let count = symbols.iter().filter(|symbol| **symbol == name).count();
        let theirs = u64::try_from(count * 1_000_000 / symbols.len()).unwrap();
        let ours = share(&report, name).0;
        assert!(ours.abs_diff(theirs) < 50_000, "{name}: {ours} here, {theirs} by perf");
    }
}

/// Waits for a condition, at most half a minute.
fn wait_until(mut holds: impl FnMut() -> bool) {
    let begin = std::time::Instant::now();
    while !holds() {
        assert!(begin.elapsed().as_secs() < 30, "the condition did not come true");
        std::thread::yield_now();
    }
}

#[test]
fn a_budget_lowers_the_rate_and_the_recording_says_so() {
    if !may_sample() {
        return;
    }
    let Some(program) = compiled(Program::Matrix) else { return };
    let path = program.path().to_str().unwrap();
    // A sample takes more than a ten-thousandth of a millisecond on every machine that there is.
    let recorded = recorded(&[path, "300"], &options(on_exec(None), Some(100)), |_| {});
    assert!(recorded.period > PLAIN.period, "{}", recorded.period);
    let mut periods = Vec::new();
    for rows in recorded.open().scan(&Selection::all(rates::NAME)).unwrap() {
        let rows = rows.unwrap();
        let (reason, period) =
            (rates::REASON.values_in(&rows).unwrap(), rates::PERIOD_NS.values_in(&rows).unwrap());
        let row = |row| (reason.get(row).unwrap().to_owned(), period.get(row).unwrap());
        periods.extend((0..rows.num_rows()).map(row));
    }
    assert_eq!(periods[0].0, "start");
    assert_eq!(periods.last().unwrap(), &("end".to_owned(), recorded.period.get()));
    let expected = 300_000_000 / periods[0].1 + 2;
    assert!(recorded.counts.samples <= expected, "{:?}", recorded.counts);
}

#[test]
fn nothing_runs_in_a_group_and_nothing_is_sampled() {
    if !may_sample() {
        return;
    }
    let Some(program) = compiled(Program::Calls) else { return };
    let path = program.path().to_str().unwrap();
    let held = HeldProgram::start(&[path.to_owned(), "10".to_owned()]).unwrap();
    let target = Target::Processes(vec![held.pid()]);
    let mut recorder = Recorder::open(&target, Some(&[held.pid()]), &options(PLAIN, None)).unwrap();
    assert!(!recorder.interrupts_idle());
    recorder.begin().unwrap();
    let mut blocks = Vec::new();
    // It is stopped all the while.
    while !recorder.wait(Nanos::from_millis(50), &[]) {}
    recorder.turn(&mut |block| blocks.push(block)).unwrap();
    recorder.finish(&mut |block| blocks.push(block)).unwrap();
    assert_eq!(recorder.counts().samples, 0);
    assert!(blocks.iter().all(|block| block.table() != "samples"));
    assert!(blocks.iter().any(|block| block.table() == "mappings"));
}

#[test]
fn what_begins_while_everything_is_opened_has_names() {
    if !may_sample() {
        return;
    }
    let Some(program) = compiled(Program::Calls) else { return };
    let mut recorder = Recorder::open(&Target::Everything, None, &options(PLAIN, None)).unwrap();
    // What was there has been read; this one is there before anything is sampled.
    let mut child = Command::new(program.path()).arg("400").spawn().unwrap();
    let pid = child.id();
    wait_until(|| {
        let path = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap();
        path == program.path() && runs(pid) > 0
    });
    recorder.begin().unwrap();
    let recorded = written(recorder, || child.try_wait().unwrap().is_some());
    let pids = BTreeSet::from([pid.into()]);
    let of_it = ReportOptions { wanted: Wanted { pids, ..Wanted::EVERYTHING }, ..BY_FUNCTION };
    let report = recorded.report(&of_it);
    let [longer, shorter] = ["longer", "shorter"].map(|name| share(&report, name).0);
    assert!(
        report.samples > 50 && longer + shorter > 800_000,
        "{:?}, lost {:?}",
        report.lines,
        report.losses
    );
}

/// CPU time that a process has used, in ticks.
fn runs(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let behind_name = stat.rsplit(')').next().unwrap_or_default();
    behind_name.split_whitespace().nth(11).map_or(0, |ticks| ticks.parse().unwrap())
}

#[test]
fn a_process_that_is_named_twice_is_sampled_once() {
    if !may_sample() {
        return;
    }
    let Some(program) = compiled(Program::Calls) else { return };
    let words = [program.path().to_str().unwrap(), "600"];
    let mut held = HeldProgram::start(&words).unwrap();
    let pids = [held.pid(); 3];
    let target = Target::Processes(pids.to_vec());
    let mut recorder = Recorder::open(&target, Some(&pids[..1]), &options(PLAIN, None)).unwrap();
    recorder.begin().unwrap();
    held.release().unwrap();
    let recorded = written(recorder, || held.ended().unwrap().is_some());
    // 600 ms of CPU time at 1 kHz, and what the program uses before its clock begins.
    assert!((200..=750).contains(&recorded.counts.samples), "{:?}", recorded.counts);
}

#[test]
fn threads_that_come_and_go_while_they_are_listed_are_sampled_once() {
    if !may_sample() {
        return;
    }
    let Some(program) = compiled(Program::Threads) else { return };
    let mut child = Command::new(program.path()).arg("1500").spawn().unwrap();
    let pid = child.id();
    wait_until(|| runs(pid) > 5);
    let target = Target::Processes(vec![pid]);
    let mut recorder = Recorder::open(&target, Some(&[pid]), &options(PLAIN, None)).unwrap();
    let before = 10 * runs(pid);
    recorder.begin().unwrap();
    let recorded = written(recorder, || child.try_wait().unwrap().is_some());
    let (samples, expected) = (recorded.counts.samples, 1_500_u64.saturating_sub(before));
    // A thread that ends does so before its next sample; with samples taken twice it would be twice
    // as many.
    let range = expected / 2..=expected * 5 / 4 + 50;
    assert!(range.contains(&samples), "{samples} samples of {expected} ms");
    let report = recorded.report(&BY_FUNCTION);
    assert!(share(&report, "busy").0 > 700_000, "{:?}", report.lines);
}
