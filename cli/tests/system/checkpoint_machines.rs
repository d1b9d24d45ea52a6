//! `meikyo checkpoint run --as-is --cluster`: programs that were never changed on hosts that are reached as by `ssh`, and
//! spares that a cluster file names.
//!
//! Hosts are the containers of another job, in which this one makes containers of its own.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use rustix::process::Pid;

use crate::checkpoint_as_is::Protected;
use crate::checkpoint_cycles::{begin, goes_on};
use crate::checkpoint_run::{PATIENCE, Running, Site, container, has, is_possible, kill, with};
use crate::running::text;

/// So many containers that are hosts of another job; they end with this.
pub(crate) struct Machines {
    running: Running,
}

impl Machines {
    /// In a directory `machines` of a site.
    pub(crate) fn start(site: &Site, count: &str) -> Self {
        let idle = ["sh", "-c", "echo up; exec sleep 1000"].map(str::to_owned);
        let run = ["run", "--local", count, "--directory", "machines"];
        let running = site.begin_as("machines-said", &with(&run, &idle));
        let deadline = Instant::now() + PATIENCE;
        let said = || fs::read_to_string(site.path("machines-said")).unwrap();
        while !said().contains("up") {
            assert!(Instant::now() < deadline, "{}", said());
        }
        Self { running }
    }

    /// Whether all of them still run.
    fn are_there(&mut self) -> bool {
        self.running.0.try_wait().unwrap().is_none()
    }
}

/// Five hosts in three racks, of which two stand ready; the first of these is in the rack of a host that stays.
const CLUSTER: &str = "
name = \"c\"
snmp = { version = \"2c\", community = \"env:NONE\" }
measure = [\"load\"]
[[hosts]]
name = \"node[1-5]\"
address = \"10.77.0.[1-5]\"
[groups.a]
members = [\"node1\", \"node4\"]
[groups.b]
members = [\"node2\", \"node5\"]
[groups.c]
members = [\"node3\"]
[checkpoint]
spares = [\"node4\", \"node5\"]
network = \"10.78.0.0/24\"
";

/// The process on this machine that has the container of a host of a job.
fn machine(job: &Path, host: &str) -> Pid {
    let names = format!("--names\0{}\0", job.join("names").display());
    let name = format!("--name\0{host}\0");
    let is_it = |number: &i32| {
        let line = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        line.contains("\0role\0host\0") && line.contains(&name) && line.contains(&names)
    };
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    let mut numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    Pid::from_raw(numbers.find(is_it).unwrap_or_else(|| panic!("{host} has no container"))).unwrap()
}

/// Takes a machine off the network, as one whose cable is pulled.
fn cut_off(machines: &Path, host: &str) {
    let process = container(machines, host).as_raw_nonzero().to_string();
    let output = Command::new("nsenter")
        .args(["-t", &process, "-n", "ip", "link", "set", "l0", "down"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output));
}

/// Loses a host whose container ends and one that is cut off; spares of the cluster file take their places.
fn goes_on_on_machines(mpi: &'static str) {
    let Some(stencil) = Protected::new(mpi, &["stencil"]) else { return };
    let site = &stencil.site;
    let launcher = format!("mpiexec.{mpi}");
    let words = |plate| [&launcher, "-n", "3", "./stencil", "20000", "600", "200000", plate];
    let words = |plate| words(plate).map(str::to_owned);
    fs::write(site.path("hurry"), []).unwrap();
    let said = stencil.undisturbed(&words("undisturbed"));
    let plate = fs::read(site.path("undisturbed")).unwrap();
    fs::remove_file(site.path("hurry")).unwrap();
    let mut machines = Machines::start(site, "5");
    fs::write(site.path("cluster.toml"), CLUSTER).unwrap();
    let agent = site.path("machines/agent").display().to_string();
    // Every machine has a disk of its own there.
    let disk = site.path("machines/disk/job").display().to_string();
    let mut run = vec!["run", "--as-is", "--cluster", "cluster.toml", "--ssh", &agent];
    run.extend(["--directory", "job", "--disk", &disk, "--criu", &stencil.criu]);
    run.extend(["--port", "7300", "--every", "300ms", "--replace-after", "2s"]);
    let mut running = site.begin(&with(&run, &words("plate")));
    begin(&stencil, &mut running);
    let job = site.path("job");
    let newest = stencil.newest();
    kill(machine(&job, "node2"));
    goes_on(&stencil, &mut running, 0, newest);
    // The first of the spares is in a rack with another host, so that both would be lost with it.
    let told = site.said();
    assert!(told.contains("the host node2 is gone, and node5 takes its place"), "{told}");
    let newest = stencil.newer_than(newest, &mut running);
    cut_off(&site.path("machines"), "node3");
    goes_on(&stencil, &mut running, 1, newest);
    let told = site.said();
    assert!(told.contains("the host node3 does not answer"), "{told}");
    assert!(told.contains("the host node3 is gone, and node4 takes its place"), "{told}");
    assert!(machines.are_there());
    fs::write(site.path("hurry"), []).unwrap();
    stencil.ends_as(running, &said, &plate);
}

#[test]
fn with_open_mpi_spares_of_a_cluster_file_take_the_places_of_lost_hosts() {
    goes_on_on_machines("openmpi");
}

#[test]
fn with_mpich_spares_of_a_cluster_file_take_the_places_of_lost_hosts() {
    goes_on_on_machines("mpich");
}

/// A program with the library goes on on a spare, too.
#[test]
fn a_program_with_the_library_goes_on_on_a_spare_of_the_cluster_file() {
    if !is_possible() || !has("mpich") {
        return;
    }
    let site = Site::new(Some("mpich"));
    let mut machines = Machines::start(&site, "5");
    fs::write(site.path("cluster.toml"), CLUSTER).unwrap();
    let agent = site.path("machines/agent").display().to_string();
    let job = site.path("machines/disk/job").display().to_string();
    let heat = Site::heat("mpich", 3, 800, "plate");
    let mut run = vec!["run", "--cluster", "cluster.toml", "--ssh", &agent, "--port", "7300"];
    run.extend(["--directory", &job, "--replace-after", "1s"]);
    let mut running = site.begin(&with(&run, &heat));
    site.wait_for_commits("machines/disks/node1/job/disk", 2, &mut running);
    cut_off(&site.path("machines"), "node2");
    let (plate, said) = site.result_of(&mut running, "mpich", "plate");
    assert!(said.contains("the host node2 is gone, and node5 takes its place"), "{said}");
    assert!(machines.are_there());
    assert!(plate == site.undisturbed("mpich", 800), "another result");
}

#[test]
fn what_is_missing_for_hosts_of_a_cluster_file_is_said() {
    let site = Site::new(None);
    fs::write(site.path("cluster.toml"), CLUSTER).unwrap();
    let refused = |more: &[&str], parts: &[&str]| {
        let directory = format!("job{}", more.len());
        let run = ["run", "--as-is", "--cluster", "cluster.toml", "--directory", &directory];
        let output = site.output(&[&run, more, &["--", "true"]].concat());
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        parts.iter().for_each(|part| assert!(text(&output).contains(part), "{}", text(&output)));
    };
    refused(&[], &["--disk DIR on a local disk of every host"]);
    refused(&["--disk", "d", "--spares", "1"], &["--spares"]);
    refused(&["--disk", "d", "--on", "node[1-2]"], &["of 2 hosts, none can be replaced"]);
    refused(&["--disk", "d", "--ssh", "false", "--port", "7300"], &["node1 has no container"]);
}
