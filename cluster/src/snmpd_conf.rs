//! The lines of `snmpd.conf` with which net-snmp's agent shows what is measured, and nothing else.
//!
//! Debian's default view holds the `system` group only: no interface, no disk. These lines replace
//! it. Secrets are not in them: where one belongs stands its reference, `<env:NAME>`.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use crate::fold::fold;
use crate::{Access, AuthProtocol, Cluster, Device, DeviceKind, PrivProtocol, What};

/// `sysUpTime` (RFC 3418), which travels first in every request.
const SYS_UP_TIME: &str = "1.3.6.1.2.1.1.3";
/// `nsCacheTable` (NET-SNMP-AGENT-MIB): how long the agent itself says that it caches.
const NS_CACHE_TABLE: &str = "1.3.6.1.4.1.8072.1.5.3";
/// `nsCacheTimeout`, the column that `--freshen` sets.
const NS_CACHE_TIMEOUT: &str = "1.3.6.1.4.1.8072.1.5.3.1.2";

const INTERFACES: &[(&str, &str)] = &[
    ("1.3.6.1.2.1.2.1", "ifNumber (RFC 2863)"),
    ("1.3.6.1.2.1.2.2", "ifTable (RFC 2863)"),
    ("1.3.6.1.2.1.31.1.1", "ifXTable (RFC 2863)"),
    ("1.3.6.1.2.1.31.1.5", "ifTableLastChange (RFC 2863)"),
];
const DISKS: &[(&str, &str)] = &[("1.3.6.1.4.1.2021.9", "dskTable (UCD-SNMP-MIB)")];
const LOAD: &[(&str, &str)] = &[("1.3.6.1.4.1.2021.10", "laTable (UCD-SNMP-MIB)")];
const CPU: &[(&str, &str)] = &[("1.3.6.1.4.1.2021.11", "systemStats (UCD-SNMP-MIB)")];
const MEMORY: &[(&str, &str)] = &[("1.3.6.1.4.1.2021.4", "memory (UCD-SNMP-MIB)")];

/// The lines for hosts that need the same ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentLines {
    /// The hosts, folded: `node[001-225]`.
    pub hosts: String,
    /// How many hosts these are.
    pub count: usize,
    /// The lines, comments included, without line feeds.
    pub lines: Vec<String>,
}

/// The `snmpd.conf` lines for every host, hosts with the same lines together, in the order of the
/// file. `oid_of` says which OID a named object has; an object that it does not know gets a comment.
pub fn agent_lines(cluster: &Cluster, oid_of: impl Fn(&str) -> Option<String>) -> Vec<AgentLines> {
    let mut order: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    let mut positions: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    for device in cluster.devices.iter().filter(|device| device.kind == DeviceKind::Host) {
        let lines = device_agent_lines(device, &oid_of);
        let position = *positions.entry(lines.clone()).or_insert_with(|| {
            order.push((lines, Vec::new()));
            order.len() - 1
        });
        order[position].1.push(device.name.clone());
    }
    order
        .into_iter()
        .map(|(lines, names)| AgentLines { hosts: fold(&names), count: names.len(), lines })
        .collect()
}

/// The `snmpd.conf` lines for one device; see [`agent_lines`].
pub fn device_agent_lines(device: &Device, oid_of: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut lines = vec![listen(device.address)];
    lines.push("# What is measured, read-only. sysUpTime goes with every request.".into());
    lines.push(view("meikyo", SYS_UP_TIME));
    lines.push("# How long the agent caches: nsCacheTable (NET-SNMP-AGENT-MIB).".into());
    lines.push(view("meikyo", NS_CACHE_TABLE));
    let mut seen = BTreeSet::new();
    for measure in &device.measure {
        if let What::Object(name) = &measure.what {
            let digits = name.starts_with(|c: char| c.is_ascii_digit()).then(|| name.clone());
            match digits.or_else(|| oid_of(name)) {
                Some(oid) if seen.insert(oid.clone()) => {
                    lines.push(format!("# {name}"));
                    lines.push(view("meikyo", &oid));
                }
                Some(_) => {}
                None => lines.push(format!("# {name}: not a known object, write its OID")),
            }
        }
        for (oid, title) in subtrees(&measure.what) {
            if seen.insert((*oid).to_owned()) {
                lines.push(format!("# {title}"));
                lines.push(view("meikyo", oid));
            }
        }
        if let What::Disk(path) = &measure.what {
            lines.push(format!("disk {}", quoted_where_needed(path)));
        }
    }
    lines.extend(credentials(device));
    lines
}

fn subtrees(what: &What) -> &'static [(&'static str, &'static str)] {
    match what {
        What::Interface(_) | What::Interfaces => INTERFACES,
        What::Disk(_) => DISKS,
        What::Load => LOAD,
        What::Cpu => CPU,
        What::Memory => MEMORY,
        What::Parts { kind, .. } => kind.subtrees,
        What::Uptime | What::Object(_) => &[],
    }
}

fn view(name: &str, oid: &str) -> String {
    format!("view {name} included .{oid}")
}

/// On every address of the host, except that what is asked on loopback is not opened to others.
fn listen(address: SocketAddr) -> String {
    let port = address.port();
    match (address, address.ip().is_loopback()) {
        (SocketAddr::V4(_), false) => format!("agentAddress udp:{port}"),
        (SocketAddr::V6(_), false) => format!("agentAddress udp6:{port}"),
        (SocketAddr::V4(address), true) => format!("agentAddress udp:{address}"),
        (SocketAddr::V6(address), true) => format!("agentAddress udp6:{address}"),
    }
}

fn credentials(device: &Device) -> Vec<String> {
    let read = &device.snmp.access;
    if *read == Access::Unstated {
        return vec!["# The cluster file has no `[snmp]` for this device: nobody may read.".into()];
    }
    let write = device.snmp.write_access.as_ref();
    let mut lines = vec!["# Who may read. Put each secret in the place of its <reference>.".into()];
    lines.extend(created_user(read));
    let Some(write) = write else {
        lines.push(grant("ro", read, device.address, "meikyo"));
        return lines;
    };
    if write == read {
        // One name with two views: `rouser` and `rwuser` would use one view for both.
        lines.extend(two_views(read, device.address));
    } else {
        lines.push(grant("ro", read, device.address, "meikyo"));
        lines.extend(created_user(write));
        lines.push(grant("rw", write, device.address, "meikyo-write"));
    }
    lines.push("# What `meikyo measure --freshen` sets: nsCacheTimeout.".into());
    lines.push(view("meikyo-write", NS_CACHE_TIMEOUT));
    lines
}

fn created_user(access: &Access) -> Option<String> {
    let Access::V3 { user, auth, privacy } = access else { return None };
    let mut line = format!("createUser {}", quoted_where_needed(user));
    if let Some((protocol, secret)) = auth {
        line += &format!(" {} \"<{secret}>\"", auth_word(*protocol));
    }
    if let Some((protocol, secret)) = privacy {
        line += &format!(" {} \"<{secret}>\"", privacy_word(*protocol));
    }
    Some(line)
}

fn grant(how: &str, access: &Access, address: SocketAddr, view: &str) -> String {
    match access {
        Access::V1 { community } | Access::V2c { community } => {
            let six = if address.is_ipv6() { "6" } else { "" };
            format!("{how}community{six} \"<{community}>\" default -V {view}")
        }
        Access::Unstated => String::new(),
        Access::V3 { user, .. } => {
            format!("{how}user {} {} -V {view}", quoted_where_needed(user), level(access))
        }
    }
}

fn two_views(access: &Access, address: SocketAddr) -> Vec<String> {
    let (model, member, mut lines) = match access {
        Access::Unstated => return Vec::new(),
        Access::V1 { community } | Access::V2c { community } => {
            let six = if address.is_ipv6() { "6" } else { "" };
            let model = if matches!(access, Access::V1 { .. }) { "v1" } else { "v2c" };
            let line = format!("com2sec{six} meikyo default \"<{community}>\"");
            (model, "meikyo".to_owned(), vec![line])
        }
        Access::V3 { user, .. } => ("usm", quoted_where_needed(user), Vec::new()),
    };
    let level = level(access);
    lines.push(format!("group meikyo {model} {member}"));
    lines.push(format!("access meikyo \"\" {model} {level} exact meikyo meikyo-write none"));
    lines
}

/// The least security that the agent accepts: that of the file.
fn level(access: &Access) -> &'static str {
    match access {
        Access::V3 { privacy: Some(_), .. } => "priv",
        Access::V3 { auth: Some(_), .. } => "auth",
        Access::Unstated | Access::V1 { .. } | Access::V2c { .. } | Access::V3 { .. } => "noauth",
    }
}

/// As `createUser` of net-snmp 5.9 writes it.
fn auth_word(protocol: AuthProtocol) -> &'static str {
    match protocol {
        AuthProtocol::Md5 => "MD5",
        AuthProtocol::Sha1 => "SHA",
        AuthProtocol::Sha224 => "SHA-224",
        AuthProtocol::Sha256 => "SHA-256",
        AuthProtocol::Sha384 => "SHA-384",
        AuthProtocol::Sha512 => "SHA-512",
    }
}

/// As `createUser` of net-snmp 5.9 writes it.
fn privacy_word(protocol: PrivProtocol) -> &'static str {
    match protocol {
        PrivProtocol::Aes128 => "AES",
        PrivProtocol::Aes256 => "AES-256",
    }
}

fn quoted_where_needed(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '@');
    if word.chars().all(plain) { word.to_owned() } else { format!("\"{word}\"") }
}
