//! Reads what is typed into an N-series switch (DNOS 6), or its running configuration.
//!
//! The parser is the switch as far as VLANs go: it starts from a state, carries out line by line, and
//! refuses what the switch would refuse. A port keeps what was set for a mode when it enters another
//! one. The switch is managed in the VLAN whose interface has an address; where two have one, frames
//! could be routed past their VLANs, which is refused.

use super::names::ports_named;
use crate::dialect::fastpath::{Fastpath, Interfaces, Maker};
use crate::dialect::reading::{Line, ParseError, statements};
use crate::dialect::state::{AGEING, SwitchState};
use crate::{PortNumber, SwitchModel, Vlan, VlanSet};

/// What its commands are where FASTPATH's makers differ.
static MAKER: Maker = Maker {
    defined_where: "",
    lacp: "active",
    forgets_modes: false,
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

/// What lines are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Before `configure`, and after the `exit` that ends it.
    Exec,
    Global,
    /// `vlan 101-104`: names.
    Vlan,
    /// `stack`: which members there are.
    Stack,
    /// `interface out-of-band` and `line`: how people reach the switch past its ports.
    Access,
    /// `interface vlan 101`: the switch's own address.
    VlanInterface(Vlan),
    /// `interface Gi1/0/1`, `interface port-channel 1`.
    Interface,
}

struct Machine<'a> {
    mode: Mode,
    switch: Fastpath<'a>,
    /// The VLAN to which the text has given an address.
    addressed: Option<Vlan>,
}

/// The state after the text.
pub(super) fn read(
    model: &SwitchModel,
    before: &SwitchState,
    text: &str,
) -> Result<SwitchState, ParseError> {
    let switch = Fastpath::new(model, before, &MAKER);
    let mut machine = Machine { mode: Mode::Exec, switch, addressed: None };
    for line in statements(text, '!') {
        machine.carry_out(line)?;
    }
    machine.switch.state()
}

impl Machine<'_> {
    fn carry_out(&mut self, line: Line<'_>) -> Result<(), ParseError> {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        match (words.as_slice(), self.mode) {
            (["enable"], Mode::Exec) => {}
            (["configure"] | ["configure", "terminal"], Mode::Exec) => self.mode = Mode::Global,
            (_, Mode::Exec) => return Err(line.wrong("is refused before `configure`")),
            (["end"], _) | (["exit"], Mode::Global) => self.mode = Mode::Exec,
            (["exit"], _) => self.mode = Mode::Global,
            (["interface", rest @ ..], _) => self.interface(line, rest)?,
            (["name", ..], Mode::Vlan | Mode::VlanInterface(_)) | (["member", ..], Mode::Stack) => {
            }
            (_, Mode::Access) => {}
            (words, Mode::VlanInterface(vlan)) => self.vlan_interface(line, vlan, words)?,
            (words, Mode::Interface) => self.switch.of_interface(line, words)?,
            (words, Mode::Global) => self.global(line, words)?,
            (_, Mode::Vlan) => {
                return Err(line.wrong("is not understood for `vlan`; allowed is `name`"));
            }
            (_, Mode::Stack) => {
                return Err(line.wrong("is not understood for `stack`; allowed is `member`"));
            }
        }
        Ok(())
    }

    fn global(&mut self, line: Line<'_>, words: &[&str]) -> Result<(), ParseError> {
        match words {
            ["vlan", list] => {
                self.switch.define(line, list)?;
                self.mode = Mode::Vlan;
            }
            ["no", "vlan", list] => {
                let gone = self.switch.undefine(line, list)?;
                self.forget_addresses(&gone);
            }
            ["no", "interface", "vlan", vlan] => {
                self.forget_addresses(&VlanSet::from_iter([line.vlan(vlan)?]));
            }
            ["stack"] => self.mode = Mode::Stack,
            ["line", "console" | "telnet" | "ssh"] => self.mode = Mode::Access,
            ["mac", "address-table", "aging-time", "0"] => self.switch.ageing = None,
            ["mac", "address-table", "aging-time", span] => {
                self.switch.ageing = Some(Fastpath::ageing(line, line.number(span)?)?);
            }
            ["no", "mac", "address-table", "aging-time"] => self.switch.ageing = Some(AGEING),
            _ => self.switch.global(line, words)?,
        }
        Ok(())
    }

    /// The number after the VLAN is an index that a running configuration shows.
    fn interface(&mut self, line: Line<'_>, words: &[&str]) -> Result<(), ParseError> {
        self.mode = match words {
            ["vlan", vlan] | ["vlan", vlan, _] => {
                let vlan = line.vlan(vlan)?;
                self.switch.defined(line, vlan)?;
                Mode::VlanInterface(vlan)
            }
            ["out-of-band"] => Mode::Access,
            ["port-channel", list] | ["range", "port-channel", list] => {
                self.switch.enter_bundles(line, list)?;
                Mode::Interface
            }
            ["range", list] | [list] => self.ports(line, list)?,
            // `interface gigabitethernet 1/0/1`
            ["range", kind, list] | [kind, list] => self.ports(line, &format!("{kind}{list}"))?,
            _ => {
                return Err(line.wrong(
                    "is no interface; allowed are `Gi1/0/1`, `Te1/0/1`, `port-channel 1`, `range \
                     Gi1/0/1-4` and `vlan 101`",
                ));
            }
        };
        Ok(())
    }

    fn ports(&mut self, line: Line<'_>, list: &str) -> Result<Mode, ParseError> {
        let mut ports = Vec::new();
        for part in list.split(',') {
            let named = ports_named(self.switch.model, part);
            let first = self.switch.port(line, part, named.map(|(first, _)| first))?;
            let last = named.map_or(first, |(_, last)| last);
            ports.extend((first.0..=last.0).map(PortNumber));
        }
        self.switch.interfaces = Some(Interfaces::Ports(ports));
        Ok(Mode::Interface)
    }

    fn vlan_interface(
        &mut self,
        line: Line<'_>,
        vlan: Vlan,
        words: &[&str],
    ) -> Result<(), ParseError> {
        match words {
            ["no", "ip", "address", ..] | ["ip", "address", "none"] => {
                self.forget_addresses(&VlanSet::from_iter([vlan]));
                Ok(())
            }
            ["ip", "address", _] | ["ip", "address", _, _] => {
                if let Some(other) = self.addressed.filter(|other| *other != vlan) {
                    return Err(line.wrong(format!(
                        "VLAN {other} has an address, too: frames would be routed between the two"
                    )));
                }
                self.addressed = Some(vlan);
                self.switch.management = Some(vlan);
                Ok(())
            }
            ["bandwidth" | "description", ..] | ["ip", "mtu", ..] | ["no", "shutdown"] => Ok(()),
            _ => Err(line
                .wrong("is not understood for `interface vlan`; allowed are `name`, `ip address`")),
        }
    }

    /// Takes the addresses of these VLANs from the switch.
    fn forget_addresses(&mut self, vlans: &VlanSet) {
        self.addressed = self.addressed.filter(|vlan| !vlans.contains(*vlan));
        let managed = self.switch.management;
        self.switch.management = managed.filter(|vlan| !vlans.contains(*vlan));
    }
}
