//! The N series of Dell EMC's switches (N1500, N2000, N3000, N4000): DNOS 6, typed at the prompt.
//!
//! DNOS 6 is built upon FASTPATH like the PowerConnect 6200 before it, with other words: ports are
//! `Gi1/0/1` and `Te1/0/1`, VLANs are defined by `vlan 101-104` without a database, LACP is
//! `mode active`, and the switch is managed in the VLAN whose interface has an address. The commands
//! are those of the *User's Configuration Guide*, version 6.3 and later
//! (<https://manualmachine.com/dell/210aeir/7143333-user-guide>) and of the *CLI Reference Guide*
//! (<https://manualshive.com/ru/manual/dell/n1100-on/86012>, which says on page 287 that addresses are
//! learned for each VLAN apart). No switch of the series was at hand to try them on.

mod models;
mod names;
mod parser;
#[cfg(test)]
mod tests;

use crate::dialect::state::{self, SwitchState};
use crate::dialect::typed::{self, Ageing, Pauses, TypedVendor};
use crate::dialect::vendors::{Delivery, Language};
use crate::{SwitchModel, Vlan};

static LANGUAGE: Language = Language {
    name: "dell-n",
    models: &models::MODELS,
    template: include_str!("template.j2"),
    delivery: Delivery::Typed { refusals: &typed::REFUSALS },
    defines_vlans: true,
    read: parser::read,
};

/// A switch of the N series.
pub(super) static DELL_N: TypedVendor = TypedVendor {
    language: &LANGUAGE,
    switch: "an N-series switch",
    port_name: names::port_name,
    port_list: Some(names::port_list),
    factory,
    general_begins_in_default: false,
    pvid_is_member: false,
    drops_tagged: true,
    pauses: Pauses::OfAllPorts,
    bundle_name: |number| number.to_string(),
    ageing: Ageing { seconds: typed::AGEING_S, never: true },
};

/// All ports in VLAN 1, a spanning tree protocol running, pause frames obeyed. The N1500 and N2000 have
/// no port for management alone and are reached in VLAN 1; the others are reached by theirs.
fn factory(model: &SwitchModel) -> SwitchState {
    let settings = state::all_in_default_vlan(model, false, true);
    let in_band = !models::has_management_port(model);
    SwitchState::managed(settings, in_band.then_some(Vlan::DEFAULT))
}
