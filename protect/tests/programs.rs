//! Real programs (C with two MPIs, Fortran, Python) that are killed with their daemons, and whose results are those of
//! a computation that nobody disturbs.
//!
//! A daemon is this test program, started once more for the test `a_daemon`, which is one when the environment names a
//! job and does nothing otherwise.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(unsafe_code, reason = "one test calls the functions for C itself")]
#![expect(
    clippy::disallowed_methods,
    reason = "programs and daemons are processes, and are waited for by the clock"
)]

use std::ffi::CString;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use meikyo_checkpoint::daemon::{
    self, Answer, DaemonOptions, JobFile, LevelOptions, Request, Status, ask,
};
use meikyo_checkpoint::image::{HEAD_BYTES, Table};
use meikyo_checkpoint::tls::JobKey;
use meikyo_protect::{
    Checkpoint, meikyo_checkpoint_alloc, meikyo_checkpoint_cost, meikyo_checkpoint_finalize,
    meikyo_checkpoint_init, meikyo_checkpoint_protect, meikyo_checkpoint_restore,
    meikyo_checkpoint_save,
};
use meikyo_units::Nanos;
use meikyo_worlds::Random;
use rustix::process::{Pid, Signal, kill_process};

/// Longest that anything may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn a_daemon() {
    let Ok(job) = std::env::var("MEIKYO_TEST_JOB") else { return };
    let read = |name: &str| std::env::var(name).unwrap();
    let options = DaemonOptions {
        job: JobFile::load(Path::new(&job)).unwrap(),
        place: read("MEIKYO_TEST_PLACE").parse().unwrap(),
        directory: PathBuf::from(read("MEIKYO_TEST_DIRECTORY")),
        is_founding: read("MEIKYO_TEST_FOUNDING") == "yes",
        from: None,
        stalled_after: None,
        disk_rate: None,
        network_rate: None,
        cpu_share: None,
        room_for: None,
        drain: None,
        levels: LevelOptions::on_disk(Nanos::from_secs(86_400)),
        ends_with_input: false,
    };
    daemon::run(options, Box::new(|_| {})).unwrap();
}

fn pause() {
    std::thread::park_timeout(Duration::from_millis(10));
}

/// Daemons, a place for programs, and the library under the name that programs know.
struct Site {
    home: tempfile::TempDir,
    daemons: Vec<Option<Child>>,
}

impl Site {
    fn start(scheme: &str, hosts: usize) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut private = fs::OpenOptions::new();
        private.write(true).create_new(true).mode(0o600);
        let mut file = private.open(home.path().join("key")).unwrap();
        std::io::Write::write_all(&mut file, &JobKey::generate().unwrap()).unwrap();
        // Ports that were free just now, and are not given to others so soon.
        let ports: Vec<TcpListener> =
            (0..hosts).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let mut job = format!("scheme = \"{scheme}\"\nblock = \"4KiB\"\nkey = \"key\"\n");
        for (host, port) in ports.iter().enumerate() {
            let address = port.local_addr().unwrap();
            job += &format!("[[hosts]]\nname = \"node{host}\"\naddresses = [\"{address}\"]\n");
        }
        fs::write(home.path().join("job.toml"), job).unwrap();
        drop(ports);
        let library = std::env::current_exe().unwrap().with_file_name("libmeikyo_protect.so");
        fs::copy(library, home.path().join("libmeikyo_checkpoint.so")).unwrap();
        let mut site = Self { home, daemons: (0..hosts).map(|_| None).collect() };
        (0..hosts).for_each(|host| site.run_daemon(host, true));
        site.wait_for("all are members", |status| status.is_member);
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn directory(&self, host: usize) -> PathBuf {
        self.path(&format!("host{host}"))
    }

    fn run_daemon(&mut self, host: usize, founding: bool) {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_daemon", "--nocapture"])
            .env("MEIKYO_TEST_JOB", self.path("job.toml"))
            .env("MEIKYO_TEST_PLACE", host.to_string())
            .env("MEIKYO_TEST_DIRECTORY", self.directory(host))
            .env("MEIKYO_TEST_FOUNDING", if founding { "yes" } else { "no" })
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        self.daemons[host] = Some(child);
    }

    fn kill_daemon(&mut self, host: usize) {
        let mut daemon = self.daemons[host].take().unwrap();
        daemon.kill().unwrap();
        daemon.wait().unwrap();
    }

    fn status(&self, host: usize) -> Option<Status> {
        match ask(&self.directory(host), &Request::Status) {
            Ok(Answer::Status(status)) => Some(*status),
            _ => None,
        }
    }

    fn wait_for(&self, what: &str, holds: impl Fn(&Status) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        let all = || (0..self.daemons.len()).map(|host| self.status(host));
        while !all().all(|status| status.is_some_and(|status| holds(&status))) {
            assert!(Instant::now() < deadline, "{what}: {:#?}", all().collect::<Vec<_>>());
            pause();
        }
    }

    fn newest_step(&self) -> u64 {
        let steps = (0..self.daemons.len()).filter_map(|host| self.status(host)?.step);
        steps.max().unwrap()
    }

    fn committed(&self) -> u64 {
        self.status(0).and_then(|status| status.committed).unwrap_or(0)
    }

    /// A program with what it needs to find library and daemon of a host; it is marked as this test's.
    fn program(&self, name: &str) -> Command {
        let mut program = Command::new(name);
        program
            .current_dir(self.home.path())
            .env("LD_LIBRARY_PATH", self.home.path())
            .env("MEIKYO_CHECKPOINT_LIBRARY", self.path("libmeikyo_checkpoint.so"))
            .env("PYTHONPATH", examples())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("MEIKYO_TEST_SITE", self.home.path());
        program
    }

    /// Every process of a program of this site.
    fn processes(&self) -> Vec<Pid> {
        let marker = format!("MEIKYO_TEST_SITE={}\0", self.home.path().display());
        let is_ours = |number: i32| {
            let environment = fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
            environment.windows(marker.len()).any(|window| window == marker.as_bytes())
        };
        let numbers = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            entry.unwrap().file_name().to_str().and_then(|name| name.parse::<i32>().ok())
        });
        numbers.filter(|number| is_ours(*number)).filter_map(Pid::from_raw).collect()
    }

    fn kill_program(&self, mut launcher: Child) {
        let deadline = Instant::now() + PATIENCE;
        while !self.processes().is_empty() {
            for process in self.processes() {
                kill(process);
            }
            assert!(Instant::now() < deadline);
            pause();
            drop(launcher.try_wait());
        }
        launcher.wait().unwrap();
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        for process in self.processes() {
            kill(process);
        }
        for daemon in self.daemons.iter_mut().flatten() {
            drop(daemon.kill());
            drop(daemon.wait());
        }
    }
}

/// Kills a process; whether it was still there.
fn kill(process: Pid) -> bool {
    kill_process(process, Signal::KILL).is_ok()
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/checkpoint")
}

/// Debian's own, which has its packages.
const PYTHON: &str = "/usr/bin/python3";

/// Whether a program is there and can do this; says so when it is not.
fn is_there(program: &str, asked: &str) -> bool {
    let output = Command::new(program).arg(asked).output();
    let is_there = output.is_ok_and(|output| output.status.success());
    if !is_there {
        meikyo_testing::lacking(&format!("`{program} {asked}` cannot run"));
    }
    is_there
}

fn built(mut compiler: Command) {
    let output = compiler.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

const ROWS: usize = 96;
const COLUMNS: usize = 50;

/// More steps than a program that is killed ever comes to.
const ENDLESS: u64 = 1_000_000_000;

/// The plate after so many steps, computed in one piece.
fn plate(steps: u64) -> Vec<u8> {
    let mut plate = vec![vec![0.0_f64; COLUMNS + 2]; ROWS + 2];
    for (row, values) in (0_u32..).zip(&mut plate[1..=ROWS]) {
        for (column, value) in (0_u32..).zip(&mut values[1..=COLUMNS]) {
            *value = f64::from((row * 31 + column * 17) % 101);
        }
    }
    for _ in 0..steps {
        let before = plate.clone();
        for row in 1..=ROWS {
            for column in 1..=COLUMNS {
                let here = before[row][column];
                let sum = before[row][column - 1] + before[row][column + 1];
                let sum = sum + before[row - 1][column] + before[row + 1][column];
                plate[row][column] = here + 0.2 * (sum - 4.0 * here);
            }
        }
    }
    let rows = plate[1..=ROWS].iter().flat_map(|row| &row[1..=COLUMNS]);
    rows.flat_map(|value| value.to_le_bytes()).collect()
}

/// An MPI and what its launcher needs on one small machine.
#[derive(Clone, Copy)]
struct Mpi {
    /// What its tools are called by, behind a dot.
    name: &'static str,
    options: &'static [&'static str],
}

const MPICH: Mpi = Mpi { name: "mpich", options: &[] };
const OPEN_MPI: Mpi = Mpi {
    name: "openmpi",
    options: &[
        "--allow-run-as-root",
        "--oversubscribe",
        "--mca",
        "mpi_yield_when_idle",
        "1",
        "--mca",
        "btl_vader_single_copy_mechanism",
        "none",
    ],
};

/// The heat equation in a language.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    C,
    Fortran,
    Python,
}

/// A program and how it is started.
#[derive(Clone, Copy)]
struct Heat {
    mpi: Mpi,
    language: Language,
}

impl Heat {
    fn tool(self, name: &str) -> String {
        format!("{name}.{}", self.mpi.name)
    }

    fn is_there(self) -> bool {
        let is_there = is_there(&self.tool("mpiexec"), "--version");
        is_there
            && match self.language {
                Language::C => self::is_there(&self.tool("mpicc"), "--version"),
                Language::Fortran => self::is_there(&self.tool("mpif90"), "--version"),
                Language::Python => self::is_there(PYTHON, "-cimport mpi4py, numpy"),
            }
    }

    fn build(self, site: &Site) {
        let (compiler, sources, more) = match self.language {
            Language::C => ("mpicc", &["heat.c"][..], &["-Wextra", "-Werror"][..]),
            Language::Fortran => ("mpif90", &["meikyo_checkpoint.f90", "heat.f90"][..], &[][..]),
            Language::Python => return,
        };
        let mut compiler = site.program(&self.tool(compiler));
        let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
        // Products and sums as they are written, so that the result is the same on every processor.
        compiler.args(["-O2", "-ffp-contract=off", "-Wall"]).args(more).arg("-I").arg(include);
        compiler.args(sources.iter().map(|source| examples().join(source)));
        compiler.arg("-L").arg(site.home.path());
        compiler.args(["-lmeikyo_checkpoint", "-o", "heat"]);
        built(compiler);
    }

    /// Starts it with so many ranks on each host; what it says goes into `said`.
    fn launch(self, site: &Site, ranks: &[usize], steps: u64) -> Child {
        let mut launcher = site.program(&self.tool("mpiexec"));
        launcher.args(self.mpi.options);
        for (host, ranks) in ranks.iter().enumerate() {
            if host > 0 {
                launcher.arg(":");
            }
            launcher.args(["-n", &ranks.to_string(), "env"]);
            let directory = site.directory(host);
            launcher.arg(format!("MEIKYO_CHECKPOINT_DIRECTORY={}", directory.display()));
            launcher.arg(format!("MEIKYO_CHECKPOINT_RANKS_HERE={ranks}"));
            if self.language == Language::Python {
                launcher.arg(PYTHON).arg(examples().join("heat.py"));
            } else {
                launcher.arg("./heat");
            }
            launcher.args([ROWS, COLUMNS].map(|count| count.to_string()));
            launcher.args([&steps.to_string(), "20", "plate"]);
        }
        let said = fs::File::create(site.path("said")).unwrap();
        launcher.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said).spawn().unwrap()
    }
}

/// Runs a program to its end, some steps after the newest that is committed, and compares its result.
fn run_to_the_end(heat: Heat, site: &Site, ranks: &[usize]) {
    // What the program has handed over before it was killed is still being saved.
    let is_quiet = |status: &Status| status.is_member && status.open.is_none();
    let deadline = Instant::now() + PATIENCE;
    while !site.status(0).is_some_and(|first| is_quiet(&first) && first.handed.is_none()) {
        assert!(Instant::now() < deadline, "{:?}", site.status(0));
        pause();
    }
    site.wait_for("nothing is open", is_quiet);
    let committed = site.newest_step();
    let steps = committed + 50;
    let mut launcher = heat.launch(site, ranks, steps);
    let is_well = launcher.wait().unwrap().success();
    assert!(is_well, "{}", fs::read_to_string(site.path("said")).unwrap());
    assert_eq!(begun_at(site), committed);
    told_cost(site);
    assert!(fs::read(site.path("plate")).unwrap() == plate(steps), "another result");
}

/// What the program said of its last save is what a save of its arrays can have cost.
fn told_cost(site: &Site) {
    let said = fs::read_to_string(site.path("said")).unwrap();
    let line = said.lines().find_map(|line| line.strip_prefix("the last save: "));
    let numbers = line
        .unwrap_or_else(|| panic!("{said}"))
        .split(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let numbers: Vec<f64> = numbers.filter_map(|number| number.parse().ok()).collect();
    let [milliseconds, ahead, residue] = numbers[..] else { panic!("{said}") };
    assert!(milliseconds > 0.0 && milliseconds < 60_000.0, "{said}");
    // Ahead of a save pages are copied as often as they were written.
    let all = f64::from(u32::try_from((ROWS + 2) * (COLUMNS + 2) * 8 + 2 * 4_096).unwrap());
    assert!(residue <= all && ahead.fract() == 0.0, "{said}");
}

/// The step that the program said it begins at.
fn begun_at(site: &Site) -> u64 {
    let said = fs::read_to_string(site.path("said")).unwrap();
    let step = said.lines().find_map(|line| line.strip_prefix("begins at step "));
    step.unwrap_or_else(|| panic!("{said}")).parse().unwrap()
}

/// Lets a program run until it has committed more, and kills it then.
fn run_and_kill(site: &Site, launcher: Child, random: &mut Random) {
    let (before, deadline) = (site.committed(), Instant::now() + PATIENCE);
    let more = 2 + random.below(3);
    let mut launcher = launcher;
    while site.committed() < before + more {
        let said = || fs::read_to_string(site.path("said")).unwrap();
        assert!(launcher.try_wait().unwrap().is_none(), "it has ended: {}", said());
        assert!(Instant::now() < deadline, "it commits nothing: {}", said());
        pause();
    }
    site.kill_program(launcher);
}

/// Lets a program run, kills a daemon under it, starts that again, and kills the program once more was committed.
fn kill_daemon_then_program(heat: Heat, site: &mut Site, ranks: &[usize], random: &mut Random) {
    let mut launcher = heat.launch(site, ranks, ENDLESS);
    let (before, deadline) = (site.committed(), Instant::now() + PATIENCE);
    while site.committed() == before {
        let said = || fs::read_to_string(site.path("said")).unwrap();
        assert!(launcher.try_wait().unwrap().is_none(), "it has ended: {}", said());
        assert!(Instant::now() < deadline, "it commits nothing: {}", said());
        pause();
    }
    let host = random.index(ranks.len());
    site.kill_daemon(host);
    site.run_daemon(host, false);
    site.wait_for("all are members", |status| status.is_member);
    run_and_kill(site, launcher, random);
}

fn survives_kills(heat: Heat, kills: u32) {
    if !heat.is_there() {
        return;
    }
    let ranks = [2, 1, 1];
    let mut site = Site::start("ring", 3);
    heat.build(&site);
    let mut random = Random::new(7);
    for _ in 0..kills {
        kill_daemon_then_program(heat, &mut site, &ranks, &mut random);
        let launcher = heat.launch(&site, &ranks, ENDLESS);
        run_and_kill(&site, launcher, &mut random);
        let host = random.index(3);
        site.kill_daemon(host);
        site.run_daemon(host, false);
        // At once: what was being saved is decided on while the program begins anew.
    }
    site.wait_for("all are members", |status| status.is_member && status.open.is_none());
    run_to_the_end(heat, &site, &ranks);
}

#[test]
fn with_mpich_the_result_is_that_of_a_run_that_nobody_kills() {
    survives_kills(Heat { mpi: MPICH, language: Language::C }, 3);
}

#[test]
fn with_open_mpi_the_result_is_that_of_a_run_that_nobody_kills() {
    survives_kills(Heat { mpi: OPEN_MPI, language: Language::C }, 2);
}

#[test]
fn a_program_in_fortran_goes_on_from_its_checkpoint() {
    survives_kills(Heat { mpi: MPICH, language: Language::Fortran }, 1);
}

#[test]
fn a_program_in_python_goes_on_from_its_checkpoint() {
    survives_kills(Heat { mpi: OPEN_MPI, language: Language::Python }, 1);
}

#[test]
fn another_number_of_ranks_goes_on_with_the_blocks_of_an_array() {
    let heat = Heat { mpi: MPICH, language: Language::C };
    if !heat.is_there() {
        return;
    }
    let site = Site::start("ring", 3);
    heat.build(&site);
    let mut random = Random::new(3);
    for ranks in [[2, 1, 1], [1, 1, 1], [1, 2, 2]] {
        let launcher = heat.launch(&site, &ranks, ENDLESS);
        run_and_kill(&site, launcher, &mut random);
    }
    run_to_the_end(heat, &site, &[1, 1, 2]);
}

/// A rank that goes to another thread.
struct Handle(*mut Checkpoint);

// SAFETY: a handle may be used by any thread, by one at a time.
unsafe impl Send for Handle {}

/// Two ranks in this process, each with the daemon of another host.
fn two_ranks(site: &Site) -> [*mut Checkpoint; 2] {
    [0, 1].map(|rank| {
        let directory = site.directory(usize::try_from(rank).unwrap());
        let directory = CString::new(directory.to_str().unwrap()).unwrap();
        let mut made = null_mut();
        // SAFETY: the directory is a string of C, and `made` can be written to.
        let outcome =
            unsafe { meikyo_checkpoint_init(directory.as_ptr(), rank, 2, 1, &raw mut made) };
        assert_eq!(outcome, 0);
        made
    })
}

/// A thread writes number after number over an array, from its begin to its end, and never pauses. At any instant the
/// array has one number up to some place, and the one before from there on.
#[test]
fn what_is_saved_is_the_memory_at_one_instant_though_a_thread_never_pauses() {
    const LEN: usize = 1 << 19;
    let site = Site::start("partner", 2);
    let ranks = two_ranks(&site);
    let shape = [LEN as u64];
    let array = |rank: *mut Checkpoint| {
        // SAFETY: the handle is one of `init`, and texts and lists are as long as is said.
        let data = unsafe {
            let (name, element) = (c"numbers".as_ptr(), c"u64".as_ptr());
            meikyo_checkpoint_alloc(rank, name, element, 1, shape.as_ptr(), null(), null())
        };
        assert!(!data.is_null());
        // SAFETY: it is an array of so many numbers, and there until `finalize`.
        unsafe { std::slice::from_raw_parts(data.cast::<AtomicU64>(), LEN) }
    };
    let arrays = ranks.map(array);
    // The other kind of memory, which is read by its address.
    let own: Vec<AtomicU64> = (0..LEN).map(|_| AtomicU64::new(0)).collect();
    // SAFETY: the memory is there until `finalize`, and as large as is said.
    let named = unsafe {
        let data = own.as_ptr().cast_mut().cast();
        let (name, element) = (c"own".as_ptr(), c"u64".as_ptr());
        meikyo_checkpoint_protect(ranks[0], name, data, element, 1, shape.as_ptr(), null(), null())
    };
    assert_eq!(named, 0);
    // Each waits for the other.
    std::thread::scope(|scope| {
        for rank in ranks.map(Handle) {
            scope.spawn(move || {
                let Handle(rank) = { rank };
                // SAFETY: the handle is one of `init`, and all arrays are there.
                assert_eq!(unsafe { meikyo_checkpoint_restore(rank, null_mut()) }, 0);
            });
        }
    });
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for array in [arrays[0], &own[..]] {
            let is_over = &is_over;
            scope.spawn(move || {
                for number in 1.. {
                    for place in array {
                        place.store(number, Ordering::Relaxed);
                    }
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
        }
        let saved = (1..=4).map(|step| saved_numbers(&site, ranks, step)).collect::<Vec<_>>();
        is_over.store(true, Ordering::Relaxed);
        for numbers in saved.into_iter().flatten() {
            let (first, last) = (numbers[0], numbers[LEN - 1]);
            assert!(first - last <= 1, "{first} at the begin, {last} at the end");
            let steps = (1..LEN).filter(|&at| numbers[at - 1] != numbers[at]);
            let steps: Vec<_> = steps.map(|at| (at, numbers[at - 1], numbers[at])).collect();
            assert_eq!(steps.len() as u64, first - last, "several instants are mixed: {steps:?}");
        }
    });
    match std::env::var("MEIKYO_CHECKPOINT_COPIES_AHEAD").as_deref() {
        Ok("no") => assert_eq!(cost(ranks[0]), (0, 0, 0)),
        _ if cost(ranks[0]).0 == 0 => {
            meikyo_testing::lacking("no copy is kept: the kernel does not tell what is written");
        }
        _ => {}
    }
    for rank in ranks {
        // SAFETY: the handle is one of `init`, and not used any more.
        unsafe { meikyo_checkpoint_finalize(rank) };
    }
}

/// Whether a copy is kept, and octets that were copied ahead of the last save and in its stop.
fn cost(rank: *mut Checkpoint) -> (i32, u64, u64) {
    let (mut seconds, mut ahead, mut residue) = (-1.0, 0, 0);
    // SAFETY: the handle is one of `init`, and all three can be written to.
    let keeps_copy =
        unsafe { meikyo_checkpoint_cost(rank, &raw mut seconds, &raw mut ahead, &raw mut residue) };
    assert!(seconds > 0.0);
    (keeps_copy, ahead, residue)
}

#[test]
fn what_is_saved_is_of_one_instant_also_where_the_daemon_reads_the_arrays_themselves() {
    let name = "what_is_saved_is_the_memory_at_one_instant_though_a_thread_never_pauses";
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env("MEIKYO_CHECKPOINT_COPIES_AHEAD", "no")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// Saves a step on both ranks, and reads the arrays of the first out of what its daemon has.
fn saved_numbers(site: &Site, ranks: [*mut Checkpoint; 2], step: u64) -> Vec<Vec<u64>> {
    for rank in ranks {
        // SAFETY: the handle is one of `init`, and all arrays are there.
        assert_eq!(unsafe { meikyo_checkpoint_save(rank, step) }, 0);
    }
    site.wait_for("the step is committed", |status| status.step == Some(step));
    let to = site.path("image");
    let generation = Some(site.committed());
    let answer = ask(&site.directory(0), &Request::Restore { to: to.clone(), generation }).unwrap();
    assert!(matches!(answer, Answer::Restored { .. }), "{answer:?}");
    let image = fs::read(to).unwrap();
    let (head, rest) = image.split_first_chunk::<HEAD_BYTES>().unwrap();
    let len = usize::try_from(Table::announced(head).unwrap()).unwrap();
    let table = Table::read(head, &rest[..len]).unwrap();
    let begin = (HEAD_BYTES + len).next_multiple_of(64);
    let number = |octets: &[u8]| u64::from_le_bytes(octets.try_into().unwrap());
    let numbers = |begin: usize, bytes: u64| {
        let octets = &image[begin..begin + usize::try_from(bytes).unwrap()];
        octets.chunks_exact(8).map(number).collect()
    };
    let arrays = table.arrays().map(|(_, array, at)| {
        numbers(begin + usize::try_from(at).unwrap(), array.bytes().unwrap())
    });
    arrays.collect()
}
