//! Reads what is typed into an N-series switch (DNOS 6), or its running configuration.
//!
//! The parser is the switch as far as VLANs go: it starts from a state, carries out line by line, and
//! refuses what the switch would refuse. A port keeps what was set for a mode when it enters another
//! one. The switch is managed in the VLAN whose interface has an address; where two have one, frames
//! could be routed past their VLANs, which is refused.

use super::names::ports_named;
use crate::SwitchModel;
use crate::dialect::reading::{Line, ParseError};
use crate::dialect::state::{AGEING, SwitchState};
use crate::dialect::typed::{Grammar, Maker, Mode, Prompt, TypedSwitch};

/// What its commands are where FASTPATH's makers differ.
static MAKER: Maker = Maker {
    defined_where: "",
    bundle: "port-channel ",
    modes: ["switchport mode access", "switchport mode general"],
    lacp: "active",
    forgets_modes: false,
    begins_general: false,
    drops_by_pvid: false,
    ignored: &[
        "hostname",
        "username",
        "aaa",
        "snmp-server",
        "logging",
        "sntp",
        "clock",
        "ip default-gateway",
        "ip domain",
        "ip name-server",
        "ip route",
        "ip routing",
        "ip ssh",
        "ip telnet",
        "ip http",
        "no ip http",
        "crypto",
        "slot",
        "switch",
        "lldp",
        "isdp",
        "spanning-tree mode",
        "spanning-tree priority",
        "enable password",
    ],
    ignored_of_interface: &[
        "description",
        "spanning-tree portfast",
        "spanning-tree cost",
        "lldp",
        "isdp",
        "mtu",
        "speed",
        "negotiation",
        "hashing-mode",
        "storm-control",
    ],
};

static GRAMMAR: Grammar = Grammar::usual(&MAKER, global, interface, |prompt, line, words| {
    prompt.switch.of_interface(line, words)
});

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
        // Which members a stack has, and how people reach the switch past its ports.
        ["stack"] | ["line", "console" | "telnet" | "ssh"] => return Ok(Mode::Apart),
        ["mac", "address-table", "aging-time", "0"] => switch.ageing = None,
        ["mac", "address-table", "aging-time", span] => {
            switch.ageing = Some(TypedSwitch::ageing(line, line.number(span)?)?);
        }
        ["no", "mac", "address-table", "aging-time"] => switch.ageing = Some(AGEING),
        _ => switch.global(line, words)?,
    }
    Ok(Mode::Global)
}

/// The number after the VLAN is an index that a running configuration shows.
fn interface(prompt: &mut Prompt<'_>, line: Line<'_>, words: &[&str]) -> Result<Mode, ParseError> {
    match words {
        ["vlan", vlan] | ["vlan", vlan, _] => prompt.enter_vlan_interface(line, vlan),
        ["out-of-band"] => Ok(Mode::Apart),
        ["port-channel", list] | ["range", "port-channel", list] => {
            prompt.enter_bundles(line, list)
        }
        ["range", list] | [list] => prompt.enter_ports(line, list, ports_named),
        // `interface gigabitethernet 1/0/1`
        ["range", kind, list] | [kind, list] => {
            prompt.enter_ports(line, &format!("{kind}{list}"), ports_named)
        }
        _ => Err(line.wrong(
            "is no interface; allowed are `Gi1/0/1`, `Te1/0/1`, `port-channel 1`, `range \
             Gi1/0/1-4` and `vlan 101`",
        )),
    }
}
