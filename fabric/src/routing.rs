//! Paths: for each switch a tree that holds its paths to all others, and the forests that trees share.
//!
//! The VLAN of a frame is picked where it comes in, so the paths from one switch in one VLAN are a tree,
//! its *source tree*. Sources share a VLAN where the union of their trees has no loop: a path in a forest
//! is the only one. Where every switch has hosts, every source tree spans all switches, and sources
//! share a VLAN only if their trees are the same.

mod balanced;
mod dealt;
mod dimension_order;
mod exact;
mod forest;
mod grown;
mod minimal;
mod net;
mod order;
mod roots;
mod routes;
mod up_down;
mod waiting;
mod ways;
mod within;

pub(crate) use balanced::{Balancing, Groups, Sharing, balanced, best_of, busiest_of};
pub(crate) use dealt::{Suits, dealt};
pub(crate) use dimension_order::{Grid, Lines, Rings, best_order, dimension_order};
pub(crate) use exact::{Found, SWITCHES_EXACT_MAX, fewest, shortest_acyclic};
pub(crate) use forest::{Adjacent, Walk};
pub(crate) use grown::grown;
pub(crate) use minimal::{minimal, minimal_ways};
pub(crate) use net::Net;
pub(crate) use roots::{fat_tree, leaf_spine};
pub(crate) use routes::{Routes, Sets};
pub(crate) use up_down::{up_down, up_down_ways};
pub(crate) use waiting::Waiting;
pub(crate) use ways::Ways;
