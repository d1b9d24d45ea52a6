//! Reads what is typed into a switch of Netgear's M4 series, or its running configuration.

use super::PORTS;
use crate::dialect::reading::{Line, ParseError};
use crate::dialect::state::{AGEING, SwitchState};
use crate::dialect::typed::{Grammar, Interfaces, Maker, Mode, Prompt, TypedSwitch};
use crate::{Bundling, SwitchModel, Vlan};

static MAKER: Maker = Maker {
    defined_where: " in `vlan database`",
    bundle: "lag ",
    modes: ["switchport mode access", "switchport mode general"],
    lacp: "",
    forgets_modes: false,
    begins_general: true,
    drops_by_pvid: false,
    ignored: &[
        "hostname",
        "username",
        "users",
        "aaa",
        "snmp-server",
        "logging",
        "sntp",
        "clock",
        "ip default-gateway",
        "ip domain",
        "ip name server",
        "ip route",
        "ip ssh",
        "ip telnet",
        "ip http",
        "no ip http",
        "crypto",
        "slot",
        "set slot",
        "network parms",
        "network protocol",
        "serviceport",
        "lldp",
        "isdp",
        "spanning-tree mode",
        "spanning-tree configuration",
        "spanning-tree forceversion",
        "no serial",
        "serial",
        "sshcon",
        "telnetcon",
    ],
    ignored_of_interface: &[
        "description",
        "spanning-tree",
        "no spanning-tree",
        "lldp",
        "isdp",
        "mtu",
        "speed",
        "auto-negotiate",
        "storm-control broadcast",
        "storm-control multicast",
        "storm-control unicast",
        "vlan ingressfilter",
        "port lacpmode",
        "hashing-mode",
        "port-channel load-balance",
        "no port lacpmode",
    ],
};

static GRAMMAR: Grammar = Grammar {
    database,
    database_first: true,
    of_exec: Some(of_exec),
    ..Grammar::usual(&MAKER, global, interface, of_interface)
};

/// The state after the text.
pub(super) fn read(
    model: &SwitchModel,
    before: &SwitchState,
    text: &str,
) -> Result<SwitchState, ParseError> {
    let mut before = before.clone();
    before.settings.ageing.get_or_insert(AGEING);
    Prompt::read(&GRAMMAR, model, &before, text)
}

/// What is typed before `configure`: the VLAN in which the switch is managed, and addresses.
fn of_exec(prompt: &mut Prompt<'_>, line: Line<'_>, words: &[&str]) -> Result<(), ParseError> {
    match words {
        ["network", "mgmt_vlan", vlan] => {
            let vlan = line.vlan(vlan)?;
            prompt.switch.defined(line, vlan)?;
            prompt.switch.management = Some(vlan);
            Ok(())
        }
        _ => prompt.switch.ignored(line),
    }
}

fn database(prompt: &mut Prompt<'_>, line: Line<'_>, words: &[&str]) -> Result<(), ParseError> {
    match words {
        ["vlan", "name", ..] => Ok(()),
        ["vlan", list] => prompt.switch.define(line, list),
        // The switch is reached in VLAN 1 again if the one goes in which it was managed.
        ["no", "vlan", list] => {
            let vlans = prompt.switch.undefine(line, list)?;
            let managed = prompt.switch.management;
            if managed.is_some_and(|vlan| vlans.contains(vlan)) {
                prompt.switch.management = Some(Vlan::DEFAULT);
            }
            Ok(())
        }
        _ => Err(line.wrong("is not understood in the VLAN database")),
    }
}

fn global(prompt: &mut Prompt<'_>, line: Line<'_>, words: &[&str]) -> Result<Mode, ParseError> {
    let switch = &mut prompt.switch;
    match words {
        ["spanning-tree"] => switch.set_spanning_tree(true),
        ["no", "spanning-tree"] => switch.set_spanning_tree(false),
        ["storm-control", "flowcontrol"] => switch.set_pause_of_all(true),
        ["no", "storm-control", "flowcontrol"] => switch.set_pause_of_all(false),
        ["bridge", "aging-time", span] => {
            switch.ageing = Some(TypedSwitch::ageing(line, line.number(span)?)?);
        }
        ["no", "bridge", "aging-time"] => switch.ageing = Some(AGEING),
        ["line", ..] => return Ok(Mode::Apart),
        _ => switch.ignored(line)?,
    }
    Ok(Mode::Global)
}

fn interface(prompt: &mut Prompt<'_>, line: Line<'_>, words: &[&str]) -> Result<Mode, ParseError> {
    match words {
        ["lag", number] => prompt.enter_bundles(line, number),
        ["vlan", _] => Ok(Mode::Apart),
        [list] => prompt.enter_ports(line, list, |_, part| PORTS.span(part)),
        _ => Err(line.wrong("is no interface; allowed are `1/0/1`, `1/0/1-1/0/4` and `lag 1`")),
    }
}

fn of_interface(prompt: &mut Prompt<'_>, line: Line<'_>, words: &[&str]) -> Result<(), ParseError> {
    let switch = &mut prompt.switch;
    let bundles = matches!(switch.interfaces, Some(Interfaces::Bundles(_)));
    match words {
        ["switchport", "mode", "access"] => switch.enter_mode(false),
        ["switchport", "mode", "general"] | ["no", "switchport", "mode"] => switch.enter_mode(true),
        ["switchport", "access", "vlan", vlan] => switch.access(line, line.vlan(vlan)?)?,
        ["vlan", "participation", "include", list] => switch.include(line, &line.vlans(list)?)?,
        ["vlan", "participation", "exclude", list] => switch.remove(line, &line.vlans(list)?)?,
        ["vlan", "tagging", list] => switch.tag(line, &line.vlans(list)?, true)?,
        ["no", "vlan", "tagging", list] => switch.tag(line, &line.vlans(list)?, false)?,
        ["vlan", "pvid", vlan] => switch.pvid(line, line.vlan(vlan)?)?,
        ["vlan", "acceptframe", "vlanonly"] => switch.tagged_only(line, true)?,
        ["vlan", "acceptframe", "all"] | ["no", "vlan", "acceptframe"] => switch.admit_all(),
        ["addport", "lag", number] if !bundles => {
            let number = line.number(number)?;
            let bundling = switch.bundling_of(number);
            switch.join_bundle(line, number, bundling)?;
        }
        ["deleteport", "lag", _] if !bundles => switch.leave_bundle(),
        ["port-channel", "static"] if bundles => switch.bundling(Bundling::Static),
        ["no", "port-channel", "static"] if bundles => switch.bundling(Bundling::Lacp),
        ["shutdown"] => switch.open(false),
        ["no", "shutdown"] => switch.open(true),
        _ => switch.ignored_of_interface(line)?,
    }
    Ok(())
}
