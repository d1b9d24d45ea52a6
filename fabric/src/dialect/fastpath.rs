//! Reads what is typed into a Dell PowerConnect 6200 (FASTPATH), or its running configuration.
//!
//! The parser is the switch as far as VLANs go: it starts from a state, carries out line by line,
//! and refuses what the switch would refuse (a VLAN that is not defined, a general setting in access
//! mode). Entering another mode resets what was set for the mode before, as the switch does.

use std::collections::BTreeMap;

use meikyo_units::Nanos;

use super::names::fastpath_port;
use super::reading::{Line, ParseError, statements};
use super::state::{AGEING, SwitchState};
use crate::{Bundling, PortNumber, PortSettings, SwitchModel, SwitchSettings, Vlan, VlanSet};

/// Spans after which addresses may be forgotten, in seconds.
pub(super) const AGEING_S: std::ops::RangeInclusive<u64> = 10..=1_000_000;

/// Beginnings of lines that make no difference to frames of the fabric, outside of any mode.
const IGNORED: [&str; 19] = [
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
];
/// Beginnings of lines that make no difference to frames of the fabric, of an interface.
const IGNORED_OF_INTERFACE: [&str; 9] = [
    "description",
    "spanning-tree portfast",
    "lldp",
    "mtu",
    "speed",
    "negotiation",
    "hashing-mode",
    "storm-control",
    "spanning-tree cost",
];

/// A port or a bundle.
#[derive(Debug, Clone)]
struct Port {
    open: bool,
    general: bool,
    access: Vlan,
    pvid: Vlan,
    tagged_only: bool,
    untagged: VlanSet,
    tagged: VlanSet,
    group: Option<(u16, Bundling)>,
}

impl Port {
    fn factory(open: bool) -> Self {
        Self {
            open,
            general: false,
            access: Vlan::DEFAULT,
            pvid: Vlan::DEFAULT,
            tagged_only: false,
            untagged: VlanSet::from_iter([Vlan::DEFAULT]),
            tagged: VlanSet::EMPTY,
            group: None,
        }
    }

    fn of(settings: &PortSettings) -> Self {
        let mut port = Self::factory(true);
        port.general = settings.accept_tagged;
        if port.general {
            port.pvid = settings.pvid.unwrap_or(Vlan::DEFAULT);
            port.tagged_only = settings.pvid.is_none();
            port.untagged = settings.untagged.clone();
            port.tagged = settings.tagged.clone();
        } else {
            port.access = settings.pvid.unwrap_or(Vlan::DEFAULT);
        }
        port
    }

    fn settings(
        &self,
        ports: Vec<PortNumber>,
        bundle: Option<Bundling>,
        pause: bool,
    ) -> PortSettings {
        let access = VlanSet::from_iter([self.access]);
        let general = self.general;
        PortSettings {
            ports,
            bundle,
            pvid: match (general, self.tagged_only) {
                (false, _) => Some(self.access),
                (true, false) => Some(self.pvid),
                (true, true) => None,
            },
            untagged: if general { self.untagged.clone() } else { access },
            tagged: if general { self.tagged.clone() } else { VlanSet::EMPTY },
            accept_tagged: general,
            flow_control: pause,
        }
    }

    fn enter_mode(&mut self, general: bool) {
        if self.general != general {
            let (open, group) = (self.open, self.group);
            *self = Self { general, group, ..Self::factory(open) };
        }
    }
}

/// What lines are about.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Mode {
    /// Before `configure`, and after the `exit` that ends it.
    Exec,
    Global,
    VlanDatabase,
    /// `stack`: which members there are.
    Stack,
    /// `interface vlan 101`: names and addresses.
    VlanInterface,
    Ports(Vec<PortNumber>),
    Bundles(Vec<u16>),
}

struct Machine<'a> {
    model: &'a SwitchModel,
    mode: Mode,
    vlans: VlanSet,
    spanning_tree: bool,
    pause: bool,
    ageing: Nanos,
    management: Option<Vlan>,
    ports: BTreeMap<PortNumber, Port>,
    bundles: BTreeMap<u16, Port>,
    /// Where a bundle was first named.
    named: BTreeMap<u16, (usize, String)>,
}

/// The state after the text.
pub(super) fn read(
    model: &SwitchModel,
    before: &SwitchState,
    text: &str,
) -> Result<SwitchState, ParseError> {
    let mut machine = Machine::new(model, before);
    for line in statements(text, '!') {
        machine.carry_out(line)?;
    }
    machine.state()
}

impl<'a> Machine<'a> {
    fn new(model: &'a SwitchModel, before: &SwitchState) -> Self {
        let settings = &before.settings;
        let mut ports: BTreeMap<_, _> =
            (1..=model.ports).map(|port| (PortNumber(port), Port::factory(false))).collect();
        let mut bundles = BTreeMap::new();
        for (own, number) in settings.ports.iter().zip(before.numbers_for(settings)) {
            match (number, own.bundle) {
                (Some(number), Some(bundling)) => {
                    for port in &own.ports {
                        let group = Some((number, bundling));
                        ports.insert(*port, Port { group, ..Port::factory(true) });
                    }
                    bundles.insert(number, Port::of(own));
                }
                _ => {
                    for port in &own.ports {
                        ports.insert(*port, Port::of(own));
                    }
                }
            }
        }
        Self {
            model,
            mode: Mode::Exec,
            vlans: settings.vlans.clone(),
            spanning_tree: settings.spanning_tree,
            pause: settings.ports.first().is_none_or(|port| port.flow_control),
            ageing: settings.ageing.unwrap_or(AGEING),
            management: before.management,
            ports,
            bundles,
            named: BTreeMap::new(),
        }
    }

    fn carry_out(&mut self, line: Line<'_>) -> Result<(), ParseError> {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        match (words.as_slice(), &self.mode) {
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
            (["interface", rest @ ..], _) => {
                self.mode = self.interface(line, rest)?;
                Ok(())
            }
            (words, Mode::VlanDatabase) => self.vlan_database(line, words),
            (["member", ..], Mode::Stack) => Ok(()),
            (_, Mode::Stack) => {
                Err(line.wrong("is not understood for `stack`; allowed is `member`"))
            }
            (["name" | "ip" | "routing", ..], Mode::VlanInterface) => Ok(()),
            (_, Mode::VlanInterface) => {
                Err(line.wrong("is not understood for `interface vlan`; allowed are `name`, `ip`"))
            }
            (words, Mode::Ports(_) | Mode::Bundles(_)) => self.of_interface(line, words),
            (words, Mode::Global) => self.global(line, words),
        }
    }

    fn global(&mut self, line: Line<'_>, words: &[&str]) -> Result<(), ParseError> {
        match words {
            ["vlan", "database"] => self.mode = Mode::VlanDatabase,
            ["stack"] => self.mode = Mode::Stack,
            ["spanning-tree"] => self.spanning_tree = true,
            ["no", "spanning-tree"] => self.spanning_tree = false,
            ["flowcontrol"] => self.pause = true,
            ["no", "flowcontrol"] => self.pause = false,
            ["bridge", "aging-time", span] => {
                let span: u64 = line.number(span)?;
                if !AGEING_S.contains(&span) {
                    let (least, most) = (AGEING_S.start(), AGEING_S.end());
                    return Err(line.wrong(format!("allowed are {least} to {most} seconds")));
                }
                self.ageing = Nanos::from_secs(span);
            }
            ["no", "bridge", "aging-time"] => self.ageing = AGEING,
            ["ip", "address", "vlan", vlan] => {
                let vlan = line.vlan(vlan)?;
                self.defined(line, vlan)?;
                self.management = Some(vlan);
            }
            ["no", "ip", "address", "vlan", ..] => {
                let way = "name the VLAN that is to be managed in: `ip address vlan 4000`";
                return Err(line.wrong(format!("moves the manager to VLAN 1; {way}")));
            }
            _ if IGNORED.iter().any(|begin| begins(line.text, begin)) => {}
            _ => {
                return Err(
                    line.wrong("is not understood (docs/fabric-deployment.md lists what is)")
                );
            }
        }
        Ok(())
    }

    fn vlan_database(&mut self, line: Line<'_>, words: &[&str]) -> Result<(), ParseError> {
        match words {
            ["vlan", list] => {
                let vlans = line.vlans(list)?;
                let unusable = vlans
                    .iter()
                    .find(|vlan| *vlan != Vlan::DEFAULT && !self.model.vlan_ids.contains(*vlan));
                if let Some(vlan) = unusable {
                    let (model, usable) = (&self.model.name, &self.model.vlan_ids);
                    return Err(
                        line.wrong(format!("{model} has no VLAN {vlan}; allowed are {usable}"))
                    );
                }
                self.vlans = self.vlans.union(&vlans);
            }
            ["no", "vlan", list] => {
                let vlans = line.vlans(list)?;
                self.vlans = self.vlans.difference(&vlans);
                for port in self.ports.values_mut().chain(self.bundles.values_mut()) {
                    port.untagged = port.untagged.difference(&vlans);
                    port.tagged = port.tagged.difference(&vlans);
                    if vlans.contains(port.pvid) {
                        port.pvid = Vlan::DEFAULT;
                    }
                    if vlans.contains(port.access) {
                        port.access = Vlan::DEFAULT;
                    }
                }
            }
            ["vlan", "name", ..] => {}
            _ => return Err(line.wrong("is not understood in the VLAN database")),
        }
        Ok(())
    }

    fn interface(&mut self, line: Line<'_>, words: &[&str]) -> Result<Mode, ParseError> {
        match words {
            ["vlan", vlan] => {
                let vlan = line.vlan(vlan)?;
                self.defined(line, vlan)?;
                Ok(Mode::VlanInterface)
            }
            ["ethernet", list] | ["range", "ethernet", list] => {
                let mut ports = Vec::new();
                for part in list.split(',') {
                    let (first, last) = part.split_once('-').unwrap_or((part, part));
                    let port = |name| {
                        let port = fastpath_port(name).filter(|port| self.ports.contains_key(port));
                        port.ok_or_else(|| {
                            let (model, most) = (&self.model.name, self.model.ports);
                            line.wrong(format!("{model} has no port `{name}`; it has {most} ports"))
                        })
                    };
                    let (first, last) = (port(first)?, port(last)?);
                    ports.extend((first.0..=last.0).map(PortNumber));
                }
                Ok(Mode::Ports(ports))
            }
            ["port-channel", list] | ["range", "port-channel", list] => {
                let mut numbers: Vec<u16> = Vec::new();
                for part in list.split(',') {
                    let (first, last) = part.split_once('-').unwrap_or((part, part));
                    numbers.extend(line.number::<u16>(first)?..=line.number(last)?);
                }
                for number in &numbers {
                    self.bundle(line, *number)?;
                }
                Ok(Mode::Bundles(numbers))
            }
            _ => Err(line.wrong(
                "is no interface; allowed are `ethernet 1/g1`, `port-channel 1`, `range ethernet \
                 1/g1-1/g4` and `vlan 101`",
            )),
        }
    }

    fn bundle(&mut self, line: Line<'_>, number: u16) -> Result<(), ParseError> {
        if number == 0 || number > self.model.bundles {
            let (model, most) = (&self.model.name, self.model.bundles);
            return Err(line.wrong(format!("{model} has bundles 1 to {most}")));
        }
        self.bundles.entry(number).or_insert_with(|| Port::factory(true));
        self.named.entry(number).or_insert_with(|| (line.number, line.text.to_owned()));
        Ok(())
    }

    fn of_interface(&mut self, line: Line<'_>, words: &[&str]) -> Result<(), ParseError> {
        match (words, &self.mode) {
            (["channel-group", number, "mode", mode], Mode::Ports(ports)) => {
                let number = line.number(number)?;
                let bundling = match *mode {
                    "auto" => Bundling::Lacp,
                    "on" => Bundling::Static,
                    _ => return Err(line.wrong("allowed modes are `auto` (LACP) and `on`")),
                };
                let ports = ports.clone();
                self.bundle(line, number)?;
                for port in ports {
                    if let Some(port) = self.ports.get_mut(&port) {
                        port.group = Some((number, bundling));
                    }
                }
            }
            (["no", "channel-group"], Mode::Ports(_)) => {
                self.each(|port| port.group = None);
            }
            (["shutdown"], _) => self.each(|port| port.open = false),
            (["no", "shutdown"], _) => self.each(|port| port.open = true),
            (["switchport", "mode", "access"] | ["no", "switchport", "mode"], _) => {
                self.each(|port| port.enter_mode(false));
            }
            (["switchport", "mode", "general"], _) => self.each(|port| port.enter_mode(true)),
            (["switchport", "access", "vlan", vlan], _) => {
                let vlan = line.vlan(vlan)?;
                self.defined(line, vlan)?;
                self.in_mode(line, false)?;
                self.each(|port| port.access = vlan);
            }
            (["switchport", "general", rest @ ..], _) => {
                self.in_mode(line, true)?;
                self.general(line, rest)?;
            }
            (["no", "switchport", "general", "acceptable-frame-type", "tagged-only"], _) => {
                self.in_mode(line, true)?;
                self.each(|port| port.tagged_only = false);
            }
            (["no", "switchport", "general", "pvid"], _) => {
                self.in_mode(line, true)?;
                self.each(|port| port.pvid = Vlan::DEFAULT);
            }
            _ if IGNORED_OF_INTERFACE.iter().any(|begin| begins(line.text, begin)) => {}
            _ => {
                return Err(line
                    .wrong("is not understood for an interface (see docs/fabric-deployment.md)"));
            }
        }
        Ok(())
    }

    fn general(&mut self, line: Line<'_>, words: &[&str]) -> Result<(), ParseError> {
        match words {
            ["pvid", vlan] => {
                let vlan = line.vlan(vlan)?;
                self.defined(line, vlan)?;
                self.each(|port| port.pvid = vlan);
            }
            ["acceptable-frame-type", "tagged-only"] => self.each(|port| port.tagged_only = true),
            ["allowed", "vlan", "remove", list] => {
                let vlans = line.vlans(list)?;
                self.all_defined(line, &vlans)?;
                self.each(|port| {
                    port.untagged = port.untagged.difference(&vlans);
                    port.tagged = port.tagged.difference(&vlans);
                });
            }
            // Without a word the switch takes `untagged`, and shows it so.
            ["allowed", "vlan", "add", list] | ["allowed", "vlan", "add", list, "untagged"] => {
                let vlans = line.vlans(list)?;
                self.all_defined(line, &vlans)?;
                self.each(|port| {
                    port.untagged = port.untagged.union(&vlans);
                    port.tagged = port.tagged.difference(&vlans);
                });
            }
            ["allowed", "vlan", "add", list, "tagged"] => {
                let vlans = line.vlans(list)?;
                self.all_defined(line, &vlans)?;
                self.each(|port| {
                    port.tagged = port.tagged.union(&vlans);
                    port.untagged = port.untagged.difference(&vlans);
                });
            }
            _ => return Err(line.wrong("is not understood for a general port")),
        }
        Ok(())
    }

    fn targets(&mut self) -> Vec<&mut Port> {
        match &self.mode {
            Mode::Ports(numbers) => {
                let ports = self.ports.iter_mut();
                ports.filter(|(port, _)| numbers.contains(port)).map(|(_, port)| port).collect()
            }
            Mode::Bundles(numbers) => {
                let bundles = self.bundles.iter_mut();
                bundles.filter(|(own, _)| numbers.contains(own)).map(|(_, port)| port).collect()
            }
            Mode::Exec | Mode::Global | Mode::VlanDatabase | Mode::Stack | Mode::VlanInterface => {
                Vec::new()
            }
        }
    }

    fn each(&mut self, change: impl Fn(&mut Port)) {
        self.targets().into_iter().for_each(change);
    }

    fn in_mode(&mut self, line: Line<'_>, general: bool) -> Result<(), ParseError> {
        let word = if general { "general" } else { "access" };
        if self.targets().iter().all(|port| port.general == general) {
            return Ok(());
        }
        Err(line.wrong(format!(
            "the interface is not in {word} mode; `switchport mode {word}` comes first"
        )))
    }

    fn defined(&self, line: Line<'_>, vlan: Vlan) -> Result<(), ParseError> {
        self.all_defined(line, &VlanSet::from_iter([vlan]))
    }

    fn all_defined(&self, line: Line<'_>, vlans: &VlanSet) -> Result<(), ParseError> {
        let missing = vlans.difference(&self.vlans);
        match missing.iter().find(|vlan| *vlan != Vlan::DEFAULT) {
            None => Ok(()),
            Some(vlan) => Err(line.wrong(format!(
                "VLAN {vlan} is not defined; `vlan {vlan}` in `vlan database` comes first"
            ))),
        }
    }

    fn state(self) -> Result<SwitchState, ParseError> {
        let mut ports = Vec::new();
        let mut members: BTreeMap<u16, (Vec<PortNumber>, Bundling)> = BTreeMap::new();
        for (number, port) in &self.ports {
            match port.group {
                None if port.open => ports.push(port.settings(vec![*number], None, self.pause)),
                None => {}
                Some((bundle, bundling)) => {
                    let (all, of_all) = members.entry(bundle).or_insert((Vec::new(), bundling));
                    if *of_all != bundling {
                        return Err(ParseError::whole(format!(
                            "the ports of `port-channel {bundle}` are in different modes"
                        )));
                    }
                    all.extend(port.open.then_some(*number));
                }
            }
        }
        let mut bundles = BTreeMap::new();
        for (number, port) in &self.bundles {
            let Some((all, bundling)) = members.remove(number) else {
                if let Some((line, text)) = self.named.get(number) {
                    let problem = format!("`port-channel {number}` has no ports");
                    return Err(ParseError { line: Some(*line), text: text.clone(), problem });
                }
                continue;
            };
            if let (true, Some(first)) = (port.open, all.first()) {
                bundles.insert(*first, *number);
                ports.push(port.settings(all, Some(bundling), self.pause));
            }
        }
        ports.sort_by(|one, other| one.ports.cmp(&other.ports));
        let settings = SwitchSettings {
            vlans: self.vlans,
            ports,
            ageing: Some(self.ageing),
            spanning_tree: self.spanning_tree,
        };
        Ok(SwitchState { settings, management: self.management, bundles }.normal(true))
    }
}

/// Whether a line begins with these words.
fn begins(text: &str, words: &str) -> bool {
    text.strip_prefix(words).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}
