//! Reports of recordings whose rows are written by hand: what they must say is known.

use meikyo_profile::report::{self, By, Of, Report, ReportOptions};
use meikyo_profile::symbols::Unnamed;
use meikyo_profile::tables::{cgroups, file_symbols, mappings, samples, summaries, threads};
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

/// After a boot the number of a control group is that of another one.
#[test]
fn a_number_of_a_control_group_means_what_it_meant_then_and_only_what_is_surely_seen_is_shown() {
    let mut written = Written::new();
    for (time, job) in [(10, "job_1"), (100, "job_2")] {
        let path = format!("/slurm/uid_1000/{job}/step_0");
        let words = [("host", "a"), ("path", path.as_str())];
        written.row(cgroups::NAME, time, &words, &[("cgroup", 5)]);
    }
    // Two of the first job, one that another CPU took when the second was met, four of the second, and
    // eight that nobody wrote a control group down of.
    for (time, cgroup, count) in [(9, 5, 1), (50, 5, 1), (99, 5, 1), (101, 5, 4), (50, 6, 8)] {
        for _ in 0..count {
            let numbers = [("cpu", 0), ("pid", 7), ("tid", 7), ("address", 1), ("cgroup", cgroup)];
            written.row(samples::NAME, time, &[("host", "a")], &numbers);
        }
    }
    let recording = written.recording();
    let options = |wanted| ReportOptions { by: By::Job, wanted, of: Of::Samples };
    let seen = |visible: &[&str]| {
        let visible: Vec<_> = visible.iter().map(|name| (*name).to_owned()).collect();
        let wanted = Wanted { visible, ..Wanted::EVERYTHING };
        let mut moments = 0;
        meikyo_profile::moments::moments(&recording, &wanted, |moment| {
            assert_eq!((moment.host, moment.cpu), ("a", 0));
            moments += 1;
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
        let report = report::report(&recording, &options(wanted)).unwrap();
        assert_eq!(moments, report.samples);
        report.lines.into_iter().map(|line| (line.name, line.own)).collect::<Vec<_>>()
    };
    let all = lines(&[("[unknown]", 8), ("slurm:2", 4), ("slurm:1", 3)]);
    assert_eq!(seen(&[]), all);
    assert_eq!(seen(&["slurm:1"]), lines(&[("slurm:1", 2)]));
    assert_eq!(seen(&["slurm:2"]), lines(&[("slurm:2", 4)]));
    assert_eq!(seen(&["slurm:1", "slurm:2"]), lines(&[("slurm:2", 4), ("slurm:1", 3)]));
    assert_eq!(seen(&["user:1000"]), lines(&[("slurm:2", 4), ("slurm:1", 3)]));
    assert_eq!(seen(&["user:100"]), lines(&[]));
}

#[test]
fn summaries_are_counted_by_function_and_what_is_in_no_place_is_unknown() {
    let mut written = Written::new();
    written.thread("a", 1, ("there", "solver"), [7, 7]);
    written.made("a", 1, 7, (0x5000, "hot"));
    written.made("a", 1, 7, (0x6000, "warm"));
    for (time, all, places) in
        [(10, 1_000, [(0x5001, 700), (0x6001, 200)]), (11, 500, [(0x5002, 300), (0x6001, 200)])]
    {
        written.row(summaries::NAME, time, &[("host", "a")], &[("cpu", 3), ("samples", all)]);
        for (address, samples) in places {
            let numbers = [("cpu", 3), ("pid", 7), ("address", address), ("samples", samples)];
            written.row(summaries::NAME, time, &[("host", "a")], &numbers);
        }
    }
    written.sample("a", 10, [7, 7, 0x5001]);
    let recording = written.recording();
    let counted = |wanted: Wanted| {
        let options = ReportOptions { by: By::Function, wanted, of: Of::Summaries };
        let report = report::report(&recording, &options).unwrap();
        report.lines.into_iter().map(|line| (line.name, line.own)).collect::<Vec<_>>()
    };
    let all = lines(&[("hot", 1_000), ("warm", 400), ("[unknown]", 100)]);
    assert_eq!(counted(Wanted::EVERYTHING), all);
    let of_pid = Wanted { pids: [7].into(), ..Wanted::EVERYTHING };
    assert_eq!(counted(of_pid), lines(&[("hot", 1_000), ("warm", 400)]));
    let of_cpu = Wanted { cpus: [2].into(), ..Wanted::EVERYTHING };
    assert_eq!(counted(of_cpu), lines(&[]));
}

/// Functions of a file that this host does not have, and of a kernel that it does not run.
#[test]
fn functions_are_named_as_a_host_told_them_where_the_file_is_not_here() {
    let mut written = Written::new();
    written.thread("a", 1, ("there", "solver"), [7, 7]);
    written.mapping("a", 1, 7, "/none/solver");
    let begin = 0xffff_ffff_8100_0000;
    let numbers = [("address", begin), ("size_bytes", 0x1000)];
    let words = [("host", "a"), ("path", "[kernel]"), ("build_id", "cd")];
    written.row(mappings::NAME, 1, &words, &numbers);
    for (build_id, offset, size, name) in [
        ("ab", 0x100, 0x10, "outer"),
        ("ab", 0x200, 0, "inner"),
        ("ef", 0x100, 0x10, "of another file"),
        ("cd", 0x300, 0, "do_idle"),
    ] {
        let numbers = [("offset_bytes", offset), ("size_bytes", size)];
        let words = [("host", "b"), ("build_id", build_id), ("name", name)];
        written.row(file_symbols::NAME, 50, &words, &numbers);
    }
    let addresses = [0x1108, 0x1108, 0x1208, 0x1110, 0x1008, begin + 0x3f0, begin + 0x10];
    addresses.into_iter().for_each(|address| written.sample("a", 2, [7, 7, address]));
    let (report, found) = report(written, By::Function);
    let expected = [("[unknown]", 3), ("outer", 2), ("do_idle", 1), ("inner", 1)];
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|(name, own)| (std::cmp::Reverse(*own), name.clone()));
    // Two of the program and one of the kernel lie before or behind every function that was told.
    let unknown: u64 =
        found.iter().filter(|(name, _)| name == "[unknown]").map(|(_, own)| own).sum();
    let named: Vec<_> = found.into_iter().filter(|(name, _)| name != "[unknown]").collect();
    assert_eq!(unknown, expected[0].1);
    assert_eq!(named, lines(&expected[1..]));
    assert_eq!(report.unnamed, [(Unnamed::NoSymbol, 3)]);
}
