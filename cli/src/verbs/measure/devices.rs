//! The devices of a running measurement by the collector's ordinals, and what a changed cluster
//! file means for them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use meikyo_cluster::{AlertRule, Cluster, DeviceKind};
use meikyo_recording::devices::{Agent, Role};
use meikyo_snmp::collector::Command;
use meikyo_snmp::poll::DeviceSpec;
use meikyo_snmp::resolver::{Job, Outcome};
use meikyo_units::{Nanos, WallTime, in_one_line};

use super::setup::{self, Ready, SetupError};

/// How often the cluster file is looked at.
const LOOK_EVERY: Nanos = Nanos::from_millis(250);

/// The devices, and the file that they come from.
#[derive(Debug)]
pub(super) struct Devices {
    cluster: Cluster,
    by_ordinal: BTreeMap<u32, Ready>,
    /// Changed devices that go on as they were until their new names are resolved, by the ordinal
    /// that they still have.
    changing: BTreeMap<u32, Ready>,
    looked_at: WallTime,
    stamp: Option<(SystemTime, u64)>,
}

/// What a changed file asks for.
#[derive(Debug)]
pub(super) struct Changes {
    /// One sentence for people.
    pub(super) text: String,
    /// Devices that are gone, or whose agent is another one.
    pub(super) remove: Vec<u32>,
    /// New devices, and those whose agent is another one.
    pub(super) add: Vec<Ready>,
    /// Devices whose names must be resolved for what is newly asked of them.
    pub(super) jobs: Vec<Job>,
    /// The rules of alerts, if they have changed.
    pub(super) alerts: Option<Vec<AlertRule>>,
}

/// Leaves in a recording what the cluster file says of the devices, and who answers for them if
/// they are really asked. It can be done without: names stand in the rows.
pub(crate) fn note(cluster: &Cluster, recording: &Path, asked: bool) {
    if let Err(error) = meikyo_recording::devices::write(recording, &facts(cluster, asked)) {
        tracing::warn!(%error, "what the cluster file says of the devices is not kept");
    }
}

/// What the cluster file says of the devices.
fn facts(cluster: &Cluster, asked: bool) -> Vec<meikyo_recording::devices::Device> {
    let agent = |device: &meikyo_cluster::Device| Agent {
        address: device.address.to_string(),
        version: device.snmp.access.version().to_owned(),
    };
    let fact = |device: &meikyo_cluster::Device| meikyo_recording::devices::Device {
        name: device.name.clone(),
        role: match device.kind {
            DeviceKind::Host => Role::Host,
            DeviceKind::Switch => Role::Switch,
        },
        group: device.group.clone(),
        agent: asked.then(|| agent(device)),
    };
    cluster.devices.iter().map(fact).collect()
}

impl Devices {
    /// The devices of a cluster file, with their secrets.
    pub(super) fn new(cluster: Cluster) -> Result<Self, SetupError> {
        let ready = setup::ready(&cluster)?;
        Ok(Self {
            by_ordinal: (0..).zip(ready).collect(),
            changing: BTreeMap::new(),
            looked_at: WallTime::default(),
            stamp: stamp(&cluster.path),
            cluster,
        })
    }

    /// Leaves a copy of what is known of the devices in the recording, for those who look at it.
    pub(super) fn note(&self, recording: &Path) {
        note(&self.cluster, recording, true);
    }

    /// What the cluster file says of the devices, for a receiver.
    pub(super) fn facts(&self) -> Vec<meikyo_recording::devices::Device> {
        facts(&self.cluster, true)
    }

    /// The cluster file as it was read last.
    pub(super) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The devices by ordinal.
    pub(super) fn by_ordinal(&self) -> &BTreeMap<u32, Ready> {
        &self.by_ordinal
    }

    pub(super) fn count(&self) -> usize {
        self.by_ordinal.len()
    }

    /// What the collector starts with, in the order of the ordinals.
    pub(super) fn specs(&self) -> Vec<DeviceSpec> {
        self.by_ordinal.values().map(Ready::spec).collect()
    }

    pub(super) fn name(&self, ordinal: u32) -> &str {
        self.by_ordinal.get(&ordinal).map_or("", |ready| &ready.device.name)
    }

    /// The job that resolves the names of a device.
    pub(super) fn job(&self, ordinal: u32) -> Option<Job> {
        let ready = self.by_ordinal.get(&ordinal)?;
        Some(job(ordinal, ready))
    }

    /// What the collector must be told of a resolved device.
    pub(super) fn resolved(&mut self, outcome: Outcome) -> Vec<Command> {
        let ordinal = outcome.ordinal;
        let changing = self.changing.remove(&ordinal);
        match (outcome.result, changing) {
            (Err(error), changing) => {
                if let Some(ready) = changing {
                    self.by_ordinal.insert(ordinal, ready);
                }
                vec![Command::Unresolved { ordinal, problem: in_one_line(&error) }]
            }
            (Ok((plan, problems)), changing) => {
                let problems = problems.iter().map(ToString::to_string).collect();
                let mut commands = Vec::new();
                if let Some(ready) = changing {
                    commands.push(Command::Respecify { ordinal, spec: ready.spec() });
                    self.by_ordinal.insert(ordinal, ready);
                }
                commands.push(Command::Resolved { ordinal, plan, problems });
                commands
            }
        }
    }

    /// Takes note of the ordinals that added devices were given.
    pub(super) fn added(&mut self, ordinals: &[u32], added: Vec<Ready>) {
        self.by_ordinal.extend(ordinals.iter().copied().zip(added));
    }

    /// Looks whether the cluster file has changed; if so, what that means.
    ///
    /// # Errors
    /// A text for people when the file cannot be used; the measurement goes on as it was.
    pub(super) fn reload(&mut self, now: WallTime) -> Result<Option<Changes>, String> {
        if now.since(self.looked_at) < LOOK_EVERY {
            return Ok(None);
        }
        self.looked_at = now;
        let stamp = stamp(&self.cluster.path);
        if stamp.is_none() || stamp == self.stamp {
            return Ok(None);
        }
        self.stamp = stamp;
        let cluster = meikyo_cluster::load(&self.cluster.path).map_err(|error| {
            format!("the changed cluster file is refused: {}", in_one_line(&error))
        })?;
        let changes = self.changes(&cluster).map_err(|error| {
            format!("the changed cluster file is refused: {}", in_one_line(&error))
        })?;
        self.cluster = cluster;
        Ok(changes)
    }

    fn changes(&mut self, new: &Cluster) -> Result<Option<Changes>, SetupError> {
        let difference = meikyo_cluster::diff(&self.cluster, new);
        if difference.is_empty() {
            return Ok(None);
        }
        let ready = |device| setup::ready_device(device, new.base(), &new.path);
        let ordinals: BTreeMap<&str, u32> = self
            .by_ordinal
            .iter()
            .map(|(&ordinal, ready)| (ready.device.name.as_str(), ordinal))
            .collect();
        let ordinal = |name: &str| ordinals.get(name).copied();
        let mut remove: Vec<u32> =
            difference.removed.iter().filter_map(|device| ordinal(&device.name)).collect();
        let mut add = Vec::new();
        for device in &difference.added {
            add.push(ready(device)?);
        }
        let mut changing = BTreeMap::new();
        for change in &difference.changed {
            let changed = ready(change.new)?;
            match ordinal(&change.new.name) {
                Some(ordinal) if !change.is_other_agent() => {
                    changing.insert(ordinal, changed);
                }
                known => {
                    remove.extend(known);
                    add.push(changed);
                }
            }
        }
        let alerts = difference.alerts_changed.then(|| new.rules());
        let mut text = format!(
            "the cluster file has changed: {} devices added, {} removed, {} changed",
            difference.added.len(),
            difference.removed.len(),
            difference.changed.len()
        );
        if let Some(rules) = &alerts {
            text += &format!(", {} rules of alerts", rules.len());
        }
        for ordinal in &remove {
            self.by_ordinal.remove(ordinal);
        }
        let jobs = changing.iter().map(|(&ordinal, ready)| job(ordinal, ready)).collect();
        self.changing.extend(changing);
        Ok(Some(Changes { text, remove, add, jobs, alerts }))
    }
}

fn job(ordinal: u32, ready: &Ready) -> Job {
    Job { ordinal, device: ready.device.clone(), credentials: ready.credentials.clone() }
}

/// What changes when the file is written: its time and its size.
fn stamp(path: &PathBuf) -> Option<(SystemTime, u64)> {
    let facts = std::fs::metadata(path).ok()?;
    Some((facts.modified().ok()?, facts.len()))
}
