//! A real MPI all-to-all puts on every trunk the bytes that the plan's static load says.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use meikyo_fabric::dialect::port_interface;
use meikyo_fabric::{Pattern, loads};
use meikyo_lab::{Counters, Done, Task};
use meikyo_units::{Nanos, WallTime};

use crate::running::{Fabric, Lab};

const PROGRAMS: [&str; 2] = ["mpicc.openmpi", "mpirun.openmpi"];
/// Ethernet, Internet and TCP headers with time stamps: what an acknowledgement is as a whole.
const HEADER_BYTES: u64 = 66;
/// Beside them a port carries some 210 bytes for each pair, of the library's own messages: 0.08 %, where
/// 2 % are allowed.
const BYTES_PER_PAIR: u64 = 256 * 1024;

/// How many exchanges may have segments that were sent again.
const TRIES: usize = 3;
/// How long a job may take, in seconds, and how long a file of it is waited for: longer than that.
const JOB_S: &str = "600";
const PATIENCE: Nanos = Nanos::from_secs(660);
/// Between two looks for a file of the job.
const PAUSE: Duration = Duration::from_millis(20);
/// Every process of Open MPI would find out for itself what machine it is on, which is a quarter of what it
/// asks the system; one processor, without plugins for what no lab has, is what all of them are on.
const TOPOLOGY: [&str; 2] = ["HWLOC_SYNTHETIC=1", "HWLOC_PLUGINS_PATH=/nowhere"];

/// An exchange without data opens the connections; then every rank sends every other one as many bytes as
/// it is told, each time that a file `go.N` appears, until there is a file `end`. Starting a program under
/// MPI takes long in user-mode Linux, so all of it is one run.
const ALL_TO_ALL: &str = r#"#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
/* What the library calls while there is nothing to do. All ranks share one processor, where each call
   of the system costs many times what it costs elsewhere: who waits leaves it to those who work. */
static int rest(long microseconds) {
    struct timespec time = {0, microseconds * 1000};
    return nanosleep(&time, NULL);
}
int usleep(useconds_t time) { return rest(time < 10000 ? 10000 : time); }
int sched_yield(void) { return rest(1000); }
enum { WAIT, GO, END };
static int there(const char *name, int number) {
    char path[64];
    snprintf(path, sizeof path, name, number);
    return access(path, F_OK) == 0;
}
static void make(const char *name, int number) {
    char path[64];
    snprintf(path, sizeof path, name, number);
    fclose(fopen(path, "w"));
}
/* Rank 0 looks for files, and the others wait without taking its processor. */
static int told(int rank, int number) {
    int what = WAIT, came = 0;
    while (rank == 0 && what == WAIT) {
        what = there("end", 0) ? END : there("go.%d", number) ? GO : WAIT;
        usleep(10000);
    }
    MPI_Request request;
    MPI_Ibcast(&what, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
    while (MPI_Test(&request, &came, MPI_STATUS_IGNORE), !came)
        usleep(10000);
    return what;
}
int main(int argc, char **argv) {
    int rank, ranks, good = argc == 3 && chdir(argv[2]) == 0;
    long bytes = argc > 1 ? atol(argv[1]) : 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char *out = malloc(bytes * ranks), *in = malloc(bytes * ranks);
    memset(out, 7, bytes * ranks);
    MPI_Alltoall(out, 0, MPI_CHAR, in, 0, MPI_CHAR, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        make("ready", 0);
    for (int number = 0; told(rank, number) == GO; number++) {
        memset(in, 0, bytes * ranks);
        MPI_Alltoall(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, MPI_COMM_WORLD);
        for (long at = 0; at < bytes * ranks; at++)
            good &= in[at] == 7;
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            make("done.%d", number);
    }
    MPI_Finalize();
    return !good;
}
"#;

/// Starts a rank's daemon on a host, without a shell of another machine.
const AGENT: &str = "#!/bin/sh\nhost=$1\nshift\n\
    exec nsenter --net=/run/netns/$host unshare -u sh -c \"hostname $host; $*\"\n";

fn lacking() -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there =
        |program: &str| std::env::split_paths(&path).any(|place| place.join(program).is_file());
    let missing = PROGRAMS.iter().find(|program| !there(program))?;
    Some(format!("there is no {missing} here; `apt-get install openmpi-bin libopenmpi-dev`"))
}

/// Runs an all-to-all over all hosts of a fabric, and compares each trunk and direction with the static
/// load of the plan. Skipped, with the reason printed, where there is no MPI.
pub(crate) fn puts_the_planned_bytes_on_every_trunk(topology: &str, fabric: &Fabric, lab: &Lab) {
    match lacking() {
        None => compare(topology, fabric, lab),
        Some(lacking) => meikyo_testing::lacking(&lacking),
    }
}

fn compare(topology: &str, fabric: &Fabric, lab: &Lab) {
    let files = lab.directory.own_files();
    build(&files);
    meikyo_lab::prime(&lab.directory, &lab.roles, &fabric.wiring, &fabric.configuration).unwrap();
    be_patient(fabric, lab);
    let job = Job::start(fabric, lab, &files);
    let busy = (0..TRIES).find_map(|number| {
        let (again, before) = (retransmissions(fabric, lab), counted(lab));
        job.exchange(number);
        let sent = payload(&before, &counted(lab));
        (retransmissions(fabric, lab) == again).then_some(sent)
    });
    job.end();
    let busy = busy.expect("in one of a few exchanges no segment is sent again");
    let planned = loads(&fabric.wiring, &fabric.plan, Pattern::AllToAll);
    for (trunk, pairs) in fabric.wiring.trunks.iter().zip(&planned.pairs) {
        for (end, &pairs) in trunk.ends.iter().zip(pairs) {
            let port = (end.switch.place(), port_interface(end.ports[0]));
            let bytes = busy[&port];
            let due = pairs * BYTES_PER_PAIR;
            let most = due / 50;
            assert!(bytes.abs_diff(due) <= most, "{topology}, {port:?}: {bytes} bytes, {due} due");
        }
    }
}

/// A machine that others keep busy stands still at times; nothing is to be taken for lost then.
fn be_patient(fabric: &Fabric, lab: &Lab) {
    let script = "ip route change 10.0.0.0/9 dev eth0 rto_min 5s && \
                  echo 0 > /proc/sys/net/ipv4/tcp_early_retrans";
    for host in &fabric.wiring.hosts {
        let said = lab.exec(Some(&host.name), &["sh", "-c", script], b"");
        assert_eq!(said.code, 0, "{}", String::from_utf8_lossy(&said.errors));
    }
}

fn build(files: &Path) {
    std::fs::write(files.join("all.c"), ALL_TO_ALL).unwrap();
    std::fs::write(files.join("agent"), AGENT).unwrap();
    let marked = Command::new("chmod").arg("755").arg(files.join("agent")).status().unwrap();
    assert!(marked.success());
    let built = Command::new(PROGRAMS[0])
        .args(["-O1", "-rdynamic", "-o"])
        .arg(files.join("all"))
        .arg(files.join("all.c"))
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
}

/// A rank on every host.
struct Job<'a> {
    files: &'a Path,
}

impl<'a> Job<'a> {
    /// Starts it, and waits until its ranks are connected.
    fn start(fabric: &Fabric, lab: &Lab, files: &'a Path) -> Self {
        let names: Vec<&str> = fabric.wiring.hosts.iter().map(|host| host.name.as_str()).collect();
        let path = |name: &str| files.join(name).to_string_lossy().into_owned();
        let (agent, program, directory) = (path("agent"), path("all"), path(""));
        let (hosts, ranks, bytes) =
            (names.join(","), names.len().to_string(), BYTES_PER_PAIR.to_string());
        #[rustfmt::skip]
        let command = [
            "timeout", JOB_S, "env", TOPOLOGY[0], TOPOLOGY[1],
            PROGRAMS[1], "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
            "--mca", "plm_rsh_agent", &agent, "--mca", "plm_rsh_no_tree_spawn", "1",
            "--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "eth0",
            "--mca", "oob_tcp_if_include", "eth0", "--mca", "mpi_yield_when_idle", "1",
            "-H", &hosts, "-np", &ranks, &program, &bytes, &directory,
        ];
        let job = Self { files };
        let script = "cd $0; (\"$@\" < /dev/null > said 2>&1; echo $? > code; mv code ended) \
                      > /dev/null 2>&1 &";
        let shell = [&["sh", "-c", script, &*directory], &command[..]].concat();
        let said = lab.exec(Some(names[0]), &shell, b"");
        assert_eq!(said.code, 0, "{}", String::from_utf8_lossy(&said.errors));
        job.wait("ready");
        job
    }

    /// Lets every rank send to every other one.
    fn exchange(&self, number: usize) {
        std::fs::write(self.files.join(format!("go.{number}")), "").unwrap();
        self.wait(&format!("done.{number}"));
    }

    /// Ends it, and sees that each rank received what was sent to it.
    fn end(self) {
        std::fs::write(self.files.join("end"), "").unwrap();
        self.wait("ended");
        assert_eq!(self.read("ended"), "0\n", "{}", self.read("said"));
    }

    /// Waits for a file of the job, which ends by itself if it takes too long. Looked for from outside:
    /// who asks inside takes time from those who start there.
    fn wait(&self, name: &str) {
        let deadline = WallTime::now() + PATIENCE;
        let there = |name: &str| self.files.join(name).exists();
        while !there(name) && !there("ended") && WallTime::now() < deadline {
            std::thread::park_timeout(PAUSE);
        }
        assert!(there(name), "no {name}: {}", self.read("said"));
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.files.join(name)).unwrap()
    }
}

/// What each port sent between two readings, beside headers.
fn payload(
    before: &[BTreeMap<String, Counters>],
    after: &[BTreeMap<String, Counters>],
) -> BTreeMap<(usize, String), u64> {
    let mut sent = BTreeMap::new();
    for (switch, (before, after)) in before.iter().zip(after).enumerate() {
        for (device, now) in after {
            let then = before[device];
            let frames = now.sent_frames - then.sent_frames;
            let payload = (now.sent_bytes - then.sent_bytes).saturating_sub(HEADER_BYTES * frames);
            sent.insert((switch, device.clone()), payload);
        }
    }
    sent
}

fn counted(lab: &Lab) -> Vec<BTreeMap<String, Counters>> {
    match lab.ask(&Task::Counters) {
        Done::Counters(counters) => counters,
        done => panic!("{done:?}"),
    }
}

/// Segments that every host sent again (RFC 4022, `tcpRetransSegs`).
fn retransmissions(fabric: &Fabric, lab: &Lab) -> Vec<u64> {
    let of_host = |name: &str| {
        let said = lab.exec(Some(name), &["cat", "/proc/self/net/snmp"], b"");
        let text = String::from_utf8(said.output).unwrap();
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
        let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
        let at = names.split(' ').position(|name| name == "RetransSegs").unwrap();
        values.split(' ').nth(at).unwrap().parse().unwrap()
    };
    fabric.wiring.hosts.iter().map(|host| of_host(&host.name)).collect()
}
