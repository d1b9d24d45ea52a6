//! `meikyo agent` as a process, asked by net-snmp's own tools; the truth is /proc.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use crate::running::{Process, interrupt, meikyo};
use crate::snmpd::{installed, net_snmp};

const IF_NAME: &str = "1.3.6.1.2.1.31.1.1.1.1";
const IN_OCTETS: &str = "1.3.6.1.2.1.31.1.1.1.6";
const PASSWORD: &str = "only for this test";

/// The agent, and where it listens.
fn start(directory: &std::path::Path) -> (Process, SocketAddr) {
    fs::write(directory.join("community"), "public\n").unwrap();
    fs::write(directory.join("password"), PASSWORD).unwrap();
    let mut child = meikyo()
        .current_dir(directory)
        .args(["agent", "--listen", "127.0.0.1:0", "--community", "file:community"])
        .args(["--user", "monitor", "--auth", "SHA-256:file:password"])
        .args(["--privacy", "AES-128:file:password"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let ready = lines.next().unwrap().unwrap();
    let address = ready.strip_prefix("ready: this host at ").expect(&ready);
    let address = address.split(',').next().unwrap().parse().unwrap();
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
    (Process(child), address)
}

fn octets_of_lo() -> u64 {
    let text = fs::read_to_string("/proc/net/dev").unwrap();
    let line = text.lines().find_map(|line| line.trim().strip_prefix("lo:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn net_snmps_tools_read_this_hosts_counters_by_v2c_and_v3() {
    for tool in ["snmpget", "snmpwalk", "snmpset"] {
        if !installed(tool) {
            return meikyo_testing::lacking(&format!(
                "{tool} is not installed (Debian package snmp)"
            ));
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let (mut agent, address) = start(directory.path());
    let v3 = ["-v3", "-l", "authPriv", "-u", "monitor", "-a", "SHA-256", "-A", PASSWORD];
    let v3 = [&v3[..], &["-x", "AES", "-X", PASSWORD]].concat();
    for credentials in [&["-v2c", "-c", "public"][..], &v3] {
        let names = net_snmp(address, "snmpwalk", credentials, &[IF_NAME]);
        let lo = names.lines().find(|line| line.ends_with("\"lo\"")).expect(&names);
        let index = lo.split(' ').next().unwrap().rsplit('.').next().unwrap();
        let object = format!("{IN_OCTETS}.{index}");
        let mut last = 0;
        for _ in 0..3 {
            let before = octets_of_lo();
            let answer = net_snmp(address, "snmpget", credentials, &[&object]);
            let after = octets_of_lo();
            let octets: u64 = answer.trim().rsplit(' ').next().unwrap().parse().unwrap();
            // Fresh at every request: between what /proc said before and after, and moving.
            assert!(before <= octets && octets <= after, "{before} {octets} {after}");
            assert!(octets > last, "the request itself moves the counter");
            last = octets;
        }
        let set = Command::new("snmpset")
            .args(credentials)
            .args(["-t", "1", "-r", "0", "-On", &address.to_string()])
            .args(["1.3.6.1.2.1.1.5.0", "s", "another"])
            .env("MIBS", "")
            .output()
            .unwrap();
        assert!(!set.status.success(), "the agent can only be read");
    }
    let wrong = Command::new("snmpget")
        .args(["-v3", "-l", "authNoPriv", "-u", "monitor", "-a", "SHA-256", "-A", "another one"])
        .args(["-t", "1", "-r", "0", &address.to_string(), "1.3.6.1.2.1.1.3.0"])
        .env("MIBS", "")
        .output()
        .unwrap();
    assert!(!wrong.status.success(), "a wrong password reads nothing");
    interrupt(&agent.0);
    assert!(agent.0.wait().unwrap().success());
}
