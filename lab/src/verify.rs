//! What was planned, held against what real bridges do.
//!
//! The paths and table sizes that are due come from the checker, which reads only settings; what is
//! found are frames that arrived and counters of ports.

use std::collections::{BTreeMap, BTreeSet};

use meikyo_cluster::MacAddress;
use meikyo_fabric::check::path;
use meikyo_fabric::dialect::{Dialect, ParseError, RenderError, parse, port_interface, render};
use meikyo_fabric::{
    CheckOptions, Configuration, HostId, PortNumber, PrimingFrame, SwitchId, TrunkId, Wiring,
    check, priming_frame_bytes, priming_frames,
};
use serde::Serialize;

use crate::blueprint;
use crate::client::{AskError, RunError, ask};
use crate::directory::Directory;
use crate::roles::Roles;
use crate::traffic::{Done, Entry, Frame, Task, Trace};

/// How many frames are sent before switches are primed, at least one of every host's.
const UNPRIMED_MAX: usize = 64;
/// How often a pair is followed that was not seen to take its path: a kernel sends a frame of its own
/// now and then (ARP, LACP), and a way that is wrong is wrong each time.
const TRIES_OF_PATHS: usize = 3;
/// How often all hosts send to all before a copy is missing: a busy machine is late now and then.
const TRIES_OF_BROADCASTS: usize = 3;
/// How often all pairs are asked before one has no answer: a busy machine is late now and then.
const TRIES_OF_PINGS: usize = 3;

/// How thoroughly a lab is verified.
#[derive(Debug, Clone, Copy)]
pub struct VerifyOptions {
    /// Follow at most this many pairs, spread over all.
    pub pairs_max: usize,
    /// For how long nothing must arrive until everything has, in milliseconds.
    pub quiet_ms: u32,
    /// How long an answer to a ping is waited for, in milliseconds.
    pub patience_ms: u32,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// How many hosts.
    pub hosts: usize,
    /// How many switches.
    pub switches: usize,
    /// How many pairs of hosts, each direction for itself.
    pub pairs: usize,
    /// Those that did not answer over the Internet protocol.
    pub pairs_without_answer: Vec<String>,
    /// Copies of one broadcast of every host.
    pub broadcast_copies: u64,
    /// How many there must be: all hosts but the sender, each time.
    pub broadcast_copies_due: u64,
    /// Copies of frames to one host that others got, before switches were primed.
    pub flooded_copies_unprimed: u64,
    /// The same after priming: none must be.
    pub flooded_copies: u64,
    /// How many frames primed the switches.
    pub priming_frames: usize,
    /// How many pairs were followed frame by frame.
    pub pairs_followed: usize,
    /// Those whose frames took another path than the checker says from the settings.
    pub pairs_elsewhere: Vec<String>,
    /// Frames that ports sent beside those that were followed: kernels send some of their own now and
    /// then, as ARP and IGMP. By direction, as `sw1 to sw2`.
    pub kernel_frames: BTreeMap<String, u64>,
    /// What each switch has learned then.
    pub table_entries: Vec<usize>,
    /// What each has to, by the settings.
    pub table_entries_due: Vec<u64>,
    /// Whether all is as it must be.
    pub good: bool,
}

/// Sends frames and pings through a lab that runs this configuration, and compares.
///
/// Switches forget what they have learned first. It waits for another one, and for a
/// [`crate::fail_over`], in the same lab.
///
/// # Errors
/// [`AskError`] if something could not be done inside.
pub fn verify(
    directory: &Directory,
    roles: &Roles,
    wiring: &Wiring,
    configuration: &Configuration,
    options: &VerifyOptions,
) -> Result<Findings, AskError> {
    let _undisturbed = directory.undisturbed().map_err(RunError::from)?;
    let ask = |task| ask(directory, roles, &task);
    let send = |frames, each| match ask(Task::Send { frames, each, quiet_ms: options.quiet_ms })? {
        Done::Sent(traces) => Ok(traces),
        _ => Err(AskError::Failed("the lab sent an unexpected answer".into())),
    };
    let hosts = wiring.hosts.len();
    let pairs = followed(hosts, options.pairs_max);
    let mut found = Findings {
        hosts,
        switches: wiring.switches.len(),
        pairs: hosts * hosts.saturating_sub(1),
        pairs_followed: pairs.len(),
        ..Findings::default()
    };
    let frame = |&(from, to): &(usize, usize)| Frame { from, to: Some(to), vlan: None };
    ask(Task::Flush)?;
    let unprimed = send(pairs.iter().take(UNPRIMED_MAX.max(hosts)).map(frame).collect(), false)?;
    found.flooded_copies_unprimed = flooded(&unprimed, &pairs);
    ask(Task::Flush)?;
    found.priming_frames = prime(directory, roles, wiring, configuration)?;
    let broadcast = |from| Frame { from, to: None, vlan: None };
    found.broadcast_copies_due = found.pairs as u64;
    for _ in 0..TRIES_OF_BROADCASTS {
        let copies = send((0..hosts).map(broadcast).collect(), false)?;
        found.broadcast_copies = copies.iter().map(copies_of).sum();
        // One copy too many counts the first time.
        if found.broadcast_copies >= found.broadcast_copies_due {
            break;
        }
    }
    let traces = send(pairs.iter().map(frame).collect(), true)?;
    found.flooded_copies = flooded(&traces, &pairs);
    let ways = Ways::new(wiring);
    let name = |pair: &(usize, usize)| name_pair(wiring, *pair);
    let mut elsewhere = ways.elsewhere(configuration, &pairs, &traces);
    let mut beside = ways.beside(configuration, &elsewhere, &pairs, &traces);
    for _ in 1..TRIES_OF_PATHS {
        if !elsewhere.is_empty() {
            let again = send(elsewhere.iter().map(frame).collect(), true)?;
            elsewhere = ways.elsewhere(configuration, &elsewhere, &again);
        }
    }
    // Whose frames are elsewhere each time has no others beside them.
    beside.retain(|(pair, _, _)| !elsewhere.contains(pair));
    for (_, way, frames) in beside {
        *found.kernel_frames.entry(way).or_default() += frames;
    }
    found.pairs_elsewhere = elsewhere.iter().map(name).collect();
    if let Done::Tables(tables) = ask(Task::Tables)? {
        let primed: BTreeSet<u16> =
            priming_frames(configuration).iter().flatten().map(|frame| frame.vlan.id()).collect();
        // Elsewhere is what switches and their manager say to each other, at any time.
        let counts = |entry: &&Entry| primed.is_empty() || primed.contains(&entry.vlan);
        found.table_entries =
            tables.iter().map(|table| table.iter().filter(counts).count()).collect();
    }
    found.table_entries_due = check(wiring, configuration, &CheckOptions::INTACT).table_entries;
    let lost = lost_at_last(directory, roles, options.patience_ms, TRIES_OF_PINGS)?;
    found.pairs_without_answer = lost.iter().map(name).collect();
    let sizes = found.table_entries.iter().map(|&size| size as u64);
    found.good = found.pairs_without_answer.is_empty()
        && found.broadcast_copies == found.broadcast_copies_due
        && found.flooded_copies == 0
        && found.pairs_elsewhere.is_empty()
        && sizes.eq(found.table_entries_due.iter().copied());
    Ok(found)
}

/// The pairs that do not answer however often they are asked.
pub(crate) fn lost_at_last(
    directory: &Directory,
    roles: &Roles,
    patience_ms: u32,
    tries: usize,
) -> Result<Vec<(usize, usize)>, AskError> {
    let mut pairs = Vec::new();
    for _ in 0..tries {
        match ask(directory, roles, &Task::PingAll { patience_ms })? {
            Done::Pinged { lost, .. } => pairs = lost,
            _ => return Err(AskError::Failed("the lab sent an unexpected answer".into())),
        }
        if pairs.is_empty() {
            break;
        }
    }
    Ok(pairs)
}

/// Has every host send what teaches switches where it is; how many frames those are.
///
/// # Errors
/// [`AskError`] if they could not be sent.
pub fn prime(
    directory: &Directory,
    roles: &Roles,
    wiring: &Wiring,
    configuration: &Configuration,
) -> Result<usize, AskError> {
    let mac = |host: HostId| {
        let place = host.place();
        wiring.hosts[place].mac.unwrap_or_else(|| MacAddress(blueprint::host_mac(place)))
    };
    let mut count = 0;
    for part in priming_frames(configuration) {
        let bytes = |&PrimingFrame { from, vlan, to }: &PrimingFrame| {
            let bytes = priming_frame_bytes(mac(from), to.map(mac), vlan);
            (from.place(), bytes.to_vec())
        };
        let frames: Vec<_> = part.iter().map(bytes).collect();
        if !frames.is_empty() {
            count += frames.len();
            ask(directory, roles, &Task::SendRaw(frames))?;
        }
    }
    Ok(count)
}

/// The configuration as Linux bridges can have it, switch by switch from the text that would be typed
/// into them: it is written in their dialect and read back.
///
/// A bridge always takes frames with a tag of a VLAN that the port is in; settings that refuse them
/// are taken to allow them.
///
/// # Errors
/// [`AsBridgesError`] if the dialect cannot say the settings.
pub fn as_bridges(
    wiring: &Wiring,
    configuration: &Configuration,
) -> Result<Configuration, AsBridgesError> {
    let mut meant = configuration.clone();
    for port in meant.switches.iter_mut().flat_map(|switch| &mut switch.ports) {
        port.accept_tagged = true;
    }
    let mut read = meant.clone();
    for place in 0..wiring.switches.len() {
        let switch = SwitchId::new(place);
        let text = render(Dialect::linux_bridge(), wiring, &meant, switch)?;
        read.switches[place] = parse(Dialect::linux_bridge(), wiring, switch, &text)?;
    }
    Ok(read)
}

/// Settings that Linux bridges cannot have.
#[derive(Debug, thiserror::Error)]
pub enum AsBridgesError {
    /// They cannot be written.
    #[error("a Linux bridge does not support these settings")]
    Render(#[from] RenderError),
    /// What was written is not understood.
    #[error("the text for a Linux bridge is not understood")]
    Parse(#[from] ParseError),
}

/// A pair of hosts as `h1 to h2`.
pub(crate) fn name_pair(wiring: &Wiring, (from, to): (usize, usize)) -> String {
    format!("{} to {}", wiring.hosts[from].name, wiring.hosts[to].name)
}

/// All pairs, or as many as are asked for, spread evenly.
fn followed(hosts: usize, most: usize) -> Vec<(usize, usize)> {
    let all = |from| (0..hosts).filter(move |&to| to != from).map(move |to| (from, to));
    let pairs: Vec<_> = (0..hosts).flat_map(all).collect();
    let step = pairs.len().div_ceil(most.max(1)).max(1);
    pairs.into_iter().step_by(step).collect()
}

fn copies_of(trace: &Trace) -> u64 {
    trace.copies.values().map(|&copies| copies as u64).sum()
}

/// Copies that went to others than the one whose they were.
fn flooded(traces: &[Trace], pairs: &[(usize, usize)]) -> u64 {
    let beside = |(trace, (_, to)): (&Trace, &(usize, usize))| {
        let own = trace.copies.get(to).copied().unwrap_or(0).min(1);
        copies_of(trace) - own as u64
    };
    traces.iter().zip(pairs).map(beside).sum()
}

/// What a port leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Beyond {
    Trunk(TrunkId),
    Host(HostId),
}

/// Where the ports of the switches lead.
struct Ways<'a> {
    wiring: &'a Wiring,
    beyond: BTreeMap<(usize, String), Beyond>,
}

impl<'a> Ways<'a> {
    fn new(wiring: &'a Wiring) -> Self {
        let mut beyond = BTreeMap::new();
        let mut put = |switch: SwitchId, ports: &[PortNumber], what| {
            beyond.extend(ports.iter().map(|&port| ((switch.place(), port_interface(port)), what)));
        };
        for (place, host) in wiring.hosts.iter().enumerate() {
            put(host.switch, &host.ports, Beyond::Host(HostId::new(place)));
        }
        for (place, trunk) in wiring.trunks.iter().enumerate() {
            for end in &trunk.ends {
                put(end.switch, &end.ports, Beyond::Trunk(TrunkId::new(place)));
            }
        }
        Self { wiring, beyond }
    }

    /// The pairs whose frames did not arrive once, by the way that the settings say.
    fn elsewhere(
        &self,
        configuration: &Configuration,
        pairs: &[(usize, usize)],
        traces: &[Trace],
    ) -> Vec<(usize, usize)> {
        let is_elsewhere = |&(pair, trace): &(&(usize, usize), &Trace)| {
            let arrived = trace.copies.get(&pair.1) == Some(&1);
            !arrived || self.taken(trace) != self.due(configuration, *pair)
        };
        pairs.iter().zip(traces).filter(is_elsewhere).map(|(pair, _)| *pair).collect()
    }

    /// What ports sent beyond the frames of these of the pairs: for which pair, in which direction, how
    /// many.
    fn beside(
        &self,
        configuration: &Configuration,
        which: &[(usize, usize)],
        pairs: &[(usize, usize)],
        traces: &[Trace],
    ) -> Vec<((usize, usize), String, u64)> {
        let mut beside = Vec::new();
        for (&pair, trace) in pairs.iter().zip(traces).filter(|(pair, _)| which.contains(pair)) {
            let due = self.due(configuration, pair);
            for (switch, to, frames) in self.taken(trace) {
                let more = frames - u64::from(due.contains(&(switch, to, 1)));
                if more > 0 {
                    beside.push((pair, self.name(switch, to), more));
                }
            }
        }
        beside
    }

    /// A direction, as `sw1 to sw2`.
    fn name(&self, switch: usize, to: Beyond) -> String {
        let far = match to {
            Beyond::Host(host) => &self.wiring.hosts[host.place()].name,
            Beyond::Trunk(trunk) => {
                let [one, other] = &self.wiring.trunks[trunk.place()].ends;
                let far = if one.switch.place() == switch { other } else { one };
                &self.wiring.switches[far.switch.place()].name
            }
        };
        format!("{} to {far}", self.wiring.switches[switch].name)
    }

    /// Which ports sent a frame, by what they lead to; with how many frames each.
    fn taken(&self, trace: &Trace) -> BTreeSet<(usize, Beyond, u64)> {
        let ports = trace.sent_by.iter();
        ports
            .filter_map(|(switch, device, frames)| {
                Some((*switch, *self.beyond.get(&(*switch, device.clone()))?, *frames))
            })
            .collect()
    }

    /// Which ports the settings say that a frame leaves by, once each.
    fn due(
        &self,
        configuration: &Configuration,
        (from, to): (usize, usize),
    ) -> BTreeSet<(usize, Beyond, u64)> {
        let (from, to) = (HostId::new(from), HostId::new(to));
        let hops = path(self.wiring, configuration, from, to).unwrap_or_default();
        let last = self.wiring.hosts[to.place()].switch.place();
        hops.iter()
            .map(|hop| (hop.from.place(), Beyond::Trunk(hop.trunk), 1))
            .chain([(last, Beyond::Host(to), 1)])
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use meikyo_fabric::{Parts, PlanOptions, SwitchModel, Topology, cable, plan};

    use super::*;

    #[test]
    fn frames_beside_those_of_a_pair_are_counted_by_direction() {
        let topology: Topology = "ring 4".parse().unwrap();
        let graph = topology.graph();
        let model = SwitchModel::named("linux-bridge").unwrap();
        let wiring = cable(&graph, Parts::uniform(&graph, &model, 1)).unwrap();
        let planned = plan(&wiring, &PlanOptions::new(Some(topology))).unwrap();
        let configuration = planned.configuration(&wiring);
        let ways = Ways::new(&wiring);
        let switch = wiring.hosts[1].switch;
        let to_host = port_interface(wiring.hosts[1].ports[0]);
        let trunk = &wiring.trunks[0];
        let mut sent_by: Vec<_> = Vec::new();
        for hop in path(&wiring, &configuration, HostId::new(0), HostId::new(1)).unwrap() {
            let ends = &wiring.trunks[hop.trunk.place()].ends;
            let end = ends.iter().find(|end| end.switch == hop.from).unwrap();
            sent_by.push((hop.from.place(), port_interface(end.ports[0]), 1));
        }
        sent_by.push((switch.place(), to_host, 1));
        let pairs = [(0, 1)];
        let trace = |sent_by: &[_]| Trace { copies: [(1, 1)].into(), sent_by: sent_by.to_vec() };
        let good = [trace(&sent_by)];
        assert!(ways.elsewhere(&configuration, &pairs, &good).is_empty());
        assert!(ways.beside(&configuration, &pairs, &pairs, &good).is_empty());
        // Two more to the host, and one on the way back over a trunk.
        sent_by.last_mut().unwrap().2 = 3;
        let (near, far) = (&trunk.ends[0], &trunk.ends[1]);
        sent_by.retain(|(place, port, _)| {
            (*place, port) != (far.switch.place(), &port_interface(far.ports[0]))
        });
        sent_by.push((far.switch.place(), port_interface(far.ports[0]), 1));
        let more = [trace(&sent_by)];
        assert_eq!(ways.elsewhere(&configuration, &pairs, &more), pairs);
        let mut beside = ways.beside(&configuration, &pairs, &pairs, &more);
        beside.sort();
        let name = |switch: SwitchId| wiring.switches[switch.place()].name.as_str();
        let to_host = format!("{} to {}", name(switch), wiring.hosts[1].name);
        let back = format!("{} to {}", name(far.switch), name(near.switch));
        let mut due = vec![((0, 1), to_host, 2), ((0, 1), back, 1)];
        due.sort();
        assert_eq!(beside, due);
    }
}
