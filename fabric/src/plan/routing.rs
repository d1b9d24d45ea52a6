//! Which paths: what was asked for, or what suits the topology and cannot deadlock.

use meikyo_cluster::Routing;

use super::{PlanError, PlanOptions};
use crate::routing::{
    Found, Grid, Lines, Net, Rings, Routes, SWITCHES_EXACT_MAX, Ways, best_order, dimension_order,
    fat_tree, fewest, grown, leaf_spine, minimal, minimal_ways, shortest_acyclic, up_down,
    up_down_ways,
};
use crate::{Layout, Wiring};

/// The routing, never [`Routing::Auto`], and its forests.
pub(super) fn choose(
    wiring: &Wiring,
    net: &Net,
    options: &PlanOptions,
) -> Result<(Routing, Routes), PlanError> {
    let routing = resolve(net, options);
    let grid = grid(options);
    let routes = match (routing, &grid) {
        (Routing::DimensionOrder, Some(grid)) => by_dimension(wiring, net, grid, options)?,
        (Routing::DimensionOrder, None) => return Err(coordinates(routing, "grid")),
        (Routing::UpDown, _) => rooted(net, options).unwrap_or_else(|| {
            exact(net, || up_down_ways(net), options).unwrap_or_else(|| up_down(net))
        }),
        (Routing::Acyclic, Some(grid)) if options.without.is_empty() => {
            seamed(wiring, net, grid, options)?
        }
        (Routing::Acyclic, _) => grown(net),
        (Routing::Minimal | Routing::Auto, _) => {
            exact(net, || minimal_ways(net), options).unwrap_or_else(|| minimal(net))
        }
    };
    Ok((routing, routes))
}

/// What [`Routing::Auto`] means here.
pub(super) fn resolve(net: &Net, options: &PlanOptions) -> Routing {
    if options.routing != Routing::Auto {
        return options.routing;
    }
    if !options.without.is_empty() {
        return Routing::Acyclic;
    }
    match options.topology.as_ref().map(crate::Topology::layout) {
        Some(Layout::Tree) => Routing::Minimal,
        Some(Layout::LeafSpine { .. } | Layout::FatTree { .. }) => Routing::UpDown,
        Some(Layout::HyperX { .. }) => Routing::DimensionOrder,
        Some(Layout::Grid { .. }) => match grid(options) {
            Some(grid) if grid.shorter_is_safe() || !options.flow_control => {
                Routing::DimensionOrder
            }
            _ => Routing::Acyclic,
        },
        Some(Layout::Irregular) | None => {
            // Shortest paths, where nothing pauses, or where they are few enough to see that some of
            // them cannot deadlock.
            let safe = || exact(net, || minimal_ways(net), options).is_some();
            if !options.flow_control || safe() { Routing::Minimal } else { Routing::Acyclic }
        }
    }
}

/// Whether switches may share trees that are not those of their shortest paths.
pub(super) fn may_share(routing: Routing, options: &PlanOptions) -> bool {
    routing == Routing::Acyclic && (!has_lines(options) || !options.without.is_empty())
}

/// Whether the topology is one of lines, whose switches share the VLANs of a line.
pub(super) fn has_lines(options: &PlanOptions) -> bool {
    grid(options).is_some()
}

fn grid(options: &PlanOptions) -> Option<Grid> {
    match options.topology.as_ref()?.layout() {
        Layout::Grid { sizes, wraps } => {
            Some(Grid { sizes, lines: if wraps { Lines::Ring } else { Lines::Open } })
        }
        Layout::HyperX { sizes } => Some(Grid { sizes, lines: Lines::Complete }),
        _ => None,
    }
}

fn rooted(net: &Net, options: &PlanOptions) -> Option<Routes> {
    match options.topology.as_ref()?.layout() {
        Layout::LeafSpine { leaves, spines } => leaf_spine(net, leaves, spines),
        Layout::FatTree { arity } => fat_tree(net, arity),
        _ => None,
    }
}

/// The fewest forests, if the search ends; `None` also where every choice could deadlock, which is
/// found again on any choice.
fn exact(net: &Net, ways: impl FnOnce() -> Vec<Ways>, options: &PlanOptions) -> Option<Routes> {
    match fewest(net, ways, options.flow_control) {
        Found::Routes(routes) => Some(routes),
        Found::Deadlock | Found::Open => None,
    }
}

/// By dimension, without the seams of long rings; any paths where the wiring lacks a link of the grid.
fn seamed(
    wiring: &Wiring,
    net: &Net,
    grid: &Grid,
    options: &PlanOptions,
) -> Result<Routes, PlanError> {
    let asked = asked_order(Routing::Acyclic, grid, options)?;
    let order = asked.unwrap_or_else(|| best_order(grid, Rings::Seam));
    let Some(routes) = dimension_order(net, grid, &order, Rings::Seam) else {
        return Ok(grown(net));
    };
    if grid.shorter_is_safe() {
        return by_dimension(wiring, net, grid, options);
    }
    Ok(shortest_acyclic(net, routes))
}

/// The order of dimensions that was asked for, if there is one.
fn asked_order(
    routing: Routing,
    grid: &Grid,
    options: &PlanOptions,
) -> Result<Option<Vec<usize>>, PlanError> {
    let Some(order) = &options.dimensions else { return Ok(None) };
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..grid.sizes.len()) {
        return Err(coordinates(routing, "permutation of its dimensions"));
    }
    Ok(Some(order.clone()))
}

/// In the order of dimensions that was asked for, or in the one that makes the fewest VLANs: all of
/// them are tried where that is quick.
fn by_dimension(
    wiring: &Wiring,
    net: &Net,
    grid: &Grid,
    options: &PlanOptions,
) -> Result<Routes, PlanError> {
    let best = best_order(grid, Rings::Shorter);
    let orders = match asked_order(Routing::DimensionOrder, grid, options)? {
        Some(order) => vec![order],
        None if wiring.switches.len() <= SWITCHES_EXACT_MAX => orders(&best),
        None => vec![best.clone()],
    };
    let mut fewest_found: Option<Routes> = None;
    for order in &orders {
        let ways: Option<Vec<Ways>> =
            net.sources().map(|source| Ways::dimension_order(net, grid, order, source)).collect();
        let ways = ways.ok_or_else(|| coordinates(Routing::DimensionOrder, "link of its grid"))?;
        if let Some(routes) = exact(net, || ways, options)
            && fewest_found.as_ref().is_none_or(|found| routes.forests.len() < found.forests.len())
        {
            fewest_found = Some(routes);
        }
    }
    let routes = fewest_found
        .or_else(|| dimension_order(net, grid, &orders[0], Rings::Shorter))
        .ok_or_else(|| coordinates(Routing::DimensionOrder, "link of its grid"))?;
    Ok(routes)
}

/// All orders, the best first.
fn orders(best: &[usize]) -> Vec<Vec<usize>> {
    let mut orders = vec![Vec::new()];
    for _ in best {
        orders = orders
            .iter()
            .flat_map(|order: &Vec<usize>| {
                let left = best.iter().filter(|dimension| !order.contains(dimension));
                left.map(|&dimension| [order.as_slice(), &[dimension]].concat()).collect::<Vec<_>>()
            })
            .collect();
    }
    orders
}

fn coordinates(routing: Routing, needs: &'static str) -> PlanError {
    PlanError::Coordinates {
        routing,
        needs,
        instead: "`minimal`, `up-down` or `acyclic` would do".into(),
    }
}
