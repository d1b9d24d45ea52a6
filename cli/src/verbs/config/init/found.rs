//! What an agent shows of its device, as far as a cluster file says it.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use meikyo_cluster::Access;
use meikyo_snmp::{Oid, Value};

/// `sysName` (RFC 3418).
const SYS_NAME: &[u32] = &[1, 3, 6, 1, 2, 1, 1, 5];
/// `sysUpTime`, which every agent has.
const SYS_UP_TIME: &[u32] = &[1, 3, 6, 1, 2, 1, 1, 3];
/// `dot1dBaseNumPorts` (RFC 4188): what has it is a switch.
const BRIDGE_PORTS: &[u32] = &[1, 3, 6, 1, 2, 1, 17, 1, 2];
/// `ifDescr` (RFC 2863).
const INTERFACES: &[u32] = &[1, 3, 6, 1, 2, 1, 2, 2, 1, 2];
/// `laLoadInt`, `ssCpuRawUser`, `memTotalReal`, `dskPath` (UCD-SNMP-MIB).
const LOAD: &[u32] = &[1, 3, 6, 1, 4, 1, 2021, 10, 1, 5];
const CPU: &[u32] = &[1, 3, 6, 1, 4, 1, 2021, 11, 50];
const MEMORY: &[u32] = &[1, 3, 6, 1, 4, 1, 2021, 4, 5];
const DISK_PATHS: &[u32] = &[1, 3, 6, 1, 4, 1, 2021, 9, 1, 2];
/// `hrStorageDescr` (RFC 2790): of Linux the mount point.
const STORAGE: &[u32] = &[1, 3, 6, 1, 2, 1, 25, 2, 3, 1, 3];

/// Disks of one device that are measured at most.
const DISKS_MAX: usize = 8;

/// What is walked of each device.
pub(super) fn subtrees() -> Vec<Oid> {
    let all =
        [SYS_UP_TIME, SYS_NAME, BRIDGE_PORTS, INTERFACES, LOAD, CPU, MEMORY, DISK_PATHS, STORAGE];
    all.map(Oid::from_slice).to_vec()
}

/// A device that answers.
#[derive(Debug, Clone)]
pub(super) struct Found {
    /// `sysName` as a name of a cluster file, or one made of the address.
    pub(super) name: String,
    pub(super) address: SocketAddr,
    pub(super) is_switch: bool,
    /// In the words of the cluster file.
    pub(super) measure: Vec<String>,
    pub(super) access: Access,
}

impl Found {
    /// What was walked; `None` of an agent that shows nothing at all.
    pub(super) fn new(
        address: SocketAddr,
        access: Access,
        walked: &[(Oid, Value)],
    ) -> Option<Self> {
        let below = |subtree: &[u32]| {
            let subtree = Oid::from_slice(subtree);
            walked.iter().filter(move |(oid, _)| oid.starts_with(&subtree)).map(|(_, value)| value)
        };
        let text = |value: &Value| String::from_utf8(value.as_octets()?.to_vec()).ok();
        below(SYS_UP_TIME).next()?;
        let ports = below(BRIDGE_PORTS).next();
        let is_switch = matches!(ports, Some(Value::Integer(count)) if *count > 0);
        let mut measure = Vec::new();
        let words = [(INTERFACES, "interfaces"), (LOAD, "load"), (CPU, "cpu"), (MEMORY, "memory")];
        for (subtree, word) in words {
            if below(subtree).next().is_some() {
                measure.push(word.to_owned());
            }
        }
        let mut disks: Vec<String> =
            below(DISK_PATHS).filter_map(text).filter(|path| is_path(path)).collect();
        if disks.is_empty() {
            disks.extend(below(STORAGE).filter_map(text).find(|path| path == "/"));
        }
        disks.sort();
        disks.dedup();
        disks.truncate(DISKS_MAX);
        measure.extend(disks.iter().map(|path| format!("disk:{path} every 10s")));
        if measure.is_empty() {
            measure.push("uptime".to_owned());
        }
        let name = below(SYS_NAME).find_map(text).map(|name| plain(&name)).unwrap_or_default();
        Some(Self { name, address, is_switch, measure, access })
    }
}

/// A path that can stand in the words of a measurement.
fn is_path(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "/-_.".contains(c);
    text.starts_with('/') && text.chars().all(allowed)
}

/// The first part of a host's name, in letters that names of a cluster file have.
fn plain(name: &str) -> String {
    let first = name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let allowed = |c: &char| c.is_ascii_alphanumeric() || *c == '-' || *c == '_';
    first.chars().filter(allowed).collect()
}

/// Gives devices without a name, and those that share one, a name made of their address.
pub(super) fn name(found: &mut [Found]) {
    let mut same: BTreeMap<String, usize> = BTreeMap::new();
    for device in &*found {
        *same.entry(device.name.clone()).or_default() += 1;
    }
    for device in found {
        if device.name.is_empty() || same[&device.name] > 1 {
            let address = device.address.to_string().replace(['.', ':', '[', ']'], "-");
            let word = if device.name.is_empty() { "device" } else { &device.name };
            device.name = format!("{word}-{}", address.trim_matches('-'));
        }
    }
}

#[cfg(test)]
mod tests {
    use meikyo_cluster::Secret;

    use super::*;

    fn found(port: u16, walked: &[(&[u32], Value)]) -> Option<Found> {
        let community = Secret::Env("C".to_owned());
        let walked: Vec<_> =
            walked.iter().map(|(oid, value)| (Oid::from_slice(oid), value.clone())).collect();
        Found::new(([10, 0, 0, 1], port).into(), Access::V2c { community }, &walked)
    }

    fn at(subtree: &[u32], instance: u32) -> Vec<u32> {
        [subtree, &[instance]].concat()
    }

    #[test]
    fn only_what_an_agent_shows_is_measured() {
        let text = |text: &str| Value::OctetString(text.as_bytes().to_vec());
        let [up, name, load] = [SYS_UP_TIME, SYS_NAME, LOAD].map(|of| at(of, 0));
        let paths = [at(DISK_PATHS, 1), at(DISK_PATHS, 2)];
        let host = found(
            161,
            &[
                (&up, Value::TimeTicks(5)),
                (&name, text("Node001.example.org")),
                (&load, Value::Integer(3)),
                (&paths[0], text("/var")),
                (&paths[1], text("/with space")),
            ],
        );
        let host = host.unwrap();
        assert_eq!((host.name.as_str(), host.is_switch), ("node001", false));
        assert_eq!(host.measure, ["load", "disk:/var every 10s"]);
        let bare = found(161, &[(&up, Value::TimeTicks(5))]).unwrap();
        assert_eq!(bare.measure, ["uptime"]);
        assert!(found(161, &[(&name, text("x"))]).is_none());
        let ports = at(BRIDGE_PORTS, 0);
        let switch = found(161, &[(&up, Value::TimeTicks(5)), (&ports, Value::Integer(48))]);
        assert!(switch.unwrap().is_switch);
    }

    #[test]
    fn names_that_are_missing_or_shared_are_made_of_the_address() {
        let up = at(SYS_UP_TIME, 0);
        let of = |port| found(port, &[(&up, Value::TimeTicks(5))]).unwrap();
        let mut all = [of(161), of(1161), of(2161)];
        all[1].name = "node".to_owned();
        all[2].name = "node".to_owned();
        name(&mut all);
        let names = all.map(|device| device.name);
        assert_eq!(names, ["device-10-0-0-1-161", "node-10-0-0-1-1161", "node-10-0-0-1-2161"]);
    }
}
