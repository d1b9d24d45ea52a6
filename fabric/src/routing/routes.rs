//! The forests of a routing, and which switches may send in which.

use std::collections::BTreeMap;

use super::{Adjacent, Net};

/// Forests, and for each switch those that hold its paths to all others.
#[derive(Debug, Clone, Default)]
pub(crate) struct Routes {
    /// The trunks of each forest, least first.
    pub(crate) forests: Vec<Vec<usize>>,
    /// For each switch the forests that it may send in, best first; none for a switch without hosts.
    pub(crate) choices: Vec<Vec<usize>>,
    /// Whether fewer forests are impossible for the paths of the routing.
    pub(crate) proven: bool,
}

impl Routes {
    /// From the source tree of each switch with hosts, pruned to what leads to hosts, its trunks least
    /// first. Equal trees share a forest; trees that leave switches out share one where they fit.
    pub(crate) fn merged(net: &Net, trees: Vec<(usize, Vec<usize>)>) -> Self {
        let mut routes = Self { choices: vec![Vec::new(); net.switches()], ..Self::default() };
        let mut known: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
        let spanning = net.switches() - 1;
        for (source, tree) in trees {
            let at = known.get(&tree).copied().unwrap_or_else(|| {
                let partial = tree.len() < spanning;
                let at = routes.fit(net, &tree, partial);
                known.insert(tree, at);
                at
            });
            routes.choices[source].push(at);
        }
        routes
    }

    /// By how many trunks the paths in the best forest of each source exceed the shortest ones.
    pub(crate) fn excess(&self, net: &Net) -> usize {
        let of = |source: usize| -> usize {
            let walk = Adjacent::new(net, &self.forests[self.choices[source][0]]).walk(source);
            let distances = net.distances(source);
            let exceeds = |at: usize| walk.depth(net, at) - distances[at].unwrap_or(0);
            net.sources().map(exceeds).sum()
        };
        net.sources().map(of).sum()
    }

    /// The first forest that stays one with the tree in it, or a new one.
    fn fit(&mut self, net: &Net, tree: &[usize], partial: bool) -> usize {
        if partial {
            for (at, forest) in self.forests.iter_mut().enumerate() {
                if forest.len() < net.switches() - 1
                    && let Some(union) = union(net, forest, tree)
                {
                    *forest = union;
                    return at;
                }
            }
        }
        self.forests.push(tree.to_vec());
        self.forests.len() - 1
    }

    /// For each switch the forests that its hosts take in turn, where each switch uses `spread` of its
    /// choices: each begins where the one before it stopped.
    pub(crate) fn in_turn(&self, net: &Net, spread: usize) -> Vec<Vec<usize>> {
        let mut turns = vec![Vec::new(); net.switches()];
        for (ordinal, source) in net.sources().enumerate() {
            let choices = &self.choices[source];
            let spread = spread.min(net.hosts[source]).min(choices.len());
            let nth = |step| choices[(ordinal * spread + step) % choices.len()];
            turns[source] = (0..spread).map(nth).collect();
        }
        turns
    }
}

/// The union of two sets of trunks; `None` if it has a loop.
fn union(net: &Net, one: &[usize], other: &[usize]) -> Option<Vec<usize>> {
    let mut trunks = [one, other].concat();
    trunks.sort_unstable();
    trunks.dedup();
    let mut sets = Sets::new(net.switches());
    let forest = trunks.iter().all(|&trunk| {
        let [a, b] = net.ends(trunk);
        sets.join(a, b)
    });
    forest.then_some(trunks)
}

/// Disjoint sets of switches.
#[derive(Debug, Clone)]
pub(crate) struct Sets(Vec<usize>);

impl Sets {
    pub(crate) fn new(switches: usize) -> Self {
        Self((0..switches).collect())
    }

    fn find(&mut self, mut switch: usize) -> usize {
        while self.0[switch] != switch {
            self.0[switch] = self.0[self.0[switch]];
            switch = self.0[switch];
        }
        switch
    }

    /// Joins two sets; false if they are the same one.
    pub(crate) fn join(&mut self, one: usize, other: usize) -> bool {
        let (one, other) = (self.find(one), self.find(other));
        self.0[one.max(other)] = one.min(other);
        one != other
    }
}
