//! VLAN-routed Ethernet fabrics: planned, proven, configured.
//!
//! Ethernet forbids loops, so a cluster's switches form a tree whose root is crowded. Here every loop
//! free set of trunks gets a VLAN of its own, and the VLAN of a frame decides its path. See
//! `docs/fabric.md`.
//!
//! - [`Wiring`] says what is plugged into what, [`Configuration`] what is set on switches and hosts.
//!   Planner and checker share these types and nothing else.
//! - [`Topology`] and [`cable`] make a wiring from a few words; [`plan()`] chooses paths and VLANs for
//!   it, and [`Plan::configuration`] turns them into settings.
//! - [`check()`] proves a configuration from its port settings, or says what is wrong with it.
//! - [`emulator`] carries single frames over it: slow, and independent of the checker.
//! - [`dialect`] writes settings as the commands of a vendor's switches, and reads them back; each
//!   vendor is one directory.
//! - [`deploy`] orders the steps from one configuration to another so that no state on the way loops.
//!
//! The crate opens no socket but [`PrimingSocket`], and changes no switch.

mod cables;
mod cabling;
pub mod check;
pub mod deploy;
mod described;
pub mod dialect;
mod drawing;
pub mod emulator;
mod failover;
mod loads;
mod model;
mod paths;
mod plan;
mod prime;
mod routing;
mod settings;
mod topology;
mod verify;
mod vlan;
mod warning;
mod wiring;
mod worksheet;

pub use cables::{Cable, CableEnd, CableList, cables};
pub use cabling::{CablingError, HostPart, Parts, cable, cable_uniform};
pub use check::{CheckOptions, Fault, Report, Verdict, check};
pub use described::{DescribeError, Described, describe};
pub use drawing::{draw, positions};
pub use failover::{Failover, FailoverError, ManagedFrom, Move, plan_failover, plan_failovers};
pub use loads::{Bisection, Busiest, Certainty, Loads, Pattern, bisection, diameter, loads};
pub use paths::{Hop, Paths};
pub use plan::{Plan, PlanError, PlanOptions, PlannedVlan, plan, searched, spare_trees};
pub use prime::{
    PRIMING_ETHERTYPE, PRIMING_FRAME_BYTES, PrimingFrame, PrimingNotice, PrimingSocket,
    PrimingSocketError, own_priming_frames, primed_entries, priming_frame_bytes, priming_frames,
    priming_period, read_priming_frame,
};
pub use settings::{
    Bundling, Configuration, HostSettings, PortSettings, Priming, Representative, SwitchSettings,
};
pub use topology::{Edge, Layout, ParseTopologyError, SWITCHES_MAX, SwitchGraph, Topology};
pub use verify::{Finding, Neighbour, Observed, verify, verify_settings};
pub use vlan::{ParseVlanError, Vlan, VlanSet};
pub use warning::{HOT_SPOT_RATIO, Warning, WarningInWords, warnings};
pub use wiring::{
    Host, HostId, Learning, PortNumber, Switch, SwitchId, SwitchModel, Trunk, TrunkEnd, TrunkId,
    Wiring,
};
pub use worksheet::{ParseWorksheetFormatError, Worksheet, WorksheetFormat, worksheet};
