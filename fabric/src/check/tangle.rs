//! VLANs that are not plain: frames change VLANs on the way, or pass a trunk one way only.
//!
//! Such settings are mistakes, but not every mistake does harm. What is learned there does not follow
//! from a tree, so each host's frames are followed by themselves.

use super::channels::{Channels, NONE, Plug, switch_id};
use super::company::{Receivers, Senders};
use super::fault::{Fault, Lost};
use super::fit::first_port;
use super::report::Findings;
use super::waits::Waits;
use crate::{Configuration, HostId, Learning, Priming, Vlan, Wiring};

/// Most table entries that are kept: what needs more is refused unseen.
const CELLS_MAX: usize = 50_000_000;

/// VLANs between which frames change, and what switches have learned there.
#[derive(Debug)]
pub(super) struct Tangle<'a> {
    channels: &'a Channels,
    wiring: &'a Wiring,
    configuration: &'a Configuration,
    parts: &'a [usize],
    /// For each VLAN place its place here.
    local: Vec<Option<usize>>,
    width: usize,
    /// By switch, VLAN and host.
    table: Vec<Known>,
    /// Hosts that a switch saw at two ports.
    moved: Vec<(usize, HostId, [Known; 2])>,
}

/// Where a host was seen.
#[derive(Debug, Clone, Copy)]
struct Known {
    /// [`NONE`]: nowhere.
    slot: u32,
    vlan: u16,
}

/// A copy of a frame in a switch.
#[derive(Debug, Clone, Copy)]
struct Copied {
    switch: usize,
    slot: usize,
    vlan: usize,
    /// The channel that it came through, or [`NONE`].
    channel: u32,
}

/// What became of a frame.
#[derive(Debug, Default)]
struct Trip {
    /// Who got a copy without a tag.
    heard: Vec<HostId>,
    /// Every switch that it came to.
    switches: Vec<usize>,
    /// The first switch that flooded, and in which VLAN.
    flooded: Option<(usize, usize)>,
    /// A switch that sent it where it could not go on.
    astray: Option<usize>,
    /// Channels, each with the one before it.
    channels: Vec<(u32, u32, usize)>,
}

impl<'a> Tangle<'a> {
    /// The tangle of these VLANs with empty tables; none if it is too large.
    pub(super) fn new(
        channels: &'a Channels,
        (wiring, configuration): (&'a Wiring, &'a Configuration),
        parts: &'a [usize],
        vlans: &[usize],
    ) -> Option<Self> {
        let mut local = vec![None; channels.vlans.len()];
        for (place, &vlan) in vlans.iter().enumerate() {
            local[vlan] = Some(place);
        }
        let width = vlans.len();
        let cells = channels.switches.checked_mul(width)?.checked_mul(channels.hosts.len())?;
        let table = (cells <= CELLS_MAX).then(|| vec![Known { slot: NONE, vlan: 0 }; cells])?;
        let moved = Vec::new();
        Some(Self { channels, wiring, configuration, parts, local, width, table, moved })
    }

    /// Follows every frame of every host.
    pub(super) fn check(
        &mut self,
        senders: &[Senders],
        findings: &mut Findings,
        waits: &mut Waits,
    ) {
        self.broadcasts(findings);
        self.prime();
        let its = || senders.iter().filter(|senders| self.local[senders.vlan].is_some());
        let pairs: Vec<(HostId, HostId, usize)> = its().flat_map(|its| self.pairs(its)).collect();
        for &(from, to, vlan) in &pairs {
            self.unicast((from, to, vlan), findings, waits);
        }
        for &(from, to, vlan) in &pairs {
            self.send(from, Some(to), vlan, true);
        }
        for (switch, of_switch) in findings.entries.iter_mut().enumerate() {
            let cells = self.width * self.channels.hosts.len();
            let known = self.table[switch * cells..(switch + 1) * cells].iter();
            *of_switch += known.map(|known| u64::from(known.slot != NONE)).sum::<u64>();
        }
        for &(switch, host, known) in &self.moved {
            let ports = &self.configuration.switches[switch].ports;
            findings.note(|| Fault::Moved {
                switch: switch_id(switch),
                host,
                ports: known.map(|known| first_port(&ports[known.slot as usize])),
                vlans: known.map(|known| self.channels.vlans[usize::from(known.vlan)]),
            });
        }
    }

    fn pairs(&self, senders: &Senders) -> Vec<(HostId, HostId, usize)> {
        let vlan = senders.vlan;
        match &senders.to {
            Receivers::Broadcast => Vec::new(),
            Receivers::Chosen(pairs) => pairs.iter().map(|&(from, to)| (from, to, vlan)).collect(),
            Receivers::Everyone => {
                let hosts = || (0..self.channels.hosts.len()).map(HostId::new);
                let to_all = |&from: &HostId| {
                    let others = hosts().filter(move |&to| to != from);
                    others.map(move |to| (from, to, vlan))
                };
                senders.hosts.iter().flat_map(to_all).collect()
            }
        }
    }

    fn is_expected(&self, from: HostId, to: HostId) -> bool {
        let part = |host: HostId| self.parts[self.channels.hosts[host.place()].switch];
        from != to && part(from) == part(to)
    }

    /// Every host sends a broadcast without a tag.
    fn broadcasts(&mut self, findings: &mut Findings) {
        let hosts = self.channels.hosts.len();
        let mut copies = vec![0_u32; hosts];
        for from in (0..hosts).map(HostId::new) {
            let enters = self.channels.hosts[from.place()].enters;
            let Some(vlan) = enters.filter(|&vlan| self.local[vlan].is_some()) else { continue };
            let trip = self.send(from, None, vlan, true);
            copies.fill(0);
            trip.heard.iter().for_each(|host| copies[host.place()] += 1);
            for to in (0..hosts).map(HostId::new) {
                if self.is_expected(from, to) && copies[to.place()] != 1 {
                    let fault = self.not_one(copies[to.place()], (from, to, vlan), &trip);
                    findings.note(|| fault);
                }
            }
        }
    }

    fn not_one(
        &self,
        copies: u32,
        (from, to, vlan): (HostId, HostId, usize),
        trip: &Trip,
    ) -> Fault {
        let vlan = self.channels.vlans[vlan];
        if copies > 1 {
            return Fault::Doubled { from, to, vlan };
        }
        let why = if let Some(switch) = trip.astray {
            Lost::Astray(switch_id(switch))
        } else if trip.switches.contains(&self.channels.hosts[to.place()].switch) {
            Lost::Port
        } else {
            Lost::NoWay
        };
        Fault::Unreachable { from, to, vlan, why }
    }

    /// The frames that teach switches where hosts are.
    fn prime(&mut self) {
        let hosts = || (0..self.channels.hosts.len()).map(HostId::new);
        let configuration = self.configuration;
        match &configuration.priming {
            Priming::None => {}
            Priming::Broadcast(vlans) => {
                for host in hosts() {
                    vlans.iter().for_each(|vlan| self.send_tagged(host, None, vlan));
                }
            }
            Priming::Directed(representatives) => {
                for known in representatives {
                    self.send_tagged(known.host, None, known.vlan);
                }
                for host in hosts() {
                    for known in representatives.iter().filter(|known| known.host != host) {
                        self.send_tagged(host, Some(known.host), known.vlan);
                    }
                }
            }
        }
    }

    fn send_tagged(&mut self, from: HostId, to: Option<HostId>, vlan: Vlan) {
        let place = self.channels.place(vlan).filter(|&vlan| self.local[vlan].is_some());
        let Some(place) = place else { return };
        if self.channels.hosts[from.place()].accepts.contains(vlan) {
            self.send(from, to, place, true);
        }
    }

    fn unicast(
        &mut self,
        (from, to, vlan): (HostId, HostId, usize),
        findings: &mut Findings,
        waits: &mut Waits,
    ) {
        let trip = self.send(from, Some(to), vlan, false);
        for &(channel, before, vlan) in &trip.channels {
            findings.loads[channel as usize] += 1;
            if before != NONE {
                waits.add(before, channel, vlan);
            }
        }
        if !self.is_expected(from, to) {
            return;
        }
        let copies = trip.heard.iter().filter(|&&host| host == to).count();
        if copies != 1 {
            let copies = u32::try_from(copies).expect("a frame is heard fewer than 2^32 times");
            let fault = self.not_one(copies, (from, to, vlan), &trip);
            findings.note(|| fault);
        }
        if let Some((switch, vlan)) = trip.flooded {
            let (switch, vlan) = (switch_id(switch), self.channels.vlans[vlan]);
            findings.note(|| Fault::Flood { from, to, vlan, switch });
        }
    }

    /// Follows a frame of a host that comes in in this VLAN.
    fn send(&mut self, from: HostId, to: Option<HostId>, vlan: usize, learns: bool) -> Trip {
        let channels = self.channels;
        let plug = &channels.hosts[from.place()];
        let first = Copied { switch: plug.switch, slot: plug.slot, vlan, channel: NONE };
        let mut copies = vec![first];
        let mut trip = Trip::default();
        while let Some(copy) = copies.pop() {
            trip.switches.push(copy.switch);
            if learns {
                self.learn(copy, from);
            }
            let known = to.and_then(|to| self.lookup(copy, to));
            if to.is_some() && known.is_none() {
                trip.flooded.get_or_insert((copy.switch, copy.vlan));
            }
            let passes = |slot: usize| slot != copy.slot && known.is_none_or(|at| at == slot);
            let mut went = false;
            for &way in channels.moves(copy.vlan, copy.switch) {
                let channel = channels.channel(way);
                if passes(channel.from_slot) {
                    went = true;
                    let vlan = usize::from(way.vlan);
                    trip.channels.push((way.channel, copy.channel, copy.vlan));
                    let (switch, slot) = (channel.to, channel.to_slot);
                    copies.push(Copied { switch, slot, vlan, channel: way.channel });
                }
            }
            for &host in channels.hosts_at(copy.switch) {
                let plug: &Plug = &channels.hosts[host.place()];
                if passes(plug.slot) {
                    went |= known.is_some();
                    if plug.hears.contains(channels.vlans[copy.vlan]) {
                        trip.heard.push(host);
                    }
                }
            }
            if known.is_some() && !went {
                trip.astray = Some(copy.switch);
            }
        }
        trip
    }

    fn cell(&self, copy: Copied, host: HostId) -> usize {
        let shared = self.wiring.switches[copy.switch].model.learning == Learning::Shared;
        let local = if shared { Some(0) } else { self.local[copy.vlan] };
        let local = local.expect("a tangle holds every VLAN that its frames change to");
        (copy.switch * self.width + local) * self.channels.hosts.len() + host.place()
    }

    fn lookup(&self, copy: Copied, host: HostId) -> Option<usize> {
        let known = self.table[self.cell(copy, host)];
        (known.slot != NONE).then_some(known.slot as usize)
    }

    fn learn(&mut self, copy: Copied, host: HostId) {
        let cell = self.cell(copy, host);
        let slot = super::channels::narrow(copy.slot);
        let vlan = u16::try_from(copy.vlan).expect("there are 4,094 VLANs");
        let (known, new) = (self.table[cell], Known { slot, vlan });
        if known.slot != NONE
            && known.slot != slot
            && !self.moved.iter().any(|&(switch, moved, _)| (switch, moved) == (copy.switch, host))
        {
            self.moved.push((copy.switch, host, [known, new]));
        }
        self.table[cell] = new;
    }
}
