//! `meikyo trace --from-otf2`: what `EZTrace` recorded beside what our own recorder did of the same program, an archive with
//! all that Score-P tells, and damaged ones.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::running::{meikyo, ring, text};

/// Calls of which `EZTrace` tells all but the ends of requests.
const PROGRAM_C: &str = r#"
#include <mpi.h>
int main(int argc, char **argv) {
    int own, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &own);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int next = (own + 1) % ranks, before = (own + ranks - 1) % ranks;
    static double out[4000], in[4000];
    int counts[4] = {1, 2, 3, 4}, places[4] = {0, 10, 20, 30}, same[4] = {5, 5, 5, 5};
    MPI_Request requests[2];
    MPI_Status status;
    MPI_Irecv(in, 1000, MPI_DOUBLE, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, 1000, MPI_DOUBLE, next, 7, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    if (own % 2) {
        MPI_Send(out, 9, MPI_INT, next, 8, MPI_COMM_WORLD);
        MPI_Recv(in, 9, MPI_INT, before, 8, MPI_COMM_WORLD, &status);
    } else {
        MPI_Recv(in, 9, MPI_INT, MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, &status);
        MPI_Send(out, 9, MPI_INT, next, 8, MPI_COMM_WORLD);
    }
    MPI_Bcast(out, 400, MPI_INT, 1, MPI_COMM_WORLD);
    MPI_Reduce(out, in, 20, MPI_DOUBLE, MPI_SUM, 2, MPI_COMM_WORLD);
    MPI_Allreduce(out, in, 30, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Alltoall(out, 50, MPI_DOUBLE, in, 50, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Allgather(out, 60, MPI_DOUBLE, in, 60, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Gather(out, 70, MPI_INT, in, 70, MPI_INT, 3, MPI_COMM_WORLD);
    MPI_Scatter(out, 80, MPI_INT, in, 80, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Allgatherv(out, counts[own], MPI_DOUBLE, in, counts, places, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Reduce_scatter(out, in, same, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, own % 2, -own, &half);
    int place;
    MPI_Comm_rank(half, &place);
    MPI_Bcast(out, 100, MPI_INT, 1, half);
    if (place == 0) MPI_Send(out, 3, MPI_CHAR, 1, 4, half);
    if (place == 1) MPI_Recv(in, 3, MPI_CHAR, 0, 4, half, &status);
    MPI_Finalize();
    return 0;
}
"#;

/// Two ranks as Score-P records them, within a function of the program that is called like one of MPI: octets of collective operations are sums over all members. Times are microseconds.
const WRITER_C: &str = r#"
#include <otf2/otf2.h>
#include <stdlib.h>
static OTF2_FlushType before(void *u, OTF2_FileType t, OTF2_LocationRef l, void *c, bool f) { return OTF2_FLUSH; }
static OTF2_TimeStamp after(void *u, OTF2_FileType t, OTF2_LocationRef l) { return 100; }
static OTF2_FlushCallbacks flush = {.otf2_pre_flush = before, .otf2_post_flush = after};
enum { INIT, SEND, RECV, IRECV, WAIT, SENDRECV, ALLREDUCE, IALLREDUCE, SCAN, FINALIZE, WORK, REGIONS };
static const char *names[REGIONS] = {"MPI_Init", "MPI_Send", "MPI_Recv", "MPI_Irecv", "MPI_Wait", "MPI_Sendrecv",
    "MPI_Allreduce", "MPI_Iallreduce", "MPI_Scan", "MPI_Finalize", "mpi_halo_exchange"};
static OTF2_EvtWriter *w;
static uint64_t now;
static void in(int region, int after) { OTF2_EvtWriter_Enter(w, NULL, now += after, region); }
static void out(int region) { OTF2_EvtWriter_Leave(w, NULL, now += 1, region); }
static void all(int call, int op, uint64_t sent, uint64_t received) {
    in(call, 0);
    OTF2_EvtWriter_MpiCollectiveBegin(w, NULL, now);
    OTF2_EvtWriter_MpiCollectiveEnd(w, NULL, now += 50, op, 0, OTF2_COLLECTIVE_ROOT_NONE, sent, received);
    out(call);
}
int main(int argc, char **argv) {
    OTF2_Archive *a = OTF2_Archive_Open(argv[1], "traces", OTF2_FILEMODE_WRITE, 1 << 20, 4 << 20,
        OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
    OTF2_Archive_SetFlushCallbacks(a, &flush, NULL);
    OTF2_Archive_SetSerialCollectiveCallbacks(a);
    OTF2_Archive_SetCreator(a, "Score-P 8.4");
    OTF2_Archive_OpenEvtFiles(a);
    uint64_t events[2];
    for (int own = 0; own < 2; own++) {
        w = OTF2_Archive_GetEvtWriter(a, own);
        now = 1000;
        in(WORK, 0);
        in(INIT, 700), out(INIT);
        in(IRECV, 20), OTF2_EvtWriter_MpiIrecvRequest(w, NULL, now, 9), out(IRECV);
        in(SEND, 0), OTF2_EvtWriter_MpiSend(w, NULL, now, 1 - own, 0, 5, 100 + own), out(SEND);
        in(WAIT, 30), OTF2_EvtWriter_MpiIrecv(w, NULL, now, 1 - own, 0, 5, 101 - own, 9), out(WAIT);
        in(SENDRECV, 0);
        OTF2_EvtWriter_MpiSend(w, NULL, now, 1 - own, 0, 6, 8);
        OTF2_EvtWriter_MpiRecv(w, NULL, now += 5, 1 - own, 0, 6, 8);
        out(SENDRECV);
        all(ALLREDUCE, OTF2_COLLECTIVE_OP_ALLREDUCE, 2 * 24, 2 * 24);
        all(SCAN, OTF2_COLLECTIVE_OP_SCAN, (2 - own) * 40, (own + 1) * 40);
        in(IALLREDUCE, 0), OTF2_EvtWriter_NonBlockingCollectiveRequest(w, NULL, now, 11), out(IALLREDUCE);
        in(WAIT, 40);
        OTF2_EvtWriter_NonBlockingCollectiveComplete(w, NULL, now, OTF2_COLLECTIVE_OP_ALLREDUCE, 0,
            OTF2_COLLECTIVE_ROOT_NONE, 2 * 64, 2 * 64, 11);
        out(WAIT);
        in(FINALIZE, 60), out(FINALIZE);
        out(WORK);
        OTF2_EvtWriter_GetNumberOfEvents(w, &events[own]);
        OTF2_Archive_CloseEvtWriter(a, w);
    }
    OTF2_Archive_CloseEvtFiles(a);
    OTF2_Archive_OpenDefFiles(a);
    for (int own = 0; own < 2; own++) OTF2_Archive_CloseDefWriter(a, OTF2_Archive_GetDefWriter(a, own));
    OTF2_Archive_CloseDefFiles(a);
    OTF2_GlobalDefWriter *d = OTF2_Archive_GetGlobalDefWriter(a);
    OTF2_GlobalDefWriter_WriteClockProperties(d, 1000000, 0, now, OTF2_UNDEFINED_TIMESTAMP);
    OTF2_GlobalDefWriter_WriteString(d, 100, "a name");
    OTF2_GlobalDefWriter_WriteSystemTreeNode(d, 0, 100, 100, OTF2_UNDEFINED_SYSTEM_TREE_NODE);
    for (int r = 0; r < REGIONS; r++) {
        OTF2_GlobalDefWriter_WriteString(d, r, names[r]);
        OTF2_GlobalDefWriter_WriteRegion(d, r, r, r, 100, OTF2_REGION_ROLE_FUNCTION,
            r == WORK ? OTF2_PARADIGM_USER : OTF2_PARADIGM_MPI, OTF2_REGION_FLAG_NONE, 100, 0, 0);
    }
    for (int own = 0; own < 2; own++) {
        OTF2_GlobalDefWriter_WriteLocationGroup(d, own, 100, OTF2_LOCATION_GROUP_TYPE_PROCESS, 0,
            OTF2_UNDEFINED_LOCATION_GROUP);
        OTF2_GlobalDefWriter_WriteLocation(d, own, 100, OTF2_LOCATION_TYPE_CPU_THREAD, events[own], own);
    }
    uint64_t ranks[] = {0, 1};
    OTF2_GlobalDefWriter_WriteGroup(d, 0, 100, OTF2_GROUP_TYPE_COMM_LOCATIONS, OTF2_PARADIGM_MPI,
        OTF2_GROUP_FLAG_NONE, 2, ranks);
    OTF2_GlobalDefWriter_WriteGroup(d, 1, 100, OTF2_GROUP_TYPE_COMM_GROUP, OTF2_PARADIGM_MPI, OTF2_GROUP_FLAG_NONE, 2,
        ranks);
    OTF2_GlobalDefWriter_WriteComm(d, 0, 100, 1, OTF2_UNDEFINED_COMM, OTF2_COMM_FLAG_NONE);
    OTF2_Archive_Close(a);
    return 0;
}
"#;

fn cli(home: &Path, arguments: &[&str]) -> Output {
    meikyo().current_dir(home).args(arguments).output().unwrap()
}

/// Whether a command ends well; that it does not is why a test is skipped.
fn works(command: &str, arguments: &[&str], lacking: &str) -> bool {
    let output = Command::new(command).args(arguments).output();
    let works = output.is_ok_and(|output| output.status.success());
    if !works {
        meikyo_testing::lacking(lacking);
    }
    works
}

fn has_library() -> bool {
    works("otf2-config", &["--version"], "OTF2's library (libotf2-trace-dev) is not there")
}

/// What a rank called, but for computing and for what communicators are called.
fn calls(trace: &Path, own: usize) -> Vec<String> {
    let text = fs::read_to_string(trace.join(format!("rank-{own}.txt"))).unwrap();
    let words = |line: &str| {
        // Who waits for all does not need to know how many these are.
        let line = if line.contains(" waitall") { line.trim_end_matches(" 2") } else { line };
        let words =
            line.split_whitespace().map(|word| if word.starts_with('@') { "@" } else { word });
        words.collect::<Vec<_>>().join(" ")
    };
    text.lines().filter(|line| !line.contains("compute")).map(words).collect()
}

/// The archive that lies somewhere in a directory.
fn archive(within: &Path) -> Option<PathBuf> {
    fs::read_dir(within).ok()?.find_map(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return archive(&path);
        }
        path.extension().is_some_and(|ending| ending == "otf2").then_some(path)
    })
}

#[test]
fn a_program_that_eztrace_recorded_called_what_our_recorder_says() {
    if !has_library() || !works("eztrace", &["-h"], "`eztrace` is not there") {
        return;
    }
    for mpi in ["mpich", "openmpi"] {
        let (launcher, compiler) = (format!("mpirun.{mpi}"), format!("mpicc.{mpi}"));
        if !works(&compiler, &["--version"], &format!("`{compiler}` is not there")) {
            continue;
        }
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("program.c"), PROGRAM_C).unwrap();
        let run = |command: &mut Command| {
            let output = command.current_dir(home.path()).output().unwrap();
            assert!(output.status.success(), "{mpi}: {}", text(&output));
        };
        run(Command::new(&compiler).args(["program.c", "-o", "program"]));
        let mut start = vec![launcher.as_str(), "-n", "4"];
        if mpi == "openmpi" {
            start.extend(["--allow-run-as-root", "--oversubscribe"]);
        }
        run(meikyo().args(["trace", "--out", "own", "--"]).args(&start).arg("./program"));
        let eztrace = ["eztrace", "-t", mpi, "-o", "recorded", "./program"];
        run(Command::new(start[0]).args(&start[1..]).args(eztrace));
        let archive = archive(&home.path().join("recorded")).unwrap();
        let archive = archive.to_str().unwrap();
        let output = cli(home.path(), &["trace", "--from-otf2", archive, "--out", "theirs"]);
        assert!(output.status.success(), "{mpi}: {}", text(&output));
        for own in 0..4 {
            let [ours, theirs] = ["own", "theirs"].map(|of| calls(&home.path().join(of), own));
            let is_group = |line: &&String| line.contains("comm_split");
            let groups =
                |lines: &[String]| lines.iter().filter(is_group).cloned().collect::<Vec<_>>();
            // The halves; the archive's are at the beginning, since it does not say when they were made.
            assert!(
                groups(&theirs).iter().any(|group| groups(&ours).contains(group)),
                "{theirs:?}"
            );
            let others = |lines: Vec<String>| {
                lines.into_iter().filter(|line| !is_group(&line)).collect::<Vec<_>>()
            };
            assert_eq!(others(theirs), others(ours), "{mpi}, rank {own}");
        }
    }
}

/// An archive with all that Score-P tells, in `home`.
fn scorep(home: &Path) -> PathBuf {
    fs::write(home.join("writer.c"), WRITER_C).unwrap();
    let run = |command: &mut Command| {
        let output = command.current_dir(home).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
    };
    run(Command::new("cc").args(["writer.c", "-o", "writer", "-lotf2"]));
    run(Command::new("./writer").arg("scorep"));
    home.join("scorep")
}

#[test]
fn an_archive_as_score_p_writes_it_is_replayed_on_a_fabric() {
    if !has_library() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    scorep(home.path());
    let output = cli(home.path(), &["trace", "--from-otf2", "scorep/traces.otf2", "--json"]);
    assert!(output.status.success(), "{}", text(&output));
    assert!(output.stderr.is_empty(), "{}", text(&output));
    for own in [0, 1] {
        let text = fs::read_to_string(home.path().join(format!("trace/rank-{own}.txt"))).unwrap();
        let other = 1 - own;
        let mut lines = vec![
            format!("{own} compute 20000"),
            format!("{own} irecv {other} 5 {}", 101 - own),
            format!("{own} send {other} 5 {}", 100 + own),
            format!("{own} compute 30000"),
            format!("{own} wait {other} {own} 5"),
            format!("{own} irecv {other} 6 8"),
            format!("{own} send {other} 6 8"),
            format!("{own} wait {other} {own} 6"),
            format!("{own} allreduce 24 0"),
            format!("{own} scan 40 0"),
            format!("{own} allreduce 64 0"),
            // While the operation that does not block went on, and after it.
            format!("{own} compute 100000"),
            format!("{own} finalize"),
        ];
        lines.insert(0, format!("{own} init"));
        if own == 0 {
            lines.insert(1, "0 comm_size 2".into());
        }
        assert_eq!(text.lines().collect::<Vec<_>>(), lines);
    }
    fs::write(home.path().join("cluster.toml"), ring("powerconnect-6248", "")).unwrap();
    let predict = ["fabric", "predict", "--json", "--program"];
    let output = cli(home.path(), &[&predict[..], &["trace:trace"]].concat());
    assert!(output.status.success(), "{}", text(&output));
    // An archive is named where a trace belongs.
    let output = cli(home.path(), &[&predict[..], &["trace:scorep/traces.otf2"]].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("meikyo trace --from-otf2 scorep/traces.otf2 --out DIR"));
}

#[test]
fn damaged_archives_and_a_missing_library_are_told_with_what_helps() {
    if !has_library() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let whole = scorep(home.path());
    let import = |archive: &str, out: &str| {
        let output = cli(home.path(), &["trace", "--from-otf2", archive, "--out", out]);
        // Read or refused; nothing else is left of the attempt.
        assert!([Some(0), Some(2)].contains(&output.status.code()), "{}", text(&output));
        for entry in fs::read_dir(home.path().join(out)).into_iter().flatten() {
            assert!(entry.unwrap().file_name().to_str().unwrap().ends_with(".txt"));
        }
        (output.status.success(), text(&output))
    };
    let files = ["traces.otf2", "traces.def", "traces/0.evt", "traces/1.evt"];
    for (at, file) in files.into_iter().enumerate() {
        let good = fs::read(whole.join(file)).unwrap();
        let refused = |what: &str, content: &[u8]| {
            fs::write(whole.join(file), content).unwrap();
            let (read, told) = import("scorep/traces.otf2", &format!("{what}-{at}"));
            fs::write(whole.join(file), &good).unwrap();
            assert!(read || told.contains("error: "), "{told}");
            !read
        };
        assert!(refused("cut", &good[..good.len() / 2]), "{file}");
        assert!(refused("empty", &[]), "{file}");
        for part in 1..8 {
            let mut changed = good.clone();
            let place = good.len() * part / 8;
            changed[place] ^= 0xff;
            refused(&format!("changed-{part}"), &changed);
        }
    }
    fs::remove_file(whole.join("traces/1.evt")).unwrap();
    let (read, told) = import("scorep/traces.otf2", "missing");
    assert!(!read && told.contains("otf2-print"), "{told}");
    let (read, told) = import("scorep", "directory");
    assert!(!read && told.contains("ends in `.otf2`"), "{told}");
    let (read, told) = import("nowhere.otf2", "nowhere");
    assert!(!read && told.contains("nowhere.otf2"), "{told}");
    assert!(!home.path().join("nowhere").exists(), "nothing is made where there is no archive");
    let output = meikyo()
        .current_dir(home.path())
        .env("PATH", home.path())
        .args(["trace", "--from-otf2", "scorep/traces.otf2", "--out", "without"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("apt-get install libotf2-trace-dev gcc"), "{}", text(&output));
}
