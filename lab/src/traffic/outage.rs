//! A link fails, ports move to spare VLANs, pairs answer again: with the times of all that.
//!
//! One process does it all, so that no program's start is among the times.

use std::collections::BTreeSet;

use meikyo_units::{Nanos, WallTime};

use super::ping::Pinging;
use super::{Inside, Outage, PortMove, TaskError, tables};
use crate::blueprint::{BridgePort, Role};
use crate::network;

/// After how long a pair without an answer is asked again once ports have moved, in milliseconds at
/// most: what the times are exact to where something was lost. An answer that comes later counts.
const AGAIN_MS: u32 = 20;

/// What fails, and what is done about it.
pub(super) struct Plan<'a> {
    pub(super) cables: &'a [usize],
    pub(super) moves: &'a [PortMove],
    pub(super) parts: &'a [Vec<usize>],
}

/// Cuts, finds out who is lost, mends; then cuts again, and at once does what the plan says.
pub(super) fn run(
    inside: &Inside,
    plan: &Plan<'_>,
    patience_ms: u32,
    deadline_ms: u32,
) -> Result<Outage, TaskError> {
    let moved: Vec<(usize, BridgePort)> =
        plan.moves.iter().map(|own| moved(inside, own)).collect::<Result<_, _>>()?;
    let pinging = Pinging::open(inside)?;
    let pairs = pinging.pairs();
    // Hosts know each other's Ethernet addresses before the cut, as in a cluster that is at work.
    pinging.unanswered(inside, &pairs, patience_ms)?;
    set_cables(inside, plan, false)?;
    let lost_at_cut = pinging.unanswered(inside, &pairs, patience_ms)?.into_iter().collect();
    set_cables(inside, plan, true)?;

    let cut = WallTime::now();
    let since = |cut: WallTime| WallTime::now().since(cut).as_micros();
    set_cables(inside, plan, false)?;
    let noticed_us = since(cut);
    for (space, port) in &moved {
        set_vlans(inside, *space, port)?;
    }
    let applied_us = since(cut);
    let deadline = cut + Nanos::from_millis(deadline_ms.into());
    let mut lost: BTreeSet<(usize, usize)> =
        pairs.into_iter().filter(|pair| stay_together(plan.parts, *pair)).collect();
    loop {
        lost = pinging.unanswered(inside, &lost, patience_ms.min(AGAIN_MS))?;
        if lost.is_empty() || WallTime::now() > deadline {
            break;
        }
    }
    let answered_us = lost.is_empty().then(|| since(cut));

    set_cables(inside, plan, true)?;
    for own in plan.moves {
        let (space, before) = port(inside, own)?;
        set_vlans(inside, space, before)?;
    }
    let lost = lost.into_iter().collect();
    Ok(Outage { lost_at_cut, noticed_us, applied_us, answered_us, lost })
}

/// Whether two hosts are still connected when the hosts are in these parts.
fn stay_together(parts: &[Vec<usize>], (from, to): (usize, usize)) -> bool {
    parts.is_empty() || parts.iter().any(|part| part.contains(&from) && part.contains(&to))
}

fn set_cables(inside: &Inside, plan: &Plan<'_>, up: bool) -> Result<(), TaskError> {
    plan.cables.iter().try_for_each(|&cable| tables::set_cable(inside, cable, up))
}

/// The port of a move with its space, as the blueprint has it.
fn port<'a>(inside: &'a Inside, own: &PortMove) -> Result<(usize, &'a BridgePort), TaskError> {
    let unknown = TaskError::Unknown { kind: "switch with such a port", place: own.switch };
    let (place, space) = inside.blueprint.switches().nth(own.switch).ok_or(unknown)?;
    let ports = match &space.role {
        Role::Switch(bridge) => bridge.ports.as_slice(),
        _ => &[],
    };
    let port = ports.iter().find(|port| port.device == own.device);
    let unknown = TaskError::Unknown { kind: "switch with such a port", place: own.switch };
    Ok((place, port.ok_or(unknown)?))
}

/// The port with the VLAN of the move.
fn moved(inside: &Inside, own: &PortMove) -> Result<(usize, BridgePort), TaskError> {
    let (space, before) = port(inside, own)?;
    Ok((space, BridgePort { pvid: Some(own.vlan), ..before.clone() }))
}

fn set_vlans(inside: &Inside, space: usize, port: &BridgePort) -> Result<(), TaskError> {
    let messages = network::port_vlans(port).into_iter().collect();
    inside.netlink(space)?.apply(messages).map_err(inside.refused(space))
}
