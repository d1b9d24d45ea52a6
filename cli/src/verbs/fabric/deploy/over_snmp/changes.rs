//! What is set at a switch so that it comes to mean a state, in an order that is safe at every step.
//!
//! Ports are shut first and opened last. Between, ports join VLANs before they put frames into them, and
//! leave VLANs after: many switches refuse a PVID of a VLAN that the port is not in. In a step of a
//! deployment trunks either join or leave VLANs, or cannot make a loop whatever is set, so that the order
//! within the step makes none.

use std::collections::BTreeSet;

use meikyo_fabric::dialect::SwitchState;
use meikyo_fabric::{PortNumber, PortSettings, Vlan, VlanSet};
use meikyo_snmp::{Oid, Value};

use super::tables::{
    ADMIN_STATUS, AGEING, ALL_FRAMES, FRAME_TYPES, INGRESS_FILTERING, Members, NO, NO_PAUSE, PAUSE,
    PAUSE_BOTH_WAYS, STP_PORT, TAGGED_ONLY, Tables, YES, list,
};
use crate::verbs::fabric::bridge::{EGRESS_PORTS, PVID, UNTAGGED_PORTS};

/// One thing that is set, and read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// A VLAN is made, without ports.
    Create(Vlan),
    /// A VLAN is taken away.
    Destroy(Vlan),
    /// Which ports of the bridge are members of a VLAN.
    Members(Vlan, Members),
    /// The VLAN of frames without a tag, at a port of the bridge.
    Pvid(u32, Vlan),
    /// Which frames come in at a port of the bridge.
    Frames(u32, u64),
    /// Whether frames of VLANs that a port of the bridge is not in are dropped.
    Filtering(u32),
    /// Whether a spanning tree protocol runs at a port of the bridge.
    Stp(u32, u64),
    /// After how many seconds addresses are forgotten.
    Ageing(u64),
    /// Pause frames of an interface.
    Pause(u32, u64),
    /// Whether an interface is up.
    Admin(u32, u64),
}

/// Why a state cannot be set over SNMP.
pub(super) type Unsettable = String;

/// All that has to be set from what the tables hold to `after`.
pub(super) fn changes(tables: &Tables, after: &SwitchState) -> Result<Vec<Change>, Unsettable> {
    let targets = targets(tables, after)?;
    let mut then = tables.clone();
    let mut all = Vec::new();
    let mut push = |then: &mut Tables, change: Change| {
        then.apply(&change);
        all.push(change);
    };
    let up: BTreeSet<PortNumber> =
        after.settings.ports.iter().flat_map(|port| port.ports.clone()).collect();
    for change in shut(&then, &up) {
        push(&mut then, change);
    }
    let mut wanted: VlanSet =
        targets.iter().fold(VlanSet::EMPTY, |all, (_, port)| all.union(&port.members()));
    wanted.extend(targets.iter().filter_map(|(_, port)| port.pvid));
    for vlan in wanted.iter().filter(|vlan| !tables.vlans.contains_key(vlan)) {
        push(&mut then, Change::Create(vlan));
    }
    for leaving in [false, true] {
        for change in memberships(&then, &targets, leaving) {
            push(&mut then, change);
        }
        if !leaving {
            for change in entrances(&then, &targets, &wanted) {
                push(&mut then, change);
            }
        }
    }
    for change in unused(&then, &targets, &wanted) {
        push(&mut then, change);
    }
    for change in whole(&then, after)? {
        push(&mut then, change);
    }
    for change in opened(&then, after) {
        push(&mut then, change);
    }
    Ok(all)
}

/// What makes all ports drop frames of VLANs that they are not in.
pub(super) fn filtering(tables: &Tables) -> Vec<Change> {
    let off = tables.filtering.iter().filter(|(_, filters)| **filters != YES);
    off.map(|(port, _)| Change::Filtering(*port)).collect()
}

type Target<'a> = (u32, &'a PortSettings);

/// The ports of the bridge that the state says something of.
fn targets<'a>(tables: &Tables, after: &'a SwitchState) -> Result<Vec<Target<'a>>, Unsettable> {
    let of = |port: &'a PortSettings| {
        let first = port.ports.first().map_or(0, |first| first.0);
        let place = tables.bridge_port(&port.ports);
        let bridge = place.ok_or_else(|| {
            format!("port {first}: the switch has no such port of its bridge (dot1dBasePort)")
        })?;
        let together: Vec<PortNumber> = tables
            .places
            .iter()
            .filter(|(_, place)| place.bridge == bridge)
            .map(|(front, _)| *front)
            .collect();
        let mut planned = port.ports.clone();
        planned.sort();
        if together != planned {
            let ports: Vec<String> = planned.iter().map(ToString::to_string).collect();
            return Err(if planned.len() > 1 {
                format!(
                    "ports {} are no bundle yet; bundles are made by hand first, see `meikyo fabric \
                     worksheet`",
                    ports.join("+")
                )
            } else {
                format!(
                    "port {first} is in a bundle that is not planned; take it out by hand first"
                )
            });
        }
        let has_one_vlan = port.tagged.is_empty() && port.untagged.len() < 2;
        if !port.accept_tagged && !has_one_vlan {
            return Err(format!(
                "port {first} should drop frames with a tag, which cannot be said over SNMP"
            ));
        }
        Ok((bridge, port))
    };
    after.settings.ports.iter().map(of).collect()
}

fn shut(tables: &Tables, up: &BTreeSet<PortNumber>) -> Vec<Change> {
    let is_up = |interface: u32| tables.admin.get(&interface).is_some_and(|own| *own == YES);
    let others = tables.places.iter().filter(|(port, _)| !up.contains(port));
    others
        .filter(|(_, place)| is_up(place.interface))
        .map(|(_, place)| Change::Admin(place.interface, NO))
        .collect()
}

/// Lists of members: first with what joins, then without what leaves.
fn memberships(tables: &Tables, targets: &[Target<'_>], leaving: bool) -> Vec<Change> {
    let mut all = Vec::new();
    for (vlan, own) in &tables.vlans {
        let mut then = own.clone();
        for (bridge, port) in targets {
            let (untagged, tagged) = (port.untagged.contains(*vlan), port.tagged.contains(*vlan));
            if untagged || tagged {
                then.egress.insert(*bridge);
                if untagged {
                    then.untagged.insert(*bridge)
                } else {
                    then.untagged.remove(bridge)
                };
            } else if leaving {
                then.egress.remove(bridge);
                then.untagged.remove(bridge);
            }
        }
        if then != *own {
            all.push(Change::Members(*vlan, then));
        }
    }
    all
}

/// What becomes of frames that come in. A port that drops frames without a tag has the first of its
/// VLANs as PVID, since some switches keep a port in the VLAN of its PVID.
fn entrances(tables: &Tables, targets: &[Target<'_>], wanted: &VlanSet) -> Vec<Change> {
    let mut all = Vec::new();
    let set = |port: &u32| targets.iter().any(|(bridge, _)| bridge == port);
    // Ports that are shut may be in a VLAN that goes.
    for (port, pvid) in tables.pvids.iter().filter(|(port, _)| !set(port)) {
        if !wanted.contains(*pvid) && *pvid != Vlan::DEFAULT {
            all.push(Change::Pvid(*port, Vlan::DEFAULT));
        }
    }
    for (bridge, port) in targets {
        let now = tables.pvids.get(bridge).copied();
        let members = port.members();
        let kept = now.filter(|pvid| members.contains(*pvid));
        let pvid = port.pvid.or(kept).or_else(|| members.iter().next());
        if let Some(pvid) = pvid.filter(|pvid| Some(*pvid) != now) {
            all.push(Change::Pvid(*bridge, pvid));
        }
        let frames = if port.pvid.is_some() { ALL_FRAMES } else { TAGGED_ONLY };
        if tables.frames.get(bridge).is_some_and(|now| *now != frames) {
            all.push(Change::Frames(*bridge, frames));
        }
    }
    all
}

/// VLANs that no port is in any more, but for those that are there for something else.
fn unused(tables: &Tables, targets: &[Target<'_>], wanted: &VlanSet) -> Vec<Change> {
    let known = |bridge: &u32| {
        targets.iter().any(|(own, _)| own == bridge)
            || tables.places.values().any(|place| place.bridge == *bridge)
    };
    let goes = |(vlan, own): &(&Vlan, &Members)| {
        **vlan != Vlan::DEFAULT && !wanted.contains(**vlan) && own.egress.iter().all(known)
    };
    tables.vlans.iter().filter(goes).map(|(vlan, _)| Change::Destroy(*vlan)).collect()
}

/// The spanning tree protocol, the ageing time, pause frames.
fn whole(tables: &Tables, after: &SwitchState) -> Result<Vec<Change>, Unsettable> {
    let mut all = Vec::new();
    let stp = if after.settings.spanning_tree { YES } else { NO };
    if tables.stp.values().any(|status| *status == YES) != after.settings.spanning_tree {
        all.extend(tables.stp.keys().map(|port| Change::Stp(*port, stp)));
    }
    match (after.settings.ageing, tables.ageing) {
        (Some(span), Some(now)) if now != span.get() / 1_000_000_000 => {
            all.push(Change::Ageing(span.get() / 1_000_000_000));
        }
        (None, Some(_)) => {
            return Err("addresses should be kept for ever, which cannot be said over SNMP; give \
                        `ageing` in the cluster file"
                .to_owned());
        }
        _ => {}
    }
    for port in &after.settings.ports {
        for place in port.ports.iter().filter_map(|port| tables.places.get(port)) {
            let now = tables.pause.get(&place.interface).map(|mode| *mode == PAUSE_BOTH_WAYS);
            if now.is_some_and(|now| now != port.flow_control) {
                let mode = if port.flow_control { PAUSE_BOTH_WAYS } else { NO_PAUSE };
                all.push(Change::Pause(place.interface, mode));
            }
        }
    }
    Ok(all)
}

fn opened(tables: &Tables, after: &SwitchState) -> Vec<Change> {
    let ports = after.settings.ports.iter().flat_map(|port| &port.ports);
    ports
        .filter_map(|port| tables.places.get(port))
        .filter(|place| tables.admin.get(&place.interface).is_some_and(|status| *status != YES))
        .map(|place| Change::Admin(place.interface, YES))
        .collect()
}

impl Tables {
    /// The tables after a change.
    pub(super) fn apply(&mut self, change: &Change) {
        match change {
            Change::Create(vlan) => drop(self.vlans.insert(*vlan, Members::default())),
            Change::Destroy(vlan) => drop(self.vlans.remove(vlan)),
            Change::Members(vlan, members) => drop(self.vlans.insert(*vlan, members.clone())),
            Change::Pvid(port, vlan) => drop(self.pvids.insert(*port, *vlan)),
            Change::Frames(port, frames) => drop(self.frames.insert(*port, *frames)),
            Change::Filtering(port) => drop(self.filtering.insert(*port, YES)),
            Change::Stp(port, status) => drop(self.stp.insert(*port, *status)),
            Change::Ageing(seconds) => self.ageing = Some(*seconds),
            Change::Pause(interface, mode) => drop(self.pause.insert(*interface, *mode)),
            Change::Admin(interface, status) => drop(self.admin.insert(*interface, *status)),
        }
    }

    /// What is sent for a change, but for rows of VLANs; in a single request, so that both lists of a VLAN
    /// change at once.
    pub(super) fn objects(&self, change: &Change) -> Vec<(Oid, Value)> {
        let at = |object: &[u32], index: u32| Oid::from_slice(object).child(&[index]);
        // Saturates: what is set here are ports, VLANs and seconds, which are far smaller.
        let integer = |number: u64| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
        let lists = |members: &Members| {
            [&members.egress, &members.untagged]
                .map(|ports| Value::OctetString(list(ports, self.octets)))
        };
        match change {
            Change::Create(_) | Change::Destroy(_) => Vec::new(),
            Change::Members(vlan, members) => {
                let [egress, untagged] = lists(members);
                let id = u32::from(vlan.id());
                vec![(at(EGRESS_PORTS, id), egress), (at(UNTAGGED_PORTS, id), untagged)]
            }
            Change::Pvid(port, vlan) => vec![(at(PVID, *port), Value::Gauge32(vlan.id().into()))],
            Change::Frames(port, frames) => vec![(at(FRAME_TYPES, *port), integer(*frames))],
            Change::Filtering(port) => vec![(at(INGRESS_FILTERING, *port), integer(YES))],
            Change::Stp(port, status) => vec![(at(STP_PORT, *port), integer(*status))],
            Change::Ageing(seconds) => vec![(at(AGEING, 0), integer(*seconds))],
            Change::Pause(interface, mode) => vec![(at(PAUSE, *interface), integer(*mode))],
            Change::Admin(interface, status) => {
                vec![(at(ADMIN_STATUS, *interface), integer(*status))]
            }
        }
    }

    /// A change for people, ports as on the front of the switch.
    pub(super) fn in_words(&self, change: &Change) -> String {
        let fronts = |of: &dyn Fn(&super::tables::Place) -> bool| -> String {
            let ports = self.places.iter().filter(|(_, place)| of(place));
            let ports: Vec<String> = ports.map(|(front, _)| front.to_string()).collect();
            ports.join("+")
        };
        let bridge = |port: u32| match fronts(&|place| place.bridge == port) {
            ports if ports.is_empty() => format!("port {port} of the bridge"),
            ports => format!("port {ports}"),
        };
        let interface = |own: u32| format!("port {}", fronts(&|place| place.interface == own));
        let on = |status: u64| if status == YES { "on" } else { "off" };
        let members = |ports: &mut dyn Iterator<Item = &u32>| {
            let ports: Vec<String> =
                ports.map(|port| bridge(*port).trim_start_matches("port ").to_owned()).collect();
            if ports.is_empty() { "none".to_owned() } else { ports.join(", ") }
        };
        match change {
            Change::Create(vlan) => format!("VLAN {vlan} is made"),
            Change::Destroy(vlan) => format!("VLAN {vlan} is taken away"),
            Change::Members(vlan, own) => format!(
                "VLAN {vlan}: untagged at {}; tagged at {}",
                members(&mut own.egress.intersection(&own.untagged)),
                members(&mut own.egress.difference(&own.untagged))
            ),
            Change::Pvid(port, vlan) => format!("{}: PVID {vlan}", bridge(*port)),
            Change::Frames(port, TAGGED_ONLY) => {
                format!("{}: frames without a tag are dropped", bridge(*port))
            }
            Change::Frames(port, _) => format!("{}: all frames come in", bridge(*port)),
            Change::Filtering(port) => {
                format!("{}: frames of other VLANs than its own are dropped", bridge(*port))
            }
            Change::Stp(port, status) => {
                format!("{}: spanning tree protocol {}", bridge(*port), on(*status))
            }
            Change::Ageing(seconds) => format!("addresses are forgotten after {seconds} s"),
            Change::Pause(own, mode) => {
                let pauses = if *mode == PAUSE_BOTH_WAYS { "on" } else { "off" };
                format!("{}: pause frames {pauses}", interface(*own))
            }
            Change::Admin(own, status) => {
                format!("{}: {}", interface(*own), if *status == YES { "opened" } else { "shut" })
            }
        }
    }
}
