//! Switches and what joins them, before there are names and ports.

/// Switches by number, and the edges between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchGraph {
    /// For each switch, whether hosts are plugged into it.
    pub with_hosts: Vec<bool>,
    /// What joins switches; no pair twice.
    pub edges: Vec<Edge>,
}

/// The links between two switches of a topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// The switches, the lower number first.
    pub ends: [usize; 2],
    /// How many links the topology has between the two: mostly one.
    pub links: usize,
}

impl SwitchGraph {
    /// A graph of the edges between the given pairs; a pair that comes again is a further link.
    pub(crate) fn new(
        with_hosts: Vec<bool>,
        pairs: impl IntoIterator<Item = (usize, usize)>,
    ) -> Self {
        let mut ends: Vec<[usize; 2]> =
            pairs.into_iter().map(|(one, other)| [one.min(other), one.max(other)]).collect();
        ends.sort_unstable();
        let mut edges: Vec<Edge> = Vec::with_capacity(ends.len());
        for ends in ends {
            match edges.last_mut() {
                Some(last) if last.ends == ends => last.links += 1,
                _ => edges.push(Edge { ends, links: 1 }),
            }
        }
        Self { with_hosts, edges }
    }

    /// How many switches it has.
    pub fn switches(&self) -> usize {
        self.with_hosts.len()
    }

    /// Whether there is a way between any two switches.
    pub fn is_connected(&self) -> bool {
        let mut neighbours = vec![Vec::new(); self.switches()];
        for Edge { ends: [one, other], .. } in &self.edges {
            neighbours[*one].push(*other);
            neighbours[*other].push(*one);
        }
        let mut seen = vec![false; self.switches()];
        let mut reached = Vec::new();
        if let Some(first) = seen.first_mut() {
            *first = true;
            reached.push(0);
        }
        while let Some(switch) = reached.pop() {
            for &next in &neighbours[switch] {
                if !seen[next] {
                    seen[next] = true;
                    reached.push(next);
                }
            }
        }
        seen.iter().all(|&seen| seen)
    }
}

/// How the switches of a topology are arranged: what routing by coordinates needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// A tree, whose paths need no coordinates.
    Tree,
    /// A grid of lines, or of rings.
    Grid {
        /// Switches along each dimension; the first runs fastest.
        sizes: Vec<usize>,
        /// Whether lines of three and more are rings.
        wraps: bool,
    },
    /// A grid whose lines are complete.
    HyperX {
        /// Switches along each dimension; the first runs fastest.
        sizes: Vec<usize>,
    },
    /// Every leaf joined to every spine; leaves are numbered first.
    LeafSpine {
        /// Leaves: the switches that hosts are plugged into.
        leaves: usize,
        /// Spines: the switches that join the leaves.
        spines: usize,
    },
    /// Edge switches pod by pod, then aggregation switches pod by pod, then cores.
    FatTree {
        /// Ports of each switch, half of which go up.
        arity: usize,
    },
    /// Nothing that gives switches coordinates.
    Irregular,
}
