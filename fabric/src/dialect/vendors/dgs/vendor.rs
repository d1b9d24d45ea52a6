//! D-Link DGS switches with the industry-standard command line: DGS-1510, DGS-1520, DGS-3130, DGS-3630.
//!
//! Ports to hosts and trunks are *hybrid*. `switchport hybrid`, `acceptable-frame` and spanning tree
//! were found in public configurations; the others were not looked up, and are to be compared with the *DGS-1510 Series Gigabit Ethernet
//! `SmartPro` Switch CLI Reference Guide*, v1.60
//! (<https://www.scribd.com/document/702686331/DGS-1510-Series-CLI-Reference-Guide-v1-60>). The older DGS-3x00
//! and DGS-12xx, whose commands are `config vlan` and alike, or that have none, are no part of this
//! dialect. No switch was at hand to try the commands on.

mod models;
mod parser;
#[cfg(test)]
mod tests;

use crate::dialect::state::{self, SwitchState};
use crate::dialect::typed::{self, Ageing, Pauses, PortNames, TypedVendor};
use crate::dialect::vendors::{Delivery, Language};
use crate::{SwitchModel, Vlan};

static LANGUAGE: Language = Language {
    name: "dlink-dgs",
    models: &models::MODELS,
    template: include_str!("template.j2"),
    delivery: Delivery::Typed { refusals: &typed::REFUSALS },
    defines_vlans: true,
    read: parser::read,
};

static PORTS: PortNames =
    PortNames { written: "eth1/0/", read: &["eth1/0/", "ethernet1/0/", "1/0/"] };

/// A DGS switch.
pub(super) static DGS: TypedVendor = TypedVendor {
    language: &LANGUAGE,
    switch: "a DGS switch",
    port_name: |_, port| PORTS.name(port),
    port_list: None,
    factory,
    general_begins_in_default: false,
    pvid_is_member: false,
    drops_tagged: true,
    pauses: Pauses::OfEach,
    bundle_name: |number| format!("port-channel {number}"),
    ageing: Ageing { seconds: typed::AGEING_S, never: true },
};

/// All ports in VLAN 1, a spanning tree protocol running, no pause frames.
fn factory(model: &SwitchModel) -> SwitchState {
    let settings = state::all_in_default_vlan(model, false, false);
    SwitchState::managed(settings, Some(Vlan::DEFAULT))
}
