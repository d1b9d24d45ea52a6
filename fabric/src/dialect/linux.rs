//! What the Linux machines have in common: names of interfaces, and scripts.
//!
//! Linux bridges, Open vSwitch and the lab share these names.

use super::vendors::{Delivery, Language, Read};
use crate::model::ModelFacts;
use crate::{PortNumber, PortSettings};

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
pub(super) fn tolerant(script: &str) -> String {
    script
        .replace("set -e\n", "")
        .replace("\nip -batch -", "\nip -force -batch -")
        .replace("\nbridge -batch -", "\nbridge -force -batch -")
}

/// Both bridges put a frame without a tag into a VLAN that the port is a member of, or drop it.
pub(super) fn check_pvid(port: &PortSettings) -> Result<(), String> {
    if port.pvid.is_some_and(|vlan| !port.is_member(vlan)) {
        return Err(
            "the VLAN of frames without a tag is one that the port is not a member of".into()
        );
    }
    Ok(())
}
