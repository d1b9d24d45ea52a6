//! Which ways frames have: from switch to switch in which VLAN, as the ports at both ends let them.

use super::fit::{Cables, Leads, Plugged};
use crate::{Configuration, HostId, PortSettings, SwitchId, TrunkId, Vlan, VlanSet, Wiring};

/// No channel, or no VLAN.
pub(super) const NONE: u32 = u32::MAX;

/// The ways of frames. VLANs are counted from 0 here: their *places*.
#[derive(Debug)]
pub(super) struct Channels {
    pub(super) switches: usize,
    /// The VLANs that any port is a member of.
    pub(super) vlans: Vec<Vlan>,
    /// The place of each VLAN, by its number.
    places: Vec<u16>,
    /// Both directions of a link stand side by side: the other one of `c` is `c ^ 1`.
    pub(super) all: Vec<Channel>,
    /// Where the moves of each VLAN place and switch begin.
    starts: Vec<u32>,
    moves: Vec<Move>,
    pub(super) hosts: Vec<Plug>,
    hosts_from: Vec<usize>,
    hosts_by_switch: Vec<HostId>,
}

/// One direction of a link between two switches.
#[derive(Debug, Clone, Copy)]
pub(super) struct Channel {
    pub(super) from: usize,
    pub(super) to: usize,
    /// The place of the settings at its beginning.
    pub(super) from_slot: usize,
    /// And at its end.
    pub(super) to_slot: usize,
    pub(super) trunk: TrunkId,
    pub(super) cables: usize,
    /// Whether pause frames are sent and obeyed.
    pub(super) pauses: bool,
}

/// A frame goes through a channel, and is in a VLAN behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) channel: u32,
    pub(super) vlan: u16,
}

/// A host where it is plugged in.
#[derive(Debug, Clone)]
pub(super) struct Plug {
    pub(super) switch: usize,
    /// The place of the settings of its ports.
    pub(super) slot: usize,
    /// The VLAN, by its place, of its frames without a tag.
    pub(super) enters: Option<usize>,
    /// The tags that its port takes.
    pub(super) accepts: VlanSet,
    /// The VLANs that come to it without a tag.
    pub(super) hears: VlanSet,
}

/// What a port lets through, VLANs that the switch does not have left out.
struct Gate<'a> {
    settings: &'a PortSettings,
    vlans: VlanSet,
}

impl<'a> Gate<'a> {
    fn new(configuration: &'a Configuration, switch: usize, slot: usize) -> Self {
        let of_switch = &configuration.switches[switch];
        let settings = &of_switch.ports[slot];
        let mut vlans = of_switch.vlans.clone();
        vlans.insert(Vlan::DEFAULT);
        Self { settings, vlans: settings.members().intersection(&vlans) }
    }

    /// The VLAN of frames that come in without a tag.
    fn enters(&self) -> Option<Vlan> {
        self.settings.pvid.filter(|&vlan| self.vlans.contains(vlan))
    }

    fn accepts(&self) -> VlanSet {
        if self.settings.accept_tagged { self.vlans.clone() } else { VlanSet::EMPTY }
    }

    fn untagged(&self) -> VlanSet {
        self.settings.untagged.intersection(&self.vlans)
    }

    /// Calls `pass` with each VLAN whose frames get through to the other end, and theirs behind it.
    fn pass(&self, other: &Self, mut pass: impl FnMut(Vlan, Vlan)) {
        let untagged = self.untagged();
        let tagged = self.vlans.difference(&untagged);
        tagged.intersection(&other.accepts()).iter().for_each(|vlan| pass(vlan, vlan));
        if let Some(behind) = other.enters() {
            untagged.iter().for_each(|vlan| pass(vlan, behind));
        }
    }
}

impl Channels {
    pub(super) fn new(wiring: &Wiring, configuration: &Configuration, plugged: &Plugged) -> Self {
        let switches = wiring.switches.len();
        let mut used = VlanSet::EMPTY;
        for settings in configuration.switches.iter().flat_map(|switch| &switch.ports) {
            used = used.union(&settings.untagged).union(&settings.tagged);
        }
        let vlans: Vec<Vlan> = used.iter().collect();
        let mut places = vec![u16::MAX; usize::from(Vlan::MAX.id()) + 1];
        for (place, vlan) in (0..).zip(&vlans) {
            places[usize::from(vlan.id())] = place;
        }
        let mut channels = Self {
            switches,
            vlans,
            places,
            all: links(configuration, plugged),
            starts: Vec::new(),
            moves: Vec::new(),
            hosts: Vec::new(),
            hosts_from: Vec::new(),
            hosts_by_switch: Vec::new(),
        };
        channels.find_moves(configuration);
        channels.find_hosts(wiring, configuration, plugged);
        channels
    }

    fn find_moves(&mut self, configuration: &Configuration) {
        let mut found: Vec<(u32, Move)> = Vec::new();
        for (place, channel) in self.all.iter().enumerate() {
            let from = Gate::new(configuration, channel.from, channel.from_slot);
            let to = Gate::new(configuration, channel.to, channel.to_slot);
            from.pass(&to, |vlan, behind| {
                let [vlan, behind] = [vlan, behind].map(|vlan| self.places[usize::from(vlan.id())]);
                let cell = narrow(usize::from(vlan) * self.switches + channel.from);
                found.push((cell, Move { channel: narrow(place), vlan: behind }));
            });
        }
        // Sorted by counting: cells are many, and each keeps the order of its channels.
        let mut starts = vec![0_u32; self.vlans.len() * self.switches + 1];
        for &(cell, _) in &found {
            starts[cell as usize + 1] += 1;
        }
        for cell in 1..starts.len() {
            starts[cell] += starts[cell - 1];
        }
        let mut next = starts.clone();
        self.moves = vec![Move { channel: NONE, vlan: 0 }; found.len()];
        for (cell, way) in found {
            self.moves[next[cell as usize] as usize] = way;
            next[cell as usize] += 1;
        }
        self.starts = starts;
    }

    fn find_hosts(&mut self, wiring: &Wiring, configuration: &Configuration, plugged: &Plugged) {
        let mut slots = vec![0; wiring.hosts.len()];
        for of_switch in plugged {
            for (slot, leads) in of_switch.iter().enumerate() {
                if let Some(Cables { leads: Leads::Host(host), .. }) = leads {
                    slots[host.place()] = slot;
                }
            }
        }
        let mut by_switch = vec![Vec::new(); self.switches];
        for (place, host) in wiring.hosts.iter().enumerate() {
            let (switch, slot) = (host.switch.place(), slots[place]);
            let gate = Gate::new(configuration, switch, slot);
            by_switch[switch].push(HostId::new(place));
            self.hosts.push(Plug {
                switch,
                slot,
                enters: gate.enters().and_then(|vlan| self.place(vlan)),
                accepts: gate.accepts(),
                hears: gate.untagged(),
            });
        }
        self.hosts_from = Vec::with_capacity(self.switches + 1);
        for hosts in by_switch {
            self.hosts_from.push(self.hosts_by_switch.len());
            self.hosts_by_switch.extend(hosts);
        }
        self.hosts_from.push(self.hosts_by_switch.len());
    }

    /// The place of a VLAN; none if no port is a member.
    pub(super) fn place(&self, vlan: Vlan) -> Option<usize> {
        Some(self.places[usize::from(vlan.id())])
            .filter(|&place| place != u16::MAX)
            .map(usize::from)
    }

    /// The ways out of a switch in a VLAN.
    pub(super) fn moves(&self, vlan: usize, switch: usize) -> &[Move] {
        let cell = vlan * self.switches + switch;
        &self.moves[self.starts[cell] as usize..self.starts[cell + 1] as usize]
    }

    /// The hosts of a switch.
    pub(super) fn hosts_at(&self, switch: usize) -> &[HostId] {
        &self.hosts_by_switch[self.hosts_from[switch]..self.hosts_from[switch + 1]]
    }

    pub(super) fn channel(&self, way: Move) -> &Channel {
        &self.all[way.channel as usize]
    }
}

/// Both directions of every link, those of one side by side.
fn links(configuration: &Configuration, plugged: &Plugged) -> Vec<Channel> {
    let mut all = Vec::new();
    for (from, of_switch) in plugged.iter().enumerate() {
        for (from_slot, leads) in of_switch.iter().enumerate() {
            let Some(Cables { leads: Leads::Switch(trunk, to, to_slot), count: cables }) = *leads
            else {
                continue;
            };
            let to = to.place();
            if (from, from_slot) > (to, to_slot) {
                continue;
            }
            let near = &configuration.switches[from].ports[from_slot];
            let far = &configuration.switches[to].ports[to_slot];
            let pauses = near.flow_control && far.flow_control;
            let there = Channel { from, to, from_slot, to_slot, trunk, cables, pauses };
            let back =
                Channel { from: to, to: from, from_slot: to_slot, to_slot: from_slot, ..there };
            all.extend([there, back]);
        }
    }
    all
}

/// A place in one of the larger lists.
pub(super) fn narrow(place: usize) -> u32 {
    u32::try_from(place).expect("a fabric has fewer than 2^32 ways in all VLANs")
}

/// A switch as others know it.
pub(super) fn switch_id(place: usize) -> SwitchId {
    SwitchId::new(place)
}
