//! What a plan makes of traffic: how much goes over which trunk, and how far.
//!
//! Static: every pair of a pattern counts as one, whenever it sends. Paths are those of the plan; the
//! checker works its own out from the settings.

mod bisection;

use std::collections::BTreeMap;

use crate::routing::{Adjacent, Net, Walk};
use crate::{HostId, Plan, SwitchId, TrunkId, Vlan, Wiring};

pub use bisection::{Bisection, Certainty, bisection};

/// Which pairs of hosts send to each other.
#[derive(Debug, Clone, Copy)]
pub enum Pattern<'a> {
    /// Every host to every other one.
    AllToAll,
    /// Every host to the one after it and the one before it; the last is followed by the first.
    Neighbours,
    /// Every host to the one that has its place in this list.
    Permutation(&'a [HostId]),
}

/// Pairs of hosts whose frames go over each trunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loads {
    /// For each trunk from its first end to its second, and back.
    pub pairs: Vec<[u64; 2]>,
}

/// The direction of a trunk on which most goes over one cable.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Busiest {
    /// The trunk that carries most.
    pub trunk: TrunkId,
    /// The switch that frames come from.
    pub from: SwitchId,
    /// The switch that they go to.
    pub to: SwitchId,
    /// Pairs of hosts whose frames go that way, over all cables of the trunk.
    pub pairs: u64,
    /// Pairs for each cable of the trunk.
    pub pairs_per_cable: f64,
}

impl Loads {
    /// The busiest direction of a trunk, the first of several; `None` without trunks.
    pub fn busiest(&self, wiring: &Wiring) -> Option<Busiest> {
        let mut busiest: Option<Busiest> = None;
        for (at, (pairs, trunk)) in self.pairs.iter().zip(&wiring.trunks).enumerate() {
            for (direction, &pairs) in pairs.iter().enumerate() {
                let pairs_per_cable = ratio(pairs, trunk.cables());
                if busiest.is_none_or(|busiest| pairs_per_cable > busiest.pairs_per_cable) {
                    busiest = Some(Busiest {
                        trunk: TrunkId::new(at),
                        from: trunk.ends[direction].switch,
                        to: trunk.ends[1 - direction].switch,
                        pairs,
                        pairs_per_cable,
                    });
                }
            }
        }
        busiest
    }

    /// Pairs for each cable and direction, over all trunks; 0 without trunks.
    pub fn mean(&self, wiring: &Wiring) -> f64 {
        let cables: usize = wiring.trunks.iter().map(crate::Trunk::cables).sum();
        ratio(self.pairs.iter().flatten().sum(), 2 * cables)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a ratio for people; 53 bits are enough")]
fn ratio(pairs: u64, cables: usize) -> f64 {
    pairs as f64 / cables.max(1) as f64
}

/// The loads of a pattern, on the paths of the plan.
///
/// # Panics
/// Never: hosts are counted by memory.
pub fn loads(wiring: &Wiring, plan: &Plan, pattern: Pattern<'_>) -> Loads {
    let net = Net::new(wiring, &std::collections::BTreeSet::new());
    let mut channels = vec![0_u64; net.channels()];
    let demand = match pattern {
        Pattern::AllToAll => all_to_all(wiring, plan, &net),
        Pattern::Neighbours => {
            let hosts = wiring.hosts.len();
            let after = (0..hosts).map(|host| (host, (host + 1) % hosts));
            let before = (0..hosts).map(|host| (host, (host + hosts - 1) % hosts));
            of_pairs(wiring, plan, &net, after.chain(before))
        }
        Pattern::Permutation(to) => {
            of_pairs(wiring, plan, &net, to.iter().map(|host| host.place()).enumerate())
        }
    };
    each_walk(plan, &net, &demand, |walk, to| {
        let beyond = walk.beyond(&net, to.to_vec());
        for &switch in &walk.order {
            if let Some(channel) = walk.by[switch] {
                channels[channel] +=
                    u64::try_from(beyond[switch]).expect("a count fits in 64 bits");
            }
        }
    });
    Loads { pairs: channels.chunks_exact(2).map(|both| [both[0], both[1]]).collect() }
}

/// For each VLAN and the switch that sends in it, how many pairs end at each switch.
type Demand = BTreeMap<(Vlan, usize), Vec<usize>>;

/// Visits every source of every VLAN that has a demand: the walk of its frames, and how many pairs end
/// at each switch.
fn each_walk(plan: &Plan, net: &Net, demand: &Demand, mut visit: impl FnMut(&Walk, &[usize])) {
    for vlan in &plan.working {
        let trunks: Vec<usize> = vlan.trunks.iter().map(|trunk| trunk.place()).collect();
        let forest = Adjacent::new(net, &trunks);
        for source in &vlan.sources {
            if let Some(to) = demand.get(&(vlan.vlan, source.place())) {
                visit(&forest.walk(source.place()), to);
            }
        }
    }
}

fn all_to_all(wiring: &Wiring, plan: &Plan, net: &Net) -> Demand {
    let mut demand = Demand::new();
    if plan.tags.is_empty() {
        for (host, &vlan) in wiring.hosts.iter().zip(&plan.pvids) {
            let to = demand
                .entry((vlan, host.switch.place()))
                .or_insert_with(|| vec![0; net.switches()]);
            to.iter_mut().zip(&net.hosts).for_each(|(to, hosts)| *to += hosts);
        }
        return demand;
    }
    for (host, tags) in wiring.hosts.iter().zip(&plan.tags) {
        for (to, &vlan) in tags {
            let counts = demand
                .entry((vlan, host.switch.place()))
                .or_insert_with(|| vec![0; net.switches()]);
            counts[wiring.hosts[to.place()].switch.place()] += 1;
        }
    }
    demand
}

fn of_pairs(
    wiring: &Wiring,
    plan: &Plan,
    net: &Net,
    pairs: impl Iterator<Item = (usize, usize)>,
) -> Demand {
    let mut demand = Demand::new();
    for (from, to) in pairs {
        let counts = demand
            .entry((plan.vlan_of(HostId::new(from), HostId::new(to)), switch(wiring, from)))
            .or_insert_with(|| vec![0; net.switches()]);
        counts[switch(wiring, to)] += 1;
    }
    demand
}

fn switch(wiring: &Wiring, host: usize) -> usize {
    wiring.hosts[host].switch.place()
}

/// Most switches on the path from one host to another: the paper's diameter.
pub fn diameter(wiring: &Wiring, plan: &Plan) -> usize {
    let net = Net::new(wiring, &std::collections::BTreeSet::new());
    let demand = all_to_all(wiring, plan, &net);
    let mut most = 0;
    each_walk(plan, &net, &demand, |walk, to| {
        let mut switches = vec![1; net.switches()];
        for &at in &walk.order {
            if let Some(channel) = walk.by[at] {
                switches[at] = switches[net.tail(channel)] + 1;
            }
            if to[at] > 0 {
                most = most.max(switches[at]);
            }
        }
    });
    most
}

impl Plan {
    /// The VLAN of the frames from one host to another.
    pub fn vlan_of(&self, from: HostId, to: HostId) -> Vlan {
        let tag = self.tags.get(from.place()).and_then(|tags| tags.get(&to));
        tag.copied().unwrap_or_else(|| self.pvids[from.place()])
    }
}
