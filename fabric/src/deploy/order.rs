//! The steps, planned; whether they are safe is checked elsewhere.

use std::collections::BTreeSet;

use super::{DeployError, Step, Why};
use crate::dialect::SwitchState;
use crate::{HostId, PortNumber, PortSettings, SwitchId, VlanSet, Wiring};

/// States on the way, by switch, and why.
struct Stage {
    why: Why,
    states: Vec<SwitchState>,
}

/// What a switch is set to on the way, from what it has and what is planned.
type Part<'w> = fn(&Kept<'w>, &SwitchState, &SwitchState, SwitchId) -> SwitchState;

/// From switches whose loops a spanning tree protocol guards.
pub(super) fn from_protocol<'w>(
    wiring: &'w Wiring,
    now: &[SwitchState],
    planned: &[SwitchState],
    manager: Option<HostId>,
) -> Result<Vec<Step>, DeployError> {
    let guarded = now.iter().filter(|state| state.settings.spanning_tree);
    let old = guarded.filter_map(|state| state.management).next();
    let new = planned.iter().find_map(|state| state.management);
    if let (Some(old), Some(_)) = (old, new.filter(|new| old == Some(*new))) {
        return Err(DeployError::SameManagement { vlan: old });
    }
    let kept = Kept::new(wiring, now, planned, manager);
    let build = |part: Part<'w>, why| {
        let pairs = now.iter().zip(planned).enumerate();
        let state = |(place, (now, planned))| part(&kept, now, planned, SwitchId::new(place));
        Stage { why, states: pairs.map(state).collect() }
    };
    let stages = [
        build(Kept::shut, Why::Shut),
        build(Kept::set, Why::Set),
        build(Kept::bundled, Why::Bundle),
        build(Kept::managed, Why::Manage),
        build(Kept::left, Why::Leave),
        Stage { why: Why::Open, states: planned.to_vec() },
    ];
    Ok(steps(now, stages))
}

/// From switches whose loops VLANs break already.
pub(super) fn from_fabric(
    wiring: &Wiring,
    now: &[SwitchState],
    planned: &[SwitchState],
) -> Vec<Step> {
    let narrowed = now.iter().zip(planned).enumerate().map(|(place, (now, planned))| {
        let switch = SwitchId::new(place);
        let mut state = now.clone();
        state.settings.ports.retain_mut(|port| {
            if !is_trunk(wiring, switch, &port.ports) {
                return true;
            }
            let wanted = planned.settings.ports.iter().find(|own| own.ports == port.ports);
            let Some(wanted) = wanted.filter(|own| own.bundle == port.bundle) else { return false };
            port.tagged = port.tagged.intersection(&wanted.tagged);
            port.untagged = port.untagged.intersection(&wanted.untagged);
            port.pvid = port.pvid.filter(|vlan| Some(*vlan) == wanted.pvid);
            true
        });
        state
    });
    let stages = [
        Stage { why: Why::Narrow, states: narrowed.collect() },
        Stage { why: Why::Widen, states: planned.to_vec() },
    ];
    steps(now, stages)
}

/// One step for each switch that a stage changes.
fn steps<const N: usize>(now: &[SwitchState], stages: [Stage; N]) -> Vec<Step> {
    let mut states = now.to_vec();
    let mut steps = Vec::new();
    for Stage { why, states: then } in stages {
        for (place, (state, mut after)) in states.iter_mut().zip(then).enumerate() {
            // Bundles keep the numbers that they have.
            after.bundles.extend(state.bundles.iter().map(|(port, number)| (*port, *number)));
            if !state.means_the_same(&after) {
                let before = std::mem::replace(state, after.clone());
                steps.push(Step { switch: SwitchId::new(place), why, before, after });
            }
        }
    }
    steps
}

fn is_trunk(wiring: &Wiring, switch: SwitchId, ports: &[PortNumber]) -> bool {
    let mut ends = wiring.trunks.iter().filter_map(|trunk| trunk.seen_from(switch));
    ends.any(|(near, _)| near.ports.iter().any(|port| ports.contains(port)))
}

/// What the manager needs until the end: one cable of each trunk of the planned management VLAN, in
/// the VLAN that it uses now.
struct Kept<'a> {
    wiring: &'a Wiring,
    /// For each switch the ports of those cables.
    cables: Vec<BTreeSet<PortNumber>>,
    /// For each switch all ports of the trunks of those cables.
    whole: Vec<BTreeSet<PortNumber>>,
    /// For each switch all ports of trunks.
    trunks: Vec<BTreeSet<PortNumber>>,
    /// The VLANs in which switches are reached now.
    used: VlanSet,
    manager: Option<HostId>,
}

impl<'a> Kept<'a> {
    fn new(
        wiring: &'a Wiring,
        now: &[SwitchState],
        planned: &[SwitchState],
        manager: Option<HostId>,
    ) -> Self {
        let management = planned.iter().find_map(|state| state.management);
        let used = now.iter().filter_map(|state| state.management).collect();
        let mut cables = vec![BTreeSet::new(); wiring.switches.len()];
        let (mut trunks, mut whole) = (cables.clone(), cables.clone());
        for trunk in &wiring.trunks {
            let carries = trunk.ends.iter().all(|end| {
                let ports = &planned[end.switch.place()].settings.ports;
                ports.iter().any(|port| {
                    end.ports.iter().all(|own| port.ports.contains(own))
                        && management.is_some_and(|vlan| port.tagged.contains(vlan))
                })
            });
            for end in &trunk.ends {
                trunks[end.switch.place()].extend(&end.ports);
                if carries {
                    cables[end.switch.place()].extend(end.ports.first());
                    whole[end.switch.place()].extend(&end.ports);
                }
            }
        }
        Self { wiring, cables, whole, trunks, used, manager }
    }

    fn is_other_trunk(&self, switch: SwitchId, port: PortNumber) -> bool {
        self.trunks[switch.place()].contains(&port) && !self.cables[switch.place()].contains(&port)
    }

    /// As it is, without the trunks and cables that could become a loop.
    fn shut(&self, now: &SwitchState, _: &SwitchState, switch: SwitchId) -> SwitchState {
        let mut state = now.clone();
        let whole = &self.whole[switch.place()];
        for port in &mut state.settings.ports {
            // A bundle of a kept trunk is one already, at a switch that is further on.
            if port.bundle.is_none() || !port.ports.iter().any(|own| whole.contains(own)) {
                port.ports.retain(|port| !self.is_other_trunk(switch, *port));
            }
        }
        state.settings.ports.retain(|port| !port.ports.is_empty());
        state
    }

    /// As planned, without the other trunks and bundles, and with the old VLAN where the manager
    /// needs it.
    fn set(&self, now: &SwitchState, planned: &SwitchState, switch: SwitchId) -> SwitchState {
        let cables = &self.cables[switch.place()];
        let mut state = planned.clone();
        state.management = now.management;
        state.settings.ports.retain(|port| {
            port.ports.len() == 1 && !self.is_other_trunk(switch, port.ports[0])
                || !port.ports.iter().any(|own| self.trunks[switch.place()].contains(own))
        });
        for number in cables {
            let old = now.port(*number).cloned();
            let own = state.settings.ports.iter_mut().find(|port| port.ports == [*number]);
            match (own, old) {
                (Some(port), Some(old)) => keep(port, &old, &self.used),
                (None, Some(mut old)) => {
                    // A cable of a bundle to be: the old VLAN only.
                    old.flow_control =
                        planned.settings.ports.first().is_some_and(|port| port.flow_control);
                    state.settings.ports.push(old);
                }
                (_, None) => {}
            }
        }
        // Bundles that are up beside their cable already stay up.
        for (rest, port) in self.rests(planned, switch) {
            let mut own = now.settings.ports.iter();
            let up = own.find(|own| own.ports == rest && own.bundle == port.bundle);
            state.settings.ports.extend(up.cloned());
        }
        if let Some(manager) = self.manager.map(|host| &self.wiring.hosts[host.place()])
            && manager.switch == switch
            && let Some(old) = now.port(manager.ports[0]).cloned()
            && let Some(port) =
                state.settings.ports.iter_mut().find(|port| port.ports == manager.ports)
        {
            keep(port, &old, &self.used);
        }
        state.settings.ports.sort_by(|one, other| one.ports.cmp(&other.ports));
        for port in &state.settings.ports {
            state.settings.vlans = state.settings.vlans.union(&port.members());
            state.settings.vlans.extend(port.pvid);
        }
        state.settings.vlans.extend(state.management);
        state
    }

    /// The same, with the bundles of kept trunks up to the cable that is left.
    fn bundled(&self, now: &SwitchState, planned: &SwitchState, switch: SwitchId) -> SwitchState {
        let mut state = self.set(now, planned, switch);
        for (rest, port) in self.rests(planned, switch) {
            if !state.settings.ports.iter().any(|own| own.ports.contains(&rest[0])) {
                state.settings.ports.push(PortSettings { ports: rest, ..port.clone() });
            }
        }
        state.settings.ports.sort_by(|one, other| one.ports.cmp(&other.ports));
        state
    }

    /// The bundles of kept trunks, without the cable that is left.
    fn rests<'p>(
        &self,
        planned: &'p SwitchState,
        switch: SwitchId,
    ) -> Vec<(Vec<PortNumber>, &'p PortSettings)> {
        let cables = &self.cables[switch.place()];
        let rest = |port: &'p PortSettings| {
            let (kept, rest): (Vec<PortNumber>, Vec<PortNumber>) =
                port.ports.iter().partition(|own| cables.contains(own));
            (!kept.is_empty() && !rest.is_empty()).then_some((rest, port))
        };
        planned.settings.ports.iter().filter_map(rest).collect()
    }

    fn managed(&self, now: &SwitchState, planned: &SwitchState, switch: SwitchId) -> SwitchState {
        SwitchState {
            management: planned.management.or(now.management),
            ..self.bundled(now, planned, switch)
        }
    }

    /// As planned, without the other trunks, and without the cable that was left beside a bundle.
    fn left(&self, now: &SwitchState, planned: &SwitchState, switch: SwitchId) -> SwitchState {
        let cables = &self.cables[switch.place()];
        let mut state = self.managed(now, planned, switch);
        state.settings.vlans = planned.settings.vlans.clone();
        state.settings.ports.retain(|port| {
            planned.settings.ports.iter().any(|own| own.ports == port.ports)
                || port.ports.iter().all(|own| !cables.contains(own))
        });
        for port in &mut state.settings.ports {
            if let Some(own) = planned.settings.ports.iter().find(|own| own.ports == port.ports) {
                *port = own.clone();
            }
        }
        state
    }
}

/// Adds the VLANs that the manager uses to a port as they were there: frames without a tag stay in
/// theirs, too.
fn keep(port: &mut PortSettings, old: &PortSettings, used: &VlanSet) {
    if used.is_empty() {
        return;
    }
    port.untagged = port.untagged.union(&old.untagged.intersection(used));
    port.tagged = port.tagged.union(&old.tagged.intersection(used).difference(&port.untagged));
    port.pvid = old.pvid.filter(|vlan| used.contains(*vlan)).or(port.pvid);
    // General mode, where a port has an old VLAN and new ones.
    port.accept_tagged = true;
}
