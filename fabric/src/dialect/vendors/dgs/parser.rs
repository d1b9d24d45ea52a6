//! Reads what is typed into a DGS switch, or its running configuration.

use super::PORTS;
use crate::dialect::reading::{Line, ParseError};
use crate::dialect::state::{AGEING, SwitchState};
use crate::dialect::typed::{Grammar, Interfaces, Maker, Mode, Prompt, TypedSwitch};
use crate::{SwitchModel, Vlan};

static MAKER: Maker = Maker {
    defined_where: "",
    bundle: "port-channel ",
    modes: ["switchport mode access", "switchport mode hybrid"],
    lacp: "active",
    forgets_modes: true,
    begins_general: false,
    drops_by_pvid: false,
    ignored: &[
        "snmp-server",
        "username",
        "logging",
        "sntp",
        "clock",
        "ip default-gateway",
        "ip route",
        "ip http",
        "ip ssh",
        "ip telnet",
        "ip domain",
        "ip name-server",
        "no ip http",
        "lldp",
        "no lldp",
        "spanning-tree mode",
        "enable password",
        "service",
        "ssh",
        "hostname",
        "ddp",
        "jumbo-frame",
        "spanning-tree priority",
    ],
    ignored_of_interface: &[
        "description",
        "spanning-tree portfast",
        "spanning-tree cost",
        "lldp",
        "no lldp",
        "mtu",
        "max-rcv-frame-size",
        "speed",
        "duplex",
        "storm-control",
        "ingress-checking",
        "spanning-tree state",
    ],
};

static GRAMMAR: Grammar =
    Grammar { shows_configured: true, ..Grammar::usual(&MAKER, global, interface, of_interface) };

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
        ["spanning-tree", "global", "state", state @ ("enable" | "disable")] => {
            switch.set_spanning_tree(*state == "enable");
        }
        ["mac-address-table", "aging-time", "0"] => switch.ageing = None,
        ["mac-address-table", "aging-time", span] => {
            switch.ageing = Some(TypedSwitch::ageing(line, line.number(span)?)?);
        }
        ["no", "mac-address-table", "aging-time"] => switch.ageing = Some(AGEING),
        ["line", ..] => return Ok(Mode::Apart),
        _ => switch.ignored(line)?,
    }
    Ok(Mode::Global)
}

fn interface(prompt: &mut Prompt<'_>, line: Line<'_>, words: &[&str]) -> Result<Mode, ParseError> {
    match words {
        ["vlan", vlan] => prompt.enter_vlan_interface(line, vlan),
        ["mgmt", _] => Ok(Mode::Apart),
        ["port-channel", number] => prompt.enter_bundles(line, number),
        [one] => match one.strip_prefix("vlan") {
            Some(vlan) => prompt.enter_vlan_interface(line, vlan),
            None => prompt.enter_ports(line, one, |_, part| PORTS.span(part)),
        },
        ["ethernet", list] | ["range", "ethernet", list] => {
            prompt.enter_ports(line, list, |_, part| PORTS.span(part))
        }
        ["range", list] => prompt.enter_ports(line, list, |_, part| PORTS.span(part)),
        _ => Err(line.wrong(
            "is no interface; allowed are `eth1/0/1`, `ethernet 1/0/1`, `range ethernet 1/0/1-4`, \
             `port-channel 1` and `vlan 101`",
        )),
    }
}

fn of_interface(prompt: &mut Prompt<'_>, line: Line<'_>, words: &[&str]) -> Result<(), ParseError> {
    let switch = &mut prompt.switch;
    let bundles = matches!(switch.interfaces, Some(Interfaces::Bundles(_)));
    match words {
        ["switchport", "mode", "access"] | ["no", "switchport", "mode"] => switch.enter_mode(false),
        ["switchport", "mode", "hybrid"] => switch.enter_mode(true),
        ["switchport", "access", "vlan", vlan] => switch.access(line, line.vlan(vlan)?)?,
        ["switchport", "hybrid", "native", "vlan", vlan] => switch.pvid(line, line.vlan(vlan)?)?,
        ["no", "switchport", "hybrid", "native", "vlan"] => switch.pvid(line, Vlan::DEFAULT)?,
        ["switchport", "hybrid", "allowed", "vlan", "add", how @ ("tagged" | "untagged"), list] => {
            switch.add(line, &line.vlans(list)?, *how == "tagged")?;
        }
        ["switchport", "hybrid", "allowed", "vlan", "remove", list] => {
            switch.remove(line, &line.vlans(list)?)?;
        }
        ["acceptable-frame", "tagged-only"] => switch.tagged_only(line, true)?,
        ["acceptable-frame", "admit-all"] | ["no", "acceptable-frame"] => {
            switch.admit_all();
        }
        // An access port takes nothing else.
        ["acceptable-frame", "untagged-only"] => switch.only_access(line)?,
        ["channel-group", number, "mode", mode] if !bundles => {
            let number = line.number(number)?;
            let bundling = switch.mode_of_group(line, mode)?;
            switch.join_bundle(line, number, bundling)?;
        }
        ["no", "channel-group"] if !bundles => switch.leave_bundle(),
        ["flowcontrol", state @ ("on" | "off")] if !bundles => switch.pause(*state == "on"),
        ["shutdown"] => switch.open(false),
        ["no", "shutdown"] => switch.open(true),
        _ => switch.ignored_of_interface(line)?,
    }
    Ok(())
}
