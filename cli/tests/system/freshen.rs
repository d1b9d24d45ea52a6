//! `meikyo measure --freshen` on a real `snmpd`: what it sets, it sets back, whatever ends it.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Output};

use meikyo_units::WallTime;

use crate::running::{PATIENCE, Process, meikyo, text};
use crate::snmpd::Snmpd;

/// `nsCacheTimeout` (NET-SNMP-AGENT-MIB) of ifTable.
const TIMEOUT: &str = "1.3.6.1.4.1.8072.1.5.3.1.2.1.3.6.1.2.1.2.2";

/// `sysUpTime.0` (RFC 3418).
const UPTIME: &str = "1.3.6.1.2.1.1.3.0";

struct Cluster {
    agent: Snmpd,
    directory: tempfile::TempDir,
}

impl Cluster {
    fn start() -> Option<Self> {
        let lines = "rocommunity public\nrwcommunity private\n";
        let agent = Snmpd::start_with(lines, Ipv4Addr::LOCALHOST)?;
        let directory = tempfile::tempdir().unwrap();
        for community in ["public", "private"] {
            let mut options = fs::OpenOptions::new();
            let file = options.write(true).create(true).truncate(true).mode(0o600);
            let mut file = file.open(directory.path().join(community)).unwrap();
            std::io::Write::write_all(&mut file, community.as_bytes()).unwrap();
        }
        let file = format!(
            "name = \"one\"\nmeasure = [\"interface:lo(in_octets)\"]\n[snmp]\nversion = \"2c\"\n\
             community = \"file:public\"\nwrite = {{ version = \"2c\", community = \"file:private\" }}\n\
             [[hosts]]\nname = \"here\"\naddress = \"{}\"\n",
            agent.address
        );
        fs::write(directory.path().join("cluster.toml"), file).unwrap();
        Some(Self { agent, directory })
    }

    /// What the agent says, asked with net-snmp's own tool after the table was read.
    fn timeout_s(&self) -> String {
        self.agent.tool("snmpgetnext", &["-v2c", "-c", "public"], &["1.3.6.1.2.1.2.2"]);
        self.value(TIMEOUT)
    }

    fn value(&self, oid: &str) -> String {
        let answer = self.agent.tool("snmpget", &["-v2c", "-c", "public"], &[oid]);
        answer.rsplit(' ').next().unwrap().to_owned()
    }

    fn wait_for_timeout_s(&self, seconds: &str) {
        let deadline = WallTime::now() + PATIENCE;
        while self.timeout_s() != seconds {
            assert!(WallTime::now() < deadline, "the timeout never was {seconds} s");
        }
    }

    fn wait_for_uptime_cs(&self, wanted: u32) {
        let deadline = WallTime::now() + PATIENCE;
        while self.value(UPTIME).parse::<u32>().unwrap() < wanted {
            assert!(WallTime::now() < deadline, "the agent never was up for {wanted} cs");
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = meikyo();
        command.current_dir(self.directory.path()).args(["measure", "--quiet"]).args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn original_file(&self) -> PathBuf {
        self.directory.path().join("recording/freshened.json")
    }
}

fn terminate(process: &Child) {
    let done = Command::new("kill").args(["-TERM", &process.id().to_string()]).status().unwrap();
    assert!(done.success());
}

#[test]
fn a_term_signal_sets_the_cache_back_and_a_restarted_agent_is_freshened_again() {
    let Some(mut cluster) = Cluster::start() else { return };
    assert_eq!(cluster.timeout_s(), "3");
    let planned = cluster.run(&["--freshen", "--dry-run"]);
    let planned = String::from_utf8(planned.stdout).unwrap();
    assert!(planned.contains("here: set nsCacheTimeout of ifTable from 3 to 0 s"), "{planned}");
    assert_eq!(cluster.timeout_s(), "3", "a dry run changes nothing");

    let mut measure = Process(cluster.command(&["--freshen"]).spawn().unwrap());
    cluster.wait_for_timeout_s("0");
    // Up for so short a time, it could not be told from one that has gone on.
    cluster.wait_for_uptime_cs(500);
    cluster.agent.restart();
    cluster.wait_for_timeout_s("0");
    terminate(&measure.0);
    assert!(measure.0.wait().unwrap().success());
    assert_eq!(cluster.timeout_s(), "3");
    assert!(!cluster.original_file().exists(), "nothing is left to be set back");
}

#[test]
fn what_a_killed_run_left_is_set_back_by_the_next_one() {
    let Some(cluster) = Cluster::start() else { return };
    let killed = |cluster: &Cluster| {
        let mut measure = Process(cluster.command(&["--freshen"]).spawn().unwrap());
        cluster.wait_for_timeout_s("0");
        measure.0.kill().unwrap();
        measure.0.wait().unwrap();
        assert_eq!(cluster.timeout_s(), "0", "nobody was there to set it back");
    };
    killed(&cluster);
    // Another kill does not make 0 the original.
    killed(&cluster);
    let plain = cluster.run(&["--for", "300ms"]);
    assert!(text(&plain).contains("`meikyo measure --freshen --restore`"), "{}", text(&plain));
    assert_eq!(cluster.timeout_s(), "0");
    let planned = cluster.run(&["--freshen", "--dry-run"]);
    let planned = String::from_utf8(planned.stdout).unwrap();
    assert!(planned.contains("it was 3 s, and will be again at the end"), "{planned}");

    let next = cluster.run(&["--freshen", "--for", "2s"]);
    assert!(next.status.success(), "{}", text(&next));
    assert_eq!(cluster.timeout_s(), "3");
    assert!(!cluster.original_file().exists());
}

#[test]
fn restore_sets_back_and_measures_nothing() {
    let Some(cluster) = Cluster::start() else { return };
    let mut measure = Process(cluster.command(&["--freshen"]).spawn().unwrap());
    cluster.wait_for_timeout_s("0");
    let meanwhile = cluster.run(&["--freshen", "--restore"]);
    assert_eq!(meanwhile.status.code(), Some(2));
    assert!(text(&meanwhile).contains("a measurement is writing into"), "{}", text(&meanwhile));
    measure.0.kill().unwrap();
    measure.0.wait().unwrap();
    let restored = cluster.run(&["--freshen", "--restore"]);
    assert_eq!(restored.status.code(), Some(0), "{}", text(&restored));
    assert_eq!(String::from_utf8(restored.stdout).unwrap(), "here: interface cache restored\n");
    assert_eq!(cluster.timeout_s(), "3");
    let again = cluster.run(&["--freshen", "--restore"]);
    assert_eq!(String::from_utf8(again.stdout).unwrap(), "no cache is left to be set back\n");
}
