//! The words of a topology.

use std::str::FromStr;

use thiserror::Error;

use super::{SWITCHES_MAX, Topology};

/// A text names no topology, or one that cannot be wired.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseTopologyError {
    /// The first word is no topology.
    #[error("`{name}` is no topology; known are {known}")]
    Unknown {
        /// The word that stands first.
        name: String,
        /// The words that are known.
        known: String,
    },
    /// What comes after the name is not what belongs there.
    #[error("`{text}`: a {name} is written as `{example}`")]
    Form {
        /// The whole text, as it was given.
        text: String,
        /// Which topology it begins with.
        name: &'static str,
        /// An example of how that topology is written.
        example: &'static str,
    },
    /// No switches can be joined so.
    #[error("`{text}` cannot be wired: {why}")]
    Unwirable {
        /// The whole text, as it was given.
        text: String,
        /// What breaks, and what would do.
        why: String,
    },
}

const EXAMPLES: [(&str, &str); 12] = [
    ("tree", "tree 8"),
    ("star", "star 6"),
    ("ring", "ring 8"),
    ("mesh", "mesh 4x2"),
    ("torus", "torus 4x4x4"),
    ("hypercube", "hypercube 3"),
    ("complete", "complete 6"),
    ("hyperx", "hyperx 8x8"),
    ("leaf-spine", "leaf-spine 48+16"),
    ("fat-tree", "fat-tree 4"),
    ("dragonfly", "dragonfly 9x4 global 2"),
    ("random-regular", "random-regular 64 degree 8 seed 1"),
];

impl FromStr for Topology {
    type Err = ParseTopologyError;

    fn from_str(text: &str) -> Result<Self, ParseTopologyError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let word = words.first().copied().unwrap_or_default();
        let Some(&(name, example)) = EXAMPLES.iter().find(|(name, _)| *name == word) else {
            let known = Self::NAMES.map(|name| format!("`{name}`")).join(", ");
            return Err(ParseTopologyError::Unknown { name: word.into(), known });
        };
        let topology = read(name, &words[1..]).ok_or_else(|| ParseTopologyError::Form {
            text: text.into(),
            name,
            example,
        })?;
        match unwirable(&topology) {
            Some(why) => Err(ParseTopologyError::Unwirable { text: text.into(), why }),
            None => Ok(topology),
        }
    }
}

fn read(name: &str, words: &[&str]) -> Option<Topology> {
    let number = |word: &str| word.parse::<usize>().ok();
    let list = |word: &str, by: char| word.split(by).map(number).collect::<Option<Vec<_>>>();
    Some(match (name, words) {
        ("tree", [word]) if word.contains(',') => {
            Topology::Tree { fan_outs: list(word.trim_end_matches(','), ',')? }
        }
        ("tree", [word]) => Topology::Caterpillar { switches: number(word)? },
        ("star", [word]) => Topology::Star { switches: number(word)? },
        ("ring", [word]) => Topology::Ring { switches: number(word)? },
        ("mesh", [word]) => Topology::Mesh { sizes: list(word, 'x')? },
        ("torus", [word]) => Topology::Torus { sizes: list(word, 'x')? },
        ("hypercube", [word]) => Topology::Hypercube { dimensions: number(word)? },
        ("complete", [word]) => Topology::Complete { switches: number(word)? },
        ("hyperx", [word]) => Topology::HyperX { sizes: list(word, 'x')? },
        ("leaf-spine", [word]) => {
            let (leaves, spines) = word.split_once('+')?;
            Topology::LeafSpine { leaves: number(leaves)?, spines: number(spines)? }
        }
        ("fat-tree", [word]) => Topology::FatTree { arity: number(word)? },
        ("dragonfly", [word, "global", global]) => {
            let (groups, group) = word.split_once('x')?;
            let (groups, group) = (number(groups)?, number(group)?);
            Topology::Dragonfly { groups, group, global: number(global)? }
        }
        ("random-regular", [switches, "degree", degree, rest @ ..]) => {
            let seed = match rest {
                [] => 1,
                ["seed", seed] => seed.parse().ok()?,
                _ => return None,
            };
            let (switches, degree) = (number(switches)?, number(degree)?);
            Topology::RandomRegular { switches, degree, seed }
        }
        _ => return None,
    })
}

/// What keeps the topology from being wired.
fn unwirable(topology: &Topology) -> Option<String> {
    let least = |what: &str, is: usize, least: usize| {
        (is < least).then(|| format!("{is} {what}, at least {least} are needed"))
    };
    let line = |sizes: &[usize]| {
        let short = sizes.iter().any(|&size| size < 2);
        short.then(|| "every dimension needs at least 2 switches".to_owned())
    };
    let wrong = match topology {
        Topology::Caterpillar { switches } | Topology::Star { switches } => {
            least("switches", *switches, 2)
        }
        Topology::Complete { switches } => least("switches", *switches, 2),
        Topology::Tree { fan_outs } => {
            fan_outs.contains(&0).then(|| "every fan-out is at least 1".to_owned())
        }
        Topology::Ring { switches } => least("switches", *switches, 3),
        Topology::Mesh { sizes } | Topology::Torus { sizes } | Topology::HyperX { sizes } => {
            line(sizes)
        }
        Topology::Hypercube { dimensions } => least("dimensions", *dimensions, 1),
        Topology::LeafSpine { leaves, spines } => {
            least("leaves", *leaves, 2).or_else(|| least("spines", *spines, 1))
        }
        Topology::FatTree { arity } => {
            let odd = *arity < 2 || arity % 2 == 1;
            odd.then(|| format!("{arity} ports, an even number from 2 up is needed"))
        }
        Topology::Dragonfly { groups, group, global } => {
            dragonfly_unwirable(*groups, *group, *global)
        }
        Topology::RandomRegular { switches, degree, .. } => regular_unwirable(*switches, *degree),
    };
    wrong.or_else(|| {
        let switches = switches(topology);
        let many = switches.is_none_or(|switches| switches > SWITCHES_MAX);
        many.then(|| format!("it has more than {SWITCHES_MAX} switches"))
    })
}

fn dragonfly_unwirable(groups: usize, group: usize, global: usize) -> Option<String> {
    if groups < 2 || group < 1 || global < 1 {
        return Some("it needs 2 groups, a switch in each, and a global link from each".into());
    }
    let links = group.saturating_mul(global);
    (links < groups - 1).then(|| {
        format!(
            "{group} switches with {global} global links have {links} in a group, too few for {} \
             other groups; {} groups would do",
            groups - 1,
            links + 1,
        )
    })
}

fn regular_unwirable(switches: usize, degree: usize) -> Option<String> {
    if switches > SWITCHES_MAX {
        return None;
    }
    if degree >= switches {
        let most = switches.saturating_sub(1);
        return Some(format!("{switches} switches have at most {most} neighbours, not {degree}"));
    }
    if switches * degree % 2 == 1 {
        return Some(format!(
            "{switches} switches of degree {degree} have an odd number of link ends; {} switches \
             would do",
            switches + 1,
        ));
    }
    let apart = degree < 2 && switches != 2;
    apart.then(|| "switches of degree below 2 are not joined to all others".into())
}

/// The number of switches; `None` beyond all bounds.
fn switches(topology: &Topology) -> Option<usize> {
    let product = |sizes: &[usize]| {
        sizes.iter().try_fold(1_usize, |product, &size| product.checked_mul(size))
    };
    match topology {
        Topology::Caterpillar { switches }
        | Topology::Star { switches }
        | Topology::Ring { switches }
        | Topology::Complete { switches }
        | Topology::RandomRegular { switches, .. } => Some(*switches),
        Topology::Tree { fan_outs } => {
            let mut level = 1_usize;
            fan_outs.iter().try_fold(1_usize, |sum, &fan_out| {
                level = level.checked_mul(fan_out)?;
                sum.checked_add(level)
            })
        }
        Topology::Mesh { sizes } | Topology::Torus { sizes } | Topology::HyperX { sizes } => {
            product(sizes)
        }
        Topology::Hypercube { dimensions } => 1_usize.checked_shl(u32::try_from(*dimensions).ok()?),
        Topology::LeafSpine { leaves, spines } => leaves.checked_add(*spines),
        Topology::FatTree { arity } => arity.checked_mul(*arity)?.checked_mul(5).map(|n| n / 4),
        Topology::Dragonfly { groups, group, .. } => groups.checked_mul(*group),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_is_read() {
        for text in [
            "tree 8",
            "tree 3,4",
            "tree 5,",
            "star 6",
            "ring 8",
            "mesh 4x2",
            "torus 10x10x10",
            "hypercube 3",
            "complete 6",
            "hyperx 8x8",
            "leaf-spine 48+16",
            "fat-tree 36",
            "dragonfly 9x4 global 2",
            "random-regular 64 degree 8 seed 1",
        ] {
            assert_eq!(text.parse::<Topology>().unwrap().to_string(), text);
        }
        assert_eq!(EXAMPLES.map(|(name, _)| name), Topology::NAMES);
    }

    #[test]
    fn what_cannot_be_wired_is_refused_with_what_would_do() {
        for (text, error) in [
            (
                "moebius 4",
                "`moebius` is no topology; known are `tree`, `star`, `ring`, `mesh`, `torus`, \
                 `hypercube`, `complete`, `hyperx`, `leaf-spine`, `fat-tree`, `dragonfly`, \
                 `random-regular`",
            ),
            ("mesh 4+2", "`mesh 4+2`: a mesh is written as `mesh 4x2`"),
            ("ring 2", "`ring 2` cannot be wired: 2 switches, at least 3 are needed"),
            (
                "fat-tree 5",
                "`fat-tree 5` cannot be wired: 5 ports, an even number from 2 up is needed",
            ),
            (
                "random-regular 9 degree 3",
                "`random-regular 9 degree 3` cannot be wired: 9 switches of degree 3 have an odd \
                 number of link ends; 10 switches would do",
            ),
            (
                "dragonfly 10x4 global 2",
                "`dragonfly 10x4 global 2` cannot be wired: 4 switches with 2 global links have 8 \
                 in a group, too few for 9 other groups; 9 groups would do",
            ),
            (
                "torus 100x100x100",
                "`torus 100x100x100` cannot be wired: it has more than 16384 switches",
            ),
            ("hypercube 99", "`hypercube 99` cannot be wired: it has more than 16384 switches"),
        ] {
            assert_eq!(text.parse::<Topology>().unwrap_err().to_string(), error);
        }
    }
}
