//! What the Linux machines have in common: names of interfaces, and scripts.
//!
//! Linux bridges, Open vSwitch and the lab share these names.

use minijinja::Value;

use super::state::{self, SwitchState};
use super::vendors::{Delivery, Language, Read, Vendor};
use crate::model::ModelFacts;
use crate::{PortNumber, PortSettings, SwitchModel, SwitchSettings};

/// A bridge of a Linux machine, which is set by scripts: what of it is only data.
pub(super) struct ScriptedBridge {
    pub(super) language: &'static Language,
    /// Whether the ports of a plain bridge take tagged frames.
    pub(super) takes_tagged: bool,
    /// See [`Vendor::check_port`], beyond the VLAN of frames without a tag.
    pub(super) check_port: fn(&PortSettings) -> Result<(), String>,
    /// See [`Vendor::check_switch`].
    pub(super) check_switch: fn(&SwitchSettings) -> Result<(), String>,
    /// See [`Vendor::own_variables`].
    pub(super) own_variables: fn(&SwitchState) -> Vec<(&'static str, Value)>,
}

impl Vendor for ScriptedBridge {
    fn language(&self) -> &'static Language {
        self.language
    }

    fn port_name(&self, _model: &SwitchModel, port: PortNumber) -> String {
        port_interface(port)
    }

    fn bundle_name(&self, number: u16) -> String {
        bundle_interface(number)
    }

    /// The plain bridge of all ports that a site would begin with, on a machine that is reached by
    /// other ways.
    fn factory(&self, model: &SwitchModel) -> SwitchState {
        SwitchState::unmanaged(state::all_in_default_vlan(model, self.takes_tagged, false))
    }

    /// A machine without a bridge.
    fn blank(&self, _model: &SwitchModel) -> SwitchState {
        SwitchState::unmanaged(state::without_ports())
    }

    /// Both bridges put a frame without a tag into a VLAN that the port is a member of, or drop it.
    fn check_port(&self, port: &PortSettings) -> Result<(), String> {
        (self.check_port)(port)?;
        if port.pvid.is_some_and(|vlan| !port.is_member(vlan)) {
            return Err(
                "the VLAN of frames without a tag is one that the port is not a member of".into()
            );
        }
        Ok(())
    }

    fn check_switch(&self, settings: &SwitchSettings) -> Result<(), String> {
        (self.check_switch)(settings)
    }

    fn own_variables(&self, after: &SwitchState) -> Vec<(&'static str, Value)> {
        (self.own_variables)(after)
    }

    fn tolerant(&self, text: String) -> String {
        tolerant(&text)
    }
}

/// What the commands of Linux machines have in common: scripts, in which a VLAN is there as long as a
/// port is in it.
pub(super) const fn language(
    name: &'static str,
    models: &'static [ModelFacts],
    template: &'static str,
    read: Read,
) -> Language {
    Language { name, models, template, delivery: Delivery::Script, defines_vlans: false, read }
}

/// The Linux interface of a port: `swp7`.
pub fn port_interface(port: PortNumber) -> String {
    format!("swp{port}")
}

/// The Linux interface of the bundle with this number: `bond1`. Bundles of a switch are numbered
/// from 1 in the order of [`SwitchSettings::ports`](crate::SwitchSettings::ports).
pub fn bundle_interface(number: u16) -> String {
    format!("bond{number}")
}

/// The number of the port with this Linux interface.
pub(super) fn interface_port(name: &str) -> Option<PortNumber> {
    decimal(name.strip_prefix("swp")?).map(PortNumber)
}

/// The number of the bundle with this Linux interface.
pub(super) fn interface_bundle(name: &str) -> Option<u16> {
    decimal(name.strip_prefix("bond")?)
}

/// A number above 0 as it is written in names: without zeros in front.
pub(super) fn decimal(text: &str) -> Option<u16> {
    let number: u16 = text.parse().ok().filter(|&number| number > 0)?;
    (number.to_string() == text).then_some(number)
}

/// A script that goes on past commands that fail.
fn tolerant(script: &str) -> String {
    script
        .replace("set -e\n", "")
        .replace("\nip -batch -", "\nip -force -batch -")
        .replace("\nbridge -batch -", "\nbridge -force -batch -")
}
