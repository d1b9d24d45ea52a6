//! What a dialect cannot say, told before a text is made.

use super::Dialect;
use super::render_error::RenderError;
use super::state::SwitchState;
use super::vendors::Vendor;
use crate::{PortSettings, Switch, Vlan};

/// The vendor in whose commands all of the state can be said.
pub(super) fn check(
    dialect: Dialect,
    switch: &Switch,
    state: &SwitchState,
) -> Result<&'static dyn Vendor, RenderError> {
    for port in &state.settings.ports {
        check_port(dialect, switch, port)
            .and_then(|()| defined(state, port))
            .map_err(|problem| unsupported(switch, Some(port), problem))?;
    }
    check_switch(dialect, switch, state).map_err(|problem| unsupported(switch, None, problem))
}

fn unsupported(switch: &Switch, port: Option<&PortSettings>, problem: String) -> RenderError {
    let port = port.and_then(|port| port.ports.first());
    RenderError::Unsupported {
        switch: switch.name.clone(),
        port: port.map_or_else(String::new, |port| format!(", port {port}")),
        problem,
    }
}

fn check_switch(
    dialect: Dialect,
    switch: &Switch,
    state: &SwitchState,
) -> Result<&'static dyn Vendor, String> {
    let vendor = dialect
        .vendor()
        .map_err(|refusal| format!("texts of {dialect} are not made; {}", refusal.not_made))?;
    vendor.check_switch(&state.settings)?;
    let mut usable = switch.model.vlan_ids.clone();
    usable.insert(Vlan::DEFAULT);
    match state.settings.vlans.difference(&usable).iter().next() {
        Some(vlan) => {
            Err(format!("{} has no VLAN {vlan}; allowed are {usable}", switch.model.name))
        }
        None => Ok(vendor),
    }
}

fn check_port(dialect: Dialect, switch: &Switch, port: &PortSettings) -> Result<(), String> {
    if port.ports.is_empty() || (port.ports.len() > 1 && port.bundle.is_none()) {
        return Err("several ports that are no bundle".into());
    }
    if let Some(beyond) = port.ports.iter().find(|one| one.0 == 0 || one.0 > switch.model.ports) {
        return Err(format!(
            "port {beyond}: {} has {} ports",
            switch.model.name, switch.model.ports
        ));
    }
    let vendor = dialect.vendor();
    if port.untagged.len() > 1 && (!switch.model.multi_untagged || vendor.is_err()) {
        return Err(format!(
            "a port of {} can be an untagged member of one VLAN only, so frames of the others ({}) \
             would reach the host with a tag; a fabric needs ports such as FASTPATH's general mode, \
             Comware's hybrid ports or a Linux bridge",
            switch.model.name, port.untagged
        ));
    }
    if !port.untagged.intersection(&port.tagged).is_empty() {
        return Err("a VLAN both tagged and untagged".into());
    }
    vendor.map_or(Ok(()), |vendor| vendor.check_port(port))
}

/// Whether the VLANs of a port are defined.
fn defined(state: &SwitchState, port: &PortSettings) -> Result<(), String> {
    let mut needed = port.members();
    needed.extend(port.pvid);
    let missing = needed.difference(&state.settings.vlans);
    match missing.iter().find(|vlan| *vlan != Vlan::DEFAULT) {
        Some(vlan) => Err(format!("VLAN {vlan} is not defined")),
        None => Ok(()),
    }
}
