//! A small emulator of IEEE 802.1Q switches: one frame at a time, over single cables.
//!
//! The oracle that [`check`](crate::check()) is held against: it knows nothing of trees or routes, shares
//! no code with the checker, and is slow. Switches filter at ingress, learn with a limit, forget with
//! age, look up, flood, tag and untag; bundles send a frame over one of their cables. Spanning trees,
//! multicast filters and the switches' own addresses are left out.

mod harm;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use meikyo_units::{Nanos, SimTime};

pub use self::harm::{Harm, harm};
use crate::{
    Bundling, Configuration, Host, HostId, HostSettings, Learning, PortNumber, PortSettings,
    Priming, SwitchId, Vlan, Wiring,
};

/// Most copies of one frame that are followed: more is a storm.
const COPIES_MAX: usize = 200_000;

/// Switches and hosts, and what the switches have learned.
#[derive(Debug)]
pub struct Emulator<'a> {
    wiring: &'a Wiring,
    configuration: &'a Configuration,
    /// For each switch what is plugged into which port.
    plugs: Vec<BTreeMap<PortNumber, Plug>>,
    /// For each switch the place of the settings of each port.
    slots: Vec<BTreeMap<PortNumber, usize>>,
    tables: Vec<BTreeMap<(HostId, Option<Vlan>), Entry>>,
    now: SimTime,
    /// Whether switches learn now.
    learns: bool,
    moved: BTreeSet<(SwitchId, HostId)>,
    full: BTreeSet<SwitchId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plug {
    Host(HostId),
    Switch(SwitchId, PortNumber),
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    slot: usize,
    seen: SimTime,
}

/// A port of a switch, alone or a bundle: the place of its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortAt {
    /// The switch that the port belongs to.
    pub switch: SwitchId,
    /// The place in [`SwitchSettings::ports`](crate::SwitchSettings::ports).
    pub slot: usize,
}

/// What became of a frame.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Journey {
    /// Every copy that came to a host, with the tag that it had there.
    pub received: Vec<(HostId, Option<Vlan>)>,
    /// The switches that did not know the receiver of a unicast frame and sent it everywhere.
    pub floods: Vec<SwitchId>,
    /// From port to port between switches, each as it follows another one or none.
    pub crossings: Vec<(Crossing, Option<Crossing>)>,
    /// The switches of a loop: a copy came back to a port in a VLAN in which it had come before.
    pub looped: Option<Vec<(SwitchId, Vlan)>>,
}

/// The passage from a port of a switch to one of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Crossing {
    /// Where the frame went out.
    pub from: PortAt,
    /// Where the frame came in at the other switch.
    pub to: PortAt,
}

/// A copy of a frame inside a switch.
#[derive(Debug, Clone, Copy)]
struct Copied {
    before: Option<usize>,
    crossing: Option<Crossing>,
    switch: SwitchId,
    /// Where it came in; none if the switch made it.
    slot: Option<usize>,
    vlan: Vlan,
}

/// A frame as it leaves a host.
#[derive(Debug, Clone, Copy)]
struct Frame {
    from: Option<HostId>,
    to: Option<HostId>,
}

impl<'a> Emulator<'a> {
    /// Switches that have just been switched on.
    ///
    /// # Panics
    /// If the configuration has not as many switches and hosts as the wiring.
    pub fn new(wiring: &'a Wiring, configuration: &'a Configuration) -> Self {
        assert_eq!(wiring.switches.len(), configuration.switches.len(), "settings of each switch");
        assert_eq!(wiring.hosts.len(), configuration.hosts.len(), "settings of each host");
        let mut plugs = vec![BTreeMap::new(); wiring.switches.len()];
        for (place, host) in wiring.hosts.iter().enumerate() {
            for &port in &host.ports {
                plugs[host.switch.place()].insert(port, Plug::Host(HostId::new(place)));
            }
        }
        for trunk in &wiring.trunks {
            let [one, other] = &trunk.ends;
            for (&near, &far) in one.ports.iter().zip(&other.ports) {
                plugs[one.switch.place()].insert(near, Plug::Switch(other.switch, far));
                plugs[other.switch.place()].insert(far, Plug::Switch(one.switch, near));
            }
        }
        let slots = configuration.switches.iter().map(|settings| {
            let ports = settings.ports.iter().enumerate();
            ports
                .flat_map(|(slot, port)| port.ports.iter().map(move |&port| (port, slot)))
                .collect()
        });
        Self {
            wiring,
            configuration,
            plugs,
            slots: slots.collect(),
            tables: vec![BTreeMap::new(); wiring.switches.len()],
            now: SimTime::START,
            learns: true,
            moved: BTreeSet::new(),
            full: BTreeSet::new(),
        }
    }

    /// Lets time pass, so that switches forget what they learned longer ago than their ageing time.
    pub fn wait(&mut self, span: Nanos) {
        self.now = self.now + span;
    }

    /// How many addresses a switch knows now, over all VLANs.
    pub fn entries(&self, switch: SwitchId) -> usize {
        let table = self.tables[switch.place()].values();
        table.filter(|entry| self.is_fresh(switch, entry)).count()
    }

    /// The switches that saw an address at another port than before.
    pub const fn moved(&self) -> &BTreeSet<(SwitchId, HostId)> {
        &self.moved
    }

    /// The switches that had no room for an address.
    pub const fn full(&self) -> &BTreeSet<SwitchId> {
        &self.full
    }

    /// A host sends a broadcast, as for ARP: without a tag.
    pub fn broadcast(&mut self, from: HostId) -> Journey {
        self.send(from, None, None)
    }

    /// A host sends to another one, tagged as its settings say.
    pub fn unicast(&mut self, from: HostId, to: HostId) -> Journey {
        let tag = match &self.configuration.hosts[from.place()] {
            HostSettings::Untagged => None,
            HostSettings::Tagged(tags) => tags.get(&to).copied(),
        };
        self.send(from, Some(to), tag)
    }

    /// Every host sends one broadcast.
    pub fn announce(&mut self) {
        for host in self.hosts() {
            self.broadcast(host);
        }
    }

    /// The switches are taught as the configuration says.
    pub fn prime(&mut self) {
        match &self.configuration.priming {
            Priming::None => {}
            Priming::Broadcast(vlans) => {
                for host in self.hosts() {
                    for vlan in vlans.iter() {
                        self.send(host, None, Some(vlan));
                    }
                }
            }
            Priming::Directed(representatives) => {
                for known in representatives {
                    self.send(known.host, None, Some(known.vlan));
                }
                for host in self.hosts() {
                    for known in representatives.iter().filter(|known| known.host != host) {
                        self.send(host, Some(known.host), Some(known.vlan));
                    }
                }
            }
        }
    }

    /// A switch itself sends a broadcast in a VLAN: to all ports.
    pub fn send_from_switch(&mut self, switch: SwitchId, vlan: Vlan) -> Journey {
        let first = Copied { before: None, crossing: None, switch, slot: None, vlan };
        self.follow(Frame { from: None, to: None }, first)
    }

    /// A host sends a frame; `to` is none for a broadcast, `tag` none for a frame without.
    pub fn send(&mut self, from: HostId, to: Option<HostId>, tag: Option<Vlan>) -> Journey {
        let frame = Frame { from: Some(from), to };
        let host = &self.wiring.hosts[from.place()];
        let cables = self.host_cables(from);
        let Some(nth) = frame.spread().checked_rem(cables.len()) else {
            return Journey::default();
        };
        match self.enter(host.switch, cables[nth], tag) {
            Some((slot, vlan)) => {
                let switch = host.switch;
                let first = Copied { before: None, crossing: None, switch, slot: Some(slot), vlan };
                self.follow(frame, first)
            }
            None => Journey::default(),
        }
    }

    fn hosts(&self) -> impl Iterator<Item = HostId> + use<> {
        (0..self.wiring.hosts.len()).map(HostId::new)
    }

    fn follow(&mut self, frame: Frame, first: Copied) -> Journey {
        let mut journey = Journey::default();
        let mut copies = vec![first];
        let mut waiting = VecDeque::from([0]);
        while let Some(at) = waiting.pop_front() {
            let copy = copies[at];
            if let (Some(from), Some(slot), true) = (frame.from, copy.slot, self.learns) {
                self.learn(copy.switch, from, copy.vlan, slot);
            }
            for slot in self.ways_out(frame, copy, &mut journey) {
                let from = PortAt { switch: copy.switch, slot };
                let Some((port, tag)) = self.leave(from, copy.vlan, frame) else { continue };
                match self.plugs[copy.switch.place()].get(&port) {
                    None => {}
                    Some(&Plug::Host(host)) => journey.received.push((host, tag)),
                    Some(&Plug::Switch(switch, port)) => {
                        let Some((slot, vlan)) = self.enter(switch, port, tag) else { continue };
                        let crossing = Crossing { from, to: PortAt { switch, slot } };
                        journey.crossings.push((crossing, copy.crossing));
                        let (before, crossing) = (Some(at), Some(crossing));
                        let next = Copied { before, crossing, switch, slot: Some(slot), vlan };
                        if let Some(circle) = circle(&copies, next) {
                            journey.looped = Some(circle);
                            return journey;
                        }
                        waiting.push_back(copies.len());
                        copies.push(next);
                        assert!(copies.len() < COPIES_MAX, "a loop is found before this");
                    }
                }
            }
        }
        journey
    }

    /// The ports that a copy of a frame goes to.
    fn ways_out(&self, frame: Frame, copy: Copied, journey: &mut Journey) -> Vec<usize> {
        if let Some(to) = frame.to {
            let key = (to, self.key_vlan(copy.switch, copy.vlan));
            match self.tables[copy.switch.place()].get(&key) {
                Some(entry) if self.is_fresh(copy.switch, entry) => {
                    // What would have to go back to where it came from is dropped.
                    return Vec::from_iter((Some(entry.slot) != copy.slot).then_some(entry.slot));
                }
                _ => journey.floods.push(copy.switch),
            }
        }
        let slots = 0..self.configuration.switches[copy.switch.place()].ports.len();
        slots.filter(|&slot| Some(slot) != copy.slot).collect()
    }

    /// Through which cable, and with which tag, a frame leaves; none where it may not.
    fn leave(&self, at: PortAt, vlan: Vlan, frame: Frame) -> Option<(PortNumber, Option<Vlan>)> {
        let settings = self.settings(at);
        if !self.is_member(at, vlan) {
            return None;
        }
        let cables = self.cables(at);
        let port = *cables.get(frame.spread().checked_rem(cables.len())?)?;
        Some((port, (!settings.untagged.contains(vlan)).then_some(vlan)))
    }

    /// The place of the settings of the port that a frame comes in at, and the VLAN that it is in
    /// then; none if it is dropped.
    fn enter(
        &self,
        switch: SwitchId,
        port: PortNumber,
        tag: Option<Vlan>,
    ) -> Option<(usize, Vlan)> {
        let slot = *self.slots[switch.place()].get(&port)?;
        let at = PortAt { switch, slot };
        let settings = self.settings(at);
        let vlan = match tag {
            Some(vlan) if settings.accept_tagged => vlan,
            Some(_) => return None,
            None => settings.pvid?,
        };
        (self.is_member(at, vlan) && self.cables(at).contains(&port)).then_some((slot, vlan))
    }

    /// Whether frames of the VLAN may pass the port; a VLAN that the switch does not have has no
    /// members, and VLAN 1 is always there.
    fn is_member(&self, at: PortAt, vlan: Vlan) -> bool {
        let vlans = &self.configuration.switches[at.switch.place()].vlans;
        self.settings(at).is_member(vlan) && (vlan == Vlan::DEFAULT || vlans.contains(vlan))
    }

    /// The ports of a bundle that are in use: with LACP those whose other ends agree that they are one
    /// bundle.
    fn cables(&self, at: PortAt) -> Vec<PortNumber> {
        let settings = self.settings(at);
        let plugs = &self.plugs[at.switch.place()];
        let plugged = settings.ports.iter().copied().filter(|port| plugs.contains_key(port));
        if settings.bundle != Some(Bundling::Lacp) {
            return plugged.collect();
        }
        let partner = |port: PortNumber| match *plugs.get(&port)? {
            Plug::Host(host) => Some((None, host.place())),
            Plug::Switch(switch, port) => {
                let slot = *self.slots[switch.place()].get(&port)?;
                let settings = self.settings(PortAt { switch, slot });
                (settings.bundle == Some(Bundling::Lacp)).then_some((Some(switch), slot))
            }
        };
        let chosen = plugged.clone().find_map(partner);
        plugged.filter(|&port| chosen.is_some() && partner(port) == chosen).collect()
    }

    /// The cables that a host sends over: with LACP those whose ports at the switch agree that they
    /// are one bundle, else all.
    fn host_cables(&self, host: HostId) -> Vec<PortNumber> {
        let Host { switch, ports, .. } = &self.wiring.hosts[host.place()];
        if ports.len() == 1 || self.configuration.host_bundling == Bundling::Static {
            return ports.clone();
        }
        let partner = |port: &PortNumber| {
            let slot = *self.slots[switch.place()].get(port)?;
            let settings = self.settings(PortAt { switch: *switch, slot });
            (settings.bundle == Some(Bundling::Lacp)).then_some(slot)
        };
        let chosen = ports.iter().find_map(partner);
        ports.iter().copied().filter(|port| chosen.is_some() && partner(port) == chosen).collect()
    }

    fn learn(&mut self, switch: SwitchId, host: HostId, vlan: Vlan, slot: usize) {
        let key = (host, self.key_vlan(switch, vlan));
        let ageing = self.configuration.switches[switch.place()].ageing;
        let now = self.now;
        let table = &mut self.tables[switch.place()];
        if let Some(ageing) = ageing {
            table.retain(|_, entry| now.since(entry.seen) < ageing);
        }
        let limit = self.wiring.switches[switch.place()].model.table_entries;
        let is_full = u32::try_from(table.len()).is_ok_and(|entries| entries >= limit);
        match table.get_mut(&key) {
            Some(entry) => {
                if entry.slot != slot {
                    self.moved.insert((switch, host));
                }
                *entry = Entry { slot, seen: now };
            }
            None if is_full => {
                self.full.insert(switch);
            }
            None => {
                table.insert(key, Entry { slot, seen: now });
            }
        }
    }

    fn is_fresh(&self, switch: SwitchId, entry: &Entry) -> bool {
        let ageing = self.configuration.switches[switch.place()].ageing;
        ageing.is_none_or(|ageing| self.now.since(entry.seen) < ageing)
    }

    fn key_vlan(&self, switch: SwitchId, vlan: Vlan) -> Option<Vlan> {
        match self.wiring.switches[switch.place()].model.learning {
            Learning::Independent => Some(vlan),
            Learning::Shared => None,
        }
    }

    fn settings(&self, at: PortAt) -> &PortSettings {
        &self.configuration.switches[at.switch.place()].ports[at.slot]
    }
}

impl Frame {
    /// What bundles choose the cable by.
    fn spread(self) -> usize {
        let place = |host: Option<HostId>| host.map_or(0, |host| host.place() + 1);
        place(self.from) + 3 * place(self.to)
    }
}

/// The switches that a copy has gone round, if it was where it is now before.
fn circle(copies: &[Copied], next: Copied) -> Option<Vec<(SwitchId, Vlan)>> {
    let mut passed = Vec::new();
    let mut at = next.before;
    while let Some(place) = at {
        let copy = copies[place];
        passed.push((copy.switch, copy.vlan));
        if (copy.switch, copy.slot, copy.vlan) == (next.switch, next.slot, next.vlan) {
            passed.reverse();
            return Some(passed);
        }
        at = copy.before;
    }
    None
}
