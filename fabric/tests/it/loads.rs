//! Loads, diameters and bisections against closed forms and the tables of the paper.

use meikyo_cluster::{Routing, Tagging};
use meikyo_fabric::{
    Certainty, CheckOptions, HostId, Parts, Pattern, PlanOptions, SwitchModel, Topology, bisection,
    cable, check, diameter, loads, plan, searched,
};

use crate::plans::{planned, wired};

/// Pairs for each cable of the busiest trunk when all hosts send to all others.
fn all_to_all(text: &str, hosts: usize) -> f64 {
    let (wiring, plan) = planned(text, hosts);
    let loads = loads(&wiring, &plan, Pattern::AllToAll);
    loads.busiest(&wiring).expect("there are trunks").pairs_per_cable
}

#[test]
#[expect(clippy::float_cmp, reason = "whole numbers")]
fn loads_are_those_of_closed_forms() {
    // Complete: the hosts of the one end times those of the other.
    assert_eq!(all_to_all("complete 8", 5), 25.0);
    // A row of n: across the middle, half the hosts times the other half.
    assert_eq!(all_to_all("mesh 8", 3), 144.0);
    // A star: everything to and from the hosts of one switch.
    assert_eq!(all_to_all("star 6", 2), 2.0 * 10.0);
    // A ring of 4, 2 trees: to the left 1 of 4 goes two steps, to the right the other.
    assert_eq!(all_to_all("ring 4", 1), 2.0);
    // HyperX by dimension order: on the last of 3 dimensions one sender of each of the 16 lines.
    assert_eq!(all_to_all("hyperx 4x4x4", 1), 16.0);
    // Leaf-spine, as many hosts on a leaf as there are spines: a host's frames to all other leaves.
    assert_eq!(all_to_all("leaf-spine 8+4", 4), 28.0);
    // A hypercube of n dimensions: half of all switches to the other half, over 2^(n-1) links.
    assert_eq!(all_to_all("hypercube 6", 1), 32.0);
    // Fat tree of k = 4: a host's frames to the 14 hosts on other edge switches, on its own uplink.
    assert_eq!(all_to_all("fat-tree 4", 2), 14.0);
}

#[test]
fn every_step_of_every_pair_is_counted_once() {
    for (text, tagging) in
        [("torus 4x4", Tagging::Switch), ("mesh 4x2", Tagging::Host), ("ring 9", Tagging::Switch)]
    {
        let (wiring, options) = wired(text, 2);
        let plan = plan(&wiring, &PlanOptions { tagging, ..options }).unwrap();
        let report = check(&wiring, &plan.configuration(&wiring), &CheckOptions::INTACT);
        assert!(report.faults.is_empty(), "{text}: {:?}", report.faults);
        let ours = loads(&wiring, &plan, Pattern::AllToAll);
        let sum: u64 = ours.pairs.iter().flatten().sum();
        assert_eq!(sum, report.loads.iter().map(|load| load.pairs).sum::<u64>(), "{text}");
        for load in &report.loads {
            let trunk = &wiring.trunks[load.trunk.place()];
            let direction = usize::from(trunk.ends[0].switch != load.from);
            assert_eq!(ours.pairs[load.trunk.place()][direction], load.pairs, "{text}");
        }
    }
}

/// Spread over several VLANs, the hosts of a switch load the busiest link less; the checker, which reads
/// only settings, counts and finds nothing that could wait in a cycle.
#[test]
fn hosts_of_one_switch_are_spread_where_that_balances_links() {
    for (text, routing, flow_control, gain) in [
        ("random-regular 8 degree 3 seed 2", Routing::Acyclic, true, 0.0),
        ("random-regular 32 degree 5 seed 1", Routing::Acyclic, true, 0.0),
        ("random-regular 64 degree 8 seed 1", Routing::Acyclic, true, 0.0),
        ("random-regular 16 degree 4 seed 1", Routing::Minimal, false, 0.0),
        ("torus 4x4", Routing::Acyclic, true, 0.0),
    ] {
        let (wiring, options) = wired(text, 8);
        let options = PlanOptions { routing, flow_control, ..options };
        let busiest = |spread: Option<usize>| {
            let plan = plan(&wiring, &PlanOptions { spread, ..options.clone() }).unwrap();
            let report = check(&wiring, &plan.configuration(&wiring), &CheckOptions::INTACT);
            assert!(report.faults.is_empty(), "{text}: {:?}", report.faults);
            assert!(plan.spread <= spread.unwrap_or(8), "{text}");
            let busiest = report.loads.iter().map(|load| load.pairs).max().unwrap();
            let hops: u64 = report.loads.iter().map(|load| load.pairs).sum();
            (busiest, hops, plan.working.len())
        };
        let (alone, spread, few) = (busiest(Some(1)), busiest(None), busiest(Some(2)));
        #[expect(clippy::cast_precision_loss, reason = "thousands")]
        let ratio = spread.0 as f64 / alone.0 as f64;
        assert!(ratio <= 1.0 - gain, "{text}: {alone:?} pairs, hops and VLANs, {spread:?} spread");
        assert!(few.0 <= alone.0, "{text}");
        assert!(few.2 <= 2 * alone.2, "{text}: at most as many VLANs a switch as were asked for");
        if routing == Routing::Minimal {
            assert_eq!(spread.1, alone.1, "{text}: no path is longer");
        }
    }
}

/// Without pause frames the busiest cable carries at most 1.25 times the least that fractional shortest
/// paths could leave on it (a linear program), and no more than DFSSSP of `OpenSM` with its virtual lanes;
/// both numbers are those of foreign programs.
#[test]
fn without_pause_frames_cables_carry_little_more_than_they_need() {
    for (text, hosts, bound, dfsssp) in [
        ("random-regular 10 degree 3 seed 1", 3, 63.0, 72.0),
        ("random-regular 20 degree 4 seed 1", 2, 45.2, 56.0),
        ("random-regular 20 degree 4 seed 3", 2, 50.6, 72.0),
    ] {
        let (wiring, options) = wired(text, hosts);
        let options = PlanOptions { flow_control: false, ..options };
        let plan = plan(&wiring, &options).unwrap();
        let report = check(&wiring, &plan.configuration(&wiring), &CheckOptions::INTACT);
        assert!(report.faults.is_empty(), "{text}: {:?}", report.faults);
        let busiest = loads(&wiring, &plan, Pattern::AllToAll).busiest(&wiring).unwrap();
        let busiest = busiest.pairs_per_cable;
        assert!(busiest >= bound, "{text}: {busiest} is below the bound");
        assert!(busiest <= 1.25 * bound && busiest <= dfsssp, "{text}: {busiest}");
    }
}

/// Where switches pause each other, 400 of them leave no hot spot; the checker proves that nothing waits
/// in a cycle.
#[test]
fn a_large_random_fabric_has_no_hot_spot() {
    let (wiring, options) = wired("random-regular 400 degree 8 seed 1", 4);
    let plan = plan(&wiring, &options).unwrap();
    let report = check(&wiring, &plan.configuration(&wiring), &CheckOptions::INTACT);
    assert!(report.faults.is_empty() && report.deadlock_free, "{:?}", report.faults);
    let loads = loads(&wiring, &plan, Pattern::AllToAll);
    let busiest = loads.busiest(&wiring).unwrap().pairs_per_cable;
    let mean = loads.mean(&wiring);
    assert!(busiest <= 1.6 * mean, "{busiest} with a mean of {mean}");
}

#[test]
fn patterns_are_sums_of_their_pairs() {
    let (wiring, plan) = planned("ring 8", 2);
    let hosts = wiring.hosts.len();
    let shifted = |by: usize| -> Vec<HostId> {
        (0..hosts).map(|host| HostId::new((host + by) % hosts)).collect()
    };
    let of = |pattern: Pattern<'_>| loads(&wiring, &plan, pattern).pairs;
    let add = |one: Vec<[u64; 2]>, other: Vec<[u64; 2]>| -> Vec<[u64; 2]> {
        one.iter().zip(other).map(|(one, other)| [one[0] + other[0], one[1] + other[1]]).collect()
    };
    let neighbours =
        add(of(Pattern::Permutation(&shifted(1))), of(Pattern::Permutation(&shifted(hosts - 1))));
    assert_eq!(of(Pattern::Neighbours), neighbours);
    let all = (1..hosts).map(|by| of(Pattern::Permutation(&shifted(by)))).reduce(add).unwrap();
    assert_eq!(of(Pattern::AllToAll), all);
}

#[test]
fn diameter_and_bisection_are_those_of_the_paper() {
    for (text, switches_most, links) in [
        ("tree 8", 6, 1),
        ("complete 8", 2, 16),
        ("mesh 4x2", 5, 2),
        ("torus 4x2", 4, 4),
        ("star 6", 3, 3),
        ("complete 6", 2, 9),
    ] {
        for cables_per_link in [1, 2] {
            let topology: Topology = text.parse().unwrap();
            let graph = topology.graph();
            let model = SwitchModel::named("generic").unwrap();
            let parts = Parts::uniform(&graph, &model, 4);
            let wiring = cable(&graph, Parts { cables_per_link, ..parts }).unwrap();
            let found = bisection(&wiring, Some(&topology));
            assert_eq!(found.cables, links * usize::from(cables_per_link), "{text}");
            assert_eq!(found.certainty, Certainty::Tried);
            let plan = plan(&wiring, &PlanOptions::new(Some(topology))).unwrap();
            assert_eq!(diameter(&wiring, &plan), switches_most, "{text}");
        }
    }
}

#[test]
fn formulas_for_the_bisection_hold_where_all_halves_can_be_tried() {
    for (text, large) in [
        ("mesh 4x4", "mesh 6x6"),
        ("torus 4x4", "torus 6x6"),
        ("hypercube 4", "hypercube 5"),
        ("complete 9", "complete 21"),
        ("hyperx 4x4", "hyperx 6x6"),
        ("leaf-spine 9+4", "leaf-spine 20+4"),
        ("fat-tree 4", "fat-tree 6"),
    ] {
        let tried = |text: &str| {
            let (wiring, options) = wired(text, 1);
            bisection(&wiring, options.topology.as_ref())
        };
        let small = tried(text);
        assert_eq!(small.certainty, Certainty::Tried, "{text}");
        assert_eq!(tried(large).certainty, Certainty::Formula, "{large}");
        let formula = match text {
            "mesh 4x4" => 4,
            "torus 4x4" => 8,
            "hypercube 4" => 8,
            "complete 9" => 20,
            "hyperx 4x4" => 16,
            "leaf-spine 9+4" => 16,
            _ => 8,
        };
        assert_eq!(small.cables, formula, "{text}");
    }
}

/// Beyond 8 switches the trees of a torus are searched for, too, where that takes more than a tenth off the
/// busiest cable; 100 searches find 40 pairs at best on the torus of 5x3, whose lines leave 48.
#[test]
fn a_torus_leaves_its_lines_where_that_takes_a_tenth_off_the_busiest_cable() {
    let (wiring, options) = wired("torus 5x3", 2);
    let planned = |spread| plan(&wiring, &PlanOptions { spread, ..options.clone() }).unwrap();
    let busiest =
        |plan| loads(&wiring, plan, Pattern::AllToAll).busiest(&wiring).unwrap().pairs_per_cable;
    let (few, free) = (planned(Some(1)), planned(None));
    assert_eq!(few.working.len(), 9);
    assert!(busiest(&free) <= busiest(&few) / 1.1, "{} and {}", busiest(&free), busiest(&few));
    let best = searched(&wiring, &options, 20).unwrap().unwrap();
    assert!(busiest(&free) <= 1.1 * best, "{} and {best}", busiest(&free));
    let report = check(&wiring, &free.configuration(&wiring), &CheckOptions::INTACT);
    assert!(report.faults.is_empty() && report.deadlock_free, "{:?}", report.faults);
}

/// Where tables have no room for a VLAN of each switch, neighbours share trees; the checker, which counts
/// entries by itself, finds that they fit, and no cable carries much more than others.
#[test]
fn trees_are_shared_by_neighbours_where_tables_are_small() {
    let text = "random-regular 300 degree 8 seed 1";
    // A VLAN of each of the switches would need about 9,000 entries a switch even with shortest paths. 3,600
    // are needed whatever is shared: those of all hosts where a switch sends, and of those who send elsewhere.
    for (entries, vlans, ratio) in [(8_000, 50..300, 4.0), (4_700, 30..300, 5.0)] {
        let (mut wiring, options) = wired(text, 6);
        for switch in &mut wiring.switches {
            switch.model.table_entries = entries;
        }
        let plan = plan(&wiring, &options).unwrap();
        let report = check(&wiring, &plan.configuration(&wiring), &CheckOptions::INTACT);
        assert!(report.faults.is_empty() && report.deadlock_free, "{entries}: {:?}", report.faults);
        let most = report.table_entries.iter().max().unwrap();
        assert!(*most <= u64::from(entries), "{entries}: {most}");
        assert!(vlans.contains(&plan.working.len()), "{entries}: {} VLANs", plan.working.len());
        let loads = loads(&wiring, &plan, Pattern::AllToAll);
        let busiest = loads.busiest(&wiring).unwrap().pairs_per_cable;
        let mean = loads.mean(&wiring);
        assert!(busiest <= ratio * mean, "{entries}: {busiest} with a mean of {mean}");
    }
}

/// Hosts that are dealt out to trees one after the other.
struct Dealing<'a> {
    hosts: usize,
    size: usize,
    pauses: bool,
    trees: &'a dyn Fn(usize, usize) -> [Vec<usize>; 2],
    load: Vec<usize>,
    waits: Vec<usize>,
    least: usize,
}

impl Dealing<'_> {
    /// Deals out the hosts from `host` on, of which those of one switch take trees in order.
    fn deal(&mut self, host: usize, from: usize) {
        if host == self.size * self.hosts {
            self.least = self.least.min(*self.load.iter().max().expect("there are cables"));
            return;
        }
        let from = if host.is_multiple_of(self.hosts) { 0 } else { from };
        for left_out in from..self.size {
            let arms = (self.trees)(host / self.hosts, left_out);
            for arm in &arms {
                for (place, &channel) in arm.iter().enumerate() {
                    self.load[channel] += self.hosts * (arm.len() - place);
                }
                arm.windows(2).for_each(|pair| self.waits[pair[0]] += 1);
            }
            let circle = |way: &[usize]| way.iter().all(|waiting| *waiting > 0);
            let stuck = self.pauses && self.waits.chunks(self.size).any(circle);
            if !stuck && *self.load.iter().max().expect("there are cables") < self.least {
                self.deal(host + 1, left_out);
            }
            for arm in &arms {
                for (place, &channel) in arm.iter().enumerate() {
                    self.load[channel] -= self.hosts * (arm.len() - place);
                }
                arm.windows(2).for_each(|pair| self.waits[pair[0]] -= 1);
            }
        }
    }
}

/// All ways in which the hosts of a ring can send, each over a tree that leaves out one link: the least that
/// the busiest cable carries where nothing waits in a cycle.
fn least_on_a_ring(size: usize, hosts: usize, pauses: bool) -> usize {
    // Channel `n` leads from switch `n` to the next, `size + n` back.
    let tree = |source: usize, left_out: usize| {
        let onward = (left_out + size - source) % size;
        let forth: Vec<usize> = (0..onward).map(|step| (source + step) % size).collect();
        let back = (0..size - 1 - onward).map(|step| size + (source + 2 * size - 1 - step) % size);
        [forth, back.collect()]
    };
    let (load, waits) = (vec![0; 2 * size], vec![0; 2 * size]);
    let least = usize::MAX;
    let mut search = Dealing { hosts, size, pauses, trees: &tree, load, waits, least };
    search.deal(0, 0);
    search.least
}

/// On rings the busiest cable carries the least that any choice of trees leaves on it, with one buffer class:
/// 16 pairs on the ring of five with two hosts each, where virtual lanes or no pause frames leave 12.
#[test]
#[expect(clippy::float_cmp, clippy::cast_precision_loss, reason = "small whole numbers")]
fn small_rings_carry_the_least_that_is_possible() {
    assert_eq!((least_on_a_ring(5, 2, true), least_on_a_ring(5, 2, false)), (16, 12));
    for (size, hosts) in [(3, 2), (4, 2), (5, 1), (5, 2)] {
        let least = least_on_a_ring(size, hosts, true) as f64;
        let found = all_to_all(&format!("ring {size}"), hosts);
        assert_eq!(found, least, "ring {size}, {hosts} hosts on each switch");
    }
}
