//! How many addresses each switch will hold.

use std::collections::BTreeMap;

use crate::Wiring;
use crate::routing::{Adjacent, Net};

/// A VLAN that has no identifier yet.
#[derive(Debug, Clone)]
pub(super) struct Use {
    /// Its trunks, least first.
    pub(super) trunks: Vec<usize>,
    /// The switches whose hosts send in it, and how many of them send everything in it that they do
    /// not tag.
    pub(super) senders: BTreeMap<usize, usize>,
}

/// Every switch of a VLAN knows every host.
pub(super) fn broadcast<'a>(net: &Net, uses: impl Iterator<Item = &'a Use>) -> Vec<usize> {
    let hosts: usize = net.hosts.iter().sum();
    let mut entries = vec![0; net.switches()];
    for one in uses {
        let Some(&root) = one.senders.keys().next() else { continue };
        let walk = Adjacent::new(net, &one.trunks).walk(root);
        walk.order.iter().for_each(|&at| entries[at] += hosts);
    }
    entries
}

/// What directed priming teaches, and what the broadcasts of hosts do.
///
/// The switches between the senders of a VLAN are on the way from every host to some sender's
/// representative, so they know all hosts. A switch beyond knows the hosts on it and beyond it, and
/// every host that sends in the VLAN by itself: representatives are among these, where there are any.
pub(super) fn directed<'a>(net: &Net, uses: impl Iterator<Item = &'a Use>) -> Vec<usize> {
    let hosts: usize = net.hosts.iter().sum();
    let mut entries = vec![0; net.switches()];
    for one in uses {
        let Some(&root) = one.senders.keys().next() else { continue };
        let walk = Adjacent::new(net, &one.trunks).walk(root);
        let mut senders = vec![0; net.switches()];
        let mut senders_hosts = vec![0; net.switches()];
        // A sender whose hosts send there only what they tag, or nothing yet, has a representative.
        for (&switch, &sending) in &one.senders {
            senders[switch] = 1;
            senders_hosts[switch] = sending.max(1);
        }
        let sending: usize = senders_hosts.iter().sum();
        let beyond = walk.hosts_beyond(net);
        let senders = walk.beyond(net, senders);
        let senders_hosts = walk.beyond(net, senders_hosts);
        for &at in &walk.order {
            entries[at] +=
                if senders[at] > 0 { hosts } else { beyond[at] + sending - senders_hosts[at] };
        }
    }
    entries
}

/// Whether switches could have room for a VLAN of each group of switches, primed by directed frames, told
/// without paths, which take long to choose where there are thousands of switches.
///
/// Every switch holds all hosts where it sends, and those who send elsewhere; of the room beside that, the
/// hosts beyond each switch may take so many hundredths, if paths are the shortest and switches hold alike.
pub(super) fn may_hold(
    wiring: &Wiring,
    net: &Net,
    groups: impl Iterator<Item = Vec<usize>>,
    room_used_percent: u64,
) -> bool {
    let hosts: usize = net.hosts.iter().sum();
    let groups: Vec<Vec<usize>> = groups.collect();
    let held = |group: &Vec<usize>| {
        let sending: usize = group.iter().map(|&at| net.hosts[at]).sum();
        hosts * group.len() + sending * (net.switches() - group.len())
    };
    let Ok(held) = u64::try_from(groups.iter().map(held).sum::<usize>()) else { return false };
    let room: u64 = wiring.switches.iter().map(|own| u64::from(own.model.table_entries)).sum();
    let Some(left) = room.checked_sub(held) else { return false };
    let beyond = |group: &Vec<usize>| -> usize {
        let far = net.distances_from(group).into_iter().zip(&net.hosts);
        far.map(|(far, hosts)| far.unwrap_or(0) * hosts).sum()
    };
    // Distances from thousands of groups take seconds: no more of them than show that it is too much.
    let mut left = left / 100 * room_used_percent;
    groups.iter().all(|group| {
        let fits = u64::try_from(beyond(group)).ok().and_then(|beyond| left.checked_sub(beyond));
        fits.is_some_and(|rest| {
            left = rest;
            true
        })
    })
}
