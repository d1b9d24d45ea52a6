//! Which paths a routing allows from a source: by which channels each switch may be reached.

use super::dimension_order::{Grid, Lines};
use super::{Net, Walk};

/// For each switch the channels that the last step of a path to it may take. Whichever is chosen for
/// each, the steps chosen are a tree, and its paths are paths of the routing.
#[derive(Debug, Clone)]
pub(crate) struct Ways {
    pub(crate) source: usize,
    pub(crate) last: Vec<Vec<usize>>,
    /// Switches in an order in which every step is from an earlier to a later one.
    order: Vec<usize>,
}

impl Ways {
    fn new(net: &Net, source: usize, depths: &[Option<usize>], last: Vec<Vec<usize>>) -> Self {
        let mut order: Vec<usize> =
            (0..net.switches()).filter(|&switch| depths[switch].is_some()).collect();
        order.sort_by_key(|&switch| (depths[switch], switch));
        Self { source, last, order }
    }

    /// All shortest paths.
    pub(crate) fn minimal(net: &Net, source: usize) -> Self {
        let distances = net.distances(source);
        let last = (0..net.switches())
            .map(|to| {
                let nearer = |at: usize| distances[at].map(|at| at + 1) == distances[to];
                let links = net.from(to).iter().filter(|link| nearer(link.to));
                // The channel that comes in by the trunk by which this one leaves.
                links.map(|link| link.channel ^ 1).collect()
            })
            .collect();
        Self::new(net, source, &distances, last)
    }

    /// First up to the root or as far as it goes, in the fewest steps; then down, in the fewest steps.
    pub(crate) fn up_down(net: &Net, source: usize, rank: &[(Option<usize>, usize)]) -> Self {
        let mut depths: Vec<Option<usize>> = vec![None; net.switches()];
        let mut last = vec![Vec::new(); net.switches()];
        depths[source] = Some(0);
        let mut risen = vec![source];
        let mut next = 0;
        while let Some(&at) = risen.get(next) {
            next += 1;
            let beyond = depths[at].map(|depth| depth + 1);
            for link in net.from(at).iter().filter(|link| rank[link.to] < rank[at]) {
                if depths[link.to].is_none() {
                    depths[link.to] = beyond;
                    risen.push(link.to);
                }
                if depths[link.to] == beyond {
                    last[link.to].push(link.channel);
                }
            }
        }
        let by_rising = depths.clone();
        let mut depth = 0;
        while (0..net.switches()).any(|at| depths[at].is_some_and(|at| at >= depth)) {
            for at in
                (0..net.switches()).filter(|&at| depths[at] == Some(depth)).collect::<Vec<_>>()
            {
                for link in net.from(at).iter().filter(|link| rank[link.to] > rank[at]) {
                    if by_rising[link.to].is_none()
                        && depths[link.to].is_none_or(|there| there == depth + 1)
                    {
                        depths[link.to] = Some(depth + 1);
                        last[link.to].push(link.channel);
                    }
                }
            }
            depth += 1;
        }
        Self::new(net, source, &depths, last)
    }

    /// One dimension after the other, in this order, by the shorter way round; both where they are as
    /// long. `None` if the wiring lacks a link of the grid.
    pub(crate) fn dimension_order(
        net: &Net,
        grid: &Grid,
        order: &[usize],
        source: usize,
    ) -> Option<Self> {
        let mut depths = vec![None; net.switches()];
        let mut last = vec![Vec::new(); net.switches()];
        for to in 0..net.switches() {
            let mut depth = 0;
            let mut before = Vec::new();
            for &dimension in order {
                let (from, at) =
                    (grid.coordinate(source, dimension), grid.coordinate(to, dimension));
                if from == at {
                    continue;
                }
                let (steps, coordinates) = grid.before(dimension, from, at);
                depth += steps;
                let stride = grid.stride(dimension);
                before =
                    coordinates.into_iter().map(|near| to - at * stride + near * stride).collect();
            }
            depths[to] = Some(depth);
            last[to] = before
                .into_iter()
                .map(|near| net.channel(near, to))
                .collect::<Option<Vec<usize>>>()?;
        }
        Some(Self::new(net, source, &depths, last))
    }

    /// The tree in which the first way is taken everywhere.
    pub(crate) fn first(&self, net: &Net) -> Walk {
        self.chosen(net, |_| 0)
    }

    /// All trees that lead to hosts and nowhere else; `None` if there are more than `most` choices.
    pub(crate) fn trees(&self, net: &Net, most: usize) -> Option<Vec<Walk>> {
        let ways = |switch: &usize| self.last[*switch].len().max(1);
        let choices =
            self.order.iter().map(ways).try_fold(1_usize, |all, ways| all.checked_mul(ways));
        let choices = choices.filter(|&choices| choices <= most)?;
        let tree = |mut choice: usize| {
            self.chosen(net, |switch| {
                let ways = self.last[switch].len().max(1);
                let way = choice % ways;
                choice /= ways;
                way
            })
        };
        Some((0..choices).map(tree).collect())
    }

    fn chosen(&self, net: &Net, mut way: impl FnMut(usize) -> usize) -> Walk {
        let mut walk = Walk::begin(net, self.source);
        for &switch in &self.order {
            let way = way(switch);
            if let Some(&channel) = self.last[switch].get(way) {
                walk.reach(net, channel);
            }
        }
        walk
    }
}

impl Grid {
    /// How many steps it is from a coordinate to another, and which coordinates may be the last before
    /// it, on the shorter way.
    fn before(&self, dimension: usize, from: usize, to: usize) -> (usize, Vec<usize>) {
        let size = self.sizes[dimension];
        if self.lines == Lines::Complete {
            return (1, vec![from]);
        }
        let towards = |up: bool| if up { (to + size - 1) % size } else { (to + 1) % size };
        if !self.is_ring(dimension) {
            return (from.abs_diff(to), vec![towards(from < to)]);
        }
        let up = (to + size - from) % size;
        match up.cmp(&(size - up)) {
            std::cmp::Ordering::Less => (up, vec![towards(true)]),
            std::cmp::Ordering::Greater => (size - up, vec![towards(false)]),
            std::cmp::Ordering::Equal => (up, vec![towards(true), towards(false)]),
        }
    }
}
