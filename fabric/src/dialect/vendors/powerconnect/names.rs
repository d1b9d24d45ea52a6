//! What a PowerConnect calls its ports: `1/g7`, `1/xg1`.

use crate::PortNumber;
use crate::dialect::linux::decimal;
use crate::dialect::typed;

/// Ports above this are the 10 Gbit/s ports, `1/xg1` and on.
const GIGABIT_PORTS: u16 = 48;

/// The name of a port.
pub(super) fn port_name(port: PortNumber) -> String {
    match port.0.checked_sub(GIGABIT_PORTS) {
        Some(ten) if ten > 0 => format!("1/xg{ten}"),
        _ => format!("1/g{port}"),
    }
}

/// The port with this name.
pub(super) fn port_named(name: &str) -> Option<PortNumber> {
    let name = name.strip_prefix("1/")?;
    if let Some(text) = name.strip_prefix('g') {
        return decimal(text).filter(|&port| port <= GIGABIT_PORTS).map(PortNumber);
    }
    decimal(name.strip_prefix("xg")?)?.checked_add(GIGABIT_PORTS).map(PortNumber)
}

/// The ports as one argument: `1/g1,1/g3-1/g5`. A span stays within the ports of one kind.
pub(super) fn port_list(ports: &[PortNumber]) -> String {
    let spans = typed::spans(ports, |port| port.0 > GIGABIT_PORTS);
    let parts: Vec<String> = spans
        .into_iter()
        .map(|(first, last)| match first == last {
            true => port_name(first),
            false => format!("{}-{}", port_name(first), port_name(last)),
        })
        .collect();
    parts.join(",")
}
