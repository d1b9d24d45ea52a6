//! Random regular graphs, the same for the same seed on every machine.

use super::graph::SwitchGraph;

/// The next of a sequence of random numbers (`SplitMix64`: Steele, Lea and Flood 2014).
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = *state;
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// One of the numbers from 0 on, below a limit.
pub(crate) fn below(state: &mut u64, limit: usize) -> usize {
    let limit = u64::try_from(limit).expect("a number of edges fits 64 bits");
    usize::try_from(draw(state) % limit).expect("it is below a usize")
}

/// Edges of a circulant graph of the degree, then exchanged at random: two edges `a-b` and `c-d`
/// become `a-d` and `c-b` where that makes no loop and no double edge, which keeps every degree.
/// Exchanges go on until every edge was touched about ten times and the graph is connected.
pub(super) fn regular(switches: usize, degree: usize, seed: u64) -> SwitchGraph {
    let mut edges = circulant(switches, degree);
    let mut joined = vec![false; switches * switches];
    for &(one, other) in &edges {
        joined[one * switches + other] = true;
        joined[other * switches + one] = true;
    }
    let mut state = seed;
    loop {
        for _ in 0..10 * edges.len() {
            let (first, second) = (below(&mut state, edges.len()), below(&mut state, edges.len()));
            let (a, b) = edges[first];
            let (mut c, mut d) = edges[second];
            if draw(&mut state) & 1 == 1 {
                (c, d) = (d, c);
            }
            let apart = a != c && a != d && b != c && b != d;
            if !apart || joined[a * switches + d] || joined[c * switches + b] {
                continue;
            }
            for (one, other, set) in [(a, b, false), (c, d, false), (a, d, true), (c, b, true)] {
                joined[one * switches + other] = set;
                joined[other * switches + one] = set;
            }
            edges[first] = (a, d);
            edges[second] = (c, b);
        }
        let graph = SwitchGraph::new(vec![true; switches], edges.iter().copied());
        // Degrees of 2 and more; a graph of degree 1 is connected only when it has two switches.
        if graph.is_connected() {
            return graph;
        }
    }
}

/// Each switch joined to those up to `degree / 2` away, and to the opposite one if that is odd.
fn circulant(switches: usize, degree: usize) -> Vec<(usize, usize)> {
    let mut edges = Vec::new();
    for switch in 0..switches {
        edges.extend((1..=degree / 2).map(|step| (switch, (switch + step) % switches)));
        if degree % 2 == 1 && switch < switches / 2 {
            edges.push((switch, switch + switches / 2));
        }
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_switch_has_its_degree_and_seeds_differ() {
        for (switches, degree) in [(4, 3), (8, 2), (10, 3), (9, 4), (64, 8), (2, 1), (8, 7)] {
            let graph = regular(switches, degree, 1);
            let mut degrees = vec![0; switches];
            for edge in &graph.edges {
                assert_eq!(edge.links, 1);
                edge.ends.iter().for_each(|&end| degrees[end] += 1);
            }
            assert_eq!(degrees, vec![degree; switches], "{switches} of degree {degree}");
        }
        assert_eq!(regular(64, 8, 7), regular(64, 8, 7));
        assert_ne!(regular(64, 8, 7), regular(64, 8, 8));
    }
}
