//! `meikyo checkpoint run` and `restart`: real programs on containers of this machine, and on hosts that are reached as by
//! `ssh`.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::running::{meikyo, text};

/// Longest that anything may take on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// More steps than a program that is killed ever comes to.
const ENDLESS: u64 = 1_000_000_000;

/// Of 96 rows and 50 columns.
const SIZE: [&str; 2] = ["96", "50"];

pub(crate) fn is_possible() -> bool {
    let is_possible = rustix::process::geteuid().is_root();
    if !is_possible {
        meikyo_testing::lacking("only root makes containers without a user namespace");
    }
    is_possible
}

/// Whether programs for an MPI can be built and run here.
pub(crate) fn has(mpi: &str) -> bool {
    let runs = |tool: &str| {
        let output = Command::new(format!("{tool}.{mpi}")).arg("--version").output();
        output.is_ok_and(|output| output.status.success())
    };
    let has = runs("mpicc") && runs("mpiexec");
    if !has {
        meikyo_testing::lacking(&format!("`mpicc.{mpi}` or `mpiexec.{mpi}` is not there"));
    }
    has
}

/// A job that ends with the test.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    fn id(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.0)
    }

    pub(crate) fn signal(&mut self, signal: rustix::process::Signal) -> Option<i32> {
        rustix::process::kill_process(self.id(), signal).unwrap();
        self.0.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A directory with the heat equation in C, built for an MPI.
pub(crate) struct Site {
    pub(crate) home: tempfile::TempDir,
}

impl Site {
    pub(crate) fn new(mpi: Option<&str>) -> Self {
        let site = Self { home: tempfile::tempdir().unwrap() };
        let Some(mpi) = mpi else { return site };
        let library = std::env::current_exe().unwrap().with_file_name("libmeikyo_protect.so");
        fs::copy(library, site.path("libmeikyo_checkpoint.so")).unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let output = Command::new(format!("mpicc.{mpi}"))
            .args(["-O2", "-ffp-contract=off", "-I"])
            .arg(root.join("protect/include"))
            .arg(root.join("examples/checkpoint/heat.c"))
            .arg("-L")
            .arg(site.home.path())
            .arg(format!("-Wl,-rpath,{}", site.home.path().display()))
            .args(["-lmeikyo_checkpoint", "-o", "heat"])
            .current_dir(site.home.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output));
        site
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn checkpoint(&self, arguments: &[&str]) -> Command {
        let mut command = meikyo();
        command.current_dir(self.home.path()).arg("checkpoint").args(arguments);
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn output(&self, arguments: &[&str]) -> Output {
        self.checkpoint(arguments).output().unwrap()
    }

    pub(crate) fn begin(&self, arguments: &[&str]) -> Running {
        self.begin_as("said", arguments)
    }

    /// What it says stands in a file of this name.
    pub(crate) fn begin_as(&self, said: &str, arguments: &[&str]) -> Running {
        let said = fs::File::create(self.path(said)).unwrap();
        let mut command = self.checkpoint(arguments);
        Running(command.stdout(said.try_clone().unwrap()).stderr(said).spawn().unwrap())
    }

    pub(crate) fn said(&self) -> String {
        fs::read_to_string(self.path("said")).unwrap_or_default()
    }

    /// The heat equation on so many ranks.
    pub(crate) fn heat(mpi: &str, ranks: usize, steps: u64, output: &str) -> Vec<String> {
        let (launcher, ranks, steps) =
            (format!("mpiexec.{mpi}"), ranks.to_string(), steps.to_string());
        let words = [&launcher, "-n", &ranks, "./heat", SIZE[0], SIZE[1], &steps, "20", output];
        words.map(str::to_owned).into()
    }

    pub(crate) fn status(&self, disk: &str) -> Value {
        let output = self.output(&["status", "--directory", disk, "--json"]);
        let told: Value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        told["status"].clone()
    }

    /// Waits until so many generations were committed; the newest of them.
    pub(crate) fn wait_for_commits(
        &self,
        disk: &str,
        generation: u64,
        running: &mut Running,
    ) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let status = self.status(disk);
            if status["committed"].as_u64() >= Some(generation) {
                return status;
            }
            assert!(running.0.try_wait().unwrap().is_none(), "it has ended: {}", self.said());
            assert!(Instant::now() < deadline, "{status} {}", self.said());
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    /// The step that the program said it begins at.
    fn begun_at(said: &str) -> u64 {
        let step = said.lines().find_map(|line| line.strip_prefix("begins at step "));
        step.unwrap_or_else(|| panic!("{said}")).parse().unwrap()
    }

    /// Runs a job until the program has written its result; the result, and what was said.
    ///
    /// A program with Debian's MPICH has been seen to hang in `MPI_Finalize`, so that the end of such is not waited for.
    fn result(&self, arguments: &[&str], mpi: &str, output: &str) -> (Vec<u8>, String) {
        self.result_of(&mut self.begin(arguments), mpi, output)
    }

    /// The same of a job that runs already.
    pub(crate) fn result_of(
        &self,
        running: &mut Running,
        mpi: &str,
        output: &str,
    ) -> (Vec<u8>, String) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let ended = running.0.try_wait().unwrap();
            let result = fs::read(self.path(output)).unwrap_or_default();
            let is_whole = result.len() == 96 * 50 * 8;
            if is_whole && (ended.is_some() || mpi == "mpich") {
                assert!(ended.is_none_or(|ended| ended.success()), "{}", self.said());
                fs::remove_file(self.path(output)).unwrap();
                return (result, self.said());
            }
            assert!(ended.is_none(), "it has ended: {}", self.said());
            assert!(Instant::now() < deadline, "{}", self.said());
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    /// What a run that nobody disturbs computes, on one rank for each of two hosts.
    pub(crate) fn undisturbed(&self, mpi: &str, steps: u64) -> Vec<u8> {
        let heat = Self::heat(mpi, 2, steps, "undisturbed");
        let run = ["run", "--local", "2", "--directory", "undisturbed-job"];
        self.result(&with(&run, &heat), mpi, "undisturbed").0
    }
}

pub(crate) fn with<'a>(arguments: &[&'a str], command: &'a [String]) -> Vec<&'a str> {
    let mut all = arguments.to_vec();
    all.push("--");
    all.extend(command.iter().map(String::as_str));
    all
}

/// The process on this machine that ends with the container of a host of a job.
pub(crate) fn container(job: &Path, host: &str) -> rustix::process::Pid {
    try_container(job, host).unwrap_or_else(|| panic!("{host} is not there"))
}

/// The same, where it may not be there.
pub(crate) fn try_container(job: &Path, host: &str) -> Option<rustix::process::Pid> {
    let (name, socket) =
        (format!("\"name\":\"{host}\""), format!("\"socket\":\"{}", job.join("sockets").display()));
    let own = std::process::id();
    let is_it = |number: &u32| {
        let line = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        *number != own && line.contains(&name) && line.contains(&socket)
    };
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    // The first of the two waits for the other.
    let found = numbers.filter(is_it).min()?;
    rustix::process::Pid::from_raw(i32::try_from(found).unwrap())
}

pub(crate) fn kill(process: rustix::process::Pid) {
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn a_program_runs_on_containers_and_the_end_of_it_is_that_of_the_command() {
    if !is_possible() {
        return;
    }
    let site = Site::new(None);
    let script = "hostname; echo $MEIKYO_CHECKPOINT_DIRECTORY $MEIKYO_CHECKPOINT_EVERY; \
                  test -S $MEIKYO_CHECKPOINT_DIRECTORY/control || exit 3; cat; exit 7";
    let arguments = ["run", "--local", "3", "--directory", "job", "--every", "90s"];
    let script = ["sh", "-c", script].map(str::to_owned);
    let output = site.output(&with(&arguments, &script));
    assert_eq!(output.status.code(), Some(7), "{}", text(&output));
    let disk = site.path("job/disk");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(said, format!("node1\n{} 90\n", disk.display()));
    assert!(text(&output).contains("restart --directory"), "{}", text(&output));
    let status = site.output(&["status", "--directory", "job"]);
    assert!(text(&status).contains("no daemon of the job in `job` answers"), "{}", text(&status));
    // Nothing runs any more, and a second job does not take the place of the first.
    assert_eq!(site.status("job/disks/node1"), Value::Null);
    let again = site.output(&with(&arguments, &script));
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again).contains("has a job already"), "{}", text(&again));
}

#[test]
fn what_is_wrong_with_a_run_is_said_with_its_remedy() {
    let site = Site::new(None);
    let refused = |arguments: &[&str], parts: &[&str]| {
        let output = site.output(arguments);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        parts.iter().for_each(|part| assert!(text(&output).contains(part), "{}", text(&output)));
    };
    let run = |more: &[&'static str]| {
        let mut arguments = vec!["run", "--directory", "job"];
        arguments.extend(more);
        arguments.extend(["--", "true"]);
        arguments
    };
    refused(&run(&[]), &["--cluster", "--local"]);
    refused(&run(&["--local", "1"]), &["a group of 1 hosts is not possible", "--local 4"]);
    refused(&run(&["--local", "3", "--scheme", "rs3"]), &["hint:"]);
    refused(&run(&["--local", "3", "--block", "100B"]), &["blocks of 100B", "--block 256KiB"]);
    refused(&run(&["--cluster", "none.toml"]), &["none.toml"]);
    refused(&["restart", "--directory", "none"], &["there is no job", "meikyo checkpoint run"]);
    fs::write(
        site.path("cluster.toml"),
        "name = \"c\"\nsnmp = { version = \"2c\", community = \"env:NONE\" }\n\
         measure = [\"load\"]\n[[hosts]]\nname = \"n[1-3]\"\naddress = \"10.77.0.[1-3]\"\n",
    )
    .unwrap();
    let on = ["--cluster", "cluster.toml", "--on", "n[1-2],n9"];
    refused(&run(&on), &["`n9` is no host of", "meikyo config show"]);
    let unreached = ["--cluster", "cluster.toml", "--ssh", "false"];
    refused(
        &run(&unreached),
        &["`n1` cannot be reached", "try `false n1 true`", "--on other hosts"],
    );
    if is_possible() {
        let nowhere = ["--local", "2", "--drain", "/proc/none"];
        refused(&run(&nowhere), &["cannot use `/proc/none`", "hint:"]);
        // What a job could not be begun with stays, and the next is another.
        let elsewhere = |directory: &'static str, more: &[&'static str]| {
            let run = ["run", "--local", "2", "--directory", directory];
            [&run, more, &["--", "true"]].concat()
        };
        let on_disk = ["--memory", "64MiB", "--memory-directory", "/proc"];
        let refusal = ["`/proc` is not in memory", "has ended"];
        refused(&elsewhere("job2", &on_disk), &refusal);
        let much = ["--memory", "900TiB"];
        refused(&elsewhere("job3", &much), &["generations in memory were given 900TiB"]);
        let small = ["--memory", "1MiB", "--bytes", "1MiB"];
        refused(&elsewhere("job4", &small), &["has room for 1MiB, and 2 generations of 1MiB"]);
    }
}

/// A host dies with its disk; other ranks go on, and their result is that of a run that nobody disturbs.
fn survives_the_loss_of_a_host(mpi: &str, more: &[&str]) {
    if !is_possible() || !has(mpi) {
        return;
    }
    let site = Site::new(Some(mpi));
    let heat = Site::heat(mpi, 4, ENDLESS, "plate");
    let run = [&["run", "--local", "3", "--directory", "job"], more].concat();
    let mut running = site.begin(&with(&run, &heat));
    let status = site.wait_for_commits("job/disks/node1", 3, &mut running);
    let is_in_memory = status["levels"][0]["level"] == "memory"
        && status["levels"][0]["kept"][0].as_u64() > status["levels"][1]["kept"][0].as_u64();
    assert_eq!(is_in_memory, !more.is_empty(), "{status}");
    kill(container(&site.path("job"), "node2"));
    let ended = running.0.wait().unwrap();
    assert_eq!(ended.code(), Some(2), "{}", site.said());
    let said = site.said();
    assert!(said.contains("error: the host node2 is gone; step "), "{said}");
    assert!(
        said.contains("goes on when node2 is back") && said.contains("--on 'node[1,3],OTHER'"),
        "{said}"
    );
    fs::remove_dir_all(site.path("job/disks/node2")).unwrap();
    // Another host in its place, other ranks, and so many steps more.
    let saved = Site::safe_step(&said);
    let steps = saved + 200;
    let heat = Site::heat(mpi, 5, steps, "plate");
    let restart = ["restart", "--directory", "job", "--on", "node1,spare,node3"];
    let (plate, said) = site.result(&with(&restart, &heat), mpi, "plate");
    let begun = Site::begun_at(&said);
    assert!(begun >= saved && begun < steps, "{begun}, {saved}");
    assert!(plate == site.undisturbed(mpi, steps), "another result");
    assert!(site.path("job/disks/spare/generations").is_dir());
}

impl Site {
    fn safe_step(said: &str) -> u64 {
        let (_, behind) = said.split_once("is gone; step ").unwrap();
        behind.split_once(' ').unwrap().0.parse().unwrap()
    }
}

#[test]
fn with_mpich_a_job_goes_on_without_a_host() {
    survives_the_loss_of_a_host("mpich", &[]);
}

#[test]
fn with_open_mpi_a_job_goes_on_without_a_host() {
    survives_the_loss_of_a_host("openmpi", &[]);
}

#[test]
fn what_is_in_memory_is_gone_on_from_without_a_host() {
    survives_the_loss_of_a_host("openmpi", &["--memory", "64MiB", "--disk-every", "1h"]);
}

#[test]
fn an_earlier_generation_is_gone_on_from_when_it_is_named() {
    if !is_possible() || !has("openmpi") {
        return;
    }
    let site = Site::new(Some("openmpi"));
    let heat = Site::heat("openmpi", 3, ENDLESS, "plate");
    let mut running = site.begin(&with(&["run", "--local", "3", "--directory", "job"], &heat));
    site.wait_for_commits("job/disks/node1", 3, &mut running);
    // A daemon that ends is started again, and the program does not notice.
    let daemon = daemon_of(&site.path("job"), "node3");
    kill(daemon);
    let deadline = Instant::now() + PATIENCE;
    while daemon_of(&site.path("job"), "node3") == daemon {
        assert!(Instant::now() < deadline);
    }
    let newest = site.status("job/disks/node1")["committed"].as_u64().unwrap();
    site.wait_for_commits("job/disks/node1", newest + 2, &mut running);
    let code = running.signal(rustix::process::Signal::TERM);
    assert!(code.is_some() && code != Some(2), "{code:?}: {}", site.said());
    let said = site.said();
    let (_, from) = said.split_once("goes on from step ").unwrap_or_else(|| panic!("{said}"));
    let newest: u64 = from.trim().parse().unwrap();
    let generation = fs::read_dir(site.path("job/disks/node2/generations")).unwrap();
    let numbers = generation.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut numbers: Vec<u64> = numbers.collect();
    numbers.sort_unstable();
    let [before, last] = numbers[..] else { panic!("{numbers:?}") };
    let steps = newest + 60;
    let heat = Site::heat("openmpi", 3, steps, "plate");
    let not_there = (last + 5).to_string();
    let restart = ["restart", "--directory", "job", "--generation", &not_there];
    let output = site.output(&with(&restart, &heat));
    assert!(!output.status.success());
    let told = format!("generation {not_there} is not committed; {last} and {before} can be had");
    assert!(text(&output).contains(&told), "{}", text(&output));
    let number = before.to_string();
    let restart = ["restart", "--directory", "job", "--generation", &number];
    let output = site.output(&with(&restart, &heat));
    assert!(output.status.success(), "{}", text(&output));
    assert!(Site::begun_at(&text(&output)) < newest, "{}", text(&output));
    assert!(
        fs::read(site.path("plate")).unwrap() == site.undisturbed("openmpi", steps),
        "another result"
    );
    // What was saved meanwhile is newer than what it went on from.
    let output = site.output(&["restart", "--directory", "job"]);
    assert!(output.status.success(), "{}", text(&output));
    assert!(Site::begun_at(&text(&output)) >= newest, "{}", text(&output));
}

/// All hosts are lost with their disks: what was copied to the shared file system is gone on from.
#[test]
fn a_job_of_which_nothing_is_left_goes_on_from_the_shared_file_system() {
    if !is_possible() || !has("openmpi") {
        return;
    }
    let site = Site::new(Some("openmpi"));
    let heat = Site::heat("openmpi", 3, ENDLESS, "plate");
    let run = [
        "run",
        "--local",
        "3",
        "--directory",
        "job",
        "--drain",
        "shared",
        "--drain-every",
        "10ms",
        "--cpu",
        "300",
        "--bytes",
        "1MB",
    ];
    let mut running = site.begin(&with(&run, &heat));
    let deadline = Instant::now() + PATIENCE;
    let drained = || {
        let steps = fs::read_dir(site.path("shared")).ok()?.flatten();
        let whole =
            steps.filter(|step| fs::read_dir(step.path()).is_ok_and(|files| files.count() == 3));
        whole.map(|step| step.file_name().into_string().unwrap()).max()
    };
    let first = loop {
        if let Some(first) = drained() {
            break first;
        }
        assert!(running.0.try_wait().unwrap().is_none(), "it has ended: {}", site.said());
        assert!(Instant::now() < deadline, "{}", site.said());
    };
    // Older ones go.
    while site.path("shared").join(&first).exists() {
        assert!(Instant::now() < deadline, "{:?}", drained());
    }
    let status = site.output(&["status", "--directory", "job"]);
    let said = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(said.contains(" is on the shared file system, one is every 10.0 ms"), "{said}");
    running.signal(rustix::process::Signal::KILL);
    // What was started there ends with it, and may still write.
    while fs::remove_dir_all(site.path("job")).is_err() || site.path("job").exists() {
        assert!(Instant::now() < deadline);
    }
    let newest = drained().unwrap();
    let step: u64 = newest.split_once('-').unwrap().1.parse().unwrap();
    let steps = step + 60;
    let heat = Site::heat("openmpi", 4, steps, "plate");
    let resume = ["run", "--local", "3", "--directory", "job", "--resume", "shared"];
    let output = site.output(&with(&resume, &heat));
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(Site::begun_at(&text(&output)), step);
    assert!(
        fs::read(site.path("plate")).unwrap() == site.undisturbed("openmpi", steps),
        "another result"
    );
    // A damaged file is found before anything begins.
    let file = site.path("shared").join(&newest).join("001-of-003");
    let mut octets = fs::read(&file).unwrap();
    let last = octets.len() - 1;
    octets[last] ^= 1;
    fs::write(&file, octets).unwrap();
    let resume = ["run", "--local", "3", "--directory", "other", "--resume", "shared"];
    let output = site.output(&with(&resume, &heat));
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("a block is not what was written"), "{}", text(&output));
    // Nor is anything begun that does not fit.
    let large = ["run", "--local", "3", "--directory", "large", "--bytes", "1000TB"];
    let output = site.output(&with(&large, &heat));
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("3 generations of 1000TB a host need"), "{}", text(&output));
}

/// The daemon of a host, which is killed from outside.
fn daemon_of(job: &Path, host: &str) -> rustix::process::Pid {
    let deadline = Instant::now() + PATIENCE;
    let (host, job) = (format!("--host\0{host}\0"), job.join("job.toml").display().to_string());
    loop {
        let numbers = fs::read_dir("/proc").unwrap().flatten();
        let mut numbers =
            numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let found = numbers.find(|number| {
            let line = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line);
            line.contains("\0daemon\0")
                && line.contains(&host)
                && line.contains(&job)
                && !line.contains("\0role\0")
        });
        if let Some(found) = found {
            return rustix::process::Pid::from_raw(found).unwrap();
        }
        assert!(Instant::now() < deadline, "no daemon of {host}");
    }
}

/// Hosts are the containers of another job, and what reaches them takes its words as `ssh` does.
#[test]
fn a_program_runs_on_the_hosts_of_a_cluster_file() {
    if !is_possible() || !has("mpich") {
        return;
    }
    let site = Site::new(Some("mpich"));
    let idle = [
        "run",
        "--local",
        "3",
        "--directory",
        "machines",
        "--",
        "sh",
        "-c",
        "echo up; exec sleep 1000",
    ];
    let mut machines = site.begin(&idle);
    let deadline = Instant::now() + PATIENCE;
    while !site.said().contains("up") {
        assert!(Instant::now() < deadline, "{}", site.said());
    }
    fs::write(
        site.path("cluster.toml"),
        "name = \"c\"\nsnmp = { version = \"2c\", community = \"env:NONE\" }\n\
         measure = [\"load\"]\n[[hosts]]\nname = \"node[1-4]\"\naddress = \"10.77.0.[1-4]\"\n",
    )
    .unwrap();
    let agent = site.path("machines/agent").display().to_string();
    // Every container has a disk of its own there.
    let job = site.path("machines/disk/job").display().to_string();
    let heat = Site::heat("mpich", 4, 300, "plate");
    let run = [
        "run",
        "--cluster",
        "cluster.toml",
        "--on",
        "node[1-3]",
        "--ssh",
        &agent,
        "--port",
        "7300",
        "--directory",
        &job,
    ];
    let (plate, _) = site.result(&with(&run, &heat), "mpich", "plate");
    assert!(plate == site.undisturbed("mpich", 300), "another result");
    for host in ["node1", "node2", "node3"] {
        let disk = site.path(&format!("machines/disks/{host}/job"));
        assert!(disk.join("disk/generations").is_dir() && disk.join("job.key").is_file());
    }
    // Host 3 dies for good: daemons have ended, and so does the job, with what is to be done.
    kill(container(&site.path("machines"), "node3"));
    machines.0.wait().unwrap();
    let output = site.output(&["restart", "--directory", &job]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("cannot be reached"), "{}", text(&output));
}

/// A program that hangs holds its connections; that it no longer saves is noticed all the same.
#[test]
fn a_program_that_no_longer_saves_is_told_to_be_stalled() {
    use rustix::process::{Pid, Signal, kill_process};
    if !is_possible() || !has("openmpi") {
        return;
    }
    let site = Site::new(Some("openmpi"));
    let heat = Site::heat("openmpi", 2, ENDLESS, "plate");
    let run = ["run", "--local", "2", "--directory", "job", "--stalled-after", "2s"];
    let mut running = site.begin(&with(&run, &heat));
    site.wait_for_commits("job/disks/node1", 2, &mut running);
    let last = || site.status("job/disks/node1")["last"].as_str().unwrap_or_default().to_owned();
    assert!(!last().contains("has saved nothing"), "{}", last());
    let home = fs::canonicalize(site.home.path()).unwrap();
    let is_heat = |number: &i32| {
        let line = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        line.starts_with(b"./heat\0")
            && fs::read_link(format!("/proc/{number}/cwd")).is_ok_and(|cwd| cwd == home)
    };
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let ranks: Vec<Pid> = numbers.filter(is_heat).filter_map(Pid::from_raw).collect();
    assert_eq!(ranks.len(), 2);
    ranks.iter().for_each(|rank| kill_process(*rank, Signal::STOP).unwrap());
    let deadline = Instant::now() + PATIENCE;
    while !last().contains("the program runs and has saved nothing for") {
        assert!(Instant::now() < deadline, "{}", last());
        std::thread::park_timeout(Duration::from_millis(20));
    }
}
