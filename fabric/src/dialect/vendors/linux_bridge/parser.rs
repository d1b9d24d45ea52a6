//! Reads the shell scripts that set up a Linux bridge: batches of `ip` and `bridge`, and `ethtool`.
//!
//! The parser is the machine: it starts from a state and carries out line by line. A script is a
//! list of these commands, each batch between `ip -batch - <<'END'` and `END`; the same commands one
//! by one (`ip link ..`, `bridge vlan ..`) are read, too. No other shell is understood.

use std::collections::BTreeMap;

use meikyo_units::Nanos;

use crate::dialect::linux::{interface_bundle, interface_port};
use crate::dialect::reading::{Line, ParseError, statements};
use crate::dialect::state::{AGEING, SwitchState};
use crate::{Bundling, PortNumber, PortSettings, SwitchModel, SwitchSettings, Vlan, VlanSet};

/// The bridge's name.
const BRIDGE: &str = "br0";

/// VLANs of an interface, as the kernel keeps them.
#[derive(Debug, Clone, Default)]
struct Membership {
    pvid: Option<Vlan>,
    untagged: VlanSet,
    tagged: VlanSet,
}

/// An interface: a port, or a bundle of ports.
#[derive(Debug, Clone)]
struct Interface {
    up: bool,
    bridged: bool,
    vlans: Membership,
    /// The bundle that a port is in.
    bond: Option<u16>,
    pause: bool,
}

impl Interface {
    const fn down() -> Self {
        let vlans = Membership { pvid: None, untagged: VlanSet::EMPTY, tagged: VlanSet::EMPTY };
        Self { up: false, bridged: false, vlans, bond: None, pause: false }
    }
}

/// Which command a batch is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Batch {
    None,
    Ip,
    Bridge,
}

struct Machine<'a> {
    model: &'a SwitchModel,
    bridge: bool,
    /// Whether the bridge passes frames on.
    bridge_up: bool,
    spanning_tree: bool,
    ageing: Nanos,
    default_pvid: Option<Vlan>,
    /// VLANs in which the machine itself hears the bridge, and VLAN interfaces upon it.
    own: VlanSet,
    upper: VlanSet,
    ports: BTreeMap<PortNumber, Interface>,
    bonds: BTreeMap<u16, (Bundling, Interface)>,
}

/// The state after the text.
pub(super) fn read(
    model: &SwitchModel,
    before: &SwitchState,
    text: &str,
) -> Result<SwitchState, ParseError> {
    let mut machine = Machine::new(model, before);
    let mut batch = Batch::None;
    for line in statements(text, '#') {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        match (batch, words.as_slice()) {
            (Batch::None, ["set", "-e"]) => {}
            (Batch::None, ["ip", "-batch", "-", "<<'END'"]) => batch = Batch::Ip,
            (Batch::None, ["bridge", "-batch", "-", "<<'END'"]) => batch = Batch::Bridge,
            (Batch::None, ["ip", words @ ..]) | (Batch::Ip, words) if words != ["END"] => {
                machine.ip(line, words)?;
            }
            (Batch::None, ["bridge", words @ ..]) | (Batch::Bridge, words) if words != ["END"] => {
                machine.bridge(line, words)?;
            }
            (Batch::Ip | Batch::Bridge, _) => batch = Batch::None,
            (Batch::None, ["ethtool", "--pause" | "-A", name, "rx", rx, "tx", tx])
            | (
                Batch::None,
                ["ethtool", "--pause" | "-A", name, "rx", rx @ "off", "tx", tx, "||", ":"],
            ) => {
                machine.pause(line, name, rx, tx)?;
            }
            (Batch::None, _) => {
                return Err(line.wrong("is not understood; allowed are `ip`, `bridge`, `ethtool`"));
            }
        }
    }
    if batch != Batch::None {
        return Err(ParseError::whole("a batch has no `END`".to_owned()));
    }
    machine.state()
}

impl<'a> Machine<'a> {
    fn new(model: &'a SwitchModel, before: &SwitchState) -> Self {
        let settings = &before.settings;
        let mut machine = Self {
            model,
            bridge: !settings.ports.is_empty(),
            bridge_up: true,
            spanning_tree: settings.spanning_tree,
            ageing: settings.ageing.unwrap_or(AGEING),
            default_pvid: None,
            own: VlanSet::from_iter(before.management),
            upper: VlanSet::from_iter(before.management),
            ports: (1..=model.ports).map(|port| (PortNumber(port), Interface::down())).collect(),
            bonds: BTreeMap::new(),
        };
        for (own, number) in settings.ports.iter().zip(before.numbers_for(settings)) {
            let vlans = Membership {
                pvid: own.pvid,
                untagged: own.untagged.clone(),
                tagged: own.tagged.clone(),
            };
            let pause = own.flow_control;
            let set = Interface { up: true, bridged: true, vlans, bond: None, pause };
            let bond = number.zip(own.bundle);
            for port in &own.ports {
                let interface = match bond {
                    Some((number, _)) => {
                        Interface { up: true, bond: Some(number), pause, ..Interface::down() }
                    }
                    None => set.clone(),
                };
                machine.ports.insert(*port, interface);
            }
            if let Some((number, bundling)) = bond {
                machine.bonds.insert(number, (bundling, set));
            }
        }
        machine
    }

    fn ip(&mut self, line: Line<'_>, words: &[&str]) -> Result<(), ParseError> {
        match words {
            ["link", "add", rest @ ..] => self.add(line, rest),
            ["link", "set", "dev", BRIDGE, "type", "bridge", options @ ..] => {
                self.options(line, options)
            }
            ["link", "set", "dev", BRIDGE, way @ ("up" | "down")] => {
                self.bridge_up = *way == "up";
                self.has_bridge(line)
            }
            ["link", "set", "dev", name, options @ ..] => self.set(line, name, options),
            ["link", "del", "dev", name] if name.starts_with("br0.") => {
                let vlan = line.vlan(&name[4..])?;
                if self.upper.remove(vlan) {
                    return Ok(());
                }
                Err(line.wrong(format!("there is no interface `{name}`")))
            }
            // Where the switch itself is reached: nothing that frames of others depend on.
            ["addr" | "address", "add" | "replace", _, "dev", name]
                if name.starts_with("br0.") && self.upper.contains(line.vlan(&name[4..])?) =>
            {
                Ok(())
            }
            ["link", "del", "dev", name] => match interface_bundle(name) {
                Some(number) if self.bonds.contains_key(&number) => {
                    self.bonds.remove(&number);
                    for port in self.ports.values_mut().filter(|port| port.bond == Some(number)) {
                        *port = Interface { pause: port.pause, ..Interface::down() };
                    }
                    Ok(())
                }
                _ => Err(line.wrong(format!("there is no bundle `{name}`"))),
            },
            _ => {
                Err(line.wrong("is not understood; allowed are `link add`, `link set`, `link del`"))
            }
        }
    }

    fn add(&mut self, line: Line<'_>, words: &[&str]) -> Result<(), ParseError> {
        match words {
            ["name", BRIDGE, "type", "bridge", options @ ..] => {
                if self.bridge {
                    return Err(line.wrong(format!("`{BRIDGE}` is there already")));
                }
                (self.bridge, self.bridge_up) = (true, false);
                self.default_pvid = Some(Vlan::DEFAULT);
                let filtering = options.windows(2).any(|pair| pair == ["vlan_filtering", "1"]);
                if !filtering {
                    return Err(line.wrong("the bridge is made without `vlan_filtering 1`"));
                }
                self.options(line, options)
            }
            ["name", name, "type", "bond", "mode", mode, rest @ ..] => {
                let number = interface_bundle(name)
                    .ok_or_else(|| line.wrong("names of bundles are `bond1`, `bond2` .."))?;
                let bundling = match *mode {
                    "802.3ad" => Bundling::Lacp,
                    "balance-xor" => Bundling::Static,
                    _ => return Err(line.wrong("allowed modes are `802.3ad` and `balance-xor`")),
                };
                let known = rest.chunks(2).all(|pair| {
                    matches!(pair, ["miimon" | "xmit_hash_policy" | "lacp_rate" | "min_links", _])
                });
                if !known {
                    return Err(line.wrong("an option of the bond is not understood"));
                }
                if self.bonds.insert(number, (bundling, Interface::down())).is_some() {
                    return Err(line.wrong(format!("`{name}` is there already")));
                }
                Ok(())
            }
            ["link", BRIDGE, "name", _, "type", "vlan", "id", vlan] => {
                self.has_bridge(line)?;
                self.upper.insert(line.vlan(vlan)?);
                Ok(())
            }
            _ => Err(line.wrong("is not understood; allowed are a bridge, a bond, a VLAN upon it")),
        }
    }

    fn options(&mut self, line: Line<'_>, options: &[&str]) -> Result<(), ParseError> {
        for pair in options.chunks(2) {
            match pair {
                ["vlan_filtering", "1"] => {}
                ["vlan_filtering", _] => {
                    return Err(line.wrong("without `vlan_filtering 1` VLANs are one network"));
                }
                // Groups are learned in the VLANs of receivers, and sent to in those of senders.
                ["mcast_snooping", "0" | "1"] => {}
                ["vlan_default_pvid", "0"] => self.default_pvid = None,
                ["vlan_default_pvid", vlan] => self.default_pvid = Some(line.vlan(vlan)?),
                ["stp_state", "0"] => self.spanning_tree = false,
                ["stp_state", "1"] => self.spanning_tree = true,
                ["ageing_time", span] => {
                    let span: u32 = line.number(span)?;
                    self.ageing = Nanos::from_millis(u64::from(span) * 10);
                }
                _ => {
                    let option = pair.join(" ");
                    return Err(line.wrong(format!("the option `{option}` is not understood")));
                }
            }
        }
        Ok(())
    }

    fn has_bridge(&self, line: Line<'_>) -> Result<(), ParseError> {
        if self.bridge {
            return Ok(());
        }
        Err(line.wrong(format!("there is no bridge `{BRIDGE}` yet")))
    }

    fn interface(&mut self, line: Line<'_>, name: &str) -> Result<&mut Interface, ParseError> {
        let ports = self.model.ports;
        let found = match (interface_port(name), interface_bundle(name)) {
            (Some(port), _) => self.ports.get_mut(&port),
            (_, Some(number)) => self.bonds.get_mut(&number).map(|(_, bond)| bond),
            _ => None,
        };
        found.ok_or_else(|| {
            line.wrong(format!("there is no interface `{name}`; ports are swp1 to swp{ports}"))
        })
    }

    fn set(&mut self, line: Line<'_>, name: &str, options: &[&str]) -> Result<(), ParseError> {
        if let Some(vlan) = name.strip_prefix("br0.") {
            let vlan = line.vlan(vlan)?;
            if options == ["up"] && self.upper.contains(vlan) {
                return Ok(());
            }
            return Err(line.wrong(format!("there is no interface `{name}`, or not so")));
        }
        let mut rest = options;
        while let [option, after @ ..] = rest {
            rest = match (*option, after) {
                ("up", _) => {
                    self.interface(line, name)?.up = true;
                    after
                }
                ("down", _) => {
                    self.interface(line, name)?.up = false;
                    after
                }
                ("nomaster", _) => {
                    let interface = self.interface(line, name)?;
                    (interface.bridged, interface.bond) = (false, None);
                    interface.vlans = Membership::default();
                    after
                }
                ("master", [BRIDGE, after @ ..]) => {
                    self.has_bridge(line)?;
                    let first = self.default_pvid;
                    let interface = self.interface(line, name)?;
                    let untagged = VlanSet::from_iter(first);
                    interface.vlans = Membership { pvid: first, untagged, ..Membership::default() };
                    (interface.bridged, interface.bond) = (true, None);
                    after
                }
                ("master", [master, after @ ..]) => {
                    self.enslave(line, name, master)?;
                    after
                }
                _ => return Err(line.wrong(format!("`{option}` is not understood here"))),
            };
        }
        Ok(())
    }

    fn enslave(&mut self, line: Line<'_>, name: &str, master: &str) -> Result<(), ParseError> {
        let number = interface_bundle(master).filter(|number| self.bonds.contains_key(number));
        let Some(number) = number else {
            return Err(line.wrong(format!("there is no bundle `{master}`")));
        };
        if interface_port(name).is_none() {
            return Err(line.wrong("only ports can be in a bundle"));
        }
        let port = self.interface(line, name)?;
        if port.up {
            return Err(line.wrong(format!("`{name}` is up; a bundle takes ports that are down")));
        }
        (port.bond, port.bridged) = (Some(number), false);
        Ok(())
    }

    fn bridge(&mut self, line: Line<'_>, words: &[&str]) -> Result<(), ParseError> {
        let ["vlan", verb @ ("add" | "del"), "dev", name, "vid", list, flags @ ..] = words else {
            return Err(line.wrong("is not understood; allowed are `vlan add` and `vlan del`"));
        };
        if list.contains(',') {
            return Err(line.wrong("`bridge` takes one VLAN or one range a line"));
        }
        let vlans = line.vlans(list)?;
        if *name == BRIDGE {
            if flags != ["self"] {
                return Err(line.wrong("of the bridge itself only `self` is understood"));
            }
            self.own = match *verb {
                "add" => self.own.union(&vlans),
                _ => self.own.difference(&vlans),
            };
            return Ok(());
        }
        let unknown = flags.iter().find(|flag| !matches!(**flag, "pvid" | "untagged" | "master"));
        if let Some(flag) = unknown {
            return Err(line.wrong(format!("`{flag}` is not understood here")));
        }
        let interface = self.interface(line, name)?;
        if !interface.bridged {
            return Err(line.wrong(format!("`{name}` is not in the bridge yet")));
        }
        let own = &mut interface.vlans;
        own.untagged = own.untagged.difference(&vlans);
        own.tagged = own.tagged.difference(&vlans);
        if own.pvid.is_some_and(|vlan| vlans.contains(vlan)) {
            own.pvid = None;
        }
        if *verb == "del" {
            return Ok(());
        }
        match flags.contains(&"untagged") {
            true => own.untagged = own.untagged.union(&vlans),
            false => own.tagged = own.tagged.union(&vlans),
        }
        if flags.contains(&"pvid") {
            if vlans.len() != 1 {
                return Err(line.wrong("`pvid` is for one VLAN"));
            }
            own.pvid = vlans.iter().next();
        }
        Ok(())
    }

    fn pause(&mut self, line: Line<'_>, name: &str, rx: &str, tx: &str) -> Result<(), ParseError> {
        let on = match (rx, tx) {
            ("on", "on") => true,
            ("off", "off") => false,
            _ => return Err(line.wrong("pause frames are on both ways or off both ways")),
        };
        if interface_port(name).is_none() {
            return Err(line.wrong("pause frames are set for ports"));
        }
        self.interface(line, name)?.pause = on;
        Ok(())
    }

    fn state(self) -> Result<SwitchState, ParseError> {
        if let Some(vlan) = self.default_pvid {
            return Err(ParseError::whole(format!(
                "`{BRIDGE}` puts every port that it is given into VLAN {vlan}; make it with \
                 `vlan_default_pvid 0`"
            )));
        }
        if !self.bridge_up {
            return Err(ParseError::whole(format!(
                "`{BRIDGE}` passes nothing on before `link set dev {BRIDGE} up`"
            )));
        }
        let mut ports = Vec::new();
        let mut bundles = BTreeMap::new();
        for (number, port) in self.ports.iter().filter(|(_, port)| port.bridged && port.up) {
            ports.push(settings(vec![*number], None, &port.vlans, port.pause));
        }
        for (number, (bundling, bond)) in &self.bonds {
            let members =
                || self.ports.iter().filter(|(_, port)| port.bond == Some(*number) && port.up);
            let all: Vec<PortNumber> = members().map(|(port, _)| *port).collect();
            let mut pauses = members().map(|(_, port)| port.pause);
            let pause = pauses.next().unwrap_or(false);
            if pauses.any(|other| other != pause) {
                let problem = format!("the ports of `bond{number}` differ in pause frames");
                return Err(ParseError::whole(problem));
            }
            if let (true, true, Some(first)) = (bond.bridged, bond.up, all.first()) {
                bundles.insert(*first, *number);
                ports.push(settings(all, Some(*bundling), &bond.vlans, pause));
            }
        }
        let management = self.upper.intersection(&self.own).iter().next();
        let settings = SwitchSettings {
            vlans: VlanSet::EMPTY,
            ports,
            ageing: Some(self.ageing),
            spanning_tree: self.spanning_tree,
        };
        Ok(SwitchState { settings, management, bundles }.normal(false))
    }
}

fn settings(
    ports: Vec<PortNumber>,
    bundle: Option<Bundling>,
    vlans: &Membership,
    flow_control: bool,
) -> PortSettings {
    PortSettings {
        ports,
        bundle,
        pvid: vlans.pvid,
        untagged: vlans.untagged.clone(),
        tagged: vlans.tagged.clone(),
        accept_tagged: true,
        flow_control,
    }
}
