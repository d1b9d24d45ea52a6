//! Reads what is typed into a Dell PowerConnect 6200 (FASTPATH), or its running configuration.
//!
//! The parser is the switch as far as VLANs go: it starts from a state, carries out line by line,
//! and refuses what the switch would refuse. Entering another mode resets what was set for the mode
//! before, as the switch does.

use super::names::port_named;
use crate::dialect::reading::{Line, ParseError};
use crate::dialect::state::{AGEING, SwitchState};
use crate::dialect::typed::{Grammar, Maker, Mode, Prompt, TypedSwitch};
use crate::{PortNumber, SwitchModel, Vlan};

/// What its commands are where FASTPATH's makers differ.
static MAKER: Maker = Maker {
    defined_where: " in `vlan database`",
    bundle: "port-channel ",
    modes: ["switchport mode access", "switchport mode general"],
    lacp: "auto",
    forgets_modes: true,
    begins_general: false,
    drops_by_pvid: false,
    ignored: &[
        "hostname",
        "username",
        "snmp-server",
        "logging",
        "sntp",
        "clock",
        "ip address",
        "no ip address",
        "ip default-gateway",
        "ip domain",
        "ip name-server",
        "ip ssh",
        "ip telnet",
        "ip http",
        "crypto",
        "switch",
        "lldp",
        "spanning-tree mode",
        "spanning-tree priority",
    ],
    ignored_of_interface: &[
        "description",
        "spanning-tree portfast",
        "lldp",
        "mtu",
        "speed",
        "negotiation",
        "hashing-mode",
        "storm-control",
        "spanning-tree cost",
    ],
};

static GRAMMAR: Grammar = Grammar {
    database,
    of_vlan,
    ..Grammar::usual(&MAKER, global, interface, |prompt, line, words| {
        prompt.switch.of_interface(line, words)
    })
};

/// The state after the text.
pub(super) fn read(
    model: &SwitchModel,
    before: &SwitchState,
    text: &str,
) -> Result<SwitchState, ParseError> {
    let ageing = before.settings.ageing.or(Some(AGEING));
    let mut before = before.clone();
    before.settings.ageing = ageing;
    Prompt::read(&GRAMMAR, model, &before, text)
}

fn global(prompt: &mut Prompt<'_>, line: Line<'_>, words: &[&str]) -> Result<Mode, ParseError> {
    let switch = &mut prompt.switch;
    match words {
        ["vlan", "database"] => return Ok(Mode::Database),
        // Which members a stack has.
        ["stack"] => return Ok(Mode::Apart),
        ["bridge", "aging-time", span] => {
            switch.ageing = Some(TypedSwitch::ageing(line, line.number(span)?)?);
        }
        ["no", "bridge", "aging-time"] => switch.ageing = Some(AGEING),
        ["ip", "address", "vlan", vlan] => {
            let vlan = line.vlan(vlan)?;
            switch.defined(line, vlan)?;
            switch.management = Some(vlan);
        }
        ["no", "ip", "address", "vlan", ..] => {
            let way = "name the VLAN that is to be managed in: `ip address vlan 4000`";
            return Err(line.wrong(format!("moves the manager to VLAN 1; {way}")));
        }
        _ => switch.global(line, words)?,
    }
    Ok(Mode::Global)
}

fn database(prompt: &mut Prompt<'_>, line: Line<'_>, words: &[&str]) -> Result<(), ParseError> {
    match words {
        ["vlan", list] => prompt.switch.define(line, list),
        ["no", "vlan", list] => prompt.switch.undefine(line, list).map(drop),
        ["vlan", "name", ..] => Ok(()),
        _ => Err(line.wrong("is not understood in the VLAN database")),
    }
}

/// Names and addresses: the switch is managed in the VLAN of `ip address vlan`.
fn of_vlan(
    _prompt: &mut Prompt<'_>,
    line: Line<'_>,
    _vlan: Vlan,
    words: &[&str],
) -> Result<(), ParseError> {
    match words {
        ["ip" | "routing", ..] => Ok(()),
        _ => Err(line.wrong("is not understood for `interface vlan`; allowed are `name`, `ip`")),
    }
}

fn interface(prompt: &mut Prompt<'_>, line: Line<'_>, words: &[&str]) -> Result<Mode, ParseError> {
    match words {
        ["vlan", vlan] => prompt.enter_vlan_interface(line, vlan),
        ["ethernet", list] | ["range", "ethernet", list] => {
            prompt.enter_ports(line, list, |_, part| ports_named(part))
        }
        ["port-channel", list] | ["range", "port-channel", list] => {
            prompt.enter_bundles(line, list)
        }
        _ => Err(line.wrong(
            "is no interface; allowed are `ethernet 1/g1`, `port-channel 1`, `range ethernet \
             1/g1-1/g4` and `vlan 101`",
        )),
    }
}

/// The ports of a part of a list, the first and the last.
fn ports_named(part: &str) -> Option<(PortNumber, PortNumber)> {
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    Some((port_named(first)?, port_named(last)?))
}
