//! Plain VLANs: forests in which frames stay and can go both ways.
//!
//! Everything follows from the trees: a frame from a switch goes along the one way there is; who sends
//! in a VLAN is known along the ways that its frames took; sums over branches count entries and loads.
//! For each switch that hosts send from, the tree is walked once.

use super::channels::{Channels, NONE, switch_id};
use super::company::{Company, Receivers, Senders};
use super::fault::{Fault, Lost};
use super::report::Findings;
use super::shared_learning::Shared;
use super::standing::Standing;
use super::waits::Waits;
use super::walk::Walk;
use crate::HostId;

/// What a check of plain VLANs goes through and adds to.
#[derive(Debug)]
pub(super) struct Plain<'a> {
    pub(super) channels: &'a Channels,
    /// For each switch which part of the wiring it is in: nobody expects to cross from one to another.
    pub(super) parts: &'a [usize],
    pub(super) shared: &'a Shared,
    pub(super) findings: &'a mut Findings,
    pub(super) waits: &'a mut Waits,
    walk: Walk,
    representatives: Vec<u64>,
    receivers: Vec<u64>,
}

impl<'a> Plain<'a> {
    pub(super) fn new(
        channels: &'a Channels,
        parts: &'a [usize],
        shared: &'a Shared,
        findings: &'a mut Findings,
        waits: &'a mut Waits,
    ) -> Self {
        let (representatives, receivers) = (Vec::new(), Vec::new());
        let walk = Walk::default();
        Self { channels, parts, shared, findings, waits, walk, representatives, receivers }
    }

    /// Counts what switches learn in the VLAN by broadcasts and priming.
    pub(super) fn tables(&mut self, company: &mut Company) {
        let all =
            u64::try_from(company.primed.representatives.len()).expect("a count fits in 64 bits");
        let mut visited = vec![false; self.channels.switches];
        for start in 0..self.channels.switches {
            if visited[start] {
                continue;
            }
            self.walk.from(self.channels, company.place, start);
            let crowds = &company.crowds;
            let mut everywhere = 0;
            for step in &self.walk.steps {
                visited[step.switch] = true;
                everywhere += u64::from(crowds[step.switch].everywhere);
            }
            let known = |switch: usize| u64::from(crowds[switch].representatives);
            let sending = |switch: usize| u64::from(crowds[switch].on_the_way);
            self.walk.sums(known, &mut self.representatives);
            self.walk.sums(sending, &mut self.receivers);
            let (near, of_branch) = (&self.representatives, &self.receivers);
            let floods = near[0] < all;
            let entries = &mut self.findings.entries;
            for (at, step) in self.walk.steps.iter().enumerate() {
                company.floods[step.switch] = floods;
                let on_the_way = if floods {
                    of_branch[0]
                } else {
                    let own = sending(step.switch);
                    own + if near[at] > 0 { of_branch[0] - of_branch[at] } else { 0 }
                };
                entries[step.switch] += everywhere + on_the_way;
                if at > 0 && !floods && near[at] < near[0] {
                    entries[self.walk.steps[step.before].switch] += of_branch[at];
                }
            }
        }
    }

    /// Follows the frames of hosts of one switch.
    pub(super) fn follow(&mut self, company: &Company, senders: &Senders) {
        self.walk.from(self.channels, senders.vlan, senders.switch);
        self.walk.sums(|switch| company.representatives(switch), &mut self.representatives);
        self.reach(company, senders);
        if senders.to != Receivers::Broadcast {
            self.lookups(company, senders);
            self.load(senders);
        }
        if let Receivers::Chosen(pairs) = &senders.to {
            self.learn_from_traffic(company, senders, pairs);
        }
    }

    /// Whether every receiver gets the frames.
    fn reach(&mut self, company: &Company, senders: &Senders) {
        let channels = self.channels;
        let vlan = company.vlan(channels);
        let unreachable = |from, to, why| Fault::Unreachable { from, to, vlan, why };
        if let Receivers::Chosen(pairs) = &senders.to {
            let mut is_there = vec![false; channels.switches];
            self.walk.steps.iter().for_each(|step| is_there[step.switch] = true);
            for &(from, to) in pairs {
                let plug = &channels.hosts[to.place()];
                if !is_there[plug.switch] {
                    if self.parts[plug.switch] == self.parts[senders.switch] {
                        self.findings.note(|| unreachable(from, to, Lost::NoWay));
                    }
                } else if !plug.hears.contains(vlan) {
                    self.findings.note(|| unreachable(from, to, Lost::Port));
                }
            }
            return;
        }
        let reached = self.walk.steps.iter().map(|step| channels.hosts_at(step.switch).len());
        if reached.sum::<usize>() < channels.hosts.len() {
            let mut is_there = vec![false; channels.switches];
            self.walk.steps.iter().for_each(|step| is_there[step.switch] = true);
            let part = self.parts[senders.switch];
            let lost = channels
                .hosts
                .iter()
                .position(|plug| !is_there[plug.switch] && self.parts[plug.switch] == part);
            if let Some(to) = lost {
                let (from, to) = (senders.hosts[0], HostId::new(to));
                self.findings.note(|| unreachable(from, to, Lost::NoWay));
            }
        }
        for step in &self.walk.steps {
            if company.crowds[step.switch].deaf == 0 {
                continue;
            }
            let deaf = |host: HostId| !channels.hosts[host.place()].hears.contains(vlan);
            if let Some((from, to)) = senders.pair(channels, step.switch, deaf) {
                self.findings.note(|| unreachable(from, to, Lost::Port));
            }
        }
    }

    /// Whether every switch on the way knows where the receiver is.
    fn lookups(&mut self, company: &Company, senders: &Senders) {
        for at in 0..self.walk.steps.len() {
            let step = self.walk.steps[at];
            let crowd = company.crowds[step.switch];
            let is_known = self.is_known(company, at);
            if crowd.nowhere == 0 && (crowd.on_the_way == 0 || is_known) {
                continue;
            }
            let channels = self.channels;
            let mut at_switch = None;
            let unknown = |host: HostId| match company.primed.standing(channels, host) {
                Standing::Everywhere => false,
                Standing::OnTheWay if is_known => false,
                standing => self.where_unknown(company, at, host, standing).is_some(),
            };
            let found = senders.pair(channels, step.switch, unknown);
            if let Some((_, to)) = found {
                let standing = company.primed.standing(channels, to);
                at_switch = self.where_unknown(company, at, to, standing);
            }
            if let (Some((from, to)), Some(switch)) = (found, at_switch) {
                let (vlan, switch) = (company.vlan(channels), switch_id(switch));
                self.findings.note(|| Fault::Flood { from, to, vlan, switch });
            }
        }
    }

    /// Whether a host at the step `to` that is known on its way to representatives is known by every
    /// switch from the root to there: it is if the root knows it, for those that are nearer then do.
    fn is_known(&self, company: &Company, to: usize) -> bool {
        let branch = self.walk.steps[to].branch;
        to == 0
            || company.floods[self.walk.steps[0].switch]
            || self.representatives[branch] < self.representatives[0]
    }

    /// The first switch on the way to the step `to` that does not know a host there.
    fn where_unknown(
        &self,
        company: &Company,
        to: usize,
        host: HostId,
        standing: Standing,
    ) -> Option<usize> {
        let mut onward = None;
        let mut first = None;
        for at in self.walk.back(to) {
            let switch = self.walk.steps[at].switch;
            let learned = standing == Standing::OnTheWay
                && (company.floods[switch]
                    || onward.is_none_or(|next: usize| {
                        self.representatives[next] < self.representatives[0]
                    }));
            if !learned && !self.shared.knows(switch, host) {
                first = Some(switch);
            }
            onward = Some(at);
        }
        first
    }

    /// Adds what goes through channels, and from which into which.
    fn load(&mut self, senders: &Senders) {
        let channels = self.channels;
        match &senders.to {
            Receivers::Chosen(pairs) => {
                let mut at = vec![0_u64; channels.switches];
                for (_, to) in pairs {
                    at[channels.hosts[to.place()].switch] += 1;
                }
                self.walk.sums(|switch| at[switch], &mut self.receivers);
            }
            Receivers::Everyone | Receivers::Broadcast => {
                let sending = senders.hosts.len();
                let pairs = |switch| {
                    let pairs = sending * channels.hosts_at(switch).len();
                    u64::try_from(pairs).expect("a count fits in 64 bits")
                };
                self.walk.sums(pairs, &mut self.receivers);
            }
        }
        for (at, step) in self.walk.steps.iter().enumerate().skip(1) {
            if self.receivers[at] == 0 {
                continue;
            }
            self.findings.loads[step.channel as usize] += self.receivers[at];
            let before = self.walk.steps[step.before].channel;
            if before != NONE {
                self.waits.add(before, step.channel, senders.vlan);
            }
        }
    }

    /// What hosts that tag their frames teach switches with them, beyond broadcasts and priming.
    fn learn_from_traffic(
        &mut self,
        company: &Company,
        senders: &Senders,
        pairs: &[(HostId, HostId)],
    ) {
        let channels = self.channels;
        let mut at = vec![0_u64; channels.switches];
        for &host in &senders.hosts {
            let standing = company.primed.standing(channels, host);
            if standing == Standing::Everywhere {
                continue;
            }
            let floods = company.floods[senders.switch];
            at.fill(0);
            for (_, to) in pairs.iter().filter(|(from, _)| *from == host) {
                at[channels.hosts[to.place()].switch] += 1;
            }
            self.walk.sums(|switch| at[switch], &mut self.receivers);
            for (place, step) in self.walk.steps.iter().enumerate() {
                let primed = standing == Standing::OnTheWay
                    && (floods || place == 0 || self.representatives[place] > 0);
                if self.receivers[place] > 0 && !primed {
                    self.findings.entries[step.switch] += 1;
                }
            }
        }
    }
}
