//! The graphs of the topologies that follow a rule.

use super::graph::SwitchGraph;

/// A row of `switches / 2` (rounded up), and one more hanging from each: `n` hangs from `n - row`.
pub(super) fn caterpillar(switches: usize) -> SwitchGraph {
    let row = switches.div_ceil(2);
    let along = (1..row).map(|switch| (switch - 1, switch));
    let hanging = (row..switches).map(|switch| (switch - row, switch));
    SwitchGraph::new(vec![true; switches], along.chain(hanging))
}

/// Level by level, the root first; hosts on the last level.
pub(super) fn tree(fan_outs: &[usize]) -> SwitchGraph {
    let mut pairs = Vec::new();
    let mut level = 0..1;
    for &fan_out in fan_outs {
        let below = level.end..level.end + level.len() * fan_out;
        for (place, child) in below.clone().enumerate() {
            pairs.push((level.start + place / fan_out, child));
        }
        level = below;
    }
    let with_hosts = (0..level.end).map(|switch| level.contains(&switch)).collect();
    SwitchGraph::new(with_hosts, pairs)
}

pub(super) fn star(switches: usize) -> SwitchGraph {
    SwitchGraph::new(vec![true; switches], (1..switches).map(|switch| (0, switch)))
}

/// Lines along each dimension; rings where they wrap and have three switches or more.
pub(super) fn grid(sizes: &[usize], wraps: bool) -> SwitchGraph {
    let switches: usize = sizes.iter().product();
    let mut pairs = Vec::new();
    let mut stride = 1;
    for &size in sizes {
        for switch in 0..switches {
            let at = switch / stride % size;
            if at + 1 < size {
                pairs.push((switch, switch + stride));
            } else if wraps && size > 2 {
                pairs.push((switch, switch - at * stride));
            }
        }
        stride *= size;
    }
    SwitchGraph::new(vec![true; switches], pairs)
}

/// Complete lines along each dimension.
pub(super) fn hyperx(sizes: &[usize]) -> SwitchGraph {
    let switches: usize = sizes.iter().product();
    let mut pairs = Vec::new();
    let mut stride = 1;
    for &size in sizes {
        for switch in 0..switches {
            let at = switch / stride % size;
            pairs.extend((1..size - at).map(|step| (switch, switch + step * stride)));
        }
        stride *= size;
    }
    SwitchGraph::new(vec![true; switches], pairs)
}

pub(super) fn leaf_spine(leaves: usize, spines: usize) -> SwitchGraph {
    let with_hosts = (0..leaves + spines).map(|switch| switch < leaves).collect();
    let pairs = (0..leaves).flat_map(|leaf| (0..spines).map(move |spine| (leaf, leaves + spine)));
    SwitchGraph::new(with_hosts, pairs)
}

/// In pod `p`, edge switch `p half + i` and aggregation switch `edges + p half + j` are joined for all
/// `i` and `j`; core `c half + j` is joined to aggregation switch `j` of every pod.
pub(super) fn fat_tree(arity: usize) -> SwitchGraph {
    let half = arity / 2;
    let edges = arity * half;
    let mut pairs = Vec::new();
    for pod in 0..arity {
        for above in 0..half {
            let aggregation = edges + pod * half + above;
            pairs.extend((0..half).map(|edge| (pod * half + edge, aggregation)));
            pairs.extend((0..half).map(|core| (aggregation, 2 * edges + core * half + above)));
        }
    }
    let with_hosts = (0..2 * edges + half * half).map(|switch| switch < edges).collect();
    SwitchGraph::new(with_hosts, pairs)
}

/// Every pair of groups gets as many links as each, the same number for every pair; the links of a
/// group go to the groups after it in turn, and are dealt to its switches in blocks of `global`.
pub(super) fn dragonfly(groups: usize, group: usize, global: usize) -> SwitchGraph {
    let switches = groups * group;
    let mut pairs = Vec::new();
    for first in (0..switches).step_by(group) {
        for one in first..first + group {
            pairs.extend((one + 1..first + group).map(|other| (one, other)));
        }
    }
    let links = group * global / (groups - 1);
    let place = |here: usize, there: usize, link: usize| {
        let ahead = (there + groups - here) % groups - 1;
        here * group + (ahead * links + link) / global
    };
    for one in 0..groups {
        for other in one + 1..groups {
            pairs.extend((0..links).map(|link| (place(one, other, link), place(other, one, link))));
        }
    }
    SwitchGraph::new(vec![true; switches], pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_literature() {
        for (graph, switches, edges) in [
            (caterpillar(8), 8, 7),
            (tree(&[3, 4]), 16, 15),
            (star(6), 6, 5),
            (grid(&[8], true), 8, 8),
            (grid(&[4, 2], false), 8, 10),
            (grid(&[4, 2], true), 8, 12),
            (grid(&[10, 10, 10], true), 1000, 3000),
            (hyperx(&[8]), 8, 28),
            (hyperx(&[10, 10, 10]), 1000, 13_500),
            (leaf_spine(48, 16), 64, 768),
            (fat_tree(4), 20, 32),
            (fat_tree(36), 1620, 23_328),
            (dragonfly(9, 4, 2), 36, 9 * 6 + 36),
        ] {
            assert_eq!((graph.switches(), graph.edges.len()), (switches, edges));
            assert!(graph.is_connected());
        }
    }

    #[test]
    fn a_torus_of_4_by_2_is_the_3_cube() {
        let degrees = |graph: &SwitchGraph| {
            let mut degrees = vec![0; graph.switches()];
            graph.edges.iter().flat_map(|edge| edge.ends).for_each(|end| degrees[end] += 1);
            degrees
        };
        assert_eq!(degrees(&grid(&[4, 2], true)), [3; 8]);
        assert_eq!(degrees(&grid(&[2, 2, 2], false)), [3; 8]);
    }

    #[test]
    fn a_dragonfly_gives_no_switch_more_global_links_than_it_has() {
        for (groups, group, global) in [(9, 4, 2), (5, 4, 2), (3, 2, 1), (8, 4, 2)] {
            let graph = dragonfly(groups, group, global);
            let mut links = vec![0; graph.switches()];
            for edge in &graph.edges {
                if edge.ends[0] / group != edge.ends[1] / group {
                    edge.ends.iter().for_each(|&end| links[end] += edge.links);
                }
            }
            assert!(links.iter().all(|&links| links <= global), "{links:?}");
            assert!(graph.is_connected());
        }
    }
}
