//! Reads what is typed into a `JetStream` switch, or its running configuration, in which `#` and `!` are
//! between parts.

use std::ops::RangeInclusive;

use super::PORTS;
use crate::SwitchModel;
use crate::dialect::reading::{Line, ParseError};
use crate::dialect::state::{AGEING, SwitchState};
use crate::dialect::typed::{Grammar, Interfaces, Maker, Mode, Prompt, TypedSwitch};

/// Spans after which addresses may be forgotten, in seconds.
pub(super) const AGEING_S: RangeInclusive<u64> = 10..=630;

static MAKER: Maker = Maker {
    defined_where: "",
    bundle: "port-channel ",
    modes: ["", ""],
    lacp: "active",
    forgets_modes: false,
    begins_general: true,
    drops_by_pvid: false,
    ignored: &[
        "hostname",
        "user",
        "snmp-server",
        "logging",
        "system-time",
        "ip ssh",
        "telnet",
        "ip http",
        "ip route",
        "lldp",
        "spanning-tree mode",
        "spanning-tree priority",
        "contact-info",
        "location",
        "serial_port",
        "controller",
        "no controller",
        "ip management-vlan 1",
    ],
    ignored_of_interface: &[
        "description",
        "spanning-tree",
        "no spanning-tree",
        "lldp",
        "speed",
        "duplex",
        "storm-control",
        "switchport check ingress",
        "power",
    ],
};

static GRAMMAR: Grammar = Grammar {
    comment: &['#', '!'],
    shows_configured: true,
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

fn global(prompt: &mut Prompt<'_>, line: Line<'_>, words: &[&str]) -> Result<Mode, ParseError> {
    if let Some(mode) = prompt.of_vlans(line, words)? {
        return Ok(mode);
    }
    let switch = &mut prompt.switch;
    match words {
        ["spanning-tree"] => switch.set_spanning_tree(true),
        ["no", "spanning-tree"] => switch.set_spanning_tree(false),
        ["mac", "address-table", "aging-time", "0"] => switch.ageing = None,
        ["mac", "address-table", "aging-time", span] => {
            switch.ageing = Some(TypedSwitch::ageing_within(line, line.number(span)?, &AGEING_S)?);
        }
        ["no", "mac", "address-table", "aging-time"] => switch.ageing = Some(AGEING),
        _ => switch.ignored(line)?,
    }
    Ok(Mode::Global)
}

fn interface(prompt: &mut Prompt<'_>, line: Line<'_>, words: &[&str]) -> Result<Mode, ParseError> {
    match words {
        ["vlan", vlan] => prompt.enter_vlan_interface(line, vlan),
        ["port-channel", list] | ["range", "port-channel", list] => {
            prompt.enter_bundles(line, list)
        }
        ["gigabitEthernet", list] | ["range", "gigabitEthernet", list] => {
            prompt.enter_ports(line, list, |_, part| PORTS.span(part))
        }
        _ => Err(line.wrong(
            "is no interface; allowed are `gigabitEthernet 1/0/1`, `range gigabitEthernet 1/0/1-4`, \
             `port-channel 1` and `vlan 101`",
        )),
    }
}

fn of_interface(prompt: &mut Prompt<'_>, line: Line<'_>, words: &[&str]) -> Result<(), ParseError> {
    let switch = &mut prompt.switch;
    let bundles = matches!(switch.interfaces, Some(Interfaces::Bundles(_)));
    match words {
        ["switchport", "general", "allowed", "vlan", list, how @ ("tagged" | "untagged")] => {
            switch.add(line, &line.vlans(list)?, *how == "tagged")?;
        }
        ["no", "switchport", "general", "allowed", "vlan", list] => {
            switch.remove(line, &line.vlans(list)?)?;
        }
        ["switchport", "pvid", vlan] => switch.pvid(line, line.vlan(vlan)?)?,
        ["switchport", "acceptable", "frame", "tagged"] => switch.tagged_only(line, true)?,
        ["switchport", "acceptable", "frame", "all"]
        | ["no", "switchport", "acceptable", "frame"] => {
            switch.tagged_only(line, false)?;
        }
        ["channel-group", number, "mode", mode] if !bundles => {
            let number = line.number(number)?;
            let bundling = switch.mode_of_group(line, mode)?;
            switch.join_bundle(line, number, bundling)?;
        }
        ["no", "channel-group"] if !bundles => switch.leave_bundle(),
        ["flow-control"] if !bundles => switch.pause(true),
        ["no", "flow-control"] if !bundles => switch.pause(false),
        ["shutdown"] => switch.open(false),
        ["no", "shutdown"] => switch.open(true),
        _ => switch.ignored_of_interface(line)?,
    }
    Ok(())
}
