//! The farm in a process of its own, on the other core: `meikyo farm`.

use std::io::{self, BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::Path;
use std::process::{ChildStderr, Stdio};

use meikyo_console::benches::collect::Speech;
use meikyo_units::Nanos;

use crate::cluster_text::V3_USER;
use crate::collector::product;
use crate::placement::{Placed, Placement, spawn};

/// Address of the first agent.
const FIRST: Ipv4Addr = Ipv4Addr::new(127, 1, 0, 1);
/// How long it may take to write the rest of its truth file.
const PATIENCE: Nanos = Nanos::from_secs(60);

/// What the farm is told.
#[derive(Debug)]
pub(crate) struct FarmPlan<'a> {
    /// How many hosts.
    pub(crate) agents: u32,
    /// How often agents really read their values, as `meikyo farm --cache` takes it.
    pub(crate) cache: &'a str,
    /// Span between two changes of the counters.
    pub(crate) step: Nanos,
    /// Where the truth goes.
    pub(crate) truth: &'a Path,
    /// What is spoken.
    pub(crate) speech: Speech,
    pub(crate) placement: Placement,
}

/// A running farm; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct FarmProcess {
    process: Placed,
    port: u16,
    log: BufReader<ChildStderr>,
}

/// Why there is no farm.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FarmError {
    /// The system refused.
    #[error("cannot run `meikyo farm`")]
    Run(#[source] io::Error),
    /// It did not come up.
    #[error("`meikyo farm` ended before it was ready: {log}")]
    Ended {
        /// Standard error of the farm.
        log: String,
    },
}

impl FarmProcess {
    /// Starts it and waits until it answers.
    pub(crate) fn start(plan: &FarmPlan<'_>) -> Result<Self, FarmError> {
        let mut command = product().map_err(FarmError::Run)?;
        command.args(["farm", "--port", "0", "--cache", plan.cache]);
        command.args(["--count", &plan.agents.to_string(), "--step", &plan.step.to_string()]);
        command.args(["--first", &FIRST.to_string(), "--truth"]).arg(plan.truth);
        if plan.speech == Speech::V3 {
            command.args(["--user", &format!("{V3_USER}:SHA-256:AES-128")]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = spawn(command, plan.placement).map_err(FarmError::Run)?;
        let stderr = process.child().stderr.take().expect("standard error is piped");
        let mut log = BufReader::new(stderr);
        let mut said = String::new();
        loop {
            let start = said.len();
            let length = log.read_line(&mut said).map_err(FarmError::Run)?;
            if length == 0 {
                return Err(FarmError::Ended { log: said.trim().into() });
            }
            if let Some(port) = ready_port(&said[start..]) {
                return Ok(Self { process, port, log });
            }
        }
    }

    /// The address of agent `ordinal`; those beyond the farm's count never answer.
    pub(crate) fn address(&self, ordinal: u32) -> SocketAddrV4 {
        SocketAddrV4::new(agent_address(ordinal), self.port)
    }

    /// Names and addresses of the agents in `ordinals`.
    pub(crate) fn devices(&self, ordinals: std::ops::Range<u32>) -> Vec<(String, SocketAddr)> {
        ordinals.map(|n| (device_name(n), self.address(n).into())).collect()
    }

    /// Ends it; its truth file is complete then.
    pub(crate) fn finish(self) -> Result<(), FarmError> {
        self.process.terminate().map_err(FarmError::Run)?;
        let (status, _) = self.process.wait(PATIENCE).map_err(FarmError::Run)?;
        if status.success() {
            return Ok(());
        }
        let lines = self.log.lines().map_while(Result::ok).collect::<Vec<_>>();
        Err(FarmError::Ended { log: format!("{status}; {}", lines.join("; ")) })
    }
}

/// The name of agent `ordinal` in a bench's cluster file.
pub(crate) fn device_name(ordinal: u32) -> String {
    format!("node{:05}", ordinal + 1)
}

fn agent_address(ordinal: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(FIRST) + ordinal)
}

/// The port in `ready: 241 agents at 127.1.0.1:16100 and the addresses after it`.
fn ready_port(line: &str) -> Option<u16> {
    let rest = line.strip_prefix("ready: ")?;
    let address = rest.split(' ').find_map(|word| word.parse::<SocketAddrV4>().ok())?;
    Some(address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_read_from_the_line_that_says_ready() {
        let line = "ready: 241 agents at 127.1.0.1:45678 and the addresses after it\n";
        assert_eq!(ready_port(line), Some(45_678));
        assert_eq!(ready_port("warning: 127.1.0.1:1\n"), None);
    }

    #[test]
    fn addresses_count_up_over_the_octets() {
        assert_eq!(agent_address(0), Ipv4Addr::new(127, 1, 0, 1));
        assert_eq!(agent_address(9_999), Ipv4Addr::new(127, 1, 39, 16));
    }
}
