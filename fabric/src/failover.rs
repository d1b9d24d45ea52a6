//! What to do when a trunk fails: the VLANs that host ports move to, worked out beforehand.
//!
//! A trunk that fails cuts every VLAN that runs over it. The frames of a host are saved by another
//! PVID at its port, one of a VLAN that avoids the trunk: nothing else on the switches changes, since
//! host ports are members of every VLAN already. Only VLANs are used in which tables know where hosts
//! are, so that the moved frames do not flood. Trunks that never failed keep their VLANs.
//!
//! Everything here is read from a [`Configuration`], as the switches have it; no VLAN is made.

mod trees;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use self::trees::Trees;
use self::waiting::Waiting;
use crate::{
    Configuration, HostId, HostSettings, PortNumber, Priming, SwitchId, TrunkId, Vlan, Wiring,
};

/// What to do when a trunk fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failover {
    /// The trunk that fails.
    pub trunk: TrunkId,
    /// Host ports that get another PVID, in the order of the hosts.
    pub moves: Vec<Move>,
    /// The hosts in parts that no trunk connects any more, the greatest first; empty if all stay
    /// connected. Hosts of different parts are separated in any case.
    pub parts: Vec<Vec<HostId>>,
    /// Switches that the manager cannot reach in the management VLAN while the trunk is down.
    pub unmanaged: Vec<SwitchId>,
}

/// A host port that gets another PVID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// The host whose port is moved to another VLAN.
    pub host: HostId,
    /// The VLAN of its frames before.
    pub from: Vlan,
    /// The VLAN of its frames while the trunk is down.
    pub to: Vlan,
}

/// Why there is no plan for the failure of a trunk.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FailoverError {
    /// No VLAN does without the trunk for a switch that could be served.
    #[error(
        "no VLAN reaches every host from `{switch}` without the trunk `{trunk}`, though other trunks \
         would; plan spare VLANs (`spare = true` in section `fabric`)"
    )]
    NoVlan {
        /// The switch whose hosts would not be served.
        switch: String,
        /// The trunk that fails, as the names of both ends: `sw1:sw2`.
        trunk: String,
    },
    /// Frames could wait for each other in a cycle, however hosts were moved, and no VLAN serves all.
    #[error(
        "no VLANs were found that do without the trunk `{trunk}` and cannot deadlock under pause frames"
    )]
    Deadlock {
        /// The trunk that fails, as the names of both ends: `sw1:sw2`.
        trunk: String,
    },
    /// Hosts choose the VLAN of each frame, so that a switch port has none to change.
    #[error("the hosts tag their frames themselves, so no PVID of a port moves them")]
    HostTagged,
}

/// Where the switches are managed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ManagedFrom {
    /// The VLAN in which the switches have their addresses.
    pub vlan: Vlan,
    /// The switch that the manager is plugged into.
    pub switch: SwitchId,
}

impl Failover {
    /// The configuration while the trunk is down.
    ///
    /// # Panics
    /// If the plan is for another wiring or configuration.
    #[must_use]
    pub fn applied(&self, wiring: &Wiring, configuration: &Configuration) -> Configuration {
        let mut after = configuration.clone();
        for Move { host, to, .. } in &self.moves {
            let own = &wiring.hosts[host.place()];
            let ports = &mut after.switches[own.switch.place()].ports;
            let port = ports.iter_mut().find(|port| port.ports == own.ports);
            port.expect("the host's port was read from this configuration").pvid = Some(*to);
        }
        after
    }
}

/// The hosts of a switch whose frames go in one VLAN.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Source {
    switch: usize,
    vlan: Vlan,
}

/// What to do when `trunk` fails.
///
/// The moved hosts are spread over the VLANs that will do, unless pause frames could then wait for
/// each other in a cycle; at the worst all hosts go into one VLAN, in which no cycle can be. Time is
/// linear in VLANs times switches for each set of choices tried.
///
/// # Errors
/// If no VLAN will do, or hosts tag frames themselves.
pub fn plan_failover(
    wiring: &Wiring,
    configuration: &Configuration,
    trunk: TrunkId,
    managed: Option<ManagedFrom>,
) -> Result<Failover, FailoverError> {
    if configuration.hosts.iter().any(|host| matches!(host, HostSettings::Tagged(_))) {
        return Err(FailoverError::HostTagged);
    }
    let trees = Trees::new(wiring, configuration);
    Case { wiring, configuration, trees: &trees, trunk }.plan(managed)
}

/// What to do for every trunk, in their order.
///
/// # Errors
/// As [`plan_failover`], for the first trunk that has no plan.
pub fn plan_failovers(
    wiring: &Wiring,
    configuration: &Configuration,
    managed: Option<ManagedFrom>,
) -> Result<Vec<Failover>, FailoverError> {
    if configuration.hosts.iter().any(|host| matches!(host, HostSettings::Tagged(_))) {
        return Err(FailoverError::HostTagged);
    }
    let trees = Trees::new(wiring, configuration);
    let trunks = (0..wiring.trunks.len()).map(TrunkId::new);
    trunks.map(|trunk| Case { wiring, configuration, trees: &trees, trunk }.plan(managed)).collect()
}

/// One trunk that fails.
struct Case<'a> {
    wiring: &'a Wiring,
    configuration: &'a Configuration,
    trees: &'a Trees,
    trunk: TrunkId,
}

impl Case<'_> {
    fn plan(&self, managed: Option<ManagedFrom>) -> Result<Failover, FailoverError> {
        let parts = trees::parts(self.wiring, Some(self.trunk));
        let unmanaged = managed.map_or_else(Vec::new, |from| self.unmanaged(from));
        let pvids = self.pvids();
        let mut sources: BTreeMap<Source, usize> = BTreeMap::new();
        for (host, vlan) in self.wiring.hosts.iter().zip(&pvids) {
            if let Some(vlan) = *vlan {
                *sources.entry(Source { switch: host.switch.place(), vlan }).or_default() += 1;
            }
        }
        let cut: Vec<&Source> = sources
            .keys()
            .filter(|source| !self.serves(source.switch, source.vlan, &parts))
            .collect();
        let choices = cut
            .iter()
            .map(|source| self.choices(source.switch, &parts))
            .collect::<Result<Vec<_>, _>>()?;
        let chosen = self.choose(&sources, &cut, &choices, &parts)?;
        let hosts = self.wiring.hosts.iter().zip(&pvids).enumerate();
        let moves = hosts.filter_map(|(place, (host, vlan))| {
            let from = (*vlan)?;
            let to = *chosen.get(&Source { switch: host.switch.place(), vlan: from })?;
            (to != from).then_some(Move { host: HostId::new(place), from, to })
        });
        Ok(Failover {
            trunk: self.trunk,
            moves: moves.collect(),
            parts: self.lost(&parts),
            unmanaged,
        })
    }

    /// For each source that moves the VLAN that it moves to.
    fn choose(
        &self,
        sources: &BTreeMap<Source, usize>,
        cut: &[&Source],
        choices: &[Vec<Vlan>],
        parts: &[usize],
    ) -> Result<BTreeMap<Source, Vlan>, FailoverError> {
        // Spread by the hosts that each VLAN has already.
        let mut senders: BTreeMap<Vlan, usize> = BTreeMap::new();
        for (source, hosts) in sources {
            if !cut.contains(&source) {
                *senders.entry(source.vlan).or_default() += hosts;
            }
        }
        let mut spread = BTreeMap::new();
        for (source, choices) in cut.iter().zip(choices) {
            let least = |vlan: &&Vlan| senders.get(vlan).copied().unwrap_or(0);
            let vlan = *choices.iter().min_by_key(least).expect("choices are not empty");
            *senders.entry(vlan).or_default() += sources[*source];
            spread.insert((*source).clone(), vlan);
        }
        if self.is_free(sources, &spread) {
            return Ok(spread);
        }
        if let Some(chosen) = self.one_by_one(sources, cut, choices) {
            return Ok(chosen);
        }
        self.all_in_one(sources, parts)
    }

    /// The first choice of each that makes no cycle with those before it.
    fn one_by_one(
        &self,
        sources: &BTreeMap<Source, usize>,
        cut: &[&Source],
        choices: &[Vec<Vlan>],
    ) -> Option<BTreeMap<Source, Vlan>> {
        let mut stay: BTreeMap<Source, usize> = sources.clone();
        stay.retain(|source, _| !cut.contains(&source));
        let mut chosen = BTreeMap::new();
        for (source, choices) in cut.iter().zip(choices) {
            stay.insert((*source).clone(), 1);
            let fits = |vlan: &&Vlan| {
                let mut tried: BTreeMap<Source, Vlan> = chosen.clone();
                tried.insert((*source).clone(), **vlan);
                self.is_free(&stay, &tried)
            };
            let vlan = *choices.iter().find(fits)?;
            chosen.insert((*source).clone(), vlan);
        }
        Some(chosen)
    }

    /// All hosts in one VLAN: a tree, in which nothing waits in a cycle.
    fn all_in_one(
        &self,
        sources: &BTreeMap<Source, usize>,
        parts: &[usize],
    ) -> Result<BTreeMap<Source, Vlan>, FailoverError> {
        let switches: BTreeSet<usize> = sources.keys().map(|source| source.switch).collect();
        let all = self.trees.vlans().find(|vlan| {
            let serves = |switch: &usize| {
                self.serves(*switch, *vlan, parts) && self.is_known(*switch, *vlan)
            };
            switches.iter().all(serves)
        });
        match all {
            Some(vlan) => Ok(sources.keys().map(|source| (source.clone(), vlan)).collect()),
            None => Err(FailoverError::Deadlock { trunk: self.wiring.trunk_name(self.trunk) }),
        }
    }

    /// Whether no cycle of waiting is possible when sources have moved so.
    fn is_free(&self, sources: &BTreeMap<Source, usize>, moved: &BTreeMap<Source, Vlan>) -> bool {
        let pauses = self.configuration.switches.iter().flat_map(|switch| &switch.ports);
        if !pauses.into_iter().any(|port| port.flow_control) {
            return true;
        }
        let mut senders: BTreeMap<Vlan, BTreeSet<usize>> = BTreeMap::new();
        for source in sources.keys() {
            let vlan = moved.get(source).copied().unwrap_or(source.vlan);
            senders.entry(vlan).or_default().insert(source.switch);
        }
        let mut waiting = Waiting::new(self.wiring);
        for (vlan, switches) in &senders {
            waiting.add(self.wiring, self.trees, *vlan, switches, self.trunk);
        }
        waiting.is_free()
    }

    /// The VLANs that the hosts of a switch can move to, in order.
    fn choices(&self, switch: usize, parts: &[usize]) -> Result<Vec<Vlan>, FailoverError> {
        let serves =
            |vlan: &Vlan| self.serves(switch, *vlan, parts) && self.is_known(switch, *vlan);
        let choices: Vec<Vlan> = self.trees.vlans().filter(serves).collect();
        if choices.is_empty() {
            let switch = self.wiring.switches[switch].name.clone();
            return Err(FailoverError::NoVlan {
                switch,
                trunk: self.wiring.trunk_name(self.trunk),
            });
        }
        Ok(choices)
    }

    /// Whether a VLAN without the trunk leads from a switch to all hosts that are in its part.
    fn serves(&self, switch: usize, vlan: Vlan, parts: &[usize]) -> bool {
        let reached = self.trees.reached(vlan, switch, Some(self.trunk));
        let mut hosts = self.wiring.hosts.iter().map(|host| host.switch.place());
        hosts.all(|other| parts[other] != parts[switch] || reached[other]) && self.trees.hears(vlan)
    }

    /// Whether tables know all hosts on the paths from a switch in a VLAN.
    fn is_known(&self, switch: usize, vlan: Vlan) -> bool {
        match &self.configuration.priming {
            Priming::None => true,
            Priming::Broadcast(vlans) => vlans.contains(vlan),
            Priming::Directed(representatives) => representatives.iter().any(|own| {
                own.vlan == vlan && self.wiring.hosts[own.host.place()].switch.place() == switch
            }),
        }
    }

    fn pvids(&self) -> Vec<Option<Vlan>> {
        let port = |switch: SwitchId, ports: &[PortNumber]| {
            let settings = &self.configuration.switches[switch.place()].ports;
            settings.iter().find(|port| port.ports == ports).and_then(|port| port.pvid)
        };
        self.wiring.hosts.iter().map(|host| port(host.switch, &host.ports)).collect()
    }

    fn unmanaged(&self, from: ManagedFrom) -> Vec<SwitchId> {
        let reached = self.trees.reached(from.vlan, from.switch.place(), Some(self.trunk));
        let lost = reached.iter().enumerate().filter(|(_, reached)| !**reached);
        lost.map(|(switch, _)| SwitchId::new(switch)).collect()
    }

    /// The hosts of each part, if there are several parts with hosts.
    fn lost(&self, parts: &[usize]) -> Vec<Vec<HostId>> {
        let mut hosts: BTreeMap<usize, Vec<HostId>> = BTreeMap::new();
        for (place, host) in self.wiring.hosts.iter().enumerate() {
            hosts.entry(parts[host.switch.place()]).or_default().push(HostId::new(place));
        }
        let mut hosts: Vec<Vec<HostId>> = hosts.into_values().collect();
        hosts.sort_by_key(|part| std::cmp::Reverse(part.len()));
        if hosts.len() > 1 { hosts } else { Vec::new() }
    }
}
