//! The prompt of a switch: which mode lines are typed in, and what they are about there.
//!
//! A text is either typed, and begins before `configure`, or it is a running configuration. That of some
//! makers has no such line: it begins within, and a line with nothing but the sign of a comment ends what
//! an interface is told there.

use super::{Interfaces, Maker, TypedSwitch};
use crate::dialect::reading::{Line, ParseError};
use crate::dialect::state::SwitchState;
use crate::{PortNumber, SwitchModel, Vlan, VlanSet};

/// What lines are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::dialect) enum Mode {
    /// Before the command that lets the switch be configured, and after the one that ends it.
    Exec,
    /// The whole switch.
    Global,
    /// The list of VLANs, where it is a mode of its own.
    Database,
    /// VLANs that were named: their names.
    Vlans,
    /// The switch's own address in a VLAN.
    VlanInterface(Vlan),
    /// Ports or bundles.
    Interface,
    /// What has nothing to do with frames, up to its end.
    Apart,
}

/// A function that carries out a line, and says in which mode the next one is.
type Carry = for<'l> fn(&mut Prompt<'_>, Line<'l>, &[&'l str]) -> Result<Mode, ParseError>;

/// A function that carries out a line and stays in its mode.
type Tell = for<'l> fn(&mut Prompt<'_>, Line<'l>, &[&'l str]) -> Result<(), ParseError>;

/// The words of a maker.
pub(in crate::dialect) struct Grammar {
    pub(in crate::dialect) maker: &'static Maker,
    /// What begins a comment.
    pub(in crate::dialect) comment: &'static [char],
    /// The first words of what lets the switch be configured.
    pub(in crate::dialect) configure: &'static str,
    /// Whether a running configuration is without that.
    pub(in crate::dialect) shows_configured: bool,
    /// Ends a mode.
    pub(in crate::dialect) exit: &'static str,
    /// Ends all modes.
    pub(in crate::dialect) end: &'static str,
    /// What is said to the whole switch.
    pub(in crate::dialect) global: Carry,
    /// What comes after `interface`.
    pub(in crate::dialect) interface: Carry,
    /// What is said of ports and bundles.
    pub(in crate::dialect) of_interface: Tell,
    /// What is said in the list of VLANs, where that is a mode.
    pub(in crate::dialect) database: Tell,
    /// Whether that mode is entered before `configure`.
    pub(in crate::dialect) database_first: bool,
    /// What is said before the switch is configured, if anything of it is known.
    pub(in crate::dialect) of_exec: Option<Tell>,
    /// What is said of the switch in a VLAN.
    pub(in crate::dialect) of_vlan:
        for<'l> fn(&mut Prompt<'_>, Line<'l>, Vlan, &[&'l str]) -> Result<(), ParseError>,
}

impl Grammar {
    /// The words that most makers have; what is particular to one is set beside them.
    pub(in crate::dialect) const fn usual(
        maker: &'static Maker,
        global: Carry,
        interface: Carry,
        of_interface: Tell,
    ) -> Self {
        Self {
            maker,
            comment: &['!'],
            configure: "configure",
            shows_configured: false,
            exit: "exit",
            end: "end",
            global,
            interface,
            of_interface,
            database: |prompt, line, words| prompt.no_database(line, words),
            database_first: false,
            of_exec: None,
            of_vlan: |prompt, line, vlan, words| prompt.of_vlan(line, vlan, words),
        }
    }
}

/// A switch, and the mode in which the next line is typed.
pub(in crate::dialect) struct Prompt<'a> {
    pub(in crate::dialect) switch: TypedSwitch<'a>,
    grammar: &'static Grammar,
    mode: Mode,
    /// The VLAN to which the text has given an address.
    addressed: Option<Vlan>,
}

impl<'a> Prompt<'a> {
    /// The state after the text.
    pub(in crate::dialect) fn read(
        grammar: &'static Grammar,
        model: &'a SwitchModel,
        before: &SwitchState,
        text: &str,
    ) -> Result<SwitchState, ParseError> {
        let switch = TypedSwitch::new(model, before, grammar.maker);
        let typed = !grammar.shows_configured
            || text.lines().any(|line| is_begun_by(line.trim(), grammar.configure));
        let mode = if typed { Mode::Exec } else { Mode::Global };
        let mut prompt = Self { switch, grammar, mode, addressed: None };
        for (at, line) in text.lines().enumerate() {
            let line = Line { number: at + 1, text: line.trim() };
            match line.text.strip_prefix(grammar.comment) {
                Some("") if !typed => prompt.mode = Mode::Global,
                None if !line.text.is_empty() => prompt.carry_out(line)?,
                _ => {}
            }
        }
        prompt.switch.state()
    }

    fn carry_out(&mut self, line: Line<'_>) -> Result<(), ParseError> {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        let words = words.as_slice();
        let grammar = self.grammar;
        let Grammar { configure, exit, end, global, interface, .. } = *grammar;
        self.mode = match (words, self.mode) {
            (["enable"], Mode::Exec) => Mode::Exec,
            (_, Mode::Exec) if is_begun_by(line.text, configure) => Mode::Global,
            (["vlan", "database"], Mode::Exec) if grammar.database_first => Mode::Database,
            (words, Mode::Exec) => match grammar.of_exec {
                Some(of_exec) => {
                    of_exec(self, line, words)?;
                    Mode::Exec
                }
                None => return Err(line.wrong(format!("is refused before `{configure}`"))),
            },
            ([word], _) if *word == end => Mode::Exec,
            ([word], Mode::Global) if *word == exit => Mode::Exec,
            ([word], Mode::Database) if *word == exit && grammar.database_first => Mode::Exec,
            ([word], _) if *word == exit => Mode::Global,
            (_, Mode::Apart) => Mode::Apart,
            (["interface", rest @ ..], _) => interface(self, line, rest)?,
            (["name" | "description", ..], mode @ (Mode::Vlans | Mode::VlanInterface(_))) => mode,
            (["vlan", ..], Mode::Vlans) => global(self, line, words)?,
            (_, Mode::Vlans) => {
                return Err(line.wrong("is not understood for `vlan`; allowed is `name`"));
            }
            (words, mode @ Mode::Database) => {
                (grammar.database)(self, line, words)?;
                mode
            }
            (words, mode @ Mode::VlanInterface(vlan)) => {
                (grammar.of_vlan)(self, line, vlan, words)?;
                mode
            }
            (words, mode @ Mode::Interface) => {
                (grammar.of_interface)(self, line, words)?;
                mode
            }
            (words, Mode::Global) => global(self, line, words)?,
        };
        Ok(())
    }

    /// Carries out a line that defines or removes VLANs, as most makers say it; `None` where it is another.
    pub(in crate::dialect) fn of_vlans(
        &mut self,
        line: Line<'_>,
        words: &[&str],
    ) -> Result<Option<Mode>, ParseError> {
        match words {
            ["vlan", list] => {
                self.switch.define(line, list)?;
                return Ok(Some(Mode::Vlans));
            }
            ["no", "vlan", list] => self.undefine(&line.vlans(list)?),
            ["no", "interface", "vlan", vlan] => {
                self.forget_addresses(&VlanSet::from_iter([line.vlan(vlan)?]));
            }
            _ => return Ok(None),
        }
        Ok(Some(Mode::Global))
    }

    /// Goes on with the ports of a list whose parts `named` reads: the first and the last of each.
    pub(in crate::dialect) fn enter_ports(
        &mut self,
        line: Line<'_>,
        list: &str,
        named: impl Fn(&SwitchModel, &str) -> Option<(PortNumber, PortNumber)>,
    ) -> Result<Mode, ParseError> {
        let mut ports = Vec::new();
        for part in list.split(',') {
            let found = named(self.switch.model, part);
            let first = self.switch.port(line, part, found.map(|(first, _)| first))?;
            let last = found.map_or(first, |(_, last)| last);
            ports.extend((first.0..=last.0).map(PortNumber));
        }
        self.switch.interfaces = Some(Interfaces::Ports(ports));
        Ok(Mode::Interface)
    }

    /// Goes on with bundles: `1-3,7`.
    pub(in crate::dialect) fn enter_bundles(
        &mut self,
        line: Line<'_>,
        list: &str,
    ) -> Result<Mode, ParseError> {
        self.switch.enter_bundles(line, list)?;
        Ok(Mode::Interface)
    }

    /// Goes on with the switch's own address in a VLAN.
    pub(in crate::dialect) fn enter_vlan_interface(
        &self,
        line: Line<'_>,
        vlan: &str,
    ) -> Result<Mode, ParseError> {
        let vlan = line.vlan(vlan)?;
        self.switch.defined(line, vlan)?;
        Ok(Mode::VlanInterface(vlan))
    }

    /// Carries out what is said of the switch in a VLAN: it is managed in the one in which it has an
    /// address; where two have one, frames could be routed past their VLANs, which is refused.
    pub(in crate::dialect) fn of_vlan(
        &mut self,
        line: Line<'_>,
        vlan: Vlan,
        words: &[&str],
    ) -> Result<(), ParseError> {
        match words {
            ["no" | "undo", "ip", "address", ..] | ["ip", "address", "none"] => {
                self.forget_addresses(&VlanSet::from_iter([vlan]));
                Ok(())
            }
            ["ip", "address", _] | ["ip", "address", _, _] | ["ip", "address-alloc", "dhcp"] => {
                if let Some(other) = self.addressed.filter(|other| *other != vlan) {
                    return Err(line.wrong(format!(
                        "VLAN {other} has an address, too: frames would be routed between the two"
                    )));
                }
                self.addressed = Some(vlan);
                self.switch.management = Some(vlan);
                Ok(())
            }
            ["no" | "undo", "shutdown"] | ["bandwidth", ..] | ["ip", "mtu", ..] => Ok(()),
            _ => Err(line
                .wrong("is not understood for `interface vlan`; allowed are `name`, `ip address`")),
        }
    }

    /// Refuses what is said in a list of VLANs, for makers whose switches have no such mode.
    pub(in crate::dialect) fn no_database(
        &mut self,
        line: Line<'_>,
        _words: &[&str],
    ) -> Result<(), ParseError> {
        Err(line.wrong("is not understood"))
    }

    /// Takes the addresses of these VLANs from the switch.
    pub(in crate::dialect) fn forget_addresses(&mut self, vlans: &VlanSet) {
        self.addressed = self.addressed.filter(|vlan| !vlans.contains(*vlan));
        let managed = self.switch.management;
        self.switch.management = managed.filter(|vlan| !vlans.contains(*vlan));
    }

    /// Takes VLANs away, and the switch's own addresses in them.
    pub(in crate::dialect) fn undefine(&mut self, vlans: &VlanSet) {
        self.switch.undefine_all(vlans);
        self.forget_addresses(vlans);
    }
}

/// Whether a line begins with these words.
fn is_begun_by(line: &str, words: &str) -> bool {
    line.strip_prefix(words).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}
