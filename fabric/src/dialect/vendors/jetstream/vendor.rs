//! TP-Link `JetStream` and Omada switches with a command line: T2600G, T1600G, TL-SG3428 and alike.
//!
//! There are no modes of ports: each is an untagged or a tagged member of VLANs (`switchport general
//! allowed vlan`), has a PVID, and takes tagged frames always. The commands were looked up in excerpts of
//! TP-Link's *CLI
//! Reference Guide, Managed Switches* (1900002754, chapters 20, IEEE 802.1Q VLAN, and those of link
//! aggregation, the address table and spanning tree); the range of ageing times and the commands of the
//! management address were not. No switch was at hand to try them on.

mod models;
mod parser;
#[cfg(test)]
mod tests;

use crate::dialect::state::{self, SwitchState};
use crate::dialect::typed::{Ageing, Pauses, PortNames, TypedVendor};
use crate::dialect::vendors::{Delivery, Language};
use crate::{SwitchModel, SwitchSettings, Vlan};

static LANGUAGE: Language = Language {
    name: "tplink-jetstream",
    models: &models::MODELS,
    template: include_str!("template.j2"),
    delivery: Delivery::Typed { refusals: &REFUSALS },
    defines_vlans: true,
    read: parser::read,
};

/// Beginnings of answers by which the switch refuses what was typed.
const REFUSALS: [&str; 4] = ["error", "bad command", "invalid", "incomplete command"];

static PORTS: PortNames = PortNames { written: "gigabitEthernet 1/0/", read: &["1/0/"] };

/// A `JetStream` switch.
pub(super) static JETSTREAM: TypedVendor = TypedVendor {
    language: &LANGUAGE,
    switch: "a JetStream switch",
    port_name: |_, port| PORTS.name(port),
    port_list: None,
    factory,
    general_begins_in_default: false,
    pvid_is_member: false,
    drops_tagged: false,
    pauses: Pauses::OfEach,
    bundle_name: |number| format!("port-channel {number}"),
    ageing: Ageing { seconds: parser::AGEING_S, never: true },
};

/// All ports in VLAN 1 and no spanning tree protocol: loops are plugged in last.
fn factory(model: &SwitchModel) -> SwitchState {
    let settings = state::all_in_default_vlan(model, true, false);
    let settings = SwitchSettings { spanning_tree: false, ..settings };
    SwitchState::managed(settings, Some(Vlan::DEFAULT))
}
