//! Reads what is typed into a Comware switch, or its running configuration (`display
//! current-configuration`), in which a line with `#` ends what an interface is told.

use std::ops::RangeInclusive;

use super::PORTS;
use crate::dialect::reading::{Line, ParseError};
use crate::dialect::state::{AGEING, SwitchState};
use crate::dialect::typed::{Grammar, Interfaces, Maker, Mode, Prompt, TypedSwitch};
use crate::{Bundling, SwitchModel, Vlan, VlanSet};

/// Spans after which addresses may be forgotten, in seconds.
pub(super) const AGEING_S: RangeInclusive<u64> = 10..=1_000_000;

static MAKER: Maker = Maker {
    defined_where: "",
    bundle: "Bridge-Aggregation",
    modes: ["port link-type access", "port link-type hybrid"],
    lacp: "dynamic",
    forgets_modes: true,
    begins_general: false,
    drops_by_pvid: true,
    ignored: &[
        "version",
        "sysname",
        "clock",
        "ntp-service",
        "snmp-agent",
        "info-center",
        "lldp",
        "irf",
        "telnet",
        "ssh",
        "public-key",
        "ip route-static",
        "ip http",
        "ip https",
        "dhcp",
        "stp mode",
        "stp priority",
        "stp instance",
        "password-control",
        "header",
        "ftp",
        "super",
        "undo snmp-agent",
        "undo ip http",
    ],
    ignored_of_interface: &[
        "port link-mode bridge",
        "description",
        "stp edged-port",
        "stp cost",
        "lldp",
        "speed",
        "duplex",
        "broadcast-suppression",
        "multicast-suppression",
        "unicast-suppression",
        "jumboframe",
        "combo",
    ],
};

static GRAMMAR: Grammar = Grammar {
    comment: &['#'],
    configure: "system-view",
    shows_configured: true,
    exit: "quit",
    end: "return",
    ..Grammar::usual(&MAKER, global, interface, of_interface)
};

/// The state after the text.
pub(super) fn read(
    model: &SwitchModel,
    before: &SwitchState,
    text: &str,
) -> Result<SwitchState, ParseError> {
    Prompt::read(&GRAMMAR, model, before, text)
}

/// A list of VLANs in words: `101 to 104 110`.
fn vlans(line: Line<'_>, words: &[&str]) -> Result<VlanSet, ParseError> {
    let mut list = VlanSet::EMPTY;
    let mut rest = words;
    loop {
        let (first, last, left) = match rest {
            [] if words.is_empty() => return Err(line.wrong("lacks a VLAN")),
            [] => return Ok(list),
            [first, "to", last, left @ ..] => (line.vlan(first)?, line.vlan(last)?, left),
            [one, left @ ..] => (line.vlan(one)?, line.vlan(one)?, left),
        };
        if last < first {
            return Err(line.wrong(format!("{first} to {last} is no range")));
        }
        list.extend((first.id()..=last.id()).filter_map(Vlan::new));
        rest = left;
    }
}

fn global(prompt: &mut Prompt<'_>, line: Line<'_>, words: &[&str]) -> Result<Mode, ParseError> {
    let switch = &mut prompt.switch;
    match words {
        // Only a single VLAN has a view of its own.
        ["vlan", one] => {
            switch.define_all(line, &VlanSet::from_iter([line.vlan(one)?]))?;
            return Ok(Mode::Vlans);
        }
        ["vlan", list @ ..] => switch.define_all(line, &vlans(line, list)?)?,
        ["undo", "vlan", list @ ..] => prompt.undefine(&vlans(line, list)?),
        ["undo", "interface", "Vlan-interface", vlan] => {
            prompt.forget_addresses(&VlanSet::from_iter([line.vlan(vlan)?]));
        }
        ["stp", "global", "enable"] => switch.set_spanning_tree(true),
        ["undo", "stp", "global", "enable"] => switch.set_spanning_tree(false),
        ["mac-address", "timer", "no-aging"] => switch.ageing = None,
        ["mac-address", "timer", "aging", span] => {
            switch.ageing = Some(TypedSwitch::ageing_within(line, line.number(span)?, &AGEING_S)?);
        }
        ["undo", "mac-address", "timer"] => switch.ageing = Some(AGEING),
        // Accounts, terminals and roles, up to the end of their views.
        ["local-user" | "line" | "user-interface" | "domain" | "role" | "user-group", ..] => {
            return Ok(Mode::Apart);
        }
        _ => switch.ignored(line)?,
    }
    Ok(Mode::Global)
}

fn interface(prompt: &mut Prompt<'_>, line: Line<'_>, words: &[&str]) -> Result<Mode, ParseError> {
    let [name] = words else {
        return Err(line.wrong("names no interface, or several"));
    };
    if let Some(vlan) = name.strip_prefix("Vlan-interface") {
        return prompt.enter_vlan_interface(line, vlan);
    }
    if let Some(number) = name.strip_prefix("Bridge-Aggregation") {
        return prompt.enter_bundles(line, number);
    }
    if matches!(*name, "NULL0") || name.starts_with("M-GigabitEthernet") {
        return Ok(Mode::Apart);
    }
    prompt.enter_ports(line, name, |_, part| PORTS.span(part))
}

fn of_interface(prompt: &mut Prompt<'_>, line: Line<'_>, words: &[&str]) -> Result<(), ParseError> {
    let switch = &mut prompt.switch;
    let bundles = matches!(switch.interfaces, Some(Interfaces::Bundles(_)));
    match words {
        ["port", "link-type", "access"] | ["undo", "port", "link-type"] => switch.enter_mode(false),
        ["port", "link-type", "hybrid"] => switch.enter_mode(true),
        ["port", "access", "vlan", vlan] => switch.access(line, line.vlan(vlan)?)?,
        ["port", "hybrid", "pvid", "vlan", vlan] => switch.pvid(line, line.vlan(vlan)?)?,
        ["undo", "port", "hybrid", "pvid"] => switch.pvid(line, Vlan::DEFAULT)?,
        ["port", "hybrid", "vlan", list @ .., "untagged"] => {
            switch.add(line, &vlans(line, list)?, false)?;
        }
        ["port", "hybrid", "vlan", list @ .., "tagged"] => {
            switch.add(line, &vlans(line, list)?, true)?;
        }
        ["undo", "port", "hybrid", "vlan", list @ ..] => {
            switch.remove(line, &vlans(line, list)?)?
        }
        ["port", "link-aggregation", "group", number] if !bundles => {
            let number = line.number(number)?;
            let bundling = switch.bundling_of(number);
            switch.join_bundle(line, number, bundling)?;
        }
        ["undo", "port", "link-aggregation", "group"] if !bundles => switch.leave_bundle(),
        ["link-aggregation", "mode", "dynamic"] if bundles => switch.bundling(Bundling::Lacp),
        ["undo", "link-aggregation", "mode"] if bundles => switch.bundling(Bundling::Static),
        ["flow-control"] if !bundles => switch.pause(true),
        ["undo", "flow-control"] if !bundles => switch.pause(false),
        ["shutdown"] => switch.open(false),
        ["undo", "shutdown"] => switch.open(true),
        _ => switch.ignored_of_interface(line)?,
    }
    Ok(())
}
