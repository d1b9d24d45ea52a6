//! The fewest cables between two halves of the hosts.

use crate::{Layout, Topology, Wiring};

/// Up to so many switches every way to halve them is tried.
const SWITCHES_TRIED_MAX: usize = 20;
/// Orders of switches that are cut in the middle where nothing better is known.
const ORDERS: usize = 16;

/// The fewest cables whose removal parts the switches with hosts into two halves, as equal as they can
/// be; switches without hosts may be on either side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bisection {
    /// How many cables are cut.
    pub cables: usize,
    /// Whether there may be halves with fewer cables between them.
    pub certainty: Certainty,
}

/// How a bisection was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certainty {
    /// Every division into halves was tried, so the number is exact.
    Tried,
    /// By the formula for the topology.
    Formula,
    /// No better halves were found; there may be some.
    AtMost,
}

/// The bisection of a wiring.
pub fn bisection(wiring: &Wiring, topology: Option<&Topology>) -> Bisection {
    let mut with_hosts = vec![false; wiring.switches.len()];
    wiring.hosts.iter().for_each(|host| with_hosts[host.switch.place()] = true);
    let mut joined = vec![Vec::new(); wiring.switches.len()];
    for trunk in &wiring.trunks {
        let [one, other] = trunk.ends.each_ref().map(|end| end.switch.place());
        joined[one].push((other, trunk.cables()));
        joined[other].push((one, trunk.cables()));
    }
    let cut = Cut { with_hosts, joined };
    if wiring.switches.len() <= SWITCHES_TRIED_MAX {
        return Bisection { cables: cut.least_of_all(), certainty: Certainty::Tried };
    }
    let layout = topology.map(Topology::layout);
    match layout.and_then(|layout| links(&layout)).zip(cut.cables_of_links()) {
        Some((links, cables)) => {
            Bisection { cables: links * cables, certainty: Certainty::Formula }
        }
        None => Bisection { cables: cut.least_found(), certainty: Certainty::AtMost },
    }
}

/// The links of the bisection, where there is a formula for the layout.
fn links(layout: &Layout) -> Option<usize> {
    match layout {
        // Across the longest dimension: Dally and Towles 2004, chapters 3.2 and 5.
        Layout::Grid { sizes, wraps } => {
            let longest = sizes.iter().max().copied().filter(|size| size.is_multiple_of(2))?;
            let lines = sizes.iter().product::<usize>() / longest;
            Some(if *wraps && longest > 2 { 2 * lines } else { lines })
        }
        // Across the shortest dimension: Ahn and others 2009.
        Layout::HyperX { sizes } => {
            let switches: usize = sizes.iter().product();
            if let [all] = sizes.as_slice() {
                return Some(all / 2 * all.div_ceil(2));
            }
            let shortest = sizes.iter().min().copied().filter(|size| size.is_multiple_of(2))?;
            Some(switches * shortest / 4)
        }
        Layout::LeafSpine { leaves, spines } => Some(leaves / 2 * spines),
        // As many as half the hosts of full switches: Al-Fares and others 2008.
        Layout::FatTree { arity } => Some(arity * arity * arity / 8),
        Layout::Tree | Layout::Irregular => None,
    }
}

struct Cut {
    with_hosts: Vec<bool>,
    joined: Vec<Vec<(usize, usize)>>,
}

impl Cut {
    /// The cables of every link, if all have the same number.
    fn cables_of_links(&self) -> Option<usize> {
        let mut cables = self.joined.iter().flatten().map(|&(_, cables)| cables);
        let first = cables.next()?;
        cables.all(|cables| cables == first).then_some(first)
    }

    fn half(&self) -> usize {
        self.with_hosts.iter().filter(|&&with_hosts| with_hosts).count() / 2
    }

    /// How much the cut grows if the switch changes sides; negative if it shrinks.
    fn growth(&self, side: &[bool], switch: usize) -> i64 {
        let cables = self.joined[switch].iter().map(|&(other, cables)| {
            let cables = i64::try_from(cables).expect("cables are counted by memory");
            if side[other] == side[switch] { cables } else { -cables }
        });
        cables.sum()
    }

    /// Every subset, each from the one before it by moving one switch (Gray's code); the last switch
    /// stays where it is.
    fn least_of_all(&self) -> usize {
        let switches = self.joined.len();
        let hosts = self.with_hosts.iter().filter(|&&with_hosts| with_hosts).count();
        let mut side = vec![false; switches];
        let (mut cut, mut there, mut least) = (0_i64, 0_usize, None);
        for step in 0_u32..1 << (switches.max(1) - 1) {
            if step > 0 {
                let moved = usize::try_from(step.trailing_zeros()).expect("32 at most");
                cut += self.growth(&side, moved);
                side[moved] = !side[moved];
                if self.with_hosts[moved] {
                    there = if side[moved] { there + 1 } else { there - 1 };
                }
            }
            if there == hosts / 2 || there == hosts.div_ceil(2) {
                least = Some(least.map_or(cut, |least: i64| least.min(cut)));
            }
        }
        let least = least.expect("some subset has half of the hosts");
        usize::try_from(least).expect("a cut has no less than no cables")
    }

    /// The best of several halves: orders by nearness to some switch, cut in the middle, then single
    /// switches without hosts and pairs with hosts exchanged while that helps.
    fn least_found(&self) -> usize {
        let switches = self.joined.len();
        let starts = (0..ORDERS.min(switches)).map(|at| at * switches / ORDERS.min(switches));
        starts.map(|start| self.improved(self.near(start))).min().unwrap_or(0)
    }

    /// The half of the switches with hosts that is nearest to `start`, and what is between.
    fn near(&self, start: usize) -> Vec<bool> {
        let mut side = vec![false; self.joined.len()];
        let mut seen = side.clone();
        let mut order = vec![start];
        seen[start] = true;
        let (mut next, mut there) = (0, 0);
        while let Some(&at) = order.get(next) {
            next += 1;
            if there < self.half() || !self.with_hosts[at] {
                side[at] = there < self.half();
                there += usize::from(self.with_hosts[at] && side[at]);
            }
            for &(other, _) in &self.joined[at] {
                if !seen[other] {
                    seen[other] = true;
                    order.push(other);
                }
            }
        }
        side
    }

    fn improved(&self, mut side: Vec<bool>) -> usize {
        // Each round is one look at every switch; more rounds than this gain next to nothing.
        const ROUNDS: usize = 32;
        for _ in 0..ROUNDS {
            let mut changed = false;
            for switch in (0..side.len()).filter(|&switch| !self.with_hosts[switch]) {
                if self.growth(&side, switch) < 0 {
                    side[switch] = !side[switch];
                    changed = true;
                }
            }
            let best = |on: bool| {
                let on_side = |switch: &usize| side[*switch] == on && self.with_hosts[*switch];
                (0..side.len()).filter(on_side).min_by_key(|&switch| self.growth(&side, switch))
            };
            if let (Some(one), Some(other)) = (best(true), best(false)) {
                let between: usize = self.joined[one]
                    .iter()
                    .filter(|(neighbour, _)| *neighbour == other)
                    .map(|(_, cables)| cables)
                    .sum();
                let between = 2 * i64::try_from(between).expect("cables are counted by memory");
                if self.growth(&side, one) + self.growth(&side, other) + between < 0 {
                    side[one] = false;
                    side[other] = true;
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        let crossing = |switch: usize| {
            let links =
                self.joined[switch].iter().filter(|(other, _)| side[*other] != side[switch]);
            links.map(|(_, cables)| cables).sum::<usize>()
        };
        (0..side.len()).map(crossing).sum::<usize>() / 2
    }
}
