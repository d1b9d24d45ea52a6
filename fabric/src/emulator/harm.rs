//! What harm is: found by sending every frame there is.
//!
//! This is the one definition that the checker is held against:
//! 1. a frame that any switch sends in any VLAN that it has goes round in a *loop*;
//! 2. a host's broadcast does not come to another host exactly once, without a tag;
//! 3. after every host has sent a broadcast and the switches have been primed, a frame from a host to
//!    another one does not come there exactly once, without a tag; or a switch on its way did not know
//!    where to send it, and *floods* (each frame is the first one after priming: what an earlier one of
//!    them would have taught is not counted on);
//! 4. at any time, also while all those frames teach, a switch saw an address move from a port to another, or had no room for one;
//! 5. the passages that those frames took wait for each other in a circle, all of them with pause
//!    frames at both ends (IEEE 802.3x).
//!
//! What is wrong on principle (spanning tree, VLAN 1 on trunks, bundles whose ends differ, what a model
//! cannot do) is none of it: see [`Fault::is_rule`](crate::Fault::is_rule).

use std::collections::{BTreeMap, BTreeSet};

use super::{Crossing, Emulator, Journey};
use crate::{Configuration, HostId, SwitchId, Vlan, Wiring};

/// One way in which a configuration is harmful.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Harm {
    /// Frames go round these switches.
    Loop(Vec<(SwitchId, Vlan)>),
    /// Copies of a broadcast at a host: not one.
    Broadcast {
        /// The host that sent the broadcast.
        from: HostId,
        /// A host that should hear the broadcast once.
        to: HostId,
        /// Copies that came: none, or more than one.
        copies: usize,
    },
    /// Copies of a unicast frame at its receiver: not one.
    Unicast {
        /// The host that sent the frame.
        from: HostId,
        /// The host that should receive the frame once.
        to: HostId,
        /// Copies that came: none, or more than one.
        copies: usize,
    },
    /// A unicast frame went everywhere.
    Flood {
        /// The host that sent the frame.
        from: HostId,
        /// The host that the frame is for.
        to: HostId,
        /// The first switch that did not know where to.
        switch: SwitchId,
    },
    /// An address was seen at several ports.
    Moved {
        /// The switch that saw it.
        switch: SwitchId,
        /// The host whose address it is.
        host: HostId,
    },
    /// The table of a switch is full.
    TableFull(SwitchId),
    /// Passages between switches wait for each other.
    Waiting(Vec<SwitchId>),
}

/// All the harm that a configuration does; of loops the first alone, since nothing can be said beside
/// one.
///
/// # Panics
/// As [`Emulator::new`].
pub fn harm(wiring: &Wiring, configuration: &Configuration) -> Vec<Harm> {
    let mut emulator = Emulator::new(wiring, configuration);
    if let Some(circle) = first_loop(&mut emulator) {
        return vec![Harm::Loop(circle)];
    }
    let mut harm = Vec::new();
    let hosts: Vec<HostId> = emulator.hosts().collect();
    for &from in &hosts {
        let journey = emulator.broadcast(from);
        for &to in hosts.iter().filter(|&&to| to != from) {
            let copies = copies(&journey, to);
            if copies != 1 {
                harm.push(Harm::Broadcast { from, to, copies });
            }
        }
    }
    emulator.prime();
    emulator.learns = false;
    let mut waits = BTreeSet::new();
    for &from in &hosts {
        for &to in hosts.iter().filter(|&&to| to != from) {
            let journey = emulator.unicast(from, to);
            let copies = copies(&journey, to);
            if copies != 1 {
                harm.push(Harm::Unicast { from, to, copies });
            }
            if let Some(&switch) = journey.floods.first() {
                harm.push(Harm::Flood { from, to, switch });
            }
            let pairs = journey.crossings.into_iter();
            waits.extend(pairs.filter_map(|(next, last)| Some((last?, next))));
        }
    }
    emulator.learns = true;
    for &from in &hosts {
        for &to in hosts.iter().filter(|&&to| to != from) {
            emulator.unicast(from, to);
        }
    }
    harm.extend(emulator.moved.iter().map(|&(switch, host)| Harm::Moved { switch, host }));
    harm.extend(emulator.full.iter().map(|&switch| Harm::TableFull(switch)));
    harm.extend(circle_of_waiting(&emulator, &waits).map(Harm::Waiting));
    harm
}

fn first_loop(emulator: &mut Emulator<'_>) -> Option<Vec<(SwitchId, Vlan)>> {
    let configuration = emulator.configuration;
    (0..configuration.switches.len()).map(SwitchId::new).find_map(|switch| {
        let mut vlans = configuration.switches[switch.place()].vlans.clone();
        vlans.insert(Vlan::DEFAULT);
        vlans.iter().find_map(|vlan| emulator.send_from_switch(switch, vlan).looped)
    })
}

fn copies(journey: &Journey, to: HostId) -> usize {
    journey.received.iter().filter(|&&received| received == (to, None)).count()
}

/// A circle among passages that wait for each other: those that are not part of one are taken away
/// until nothing changes.
fn circle_of_waiting(
    emulator: &Emulator<'_>,
    waits: &BTreeSet<(Crossing, Crossing)>,
) -> Option<Vec<SwitchId>> {
    let pauses = |crossing: &Crossing| {
        [crossing.from, crossing.to].iter().all(|&at| emulator.settings(at).flow_control)
    };
    let mut left: BTreeMap<Crossing, BTreeSet<Crossing>> = BTreeMap::new();
    for (holds, wants) in waits.iter().filter(|(holds, wants)| pauses(holds) && pauses(wants)) {
        left.entry(*holds).or_default().insert(*wants);
    }
    loop {
        let held: BTreeSet<Crossing> = left.keys().copied().collect();
        left.values_mut().for_each(|wanted| wanted.retain(|next| held.contains(next)));
        left.retain(|_, wanted| !wanted.is_empty());
        if left.len() == held.len() {
            break;
        }
    }
    let mut at = *left.keys().next()?;
    let mut walked = Vec::new();
    while !walked.contains(&at) {
        walked.push(at);
        at = *left.get(&at)?.first()?;
    }
    let from = walked.iter().position(|&crossing| crossing == at)?;
    Some(walked[from..].iter().map(|crossing| crossing.from.switch).collect())
}
