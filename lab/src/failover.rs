//! A trunk of a running lab fails, and the failure plan is applied: who is back, and after how long.

use meikyo_fabric::dialect::port_interface;
use meikyo_fabric::{Configuration, Failover, FailoverError, TrunkId, Wiring, plan_failover};
use serde::Serialize;

use crate::blueprint::{Blueprint, Purpose};
use crate::client::{AskError, ask};
use crate::directory::{Directory, DirectoryError};
use crate::roles::Roles;
use crate::traffic::{Done, Outage, PortMove, Task};
use crate::verify::{lost_at_last, name_pair, prime};

/// How long pairs have to answer again once the plan is applied.
const DEADLINE_MS: u32 = 20_000;
/// How often all pairs are asked when everything is put back.
const TRIES_AT_END: usize = 20;

/// What was found when a trunk failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recovery {
    /// How many pairs of hosts, each direction for itself.
    pub pairs: usize,
    /// How many of them the plan promises: those that trunks still connect.
    pub pairs_promised: usize,
    /// How many host ports the plan moves.
    pub ports_moved: usize,
    /// Pairs that had no answer after the cut, before anything was done.
    pub pairs_lost_at_cut: usize,
    /// From the cut until both ends had noticed, in microseconds.
    pub noticed_us: u64,
    /// From the cut until all ports had moved, in microseconds.
    pub applied_us: u64,
    /// From the cut until the last promised pair answered, in microseconds; nothing if some did not.
    pub answered_us: Option<u64>,
    /// The promised pairs that did not answer.
    pub pairs_not_restored: Vec<String>,
    /// Pairs that had no answer when everything was put back.
    pub pairs_lost_after_mending: Vec<String>,
    /// Whether every promise was kept, and all is as before.
    pub good: bool,
}

/// A failure could not be tried.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    /// There is no plan for it.
    #[error("no plan exists for the failure of this trunk")]
    Plan(#[from] FailoverError),
    /// The lab's record cannot be read.
    #[error("the lab's blueprint cannot be read")]
    Directory(#[from] DirectoryError),
    /// Something could not be done inside.
    #[error("the failure cannot be tried")]
    Ask(#[from] AskError),
}

/// Cuts a trunk of a lab that runs this configuration, applies its failure plan, times how long it takes
/// until every pair that the plan promises answers, and puts everything back.
///
/// Spare VLANs must have been primed, as [`crate::verify()`] and [`prime`] do.
///
/// # Errors
/// [`RecoveryError`] if there is no plan, or something could not be done inside.
pub fn fail_over(
    directory: &Directory,
    roles: &Roles,
    wiring: &Wiring,
    configuration: &Configuration,
    trunk: TrunkId,
    patience_ms: u32,
) -> Result<Recovery, RecoveryError> {
    let plan = plan_failover(wiring, configuration, trunk, None)?;
    let _undisturbed = directory.undisturbed()?;
    let blueprint = directory.blueprint()?;
    let task = Task::Outage {
        cables: cables(&blueprint, wiring, trunk),
        moves: moves(&blueprint, wiring, &plan),
        parts: parts(&plan),
        patience_ms,
        deadline_ms: DEADLINE_MS,
    };
    let Done::Outage(outage) = ask(directory, roles, &task)? else {
        return Err(AskError::Failed("the lab sent an unexpected answer".into()).into());
    };
    // What was learned over the trunk was forgotten when it failed.
    prime(directory, roles, wiring, configuration)?;
    let after = lost_at_last(directory, roles, patience_ms, TRIES_AT_END)?;
    Ok(recovery(wiring, &plan, &outage, &after))
}

fn recovery(
    wiring: &Wiring,
    plan: &Failover,
    outage: &Outage,
    after: &[(usize, usize)],
) -> Recovery {
    let named = |pairs: &[(usize, usize)]| -> Vec<String> {
        pairs.iter().map(|pair| name_pair(wiring, *pair)).collect()
    };
    let pairs = |hosts: usize| hosts * hosts.saturating_sub(1);
    let all = pairs(wiring.hosts.len());
    let promised = match plan.parts.as_slice() {
        [] => all,
        parts => parts.iter().map(|part| pairs(part.len())).sum(),
    };
    Recovery {
        pairs: all,
        pairs_promised: promised,
        ports_moved: plan.moves.len(),
        pairs_lost_at_cut: outage.lost_at_cut.len(),
        noticed_us: outage.noticed_us,
        applied_us: outage.applied_us,
        answered_us: outage.answered_us,
        pairs_not_restored: named(&outage.lost),
        pairs_lost_after_mending: named(after),
        good: outage.lost.is_empty() && outage.answered_us.is_some() && after.is_empty(),
    }
}

/// The cables of a trunk in the lab.
fn cables(blueprint: &Blueprint, wiring: &Wiring, trunk: TrunkId) -> Vec<usize> {
    let [one, other] = &wiring.trunks[trunk.place()].ends;
    let ends: Vec<[(usize, String); 2]> = one
        .ports
        .iter()
        .zip(&other.ports)
        .map(|(&near, &far)| {
            [
                (one.switch.place(), port_interface(near)),
                (other.switch.place(), port_interface(far)),
            ]
        })
        .collect();
    let is_of_trunk = |place: &usize| {
        let cable = &blueprint.cables[*place];
        let own = cable.ends.each_ref().map(|end| (end.space, end.device.clone()));
        cable.purpose == Purpose::Trunk && ends.contains(&own)
    };
    (0..blueprint.cables.len()).filter(is_of_trunk).collect()
}

fn moves(blueprint: &Blueprint, wiring: &Wiring, plan: &Failover) -> Vec<PortMove> {
    let of_host = |own: &meikyo_fabric::Move| {
        let host = &wiring.hosts[own.host.place()];
        let switch = host.switch.place();
        let device = bridge_port(blueprint, switch, port_interface(host.ports[0]));
        PortMove { switch, device, vlan: own.to.id() }
    };
    plan.moves.iter().map(of_host).collect()
}

/// The device itself, or the bundle that it is in.
fn bridge_port(blueprint: &Blueprint, switch: usize, device: String) -> String {
    let mut ends = blueprint.cables.iter().flat_map(|cable| &cable.ends);
    let own = ends.find(|end| end.space == switch && end.device == device);
    let mut bundles = blueprint.spaces[switch].bundles.iter();
    let bundle = own.and_then(|own| bundles.find(|bundle| bundle.members.contains(&own.index)));
    bundle.map_or(device, |bundle| bundle.device.clone())
}

fn parts(plan: &Failover) -> Vec<Vec<usize>> {
    let places = |part: &Vec<meikyo_fabric::HostId>| part.iter().map(|host| host.place()).collect();
    plan.parts.iter().map(places).collect()
}
