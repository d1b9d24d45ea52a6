//! Whether a state of all switches is safe: nothing goes round, and the manager reaches everything.
//!
//! This knows nothing of how states are planned. It reads from the ports what frames can do: a vertex
//! is a VLAN on a switch, an edge a cable (or bundle) that takes frames from the one to the other,
//! with what untagged ends make of them.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use crate::dialect::SwitchState;
use crate::{HostId, PortNumber, PortSettings, Vlan, VlanSet, Wiring};

/// What is wrong with a state.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Danger {
    /// Frames of a VLAN go round, and no spanning tree protocol runs on all switches of the loop.
    #[error("VLAN {vlan} has a loop that is not guarded, over the cable {cable}")]
    Loop {
        /// The VLAN, at the near end of the cable.
        vlan: Vlan,
        /// The cable that closes it: both ends.
        cable: String,
    },
    /// The manager does not reach a switch.
    #[error("the manager does not reach `{switch}` in VLAN {vlan}")]
    Unreachable {
        /// The switch that is cut off.
        switch: String,
        /// The VLAN in which the switch is reached.
        vlan: Vlan,
    },
}

/// A cable that is up, or several that are one bundle at both ends.
struct Link<'a> {
    ends: [(usize, &'a PortSettings); 2],
    port: PortNumber,
    /// Both ends agree about what is bundled: else frames may go round, but need not arrive.
    agrees: bool,
}

/// Vertices that are joined, by switch and VLAN.
struct Joined(BTreeMap<(usize, Vlan), (usize, Vlan)>);

impl Joined {
    fn root(&mut self, vertex: (usize, Vlan)) -> (usize, Vlan) {
        let mut root = vertex;
        while let Some(&next) = self.0.get(&root) {
            root = next;
        }
        let mut at = vertex;
        while at != root {
            at = self.0.insert(at, root).unwrap_or(root);
        }
        root
    }

    /// Joins two; false if they were joined.
    fn join(&mut self, one: (usize, Vlan), other: (usize, Vlan)) -> bool {
        let (one, other) = (self.root(one), self.root(other));
        if one != other {
            self.0.insert(one, other);
        }
        one != other
    }
}

/// Checks a state of all switches, in the order of the wiring.
///
/// A loop is guarded if a spanning tree protocol runs on all of its switches: it blocks some trunk
/// then, in all VLANs, and which one is not known. So the manager may rely on trunks that are part of
/// a ring only where all trunks of the ring carry the VLAN.
///
/// # Errors
/// The first danger that is found.
pub fn check_state(
    wiring: &Wiring,
    states: &[SwitchState],
    manager: Option<HostId>,
) -> Result<(), Danger> {
    let links = links(wiring, states);
    let guarded = |link: &Link<'_>| {
        link.ends.iter().all(|(switch, _)| states[*switch].settings.spanning_tree)
    };
    let mut joined = Joined(BTreeMap::new());
    for link in links.iter().filter(|link| guarded(link)) {
        for (one, other) in edges(link) {
            joined.join(one, other);
        }
    }
    for link in links.iter().filter(|link| !guarded(link)) {
        for (one, other) in edges(link) {
            if !joined.join(one, other) {
                let name = |end: usize| &wiring.switches[link.ends[end].0].name;
                let cable = format!("`{}:{}` to `{}`", name(0), link.port, name(1));
                return Err(Danger::Loop { vlan: one.1, cable });
            }
        }
    }
    match manager {
        Some(manager) => reach(wiring, states, &links, manager),
        None => Ok(()),
    }
}

fn links<'a>(wiring: &Wiring, states: &'a [SwitchState]) -> Vec<Link<'a>> {
    let mut groups: BTreeMap<[(usize, PortNumber); 2], (Link<'a>, usize)> = BTreeMap::new();
    for trunk in &wiring.trunks {
        let [one, other] = &trunk.ends;
        for (near, far) in one.ports.iter().zip(&other.ports) {
            let places = [one.switch.place(), other.switch.place()];
            let (Some(near_port), Some(far_port)) =
                (states[places[0]].port(*near), states[places[1]].port(*far))
            else {
                continue;
            };
            // A bundle that the other end does not know is so many cables.
            let agrees = near_port.bundle == far_port.bundle;
            let bundled = agrees && near_port.bundle.is_some();
            let first = |port: &PortSettings, own: PortNumber| match bundled {
                true => port.ports.first().copied().unwrap_or(own),
                false => own,
            };
            let key = [(places[0], first(near_port, *near)), (places[1], first(far_port, *far))];
            let ends = [(places[0], near_port), (places[1], far_port)];
            let link = Link { ends, port: *near, agrees };
            groups.entry(key).or_insert((link, 0)).1 += 1;
        }
    }
    let links: Vec<(Link<'a>, usize)> = groups.into_values().collect();
    links.into_iter().map(|(link, _)| link).collect()
}

/// The VLANs of both ends that frames get across between, in one direction or both.
fn edges(link: &Link<'_>) -> BTreeSet<((usize, Vlan), (usize, Vlan))> {
    let [near, far] = &link.ends;
    let across = |(_, from): &(usize, &PortSettings), (_, to): &(usize, &PortSettings)| {
        let tagged = from.tagged.intersection(&to.members());
        let tagged: Vec<(Vlan, Vlan)> = match to.accept_tagged {
            true => tagged.iter().map(|vlan| (vlan, vlan)).collect(),
            false => Vec::new(),
        };
        let into = to.pvid.filter(|vlan| to.is_member(*vlan));
        let untagged: Vec<(Vlan, Vlan)> = match into {
            Some(into) => from.untagged.iter().map(|vlan| (vlan, into)).collect(),
            None => Vec::new(),
        };
        tagged.into_iter().chain(untagged)
    };
    let forth = across(near, far).map(|(from, to)| ((near.0, from), (far.0, to)));
    let back = across(far, near).map(|(from, to)| ((near.0, to), (far.0, from)));
    forth.chain(back).collect()
}

/// The VLANs that a host can talk in, by its port.
fn spoken(port: &PortSettings) -> VlanSet {
    let mut vlans = VlanSet::from_iter(port.pvid.filter(|vlan| port.untagged.contains(*vlan)));
    if port.accept_tagged {
        vlans = vlans.union(&port.tagged);
    }
    vlans
}

fn reach(
    wiring: &Wiring,
    states: &[SwitchState],
    links: &[Link<'_>],
    manager: HostId,
) -> Result<(), Danger> {
    let mut joined = Joined(BTreeMap::new());
    let rings = rings(states.len(), links);
    for (link, ring) in links.iter().zip(&rings).filter(|(link, _)| link.agrees) {
        for (one, other) in edges(link) {
            if is_certain(states, links, &rings, (link, *ring), (one.1, other.1)) {
                joined.join(one, other);
            }
        }
    }
    let host = &wiring.hosts[manager.place()];
    let place = host.switch.place();
    let own = states[place].port(host.ports[0]).map_or(VlanSet::EMPTY, spoken);
    for (switch, state) in states.iter().enumerate() {
        let Some(vlan) = state.management else { continue };
        let target = joined.root((switch, vlan));
        if !own.iter().any(|spoken| joined.root((place, spoken)) == target) {
            let switch = wiring.switches[switch].name.clone();
            return Err(Danger::Unreachable { switch, vlan });
        }
    }
    Ok(())
}

/// Whether a VLAN gets over a link, or round its ring, whatever a spanning tree protocol blocks.
fn is_certain(
    states: &[SwitchState],
    links: &[Link<'_>],
    rings: &[Option<usize>],
    (link, ring): (&Link<'_>, Option<usize>),
    (near, far): (Vlan, Vlan),
) -> bool {
    let runs = |link: &Link<'_>, all: bool| {
        let mut ends = link.ends.iter().map(|(switch, _)| states[*switch].settings.spanning_tree);
        if all { ends.all(|runs| runs) } else { ends.any(|runs| runs) }
    };
    let Some(ring) = ring else { return true };
    let in_ring = || links.iter().zip(rings).filter(|(_, own)| **own == Some(ring));
    if !in_ring().any(|(own, _)| runs(own, false)) {
        return true;
    }
    near == far
        && in_ring().all(|(own, _)| {
            let carries = || edges(own).iter().any(|(one, other)| one.1 == near && other.1 == near);
            runs(own, true) && own.agrees && carries()
        })
        && runs(link, true)
}

/// For each link the ring that it is in: links without which its ends stay connected, by a number
/// for each set of switches that rings connect; `None` for bridges. Time is linear.
fn rings(switches: usize, links: &[Link<'_>]) -> Vec<Option<usize>> {
    let is_bridge = bridges(switches, links);
    let mut part: Vec<usize> = (0..switches).collect();
    for (link, _) in links.iter().zip(&is_bridge).filter(|(_, bridge)| !**bridge) {
        let [(one, _), (other, _)] = link.ends;
        let (one, other) = (part_of(&part, one), part_of(&part, other));
        part[one] = other;
    }
    let number =
        |(link, bridge): (&Link<'_>, &bool)| (!bridge).then(|| part_of(&part, link.ends[0].0));
    links.iter().zip(&is_bridge).map(number).collect()
}

/// Which links are the only way between their ends: no switch below one, in a depth-first walk, has
/// a link to one above it.
fn bridges(switches: usize, links: &[Link<'_>]) -> Vec<bool> {
    let mut adjacent: Vec<Vec<(usize, usize)>> = vec![Vec::new(); switches];
    for (place, link) in links.iter().enumerate() {
        let [(one, _), (other, _)] = link.ends;
        adjacent[one].push((place, other));
        adjacent[other].push((place, one));
    }
    let mut order = vec![usize::MAX; switches];
    let mut low = order.clone();
    let mut is_bridge = vec![false; links.len()];
    let mut next = 0;
    for root in 0..switches {
        if order[root] != usize::MAX {
            continue;
        }
        (order[root], low[root]) = (next, next);
        next += 1;
        let mut path = vec![(root, usize::MAX, 0)];
        while let Some((switch, by, tried)) = path.last_mut() {
            let (switch, by) = (*switch, *by);
            let Some(&(link, other)) = adjacent[switch].get(*tried) else {
                path.pop();
                if let Some((above, ..)) = path.last() {
                    low[*above] = low[*above].min(low[switch]);
                    is_bridge[by] = low[switch] > order[*above];
                }
                continue;
            };
            *tried += 1;
            if order[other] == usize::MAX {
                (order[other], low[other]) = (next, next);
                next += 1;
                path.push((other, link, 0));
            } else if link != by {
                low[switch] = low[switch].min(order[other]);
            }
        }
    }
    is_bridge
}

fn part_of(part: &[usize], mut switch: usize) -> usize {
    while part[switch] != switch {
        switch = part[switch];
    }
    switch
}
