//! Reports of recordings whose rows are written by hand: what they must say is known.

use meikyo_profile::report::{self, By, Of, Report, ReportOptions};
use meikyo_profile::symbols::Unnamed;
use meikyo_profile::tables::{cgroups, mappings, samples, threads};
use meikyo_profile::wanted::Wanted;

use crate::written::Written;

/// The report: name or file of each line, and its samples.
fn report(written: Written, by: By) -> (Report, Vec<(String, u64)>) {
    report_of(written, by, Wanted::EVERYTHING)
}

fn report_of(mut written: Written, by: By, wanted: Wanted) -> (Report, Vec<(String, u64)>) {
    let report =
        report::report(&written.recording(), &ReportOptions { by, wanted, of: Of::Samples })
            .unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    let lines = report.lines.iter().map(|line| (line.name.clone(), line.own)).collect();
    (report, lines)
}

fn lines(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
    expected.iter().map(|(name, own)| ((*name).to_owned(), *own)).collect()
}

#[test]
fn a_thread_is_called_as_the_thread_that_began_it_whatever_order_rows_come_in() {
    let mut written = Written::new();
    // CPU 1 was read before CPU 0: what began thread 9 was named in a row behind its own.
    let words = [("host", "a"), ("event", "fork")];
    let numbers = [("pid", 7), ("tid", 9), ("parent_pid", 7), ("parent_tid", 8)];
    written.row(threads::NAME, 20, &words, &numbers);
    written.thread("a", 10, ("there", "main"), [7, 7]);
    written.thread("a", 11, ("name", "worker"), [7, 8]);
    written.thread("a", 30, ("name", "own"), [7, 9]);
    for time in [25, 26, 35] {
        written.sample("a", time, [7, 9, 0x1000]);
    }
    assert_eq!(report(written, By::Thread).1, lines(&[("worker", 2), ("own", 1)]));
}

#[test]
fn the_same_number_is_another_process_on_each_host_and_in_each_recording_that_is_continued() {
    let mut written = Written::new();
    for (host, time, name) in [("a", 10, "first"), ("b", 10, "other"), ("a", 50, "second")] {
        written.thread(host, time, ("there", name), [7, 7]);
        written.mapping(host, time, 7, &format!("/none/{name}"));
        written.sample(host, time + 1, [7, 7, 0x1800]);
    }
    // Nothing is known to be mapped there in the second recording.
    written.mapping("a", 10, 8, "/none/gone");
    written.thread("a", 50, ("there", "x"), [8, 8]);
    written.sample("a", 60, [8, 8, 0x1800]);
    let (report, found) = report(written, By::File);
    let one = |name: &str| (format!("/none/{name}"), 1);
    let expected = [one("first"), one("other"), one("second"), ("[unknown]".to_owned(), 1)];
    let sorted = |mut lines: Vec<(String, u64)>| {
        lines.sort();
        lines
    };
    assert_eq!(sorted(found), sorted(expected.to_vec()));
    assert_eq!(report.unnamed, [(Unnamed::NotMapped, 1), (Unnamed::NoFile, 3)]);
}

#[test]
fn what_a_compiler_made_is_of_the_host_and_the_recording_that_it_was_read_in() {
    let mut written = Written::new();
    for (host, end, name) in [("a", 20, "old"), ("b", 20, "other"), ("a", 60, "new")] {
        written.thread(host, end - 10, ("there", "x"), [7, 7]);
        written.made(host, end, 7, (0x5000, name));
        written.sample(host, end - 5, [7, 7, 0x500f]);
        written.sample(host, end - 4, [7, 7, 0x5010]);
    }
    // Another recording goes on, and nothing was read of it yet.
    written.thread("a", 65, ("there", "x"), [7, 7]);
    written.sample("a", 70, [7, 7, 0x500f]);
    let expected = lines(&[("[unknown]", 4), ("new", 1), ("old", 1), ("other", 1)]);
    assert_eq!(report(written, By::Function).1, expected);
}

#[test]
fn addresses_of_another_kernel_are_counted_as_such_and_not_named() {
    let mut written = Written::new();
    let begin = 0xffff_ffff_8100_0000;
    let numbers = [("address", begin), ("size_bytes", 0x20_0000)];
    let words = [("host", "a"), ("path", "[kernel]"), ("build_id", "ab")];
    written.row(mappings::NAME, 10, &words, &numbers);
    written.sample("a", 11, [7, 7, begin + 16]);
    let (report, found) = report(written, By::Function);
    assert_eq!(found, lines(&[("[unknown]", 1)]));
    assert_eq!(
        (&*report.lines[0].file, &report.unnamed),
        ("[kernel]", &vec![(Unnamed::OtherKernel, 1)])
    );
}

#[test]
fn samples_of_many_hosts_are_counted_by_host_and_those_of_one_alone() {
    let both = || {
        let mut written = Written::new();
        written.thread("a", 10, ("there", "x"), [7, 7]);
        written.thread("b", 10, ("there", "y"), [7, 7]);
        for (host, time) in [("a", 11), ("b", 12), ("b", 13)] {
            written.sample(host, time, [7, 7, 0x1000]);
        }
        written
    };
    assert_eq!(report(both(), By::Host).1, lines(&[("b", 2), ("a", 1)]));
    for (host, expected) in [("b", vec![("y", 2)]), ("c", vec![]), ("?", vec![("y", 2), ("x", 1)])]
    {
        let wanted = Wanted { hosts: vec![host.to_owned()], ..Wanted::EVERYTHING };
        assert_eq!(report_of(both(), By::Process, wanted).1, lines(&expected), "{host}");
    }
}

#[test]
fn samples_are_chosen_by_what_ran_and_counted_by_job() {
    let both = || {
        let mut written = Written::new();
        for (pid, cgroup, name, path) in [
            (7, 1, "solver", "/system.slice/slurmstepd.scope/job_12/step_0/user/task_0"),
            (8, 2, "nginx", "/system.slice/nginx.service"),
            (9, 3, "bash", "/"),
        ] {
            written.thread("a", 10, ("there", name), [pid, pid]);
            let words = [("host", "a"), ("path", path)];
            written.row(cgroups::NAME, 10, &words, &[("cgroup", cgroup)]);
            for at in 0..pid {
                let numbers = [
                    ("cpu", at % 2),
                    ("pid", pid),
                    ("tid", pid),
                    ("address", 1),
                    ("cgroup", cgroup),
                ];
                written.row(samples::NAME, 11, &[("host", "a")], &numbers);
            }
        }
        written
    };
    let jobs = lines(&[("[unknown]", 9), ("unit:nginx.service", 8), ("slurm:12", 7)]);
    assert_eq!(report(both(), By::Job).1, jobs);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let of_job = Wanted { jobs: names(&["slurm:*"]), ..Wanted::EVERYTHING };
    assert_eq!(report_of(both(), By::Process, of_job).1, lines(&[("solver", 7)]));
    let of_name = Wanted { processes: names(&["ng?nx", "none"]), ..Wanted::EVERYTHING };
    assert_eq!(report_of(both(), By::Process, of_name.clone()).1, lines(&[("nginx", 8)]));
    let of_cpu = Wanted { cpus: [1].into(), threads: names(&["ba*"]), ..Wanted::EVERYTHING };
    assert_eq!(report_of(both(), By::Process, of_cpu).1, lines(&[("bash", 4)]));
    let both_names = Wanted { pids: [7].into(), ..of_name };
    assert_eq!(report_of(both(), By::Process, both_names).1, lines(&[]));
}
