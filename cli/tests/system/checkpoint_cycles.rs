//! `meikyo checkpoint run --as-is` over and over: hosts die in turn or at any moment, answer late or not at all, and in the
//! end the program's results are those of a run that nobody disturbs, to the last bit.
//!
//! The short form of the test of chance runs with the other tests; `./x soak as-is` goes on for longer.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::checkpoint_as_is::Protected;
use crate::checkpoint_run::{PATIENCE, Running, container, kill, try_container};
use crate::running::text;

/// Those of the first two have the program's ranks, the third keeps parity alone.
const HOSTS: [&str; 3] = ["node2", "node1", "node3"];

/// Programs that are paced until they are to hurry.
#[derive(Debug, Clone, Copy)]
enum Program {
    Stencil,
    Gradient,
}

impl Program {
    /// On a rank for each of two hosts, which are named where there are any.
    fn command(self, mpi: &str, hosts: bool) -> Vec<String> {
        let launcher = format!("mpiexec.{mpi}");
        let mut words = vec![launcher.as_str(), "-n", "2"];
        if hosts {
            words.extend([if mpi == "mpich" { "-hosts" } else { "--host" }, "node1,node2"]);
        }
        words.extend(match self {
            Self::Stencil => ["./stencil", "20000", "1500", "80000", "plate"],
            Self::Gradient => ["./gradient", "200", "600", "100000", "plate"],
        });
        words.into_iter().map(str::to_owned).collect()
    }
}

/// What a program says and computes when nobody disturbs it.
fn undisturbed(protected: &Protected, program: Program) -> (Vec<u8>, Vec<u8>) {
    let hurry = protected.site.path("hurry");
    fs::write(&hurry, []).unwrap();
    let said = protected.undisturbed(&program.command(protected.mpi, false));
    let plate = fs::read(protected.site.path("plate")).unwrap();
    fs::remove_file(protected.site.path("plate")).unwrap();
    fs::remove_file(hurry).unwrap();
    (said, plate)
}

/// Waits until the program computes and a checkpoint of that is whole.
pub(crate) fn begin(protected: &Protected, running: &mut Running) {
    let report = protected.site.path("job/output");
    protected.wait(running, || fs::metadata(&report).is_ok_and(|data| data.len() > 0));
    let newest = protected.newest();
    protected.newer_than(newest + 1, running);
}

/// Loses hosts in turn, each once a checkpoint is whole that is newer than the one that was gone back to: the first as soon as
/// there is any.
fn lose(protected: &Protected, running: &mut Running, times: usize) {
    let job = protected.site.path("job");
    for time in 0..times {
        let from = protected.went_on_from();
        let newest = protected.newer_than(from.last().copied().unwrap_or(0), running);
        kill(container(&job, HOSTS[time % HOSTS.len()]));
        goes_on(protected, running, from.len(), newest);
    }
}

/// Waits until the program goes on once more than so often; from this checkpoint at least, which was committed.
pub(crate) fn goes_on(protected: &Protected, running: &mut Running, times: usize, newest: u64) {
    let mut from = Vec::new();
    protected.wait(running, || {
        from = protected.went_on_from();
        from.len() > times
    });
    assert!(from[times] >= newest, "{from:?}, {newest}: {}", protected.site.said());
}

/// A program loses hosts so often, then hurries to its end; its results are those of one that lost none.
fn cycles(mpi: &'static str, program: Program, times: usize) {
    let sources = ["stencil", "gradient"];
    let Some(protected) = Protected::new(mpi, &sources) else { return };
    let (said, plate) = undisturbed(&protected, program);
    let spares = times.to_string();
    let options = ["--spares", &spares, "--every", "200ms"];
    let mut running = protected.run(&options, &program.command(mpi, true));
    lose(&protected, &mut running, times);
    fs::write(protected.site.path("hurry"), []).unwrap();
    protected.ends_as(running, &said, &plate);
}

#[test]
fn with_mpich_programs_go_on_ten_times() {
    cycles("mpich", Program::Stencil, 5);
    cycles("mpich", Program::Gradient, 5);
}

#[test]
fn with_open_mpi_programs_go_on_ten_times() {
    cycles("openmpi", Program::Stencil, 4);
    cycles("openmpi", Program::Gradient, 3);
    hpcc(3);
}

/// Programs are captured from their first moment on, and lose a host as soon as there is a checkpoint: what is captured is whole,
/// whatever launchers and libraries are just doing.
fn a_start_is_gone_back_to(mpi: &'static str, times: usize) {
    let Some(protected) = Protected::new(mpi, &["stencil"]) else { return };
    let (said, plate) = undisturbed(&protected, Program::Stencil);
    for time in 0..times {
        let options = ["--spares", "1", "--every", "100ms"];
        let mut running = protected.run(&options, &Program::Stencil.command(mpi, true));
        let newest = protected.newer_than(0, &mut running);
        kill(container(&protected.site.path("job"), HOSTS[time % 2]));
        goes_on(&protected, &mut running, 0, newest);
        fs::write(protected.site.path("hurry"), []).unwrap();
        protected.ends_as(running, &said, &plate);
        for file in ["hurry", "plate"] {
            fs::remove_file(protected.site.path(file)).unwrap();
        }
        let deadline = Instant::now() + PATIENCE;
        while fs::remove_dir_all(protected.site.path("job")).is_err() {
            assert!(Instant::now() < deadline);
        }
    }
}

#[test]
fn the_start_of_a_program_with_mpich_is_good_for_going_back_to() {
    a_start_is_gone_back_to("mpich", 2);
}

#[test]
fn the_start_of_a_program_with_open_mpi_is_good_for_going_back_to() {
    a_start_is_gone_back_to("openmpi", 2);
}

/// Has much that is the same on no two pages, and does nothing.
const STILL: &str = "
import os, signal
own = b''.join(i.to_bytes(8, 'little') * 512 for i in range(1, 3_000))
print('still', flush=True)
signal.pause()
";

/// What a process has in its memory, by the number of the page.
type Memory = BTreeMap<u64, Vec<u8>>;

/// Octets of a page.
const PAGE: usize = 4_096;

/// Whether a process is part of a program that is captured: it descends from whoever keeps that together.
fn is_kept(process: i32) -> bool {
    let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    if String::from_utf8_lossy(&line).contains("\0checkpoint\0role\0keep\0") {
        return true;
    }
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok());
    parent.is_some_and(|parent: i32| parent > 1 && is_kept(parent))
}

/// The memory of the processes of the program on these hosts, but for what the kernel gives them, and code. By host, and by what
/// a process is called there.
fn memories(job: &Path) -> BTreeMap<(&'static str, u32), Memory> {
    let mut all = BTreeMap::new();
    for host in HOSTS {
        for process in processes_of(job, host) {
            let of =
                |file: &str| PathBuf::from(format!("/proc/{}/{file}", process.as_raw_nonzero()));
            let status = fs::read_to_string(of("status")).unwrap_or_default();
            let names = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
            let name = names.and_then(|names| names.split_whitespace().last()?.parse().ok());
            // Others are Meikyo's own, and come and go.
            let Some(name) = name.filter(|_| is_kept(process.as_raw_nonzero().get())) else {
                continue;
            };
            // One that has ended, and whose end nobody has taken notice of, has none.
            let (maps, memory) = (fs::read_to_string(of("maps")), fs::File::open(of("mem")));
            let (Ok(maps), Ok(memory)) = (maps, memory) else { continue };
            let pages = all.entry((host, name)).or_insert_with(Memory::new);
            for line in maps.lines() {
                let (range, behind) = line.split_once(' ').unwrap();
                if !behind.starts_with('r') || behind[..4].contains('x') || behind.contains("[v") {
                    continue;
                }
                let (from, to) = range.split_once('-').unwrap();
                let [from, to] = [from, to].map(|text| u64::from_str_radix(text, 16).unwrap());
                let mut octets = vec![0; usize::try_from(to - from).unwrap()];
                // What lies behind the end of a file cannot be read.
                if memory.read_exact_at(&mut octets, from).is_ok() {
                    let numbers = from / 4_096..;
                    pages.extend(numbers.zip(octets.chunks(PAGE).map(<[u8]>::to_vec)));
                }
            }
        }
    }
    all
}

/// Pages that are not what they were. The C library and the kernel keep a few numbers of a thread that are others on another
/// processor (restartable sequences).
fn changed(before: &BTreeMap<(&'static str, u32), Memory>, job: &Path) -> Vec<String> {
    let after = memories(job);
    let mut changed = Vec::new();
    for (process, pages) in before {
        let now = after.get(process);
        for (number, page) in pages {
            let now = now.and_then(|now| now.get(number));
            let differing = now.map_or(PAGE, |now| {
                if now == page { 0 } else { now.iter().zip(page).filter(|(a, b)| a != b).count() }
            });
            if differing > 64 {
                changed.push(format!("{process:?}: page {number:x} in {differing} octets"));
            }
        }
    }
    changed
}

#[test]
fn memory_is_the_same_octet_for_octet_on_every_host_whichever_is_lost() {
    let Some(protected) = Protected::new("mpich", &[]) else { return };
    fs::write(protected.site.path("still.py"), STILL).unwrap();
    let words = ["mpiexec.mpich", "-n", "3", "/usr/bin/python3", "still.py"].map(str::to_owned);
    let mut running = protected.run(&["--spares", "1", "--every", "2s"], &words);
    let job = protected.site.path("job");
    let said = || fs::read_to_string(job.join("output")).unwrap_or_default();
    protected.wait(&mut running, || said().matches("still").count() == 3);
    let newest = protected.newest();
    protected.newer_than(newest + 1, &mut running);
    // Captures put code of their own into processes for a moment.
    let mut before = memories(&job);
    protected.wait(&mut running, || {
        let is_still = changed(&before, &job).is_empty();
        before = memories(&job);
        is_still
    });
    let pages: usize = before.values().map(BTreeMap::len).sum();
    assert!(before.len() >= 9 && pages > 9_000, "{} processes, {pages} pages", before.len());
    let newest = protected.newest();
    kill(container(&job, "node2"));
    goes_on(&protected, &mut running, 0, newest);
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let changed = changed(&before, &job);
        if changed.is_empty() {
            break;
        }
        assert!(Instant::now() < deadline, "{changed:#?}");
    }
}

/// A small input of HPC Challenge on two ranks.
const HPCC_INPUT: &str = "\
HPLinpack benchmark input file
a test
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
1300         Ns
1            # of NBs
80           NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
1            Ps
2            Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
##### the rest is for PTRANS ######
0            Number of additional problem sizes for PTRANS
1200         values of N
0            number of additional blocking sizes for PTRANS
40           values of NB
";

/// What HPC Challenge found, without what it measured: verdicts, residuals and numbers of errors. That of DGEMM is of numbers
/// that it chooses anew each time.
fn findings(report: &str) -> Vec<String> {
    let tells = ["PASSED", "FAILED", "residual", "errors", "||Ax-b||", "Success", "max(|x-x0|)"];
    let tell = |line: &&str| tells.iter().any(|word| line.contains(word));
    // PTRANS tells of CPU time where it was long enough to be measured.
    let is_chance = |line: &str| line.starts_with("Scaled residual") || line.starts_with("CPU");
    let lines = report.lines().filter(tell).filter(|line| !is_chance(line));
    let finding = |line: &str| match line.split_once("PASSED") {
        // PTRANS has sizes, the time and the rate in the lines of its verdicts, with the residual behind.
        Some((before, behind)) if line.starts_with("WALL") => {
            let sizes: Vec<&str> = before.split_whitespace().take(7).collect();
            let residual = behind.split_whitespace().last().unwrap_or_default();
            format!("{} PASSED {residual}", sizes.join(" "))
        }
        _ => line.to_owned(),
    };
    lines.map(finding).collect()
}

/// Debian's HPC Challenge, which is built for Open MPI, loses hosts so often.
fn hpcc(times: usize) {
    let Some(protected) = Protected::new("openmpi", &[]) else { return };
    let hpcc = Path::new("/usr/bin/hpcc");
    if !hpcc.exists() {
        return meikyo_testing::lacking("`hpcc` is not there");
    }
    let site = &protected.site;
    fs::write(site.path("hpccinf.txt"), HPCC_INPUT).unwrap();
    let report = site.path("hpccoutf.txt");
    let command = |more: &[&str]| -> Vec<String> {
        let words = [&["mpiexec.openmpi", "-n", "2"], more, &["/usr/bin/hpcc"]].concat();
        words.into_iter().map(str::to_owned).collect()
    };
    protected.undisturbed(&command(&[]));
    let expected = findings(&fs::read_to_string(&report).unwrap());
    assert!(expected.iter().any(|line| line.contains("PASSED")), "{expected:?}");
    fs::remove_file(&report).unwrap();
    let spares = times.to_string();
    // It opens its report anew for each of its parts.
    let options = ["--spares", &spares, "--every", "700ms", "--save-files", "hpccoutf.txt"];
    let mut running = protected.run(&options, &command(&["--host", "node1,node2"]));
    lose(&protected, &mut running, times);
    let ended = running.0.wait().unwrap();
    assert!(ended.success(), "{ended}: {}", site.said());
    assert_eq!(findings(&fs::read_to_string(&report).unwrap()), expected);
}

/// All processes of a container, as this machine numbers them.
fn processes_of(job: &Path, host: &str) -> Vec<Pid> {
    let space = |process: &str| fs::read_link(format!("/proc/{process}/ns/pid")).ok();
    let outer = container(job, host).as_raw_nonzero().to_string();
    let children = fs::read_to_string(format!("/proc/{outer}/task/{outer}/children")).unwrap();
    let own: PathBuf = space(children.split_whitespace().next().unwrap()).unwrap();
    let names = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name());
    let inside = names.filter_map(|name| {
        let name = name.to_str()?;
        let number = name.parse().ok().and_then(Pid::from_raw)?;
        (space(name)? == own).then_some(number)
    });
    inside.collect()
}

/// Stops a host as a whole; the processes that are to be let go on.
fn freeze(job: &Path, host: &str) -> BTreeSet<i32> {
    let mut frozen = BTreeSet::new();
    loop {
        let new: Vec<Pid> = processes_of(job, host)
            .into_iter()
            .filter(|process| frozen.insert(process.as_raw_nonzero().get()))
            .collect();
        if new.is_empty() {
            return frozen;
        }
        // One may have ended.
        new.iter().for_each(|process| kill_process(*process, Signal::STOP).unwrap_or_default());
    }
}

fn thaw(frozen: &BTreeSet<i32>) {
    for process in frozen.iter().filter_map(|process| Pid::from_raw(*process)) {
        // One may have ended.
        kill_process(process, Signal::CONT).unwrap_or_default();
    }
}

#[test]
fn a_host_that_answers_again_is_not_replaced_and_one_that_stays_silent_is() {
    let Some(protected) = Protected::new("openmpi", &["stencil"]) else { return };
    let (said, plate) = undisturbed(&protected, Program::Stencil);
    let command = Program::Stencil.command("openmpi", true);
    // Whoever ends hosts fails once, and notes what had been said when it was asked.
    let fence = protected.site.path("fence");
    let asked = protected.site.path("asked");
    let [script, tried] = [&fence, &asked].map(|path| path.to_str().unwrap());
    fs::write(&fence, format!("echo \"$1\" >> {tried}\n[ $(wc -l < {tried}) = 2 ]\n")).unwrap();
    let fence_with = format!("sh {script}");
    let options =
        ["--spares", "1", "--every", "3s", "--replace-after", "2s", "--fence-with", &fence_with];
    let mut running = protected.run(&options, &command);
    let job = protected.site.path("job");
    begin(&protected, &mut running);
    let newest = protected.newest();
    let frozen = freeze(&job, "node2");
    protected.wait(&mut running, || protected.site.said().contains("node2 does not answer"));
    thaw(&frozen);
    protected.wait(&mut running, || protected.site.said().contains("node2 answers again"));
    // It is a host as before: captures go on.
    protected.newer_than(newest, &mut running);
    let told = protected.site.said();
    assert!(!told.contains("takes its place") && protected.went_on_from().is_empty(), "{told}");
    let newest = protected.newest();
    freeze(&job, "node2");
    goes_on(&protected, &mut running, 0, newest);
    fs::write(protected.site.path("hurry"), []).unwrap();
    protected.ends_as(running, &said, &plate);
    let told = protected.site.said();
    let places = [
        "ended with exit status: 1; no spare takes the place of node2 before it succeeds",
        "the host node2 is fenced",
        "the host node2 is gone, and spare1 takes its place",
    ]
    .map(|said| told.find(said));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} in {told}");
    assert_eq!(fs::read_to_string(&asked).unwrap(), "node2\nnode2\n");
}

#[test]
fn a_rehearsal_loses_a_host_and_says_how_long_that_takes() {
    let Some(protected) = Protected::new("mpich", &["stencil"]) else { return };
    let command = Program::Stencil.command("mpich", true);
    let rehearse = |kill: &str| {
        let mut words = vec!["rehearse", "--kill", kill, "--after", "500ms", "--json"];
        words.extend(["--criu", &protected.criu, "--"]);
        words.extend(command.iter().map(String::as_str));
        protected.site.output(&words)
    };
    let output = rehearse("node2");
    assert!(output.status.success(), "{}", text(&output));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let seconds = |name: &str| told[name].as_f64().unwrap();
    assert_eq!((&told["runs_again"], &told["killed"]), (&true.into(), &"node2".into()), "{told}");
    let (noticed, data, running) = (seconds("noticed_s"), seconds("data_s"), seconds("running_s"));
    assert!(0.0 < noticed && noticed < data && data < running, "{told}");
    assert!(told["checkpoint"].as_u64() >= Some(1), "{told}");
    let refused = rehearse("node4");
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused).contains("`node4` is no host"), "{}", text(&refused));
}

/// xorshift64*: what happens follows from the seed, but for how fast the machine is.
fn next(random: &mut u64, below: u64) -> u64 {
    *random ^= *random >> 12;
    *random ^= *random << 25;
    *random ^= *random >> 27;
    (random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % below
}

/// Kills of the short form.
const KILLS: u64 = 4;

/// Most kills of one job in the long form.
const KILLS_MAX: u64 = 30;

/// When a host is killed.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// So many milliseconds after the program goes on.
    After(u64),
    /// While CRIU writes.
    Written,
    /// While an image is packed and read by the daemon.
    Packed,
    /// While hosts agree on whether it is whole.
    Committed,
    /// At any time, and what takes its place once more so many milliseconds after that: while hosts meet, rebuild and bring
    /// the program back.
    BroughtBack(u64),
    /// All hosts at once, with whoever runs the job.
    All,
}

impl Moment {
    fn by_chance(random: &mut u64) -> Self {
        match next(random, 6) {
            0 => Self::After(next(random, 600)),
            1 => Self::Written,
            2 => Self::Packed,
            3 => Self::Committed,
            4 => Self::BroughtBack(next(random, 900)),
            _ => Self::All,
        }
    }

    /// Waits until it has come.
    fn wait(self, protected: &Protected, running: &mut Running) {
        let is_lying = |what: &str| {
            let hosts = disks(protected).into_iter();
            hosts.map(|disk| disk.join("capture").join(what)).any(|path| path.exists())
        };
        let is_open = || protected.statuses().iter().any(|status| status.open.is_some());
        let deadline = Instant::now() + PATIENCE;
        match self {
            Self::After(span) => pass(span),
            Self::Written | Self::Packed | Self::Committed => loop {
                let is_there = match self {
                    Self::Written => is_lying("content") && !is_lying("image"),
                    Self::Packed => is_lying("image"),
                    _ => is_open(),
                };
                if is_there {
                    return;
                }
                let ended = running.0.try_wait().unwrap();
                assert!(ended.is_none(), "it has ended: {}", protected.site.said());
                assert!(Instant::now() < deadline, "{}", protected.site.said());
                std::thread::park_timeout(Duration::from_millis(1));
            },
            Self::BroughtBack(_) | Self::All => {}
        }
    }
}

/// Lets so many milliseconds pass: what happens next is to come at any moment.
fn pass(span: u64) {
    let until = Instant::now() + Duration::from_millis(span);
    while Instant::now() < until {
        std::thread::park_timeout(until - Instant::now());
    }
}

/// The disks of the hosts that the job has now.
fn disks(protected: &Protected) -> Vec<PathBuf> {
    let record = fs::read(protected.site.path("job/job.json")).unwrap_or_default();
    // It may just be written.
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap_or_default();
    let hosts = record["hosts"].as_array().into_iter().flatten();
    let names = hosts.filter_map(|host| host["name"].as_str());
    names.map(|name| protected.site.path("job/disks").join(name)).collect()
}

/// A program loses hosts so often, whenever chance says; more than one at a time only where all come back with their disks.
fn lose_by_chance(mpi: &'static str, program: Program, kills: u64, random: &mut u64) -> u64 {
    let Some(protected) = Protected::new(mpi, &["stencil", "gradient"]) else { return 0 };
    let (said, plate) = undisturbed(&protected, program);
    let options = ["--spares", "99", "--every", "150ms"];
    let mut running = protected.run(&options, &program.command(mpi, true));
    let job = protected.site.path("job");
    if next(random, 2) == 0 {
        begin(&protected, &mut running);
    } else {
        // The first checkpoints are of the start: of launchers that start the program on other hosts, and of connections.
        pass(next(random, 1_500));
        protected.newer_than(0, &mut running);
    }
    // Who was replaced and has written no checkpoint of its own yet: no other may be lost until then.
    let mut weak: Option<(&str, u64)> = None;
    let mut killed = 0;
    while killed < kills {
        weak = weak.filter(|(_, from)| protected.newest() <= *from);
        let chosen = HOSTS[usize::try_from(next(random, 3)).unwrap()];
        let host = weak.map_or(chosen, |(host, _)| host);
        let moment = Moment::by_chance(random);
        tell(&format!("{killed}: {moment:?}, {host}"));
        moment.wait(&protected, &mut running);
        killed += 1;
        let newest = protected.newest();
        if matches!(moment, Moment::All) {
            protected.kill_all(&mut running);
            running = protected.site.begin(&["restart", "--directory", "job"]);
            goes_on(&protected, &mut running, 0, newest);
            continue;
        }
        let count = protected.went_on_from().len();
        // It may just be brought back once more.
        let mut first = None;
        protected.wait(&mut running, || {
            first = try_container(&job, host);
            first.is_some()
        });
        let first = first.unwrap();
        kill(first);
        if let Moment::BroughtBack(span) = moment {
            let mut second = None;
            protected.wait(&mut running, || {
                second = try_container(&job, host).filter(|second| *second != first);
                second.is_some()
            });
            pass(span);
            kill(second.unwrap());
            killed += 1;
        }
        goes_on(&protected, &mut running, count, newest);
        // Where it was brought back before the second came to its end, it is so once more.
        weak = Some((host, protected.went_on_from().last().copied().unwrap_or(0)));
    }
    fs::write(protected.site.path("hurry"), []).unwrap();
    protected.ends_as(running, &said, &plate);
    killed
}

#[test]
fn whatever_is_killed_at_any_moment_the_results_are_the_same() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seed = number("MEIKYO_SOAK_SEED").unwrap_or(20_261_126);
    let (seconds, begin) = (number("MEIKYO_SOAK_SECONDS"), Instant::now());
    let mut random = seed | 1;
    let (mut jobs, mut killed) = (0, 0);
    loop {
        let mpi = ["mpich", "openmpi"][usize::try_from(next(&mut random, 2)).unwrap()];
        let program =
            [Program::Stencil, Program::Gradient][usize::try_from(next(&mut random, 2)).unwrap()];
        let kills = if seconds.is_some() { 5 + next(&mut random, KILLS_MAX - 4) } else { KILLS };
        tell(&format!("SEED={seed}, job {jobs}: {program:?} with {mpi}, {kills} kills"));
        killed += lose_by_chance(mpi, program, kills, &mut random);
        jobs += 1;
        if seconds.is_none_or(|most| begin.elapsed().as_secs() >= most) {
            break;
        }
    }
    tell(&format!("SEED={seed}: {jobs} jobs have lost hosts {killed} times"));
}

#[expect(
    clippy::print_stdout,
    reason = "a failure shows what chance did, and a long run how far it is"
)]
fn tell(text: &str) {
    println!("{text}");
}
