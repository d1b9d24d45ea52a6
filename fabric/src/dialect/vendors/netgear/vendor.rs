//! Netgear M4100, M4200 and M4300: FASTPATH with its own words, typed at the prompt.
//!
//! A port *participates* in VLANs, is *tagged* in some of them and has a PVID. VLANs are defined in `vlan
//! database`, which is entered before `configure`, and the VLAN in which the switch is managed is set there,
//! too. The commands of VLANs and bundles were looked up in parts of the *CLI Manual, `ProSAFE` M4100 Series* (202-11166) and of the *CLI Command
//! Reference Manual* of the M4250 (202-12215, <https://pdfslide.us/documents/cli-command-reference-manual-netgear-inc-350-east-plumeria-drive-san-jose-ca.html>).
//! Flow control, and where the VLAN of management is set, were not. The M4500, whose ports have other names, is no part of this dialect. No switch was at hand to try the
//! commands on.

mod models;
mod parser;
#[cfg(test)]
mod tests;

use crate::dialect::state::{self, SwitchState};
use crate::dialect::typed::{self, Ageing, Pauses, PortNames, TypedVendor};
use crate::dialect::vendors::{Delivery, Language};
use crate::{SwitchModel, Vlan};

static LANGUAGE: Language = Language {
    name: "netgear-m4",
    models: &models::MODELS,
    template: include_str!("template.j2"),
    delivery: Delivery::Typed { refusals: &typed::REFUSALS },
    defines_vlans: true,
    read: parser::read,
};

static PORTS: PortNames = PortNames { written: "1/0/", read: &["1/0/", "0/"] };

/// A switch of the M4 series.
pub(super) static NETGEAR: TypedVendor = TypedVendor {
    language: &LANGUAGE,
    switch: "an M4 switch",
    port_name: |_, port| PORTS.name(port),
    port_list: None,
    factory,
    general_begins_in_default: false,
    pvid_is_member: false,
    drops_tagged: true,
    pauses: Pauses::OfAllPorts,
    bundle_name: |number| format!("lag {number}"),
    ageing: Ageing { seconds: typed::AGEING_S, never: false },
};

/// All ports in VLAN 1 and in general mode, a spanning tree protocol running, no pause frames.
fn factory(model: &SwitchModel) -> SwitchState {
    let settings = state::all_in_default_vlan(model, true, false);
    SwitchState::managed(settings, Some(Vlan::DEFAULT))
}
