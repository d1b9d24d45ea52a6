//! The binary `meikyo`, built with MPI, over the ranks that `mpirun` starts.
//!
//! Which library that is was decided when it was built, see `docs/simulation-mpi.md`. `./x test` takes
//! MPICH; the test `ranks` of `models` has both.
#![expect(clippy::disallowed_methods, reason = "tests start real programs")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Nothing here takes a tenth of this: ranks that wait for each other for ever are found.
const DEADLINE_S: &str = "300";

/// The `mpirun` that belongs to the `mpicc` which the binary was linked with.
fn mpirun() -> String {
    option_env!("MPICC").unwrap_or("mpicc").replace("mpicc", "mpirun")
}

/// Runs `meikyo` on two ranks, or as one process.
fn meikyo(ranks: usize, arguments: &[&str]) -> Output {
    let binary = env!("CARGO_BIN_EXE_meikyo");
    let launch: &[&str] = if ranks > 1 { &[&mpirun(), "-n", "2", binary] } else { &[binary] };
    Command::new("timeout")
        .args(["--kill-after=10", DEADLINE_S])
        .args(launch)
        .args(arguments)
        // Open MPI refuses root and more ranks than cores unless it is told not to.
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .output()
        .expect("`timeout` can be run")
}

#[track_caller]
fn json(ranks: usize, arguments: &[&str]) -> Value {
    let output = meikyo(ranks, &[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    serde_json::from_slice(&output.stdout).expect("one JSON document, from the first rank")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Exit code 2, nothing on standard output, and the error once.
#[track_caller]
fn refused(arguments: &[&str]) -> String {
    let output = meikyo(2, arguments);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(output.stdout.is_empty(), "{arguments:?} printed data");
    assert_eq!(said.matches("error: ").count(), 1, "{said}");
    said
}

fn example() -> String {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    examples.join("simulate-metadata.toml").display().to_string()
}

#[test]
fn two_ranks_simulate_what_one_process_does() {
    let file = example();
    let small = ["simulate", &file, "--set", "servers=3", "--set", "clients=20", "--scheduler"];
    let truth = json(1, &[&small[..], &["sequential"]].concat());
    assert_eq!(truth["effort"]["ranks"], 1);
    for scheduler in ["conservative", "optimistic", "auto"] {
        let divided = json(2, &[&small[..], &[scheduler]].concat());
        assert_eq!(divided["effort"]["ranks"], 2, "{scheduler}");
        for key in ["result_digest", "events", "end_ns", "figures", "statistics", "bottleneck"] {
            assert_eq!(divided[key], truth[key], "{key}, {scheduler}");
        }
    }
}

#[test]
fn two_ranks_record_what_one_process_does() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("scenario.toml").display().to_string();
    let load = "model = \"phold\"\nlps = 60\nremote = 0.4\nuntil = \"20s\"\n";
    let queues = "model = \"queue\"\nqueues = 4\ncustomers = 50\n";
    for (place, scenario) in [load, queues].iter().enumerate() {
        std::fs::write(&file, scenario).unwrap();
        let rows = [1, 2].map(|ranks| {
            let recording = dir.path().join(format!("{place}-{ranks}")).display().to_string();
            json(ranks, &["simulate", &file, "--out", &recording]);
            meikyo(1, &["query", &recording, "objects", "--json"]).stdout
        });
        assert!(rows[0].len() > 1000, "{}", String::from_utf8_lossy(&rows[0]));
        assert_eq!(rows[0], rows[1]);
    }
}

#[test]
fn two_ranks_draw_the_figures_of_parallel_runs() {
    let dir = tempfile::tempdir().unwrap();
    let svg = dir.path().display().to_string();
    let few = ["--servers", "4", "--clients", "64,128", "--parallel-creates", "5", "--svg", &svg];
    for (figure, scheduler) in [("9", "optimistic"), ("10", "conservative")] {
        let figure = ["bench", "metadata", "--figure", figure];
        let times = json(2, &[&figure[..], &few].concat());
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
    let figures = refused(&["bench", "metadata", "--figure", "5"]);
    assert!(figures.contains("figures 5 to 8") && figures.contains("--figure 9,10"), "{figures}");
    let sweep = refused(&["simulate", &example(), "--sweep", "servers=1,2"]);
    assert!(sweep.contains("replications and sweeps run on one machine"), "{sweep}");
    let missing = refused(&["simulate", "no-such-scenario.toml"]);
    assert!(missing.contains("cannot read `no-such-scenario.toml`"), "{missing}");
}
