//! Which direction of a trunk waits for which under pause frames (IEEE 802.3x).

use std::collections::{BTreeSet, VecDeque};

use super::trees::Trees;
use crate::{TrunkId, Vlan, Wiring};

/// A graph of channels, the directions of trunks: `2 * trunk` leads to its second end, one more back.
#[derive(Debug)]
pub(super) struct Waiting {
    next: Vec<BTreeSet<usize>>,
    hosts: Vec<bool>,
}

impl Waiting {
    /// Nothing waits.
    pub(super) fn new(wiring: &Wiring) -> Self {
        let mut hosts = vec![false; wiring.switches.len()];
        wiring.hosts.iter().for_each(|host| hosts[host.switch.place()] = true);
        Self { next: vec![BTreeSet::new(); 2 * wiring.trunks.len()], hosts }
    }

    /// Adds the paths from switches to all hosts in a VLAN without a trunk.
    pub(super) fn add(
        &mut self,
        wiring: &Wiring,
        trees: &Trees,
        vlan: Vlan,
        senders: &BTreeSet<usize>,
        without: TrunkId,
    ) {
        for &sender in senders {
            // Trunks in the order in which they are walked, with the one before each.
            let mut walked: Vec<(usize, Option<usize>, usize)> = Vec::new();
            let mut open = VecDeque::from([(sender, None)]);
            let mut seen = BTreeSet::from([sender]);
            while let Some((switch, by)) = open.pop_front() {
                for &(trunk, other) in trees.from(vlan, switch) {
                    if trunk == without.place() || !seen.insert(other) {
                        continue;
                    }
                    let is_second = wiring.trunks[trunk].ends[0].switch.place() == other;
                    let channel = 2 * trunk + usize::from(is_second);
                    walked.push((channel, by, other));
                    open.push_back((other, Some(channel)));
                }
            }
            // From the leaves: what has hosts beyond it is used.
            let mut used: BTreeSet<usize> = BTreeSet::new();
            for (channel, by, switch) in walked.into_iter().rev() {
                if self.hosts[switch] || used.contains(&channel) {
                    used.insert(channel);
                    if let Some(by) = by {
                        used.insert(by);
                        self.next[by].insert(channel);
                    }
                }
            }
        }
    }

    /// Whether nothing waits for itself: channels can be taken away one after the other.
    pub(super) fn is_free(&self) -> bool {
        let mut waited = vec![0_usize; self.next.len()];
        self.next.iter().flatten().for_each(|&channel| waited[channel] += 1);
        let mut open: Vec<usize> =
            (0..waited.len()).filter(|&channel| waited[channel] == 0).collect();
        let mut taken = 0;
        while let Some(channel) = open.pop() {
            taken += 1;
            for &next in &self.next[channel] {
                waited[next] -= 1;
                if waited[next] == 0 {
                    open.push(next);
                }
            }
        }
        taken == waited.len()
    }
}
