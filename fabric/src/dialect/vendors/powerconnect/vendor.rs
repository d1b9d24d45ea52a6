//! Dell PowerConnect 6200 series: FASTPATH, typed at the prompt.

mod names;
mod parser;
#[cfg(test)]
mod tests;

use crate::dialect::fastpath;
use crate::dialect::state::{self, SwitchState};
use crate::dialect::vendors::{Delivery, Language, Vendor};
use crate::model::{GENERIC, ModelFacts};
use crate::{PortNumber, PortSettings, SwitchModel, SwitchSettings, Vlan, VlanSet};

/// A PowerConnect of the 6200 series.
#[derive(Debug)]
pub(super) struct PowerConnect;

const NAME: &str = "powerconnect-6248";

/// As the switch is called in messages.
const SWITCH: &str = "a PowerConnect";

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
    delivery: Delivery::Typed { refusals: &fastpath::REFUSALS },
    defines_vlans: true,
    read: parser::read,
};

impl Vendor for PowerConnect {
    fn language(&self) -> &'static Language {
        &LANGUAGE
    }

    fn port_name(&self, _model: &SwitchModel, port: PortNumber) -> String {
        names::port_name(port)
    }

    fn port_list(&self, _model: &SwitchModel, ports: &[PortNumber]) -> Option<String> {
        Some(names::port_list(ports))
    }

    fn bundle_name(&self, number: u16) -> String {
        number.to_string()
    }

    fn factory(&self, model: &SwitchModel) -> SwitchState {
        let settings = state::all_in_default_vlan(model, false, true);
        SwitchState::managed(settings, Some(Vlan::DEFAULT))
    }

    /// A port that enters general mode is in VLAN 1.
    fn initial_members(&self, port: &PortSettings) -> VlanSet {
        port.accept_tagged.then_some(Vlan::DEFAULT).into_iter().collect()
    }

    fn check_port(&self, port: &PortSettings) -> Result<(), String> {
        fastpath::check_port(SWITCH, port)
    }

    fn check_switch(&self, settings: &SwitchSettings) -> Result<(), String> {
        let span = settings.ageing.ok_or_else(|| format!("{SWITCH} forgets addresses always"))?;
        fastpath::check_ageing(span, "")?;
        fastpath::check_pause(SWITCH, settings)
    }
}
