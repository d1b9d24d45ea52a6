//! HPE (and H3C) switches with Comware 7, typed at the prompt: `FlexNetwork` 5130 and alike.
//!
//! Ports to hosts and trunks are *hybrid*: untagged members of some VLANs and tagged ones of others. There
//! is no command for ports that drop frames without a tag: a hybrid port drops them if it is not in the
//! VLAN of its PVID, which need not exist, so VLAN 4094 is kept for that. The commands of VLANs and bundles
//! were looked up in parts of the *HPE `FlexNetwork` 5130 HI Layer 2 LAN Switching Command Reference*
//! (<http://www.manualslib.com/manual/1327151/Hp-Flexnetwork-5130-Hi-Series.html>) and of its configuration
//! guide (<https://manualshive.com/ru/manual/hpe/flexnetwork-5130-hi-series/2175692?page=130>). The
//! others, `stp global enable` among them, were not: they are known from use. No switch was at hand to try
//! them on.

mod models;
mod parser;
#[cfg(test)]
mod tests;

use crate::dialect::state::{self, SwitchState};
use crate::dialect::typed::{Ageing, Pauses, PortNames, TypedVendor};
use crate::dialect::vendors::{Delivery, Language};
use crate::{SwitchModel, Vlan};

static LANGUAGE: Language = Language {
    name: "comware",
    models: &models::MODELS,
    template: include_str!("template.j2"),
    delivery: Delivery::Typed { refusals: &REFUSALS },
    defines_vlans: true,
    read: parser::read,
};

/// Beginnings of answers by which Comware refuses what was typed: a mark below the word, then the reason.
const REFUSALS: [&str; 5] =
    ["% unrecognized command", "% incomplete command", "% wrong parameter", "% too many", "error"];

/// What ports are called; the abbreviation is that of `ifName`.
static PORTS: PortNames =
    PortNames { written: "GigabitEthernet1/0/", read: &["gigabitethernet1/0/", "ge1/0/"] };

/// A switch with Comware.
pub(super) static COMWARE: TypedVendor = TypedVendor {
    language: &LANGUAGE,
    switch: "a Comware switch",
    port_name: |_, port| PORTS.name(port),
    port_list: None,
    factory,
    general_begins_in_default: false,
    pvid_is_member: true,
    drops_tagged: true,
    pauses: Pauses::OfEach,
    bundle_name: |number| format!("Bridge-Aggregation{number}"),
    ageing: Ageing { seconds: parser::AGEING_S, never: true },
};

/// All ports in VLAN 1, a spanning tree protocol running, no pause frames.
fn factory(model: &SwitchModel) -> SwitchState {
    let settings = state::all_in_default_vlan(model, false, false);
    SwitchState::managed(settings, Some(Vlan::DEFAULT))
}
