//! The switch behind commands that are typed at a prompt, whatever the words of the maker are: ports in
//! access and general (hybrid) mode, port channels, VLANs that have to be defined.
//!
//! Makers have their own command languages; those of a vendor are in its directory. This module is the
//! switch behind them: it holds the state, and refuses what the switch would refuse (a VLAN that is not
//! defined, a general setting in access mode). What Broadcom's FASTPATH has beyond that, and the makers
//! that build upon it, are [`TypedSwitch::of_interface`] and [`TypedSwitch::global`]. [`Prompt`] is where
//! lines go that are typed, [`TypedVendor`] what of a vendor is only data.

mod names;
mod prompt;
mod vendor;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use meikyo_units::Nanos;

use super::reading::{Line, ParseError};
use super::state::SwitchState;
use crate::{Bundling, PortNumber, PortSettings, SwitchModel, SwitchSettings, Vlan, VlanSet};
pub(super) use names::PortNames;
pub(super) use prompt::{Grammar, Mode, Prompt};
pub(super) use vendor::{Ageing, Pauses, TypedVendor};

/// Spans after which addresses may be forgotten, in seconds.
pub(super) const AGEING_S: RangeInclusive<u64> = 10..=1_000_000;

/// Beginnings of answers, in lower case, by which a prompt refuses what was typed.
pub(super) const REFUSALS: [&str; 5] =
    ["invalid input", "incomplete command", "command not found", "error", "failed"];

/// A port or a port channel.
#[derive(Debug, Clone)]
pub(super) struct Port {
    open: bool,
    /// In general mode; otherwise in access mode. A switch that keeps what was set for a mode changes
    /// this alone.
    general: bool,
    access: Vlan,
    pvid: Vlan,
    tagged_only: bool,
    untagged: VlanSet,
    tagged: VlanSet,
    /// The port channel that a port is in.
    group: Option<(u16, Bundling)>,
    /// Whether pause frames are sent and obeyed; of the ports of a bundle, not of the bundle.
    pause: bool,
}

impl Port {
    fn factory(open: bool) -> Self {
        Self {
            pause: true,
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

    fn with(settings: &PortSettings) -> Self {
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

    /// Enters a mode in which everything is as delivered, as a switch does that forgets what was set for
    /// the mode before.
    fn enter_mode_anew(&mut self, general: bool) {
        if self.general != general {
            let Self { open, group, pause, .. } = *self;
            *self = Self { general, group, pause, ..Self::factory(open) };
        }
    }
}

/// The interfaces that commands are about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Interfaces {
    /// Ports, by their numbers.
    Ports(Vec<PortNumber>),
    /// Port channels, by their numbers.
    Bundles(Vec<u16>),
}

/// In what makers differ where they otherwise write alike.
#[derive(Debug)]
pub(super) struct Maker {
    /// Where a VLAN is defined, for people: the end of "`vlan 101`".
    pub(super) defined_where: &'static str,
    /// What a bundle is called, with what is between that and its number.
    pub(super) bundle: &'static str,
    /// The commands by which an interface enters access and general mode.
    pub(super) modes: [&'static str; 2],
    /// The mode of a channel group that speaks LACP; the other is `on`.
    pub(super) lacp: &'static str,
    /// Whether an interface forgets what was set for a mode when it enters the other one.
    pub(super) forgets_modes: bool,
    /// Whether an interface is in general mode as delivered, or always, since there are no modes.
    pub(super) begins_general: bool,
    /// Whether a general interface drops frames without a tag by having a PVID whose VLAN it is not in,
    /// which need not be defined; elsewhere there is a command for that.
    pub(super) drops_by_pvid: bool,
    /// Beginnings of lines that make no difference to frames of the fabric, outside of any interface.
    pub(super) ignored: &'static [&'static str],
    /// Beginnings of lines that make no difference to frames of the fabric, of an interface.
    pub(super) ignored_of_interface: &'static [&'static str],
}

/// A switch that carries out commands.
pub(super) struct TypedSwitch<'a> {
    pub(super) model: &'a SwitchModel,
    maker: &'static Maker,
    spanning_tree: bool,
    pub(super) ageing: Option<Nanos>,
    pub(super) management: Option<Vlan>,
    pub(super) interfaces: Option<Interfaces>,
    vlans: VlanSet,
    ports: BTreeMap<PortNumber, Port>,
    bundles: BTreeMap<u16, Port>,
    /// How the ports of bundles agree, where that is said of bundles.
    bundlings: BTreeMap<u16, Bundling>,
    /// Where a port channel was first named.
    named: BTreeMap<u16, (usize, String)>,
}

impl<'a> TypedSwitch<'a> {
    /// A switch of the model in a state.
    pub(super) fn new(model: &'a SwitchModel, before: &SwitchState, maker: &'static Maker) -> Self {
        let settings = &before.settings;
        let pause = settings.ports.first().is_none_or(|port| port.flow_control);
        let general = maker.begins_general;
        let shut = Port { pause, general, ..Port::factory(false) };
        let mut ports: BTreeMap<_, _> =
            (1..=model.ports).map(|port| (PortNumber(port), shut.clone())).collect();
        let mut bundles = BTreeMap::new();
        let mut bundlings = BTreeMap::new();
        for (own, number) in settings.ports.iter().zip(before.numbers_for(settings)) {
            match (number, own.bundle) {
                (Some(number), Some(bundling)) => {
                    for port in &own.ports {
                        let (group, pause) = (Some((number, bundling)), own.flow_control);
                        ports.insert(*port, Port { group, pause, general, ..Port::factory(true) });
                    }
                    bundles.insert(number, Port::with(own));
                    bundlings.insert(number, bundling);
                }
                _ => {
                    for port in &own.ports {
                        ports.insert(*port, Port { pause: own.flow_control, ..Port::with(own) });
                    }
                }
            }
        }
        Self {
            model,
            maker,
            spanning_tree: settings.spanning_tree,
            ageing: settings.ageing,
            management: before.management,
            interfaces: None,
            vlans: settings.vlans.clone(),
            ports,
            bundles,
            bundlings,
            named: BTreeMap::new(),
        }
    }

    /// The port if the switch has it.
    pub(super) fn port(
        &self,
        line: Line<'_>,
        name: &str,
        number: Option<PortNumber>,
    ) -> Result<PortNumber, ParseError> {
        number.filter(|port| self.ports.contains_key(port)).ok_or_else(|| {
            let (model, most) = (&self.model.name, self.model.ports);
            line.wrong(format!("{model} has no port `{name}`; it has {most} ports"))
        })
    }

    /// Goes on with these port channels: `1-3,7`.
    pub(super) fn enter_bundles(&mut self, line: Line<'_>, list: &str) -> Result<(), ParseError> {
        let mut numbers: Vec<u16> = Vec::new();
        for part in list.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            numbers.extend(line.number::<u16>(first)?..=line.number(last)?);
        }
        for number in &numbers {
            self.name_bundle(line, *number)?;
        }
        self.interfaces = Some(Interfaces::Bundles(numbers));
        Ok(())
    }

    fn name_bundle(&mut self, line: Line<'_>, number: u16) -> Result<(), ParseError> {
        if number == 0 || number > self.model.bundles {
            let (model, most) = (&self.model.name, self.model.bundles);
            return Err(line.wrong(format!("{model} has bundles 1 to {most}")));
        }
        let general = self.maker.begins_general;
        self.bundles.entry(number).or_insert_with(|| Port { general, ..Port::factory(true) });
        self.named.entry(number).or_insert_with(|| (line.number, line.text.to_owned()));
        Ok(())
    }

    /// Puts the ports that commands are about into a port channel.
    pub(super) fn join_bundle(
        &mut self,
        line: Line<'_>,
        number: u16,
        bundling: Bundling,
    ) -> Result<(), ParseError> {
        self.name_bundle(line, number)?;
        self.each(|port| port.group = Some((number, bundling)));
        Ok(())
    }

    /// Changes every interface that commands are about.
    fn each(&mut self, change: impl Fn(&mut Port)) {
        self.targets().into_iter().for_each(change);
    }

    fn targets(&mut self) -> Vec<&mut Port> {
        match &self.interfaces {
            Some(Interfaces::Ports(numbers)) => {
                let ports = self.ports.iter_mut();
                ports.filter(|(port, _)| numbers.contains(port)).map(|(_, port)| port).collect()
            }
            Some(Interfaces::Bundles(numbers)) => {
                let bundles = self.bundles.iter_mut();
                bundles.filter(|(own, _)| numbers.contains(own)).map(|(_, port)| port).collect()
            }
            None => Vec::new(),
        }
    }

    /// Carries out a command of the whole switch that all makers write alike.
    pub(super) fn global(&mut self, line: Line<'_>, words: &[&str]) -> Result<(), ParseError> {
        match words {
            ["spanning-tree"] => self.spanning_tree = true,
            ["no", "spanning-tree"] => self.spanning_tree = false,
            ["flowcontrol"] => self.set_pause_of_all(true),
            ["no", "flowcontrol"] => self.set_pause_of_all(false),
            _ => self.ignored(line)?,
        }
        Ok(())
    }

    /// Passes over a command of the whole switch that makes no difference to frames; refuses others.
    pub(super) fn ignored(&self, line: Line<'_>) -> Result<(), ParseError> {
        if begins_any(line.text, self.maker.ignored) {
            return Ok(());
        }
        Err(line.wrong("is not understood (docs/fabric-deployment.md lists what is)"))
    }

    /// The same for a command of an interface.
    pub(super) fn ignored_of_interface(&self, line: Line<'_>) -> Result<(), ParseError> {
        if begins_any(line.text, self.maker.ignored_of_interface) {
            return Ok(());
        }
        Err(line.wrong("is not understood for an interface (see docs/fabric-deployment.md)"))
    }

    /// Whether a spanning tree protocol runs.
    pub(super) const fn set_spanning_tree(&mut self, on: bool) {
        self.spanning_tree = on;
    }

    /// Turns pause frames on or off for every port.
    pub(super) fn set_pause_of_all(&mut self, on: bool) {
        self.ports.values_mut().for_each(|port| port.pause = on);
    }

    /// Opens or shuts the interfaces that commands are about.
    pub(super) fn open(&mut self, open: bool) {
        self.each(|port| port.open = open);
    }

    /// Takes the ports that commands are about out of their port channels.
    pub(super) fn leave_bundle(&mut self) {
        self.each(|port| port.group = None);
    }

    /// Puts the interfaces that commands are about into access mode, and into a VLAN.
    pub(super) fn access(&mut self, line: Line<'_>, vlan: Vlan) -> Result<(), ParseError> {
        self.defined(line, vlan)?;
        self.in_mode(line, false)?;
        self.each(|port| port.access = vlan);
        Ok(())
    }

    /// The VLAN of frames without a tag, in general mode.
    pub(super) fn pvid(&mut self, line: Line<'_>, vlan: Vlan) -> Result<(), ParseError> {
        self.in_mode(line, true)?;
        if self.maker.drops_by_pvid {
            self.each(|port| (port.pvid, port.tagged_only) = (vlan, false));
            return Ok(());
        }
        self.defined(line, vlan)?;
        self.each(|port| port.pvid = vlan);
        Ok(())
    }

    /// Whether pause frames are sent and obeyed, at the ports that commands are about.
    pub(super) fn pause(&mut self, on: bool) {
        self.each(|port| port.pause = on);
    }

    /// How the ports of the bundles agree that commands are about, where that is said of bundles.
    pub(super) fn bundling(&mut self, bundling: Bundling) {
        let Some(Interfaces::Bundles(numbers)) = &self.interfaces else { return };
        for number in numbers {
            self.bundlings.insert(*number, bundling);
        }
        for port in self.ports.values_mut() {
            if let Some((number, own)) = &mut port.group
                && numbers.contains(number)
            {
                *own = bundling;
            }
        }
    }

    /// How the ports of this bundle agree, where that is said of bundles: static, if nothing is said.
    pub(super) fn bundling_of(&self, number: u16) -> Bundling {
        self.bundlings.get(&number).copied().unwrap_or(Bundling::Static)
    }

    /// Whether frames without a tag are dropped, in general mode.
    pub(super) fn tagged_only(&mut self, line: Line<'_>, only: bool) -> Result<(), ParseError> {
        self.in_mode(line, true)?;
        self.each(|port| port.tagged_only = only);
        Ok(())
    }

    /// Lets the interfaces that commands are about take frames with and without a tag, as far as their
    /// mode does.
    pub(super) fn admit_all(&mut self) {
        self.each(|port| port.tagged_only = false);
    }

    /// Accepts that tagged frames are dropped, which ports in access mode do by themselves.
    pub(super) fn only_access(&mut self, line: Line<'_>) -> Result<(), ParseError> {
        self.in_mode(line, false)
    }

    /// Makes the interfaces that commands are about members of VLANs, in general mode.
    pub(super) fn add(
        &mut self,
        line: Line<'_>,
        vlans: &VlanSet,
        with_tag: bool,
    ) -> Result<(), ParseError> {
        self.in_mode(line, true)?;
        self.all_defined(line, vlans)?;
        self.each(|port| {
            let (to, from) = match with_tag {
                true => (&mut port.tagged, &mut port.untagged),
                false => (&mut port.untagged, &mut port.tagged),
            };
            *to = to.union(vlans);
            *from = from.difference(vlans);
        });
        Ok(())
    }

    /// Makes the interfaces that commands are about members of VLANs, without a tag where they are in them
    /// for the first time, in general mode.
    pub(super) fn include(&mut self, line: Line<'_>, vlans: &VlanSet) -> Result<(), ParseError> {
        self.in_mode(line, true)?;
        self.all_defined(line, vlans)?;
        self.each(|port| port.untagged = port.untagged.union(&vlans.difference(&port.tagged)));
        Ok(())
    }

    /// Lets members of VLANs send with a tag, or without, in general mode.
    pub(super) fn tag(
        &mut self,
        line: Line<'_>,
        vlans: &VlanSet,
        with_tag: bool,
    ) -> Result<(), ParseError> {
        self.in_mode(line, true)?;
        let mut outside = VlanSet::EMPTY;
        for port in self.targets() {
            let members = port.untagged.union(&port.tagged);
            outside = outside.union(&vlans.difference(&members));
        }
        if let Some(vlan) = outside.iter().next() {
            return Err(line.wrong(format!(
                "the interface is not in VLAN {vlan}; it has to be, before its tags are set"
            )));
        }
        self.add(line, vlans, with_tag)
    }

    /// Takes the interfaces that commands are about out of VLANs, in general mode.
    pub(super) fn remove(&mut self, line: Line<'_>, vlans: &VlanSet) -> Result<(), ParseError> {
        self.in_mode(line, true)?;
        self.all_defined(line, vlans)?;
        self.each(|port| {
            port.untagged = port.untagged.difference(vlans);
            port.tagged = port.tagged.difference(vlans);
        });
        Ok(())
    }

    /// Carries out a command of an interface, in the words of those who build upon FASTPATH.
    pub(super) fn of_interface(
        &mut self,
        line: Line<'_>,
        words: &[&str],
    ) -> Result<(), ParseError> {
        match (words, &self.interfaces) {
            (["channel-group", number, "mode", mode], Some(Interfaces::Ports(_))) => {
                let number = line.number(number)?;
                let bundling = self.mode_of_group(line, mode)?;
                self.join_bundle(line, number, bundling)?;
            }
            (["no", "channel-group"], Some(Interfaces::Ports(_))) => self.leave_bundle(),
            (["switchport", "mode", "access"] | ["no", "switchport", "mode"], _) => {
                self.enter_mode(false);
            }
            (["switchport", "mode", "general"], _) => self.enter_mode(true),
            (["shutdown"], _) => self.open(false),
            (["no", "shutdown"], _) => self.open(true),
            (["switchport", "access", "vlan", vlan], _) => self.access(line, line.vlan(vlan)?)?,
            (["switchport", "general", rest @ ..], _) => {
                self.in_mode(line, true)?;
                self.general(line, rest)?;
            }
            (["no", "switchport", "general", "acceptable-frame-type", "tagged-only"], _) => {
                self.tagged_only(line, false)?;
            }
            (["no", "switchport", "general", "pvid"], _) => {
                self.in_mode(line, true)?;
                self.each(|port| port.pvid = Vlan::DEFAULT);
            }
            _ => self.ignored_of_interface(line)?,
        }
        Ok(())
    }

    /// How the ports of a channel group agree that is in this mode.
    pub(super) fn mode_of_group(&self, line: Line<'_>, mode: &str) -> Result<Bundling, ParseError> {
        let lacp = self.maker.lacp;
        match mode {
            "on" => Ok(Bundling::Static),
            mode if mode == lacp => Ok(Bundling::Lacp),
            _ => Err(line.wrong(format!("allowed modes are `{lacp}` (LACP) and `on`"))),
        }
    }

    /// Enters access or general mode.
    pub(super) fn enter_mode(&mut self, general: bool) {
        if self.maker.forgets_modes {
            self.each(|port| port.enter_mode_anew(general));
        } else {
            self.each(|port| port.general = general);
        }
    }

    /// Carries out a command that begins with `switchport general`.
    pub(super) fn general(&mut self, line: Line<'_>, words: &[&str]) -> Result<(), ParseError> {
        match words {
            ["pvid", vlan] => self.pvid(line, line.vlan(vlan)?),
            ["acceptable-frame-type", "tagged-only"] => self.tagged_only(line, true),
            ["allowed", "vlan", "remove", list] => self.remove(line, &line.vlans(list)?),
            // Without a word the switch takes `untagged`, and shows it so.
            ["allowed", "vlan", "add", list] | ["allowed", "vlan", "add", list, "untagged"] => {
                self.add(line, &line.vlans(list)?, false)
            }
            ["allowed", "vlan", "add", list, "tagged"] => self.add(line, &line.vlans(list)?, true),
            _ => Err(line.wrong("is not understood for a general port")),
        }
    }

    fn in_mode(&mut self, line: Line<'_>, general: bool) -> Result<(), ParseError> {
        if self.targets().iter().all(|port| port.general == general) {
            return Ok(());
        }
        Err(line.wrong(format!(
            "the interface is in another mode; `{}` comes first",
            self.maker.modes[usize::from(general)]
        )))
    }

    /// Defines VLANs: `101-104,110`.
    pub(super) fn define(&mut self, line: Line<'_>, list: &str) -> Result<(), ParseError> {
        self.define_all(line, &line.vlans(list)?)
    }

    /// Defines VLANs that the model can have.
    pub(super) fn define_all(&mut self, line: Line<'_>, vlans: &VlanSet) -> Result<(), ParseError> {
        let unusable = vlans
            .iter()
            .find(|vlan| *vlan != Vlan::DEFAULT && !self.model.vlan_ids.contains(*vlan));
        if let Some(vlan) = unusable {
            let (model, usable) = (&self.model.name, &self.model.vlan_ids);
            return Err(line.wrong(format!("{model} has no VLAN {vlan}; allowed are {usable}")));
        }
        self.vlans = self.vlans.union(vlans);
        Ok(())
    }

    /// Takes VLANs away, also from all ports; gives them.
    pub(super) fn undefine(&mut self, line: Line<'_>, list: &str) -> Result<VlanSet, ParseError> {
        let vlans = line.vlans(list)?;
        self.undefine_all(&vlans);
        Ok(vlans)
    }

    /// Takes VLANs away, also from all ports.
    pub(super) fn undefine_all(&mut self, vlans: &VlanSet) {
        self.vlans = self.vlans.difference(vlans);
        for port in self.ports.values_mut().chain(self.bundles.values_mut()) {
            port.untagged = port.untagged.difference(vlans);
            port.tagged = port.tagged.difference(vlans);
            if vlans.contains(port.pvid) {
                port.pvid = Vlan::DEFAULT;
            }
            if vlans.contains(port.access) {
                port.access = Vlan::DEFAULT;
            }
        }
    }

    /// Refuses a VLAN that is not defined.
    pub(super) fn defined(&self, line: Line<'_>, vlan: Vlan) -> Result<(), ParseError> {
        self.all_defined(line, &VlanSet::from_iter([vlan]))
    }

    fn all_defined(&self, line: Line<'_>, vlans: &VlanSet) -> Result<(), ParseError> {
        let missing = vlans.difference(&self.vlans);
        match missing.iter().find(|vlan| *vlan != Vlan::DEFAULT) {
            None => Ok(()),
            Some(vlan) => Err(line.wrong(format!(
                "VLAN {vlan} is not defined; `vlan {vlan}`{} comes first",
                self.maker.defined_where
            ))),
        }
    }

    /// The ageing time of so many seconds.
    pub(super) fn ageing(line: Line<'_>, seconds: u64) -> Result<Nanos, ParseError> {
        Self::ageing_within(line, seconds, &AGEING_S)
    }

    /// The ageing time of so many seconds, where a maker allows others than FASTPATH does.
    pub(super) fn ageing_within(
        line: Line<'_>,
        seconds: u64,
        allowed: &RangeInclusive<u64>,
    ) -> Result<Nanos, ParseError> {
        if allowed.contains(&seconds) {
            return Ok(Nanos::from_secs(seconds));
        }
        let (least, most) = (allowed.start(), allowed.end());
        Err(line.wrong(format!("allowed are {least} to {most} seconds")))
    }

    /// The state that the commands led to.
    pub(super) fn state(mut self) -> Result<SwitchState, ParseError> {
        if self.maker.drops_by_pvid {
            for port in self.ports.values_mut().chain(self.bundles.values_mut()) {
                let member = port.untagged.contains(port.pvid) || port.tagged.contains(port.pvid);
                port.tagged_only |= !member;
            }
        }
        let mut ports = Vec::new();
        let mut members: BTreeMap<u16, (Vec<PortNumber>, Bundling, bool)> = BTreeMap::new();
        for (number, port) in &self.ports {
            match port.group {
                None if port.open => ports.push(port.settings(vec![*number], None, port.pause)),
                None => {}
                Some((bundle, bundling)) => {
                    let first = (Vec::new(), bundling, port.pause);
                    let (all, of_all, pause) = members.entry(bundle).or_insert(first);
                    let differ = |what| {
                        let bundle = format!("the ports of `{}{bundle}`", self.maker.bundle);
                        Err(ParseError::whole(format!("{bundle} {what}")))
                    };
                    if *of_all != bundling {
                        return differ("are in different modes");
                    }
                    if *pause != port.pause {
                        return differ("send pause frames at some of them only");
                    }
                    all.extend(port.open.then_some(*number));
                }
            }
        }
        let mut bundles = BTreeMap::new();
        for (number, port) in &self.bundles {
            let Some((all, bundling, pause)) = members.remove(number) else {
                if let Some((line, text)) = self.named.get(number) {
                    let problem = format!("`{}{number}` has no ports", self.maker.bundle);
                    return Err(ParseError { line: Some(*line), text: text.clone(), problem });
                }
                continue;
            };
            if let (true, Some(first)) = (port.open, all.first()) {
                bundles.insert(*first, *number);
                ports.push(port.settings(all, Some(bundling), pause));
            }
        }
        ports.sort_by(|one, other| one.ports.cmp(&other.ports));
        let settings = SwitchSettings {
            vlans: self.vlans,
            ports,
            ageing: self.ageing,
            spanning_tree: self.spanning_tree,
        };
        Ok(SwitchState { settings, management: self.management, bundles }.normal(true))
    }
}

/// Whether a line begins with the words of one of these.
fn begins_any(text: &str, beginnings: &[&str]) -> bool {
    let begins = |words: &&str| {
        text.strip_prefix(*words).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    beginnings.iter().any(begins)
}

/// Ports in ascending order as spans of neighbours of the same kind: the first and the last of each.
pub(super) fn spans<K: PartialEq>(
    ports: &[PortNumber],
    kind: impl Fn(PortNumber) -> K,
) -> Vec<(PortNumber, PortNumber)> {
    let mut spans: Vec<(PortNumber, PortNumber)> = Vec::new();
    for port in ports {
        match spans.last_mut() {
            Some((_, last))
                if last.0.checked_add(1) == Some(port.0) && kind(*last) == kind(*port) =>
            {
                *last = *port;
            }
            _ => spans.push((*port, *port)),
        }
    }
    spans
}

/// Refuses a port that drops tagged frames and is not an access port; `switch` is the switch, with
/// its article.
fn check_port(switch: &str, port: &PortSettings) -> Result<(), String> {
    let alone = port.pvid.is_some()
        && port.tagged.is_empty()
        && port.untagged == VlanSet::from_iter(port.pvid);
    if !port.accept_tagged && !alone {
        return Err(format!(
            "{switch} drops tagged frames in access mode only, which is one VLAN, untagged"
        ));
    }
    Ok(())
}

/// Refuses an ageing time that cannot be set; `besides` is what is allowed, too: `, or never`.
fn check_ageing(span: Nanos, allowed: &RangeInclusive<u64>, besides: &str) -> Result<(), String> {
    let seconds = span.get() / 1_000_000_000;
    if allowed.contains(&seconds) && span.get().is_multiple_of(1_000_000_000) {
        return Ok(());
    }
    let (least, most) = (allowed.start(), allowed.end());
    Err(format!("an ageing time of {span}: allowed are {least} to {most} whole seconds{besides}"))
}

/// Refuses pause frames on some ports only.
fn check_pause(switch: &str, settings: &SwitchSettings) -> Result<(), String> {
    let mut pauses = settings.ports.iter().map(|port| port.flow_control);
    let first = pauses.next();
    if pauses.any(|pause| Some(pause) != first) {
        return Err(format!("{switch} has flow control on all ports or on none"));
    }
    Ok(())
}
