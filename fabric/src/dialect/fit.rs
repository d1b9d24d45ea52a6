//! What a dialect cannot say, told before a text is made.

use super::Dialect;
use super::fastpath;
use super::state::SwitchState;
use super::templates::RenderError;
use crate::{PortSettings, Switch, Vlan, VlanSet};

/// Whether the dialect can say all of the state.
pub(super) fn check(
    dialect: Dialect,
    switch: &Switch,
    state: &SwitchState,
) -> Result<(), RenderError> {
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

fn check_switch(dialect: Dialect, switch: &Switch, state: &SwitchState) -> Result<(), String> {
    let settings = &state.settings;
    let seconds = settings.ageing.map(|span| (span.get() / 1_000_000_000, span));
    match (dialect, seconds) {
        (Dialect::CiscoIos | Dialect::AristaEos, _) => Err(format!(
            "texts of {dialect} are not made; its access ports cannot be what a fabric needs"
        )),
        (Dialect::PowerConnect, None) => Err("a PowerConnect forgets addresses always".into()),
        (Dialect::PowerConnect, Some((seconds, span)))
            if !fastpath::AGEING_S.contains(&seconds) || span.get() % 1_000_000_000 != 0 =>
        {
            Err(format!("an ageing time of {span}: allowed are 10 to 1000000 whole seconds"))
        }
        (Dialect::LinuxBridge, None) => Err("a Linux bridge forgets addresses always".into()),
        (Dialect::LinuxBridge, Some((_, span))) if span.get() % 10_000_000 != 0 => {
            Err(format!("an ageing time of {span}: allowed are whole hundredths of a second"))
        }
        (Dialect::OpenVswitch, Some((seconds, span)))
            if !(1..=65_535).contains(&seconds) || span.get() % 1_000_000_000 != 0 =>
        {
            Err(format!("an ageing time of {span}: allowed are 1 to 65535 whole seconds, or never"))
        }
        _ => Ok(()),
    }?;
    let mut pauses = settings.ports.iter().map(|port| port.flow_control);
    let first = pauses.next();
    if dialect == Dialect::PowerConnect && pauses.any(|pause| Some(pause) != first) {
        return Err("a PowerConnect has flow control on all ports or on none".into());
    }
    let mut usable = switch.model.vlan_ids.clone();
    usable.insert(Vlan::DEFAULT);
    match settings.vlans.difference(&usable).iter().next() {
        Some(vlan) => {
            Err(format!("{} has no VLAN {vlan}; allowed are {usable}", switch.model.name))
        }
        None => Ok(()),
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
    if port.untagged.len() > 1 && !switch.model.multi_untagged
        || port.untagged.len() > 1 && matches!(dialect, Dialect::CiscoIos | Dialect::AristaEos)
    {
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
    let alone = port.pvid.is_some()
        && port.tagged.is_empty()
        && port.untagged == VlanSet::from_iter(port.pvid);
    match dialect {
        Dialect::PowerConnect if !port.accept_tagged && !alone => Err(
            "a PowerConnect drops tagged frames in access mode only, which is one VLAN, untagged"
                .into(),
        ),
        Dialect::LinuxBridge if !port.accept_tagged => {
            Err("a Linux bridge takes tagged frames of every VLAN that a port is in".into())
        }
        Dialect::LinuxBridge | Dialect::OpenVswitch
            if port.pvid.is_some_and(|vlan| !port.is_member(vlan)) =>
        {
            Err("the VLAN of frames without a tag is one that the port is not a member of".into())
        }
        Dialect::OpenVswitch if port.accept_tagged && port.members().is_empty() => {
            Err("flows that take tags of no VLAN are none".into())
        }
        Dialect::OpenVswitch if port.bundle.is_some() => Err(
            "Open vSwitch spreads frames over a bundle only without flows, and flows are needed \
                 here; use single links, or the dialect `linux-bridge`"
                .into(),
        ),
        _ => Ok(()),
    }
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
