//! Trees that load channels evenly: a local search.
//!
//! Each switch has one tree or several, and deals its hosts out to them. The search begins with trees that
//! the routing allows and changes one step of one tree at a time: a switch, with all beyond it, is reached
//! from another neighbour. A step is taken if a sum over all channels becomes less that weighs the busiest
//! most (the fourth power of what a cable carries, then a higher one) and, where switches pause each
//! other, if no channels come to wait in a cycle.
//!
//! Beginnings differ by a seed; the best of several is taken. Work is counted in channels that are looked
//! at, so that the same plan is made on every machine.

mod begin;
mod grouped;
mod growth;
mod search;
mod turns;

use super::{Adjacent, Net, Routes, Suits};
use begin::Begun;
use search::Search;

pub(crate) use grouped::{Groups, Sharing};

/// Most trees of a switch: more of them gain little, and each is a VLAN.
pub(crate) const TREES_MAX: usize = 4;
/// Most trees in all, if a switch has several.
const TREES_IN_ALL_MAX: usize = 512;
/// Channels that are looked at in all: about a second.
const WORK_MAX: u64 = 60_000_000;
/// The least that a search gets for each step of each of its trees, however large the fabric is.
const WORK_OF_STEP: u64 = 40;
/// Most channels that are looked at, whatever the size.
const WORK_LARGE_MAX: u64 = 400_000_000;
/// Most beginnings.
const SEEDS_MAX: u64 = 64;

/// Which trees are sought.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Balancing {
    /// Which paths will do.
    pub(crate) suits: Suits,
    /// Whether switches pause each other, so that nothing may wait in a cycle.
    pub(crate) pauses: bool,
    /// Trees of each switch; as many as it has hosts, if these are fewer.
    pub(crate) trees: usize,
}

/// Trees, and the hosts that send in each.
#[derive(Debug, Clone)]
pub(crate) struct Balanced {
    /// The trees, those that are equal once.
    pub(crate) routes: Routes,
    /// Pairs of hosts on a cable of the busiest channel.
    pub(crate) busiest: f64,
}

impl Balancing {
    /// How many trees each switch may have in a net of this size, if hosts may be spread over so many.
    pub(crate) fn trees_for(net: &Net, spread: usize) -> usize {
        let in_all = TREES_IN_ALL_MAX / net.sources().count().max(1);
        spread.min(TREES_MAX).min(in_all.max(1)).max(1)
    }
}

/// The best of several beginnings: the trees of `routes`, and those of as many seeds as there is time
/// for.
pub(crate) fn balanced(net: &Net, routes: &Routes, how: Balancing) -> Balanced {
    let mut left = work(net.sources().count() * how.trees, net);
    let mut best: Option<Balanced> = None;
    for seed in 0..=SEEDS_MAX {
        let begun = match seed.checked_sub(1) {
            None => begin::from_routes(net, routes, how),
            Some(seed) => Some(begin::seeded(net, how, seed)),
        };
        let Some(begun) = begun else { continue };
        let found = searched(net, begun, how, &mut left);
        if best.as_ref().is_none_or(|best| found.busiest < best.busiest) {
            best = Some(found);
        }
        if left == 0 {
            break;
        }
    }
    best.unwrap_or_else(|| {
        let mut none = u64::MAX;
        searched(net, begin::seeded(net, how, 0), how, &mut none)
    })
}

/// A tree for every source, none of which waits for another in a cycle, without a search.
pub(crate) fn begun(net: &Net) -> Vec<(usize, Vec<usize>)> {
    let how = Balancing { suits: Suits::All, pauses: true, trees: 1 };
    let begun = begin::seeded(net, how, 1).trees;
    let mut trees: Vec<(usize, Vec<usize>)> =
        begun.into_iter().map(|tree| (tree.walk.order[0], tree.walk.needed(net))).collect();
    trees.sort_by_key(|(source, _)| *source);
    trees
}

/// The best of so many seeds, each searched until nothing is gained: what plans are compared with.
pub(crate) fn best_of(net: &Net, how: Balancing, seeds: u64) -> Option<Balanced> {
    let search = |seed| searched(net, begin::seeded(net, how, seed), how, &mut u64::MAX.clone());
    let all = (0..seeds).map(search);
    all.min_by(|one, other| one.busiest.total_cmp(&other.busiest))
}

/// What a search of so many trees may look at.
fn work(trees: usize, net: &Net) -> u64 {
    let steps = u64::try_from(trees * net.switches());
    let least = steps.map_or(WORK_LARGE_MAX, |steps| steps.saturating_mul(WORK_OF_STEP));
    WORK_MAX.max(least.min(WORK_LARGE_MAX))
}

fn searched(net: &Net, begun: Begun, how: Balancing, left: &mut u64) -> Balanced {
    let mut search = Search::new(net, begun, how, *left);
    search.run();
    *left = search.work_left();
    let busiest = search.busiest();
    Balanced { routes: Routes::merged(net, search.trees()), busiest }
}

/// What the trees of routes carry on a cable of the busiest channel, if the hosts of each switch take its
/// forests in turn.
pub(crate) fn busiest_of(net: &Net, forests: &[Vec<usize>], turns: &[Vec<usize>]) -> f64 {
    let mut loads = vec![0; net.channels()];
    for source in net.sources() {
        let turns = &turns[source];
        for (place, &forest) in turns.iter().enumerate() {
            let hosts = begin::share(net.hosts[source], turns.len(), place);
            let walk = Adjacent::new(net, &forests[forest]).walk(source);
            let beyond = walk.hosts_beyond(net);
            for &at in &walk.order {
                if let Some(channel) = walk.by[at] {
                    loads[channel] += hosts * beyond[at];
                }
            }
        }
    }
    let each = loads.iter().enumerate();
    each.map(|(channel, &load)| exactly(load) / exactly(net.cables(channel))).fold(0.0, f64::max)
}

/// A count as a number that is multiplied: exact below 2^53.
#[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 pairs of hosts")]
fn exactly(count: usize) -> f64 {
    count as f64
}
