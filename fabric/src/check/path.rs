//! The way of a frame from one host to another one.

use super::channels::Channels;
use super::fit;
use super::report::Findings;
use crate::{Configuration, HostId, HostSettings, SwitchId, TrunkId, Vlan, Wiring};

/// A passage from a switch to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// The switch that sends the frame on.
    pub from: SwitchId,
    /// Over this trunk; of several that are one bundle the first.
    pub trunk: TrunkId,
    /// The switch that it comes to.
    pub to: SwitchId,
    /// In this VLAN, as the first switch has it.
    pub vlan: Vlan,
}

/// The shortest way that the VLAN of frames from one host to another one leads; none if it does not
/// lead there, or the settings do not fit the wiring. Where [`check`](super::check()) finds no fault it
/// is the only one, and the way that frames take. Empty for hosts of one switch.
pub fn path(
    wiring: &Wiring,
    configuration: &Configuration,
    from: HostId,
    to: HostId,
) -> Option<Vec<Hop>> {
    let plugged = fit::fit(wiring, configuration, &mut Findings::new(0))?;
    let channels = Channels::new(wiring, configuration, &plugged);
    let (source, target) = (&channels.hosts[from.place()], &channels.hosts[to.place()]);
    let tag = match &configuration.hosts[from.place()] {
        HostSettings::Untagged => None,
        HostSettings::Tagged(tags) => tags.get(&to).copied(),
    };
    let vlan = match tag {
        None => source.enters?,
        Some(vlan) if source.accepts.contains(vlan) => channels.place(vlan)?,
        Some(_) => return None,
    };
    // Each state is a switch, a VLAN, and the way that led there.
    let mut states = vec![(source.switch, vlan, None)];
    let mut is_seen = vec![false; channels.switches * channels.vlans.len()];
    is_seen[vlan * channels.switches + source.switch] = true;
    let mut at = 0;
    while let Some(&(switch, vlan, _)) = states.get(at) {
        if switch == target.switch && target.hears.contains(channels.vlans[vlan]) {
            return Some(hops(&channels, &states, at));
        }
        for &way in channels.moves(vlan, switch) {
            let (to, behind) = (channels.channel(way).to, usize::from(way.vlan));
            let seen = &mut is_seen[behind * channels.switches + to];
            if !*seen {
                *seen = true;
                states.push((to, behind, Some((at, way.channel))));
            }
        }
        at += 1;
    }
    None
}

type State = (usize, usize, Option<(usize, u32)>);

fn hops(channels: &Channels, states: &[State], mut at: usize) -> Vec<Hop> {
    let mut hops = Vec::new();
    while let (_, _, Some((before, channel))) = states[at] {
        let channel = &channels.all[channel as usize];
        let vlan = channels.vlans[states[before].1];
        let (from, to) = (SwitchId::new(channel.from), SwitchId::new(channel.to));
        hops.push(Hop { from, trunk: channel.trunk, to, vlan });
        at = before;
    }
    hops.reverse();
    hops
}
