//! Our agent for this host, asked by net-snmp's tools, beside net-snmp's own agent.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::thread::JoinHandle;

use meikyo_cluster::{AuthProtocol, PrivProtocol};
use meikyo_snmp::Credentials;
use meikyo_snmp::agent::host::{Host, Roots};
use meikyo_snmp::agent::{self, Access, AgentUser, Counters, Engine, Stop};
use meikyo_units::WallTime;

use crate::snmpd::{Snmpd, net_snmp};

/// Our agent on a free loopback port, in a thread.
struct HostAgent {
    address: SocketAddr,
    trigger: UnixStream,
    thread: JoinHandle<Counters>,
}

impl HostAgent {
    fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let (stop, trigger) = Stop::pair().unwrap();
        let mut access = Access::read_only(b"public");
        let credentials = Credentials::from_passwords(
            "sha256",
            Some((AuthProtocol::Sha256, "authentication")),
            Some((PrivProtocol::Aes128, "encryption word")),
        );
        access.users.extend(AgentUser::new(credentials.unwrap(), false));
        let thread = std::thread::spawn(move || {
            let mut engine = Engine::of_this_host(WallTime::now());
            let mut host = Host::new(Roots::default(), &engine).unwrap();
            agent::serve(&socket, &access, &mut engine, &mut host, &stop).unwrap()
        });
        Self { address, trigger, thread }
    }

    fn stop(self) -> Counters {
        drop(self.trigger);
        self.thread.join().unwrap()
    }

    /// What a net-snmp tool prints: OID and value by line.
    fn tool(&self, program: &str, arguments: &[&str], oids: &[&str]) -> BTreeMap<String, String> {
        by_oid(&net_snmp(self.address, program, arguments, oids))
    }
}

fn by_oid(text: &str) -> BTreeMap<String, String> {
    // The tools end a walk with a sentence.
    text.lines()
        .filter(|line| line.starts_with('.') && !line.contains("No more variables"))
        .filter_map(|line| line.split_once(' '))
        .map(|(oid, value)| (oid.to_owned(), value.trim().to_owned()))
        .collect()
}

const V2C: &[&str] = &["-v2c", "-cpublic"];
const V3: &[&str] = &[
    "-v3",
    "-usha256",
    "-lauthPriv",
    "-aSHA-256",
    "-Aauthentication",
    "-xAES",
    "-Xencryption word",
];

#[test]
fn this_hosts_values_are_those_of_net_snmps_agent() {
    let Some(snmpd) = Snmpd::start() else { return };
    let ours = HostAgent::start();
    // What does not move: identity and state of the interfaces, memory size, file systems.
    for subtree in [
        ".1.3.6.1.2.1.2.2.1.1",
        ".1.3.6.1.2.1.2.2.1.2",
        ".1.3.6.1.2.1.2.2.1.3",
        ".1.3.6.1.2.1.2.2.1.4",
        ".1.3.6.1.2.1.2.2.1.6",
        ".1.3.6.1.2.1.2.2.1.7",
        ".1.3.6.1.2.1.2.2.1.8",
        ".1.3.6.1.2.1.31.1.1.1.1",
        ".1.3.6.1.4.1.2021.4.3",
        ".1.3.6.1.4.1.2021.4.5",
        ".1.3.6.1.2.1.25.2.2",
        ".1.3.6.1.2.1.1.5",
        ".1.3.6.1.4.1.2021.10.1.2",
    ] {
        let theirs = by_oid(&snmpd.tool("snmpwalk", V2C, &[subtree]));
        assert!(!theirs.is_empty(), "{subtree}");
        assert_eq!(ours.tool("snmpbulkwalk", V2C, &[subtree]), theirs, "{subtree}");
    }
    // What moves: theirs is at most 5 s old, ours is of now; counters only grow.
    for subtree in [
        ".1.3.6.1.2.1.31.1.1.1.6",
        ".1.3.6.1.2.1.31.1.1.1.10",
        ".1.3.6.1.2.1.2.2.1.17",
        ".1.3.6.1.4.1.2021.11.50",
        ".1.3.6.1.4.1.2021.11.53",
        ".1.3.6.1.4.1.2021.11.54",
        ".1.3.6.1.2.1.25.1.1",
    ] {
        let before = ours.tool("snmpwalk", V2C, &[subtree]);
        let theirs = by_oid(&snmpd.tool("snmpwalk", V2C, &[subtree]));
        let after = ours.tool("snmpwalk", V2C, &[subtree]);
        assert_eq!(before.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
        for (oid, theirs) in &theirs {
            let number = |text: &String| text.parse::<u64>().unwrap();
            let (theirs, after) = (number(theirs), number(&after[oid]));
            assert!(theirs <= after, "{oid}: {theirs} is more than {after}");
            // Their cache is filled when they start: nothing here moves by more since then.
            assert!(after - theirs < 100_000_000, "{oid}: {theirs} and {after}");
        }
    }
    ours.stop();
}

#[test]
fn values_are_those_of_proc_at_the_moment_of_asking() {
    if !std::path::Path::new("/usr/bin/snmpget").is_file() {
        meikyo_testing::lacking("snmpget is not installed");
        return;
    }
    let ours = HostAgent::start();
    let octets_of_lo = || {
        let text = std::fs::read_to_string("/proc/net/dev").unwrap();
        let line = text.lines().find_map(|line| line.trim().strip_prefix("lo:").map(str::to_owned));
        line.unwrap().split_whitespace().next().unwrap().parse::<u64>().unwrap()
    };
    let oid = ".1.3.6.1.2.1.31.1.1.1.6.1";
    let mut last = 0;
    for version in [V2C, V3] {
        let before = octets_of_lo();
        let answered: u64 = ours.tool("snmpget", version, &[oid])[oid].parse().unwrap();
        let after = octets_of_lo();
        // The question itself went over lo: a value of before it would be stale.
        assert!(before < answered && answered < after, "{before}, {answered}, {after}");
        assert!(answered > last);
        last = answered;
    }
    ours.stop();
}

#[test]
fn net_snmp_walks_the_whole_tree_in_every_version() {
    if !std::path::Path::new("/usr/bin/snmpbulkwalk").is_file() {
        meikyo_testing::lacking("snmpbulkwalk is not installed");
        return;
    }
    let ours = HostAgent::start();
    let v2c = ours.tool("snmpbulkwalk", V2C, &[".1"]);
    let v3 = ours.tool("snmpbulkwalk", V3, &[".1"]);
    let steps = ours.tool("snmpwalk", V2C, &[".1"]);
    let v1 = ours.tool("snmpwalk", &["-v1", "-cpublic"], &[".1"]);
    assert!(v2c.len() > 100, "{} objects", v2c.len());
    assert_eq!(v2c.keys().collect::<Vec<_>>(), v3.keys().collect::<Vec<_>>());
    assert_eq!(v2c.keys().collect::<Vec<_>>(), steps.keys().collect::<Vec<_>>());
    // v1 has no Counter64: RFC 3584 steps over them.
    let wide = |oid: &str| {
        [6, 7, 8, 10, 11].iter().any(|c| oid.starts_with(&format!(".1.3.6.1.2.1.31.1.1.1.{c}.")))
    };
    let narrow: Vec<&String> = v2c.keys().filter(|oid| !wide(oid)).collect();
    assert_eq!(v1.keys().collect::<Vec<_>>(), narrow);
    let counters = ours.stop();
    assert_eq!((counters.malformed, counters.bad_communities), (0, 0));
}

#[test]
fn nobody_writes_and_strangers_get_no_answer() {
    if !std::path::Path::new("/usr/bin/snmpset").is_file() {
        meikyo_testing::lacking("snmpset is not installed");
        return;
    }
    let ours = HostAgent::start();
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).env("MIBS", "").output().unwrap();
        assert!(!output.status.success());
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let address = ours.address.to_string();
    let name = ".1.3.6.1.2.1.1.5.0";
    let said = run("snmpset", &["-v2c", "-cpublic", &address, name, "s", "other"]);
    assert!(said.contains("noAccess"), "{said}");
    let said = run("snmpset", &["-v1", "-cpublic", &address, name, "s", "other"]);
    assert!(said.contains("noSuchName"), "{said}");
    let said = run("snmpget", &["-v2c", "-cwrong", "-t0.2", "-r0", &address, name]);
    assert!(said.contains("Timeout"), "{said}");
    let weak = ["-v3", "-usha256", "-lauthNoPriv", "-aSHA-256", "-Aauthentication"];
    let said = run("snmpget", &[&weak[..], &[&address, name]].concat());
    assert!(said.contains("authorizationError"), "{said}");
    let counters = ours.stop();
    assert_eq!((counters.bad_communities, counters.bad_writes), (1, 2));
}
