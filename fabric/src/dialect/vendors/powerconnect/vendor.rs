//! Dell PowerConnect 6200 series: FASTPATH, typed at the prompt.

mod names;
mod parser;
#[cfg(test)]
mod tests;

use crate::dialect::state::{self, SwitchState};
use crate::dialect::typed::{self, Ageing, Pauses, TypedVendor};
use crate::dialect::vendors::{Delivery, Language};
use crate::model::{GENERIC, ModelFacts};
use crate::{SwitchModel, Vlan};

const NAME: &str = "powerconnect-6248";

/// The switch of the paper: 48 ports, 8,000 addresses, ageing "maximum 100000 s". The range of
/// VLANs is what its configuration accepts, 1,024 of them at once.
static MODELS: [ModelFacts; 1] = [ModelFacts {
    name: NAME,
    ports: 48,
    table_entries: 8_000,
    vlans: 1_024,
    vlan_ids: (2, 4093),
    bundle_ports: 8,
    bundles: 48,
    ageing_s_max: Some(100_000),
    ..GENERIC
}];

static LANGUAGE: Language = Language {
    name: NAME,
    models: &MODELS,
    template: include_str!("template.j2"),
    delivery: Delivery::Typed { refusals: &typed::REFUSALS },
    defines_vlans: true,
    read: parser::read,
};

/// A PowerConnect of the 6200 series.
pub(super) static POWERCONNECT: TypedVendor = TypedVendor {
    language: &LANGUAGE,
    switch: "a PowerConnect",
    port_name: |_, port| names::port_name(port),
    port_list: Some(|_, ports| names::port_list(ports)),
    factory,
    general_begins_in_default: true,
    pvid_is_member: false,
    drops_tagged: true,
    pauses: Pauses::OfAllPorts,
    bundle_name: |number| number.to_string(),
    ageing: Ageing { seconds: typed::AGEING_S, never: false },
};

fn factory(model: &SwitchModel) -> SwitchState {
    let settings = state::all_in_default_vlan(model, false, true);
    SwitchState::managed(settings, Some(Vlan::DEFAULT))
}
