//! What one device answers, how fast, how fresh, and what polling costs it.
//!
//! A probe asks as the collector would, the same objects with the same names in as many requests,
//! only faster, so that refreshes are seen as they happen. It changes nothing and keeps nothing.

mod cost;
mod inspect;
mod trouble;
mod watch;

use meikyo_cluster::Device;
use meikyo_units::{Nanos, WallTime};
use thiserror::Error;

use crate::client::{Client, ClientOptions, ConnectError, RequestError};
use crate::credentials::Credentials;
use crate::plan::DevicePlan;
use crate::resolve::{self, Problem};
use crate::{Oid, Value};

pub use cost::{Cost, CpuTime, ReadCpuError};
pub use inspect::{Inspected, inspect};
pub use trouble::Trouble;
pub use watch::{Latency, Watched};

/// `sysDescr.0`, `sysName.0` (RFC 3418) and `sysUpTime.0`.
const SYSTEM: [&[u32]; 3] =
    [&[1, 3, 6, 1, 2, 1, 1, 1, 0], &[1, 3, 6, 1, 2, 1, 1, 5, 0], &[1, 3, 6, 1, 2, 1, 1, 3, 0]];

/// How a device is probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeOptions {
    /// Span between two requests while refreshes are looked for; never less than the device's rate
    /// cap allows.
    pub every: Nanos,
    /// How long refreshes are looked for.
    pub watch: Nanos,
    /// The agent's process, if it runs on this host: its CPU time is read.
    pub agent_pid: Option<u32>,
}

/// Why a device cannot be probed.
#[derive(Debug, Error)]
pub enum ProbeError {
    /// No socket.
    #[error("cannot probe the agent")]
    Connect(#[source] ConnectError),
    /// No answer, or one that cannot be used.
    #[error("the agent does not answer")]
    Request(#[source] RequestError),
    /// The process that was named as the agent's cannot be looked at.
    #[error("cannot read the CPU time of the agent")]
    Cpu(#[source] ReadCpuError),
}

/// What the agent says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// `sysDescr.0`.
    pub description: Option<String>,
    /// `sysName.0`.
    pub name: Option<String>,
    /// `sysUpTime.0`.
    pub uptime: Option<Nanos>,
}

/// What a probe found.
#[derive(Debug, Clone)]
pub struct Report {
    /// What the agent says about itself.
    pub identity: Identity,
    /// What can be measured.
    pub plan: DevicePlan,
    /// What cannot.
    pub problems: Vec<Problem>,
    /// Round trips of the requests.
    pub latency: Latency,
    /// Every value, with how fresh it is.
    pub values: Vec<Watched>,
    /// What polling at the device's interval costs the agent.
    pub cost: Cost,
}

/// Probes a device: who it is, what it has, and for [`ProbeOptions::watch`] how fresh that is.
///
/// # Errors
/// [`ProbeError`] if it does not answer; what it lacks is in the report.
pub fn probe(
    device: &Device,
    credentials: Credentials,
    options: &ProbeOptions,
) -> Result<Report, ProbeError> {
    let patience = ClientOptions { timeout: device.snmp.timeout, retries: 1 };
    let mut client =
        Client::connect(device.address, credentials, patience).map_err(ProbeError::Connect)?;
    let identity = identify(&mut client)?;
    let mut walked = Vec::new();
    for subtree in resolve::walks_for(device) {
        walked.extend(client.walk(&subtree).map_err(ProbeError::Request)?);
    }
    let (plan, problems) = resolve::plan(device, &walked);
    let spacing = Nanos::SECOND.get() / u64::from(device.snmp.rate_max.max(1));
    let every = Nanos::new(options.every.get().max(spacing));
    let mut watch = watch::Watch::new(&plan, &walked);
    watch.run(&mut client, every, options.watch)?;
    let cost = cost::measure(&mut client, &mut watch, device.snmp.interval, options)?;
    let (latency, values) = watch.finish();
    Ok(Report { identity, plan, problems, latency, values, cost })
}

fn identify(client: &mut Client) -> Result<Identity, ProbeError> {
    let answer = client.get(&SYSTEM.map(Oid::from_slice)).map_err(ProbeError::Request)?;
    let text = |position: usize| {
        let (_, value) = answer.get(position)?;
        Some(String::from_utf8_lossy(value.as_octets()?).into_owned())
    };
    let uptime = match answer.get(2) {
        Some((_, Value::TimeTicks(ticks))) => Some(Nanos::from_millis(u64::from(*ticks) * 10)),
        _ => None,
    };
    Ok(Identity { description: text(0), name: text(1), uptime })
}

/// Waits until the wall clock shows `due`. Nothing else may wake the thread for long: a wake-up too
/// early is waited on, one too late shows in the times.
fn wait_until(due: WallTime) {
    loop {
        let left = due.since(WallTime::now());
        if left == Nanos::ZERO {
            return;
        }
        std::thread::park_timeout(left.to_std());
    }
}
