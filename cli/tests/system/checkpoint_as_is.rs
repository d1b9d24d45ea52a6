//! `meikyo checkpoint run --as-is`: real MPI programs that know nothing of checkpoints are captured by CRIU, lose hosts, and
//! go on on others with the results of a run that nobody disturbs.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use meikyo_checkpoint::daemon::{Answer, Request, Status, ask_within};

use crate::checkpoint_run::{PATIENCE, Running, Site, container, has, is_possible, kill, with};
use crate::running::text;

/// Cells of each of three ranks.
const CELLS: &str = "5000";

/// A CRIU that does here, as `./x` puts it into a folder, or the one that is installed.
pub(crate) fn criu() -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/criu/criu");
    let named = std::env::var_os("MEIKYO_CRIU").map(PathBuf::from);
    let path = named.or_else(|| own.exists().then_some(own)).unwrap_or_else(|| "criu".into());
    let does = Command::new(&path).arg("check").stderr(Stdio::null()).output();
    if does.is_ok_and(|output| output.status.success()) {
        return Some(path);
    }
    meikyo_testing::lacking(
        "there is no CRIU that can work here: packaging/criu target/criu fetches one",
    );
    None
}

/// What programs of an MPI need on a machine whose root starts them.
const AS_ROOT: [(&str, &str); 3] = [
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
];

/// A directory with programs in C that know nothing of checkpoints.
pub(crate) struct Protected {
    pub(crate) site: Site,
    pub(crate) mpi: &'static str,
    pub(crate) criu: String,
}

impl Protected {
    /// With these programs of `examples/checkpoint`; nothing where the machine lacks something.
    pub(crate) fn new(mpi: &'static str, programs: &[&str]) -> Option<Self> {
        if !is_possible() || !has(mpi) {
            return None;
        }
        let criu = criu()?.to_string_lossy().into_owned();
        let site = Site::new(None);
        for program in programs {
            let source = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join(format!("../examples/checkpoint/{program}.c"));
            let output = Command::new(format!("mpicc.{mpi}"))
                .args(["-O2", "-ffp-contract=off", "-o", program])
                .arg(source)
                .current_dir(site.home.path())
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", text(&output));
        }
        Some(Self { site, mpi, criu })
    }

    /// The stencil on a rank for each of three hosts.
    fn stencil(&self, steps: u64, plate: &str) -> Vec<String> {
        let (launcher, steps) = (format!("mpiexec.{}", self.mpi), steps.to_string());
        let words = [&launcher, "-n", "3", "./stencil", CELLS, &steps, "2000", plate];
        words.map(str::to_owned).into()
    }

    /// What a program says without Meikyo, on this machine.
    pub(crate) fn undisturbed(&self, command: &[String]) -> Vec<u8> {
        let output = Command::new(&command[0])
            .args(&command[1..])
            .envs(AS_ROOT)
            .current_dir(self.site.home.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output));
        output.stdout
    }

    /// What the stencil says and computes without Meikyo.
    fn undisturbed_stencil(&self, steps: u64) -> (Vec<u8>, Vec<u8>) {
        let said = self.undisturbed(&self.stencil(steps, "undisturbed"));
        (said, fs::read(self.site.path("undisturbed")).unwrap())
    }

    pub(crate) fn run(&self, more: &[&str], command: &[String]) -> Running {
        let mut arguments =
            vec!["run", "--as-is", "--local", "3", "--directory", "job", "--criu", &self.criu];
        arguments.extend(more);
        self.site.begin(&with(&arguments, command))
    }

    /// Waits until something holds.
    pub(crate) fn wait(&self, running: &mut Running, mut is_so: impl FnMut() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so() {
            let ended = running.0.try_wait().unwrap();
            assert!(ended.is_none(), "it has ended: {}", self.site.said());
            assert!(Instant::now() < deadline, "{}", self.site.said());
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    /// The newest checkpoint that is committed, as daemons say.
    pub(crate) fn newest(&self) -> u64 {
        self.statuses().iter().filter_map(|status| status.step).max().unwrap_or(0)
    }

    /// How the daemons stand that answer.
    pub(crate) fn statuses(&self) -> Vec<Status> {
        // Hosts are containers of the job, or have each the job's disk on one of their own.
        let entries =
            |name: &str| fs::read_dir(self.site.path(name)).into_iter().flatten().flatten();
        let hosts = entries("job/disks").map(|host| host.path());
        let machines = entries("machines/disks").map(|host| host.path().join("job"));
        let asked = |disk: PathBuf| {
            let told = ask_within(&disk, &Request::Status, Duration::from_secs(1));
            if let Ok(Answer::Status(status)) = told { Some(*status) } else { None }
        };
        hosts.chain(machines).filter_map(asked).collect()
    }

    /// The newest checkpoint that is committed, once it is a newer one than this.
    pub(crate) fn newer_than(&self, step: u64, running: &mut Running) -> u64 {
        let mut newest = 0;
        self.wait(running, || {
            newest = self.newest();
            newest > step
        });
        newest
    }

    /// Waits until a file of the job or the program is longer than it is now: what is written behind a checkpoint is to be
    /// taken back.
    pub(crate) fn grows(&self, name: &str, running: &mut Running) {
        let bytes = || fs::metadata(self.site.path(name)).map_or(0, |data| data.len());
        let before = bytes();
        self.wait(running, || bytes() > before);
    }

    /// The checkpoints that the job has said the program goes on from, in order.
    pub(crate) fn went_on_from(&self) -> Vec<u64> {
        let said = self.site.said();
        let behind = said.split("the program goes on from checkpoint ").skip(1);
        let number = |text: &str| {
            text.split(|letter: char| !letter.is_ascii_digit()).next().unwrap().parse().unwrap()
        };
        behind.map(number).collect()
    }

    /// Kills `run`, and waits until its hosts are gone: they end with whoever has made them.
    pub(crate) fn kill_all(&self, running: &mut Running) {
        running.signal(rustix::process::Signal::KILL);
        let socket = self.site.path("job/sockets/node1");
        let deadline = Instant::now() + PATIENCE;
        while std::os::unix::net::UnixStream::connect(&socket).is_ok() {
            assert!(Instant::now() < deadline);
        }
    }

    /// Waits until the job has ended well, and compares what the program has said and computed.
    ///
    /// A program with Debian's MPICH has been seen to hang in `MPI_Finalize`, so that the end of such is not waited for.
    pub(crate) fn ends_as(&self, mut running: Running, said: &[u8], plate: &[u8]) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(ended) = running.0.try_wait().unwrap() {
                assert!(ended.success(), "{ended}: {}", self.site.said());
                break;
            }
            let is_whole = || fs::read(self.site.path("plate")).is_ok_and(|found| found == plate);
            // Its last line comes by way of the launcher, may come later than the file, and is then passed on.
            let output = || fs::metadata(self.site.path("job/output")).map_or(0, |data| data.len());
            let last = || String::from_utf8_lossy(said).lines().last().map(str::to_owned);
            let is_passed_on =
                || last().is_none_or(|last| self.site.said().lines().any(|line| line == last));
            if self.mpi == "mpich" && is_whole() && output() >= said.len() as u64 && is_passed_on()
            {
                break;
            }
            assert!(Instant::now() < deadline, "{}", self.site.said());
            std::thread::park_timeout(Duration::from_millis(20));
        }
        assert!(fs::read(self.site.path("plate")).unwrap() == plate, "another result");
        let output = fs::read(self.site.path("job/output")).unwrap();
        assert!(output == said, "{}", String::from_utf8_lossy(&output));
    }
}

/// Hosts die in turn; each time a spare takes the place without a person.
fn goes_on_on_spares(mpi: &'static str) {
    let Some(stencil) = Protected::new(mpi, &["stencil"]) else { return };
    let steps = 600;
    let (said, plate) = stencil.undisturbed_stencil(steps);
    let command = stencil.stencil(steps, "plate");
    let mut running = stencil.run(&["--spares", "2", "--every", "300ms"], &command);
    let (mut newest, mut committed) = (0, Vec::new());
    for host in ["node2", "node1"] {
        newest = stencil.newer_than(newest + 1, &mut running);
        stencil.grows("job/output", &mut running);
        let job = stencil.site.path("job");
        kill(container(&job, host));
        committed.push(newest);
        let told = format!("the host {host} is gone, and spare");
        stencil.wait(&mut running, || stencil.site.said().contains(&told));
    }
    stencil.ends_as(running, &said, &plate);
    let told = stencil.site.said();
    let from = stencil.went_on_from();
    assert_eq!(from.len(), 2, "{told}");
    assert!(
        from.iter().zip(&committed).all(|(from, newest)| from >= newest),
        "{committed:?}: {told}"
    );
    // What was passed on is the same, between what Meikyo says itself.
    let passed: String = told
        .lines()
        .filter(|line| line.starts_with("step "))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(passed.as_bytes(), said, "{told}");
}

#[test]
fn with_mpich_a_program_goes_on_as_it_is_on_spares() {
    goes_on_on_spares("mpich");
}

#[test]
fn with_open_mpi_a_program_goes_on_as_it_is_on_spares() {
    goes_on_on_spares("openmpi");
}

/// All is killed at once, and a person brings it back, on other hosts and from an earlier checkpoint.
fn is_brought_back(mpi: &'static str) {
    let Some(stencil) = Protected::new(mpi, &["stencil"]) else { return };
    let steps = 400;
    let (said, plate) = stencil.undisturbed_stencil(steps);
    let command = stencil.stencil(steps, "plate");
    let mut running = stencil.run(&["--every", "300ms"], &command);
    let newest = stencil.newer_than(2, &mut running);
    stencil.grows("job/output", &mut running);
    stencil.kill_all(&mut running);
    let restart = ["restart", "--directory", "job", "--on", "other,node1,node3"];
    stencil.ends_as(stencil.site.begin(&restart), &said, &plate);
    let from = stencil.went_on_from();
    assert!(from.len() == 1 && from[0] >= newest, "{from:?}, {newest}: {}", stencil.site.said());
    let other = ["restart", "--directory", "job", "--", "true"];
    let refused = stencil.site.output(&other);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused).contains("goes on as it was"), "{}", text(&refused));
}

#[test]
fn with_mpich_a_program_is_brought_back_as_it_is_on_other_hosts() {
    is_brought_back("mpich");
}

#[test]
fn with_open_mpi_a_program_is_brought_back_as_it_is_on_other_hosts() {
    is_brought_back("openmpi");
}

/// What was drained goes on in a job that has nothing of the first.
#[test]
fn a_program_as_it_is_goes_on_from_the_shared_file_system() {
    let Some(stencil) = Protected::new("openmpi", &["stencil"]) else { return };
    let (_, plate) = stencil.undisturbed_stencil(400);
    let command = stencil.stencil(400, "plate");
    let drain = ["--every", "300ms", "--drain", "shared", "--drain-every", "200ms"];
    fs::create_dir(stencil.site.path("shared")).unwrap();
    let mut running = stencil.run(&drain, &command);
    let output = stencil.site.path("job/output");
    stencil.wait(&mut running, || fs::metadata(&output).is_ok_and(|data| data.len() > 0));
    let newest = stencil.newest();
    stencil.wait(&mut running, || {
        let drained = |status: &Status| status.drained_step > Some(newest + 1);
        stencil.statuses().iter().filter(|status| drained(status)).count() == 3
    });
    stencil.kill_all(&mut running);
    fs::remove_dir_all(stencil.site.path("job")).unwrap();
    let mut running = stencil.run(&["--resume", "shared"], &command);
    let ended = running.0.wait().unwrap();
    let told = stencil.site.said();
    assert!(ended.success(), "{told}");
    assert!(told.contains("which was copied to the shared file system"), "{told}");
    assert!(told.contains("what the program said before is not in"), "{told}");
    assert!(fs::read(stencil.site.path("plate")).unwrap() == plate, "another result");
}

/// Counts in a file that it changes in place by what stands there, and in one that it opens anew each time.
const COUNTS_ON: &str = "
open('table', 'wb').write(b'     0')
table = open('table', 'r+b', buffering=0)
for count in range(400):
    table.seek(0)
    before = int(table.read(6))
    table.seek(0)
    table.write(b'%6d' % (before + 1))
    open('anew', 'ab').write(b'%d\\n' % count)
    if count == 390:
        open('anew-late', 'ab').write(b'late')
    sum(range(400_000))
";

#[test]
fn files_are_saved_by_choice() {
    if !is_possible() {
        return;
    }
    let Some(criu) = criu() else { return };
    let (site, criu) = (Site::new(None), criu.to_string_lossy().into_owned());
    let counts = Protected { site, mpi: "none", criu };
    fs::write(counts.site.path("counts.py"), COUNTS_ON).unwrap();
    let command = ["/usr/bin/python3", "counts.py"].map(str::to_owned);
    let save = ["--every", "200ms", "--save-files", "table", "--save-files", "anew*"];
    let mut running = counts.run(&save, &command);
    counts.newer_than(1, &mut running);
    let lines = || fs::read_to_string(counts.site.path("anew")).unwrap().lines().count();
    let at = lines();
    counts.wait(&mut running, || lines() > at + 2);
    counts.kill_all(&mut running);
    let ended = counts.site.output(&["restart", "--directory", "job"]);
    let told = text(&ended);
    assert!(ended.status.success(), "{told}");
    assert!(!told.contains("is changed in place"), "{told}");
    let counted: String = (0..400).map(|count| format!("{count}\n")).collect();
    assert_eq!(fs::read_to_string(counts.site.path("anew")).unwrap(), counted);
    assert_eq!(fs::read_to_string(counts.site.path("table")).unwrap(), "   400");
    assert_eq!(fs::read_to_string(counts.site.path("anew-late")).unwrap(), "late");
    let refused = counts.site.output(&[
        "run",
        "--as-is",
        "--local",
        "2",
        "--directory",
        "other",
        "--criu",
        &counts.criu,
        "--save-files",
        "../x",
        "--",
        "true",
    ]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused).contains("is no pattern for files"), "{}", text(&refused));
}

/// Counts in a file that it opens to be changed, and in one that it appends to, and computes in between.
const COUNTS: &str = "
table, log = open('table', 'r+b', buffering=0), open('log', 'ab', buffering=0)
for count in range(400):
    table.seek(0)
    table.write(b'%6d' % count)
    table.seek(0)
    log.write(b'%d\\n' % count)
    print(count, flush=True)
    sum(range(400_000))
";

#[test]
fn what_was_appended_is_taken_back_and_a_file_that_is_changed_in_place_is_named() {
    if !is_possible() {
        return;
    }
    let Some(criu) = criu() else { return };
    let (site, criu) = (Site::new(None), criu.to_string_lossy().into_owned());
    let stencil = Protected { site, mpi: "none", criu };
    let site = &stencil.site;
    fs::write(site.path("counts.py"), COUNTS).unwrap();
    fs::write(site.path("table"), "       another line").unwrap();
    let command = ["/usr/bin/python3", "counts.py"].map(str::to_owned);
    let mut running = stencil.run(&["--every", "200ms"], &command);
    stencil.newer_than(1, &mut running);
    for file in ["log", "job/output"] {
        stencil.grows(file, &mut running);
    }
    stencil.kill_all(&mut running);
    let ended = site.output(&["restart", "--directory", "job"]);
    let told = text(&ended);
    assert!(ended.status.success(), "{told}");
    assert!(told.contains("table` is changed in place"), "{told}");
    assert!(!told.contains("log` is changed in place"), "{told}");
    let counted: String = (0..400).map(|count| format!("{count}\n")).collect();
    for file in ["log", "job/output"] {
        assert_eq!(fs::read_to_string(site.path(file)).unwrap(), counted, "{file}");
    }
}

#[test]
fn what_cannot_be_captured_is_named_with_its_remedy() {
    let site = Site::new(None);
    let refused = |arguments: &[&str], parts: &[&str]| {
        let output = site.output(arguments);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        parts.iter().for_each(|part| assert!(text(&output).contains(part), "{}", text(&output)));
    };
    let run = |criu: &'static str| {
        ["run", "--as-is", "--local", "2", "--directory", "job", "--criu", criu, "--", "true"]
    };
    let few =
        ["run", "--as-is", "--local", "2", "--spares", "1", "--directory", "job", "--", "true"];
    refused(&few, &["of 2 hosts, none can be replaced", "--local 3"]);
    if !is_possible() {
        return;
    }
    refused(&run("/nowhere/criu"), &["cannot start `/nowhere/criu`", "MEIKYO_CRIU"]);
    refused(&run("true"), &["`true` does not answer as CRIU does", "CRIU 4.2 or newer"]);
    let Some(criu) = criu() else { return };
    let criu = criu.to_string_lossy().into_owned();
    // Shared memory of System V, which outlives a process and is no part of it.
    let script = "import ctypes, signal\n\
                  libc = ctypes.CDLL(None)\n\
                  libc.shmat.restype = ctypes.c_void_p\n\
                  libc.shmat(libc.shmget(0, 4096, 0o1600), None, 0)\n\
                  print('attached', flush=True)\n\
                  signal.pause()\n";
    fs::write(site.path("attach.py"), script).unwrap();
    let run = [
        "run",
        "--as-is",
        "--local",
        "2",
        "--directory",
        "job",
        "--criu",
        &criu,
        "--every",
        "100ms",
    ];
    let examined = |after: &str, command: &[&str], code: i32, parts: &[&str]| {
        let mut arguments = vec!["doctor", "--after", after, "--criu", &criu, "--"];
        arguments.extend(command);
        let output = site.output(&arguments);
        assert_eq!(output.status.code(), Some(code), "{}", text(&output));
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &text(&output);
        parts.iter().for_each(|part| assert!(said.contains(part), "{said}"));
    };
    examined(
        "500ms",
        &["sleep", "1000"],
        0,
        &["CRIU 4.", "the program can be captured: ", "stood still for"],
    );
    examined("3s", &["python3", "attach.py"], 1, &["has shared memory of System V"]);
    examined("500ms", &["false"], 2, &["has ended with 1 before it was captured", "--after"]);
    let command = ["python3", "attach.py"].map(str::to_owned);
    let mut running = site.begin(&with(&run, &command));
    let deadline = Instant::now() + PATIENCE;
    while !site.said().contains("it goes on unprotected") {
        assert!(running.0.try_wait().unwrap().is_none(), "it has ended: {}", site.said());
        assert!(Instant::now() < deadline, "{}", site.said());
    }
    let said = site.said();
    assert!(said.contains("has shared memory of System V"), "{said}");
    assert!(said.contains("UCX_TLS=posix,self,tcp"), "{said}");
    // The end of the program is that of the job, also where it is told to end.
    assert_eq!(running.signal(rustix::process::Signal::TERM), Some(128 + 15), "{}", site.said());
}
