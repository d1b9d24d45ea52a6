//! Reads what is typed into a Dell PowerConnect 6200 (FASTPATH), or its running configuration.
//!
//! The parser is the switch as far as VLANs go: it starts from a state, carries out line by line,
//! and refuses what the switch would refuse. Entering another mode resets what was set for the mode
//! before, as the switch does.

use super::names::port_named;
use crate::dialect::fastpath::{Fastpath, Interfaces, Maker};
use crate::dialect::reading::{Line, ParseError, statements};
use crate::dialect::state::{AGEING, SwitchState};
use crate::{PortNumber, SwitchModel};

/// What its commands are where FASTPATH's makers differ.
static MAKER: Maker = Maker {
    defined_where: " in `vlan database`",
    lacp: "auto",
    forgets_modes: true,
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

/// What lines are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Before `configure`, and after the `exit` that ends it.
    Exec,
    Global,
    VlanDatabase,
    /// `stack`: which members there are.
    Stack,
    /// `interface vlan 101`: names and addresses.
    VlanInterface,
    /// `interface ethernet`, `interface port-channel`.
    Interface,
}

struct Machine<'a> {
    mode: Mode,
    switch: Fastpath<'a>,
}

/// The state after the text.
pub(super) fn read(
    model: &SwitchModel,
    before: &SwitchState,
    text: &str,
) -> Result<SwitchState, ParseError> {
    let mut switch = Fastpath::new(model, before, &MAKER);
    switch.ageing = switch.ageing.or(Some(AGEING));
    let mut machine = Machine { mode: Mode::Exec, switch };
    for line in statements(text, '!') {
        machine.carry_out(line)?;
    }
    machine.switch.state()
}

impl Machine<'_> {
    fn carry_out(&mut self, line: Line<'_>) -> Result<(), ParseError> {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        match (words.as_slice(), self.mode) {
            (["enable"], Mode::Exec) => Ok(()),
            (["configure"] | ["configure", "terminal"], Mode::Exec) => {
                self.mode = Mode::Global;
                Ok(())
            }
            (_, Mode::Exec) => Err(line.wrong("is refused before `configure`")),
            (["end"], _) | (["exit"], Mode::Global) => {
                self.mode = Mode::Exec;
                Ok(())
            }
            (["exit"], _) => {
                self.mode = Mode::Global;
                Ok(())
            }
            (["interface", rest @ ..], _) => self.interface(line, rest),
            (words, Mode::VlanDatabase) => self.vlan_database(line, words),
            (["member", ..], Mode::Stack) => Ok(()),
            (_, Mode::Stack) => {
                Err(line.wrong("is not understood for `stack`; allowed is `member`"))
            }
            (["name" | "ip" | "routing", ..], Mode::VlanInterface) => Ok(()),
            (_, Mode::VlanInterface) => {
                Err(line.wrong("is not understood for `interface vlan`; allowed are `name`, `ip`"))
            }
            (words, Mode::Interface) => self.switch.of_interface(line, words),
            (words, Mode::Global) => self.global(line, words),
        }
    }

    fn global(&mut self, line: Line<'_>, words: &[&str]) -> Result<(), ParseError> {
        match words {
            ["vlan", "database"] => self.mode = Mode::VlanDatabase,
            ["stack"] => self.mode = Mode::Stack,
            ["bridge", "aging-time", span] => {
                self.switch.ageing = Some(Fastpath::ageing(line, line.number(span)?)?);
            }
            ["no", "bridge", "aging-time"] => self.switch.ageing = Some(AGEING),
            ["ip", "address", "vlan", vlan] => {
                let vlan = line.vlan(vlan)?;
                self.switch.defined(line, vlan)?;
                self.switch.management = Some(vlan);
            }
            ["no", "ip", "address", "vlan", ..] => {
                let way = "name the VLAN that is to be managed in: `ip address vlan 4000`";
                return Err(line.wrong(format!("moves the manager to VLAN 1; {way}")));
            }
            _ => self.switch.global(line, words)?,
        }
        Ok(())
    }

    fn vlan_database(&mut self, line: Line<'_>, words: &[&str]) -> Result<(), ParseError> {
        match words {
            ["vlan", list] => self.switch.define(line, list),
            ["no", "vlan", list] => self.switch.undefine(line, list).map(drop),
            ["vlan", "name", ..] => Ok(()),
            _ => Err(line.wrong("is not understood in the VLAN database")),
        }
    }

    fn interface(&mut self, line: Line<'_>, words: &[&str]) -> Result<(), ParseError> {
        match words {
            ["vlan", vlan] => {
                let vlan = line.vlan(vlan)?;
                self.switch.defined(line, vlan)?;
                self.mode = Mode::VlanInterface;
                return Ok(());
            }
            ["ethernet", list] | ["range", "ethernet", list] => {
                let mut ports = Vec::new();
                for part in list.split(',') {
                    let (first, last) = part.split_once('-').unwrap_or((part, part));
                    let port = |name| self.switch.port(line, name, port_named(name));
                    let (first, last) = (port(first)?, port(last)?);
                    ports.extend((first.0..=last.0).map(PortNumber));
                }
                self.switch.interfaces = Some(Interfaces::Ports(ports));
            }
            ["port-channel", list] | ["range", "port-channel", list] => {
                self.switch.enter_bundles(line, list)?;
            }
            _ => {
                return Err(line.wrong(
                    "is no interface; allowed are `ethernet 1/g1`, `port-channel 1`, `range ethernet \
                     1/g1-1/g4` and `vlan 101`",
                ));
            }
        }
        self.mode = Mode::Interface;
        Ok(())
    }
}
