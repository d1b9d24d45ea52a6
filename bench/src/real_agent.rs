//! A real `snmpd` on a loopback port of its own, with a configuration of its own.

use std::io::{self, BufRead as _, BufReader};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{ChildStderr, Command, Stdio};

use meikyo_units::Nanos;

use crate::placement::{Placed, Placement, spawn};

/// A running `snmpd`; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct RealAgent {
    process: Placed,
    /// UDP port on 127.0.0.1.
    pub(crate) port: u16,
    /// Kept open, so that the agent can go on logging.
    _log: BufReader<ChildStderr>,
}

/// Why there is no real agent here.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RealAgentError {
    /// Not installed.
    #[error("`snmpd` is not installed")]
    Missing,
    /// It did not start.
    #[error("`snmpd` ended at once: {log}")]
    Ended {
        /// Standard error of `snmpd`.
        log: String,
    },
    /// The system refused something.
    #[error("cannot start `snmpd`")]
    Start(#[source] io::Error),
}

impl RealAgent {
    /// Starts it with its files in `directory`: reading with the community `public`, writing with
    /// `private`, disks and interfaces visible.
    pub(crate) fn start(directory: &Path, placement: Placement) -> Result<Self, RealAgentError> {
        let program = ["/usr/sbin/snmpd", "/usr/local/sbin/snmpd", "/usr/bin/snmpd"]
            .into_iter()
            .find(|path| Path::new(path).exists())
            .ok_or(RealAgentError::Missing)?;
        let port = free_port().map_err(RealAgentError::Start)?;
        let configuration = directory.join("snmpd.conf");
        let text = format!(
            "agentaddress udp:127.0.0.1:{port}\nrocommunity public 127.0.0.1\n\
             rwcommunity private 127.0.0.1\ndisk /\n"
        );
        std::fs::write(&configuration, text).map_err(RealAgentError::Start)?;
        let mut command = Command::new(program);
        command.args(["-f", "-Le", "-C", "-I", "-smux", "-c"]).arg(&configuration);
        command.arg("-p").arg(directory.join("snmpd.pid"));
        command.env("SNMP_PERSISTENT_DIR", directory.join("persistent"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = spawn(command, placement).map_err(RealAgentError::Start)?;
        let stderr = process.child().stderr.take().expect("standard error is piped");
        let mut log = BufReader::new(stderr);
        let mut said = String::new();
        loop {
            let start = said.len();
            let length = log.read_line(&mut said).map_err(RealAgentError::Start)?;
            if length == 0 {
                return Err(RealAgentError::Ended { log: said.trim().into() });
            }
            // The last line of its start; requests are answered from here on.
            if said[start..].contains("NET-SNMP version") {
                return Ok(Self { process, port, _log: log });
            }
        }
    }

    /// CPU time that it has used so far, exact to the scheduler's clock.
    pub(crate) fn cpu(&mut self) -> io::Result<Nanos> {
        let path = format!("/proc/{}/schedstat", self.process.child().id());
        let text = std::fs::read_to_string(path)?;
        let first = text.split(' ').next().and_then(|nanos| nanos.parse().ok());
        first.map(Nanos::new).ok_or_else(|| io::Error::other("the kernel counts no CPU time"))
    }
}

/// A UDP port that was free a moment ago.
pub(crate) fn free_port() -> io::Result<u16> {
    Ok(UdpSocket::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
