//! VLAN-routed Ethernet fabrics: planned, proven, configured.
//!
//! Ethernet forbids loops, so a cluster's switches form a tree whose root is crowded. Here every loop
//! free set of trunks gets a VLAN of its own; the VLAN of a frame is its path. See
//! `docs/fabric.md`.
//!
//! - [`Wiring`] is what is plugged into what, [`Configuration`] what is set on switches and hosts.
//!   Planner and checker share these types and nothing else.
//! - [`dialect`] makes vendors' texts of it, and reads them back.
//!
//! This crate opens no socket and changes no switch.

pub mod dialect;
mod failover;
mod settings;
mod vlan;
mod wiring;

pub use failover::{Failover, FailoverError, ManagedFrom, Move, plan_failover, plan_failovers};
pub use settings::{
    Bundling, Configuration, HostSettings, PortSettings, Priming, Representative, SwitchSettings,
};
pub use vlan::{ParseVlanError, Vlan, VlanSet};
pub use wiring::{
    Host, HostId, Learning, PortNumber, Switch, SwitchId, SwitchModel, Trunk, TrunkEnd, TrunkId,
    Wiring,
};
