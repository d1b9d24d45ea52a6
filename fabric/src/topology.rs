//! Topologies by name: which switches are joined, and which of them have hosts.
//!
//! A [`Topology`] is what a cluster file says in a few words; its [`SwitchGraph`] has no names, no
//! ports and no cables yet ([`crate::cable`] gives those). Planning needs the topology again, for
//! the coordinates of switches.

mod build;
mod graph;
mod parse;
mod random;

use std::fmt;

pub use graph::{Edge, Layout, SwitchGraph};
pub use parse::ParseTopologyError;
pub(crate) use random::below;

/// Most switches of a topology.
pub const SWITCHES_MAX: usize = 16_384;

/// A topology by name.
///
/// | written | what it is | hosts on |
/// | --- | --- | --- |
/// | `tree 8` | a row of 4 switches, and one more hanging from each | all |
/// | `tree 3,4` | a root, 3 switches below it, 4 below each of those | the lowest |
/// | `star 6` | one switch, and 5 more around it | all |
/// | `ring 8` | each joined to the next, the last to the first | all |
/// | `mesh 4x2` | a grid of any dimensions | all |
/// | `torus 4x4x4` | a grid whose lines of 3 switches and more are rings | all |
/// | `hypercube 3` | `mesh 2x2x2` | all |
/// | `complete 6` | all pairs joined | all |
/// | `hyperx 8x8` | a grid whose lines are complete | all |
/// | `leaf-spine 48+16` | each of 48 leaves joined to each of 16 spines | the leaves |
/// | `fat-tree 36` | 36 pods of 18 edge and 18 aggregation switches, 324 cores | the edge |
/// | `dragonfly 9x4 global 2` | 9 complete groups of 4, 2 links to other groups from each switch | all |
/// | `random-regular 64 degree 8 seed 1` | 8 links from each, drawn at random; connected | all |
///
/// Switches are numbered with the first coordinate running fastest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Topology {
    /// A row of switches with one more hanging from each: the paper's tree.
    Caterpillar {
        /// All switches; if odd, the last of the row has none hanging from it.
        switches: usize,
    },
    /// A root, and so many switches below each on every level.
    Tree {
        /// The fan-out of each level, the root's first.
        fan_outs: Vec<usize>,
    },
    /// One switch, and the others around it.
    Star {
        /// Switches of the whole topology.
        switches: usize,
    },
    /// Each switch joined to the next.
    Ring {
        /// Switches of the whole topology.
        switches: usize,
    },
    /// A grid of lines in any number of dimensions.
    Mesh {
        /// Switches along each dimension; the first dimension runs fastest.
        sizes: Vec<usize>,
    },
    /// A grid whose lines of three and more are rings.
    Torus {
        /// Switches along each dimension; the first dimension runs fastest.
        sizes: Vec<usize>,
    },
    /// Two switches along each of so many dimensions.
    Hypercube {
        /// The number of dimensions `d`; there are 2^d switches.
        dimensions: usize,
    },
    /// Every switch joined to every other one.
    Complete {
        /// Switches of the whole topology.
        switches: usize,
    },
    /// A grid whose lines are complete.
    HyperX {
        /// Switches along each dimension; the first dimension runs fastest.
        sizes: Vec<usize>,
    },
    /// Each leaf joined to each spine.
    LeafSpine {
        /// Leaves: the switches that hosts are plugged into.
        leaves: usize,
        /// Spines: the switches that join the leaves and have no hosts.
        spines: usize,
    },
    /// The three-level fat tree of switches with `arity` ports.
    FatTree {
        /// Ports of a switch: even.
        arity: usize,
    },
    /// Complete groups that are joined to one another.
    Dragonfly {
        /// Groups; each pair of them is joined.
        groups: usize,
        /// Switches of a group, which are joined pair by pair.
        group: usize,
        /// Links from each switch to other groups, at most.
        global: usize,
    },
    /// As many links from each switch, drawn at random.
    RandomRegular {
        /// Switches of the whole topology.
        switches: usize,
        /// Links that each switch has.
        degree: usize,
        /// What the random numbers follow from.
        seed: u64,
    },
}

impl Topology {
    /// The names that a topology begins with.
    pub const NAMES: [&'static str; 12] = [
        "tree",
        "star",
        "ring",
        "mesh",
        "torus",
        "hypercube",
        "complete",
        "hyperx",
        "leaf-spine",
        "fat-tree",
        "dragonfly",
        "random-regular",
    ];

    /// Its switches and how they are joined.
    pub fn graph(&self) -> SwitchGraph {
        match self {
            Self::Caterpillar { switches } => build::caterpillar(*switches),
            Self::Tree { fan_outs } => build::tree(fan_outs),
            Self::Star { switches } => build::star(*switches),
            Self::Ring { switches } => build::grid(&[*switches], true),
            Self::Mesh { sizes } => build::grid(sizes, false),
            Self::Torus { sizes } => build::grid(sizes, true),
            Self::Hypercube { dimensions } => build::grid(&vec![2; *dimensions], false),
            Self::Complete { switches } => build::hyperx(&[*switches]),
            Self::HyperX { sizes } => build::hyperx(sizes),
            Self::LeafSpine { leaves, spines } => build::leaf_spine(*leaves, *spines),
            Self::FatTree { arity } => build::fat_tree(*arity),
            Self::Dragonfly { groups, group, global } => build::dragonfly(*groups, *group, *global),
            Self::RandomRegular { switches, degree, seed } => {
                random::regular(*switches, *degree, *seed)
            }
        }
    }

    /// How its switches are arranged.
    pub fn layout(&self) -> Layout {
        match self {
            Self::Caterpillar { .. } | Self::Tree { .. } | Self::Star { .. } => Layout::Tree,
            Self::Ring { switches } => Layout::Grid { sizes: vec![*switches], wraps: true },
            Self::Mesh { sizes } => Layout::Grid { sizes: sizes.clone(), wraps: false },
            Self::Torus { sizes } => Layout::Grid { sizes: sizes.clone(), wraps: true },
            Self::Hypercube { dimensions } => {
                Layout::Grid { sizes: vec![2; *dimensions], wraps: false }
            }
            Self::Complete { switches } => Layout::HyperX { sizes: vec![*switches] },
            Self::HyperX { sizes } => Layout::HyperX { sizes: sizes.clone() },
            Self::LeafSpine { leaves, spines } => {
                Layout::LeafSpine { leaves: *leaves, spines: *spines }
            }
            Self::FatTree { arity } => Layout::FatTree { arity: *arity },
            Self::Dragonfly { .. } | Self::RandomRegular { .. } => Layout::Irregular,
        }
    }
}

/// As it is read.
impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |sizes: &[usize], by: &str| {
            sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(by)
        };
        match self {
            Self::Caterpillar { switches } => write!(f, "tree {switches}"),
            Self::Tree { fan_outs } if fan_outs.len() == 1 => write!(f, "tree {},", fan_outs[0]),
            Self::Tree { fan_outs } => write!(f, "tree {}", joined(fan_outs, ",")),
            Self::Star { switches } => write!(f, "star {switches}"),
            Self::Ring { switches } => write!(f, "ring {switches}"),
            Self::Mesh { sizes } => write!(f, "mesh {}", joined(sizes, "x")),
            Self::Torus { sizes } => write!(f, "torus {}", joined(sizes, "x")),
            Self::Hypercube { dimensions } => write!(f, "hypercube {dimensions}"),
            Self::Complete { switches } => write!(f, "complete {switches}"),
            Self::HyperX { sizes } => write!(f, "hyperx {}", joined(sizes, "x")),
            Self::LeafSpine { leaves, spines } => write!(f, "leaf-spine {leaves}+{spines}"),
            Self::FatTree { arity } => write!(f, "fat-tree {arity}"),
            Self::Dragonfly { groups, group, global } => {
                write!(f, "dragonfly {groups}x{group} global {global}")
            }
            Self::RandomRegular { switches, degree, seed } => {
                write!(f, "random-regular {switches} degree {degree} seed {seed}")
            }
        }
    }
}
