//! From a wiring to VLANs: which there are, which hosts send in which, how switches are taught.
//!
//! [`plan()`] chooses paths ([`Routing`]), puts them into as few VLANs as the routing's paths allow, and
//! spreads the hosts of a switch over as many of them as help and as fit the switches' tables. What
//! does not fit is refused with the number that breaks. [`Plan::configuration`] says what is to be set
//! on every port. Whether that is right is not decided here: the checker looks at the configuration alone.

mod error;
mod pairs;
mod partition;
mod routing;
mod settings;
mod spare;
mod tables;
mod vlans;

use std::collections::{BTreeMap, BTreeSet};

use meikyo_cluster::{Routing, Tagging};
use meikyo_units::Nanos;

use crate::routing::{
    Adjacent, Balancing, Groups, Net, Routes, Sharing, Suits, Waiting, balanced, best_of,
    busiest_of, dealt,
};
use crate::{Bundling, HostId, Priming, SwitchId, Topology, TrunkId, Vlan, VlanSet, Wiring};

pub use error::PlanError;
pub use spare::spare_trees;

use vlans::{Assignment, Fitted, Frame};

/// What is asked of a plan.
#[derive(Debug, Clone)]
pub struct PlanOptions {
    /// The topology of the wiring; `None`: only what needs no coordinates can be used.
    pub topology: Option<Topology>,
    /// How paths are chosen, and so which topologies will do.
    pub routing: Routing,
    /// The dimension that is routed first, second and so on, for [`Routing::DimensionOrder`]; `None`:
    /// what makes the fewest VLANs.
    pub dimensions: Option<Vec<usize>>,
    /// Who chooses the VLAN of a frame.
    pub tagging: Tagging,
    /// The VLANs that may be used; `None`: from 101 on, as the switches allow.
    pub vlans: Option<VlanSet>,
    /// The VLAN in which switches are managed, on a spanning tree of its own.
    pub management: Option<Vlan>,
    /// The host that manages the switches: a tagged member of that VLAN.
    pub manager: Option<HostId>,
    /// Whether there are spare VLANs, so that for every trunk that can fail one avoids it.
    pub spare: bool,
    /// How many VLANs the hosts of one switch are spread over, at most; `None`: as many as fit.
    pub spread: Option<usize>,
    /// How both ends of a bundle agree: by LACP, or by being set alike.
    pub bundling: Bundling,
    /// Whether pause frames are sent and obeyed; without them any paths will do.
    pub flow_control: bool,
    /// After which span switches forget an address; `None`: as late as they can.
    pub ageing: Option<Nanos>,
    /// Trunks that must not be used.
    pub without: BTreeSet<TrunkId>,
}

impl PlanOptions {
    /// Nothing beyond working VLANs; what suits the topology, bundles by LACP, pause frames.
    pub const fn new(topology: Option<Topology>) -> Self {
        Self {
            topology,
            routing: Routing::Auto,
            dimensions: None,
            tagging: Tagging::Switch,
            vlans: None,
            management: None,
            manager: None,
            spare: false,
            spread: None,
            bundling: Bundling::Lacp,
            flow_control: true,
            ageing: None,
            without: BTreeSet::new(),
        }
    }
}

/// VLANs, and who sends in which.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How paths were chosen: never [`Routing::Auto`].
    pub routing: Routing,
    /// Who chooses the VLAN of a frame.
    pub tagging: Tagging,
    /// The VLANs that carry frames.
    pub working: Vec<PlannedVlan>,
    /// Whether fewer working VLANs are impossible for the paths of the routing: all were tried, or
    /// there is only one.
    pub fewest: bool,
    /// The VLANs that carry frames when a trunk fails.
    pub spare: Vec<PlannedVlan>,
    /// The VLAN in which switches are managed.
    pub management: Option<PlannedVlan>,
    /// For each host the VLAN of the frames that it sends without a tag.
    pub pvids: Vec<Vlan>,
    /// For each host the VLANs that it tags frames with, by where they go to; empty where switches tag.
    pub tags: Vec<BTreeMap<HostId, Vlan>>,
    /// Most VLANs that the hosts of one switch are spread over.
    pub spread: usize,
    /// How switches learn where hosts are, in the VLANs in which hosts do not send.
    pub priming: Priming,
    /// Entries that the table of each switch will hold, working and spare VLANs together.
    pub table_entries: Vec<usize>,
    bundling: Bundling,
    flow_control: bool,
    ageing: Option<Nanos>,
    manager: Option<HostId>,
}

/// A VLAN and the trunks that it runs over: a forest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedVlan {
    /// The identifier that frames carry (IEEE 802.1Q).
    pub vlan: Vlan,
    /// The trunks that carry it, in the order of the wiring.
    pub trunks: Vec<TrunkId>,
    /// The switches whose hosts send in it.
    pub sources: Vec<SwitchId>,
}

/// Plans the VLANs of a wiring.
///
/// # Errors
/// If a switch cannot be reached, the routing does not suit the wiring or could deadlock, or if VLANs,
/// table entries or what the switches can do are not enough: with the number that breaks.
pub fn plan(wiring: &Wiring, options: &PlanOptions) -> Result<Plan, PlanError> {
    let net = Net::new(wiring, &options.without);
    error::check_reach(wiring, &net)?;
    error::check_ageing(wiring, options)?;
    error::check_default_vlan(wiring, &net)?;
    let frame = Frame::new(wiring, &net, options)?;
    if options.tagging == Tagging::Host {
        let (routing, pairs) = pairs::choose(wiring, &net, options)?;
        let assignment = pairs.assignment(&net);
        let fitted = frame.fit(&assignment)?;
        let tags = pairs.tags(wiring, &fitted.ids);
        let fewest = pairs.proven;
        return Ok(Plan { tags, fewest, ..frame.plan(routing, assignment, fitted) });
    }
    let (routing, routes) = if must_share(wiring, &net, options) {
        (Routing::Acyclic, Routes::default())
    } else {
        routing::choose(wiring, &net, options)?
    };
    let (assignment, fitted) = switch_tagged(&frame, routing, &routes)?;
    let fewest = routes.proven || assignment.vlans.len() == 1;
    let plan = Plan { fewest, ..frame.plan(routing, assignment, fitted) };
    if options.flow_control {
        check_waiting(wiring, &net, &plan)?;
    }
    Ok(plan)
}

/// On so many switches it is told beforehand that no trees of their own fit, since they take seconds.
const SWITCHES_TOLD_BEFORE: usize = 256;

/// Whether switches have to share trees, and that can be told without any.
fn must_share(wiring: &Wiring, net: &Net, options: &PlanOptions) -> bool {
    net.switches() > SWITCHES_TOLD_BEFORE
        && routing::may_share(routing::resolve(net, options), options)
        && !tables::may_hold(wiring, net, net.sources().map(|source| vec![source]), 100)
}

/// Trees of their own for the hosts of each switch are taken where the busiest cable then carries at most
/// this part of what it does otherwise: they are more VLANs.
const WORTH_MORE_VLANS: f64 = 0.97;
/// The same on tori, whose lines make do with few VLANs: a plan may leave a tenth more on its busiest
/// cable than searches find, and keeps the few if it does not.
const WORTH_LEAVING_LINES: f64 = 1.0 / 1.1;
/// Tori of more switches keep the few VLANs of their lines, unless hosts are to be spread.
const SWITCHES_OF_LINES_MAX: usize = 128;

/// The VLANs of the routing, or more of them where that takes load off the busiest cable, as many as fit.
fn switch_tagged(
    frame: &Frame<'_>,
    routing: Routing,
    routes: &Routes,
) -> Result<(Assignment, Fitted), PlanError> {
    let few = few_vlans(frame, routing, routes);
    let share = few.as_ref().is_ok_and(|(assignment, ..)| assignment.shares_trees());
    if share && frame.net.switches() > SWITCHES_TOLD_BEFORE {
        // They do so because there is no room for trees of their own.
        return few.map(|(assignment, fitted, _)| (assignment, fitted));
    }
    let Some(how) = balancing(frame.net, frame.options, routing, routes) else {
        return few.map(|(assignment, fitted, _)| (assignment, fitted));
    };
    let worth = if asks_for_spread(frame.options) || !routing::has_lines(frame.options) {
        WORTH_MORE_VLANS
    } else {
        WORTH_LEAVING_LINES
    };
    let most = few.as_ref().map_or(f64::INFINITY, |(.., busiest)| worth * busiest);
    for trees in (1..=how.trees).rev() {
        let found = balanced(frame.net, routes, Balancing { trees, ..how });
        if found.busiest > most {
            break;
        }
        let assignment = Assignment::new(frame.net, &found.routes, &found.routes.choices);
        if let Ok(fitted) = frame.fit(&assignment) {
            return Ok((assignment, fitted));
        }
    }
    few.map(|(assignment, fitted, _)| (assignment, fitted))
}

/// Whether hosts of a switch are to be spread over several VLANs.
fn asks_for_spread(options: &PlanOptions) -> bool {
    options.spread.is_some_and(|spread| spread > 1)
}

/// Which trees may be sought; `None` where the VLANs are the fewest that there can be, or as many as
/// `docs/fabric.md` says for the topology.
fn balancing(
    net: &Net,
    options: &PlanOptions,
    routing: Routing,
    routes: &Routes,
) -> Option<Balancing> {
    if routes.proven || routes.forests.len() < 2 || !options.without.is_empty() {
        return None;
    }
    let hosts_max = net.hosts.iter().max().copied().unwrap_or(0);
    let spread = options.spread.unwrap_or(hosts_max).min(hosts_max);
    let may_leave_lines = || match options.spread {
        None => net.switches() <= SWITCHES_OF_LINES_MAX,
        Some(_) => asks_for_spread(options),
    };
    let (suits, pauses) = match routing {
        Routing::Acyclic if !routing::has_lines(options) || may_leave_lines() => (Suits::All, true),
        Routing::Minimal if !options.flow_control => (Suits::Shortest, false),
        _ => return None,
    };
    Some(Balancing { suits, pauses, trees: Balancing::trees_for(net, spread) })
}

/// What the best of so many seeded searches leaves on the busiest cable, in pairs of hosts, with as many
/// VLANs for each switch as a plan may have: what a plan is measured by. `None` where plans are not
/// searched for, as the routing or the topology says which paths there are.
///
/// # Errors
/// As [`plan()`].
pub fn searched(
    wiring: &Wiring,
    options: &PlanOptions,
    seeds: u64,
) -> Result<Option<f64>, PlanError> {
    let net = Net::new(wiring, &options.without);
    error::check_reach(wiring, &net)?;
    let (routing, routes) = routing::choose(wiring, &net, options)?;
    let how = balancing(&net, options, routing, &routes);
    Ok(how.and_then(|how| best_of(&net, how, seeds)).map(|best| best.busiest))
}

/// Spreads the hosts of each switch over as many VLANs of the routing as fit; if not even one for each
/// switch does, and paths may be any that do not wait in a cycle, lets switches share trees. Beside it
/// what the busiest cable carries, in pairs of hosts.
fn few_vlans(
    frame: &Frame<'_>,
    routing: Routing,
    routes: &Routes,
) -> Result<(Assignment, Fitted, f64), PlanError> {
    let (net, options) = (frame.net, frame.options);
    let hosts_max = net.hosts.iter().max().copied().unwrap_or(0);
    let suits = Suits::allowed_by(routing, net);
    let choices_max = match suits {
        Some(_) => routes.forests.len(),
        None => routes.choices.iter().map(Vec::len).max().unwrap_or(0),
    };
    let spread_max = options.spread.unwrap_or(hosts_max).min(choices_max).min(hosts_max);
    let mut refusal = None;
    // Without forests there are trees to be shared only.
    let own = if routes.forests.is_empty() { 0 } else { spread_max.max(1) };
    for spread in (1..=own).rev() {
        let dealt = suits.and_then(|suits| dealt(net, routes, suits, options.flow_control, spread));
        let forests = dealt.unwrap_or_else(|| routes.in_turn(net, spread));
        let assignment = Assignment::new(net, routes, &forests);
        match frame.fit(&assignment) {
            Ok(fitted) => {
                let busiest = busiest_of(net, &routes.forests, &forests);
                return Ok((assignment, fitted, busiest));
            }
            Err(error) => refusal = Some(error),
        }
    }
    if routing::may_share(routing, options) {
        match shared(frame) {
            Ok(found) => return Ok(found),
            Err(error) => refusal = refusal.or(Some(error)),
        }
    }
    Err(refusal.expect("at least one assignment was tried"))
}

/// Groups are tried where the hosts beyond each switch would take so many hundredths of the room for them,
/// if paths were the shortest and all switches held as much.
const ROOM_USED_PERCENT: u64 = 90;
/// The same on many switches, some of which hold five times as much as the mean.
const ROOM_USED_LARGE_PERCENT: u64 = 45;
/// On more switches it takes seconds to grow trees, and longer to search: none are grown that hardly fit, or
/// searched that do not fit as they are.
const SWITCHES_TRIED_MAX: usize = 1_024;
/// How far switches share trees, one after the other until the tables have room.
const SHARINGS: [Sharing; 10] = {
    const fn sharing(size: usize, radius: usize) -> Sharing {
        Sharing { size, radius }
    }
    [
        sharing(2, 1),
        sharing(3, 1),
        sharing(4, 1),
        sharing(6, 1),
        sharing(9, 1),
        sharing(16, 2),
        sharing(32, 3),
        sharing(64, 4),
        sharing(128, 5),
        sharing(512, 8),
    ]
};

/// Lets neighbours share trees, as few of them as fit; at last all switches share one.
fn shared(frame: &Frame<'_>) -> Result<(Assignment, Fitted, f64), PlanError> {
    let Frame { net, wiring, .. } = *frame;
    let mut least = net.sources().count();
    let many = net.switches() > SWITCHES_TRIED_MAX;
    let room_used = if many { ROOM_USED_LARGE_PERCENT } else { ROOM_USED_PERCENT };
    for sharing in SHARINGS {
        let groups = Groups::new(net, sharing);
        if groups.len() >= least || !tables::may_hold(wiring, net, groups.members(net), room_used) {
            continue;
        }
        least = groups.len();
        let grown = groups.grown(net);
        let unsearched = grown.routes();
        let fits =
            frame.fit(&Assignment::new(net, &unsearched, &unsearched.in_turn(net, 1))).is_ok();
        if many && !fits {
            continue;
        }
        // A search looks at cables: what fitted before may fit no longer, or only now.
        if let Ok(found) = fitted(frame, &grown.searched()).or_else(|_| fitted(frame, &unsearched))
        {
            return Ok(found);
        }
    }
    let tree = spare::tree_from(net, net.centre());
    fitted(frame, &Routes::merged(net, net.sources().map(|at| (at, tree.clone())).collect()))
}

/// The first forest of each switch, if all of them fit, and what the busiest cable carries then.
fn fitted(frame: &Frame<'_>, routes: &Routes) -> Result<(Assignment, Fitted, f64), PlanError> {
    let forests = routes.in_turn(frame.net, 1);
    let assignment = Assignment::new(frame.net, routes, &forests);
    let fitted = frame.fit(&assignment)?;
    let busiest = busiest_of(frame.net, &routes.forests, &forests);
    Ok((assignment, fitted, busiest))
}

/// Refuses a plan whose frames could wait for each other in a cycle.
fn check_waiting(wiring: &Wiring, net: &Net, plan: &Plan) -> Result<(), PlanError> {
    let mut waiting = Waiting::new(net);
    for vlan in &plan.working {
        let trunks: Vec<usize> = vlan.trunks.iter().map(|trunk| trunk.place()).collect();
        let forest = Adjacent::new(net, &trunks);
        for source in &vlan.sources {
            let walk = forest.walk(source.place());
            waiting.add(net, &walk, &walk.hosts_beyond(net));
        }
    }
    match waiting.cycle(net) {
        Some(cycle) => Err(PlanError::deadlock(wiring, net, plan.routing, &cycle)),
        None => Ok(()),
    }
}
