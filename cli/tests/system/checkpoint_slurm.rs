//! `meikyo checkpoint run --as-is --slurm` in jobs of a real Slurm: slurmctld, a slurmd for each of four machines, and munge.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::checkpoint_as_is::Protected;
use crate::checkpoint_machines::Machines;
use crate::checkpoint_run::PATIENCE;
use crate::running::text;

/// What a slurmd of Debian 12 does without: it does not start where there are no control groups, and makes none here.
const GROUPS: &str = "mount -t tmpfs none /sys/fs/cgroup && mkdir /sys/fs/cgroup/systemd && \
                      mount -t cgroup -o none,name=systemd none /sys/fs/cgroup/systemd";

/// Whether there is a Slurm here.
fn has_slurm() -> bool {
    let is_there = |path: &str| Path::new(path).exists();
    let has = ["/usr/sbin/slurmctld", "/usr/sbin/slurmd", "/usr/sbin/munged", "/usr/bin/sbatch"]
        .into_iter()
        .all(is_there);
    if !has {
        meikyo_testing::lacking("slurmctld, slurmd, slurm-client or munge is not there");
    }
    has
}

/// A Slurm whose hosts are machines; its daemons end with it.
struct Slurm<'a> {
    protected: &'a Protected,
    daemons: Vec<Child>,
    _machines: Machines,
}

impl<'a> Slurm<'a> {
    fn start(protected: &'a Protected) -> Self {
        let machines = Machines::start(&protected.site, "4");
        let mut slurm = Self { protected, daemons: Vec::new(), _machines: machines };
        let home = protected.site.home.path().display().to_string();
        let path = |name: &str| protected.site.path(name);
        for directory in ["state", "spool.node1", "spool.node2", "spool.node3", "spool.node4"] {
            fs::create_dir(path(directory)).unwrap();
        }
        let conf = format!(
            "ClusterName=test\nSlurmctldHost=node1(10.77.0.1)\nSlurmUser=root\nSlurmdUser=root\n\
             AuthType=auth/munge\nAuthInfo=socket={home}/munge.socket,cred_expire=5\nCredType=cred/munge\n\
             StateSaveLocation={home}/state\nSlurmdSpoolDir={home}/spool.%n\n\
             SlurmctldPidFile={home}/slurmctld.pid\nSlurmdPidFile={home}/slurmd.%n.pid\n\
             SlurmctldLogFile={home}/slurmctld.log\nSlurmdLogFile={home}/slurmd.%n.log\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSwitchType=switch/none\n\
             JobAcctGatherType=jobacct_gather/none\nSelectType=select/linear\nMpiDefault=none\n\
             ReturnToService=2\nKillWait=5\nSchedulerParameters=batch_sched_delay=1,sched_interval=1\n\
             NodeName=node[1-4] NodeAddr=10.77.0.[1-4] CPUs=1 State=UNKNOWN\n\
             PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n"
        );
        fs::write(path("slurm.conf"), conf).unwrap();
        fs::write(path("munge.key"), [7; 1_024]).unwrap();
        let own = |file: &str| format!("{home}/munge.{file}");
        let munged = format!(
            "chmod 600 {0} && exec /usr/sbin/munged --foreground --force --key-file={0} --socket={1} --pid-file={2} \
             --log-file={3} --seed-file={4}",
            own("key"),
            own("socket"),
            own("pid"),
            own("log"),
            own("seed")
        );
        slurm.daemon("node1", &munged);
        slurm.wait("munge", || path("munge.socket").exists());
        slurm.daemon("node1", "exec /usr/sbin/slurmctld -D");
        for host in ["node1", "node2", "node3", "node4"] {
            slurm.daemon(host, &format!("{GROUPS} && exec /usr/sbin/slurmd -D -N {host}"));
        }
        slurm.wait("hosts", || {
            let told = slurm.on("sinfo --noheader --Node --format %T");
            String::from_utf8_lossy(&told.stdout).matches("idle").count() == 4
        });
        slurm
    }

    fn command(&self, host: &str, script: &str) -> Command {
        let home = self.protected.site.home.path();
        let mut command = Command::new(home.join("machines/agent"));
        let conf = home.join("slurm.conf");
        command.current_dir(home).arg(host).arg(script).env("SLURM_CONF", conf);
        command
    }

    fn daemon(&mut self, host: &str, script: &str) {
        let said =
            fs::File::create(self.protected.site.path(&format!("daemon-{}", self.daemons.len())));
        let said = said.unwrap();
        let mut command = self.command(host, script);
        command.stdin(Stdio::null()).stdout(said.try_clone().unwrap()).stderr(said);
        self.daemons.push(command.spawn().unwrap());
    }

    /// What the first host answers.
    fn on(&self, script: &str) -> Output {
        self.command("node1", script).output().unwrap()
    }

    fn wait(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so() {
            let read =
                |name: &str| fs::read_to_string(self.protected.site.path(name)).unwrap_or_default();
            assert!(
                Instant::now() < deadline,
                "{what}: {}\n{}\n{}",
                read("said"),
                read("slurmctld.log"),
                read("daemon-2")
            );
            std::thread::park_timeout(Duration::from_millis(100));
        }
    }

    /// Hands a program in, in a job of all four hosts.
    fn submit(&self, more: &[&str], options: &[&str], command: &[String]) {
        let (site, meikyo) = (&self.protected.site, env!("CARGO_BIN_EXE_meikyo"));
        let disk = site.path("machines/disk/job").display().to_string();
        let words = ["checkpoint", "run", "--as-is", "--slurm", "--cluster", "cluster.toml"];
        let mut all: Vec<&str> = [&[meikyo], &words[..], more].concat();
        all.extend(["--directory", "job", "--disk", &disk, "--criu", &self.protected.criu]);
        all.extend(["--port", "7300", "--"]);
        all.extend(command.iter().map(String::as_str));
        fs::write(site.path("batch"), format!("#!/bin/sh\nexec {}\n", all.join(" "))).unwrap();
        let home = site.home.path().display();
        let sbatch = format!(
            "sbatch --nodes=4 --no-kill --requeue --open-mode=append --output={home}/said --chdir={home} {} batch",
            options.join(" ")
        );
        let output = self.on(&sbatch);
        assert!(output.status.success(), "{}", text(&output));
    }

    /// Waits until the queue is empty, and compares what the program has said and computed.
    fn ends_as(&self, said: &[u8], plate: &[u8]) {
        self.wait("the end", || {
            let queue = self.on("squeue --noheader");
            queue.status.success() && queue.stdout.is_empty()
        });
        let site = &self.protected.site;
        let found = fs::read(site.path("plate"));
        assert!(found.is_ok_and(|found| found == plate), "another result: {}", site.said());
        let output = fs::read(site.path("job/output")).unwrap();
        assert!(output == said, "{}", String::from_utf8_lossy(&output));
    }
}

impl Drop for Slurm<'_> {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().rev() {
            // It may have ended.
            drop(daemon.kill());
            drop(daemon.wait());
        }
    }
}

/// Where programs that are captured have their addresses: those of the machines are others.
const CLUSTER: &str = "
name = \"c\"
snmp = { version = \"2c\", community = \"env:NONE\" }
measure = [\"load\"]
[[hosts]]
name = \"node[1-4]\"
address = \"10.77.0.[1-4]\"
[checkpoint]
network = \"10.78.0.0/24\"
";

/// The stencil on three of the hosts, paced until it is to hurry.
struct Stencil {
    protected: Protected,
    command: Vec<String>,
    /// What it says and computes when nobody disturbs it.
    said: Vec<u8>,
    plate: Vec<u8>,
}

/// A place for the stencil; `None` without what that needs.
fn stencil() -> Option<Stencil> {
    let protected = has_slurm().then(|| Protected::new("openmpi", &["stencil"]))??;
    let site = &protected.site;
    let words =
        |plate| ["mpiexec.openmpi", "-n", "3", "./stencil", "20000", "600", "200000", plate];
    fs::write(site.path("hurry"), []).unwrap();
    let said = protected.undisturbed(&words("undisturbed").map(str::to_owned));
    let plate = fs::read(site.path("undisturbed")).unwrap();
    fs::remove_file(site.path("hurry")).unwrap();
    fs::write(site.path("cluster.toml"), CLUSTER).unwrap();
    let command = words("plate").map(str::to_owned).to_vec();
    Some(Stencil { protected, command, said, plate })
}

#[test]
fn a_job_of_slurm_goes_back_into_the_queue_when_its_time_is_over_and_on_from_its_last_checkpoint() {
    let Some(Stencil { protected, command, said, plate }) = stencil() else { return };
    let slurm = Slurm::start(&protected);
    let site = &protected.site;
    // A minute, which is the least, and to be told 50 s before.
    slurm.submit(&["--every", "10min"], &["--time=1", "--signal=B:USR1@50"], &command);
    slurm.wait("its time is over", || {
        site.said().contains("goes back into the queue, and on from checkpoint ")
    });
    slurm.wait("it goes on", || !protected.went_on_from().is_empty());
    let told = site.said();
    let (_, from) = told.split_once("back into the queue, and on from checkpoint ").unwrap();
    let from: u64 = from.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(protected.went_on_from()[0], from, "{told}");
    fs::write(site.path("hurry"), []).unwrap();
    slurm.ends_as(&said, &plate);
}

#[test]
fn a_host_that_slurm_holds_failed_is_replaced_by_a_spare_one_of_the_job() {
    let Some(Stencil { protected, command, said, plate }) = stencil() else { return };
    let slurm = Slurm::start(&protected);
    let site = &protected.site;
    slurm.submit(&["--every", "300ms", "--spares", "1"], &[], &command);
    let mut newest = 0;
    slurm.wait("a checkpoint of the program", || {
        newest = protected.newest();
        newest > 1 && fs::metadata(site.path("job/output")).is_ok_and(|data| data.len() > 0)
    });
    let failed = slurm.on("scontrol update NodeName=node2 State=FAIL Reason=test");
    assert!(failed.status.success(), "{}", text(&failed));
    slurm.wait("it goes on", || !protected.went_on_from().is_empty());
    let told = site.said();
    assert!(told.contains("the host node2 (Slurm says fail"), "{told}");
    assert!(told.contains("is gone, and node4 takes its place"), "{told}");
    assert!(protected.went_on_from()[0] >= newest, "{newest}: {told}");
    fs::write(site.path("hurry"), []).unwrap();
    slurm.ends_as(&said, &plate);
}
