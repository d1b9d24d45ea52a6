//! Whether frames go round, and which VLANs are simple.
//!
//! What a switch floods goes on through every way but the port that it came in at. So frames go round
//! exactly where ways, each followed by those that do not lead back through the same link, form a
//! circle. VLANs may change on the way, where frames go untagged from one PVID into another.

use super::channels::{Channels, Move, switch_id};
use super::fault::Fault;
use super::report::Findings;
use crate::{SwitchId, Vlan};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Never,
    OnTheWay,
    Done,
}

/// Notes a circle in each VLAN that has one.
pub(super) fn loops(channels: &Channels, findings: &mut Findings) {
    let vlans = channels.vlans.len();
    let mut seen = vec![Seen::Never; channels.all.len() * vlans];
    for vlan in 0..vlans {
        let starts = (0..channels.switches).flat_map(|switch| channels.moves(vlan, switch));
        let circle = starts.copied().find_map(|start| circle(channels, start, &mut seen));
        if let Some(circle) = circle {
            findings.note(|| Fault::Loop { circle });
        }
    }
}

/// A circle that can be reached from this way; ways that lead into none are marked.
fn circle(channels: &Channels, start: Move, seen: &mut [Seen]) -> Option<Vec<(SwitchId, Vlan)>> {
    let vlans = channels.vlans.len();
    let state = |way: Move| way.channel as usize * vlans + usize::from(way.vlan);
    if seen[state(start)] != Seen::Never {
        return None;
    }
    seen[state(start)] = Seen::OnTheWay;
    let mut stack = vec![(start, 0)];
    while let Some((way, next)) = stack.last_mut() {
        let way = *way;
        let onward = channels.moves(usize::from(way.vlan), channels.channel(way).to);
        let Some(&follower) = onward.get(*next) else {
            seen[state(way)] = Seen::Done;
            stack.pop();
            continue;
        };
        *next += 1;
        if follower.channel == way.channel ^ 1 {
            continue;
        }
        match seen[state(follower)] {
            Seen::Done => {}
            Seen::Never => {
                seen[state(follower)] = Seen::OnTheWay;
                stack.push((follower, 0));
            }
            Seen::OnTheWay => {
                let from = stack.iter().position(|(way, _)| *way == follower);
                let circle = stack[from.unwrap_or(0)..].iter().map(|&(way, _)| {
                    (switch_id(channels.channel(way).to), channels.vlans[usize::from(way.vlan)])
                });
                let circle = circle.collect();
                stack.iter().for_each(|&(way, _)| seen[state(way)] = Seen::Done);
                return Some(circle);
            }
        }
    }
    None
}

/// Which VLANs hang together, and how.
#[derive(Debug)]
pub(super) struct Kinds {
    /// For each VLAN place whether frames stay in it, come in it only from itself, and can go both
    /// ways wherever they can go one.
    pub(super) is_plain: Vec<bool>,
    /// The others, those together that frames change between.
    pub(super) tangles: Vec<Vec<usize>>,
}

/// Sorts VLANs into plain ones and tangles.
pub(super) fn kinds(channels: &Channels) -> Kinds {
    let vlans = channels.vlans.len();
    let mut is_plain = vec![true; vlans];
    let mut group: Vec<usize> = (0..vlans).collect();
    let mut marked = vec![usize::MAX; channels.all.len()];
    for vlan in 0..vlans {
        let ways = || (0..channels.switches).flat_map(|switch| channels.moves(vlan, switch));
        for way in ways() {
            marked[way.channel as usize] = vlan;
            let behind = usize::from(way.vlan);
            if behind != vlan {
                (is_plain[vlan], is_plain[behind]) = (false, false);
                let (one, other) = (root(&group, vlan), root(&group, behind));
                group[one.max(other)] = one.min(other);
            }
        }
        if ways().any(|way| marked[(way.channel ^ 1) as usize] != vlan) {
            is_plain[vlan] = false;
        }
    }
    let mut tangles = vec![Vec::new(); vlans];
    for vlan in (0..vlans).filter(|&vlan| !is_plain[vlan]) {
        tangles[root(&group, vlan)].push(vlan);
    }
    tangles.retain(|tangle| !tangle.is_empty());
    Kinds { is_plain, tangles }
}

fn root(group: &[usize], mut vlan: usize) -> usize {
    while group[vlan] != vlan {
        vlan = group[vlan];
    }
    vlan
}
