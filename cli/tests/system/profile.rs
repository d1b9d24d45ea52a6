//! `meikyo profile`: a recording of a real program, read by every verb that reads recordings, and what
//! is said to those who may not sample.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::running::{Process, meikyo, text};

/// A program that keeps a CPU busy for a moment, which every machine has.
const BUSY: [&str; 3] = ["sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"];

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// Records the program; `None`, which is told, where this user may not sample.
fn recorded(out: &Path) -> Option<Value> {
    let output = meikyo()
        .args(["profile", "record", "--budget", "none", "--json", "--out"])
        .arg(out)
        .arg("--")
        .args(BUSY)
        .output()
        .unwrap();
    if text(&output).contains("sampling is not permitted") {
        meikyo_testing::skipped("sampling needs root or CAP_PERFMON");
        return None;
    }
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    Some(document(&output))
}

#[test]
fn a_profile_is_a_recording_that_every_verb_reads() {
    let dir = tempfile::tempdir().unwrap();
    let Some(summary) = recorded(dir.path()) else { return };
    assert_eq!(summary["schema"], "meikyo.profile.record/1");
    assert_eq!(summary["lost"], 0);
    let samples = summary["samples"].as_u64().unwrap();
    assert!(samples > 20, "{summary}");

    let run = |words: &[&str]| {
        let output = meikyo().args(words).arg(dir.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", text(&output));
        output
    };
    let info = document(&run(&["recording", "info", "--json"]));
    let tables = info["tables"].as_array().unwrap();
    let table = tables.iter().find(|table| table["table"] == "samples").unwrap();
    assert_eq!(table["rows"], samples);
    run(&["recording", "check"]);
    let queried =
        meikyo().args(["query", "--json"]).arg(dir.path()).arg("samples").output().unwrap();
    let rows = String::from_utf8(queried.stdout).unwrap();
    assert_eq!(rows.lines().count(), usize::try_from(samples).unwrap());

    let report = document(&run(&["profile", "report", "--json", "--by", "process"]));
    assert_eq!(
        (&report["samples"], &report["lines"][0]["name"]),
        (&summary["samples"], &"sh".into())
    );
    let top = document(&run(&["profile", "top", "--json", "--last", "1h"]));
    assert_eq!(top["samples"], samples);
    let both = [dir.path(), dir.path()];
    let diff = meikyo().args(["profile", "diff", "--json"]).args(both).output().unwrap();
    let diff = document(&diff);
    let lines = diff["lines"].as_array().unwrap();
    assert!(lines.iter().all(|line| line["percent_before"] == line["percent_after"]), "{diff}");

    // As Parquet files, the same samples give the same report.
    run(&["recording", "compact"]);
    let compacted = document(&run(&["profile", "report", "--json", "--by", "process"]));
    assert_eq!(compacted, report);
}

#[test]
fn callers_by_eh_frame_are_found_and_what_that_takes_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| {
        let mut command = meikyo();
        command.args(["profile", "record", "--budget", "none", "--out"]).arg(dir.path());
        command.args(words).arg("--").args(BUSY).output().unwrap()
    };
    let output = run(&["--stacks=eh-frame", "--json"]);
    if text(&output).contains("sampling is not permitted") {
        return meikyo_testing::skipped("sampling needs root or CAP_PERFMON");
    }
    let summary = document(&output);
    for what in ["cpu_ns", "copied_bytes", "table_bytes"] {
        assert!(summary["unwinding"][what].as_u64().unwrap() > 0, "{what} of {summary}");
    }
    let said =
        String::from_utf8(run(&["--stacks=eh-frame", "--stack-copy", "512B"]).stdout).unwrap();
    assert!(said.contains("callers by .eh_frame: "), "{said}");
    assert_eq!(document(&run(&["--stacks", "--json"]))["unwinding"], Value::Null);
    let refused = run(&["--stacks=eh-frame", "--stack-copy", "7B"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(text(&refused).contains("a multiple of 8 B"), "{}", text(&refused));
}

#[test]
fn time_off_the_cpu_is_recorded_on_request_and_reported_by_who_waited() {
    let dir = tempfile::tempdir().unwrap();
    let record = |words: &[&str]| {
        let mut command = meikyo();
        command.args(["profile", "record", "--budget", "none", "--json", "--out"]).arg(dir.path());
        command.args(words).args(["--", "sh", "-c", "sleep 0.2; sleep 0.2; :"]).output().unwrap()
    };
    let output = record(&["--off-cpu"]);
    if text(&output).contains("sampling is not permitted") {
        return meikyo_testing::skipped("sampling needs root or CAP_PERFMON");
    }
    let summary = document(&output);
    let ns = |of: &Value| of.as_u64().unwrap();
    // Both of them sleep, and the shell waits for both.
    assert!(ns(&summary["off_cpu"]["waiting_ns"]) >= 800_000_000, "{summary}");
    assert_eq!(summary["off_cpu"]["lost"], 0);
    let report = |words: &[&str]| {
        let output =
            meikyo().args(["profile", "report"]).args(words).arg(dir.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        output
    };
    let by_process = document(&report(&["--off-cpu", "--by", "process", "--json"]));
    for name in ["sleep", "sh"] {
        let lines = by_process["lines"].as_array().unwrap().iter();
        let found: u64 =
            lines.filter(|line| line["name"] == name).map(|line| ns(&line["off_cpu_ns"])).sum();
        assert!((400_000_000..2_000_000_000).contains(&found), "{name}: {by_process}");
    }
    let said = String::from_utf8(report(&["--off-cpu"]).stdout).unwrap();
    assert!(said.contains("s off the CPU in "), "{said}");
    let refused = record(&["--off-cpu", "--cgroup", "/sys/fs/cgroup"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
}

#[test]
fn the_program_ends_as_it_would_and_a_profile_is_asked_for_where_there_is_none() {
    let dir = tempfile::tempdir().unwrap();
    if recorded(dir.path()).is_none() {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let output = meikyo()
        .args(["profile", "record", "--out"])
        .arg(out.path())
        .args(["--", "sh", "-c", "exit 7"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", text(&output));
    let out = dir.path().join("none");
    let missing = meikyo()
        .args(["profile", "record", "--pid", "4294967295", "--out"])
        .arg(&out)
        .output()
        .unwrap();
    assert!(!out.exists());
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing).contains("there is no process 4294967295"), "{}", text(&missing));
    let nothing = meikyo().args(["profile", "record"]).output().unwrap();
    assert_eq!(nothing.status.code(), Some(2));
    assert!(text(&nothing).contains("--all"), "{}", text(&nothing));
}

#[test]
fn who_may_not_sample_is_told_what_it_needs() {
    let dir = tempfile::tempdir().unwrap();
    if recorded(dir.path()).is_none() {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(out.path(), everybody).unwrap();
    // Root takes all of its rights away first.
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--clear-groups", "--inh-caps=-all"]);
    let Ok(output) = command
        .args([env!("CARGO_BIN_EXE_meikyo"), "profile", "record", "--all", "--for", "1s", "--out"])
        .arg(out.path())
        .output()
    else {
        meikyo_testing::lacking("setpriv, which Debian has in util-linux");
        return;
    };
    let said = text(&output);
    if said.contains("setpriv:") || said.contains("failed to execute") {
        meikyo_testing::skipped("this user cannot become one with fewer rights");
        return;
    }
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    if level.trim().parse::<i32>().unwrap() < 1 {
        meikyo_testing::skipped("everybody may sample here");
        return;
    }
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("sampling is not permitted") && said.contains("cap_perfmon"), "{said}");
}

#[test]
fn a_program_does_not_run_where_its_profile_cannot_be_written() {
    let dir = tempfile::tempdir().unwrap();
    let [out, mark] = ["out", "mark"].map(|name| dir.path().join(name));
    std::fs::write(&out, "a file").unwrap();
    let output = meikyo()
        .args(["profile", "record", "--out"])
        .arg(&out)
        .args(["--", "touch"])
        .arg(&mark)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(!mark.exists());
    std::fs::remove_file(&out).unwrap();
    // Where sampling cannot begin it does not run either.
    let output = meikyo()
        .args(["profile", "record", "--clock", "cycles", "--out"])
        .arg(&out)
        .args(["--", "touch"])
        .arg(&mark)
        .output()
        .unwrap();
    assert_eq!(mark.exists(), output.status.code() == Some(0), "{}", text(&output));
}

#[test]
fn nothing_found_is_an_answer_of_no_and_a_reversed_span_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    if recorded(dir.path()).is_none() {
        return;
    }
    let run = |words: &[&str]| {
        let output = meikyo().arg("profile").args(words).arg(dir.path()).output().unwrap();
        (output.status.code(), text(&output))
    };
    let (code, said) = run(&["report", "--pid", "4194305"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("there are no samples of process 4194305"), "{said}");
    let (code, said) = run(&["report", "--from", "-1s", "--to", "-2s"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("is not before `--to`"), "{said}");
    let both = [dir.path(), dir.path()];
    let diff = meikyo().args(["profile", "diff", "--pid", "4194305"]).args(both).output().unwrap();
    assert_eq!(diff.status.code(), Some(1), "{}", text(&diff));
    // A process that sleeps all the while.
    let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
    let out = tempfile::tempdir().unwrap();
    let nothing = meikyo()
        .args(["profile", "record", "--for", "100ms", "--out"])
        .arg(out.path())
        .args(["--pid", &sleeper.id().to_string()])
        .output()
        .unwrap();
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert_eq!(nothing.status.code(), Some(1), "{}", text(&nothing));
    assert!(text(&nothing).contains("nothing was sampled"), "{}", text(&nothing));
}

#[test]
fn an_export_is_whole_and_never_over_a_file_that_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let profile = dir.path().join("profile");
    let Some(_) = recorded(&profile) else { return };
    let file = dir.path().join("samples.txt");
    let export = |more: &[&str], out: &Path| {
        let mut command = meikyo();
        command.args(["profile", "export", "--format", "perf-script"]).arg(&profile).args(more);
        command.arg("--out").arg(out).output().unwrap()
    };
    // What is not exported leaves no file.
    let nothing = export(&["--process", "no-such-program"], &file);
    assert_eq!(nothing.status.code(), Some(1), "{}", text(&nothing));
    assert!(!file.exists());

    let first = export(&[], &file);
    assert_eq!(first.status.code(), Some(0), "{}", text(&first));
    let whole = std::fs::read(&file).unwrap();
    assert!(!whole.is_empty());
    let second = export(&[], &file);
    assert_eq!(second.status.code(), Some(2), "{}", text(&second));
    assert!(text(&second).contains("samples.txt` exists already"), "{}", text(&second));
    assert_eq!(std::fs::read(&file).unwrap(), whole);

    // A device is written to as it is.
    let device = export(&[], Path::new("/dev/null"));
    assert_eq!(device.status.code(), Some(0), "{}", text(&device));
    let left: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|of| of.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn too_few_descriptors_are_told_with_what_raises_them() {
    let dir = tempfile::tempdir().unwrap();
    if recorded(dir.path()).is_none() {
        return;
    }
    let mut sleepers: Vec<_> =
        (0..50).map(|_| Command::new("sleep").arg("60").spawn().unwrap()).collect();
    let pids = sleepers.iter().flat_map(|it| ["--pid".to_owned(), it.id().to_string()]);
    let record = |limits: &str| {
        let line = format!("{limits}; exec \"$@\"");
        Command::new("sh")
            .args(["-c", &line, "sh", env!("CARGO_BIN_EXE_meikyo"), "profile", "record"])
            .args(["--for", "100ms", "--out"])
            .arg(dir.path())
            .args(pids.clone())
            .output()
            .unwrap()
    };
    // At least 50 events; a soft limit is raised, a hard one is said.
    let [raised, refused] = ["ulimit -S -n 40", "ulimit -n 40"].map(record);
    for sleeper in &mut sleepers {
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
    }
    assert_eq!(raised.status.code(), Some(1), "{}", text(&raised));
    assert!(text(&raised).contains("nothing was sampled"), "{}", text(&raised));
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(text(&refused).contains("ulimit -n"), "{}", text(&refused));
}

#[test]
fn capabilities_suffice_and_what_each_lack_costs_is_said() {
    let dir = tempfile::tempdir().unwrap();
    if recorded(dir.path()).is_none() {
        return;
    }
    // Of a machine on which nothing runs there are no samples.
    let _busy = Process(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap());
    let record = |capabilities: &str| {
        let out = tempfile::tempdir().unwrap();
        let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(out.path(), everybody).unwrap();
        let set = format!("-all,{capabilities}");
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--clear-groups"]);
        for kind in ["--inh-caps", "--ambient-caps", "--bounding-set"] {
            command.args([kind, &set]);
        }
        command.args([env!("CARGO_BIN_EXE_meikyo"), "profile", "record", "--all", "--json"]);
        command.args(["--budget", "none", "--for", "300ms", "--out"]).arg(out.path()).output()
    };
    let Ok(all) = record("+perfmon,+syslog,+sys_ptrace") else {
        meikyo_testing::lacking("setpriv, which Debian has in util-linux");
        return;
    };
    let said = text(&all);
    if said.contains("setpriv:") || said.contains("failed to execute") {
        meikyo_testing::skipped("this user cannot become one with these capabilities");
        return;
    }
    assert_eq!(all.status.code(), Some(0), "{said}");
    assert!(!said.contains("CAP_SYSLOG"), "{said}");
    let [with_all, with_one] = [Ok(all), record("+perfmon")].map(|output| output.unwrap());
    assert_eq!(with_one.status.code(), Some(0), "{}", text(&with_one));
    assert!(text(&with_one).contains("CAP_SYSLOG"), "{}", text(&with_one));
    assert!(text(&with_one).contains("CAP_SYS_PTRACE"), "{}", text(&with_one));
    let unreadable =
        [with_all, with_one].map(|output| document(&output)["processes_unreadable"].as_u64());
    assert!(unreadable[0] <= unreadable[1], "{unreadable:?}");
}
