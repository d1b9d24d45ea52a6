//! The way of frames from host to host, as a plan has it.
//!
//! For who predicts what a plan makes of programs. The checker works paths out from the settings, and
//! knows nothing of these.

use std::collections::BTreeMap;

use crate::routing::{Adjacent, Net};
use crate::{HostId, Plan, TrunkId, Vlan, Wiring};

/// One step of a path: a trunk, and which way along it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hop {
    /// By its place in the wiring.
    pub trunk: TrunkId,
    /// Whether frames go from its first end to its second.
    pub forward: bool,
}

/// The paths of a plan between all hosts.
///
/// Frames from the same switch in the same VLAN have the same tree, which is walked once: as many trees
/// as there are pairs of a switch and a VLAN, each with one path to every switch.
#[derive(Debug, Clone)]
pub struct Paths {
    switch_of: Vec<usize>,
    /// For each tree and each switch the hops there; `None` where the tree does not reach.
    trees: Vec<Vec<Option<Vec<Hop>>>>,
    /// The tree of the frames that a host sends without a tag.
    tree_of: Vec<usize>,
    /// The tree of the frames that a host tags for another one.
    tagged: BTreeMap<(HostId, HostId), usize>,
}

impl Paths {
    /// The paths of `plan`, which was made for `wiring`.
    pub fn new(wiring: &Wiring, plan: &Plan) -> Self {
        let net = Net::new(wiring, &std::collections::BTreeSet::new());
        let mut numbers: BTreeMap<(Vlan, usize), usize> = BTreeMap::new();
        let mut trees = Vec::new();
        for planned in &plan.working {
            let trunks: Vec<usize> = planned.trunks.iter().map(|trunk| trunk.place()).collect();
            let forest = Adjacent::new(&net, &trunks);
            for source in &planned.sources {
                let walk = forest.walk(source.place());
                let hops =
                    |switch: usize| walk.has(switch).then(|| hops_to(&net, &walk.by, switch));
                numbers.insert((planned.vlan, source.place()), trees.len());
                trees.push((0..net.switches()).map(hops).collect());
            }
        }
        let switch_of: Vec<usize> = wiring.hosts.iter().map(|host| host.switch.place()).collect();
        // A host that tags everything has a VLAN without a tag that it never sends in.
        let untagged = |(host, vlan): (usize, &Vlan)| {
            numbers.get(&(*vlan, switch_of[host])).copied().unwrap_or(usize::MAX)
        };
        let tree_of = plan.pvids.iter().enumerate().map(untagged).collect();
        let tagged = plan
            .tags
            .iter()
            .enumerate()
            .flat_map(|(from, tags)| tags.iter().map(move |(&to, &vlan)| (from, to, vlan)))
            .filter_map(|(from, to, vlan)| {
                let tree = numbers.get(&(vlan, switch_of[from]))?;
                Some(((HostId::new(from), to), *tree))
            })
            .collect();
        Self { switch_of, trees, tree_of, tagged }
    }

    /// The hops from one host to another, none on the same switch; `None` if the plan has no way.
    pub fn between(&self, from: HostId, to: HostId) -> Option<&[Hop]> {
        let to_switch = self.switch_of[to.place()];
        if self.switch_of[from.place()] == to_switch {
            return Some(&[]);
        }
        let tagged = self.tagged.get(&(from, to)).copied();
        let tree = tagged.unwrap_or_else(|| self.tree_of[from.place()]);
        self.trees.get(tree)?[to_switch].as_deref()
    }
}

/// The hops of a walk to a switch that it reaches; `by` is the channel by which each is reached.
fn hops_to(net: &Net, by: &[Option<usize>], mut switch: usize) -> Vec<Hop> {
    let mut hops = Vec::new();
    while let Some(channel) = by[switch] {
        hops.push(Hop { trunk: TrunkId::new(channel / 2), forward: channel % 2 == 0 });
        switch = net.tail(channel);
    }
    hops.reverse();
    hops
}
