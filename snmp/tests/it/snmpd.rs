//! A real net-snmp agent of the test's own: free loopback port, own configuration, own state. The
//! tests of the binary use this file, too.
#![expect(clippy::unwrap_used, reason = "a test that cannot start its agent fails there")]

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use meikyo_testing::lacking;
use tempfile::TempDir;

pub(crate) struct Snmpd {
    child: Child,
    pub(crate) address: SocketAddr,
    directory: TempDir,
}

/// Whether a program of net-snmp is there.
pub(crate) fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .any(|directory| directory.join(program).is_file())
}

impl Snmpd {
    /// Starts an agent with these lines of `snmpd.conf` on a free port of an address, and waits until
    /// it listens; `None`, and the reason printed, if net-snmp is not installed.
    pub(crate) fn start_with(lines: &str, ip: Ipv4Addr) -> Option<Self> {
        for program in ["snmpd", "snmpget"] {
            if !installed(program) {
                lacking(&format!("{program} is not installed (Debian packages snmpd, snmp)"));
                return None;
            }
        }
        let directory = tempfile::tempdir().unwrap();
        let probe = UdpSocket::bind((ip, 0)).unwrap();
        let address = probe.local_addr().unwrap();
        drop(probe);
        std::fs::write(directory.path().join("snmpd.conf"), lines).unwrap();
        let child = spawn(directory.path(), address);
        Some(Self { child, address, directory })
    }

    /// The agent ends and is started anew, as after a reboot of its host.
    pub(crate) fn restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = spawn(self.directory.path(), self.address);
    }

    /// The process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What a net-snmp tool says, without its last newline.
    pub(crate) fn tool(&self, program: &str, arguments: &[&str], oids: &[&str]) -> String {
        net_snmp(self.address, program, arguments, oids).trim_end().to_owned()
    }
}

/// What a net-snmp tool prints about the agent at `address`.
pub(crate) fn net_snmp(
    address: SocketAddr,
    program: &str,
    arguments: &[&str],
    oids: &[&str],
) -> String {
    let output = Command::new(program)
        .args(arguments)
        .args(["-t", "2", "-r", "2", "-OnqUet"])
        .arg(address.to_string())
        .args(oids)
        .env("MIBS", "")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Starts the agent of the configuration in `directory` and waits until it listens.
fn spawn(directory: &Path, address: SocketAddr) -> Child {
    let mut child = Command::new("/usr/sbin/snmpd")
        .args(["-f", "-Lo", "-C", "-c"])
        .arg(directory.join("snmpd.conf"))
        .arg(format!("udp:{address}"))
        // Not where the configuration is: the agent keeps a file of the same name.
        .env("SNMP_PERSISTENT_DIR", directory.join("state"))
        .env("MIBS", "")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let listens = lines.any(|line| line.unwrap().starts_with("NET-SNMP version"));
    assert!(listens, "snmpd ended before it listened");
    // The pipe is read on, so that the agent never waits for room in it.
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
    child
}

impl Drop for Snmpd {
    fn drop(&mut self) {
        // Both fail only if the agent is gone already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
