//! Runs over 1 and 2 ranks of both MPI libraries give what one process gives.
//!
//! The program that the ranks run is the example `ranks`, the same with both.
#![expect(clippy::disallowed_methods, reason = "tests start real programs")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

use meikyo_sim::{Ranks, Scheduler};

mod cases;

/// Nothing here takes a tenth of this: ranks that wait for each other for ever are found.
const DEADLINE_S: &str = "300";

/// One MPI library as Debian names its programs, and what its `mpirun` needs to be told here.
struct Library {
    name: &'static str,
    packages: &'static str,
    arguments: &'static [&'static str],
}

const MPICH: Library = Library { name: "mpich", packages: "mpich libmpich-dev", arguments: &[] };
const OPEN_MPI: Library = Library {
    name: "openmpi",
    packages: "openmpi-bin libopenmpi-dev",
    arguments: &["--allow-run-as-root", "--oversubscribe"],
};

#[test]
fn ranks_of_mpich_get_what_one_process_gets() {
    check(&MPICH);
}

#[test]
fn ranks_of_open_mpi_get_what_one_process_gets() {
    check(&OPEN_MPI);
}

/// One library after the other: ranks that wait take a core each.
static TURN: Mutex<()> = Mutex::new(());

fn check(library: &Library) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    if !library.is_there() {
        let Library { name, packages, .. } = library;
        meikyo_testing::lacking(&format!("no {name} here; `apt-get install {packages}`"));
        return;
    }
    let program = built();
    let truth = truth();
    for count in [1, 2] {
        let output = library.run(count, &program, None);
        assert!(output.status.success(), "{} of {}: {}", count, library.name, said(&output));
        for rank in 0..count {
            same(library, count, rank, &truth);
        }
    }
    library.run(2, &program, Some("differ"));
    for rank in 0..2 {
        assert_eq!(
            library.read(rank),
            "rank 1 runs another model than rank 0, or runs it in another way"
        );
    }
    library.run(2, &program, Some("gone"));
    assert_eq!(library.read(0), "rank 1 ended before the run began");
    for end in ["die", "panic"] {
        let output = library.run(2, &program, Some(end));
        let code = output.status.code();
        assert!(!output.status.success(), "{} {end}: {}", library.name, said(&output));
        assert!(code != Some(124) && code != Some(137), "{} {end} hung", library.name);
    }
}

/// What every case results in, in this process.
fn truth() -> BTreeMap<String, (String, String)> {
    let all = cases::run_all(Scheduler::Sequential, Ranks::ONE);
    assert!(all.iter().all(|said| said.effort.ranks <= 1));
    all.into_iter().map(|said| (said.case, (said.result, said.lines))).collect()
}

/// Compares what a rank wrote with the truth.
fn same(library: &Library, count: usize, rank: usize, truth: &BTreeMap<String, (String, String)>) {
    let text = library.read(rank);
    let (mut runs, mut over_all, mut rollbacks) = (0, 0, 0);
    for line in text.lines() {
        let [scheduler, case, result, lines, used, back] =
            line.split('|').collect::<Vec<_>>().try_into().expect("six columns");
        let what = format!("{scheduler}, {case}, rank {rank} of {count}, {}", library.name);
        let (true_result, true_lines) = &truth[case];
        assert_eq!(result, true_result, "{what}");
        // What a run says on the way is said on the first rank.
        let heard = if rank == 0 { true_lines } else { &cases::silence() };
        assert_eq!(lines, heard, "lines, {what}");
        runs += 1;
        over_all += u32::from(used == count.to_string());
        rollbacks += back.parse::<u64>().expect("a count");
    }
    assert_eq!(runs, 5 * truth.len(), "every case ran under every scheduler");
    if count > 1 {
        assert!(over_all > 50, "{over_all} runs had a part on every rank");
        assert!(rollbacks > 50, "{rollbacks} rollbacks are too few to find anything");
    }
}

/// Has cargo build the example, unless it has done so with the tests; gives its path.
fn built() -> PathBuf {
    let temporary = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let target = temporary.parent().expect("it lies in the target folder");
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = Command::new(cargo);
    // What cargo says of this package must not reach the cargo that is started from here.
    for (variable, _) in std::env::vars() {
        if variable.starts_with("CARGO_PKG_") || variable.starts_with("CARGO_MANIFEST_") {
            command.env_remove(variable);
        }
    }
    // Set for the test programs only: crates would be built anew with it.
    command.env_remove("RUSTC_BOOTSTRAP");
    let workspace = ["build", "--quiet", "--locked", "--workspace", "--example", "ranks"];
    command.args(workspace).args(["--features", "meikyo-models/slow", "--target-dir"]).arg(target);
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let output = output.expect("cargo can be run");
    assert!(output.status.success(), "{}", said(&output));
    target.join("debug/examples/ranks")
}

impl Library {
    /// Whether it can be called and run here.
    fn is_there(&self) -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        [format!("mpicc.{}", self.name), format!("mpirun.{}", self.name)].iter().all(|program| {
            std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
        })
    }

    /// Runs the program on `count` ranks, to the deadline at the latest (exit code 124 or 137).
    fn run(&self, count: usize, program: &Path, what: Option<&str>) -> Output {
        let directory = self.directory();
        if directory.exists() {
            std::fs::remove_dir_all(&directory).expect("it is ours");
        }
        std::fs::create_dir_all(&directory).expect("there is room");
        Command::new("timeout")
            .args(["--kill-after=10", DEADLINE_S, &format!("mpirun.{}", self.name)])
            .args(self.arguments)
            .args(["-n", &count.to_string()])
            .arg(program)
            .arg(&directory)
            .args(what)
            .env("XDG_CACHE_HOME", self.directory().join("cache"))
            .output()
            .expect("`timeout` can be run")
    }

    /// Where ranks write.
    fn directory(&self) -> PathBuf {
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("ranks-{}", self.name))
    }

    fn read(&self, rank: usize) -> String {
        std::fs::read_to_string(self.directory().join(format!("rank-{rank}")))
            .expect("a rank that ends well has written")
    }
}

fn said(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    format!("{}\n{out}{err}", output.status)
}
