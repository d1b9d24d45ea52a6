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

use crate::dialect::fastpath;
use crate::dialect::state::{self, SwitchState};
use crate::dialect::vendors::{Delivery, Language, Vendor};
use crate::{PortNumber, PortSettings, SwitchModel, SwitchSettings, Vlan};

/// A switch of the N series.
#[derive(Debug)]
pub(super) struct DellN;

/// As the switch is called in messages.
const SWITCH: &str = "an N-series switch";

static LANGUAGE: Language = Language {
    name: "dell-n",
    models: &models::MODELS,
    template: include_str!("template.j2"),
    delivery: Delivery::Typed { refusals: &fastpath::REFUSALS },
    defines_vlans: true,
    read: parser::read,
};

impl Vendor for DellN {
    fn language(&self) -> &'static Language {
        &LANGUAGE
    }

    fn port_name(&self, model: &SwitchModel, port: PortNumber) -> String {
        names::port_name(model, port)
    }

    fn port_list(&self, model: &SwitchModel, ports: &[PortNumber]) -> Option<String> {
        Some(names::port_list(model, ports))
    }

    fn bundle_name(&self, number: u16) -> String {
        number.to_string()
    }

    /// All ports in VLAN 1, a spanning tree protocol running, pause frames obeyed. The N1500 and N2000
    /// have no port for management alone and are reached in VLAN 1; the others are reached by theirs.
    fn factory(&self, model: &SwitchModel) -> SwitchState {
        let settings = state::all_in_default_vlan(model, false, true);
        let in_band = !models::has_management_port(model);
        SwitchState::managed(settings, in_band.then_some(Vlan::DEFAULT))
    }

    fn check_port(&self, port: &PortSettings) -> Result<(), String> {
        fastpath::check_port(SWITCH, port)
    }

    fn check_switch(&self, settings: &SwitchSettings) -> Result<(), String> {
        if let Some(span) = settings.ageing {
            fastpath::check_ageing(span, ", or never")?;
        }
        fastpath::check_pause(SWITCH, settings)
    }
}
