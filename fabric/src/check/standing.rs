//! What switches learn about a host in a VLAN without loops, when every host has sent a broadcast and
//! the switches have been primed.

use super::channels::Channels;
use crate::{Configuration, HostId, Priming, Vlan};

/// Where in a VLAN a host is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// By every switch that the VLAN leads to: it has sent a broadcast in it.
    Everywhere,
    /// By the switches on the way to representatives.
    OnTheWay,
    /// By none: it has sent nothing in this VLAN.
    Nowhere,
}

/// How a VLAN is primed.
#[derive(Debug)]
pub(super) struct Primed {
    place: usize,
    vlan: Vlan,
    /// Whether hosts broadcast in it.
    broadcasts: bool,
    /// Whom hosts send to, each once.
    pub(super) representatives: Vec<HostId>,
}

impl Primed {
    pub(super) fn new(configuration: &Configuration, channels: &Channels, place: usize) -> Self {
        let vlan = channels.vlans[place];
        let (mut broadcasts, mut representatives) = (false, Vec::new());
        match &configuration.priming {
            Priming::None => {}
            Priming::Broadcast(vlans) => broadcasts = vlans.contains(vlan),
            Priming::Directed(all) => {
                let of_vlan = all.iter().filter(|known| known.vlan == vlan);
                representatives.extend(of_vlan.map(|known| known.host));
                representatives.sort_unstable();
                representatives.dedup();
            }
        }
        Self { place, vlan, broadcasts, representatives }
    }

    pub(super) fn standing(&self, channels: &Channels, host: HostId) -> Standing {
        let plug = &channels.hosts[host.place()];
        if plug.enters == Some(self.place) {
            return Standing::Everywhere;
        }
        if !plug.accepts.contains(self.vlan) {
            return Standing::Nowhere;
        }
        match &self.representatives[..] {
            _ if self.broadcasts => Standing::Everywhere,
            [] => Standing::Nowhere,
            representatives if representatives.binary_search(&host).is_ok() => Standing::Everywhere,
            _ => Standing::OnTheWay,
        }
    }
}
