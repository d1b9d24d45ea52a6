//! `meikyo` over the ranks that `mpirun` starts, with both MPI libraries.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::running::text;

/// Nothing here takes a tenth of this: ranks that wait for each other for ever are found.
const DEADLINE_S: &str = "300";

/// One MPI library, and where its ranks keep what they build.
struct Mpi {
    name: &'static str,
    home: TempDir,
}

/// Those that are here; says what is not.
fn libraries() -> Vec<Mpi> {
    let is_here = |name: &&str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let has = |program: &str| {
            std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
        };
        let here = has(&format!("mpirun.{name}")) && has(&format!("mpicc.{name}"));
        if !here {
            meikyo_testing::lacking(&format!("`mpirun.{name}` and `mpicc.{name}` are not there"));
        }
        here
    };
    let names = ["mpich", "openmpi"].into_iter().filter(is_here);
    names.map(|name| Mpi { name, home: tempfile::tempdir().unwrap() }).collect()
}

impl Mpi {
    /// Runs `meikyo` on two ranks.
    fn two_ranks(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.command_of(&[env!("CARGO_BIN_EXE_meikyo")]);
        command.args(arguments);
        command
    }

    /// Two ranks of a program.
    fn command_of(&self, program: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command
            .args(["--kill-after=10", DEADLINE_S, &format!("mpirun.{}", self.name), "-n", "2"])
            .args(program)
            .env("XDG_CACHE_HOME", self.home.path())
            // Open MPI refuses root and more ranks than cores unless it is told not to.
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
            .env("OMPI_MCA_rmaps_base_oversubscribe", "1");
        command
    }

    /// The library that the ranks have built, whoever of them did.
    fn kept(&self) -> PathBuf {
        let kept = self.home.path().join("meikyo").read_dir().unwrap();
        let kept: Vec<_> = kept.map(|entry| entry.unwrap().path()).collect();
        assert_eq!(kept.len(), 1, "{kept:?}");
        kept[0].clone()
    }

    /// What two ranks print: one JSON document, from the first of them.
    #[track_caller]
    fn json(&self, arguments: &[&str]) -> Value {
        json(&self.two_ranks(&[arguments, &["--json"]].concat()))
    }

    /// Exit code 2, nothing on standard output, and the error once.
    #[track_caller]
    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.two_ranks(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(output.stdout.is_empty(), "{arguments:?} printed data");
        assert_eq!(said.matches("error: ").count(), 1, "{said}");
        said
    }
}

/// What one process does.
fn alone(arguments: &[&str]) -> Output {
    crate::running::meikyo().args(arguments).output().unwrap()
}

#[track_caller]
fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", text(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn example() -> String {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    examples.join("simulate-metadata.toml").display().to_string()
}

#[test]
fn two_ranks_simulate_what_one_process_does() {
    let file = example();
    let small = ["simulate", &file, "--set", "servers=3", "--set", "clients=20", "--scheduler"];
    let truth = json(&alone(&[&small[..], &["sequential", "--json"]].concat()));
    assert_eq!(truth["effort"]["ranks"], 1);
    for mpi in libraries() {
        for scheduler in ["conservative", "optimistic", "auto"] {
            let divided = mpi.json(&[&small[..], &[scheduler]].concat());
            assert_eq!(divided["effort"]["ranks"], 2, "{scheduler}");
            for key in ["result_digest", "events", "end_ns", "figures", "statistics", "bottleneck"]
            {
                assert_eq!(divided[key], truth[key], "{key}, {scheduler}, {}", mpi.name);
            }
        }
        mpi.kept();
    }
}

#[test]
fn a_library_is_kept_and_built_anew_where_it_is_damaged_or_others_can_write_it() {
    let file = example();
    let small = ["simulate", &file, "--set", "servers=1", "--set", "clients=2"];
    for mpi in libraries() {
        mpi.json(&small);
        let kept = mpi.kept();
        let built = std::fs::read(&kept).unwrap();
        std::fs::write(&kept, "no library").unwrap();
        mpi.json(&small);
        assert!(std::fs::read(mpi.kept()).unwrap() == built, "it was built anew");
        // A host without a compiler takes what another one has built.
        let mut command = mpi.command_of(&["env", "PATH=/none", env!("CARGO_BIN_EXE_meikyo")]);
        json(&command.args(small).arg("--json").output().unwrap());
        // Nothing can be kept there.
        let mut command = mpi.command(&small);
        json(&command.arg("--json").env("XDG_CACHE_HOME", "/proc/none").output().unwrap());
        // What others can write may have been written by them.
        std::fs::set_permissions(&kept, Permissions::from_mode(0o777)).unwrap();
        mpi.json(&small);
        assert_eq!(kept.metadata().unwrap().permissions().mode() & 0o022, 0);
    }
}

#[test]
fn two_ranks_record_what_one_process_does() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("scenario.toml").display().to_string();
    let load = "model = \"phold\"\nlps = 60\nremote = 0.4\nuntil = \"20s\"\n";
    let queues = "model = \"queue\"\nqueues = 4\ncustomers = 50\n";
    let libraries = libraries();
    for (place, scenario) in [load, queues].iter().enumerate() {
        std::fs::write(&file, scenario).unwrap();
        let recording = |by: &str| dir.path().join(format!("{place}-{by}")).display().to_string();
        let rows = |by: &str| alone(&["query", &recording(by), "objects", "--json"]).stdout;
        json(&alone(&["simulate", &file, "--out", &recording("one"), "--json"]));
        let truth = rows("one");
        assert!(truth.len() > 1000, "{}", String::from_utf8_lossy(&truth));
        for mpi in &libraries {
            mpi.json(&["simulate", &file, "--out", &recording(mpi.name)]);
            assert_eq!(rows(mpi.name), truth, "{}", mpi.name);
        }
    }
}

#[test]
fn two_ranks_draw_the_figures_of_parallel_runs() {
    let dir = tempfile::tempdir().unwrap();
    let svg = dir.path().display().to_string();
    let few = ["--servers", "4", "--clients", "64,128", "--parallel-creates", "5", "--svg", &svg];
    let libraries = libraries();
    // The programs do the same with either library.
    let Some(mpi) = libraries.first() else { return };
    for (figure, scheduler) in [("9", "optimistic"), ("10", "conservative")] {
        let figure = ["bench", "metadata", "--figure", figure];
        let times = mpi.json(&[&figure[..], &few].concat());
        let rows = times["rows"].as_array().unwrap();
        let told = |row: &Value| {
            let [ranks, threads, clients] =
                ["ranks", "threads", "clients"].map(|key| row[key].as_u64().unwrap());
            (row["scheduler"].as_str().unwrap().to_owned(), ranks, threads, clients)
        };
        let expected = [64, 128].map(|clients| {
            [("sequential".to_owned(), 1, 1, clients), (scheduler.to_owned(), 2, 1, clients)]
        });
        assert_eq!(rows.iter().map(told).collect::<Vec<_>>(), expected.concat());
        for row in rows {
            assert_eq!(row["right"], true, "{row}");
            // 5 creates of each client: a request, an answer and more for each.
            assert!(row["events"].as_u64() > row["clients"].as_u64().map(|n| n * 10), "{row}");
        }
    }
    let drawn = ["figure9.svg", "figure10.svg"].map(|name| dir.path().join(name).exists());
    assert_eq!(drawn, [true, true]);
}

#[test]
fn what_cannot_be_divided_over_ranks_is_refused_once() {
    for mpi in libraries() {
        let figures = mpi.refused(&["bench", "metadata", "--figure", "5"]);
        assert!(
            figures.contains("figures 5 to 8") && figures.contains("--figure 9,10"),
            "{figures}"
        );
        let sweep = mpi.refused(&["simulate", &example(), "--sweep", "servers=1,2"]);
        assert!(sweep.contains("replications and sweeps run on one machine"), "{sweep}");
        let missing = mpi.refused(&["simulate", "no-such-scenario.toml"]);
        assert!(missing.contains("cannot read `no-such-scenario.toml`"), "{missing}");
    }
}

#[test]
fn an_mpi_that_cannot_be_called_is_told_with_what_to_install_or_name() {
    let libraries = libraries();
    for mpi in &libraries {
        let said = |compiler: &str| {
            let output = mpi.command(&["simulate", &example()]).env("MPICC", compiler).output();
            let output = output.unwrap();
            assert!(!output.status.success() && output.stdout.is_empty(), "{}", text(&output));
            String::from_utf8_lossy(&output.stderr).into_owned()
        };
        let missing = said("no-such-mpicc");
        assert!(missing.contains("cannot run `no-such-mpicc`"), "{missing}");
        assert_eq!(missing.matches("No such file or directory").count(), 2, "by rank: {missing}");
        assert!(missing.contains("libmpich-dev or libopenmpi-dev"), "{missing}");
        let refuses = said("false");
        assert!(refuses.contains("`false` fails"), "{refuses}");
        let none = said("cc");
        assert!(none.contains("mpi.h") || none.contains("cannot load"), "{none}");
        for other in libraries.iter().filter(|other| other.name != mpi.name) {
            let other = said(&format!("mpicc.{}", other.name));
            assert!(other.contains("`mpirun` started 2 processes"), "{other}");
            assert!(other.contains("name the compiler of the MPI whose `mpirun` it is"), "{other}");
        }
    }
}
