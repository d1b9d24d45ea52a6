//! The fewest VLANs, by trying all spanning trees: a tree serves a switch if its path to every switch with
//! hosts is one of the routing's, and every switch with hosts needs a tree that serves it.

use std::collections::BTreeSet;

use meikyo_cluster::Routing;
use meikyo_fabric::{
    Edge, Layout, Parts, Plan, PlanError, PlanOptions, SwitchGraph, SwitchModel, Topology, Wiring,
    cable, plan,
};
use proptest::prelude::*;

use crate::plans::{all_paths, deadlocks, wired};

/// A tree that serves a source, and the steps that follow each other on its paths.
type Serving = (usize, BTreeSet<[usize; 3]>);

struct Graph {
    with_hosts: Vec<bool>,
    edges: Vec<[usize; 2]>,
}

/// A path as the switches that it passes, both ends included.
type Route = Vec<usize>;

impl Graph {
    fn of(wiring: &Wiring) -> Self {
        let mut with_hosts = vec![false; wiring.switches.len()];
        wiring.hosts.iter().for_each(|host| with_hosts[host.switch.place()] = true);
        let edges = wiring.trunks.iter();
        let edges =
            edges.map(|trunk| trunk.ends.each_ref().map(|end| end.switch.place())).collect();
        Self { with_hosts, edges }
    }

    fn neighbours<'a>(&'a self, edges: &'a [usize], at: usize) -> impl Iterator<Item = usize> + 'a {
        edges.iter().filter_map(move |&edge| match self.edges[edge] {
            [one, other] if one == at => Some(other),
            [one, other] if other == at => Some(one),
            _ => None,
        })
    }

    /// The number of edges between two switches.
    fn distance(&self, from: usize, to: usize) -> usize {
        let all: Vec<usize> = (0..self.edges.len()).collect();
        let mut reached = BTreeSet::from([from]);
        for distance in 0.. {
            if reached.contains(&to) {
                return distance;
            }
            let next: Vec<usize> =
                reached.iter().flat_map(|&at| self.neighbours(&all, at)).collect();
            reached.extend(next);
        }
        0
    }

    /// The path over a tree.
    fn route(&self, tree: &[usize], from: usize, to: usize) -> Option<Route> {
        let mut open = vec![vec![from]];
        while let Some(route) = open.pop() {
            let last = route[route.len() - 1];
            if last == to {
                return Some(route);
            }
            for next in self.neighbours(tree, last).filter(|next| !route.contains(next)) {
                open.push([route.as_slice(), &[next]].concat());
            }
        }
        None
    }

    /// Every choice of edges that joins all switches without a loop.
    fn spanning_trees(&self) -> Vec<Vec<usize>> {
        let count = self.with_hosts.len();
        let mut trees = Vec::new();
        for choice in 0_u64..1 << self.edges.len() {
            if choice.count_ones() != u32::try_from(count - 1).unwrap_or(0) {
                continue;
            }
            let tree: Vec<usize> =
                (0..self.edges.len()).filter(|edge| choice & (1 << edge) != 0).collect();
            // As many edges as switches less one join all of them only if there is no loop.
            let mut reached = BTreeSet::from([0]);
            let mut open = vec![0];
            while let Some(at) = open.pop() {
                open.extend(self.neighbours(&tree, at).filter(|&next| reached.insert(next)));
            }
            if reached.len() == count {
                trees.push(tree);
            }
        }
        trees
    }

    /// The fewest trees, no cycle of waiting among them; `None` if there are none.
    fn fewest(&self, valid: impl Fn(&Route) -> bool) -> Option<usize> {
        let sources: Vec<usize> =
            (0..self.with_hosts.len()).filter(|&at| self.with_hosts[at]).collect();
        let trees = self.spanning_trees();
        // For each source the trees that serve it, with the pairs of steps that follow each other.
        let serving: Vec<Vec<Serving>> = sources
            .iter()
            .map(|&source| {
                let serves = |(at, tree): (usize, &Vec<usize>)| {
                    let mut waits = BTreeSet::new();
                    for &to in &sources {
                        let route = self.route(tree, source, to)?;
                        if !valid(&route) {
                            return None;
                        }
                        waits.extend(route.windows(3).map(|step| [step[0], step[1], step[2]]));
                    }
                    Some((at, waits))
                };
                trees.iter().enumerate().filter_map(serves).collect()
            })
            .collect();
        (1..=sources.len()).find(|&most| choose(&serving, most, &mut Vec::new(), &BTreeSet::new()))
    }
}

fn choose(
    serving: &[Vec<Serving>],
    most: usize,
    used: &mut Vec<usize>,
    waits: &BTreeSet<[usize; 3]>,
) -> bool {
    let Some((first, rest)) = serving.split_first() else { return true };
    for (tree, more) in first {
        let is_new = !used.contains(tree);
        if is_new && used.len() == most {
            continue;
        }
        let waits: BTreeSet<[usize; 3]> = waits.union(more).copied().collect();
        if waits_in_a_cycle(&waits) {
            continue;
        }
        if is_new {
            used.push(*tree);
        }
        let found = choose(rest, most, used, &waits);
        if is_new {
            used.pop();
        }
        if found {
            return true;
        }
    }
    false
}

fn waits_in_a_cycle(waits: &BTreeSet<[usize; 3]>) -> bool {
    let mut left = waits.clone();
    loop {
        let waited_for: BTreeSet<[usize; 2]> = left.iter().map(|&[_, b, c]| [b, c]).collect();
        let before = left.len();
        left.retain(|&[a, b, _]| waited_for.contains(&[a, b]));
        if left.len() == before {
            return before > 0;
        }
    }
}

fn permutations(count: usize) -> Vec<Vec<usize>> {
    (0..count).fold(vec![Vec::new()], |orders, next| {
        orders
            .iter()
            .flat_map(|order: &Vec<usize>| {
                (0..=order.len()).map(move |at| {
                    let mut order = order.clone();
                    order.insert(at, next);
                    order
                })
            })
            .collect()
    })
}

#[test]
fn dimension_order_has_the_fewest_vlans_on_small_grids() {
    for text in [
        "ring 3",
        "ring 4",
        "mesh 5",
        "mesh 3x2",
        "mesh 4x2",
        "mesh 2x2x2",
        "torus 4x2",
        "torus 3x2",
        "hypercube 3",
        "complete 5",
        "hyperx 3x2",
    ] {
        let (wiring, options) = wired(text, 1);
        let graph = Graph::of(&wiring);
        let topology: Topology = text.parse().unwrap();
        let (Layout::Grid { sizes, .. } | Layout::HyperX { sizes }) = topology.layout() else {
            panic!("{text} is no grid")
        };
        let coordinate = |at: usize, dimension: usize| {
            at / sizes[..dimension].iter().product::<usize>() % sizes[dimension]
        };
        let fewest = permutations(sizes.len()).into_iter().filter_map(|order| {
            graph.fewest(|route| {
                let shortest = graph.distance(route[0], route[route.len() - 1]);
                let dimensions: Vec<Option<usize>> = route
                    .windows(2)
                    .map(|step| {
                        let differs = |&dimension: &usize| {
                            coordinate(step[0], dimension) != coordinate(step[1], dimension)
                        };
                        order.iter().position(differs)
                    })
                    .collect();
                route.len() - 1 == shortest && dimensions.is_sorted()
            })
        });
        let fewest = fewest.min();
        // Rings of up to 4 have no seam.
        for routing in [Routing::DimensionOrder, Routing::Acyclic] {
            let plan = plan(&wiring, &PlanOptions { routing, ..options.clone() }).unwrap();
            assert_eq!(Some(plan.working.len()), fewest, "{text}");
            assert!(plan.fewest, "{text}");
        }
    }
}

fn minimal_is_the_fewest(wiring: &Wiring) -> Result<(), TestCaseError> {
    let graph = Graph::of(wiring);
    let fewest =
        graph.fewest(|route| route.len() - 1 == graph.distance(route[0], route[route.len() - 1]));
    let options = PlanOptions { routing: Routing::Minimal, ..PlanOptions::new(None) };
    match plan(wiring, &options) {
        Ok(plan) => {
            prop_assert!(plan.fewest);
            prop_assert_eq!(Some(plan.working.len()), fewest);
        }
        Err(PlanError::Deadlock { .. }) => prop_assert_eq!(fewest, None),
        Err(error) => return Err(TestCaseError::fail(error.to_string())),
    }
    Ok(())
}

#[test]
fn shortest_paths_have_the_fewest_vlans_on_small_topologies() {
    for text in
        ["ring 5", "ring 6", "leaf-spine 4+2", "leaf-spine 3+3", "mesh 3x2", "star 5", "tree 6"]
    {
        let (wiring, _) = wired(text, 1);
        minimal_is_the_fewest(&wiring).unwrap();
    }
}

/// Trees of each source that serve it, each with its steps that follow each other and the length of its
/// paths in total.
type Lengths = Vec<Vec<(Serving, usize)>>;

impl Graph {
    fn with_lengths(&self) -> Lengths {
        let sources: Vec<usize> =
            (0..self.with_hosts.len()).filter(|&at| self.with_hosts[at]).collect();
        let trees = self.spanning_trees();
        let of = |&source: &usize| {
            let serving = trees.iter().enumerate().map(|(at, tree)| {
                let routes = sources.iter().filter_map(|&to| self.route(tree, source, to));
                let routes: Vec<Route> = routes.collect();
                let steps = routes.iter().flat_map(|route| route.windows(3));
                let waits = steps.map(|step| [step[0], step[1], step[2]]).collect();
                ((at, waits), routes.iter().map(|route| route.len() - 1).sum())
            });
            serving.collect()
        };
        sources.iter().map(of).collect()
    }
}

/// Whether every source finds a tree among `most`, no cycle of waiting among them, all paths together
/// no longer than `length`.
fn within(lengths: &Lengths, most: usize, length: usize) -> bool {
    let shortest: Vec<usize> = lengths
        .iter()
        .map(|trees| trees.iter().map(|(_, length)| *length).min().unwrap_or(0))
        .collect();
    let Some(over) = length.checked_sub(shortest.iter().sum()) else { return false };
    let near: Vec<Vec<(Serving, usize)>> = lengths
        .iter()
        .zip(&shortest)
        .map(|(trees, shortest)| {
            let over_of = |(serving, length): &(Serving, usize)| {
                (length - shortest <= over).then(|| (serving.clone(), length - shortest))
            };
            trees.iter().filter_map(over_of).collect()
        })
        .collect();
    choose_within(&near, most, over, &mut Vec::new(), &BTreeSet::new())
}

fn choose_within(
    near: &[Vec<(Serving, usize)>],
    most: usize,
    over: usize,
    used: &mut Vec<usize>,
    waits: &BTreeSet<[usize; 3]>,
) -> bool {
    let Some((first, rest)) = near.split_first() else { return true };
    for ((tree, more), own) in first.iter().filter(|(_, own)| *own <= over) {
        let is_new = !used.contains(tree);
        let waits: BTreeSet<[usize; 3]> = waits.union(more).copied().collect();
        if is_new && used.len() == most || waits_in_a_cycle(&waits) {
            continue;
        }
        used.extend(is_new.then_some(*tree));
        if choose_within(rest, most, over - own, used, &waits) {
            return true;
        }
        used.truncate(used.len() - usize::from(is_new));
    }
    false
}

/// No paths without deadlock are shorter in total than those of `acyclic`, and such as are as short need
/// as many VLANs.
fn acyclic_is_the_shortest_and_the_fewest(wiring: &Wiring, options: &PlanOptions) -> Plan {
    let options = PlanOptions { routing: Routing::Acyclic, ..options.clone() };
    let plan = plan(wiring, &options).expect("a tree is always free of deadlock");
    assert!(plan.fewest);
    let paths = all_paths(wiring, &plan);
    assert!(!deadlocks(&paths));
    let length = paths.iter().map(Vec::len).sum();
    let lengths = Graph::of(wiring).with_lengths();
    assert!(!within(&lengths, lengths.len(), length - 1), "shorter than {length}");
    assert!(within(&lengths, plan.working.len(), length));
    assert!(!within(&lengths, plan.working.len() - 1, length), "fewer than {plan:?}");
    plan
}

#[test]
fn acyclic_paths_are_the_shortest_in_the_fewest_vlans_on_small_rings() {
    // An even ring has a tree that leaves out a link, and for its ends one that leaves out the opposite.
    for (size, vlans) in [(3, 3), (4, 2), (5, 3), (6, 2), (7, 3), (8, 2)] {
        let (wiring, options) = wired(&format!("ring {size}"), 1);
        let plan = acyclic_is_the_shortest_and_the_fewest(&wiring, &options);
        assert_eq!(plan.working.len(), vlans, "ring {size}");
    }
}

pub(crate) fn graphs() -> impl Strategy<Value = SwitchGraph> {
    let edges = proptest::collection::btree_set((0_usize..6, 0_usize..6), 5..11);
    (edges, proptest::collection::vec(proptest::bool::weighted(0.8), 6)).prop_filter_map(
        "connected, with hosts on two switches",
        |(pairs, with_hosts)| {
            let ends: BTreeSet<[usize; 2]> = pairs
                .into_iter()
                .filter(|(one, other)| one != other)
                .map(|(one, other)| [one.min(other), one.max(other)])
                .collect();
            let edges = ends.into_iter().map(|ends| Edge { ends, links: 1 }).collect();
            let graph = SwitchGraph { with_hosts, edges };
            let hosts = graph.with_hosts.iter().filter(|&&with_hosts| with_hosts).count();
            (graph.is_connected() && hosts > 1).then_some(graph)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn shortest_paths_have_the_fewest_vlans_on_any_small_graph(graph in graphs()) {
        let model = SwitchModel::named("generic").unwrap();
        let wiring = cable(&graph, Parts::uniform(&graph, &model, 1)).unwrap();
        minimal_is_the_fewest(&wiring)?;
    }

    #[test]
    fn acyclic_paths_are_the_shortest_in_the_fewest_vlans_on_any_small_graph(graph in graphs()) {
        let model = SwitchModel::named("generic").unwrap();
        let wiring = cable(&graph, Parts::uniform(&graph, &model, 1)).unwrap();
        acyclic_is_the_shortest_and_the_fewest(&wiring, &PlanOptions::new(None));
    }
}
