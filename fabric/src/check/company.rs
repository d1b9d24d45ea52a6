//! Who sends and who listens in a plain VLAN.

use super::channels::Channels;
use super::standing::{Primed, Standing};
use crate::{HostId, Vlan};

/// What is known about a plain VLAN, switch by switch.
#[derive(Debug)]
pub(super) struct Company {
    pub(super) place: usize,
    pub(super) primed: Primed,
    /// For each switch.
    pub(super) crowds: Vec<Crowd>,
    /// For each switch whether a representative cannot be reached from there: what is sent to it
    /// floods, and so every switch that the VLAN leads to learns who sends.
    pub(super) floods: Vec<bool>,
}

/// The hosts of a switch, as a VLAN sees them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Crowd {
    /// Those that the VLAN does not come to without a tag.
    pub(super) deaf: u32,
    pub(super) everywhere: u32,
    pub(super) on_the_way: u32,
    pub(super) nowhere: u32,
    /// Representatives that are known everywhere.
    pub(super) representatives: u32,
}

/// Hosts of one switch that send in one VLAN.
#[derive(Debug, Clone)]
pub(super) struct Senders {
    pub(super) vlan: usize,
    pub(super) switch: usize,
    pub(super) hosts: Vec<HostId>,
    pub(super) to: Receivers,
}

/// To whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Receivers {
    /// To all other hosts, unicast and broadcast.
    Everyone,
    /// To all other hosts, broadcasts only.
    Broadcast,
    /// Unicast from the one to the other.
    Chosen(Vec<(HostId, HostId)>),
}

impl Company {
    pub(super) fn new(channels: &Channels, primed: Primed, place: usize) -> Self {
        let vlan = channels.vlans[place];
        let mut crowds = vec![Crowd::default(); channels.switches];
        for (host, plug) in channels.hosts.iter().enumerate() {
            let crowd = &mut crowds[plug.switch];
            crowd.deaf += u32::from(!plug.hears.contains(vlan));
            match primed.standing(channels, HostId::new(host)) {
                Standing::Everywhere => crowd.everywhere += 1,
                Standing::OnTheWay => crowd.on_the_way += 1,
                Standing::Nowhere => crowd.nowhere += 1,
            }
        }
        for &host in &primed.representatives {
            if primed.standing(channels, host) == Standing::Everywhere {
                crowds[channels.hosts[host.place()].switch].representatives += 1;
            }
        }
        Self { place, primed, crowds, floods: vec![false; channels.switches] }
    }

    pub(super) fn vlan(&self, channels: &Channels) -> Vlan {
        channels.vlans[self.place]
    }

    /// Representatives of a switch that are known everywhere.
    pub(super) fn representatives(&self, switch: usize) -> u64 {
        u64::from(self.crowds[switch].representatives)
    }
}

impl Senders {
    /// One of these hosts and one that it sends to, which is at the switch and `is_so`.
    pub(super) fn pair(
        &self,
        channels: &Channels,
        switch: usize,
        is_so: impl Fn(HostId) -> bool,
    ) -> Option<(HostId, HostId)> {
        match &self.to {
            Receivers::Chosen(pairs) => {
                let at = |host: HostId| channels.hosts[host.place()].switch;
                pairs.iter().copied().find(|&(_, to)| at(to) == switch && is_so(to))
            }
            Receivers::Everyone | Receivers::Broadcast => {
                let hosts = channels.hosts_at(switch).iter().copied();
                hosts.filter(|&to| is_so(to)).find_map(|to| {
                    let from = self.hosts.iter().copied().find(|&from| from != to);
                    from.map(|from| (from, to))
                })
            }
        }
    }
}
