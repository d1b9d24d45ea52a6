//! Shared learning: a switch that keeps one entry for an address, whatever the VLAN.
//!
//! It serves only if every VLAN in which it sees an address, or looks it up, has that address at the
//! same port: else the entry moves, or frames go where the address is in another VLAN.

use super::channels::{Channels, switch_id};
use super::company::{Company, Receivers, Senders};
use super::fault::Fault;
use super::fit::first_port;
use super::report::Findings;
use super::standing::Standing;
use super::walk::Walk;
use crate::{Configuration, HostId, Learning, Wiring};

/// What switches with shared learning know.
#[derive(Debug)]
pub(super) struct Shared {
    /// For each switch, if its learning is shared, whether it knows each host.
    known: Vec<Option<Vec<bool>>>,
}

/// A port where a switch sees an address or looks for it.
#[derive(Debug, Clone, Copy)]
struct Need {
    slot: usize,
    vlan: usize,
}

/// What a switch sees.
#[derive(Debug)]
struct Seen {
    switch: usize,
    needs: Vec<Option<Need>>,
    known: Vec<bool>,
    conflict: Option<(usize, [Need; 2])>,
}

impl Seen {
    fn need(&mut self, host: usize, slot: usize, vlan: usize) {
        let need = Need { slot, vlan };
        match self.needs[host] {
            None => self.needs[host] = Some(need),
            Some(first) if first.slot != slot => {
                self.conflict.get_or_insert((host, [first, need]));
            }
            Some(_) => {}
        }
    }

    fn learn(&mut self, host: usize, slot: usize, vlan: usize) {
        self.known[host] = true;
        self.need(host, slot, vlan);
    }
}

impl Shared {
    /// No switch shares.
    pub(super) fn none(channels: &Channels) -> Self {
        Self { known: vec![None; channels.switches] }
    }

    /// Looks at every switch with shared learning, and notes what it cannot keep apart.
    pub(super) fn new(
        channels: &Channels,
        (wiring, configuration): (&Wiring, &Configuration),
        companies: &[Company],
        senders: &[Senders],
        findings: &mut Findings,
    ) -> Self {
        let mut shared = Self::none(channels);
        let mut by_vlan: Vec<Vec<&Senders>> = vec![Vec::new(); channels.vlans.len()];
        senders.iter().for_each(|senders| by_vlan[senders.vlan].push(senders));
        for (switch, known) in shared.known.iter_mut().enumerate() {
            if wiring.switches[switch].model.learning == Learning::Independent {
                continue;
            }
            let hosts = channels.hosts.len();
            let (needs, known_here) = (vec![None; hosts], vec![false; hosts]);
            let mut seen = Seen { switch, needs, known: known_here, conflict: None };
            for company in companies {
                look(channels, company, &by_vlan[company.place], &mut seen);
                if let Some((host, needs)) = seen.conflict {
                    let ports = &configuration.switches[switch].ports;
                    findings.note(|| Fault::Moved {
                        switch: switch_id(switch),
                        host: HostId::new(host),
                        ports: needs.map(|need| first_port(&ports[need.slot])),
                        vlans: needs.map(|need| channels.vlans[need.vlan]),
                    });
                    break;
                }
            }
            *known = Some(seen.known);
        }
        shared
    }

    /// Whether the switch has shared learning and knows the host.
    pub(super) fn knows(&self, switch: usize, host: HostId) -> bool {
        self.known[switch].as_ref().is_some_and(|known| known[host.place()])
    }

    /// Sets the entries of those switches: one for each host that they know.
    pub(super) fn count(&self, findings: &mut Findings) {
        for (entries, known) in findings.entries.iter_mut().zip(&self.known) {
            if let Some(known) = known {
                *entries = known.iter().map(|&known| u64::from(known)).sum();
            }
        }
    }
}

/// What a switch sees and looks for in one VLAN.
fn look(channels: &Channels, company: &Company, senders: &[&Senders], seen: &mut Seen) {
    let mut walk = Walk::default();
    walk.from(channels, company.place, seen.switch);
    let mut place = vec![None; channels.switches];
    for (at, step) in walk.steps.iter().enumerate() {
        place[step.switch] = Some(at);
    }
    let mut known = Vec::new();
    walk.sums(|switch| company.representatives(switch), &mut known);
    let mut sending = vec![0_u64; channels.switches];
    for senders in senders.iter().filter(|senders| senders.to == Receivers::Everyone) {
        sending[senders.switch] +=
            u64::try_from(senders.hosts.len()).expect("a count fits in 64 bits");
    }
    let sends = |host: HostId| {
        let switch = channels.hosts[host.place()].switch;
        senders.iter().any(|senders| {
            senders.switch == switch
                && senders.to == Receivers::Everyone
                && senders.hosts.contains(&host)
        })
    };
    let mut sent = Vec::new();
    walk.sums(|switch| sending[switch], &mut sent);
    let floods = company.floods[seen.switch];
    let slot_of = |at: usize, host: HostId| match walk.steps[at].branch {
        0 => channels.hosts[host.place()].slot,
        branch => channels.all[walk.steps[branch].channel as usize].from_slot,
    };
    for (at, step) in walk.steps.iter().enumerate() {
        for &host in channels.hosts_at(step.switch) {
            let slot = slot_of(at, host);
            let learned = match company.primed.standing(channels, host) {
                Standing::Everywhere => true,
                Standing::OnTheWay => floods || at == 0 || known[step.branch] < known[0],
                Standing::Nowhere => false,
            };
            if learned {
                seen.learn(host.place(), slot, company.place);
            }
            let others = if at == 0 { u64::from(sends(host)) } else { sent[step.branch] };
            if sent[0] > others {
                seen.need(host.place(), slot, company.place);
            }
        }
    }
    let chosen = senders.iter().filter_map(|senders| match &senders.to {
        Receivers::Chosen(pairs) => Some(pairs),
        Receivers::Everyone | Receivers::Broadcast => None,
    });
    for &(from, to) in chosen.flatten() {
        let at = |host: HostId| place[channels.hosts[host.place()].switch];
        let (Some(from_at), Some(to_at)) = (at(from), at(to)) else { continue };
        let branch = |at: usize| walk.steps[at].branch;
        if from_at == 0 || to_at == 0 || branch(from_at) != branch(to_at) {
            seen.learn(from.place(), slot_of(from_at, from), company.place);
            seen.need(to.place(), slot_of(to_at, to), company.place);
        }
    }
}
