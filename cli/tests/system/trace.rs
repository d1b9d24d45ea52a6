//! `meikyo trace`: programs in C and Fortran whose messages are known, with both MPIs, and their replay.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::running::{meikyo, ring, text};

const MPIS: [&str; 2] = ["mpich", "openmpi"];

/// Every kind of call once. Threads and receives from anybody are among them.
const KNOWN_C: &str = r#"
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>

static int own, ranks;

static void *beside(void *nothing) {
    char octets[300] = {0};
    if (own == 0) MPI_Send(octets, 300, MPI_CHAR, 1, 40, MPI_COMM_WORLD);
    if (own == 1) MPI_Recv(octets, 300, MPI_CHAR, 0, 40, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return nothing;
}

int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &own);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int next = (own + 1) % ranks, before = (own + ranks - 1) % ranks;
    double out[1000] = {0}, in[4000];
    MPI_Request requests[2], again;
    MPI_Status statuses[2];
    int counts[4] = {1, 2, 3, 4}, places[4] = {0, 10, 20, 30}, some[2], count, index, flag;

    MPI_Irecv(in, 1000, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, 1000, MPI_DOUBLE, next, 7, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    if (statuses[0].MPI_SOURCE != before) MPI_Abort(MPI_COMM_WORLD, 3);

    MPI_Sendrecv(out, 10, MPI_INT, next, 8, in, 10, MPI_INT, before, 8, MPI_COMM_WORLD, statuses);
    MPI_Send(out, 1, MPI_DOUBLE, MPI_PROC_NULL, 9, MPI_COMM_WORLD);

    MPI_Irecv(in, 5, MPI_SHORT, before, 10, MPI_COMM_WORLD, &requests[0]);
    MPI_Send(out, 5, MPI_SHORT, next, 10, MPI_COMM_WORLD);
    do MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
    while (!flag);

    MPI_Irecv(in, 5, MPI_SHORT, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &requests[0]);
    MPI_Cancel(&requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);

    MPI_Send_init(out, 6, MPI_FLOAT, next, 11, MPI_COMM_WORLD, &again);
    for (int time = 0; time < 2; time++) {
        MPI_Start(&again);
        MPI_Recv(in, 6, MPI_FLOAT, MPI_ANY_SOURCE, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&again, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&again);

    /* Odd and even ranks, counted backwards. */
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, own % 2, -own, &half);
    int place, halves;
    MPI_Comm_rank(half, &place);
    MPI_Comm_size(half, &halves);
    MPI_Irecv(in, 3, MPI_CHAR, 1 - place, 7, half, &requests[0]);
    MPI_Isend(out, 3, MPI_CHAR, 1 - place, 7, half, &requests[1]);
    MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
    MPI_Waitsome(2, requests, &count, some, statuses);
    MPI_Bcast(out, 100, MPI_INT, 1, half);
    MPI_Comm_free(&half);

    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Reduce(out, in, 20, MPI_DOUBLE, MPI_SUM, 2, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, in, 30, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Alltoall(out, 50, MPI_DOUBLE, in, 50, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 60, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Gatherv(out, counts[own], MPI_DOUBLE, in, counts, places, MPI_DOUBLE, 3, MPI_COMM_WORLD);
    MPI_Scatter(out, 9, MPI_INT, in, 9, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Ialltoall(out, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, MPI_COMM_WORLD, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);

    pthread_t thread;
    if (provided == MPI_THREAD_MULTIPLE) {
        pthread_create(&thread, NULL, beside, NULL);
        pthread_join(thread, NULL);
    } else {
        beside(NULL);
    }
    MPI_Finalize();
    return 0;
}
"#;

/// What rank `own` of four writes, apart from computing, and with `@` for the number of its half.
fn known(own: usize) -> Vec<String> {
    let (next, before) = ((own + 1) % 4, (own + 3) % 4);
    // Members of the half by falling rank; the other one of it.
    let other = (own + 2) % 4;
    let [first, last] = [own.max(other), own.min(other)];
    let counts = if own == 3 {
        "8 16 24 32".to_owned()
    } else {
        (0..4)
            .map(|rank| if rank == own { (8 * (own + 1)).to_string() } else { "0".into() })
            .collect::<Vec<_>>()
            .join(" ")
    };
    let mut lines = vec!["init".to_owned()];
    if own == 0 {
        lines.push("comm_size 4".into());
    }
    lines.extend([
        format!("irecv {before} 7 8000"),
        format!("isend {next} 7 8000"),
        "waitall 2".into(),
        format!("irecv {before} 8 40"),
        format!("send {next} 8 40"),
        format!("wait {before} {own} 8"),
        format!("irecv {before} 10 10"),
        format!("send {next} 10 10"),
        format!("wait {before} {own} 10"),
        format!("isend {next} 11 24"),
        format!("recv {before} 11 24"),
        format!("wait {own} {next} 11"),
        format!("isend {next} 11 24"),
        format!("recv {before} 11 24"),
        format!("wait {own} {next} 11"),
        format!("comm_split 2 @ {first} {last}"),
        format!("irecv {other} 7 3 @"),
        format!("isend {other} 7 3 @"),
        "waits".into(),
        "bcast 400 1 @".into(),
        "barrier".into(),
        "reduce 160 0 2".into(),
        "allreduce 240 0".into(),
        "alltoall 400 400".into(),
        "allgather 480 480".into(),
        format!("gatherv {} {counts} 3", 8 * (own + 1)),
        "scatter 36 36 0".into(),
        "alltoall 8 8".into(),
    ]);
    lines.extend(match own {
        0 => Some("send 1 40 300".to_owned()),
        1 => Some("recv 0 40 300".to_owned()),
        _ => None,
    });
    lines.push("finalize".into());
    lines
}

/// The same lines as they stand in a file: which of two requests of one call is done first is not known.
fn written(directory: &Path, own: usize) -> Vec<String> {
    let all = fs::read_to_string(directory.join(format!("rank-{own}.txt"))).unwrap();
    let mut lines: Vec<String> = Vec::new();
    // What was cancelled is a comment.
    for line in all.lines().filter(|line| !line.starts_with('#')) {
        let words = line.split_whitespace();
        let (numbers, rest): (Vec<_>, Vec<_>) = words.enumerate().partition(|(at, _)| *at == 0);
        assert_eq!(numbers[0].1, own.to_string());
        let plain = |(_, word): (usize, &str)| {
            if word.starts_with('@') { "@".to_owned() } else { word.to_owned() }
        };
        let line = rest.into_iter().map(plain).collect::<Vec<_>>().join(" ");
        if line.starts_with("compute ") {
            continue;
        }
        // One or two requests at a time are told done in the half.
        let in_half = line.starts_with("wait") && line.ends_with('@') || line == "waitall 1";
        if in_half {
            if lines.last().is_some_and(|last| last != "waits") {
                lines.push("waits".into());
            }
            continue;
        }
        lines.push(line);
    }
    lines
}

fn has(tool: &str) -> bool {
    let output = Command::new(tool).arg("--version").output();
    let has = output.is_ok_and(|output| output.status.success());
    if !has {
        meikyo_testing::lacking(&format!("`{tool}` is not there"));
    }
    has
}

/// Builds a program and traces four ranks of it.
fn traced(home: &Path, compiler: &str, mpi: &str, source: &str, name: &str) -> Output {
    fs::write(home.join(name), source).unwrap();
    let built = Command::new(compiler)
        .args([name, "-o", "program", "-lpthread"])
        .current_dir(home)
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", text(&built));
    let mut command = meikyo();
    command.current_dir(home).args(["trace", "--json", "--", &format!("mpirun.{mpi}"), "-n", "4"]);
    if mpi == "openmpi" {
        command.args(["--allow-run-as-root", "--oversubscribe"]);
    }
    command.arg("./program").output().unwrap()
}

/// A program that was traced with each MPI that is here: its name, where, and what was said.
fn traced_with_both(
    compiler: &str,
    program: &str,
    file: &str,
) -> Vec<(&'static str, TempDir, Output)> {
    let of = |mpi: &str| format!("{compiler}.{mpi}");
    let here = MPIS.into_iter().filter(|mpi| has(&format!("mpirun.{mpi}")) && has(&of(mpi)));
    here.map(|mpi| {
        let home = tempfile::tempdir().unwrap();
        let output = traced(home.path(), &of(mpi), mpi, program, file);
        assert!(output.status.success(), "{mpi}: {}", text(&output));
        (mpi, home, output)
    })
    .collect()
}

#[test]
fn what_a_program_in_c_calls_is_written_down_with_both_mpis() {
    for (mpi, home, output) in traced_with_both("mpicc", KNOWN_C, "known.c") {
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(told["ranks"], 4, "{told}");
        assert!(told["bytes_per_call"].as_f64().unwrap() <= 40.0, "{told}");
        let directory = home.path().join("trace");
        for own in 0..4 {
            assert_eq!(written(&directory, own), known(own), "{mpi}, rank {own}");
        }
        // It is replayed on a fabric.
        fs::write(home.path().join("cluster.toml"), ring("powerconnect-6248", "")).unwrap();
        for method in ["flow", "packet"] {
            let replayed = meikyo()
                .current_dir(home.path())
                .args([
                    "fabric",
                    "predict",
                    "--program",
                    "trace:trace",
                    "--json",
                    "--method",
                    method,
                ])
                .output()
                .unwrap();
            assert!(replayed.status.success(), "{}", text(&replayed));
            let told: Value = serde_json::from_slice(&replayed.stdout).unwrap();
            assert_eq!(told["program"], "trace");
            assert!(told["rows"][0]["time_s"].as_f64().unwrap() > 0.0, "{told}");
        }
        // There is a trace now.
        let again = traced(home.path(), &format!("mpicc.{mpi}"), mpi, KNOWN_C, "known.c");
        assert_eq!(again.status.code(), Some(2));
        assert!(text(&again).contains("name another directory with --out"), "{}", text(&again));
    }
}

/// Fortran passes everything by reference, has handles of its own and another `MPI_IN_PLACE`.
const KNOWN_FORTRAN: &str = r"
program known
  implicit none
  include 'mpif.h'
  integer :: error, own, ranks, requests(2), next, before
  integer :: status(MPI_STATUS_SIZE), statuses(MPI_STATUS_SIZE, 2), half
  double precision :: out(1000), in(4000)
  out = 0
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, own, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  next = mod(own + 1, ranks)
  before = mod(own + ranks - 1, ranks)
  call MPI_Irecv(in, 1000, MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, requests(1), error)
  call MPI_Isend(out, 1000, MPI_DOUBLE_PRECISION, next, 7, MPI_COMM_WORLD, requests(2), error)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, error)
  call MPI_Sendrecv(out, 10, MPI_INTEGER, next, 8, in, 10, MPI_INTEGER, before, 8, MPI_COMM_WORLD, status, error)
  call MPI_Irecv(in, 10, MPI_INTEGER, before, 9, MPI_COMM_WORLD, requests(1), error)
  call MPI_Send(out, 10, MPI_INTEGER, next, 9, MPI_COMM_WORLD, error)
  call MPI_Wait(requests(1), status, error)
  call MPI_Allreduce(MPI_IN_PLACE, in, 30, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 60, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, error)
  call MPI_Comm_dup(MPI_COMM_WORLD, half, error)
  call MPI_Bcast(out, 4, MPI_INTEGER, 3, half, error)
  call MPI_Finalize(error)
end program
";

#[test]
fn what_a_program_in_fortran_calls_is_written_down_with_both_mpis() {
    for (mpi, home, _) in traced_with_both("mpif90", KNOWN_FORTRAN, "known.f90") {
        for own in 0..4 {
            let (next, before) = ((own + 1) % 4, (own + 3) % 4);
            let lines = written(&home.path().join("trace"), own);
            let begin = usize::from(own == 0) + 1;
            assert_eq!(
                lines[begin..],
                [
                    format!("irecv {before} 7 8000"),
                    format!("isend {next} 7 8000"),
                    "waitall 2".into(),
                    format!("irecv {before} 8 40"),
                    format!("send {next} 8 40"),
                    format!("wait {before} {own} 8"),
                    format!("irecv {before} 9 40"),
                    format!("send {next} 9 40"),
                    format!("wait {before} {own} 9"),
                    "allreduce 240 0".into(),
                    "allgather 480 480".into(),
                    "comm_split 4 @ 0 1 2 3".into(),
                    "bcast 16 3 @".into(),
                    "finalize".into(),
                ],
                "{mpi}, rank {own}"
            );
        }
    }
}

#[test]
fn what_cannot_be_traced_or_read_is_told_with_what_helps() {
    let home = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let output = meikyo().current_dir(home.path()).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        text(&output)
    };
    let told = run(&["trace", "--mpicc", "no-such-compiler", "--", "true"]);
    assert!(told.contains("name it with --mpicc"), "{told}");
    if has("mpicc") {
        // Not an MPI program: nobody writes anything.
        let told = run(&["trace", "--", "true"]);
        assert!(told.contains("no rank wrote anything"), "{told}");
    }
    fs::write(home.path().join("cluster.toml"), ring("powerconnect-6248", "")).unwrap();
    let told = run(&["fabric", "predict", "--program", "trace:nowhere"]);
    assert!(told.contains("`meikyo trace`"), "{told}");
    fs::write(home.path().join("bad.txt"), "0 send 1 3 8\n0 sing\n1 recv 0 3 8\n").unwrap();
    let told = run(&["fabric", "predict", "--program", "trace:bad.txt"]);
    assert!(told.contains("bad.txt, line 2: unknown verb `sing`"), "{told}");
}
