//! What the dialects call ports and bundles, and lists of them.

use super::Dialect;
use crate::{PortNumber, SwitchModel};

/// Ports of the PowerConnect 6248 above this are its 10 Gbit/s ports, `1/xg1` and on.
const GIGABIT_PORTS: u16 = 48;

/// The Linux interface of a port: `swp7`. Bridges, Open vSwitch and the lab share this rule.
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
    number(name.strip_prefix("swp")?).map(PortNumber)
}

/// The number of the bundle with this Linux interface.
pub(super) fn interface_bundle(name: &str) -> Option<u16> {
    number(name.strip_prefix("bond")?)
}

/// A number above 0 as it is written: without zeros in front.
fn number(text: &str) -> Option<u16> {
    let number: u16 = text.parse().ok().filter(|&number| number > 0)?;
    (number.to_string() == text).then_some(number)
}

/// What the dialect calls a port.
pub(super) fn port_name(dialect: Dialect, port: PortNumber) -> String {
    match dialect {
        Dialect::PowerConnect if port.0 > GIGABIT_PORTS => {
            format!("1/xg{}", port.0 - GIGABIT_PORTS)
        }
        Dialect::PowerConnect => format!("1/g{port}"),
        _ => port_interface(port),
    }
}

/// What the agent of a switch calls a port (`ifName`): as its dialect does, `swp7` where none is known.
pub fn interface_name(model: &SwitchModel, port: PortNumber) -> String {
    port_name(Dialect::of_model(model).unwrap_or(Dialect::LinuxBridge), port)
}

/// The port of a PowerConnect with this name: `1/g7`, `1/xg1`.
pub(super) fn fastpath_port(name: &str) -> Option<PortNumber> {
    let name = name.strip_prefix("1/")?;
    if let Some(text) = name.strip_prefix('g') {
        return number(text).filter(|&port| port <= GIGABIT_PORTS).map(PortNumber);
    }
    number(name.strip_prefix("xg")?)?.checked_add(GIGABIT_PORTS).map(PortNumber)
}

/// The ports as FASTPATH lists them: `1/g1,1/g3-1/g5`.
pub(super) fn fastpath_list(ports: &[PortNumber]) -> String {
    let name = |port| port_name(Dialect::PowerConnect, port);
    let mut list: Vec<String> = Vec::new();
    let mut rest = ports;
    while let [first, ..] = rest {
        // A span stays within the ports of one kind.
        let follows = |at: &usize| {
            let expected = usize::from(first.0) + at;
            usize::from(rest[*at].0) == expected
                && (rest[*at].0 > GIGABIT_PORTS) == (first.0 > GIGABIT_PORTS)
        };
        let run = (0..rest.len()).take_while(follows).count();
        list.push(match run {
            1 => name(*first),
            _ => format!("{}-{}", name(*first), name(rest[run - 1])),
        });
        rest = &rest[run..];
    }
    list.join(",")
}
