//! The fewest forests that hold a routing's paths from every source, by trying all.
//!
//! Each source may use any tree of its [`Ways`]; sources are put one after the other into one of the
//! forests so far or into a new one, with every tree that fits, and given up where frames could wait
//! in a cycle. That is tried with 1 forest, 2, 3 and so on, so the first that works is the minimum.

use super::routes::Sets;
use super::ways::Ways;
use super::{Net, Routes, Waiting, Walk};

/// The search is tried up to so many switches.
pub(crate) const SWITCHES_EXACT_MAX: usize = 8;
/// Trunks are bits of a word.
const TRUNKS_MAX: usize = 64;
/// Most trees of a source.
const TREES_MAX: usize = 4_096;
/// Most steps of the search for one number of forests.
const STEPS_MAX: usize = 300_000;

/// What the search found.
#[derive(Debug)]
pub(crate) enum Found {
    /// The fewest forests; [`Routes::proven`] says whether fewer were ruled out.
    Routes(Routes),
    /// However paths are chosen, frames could wait in a cycle.
    Deadlock,
    /// Too large, or the search was too long.
    Open,
}

/// Finds the fewest forests; `pauses` says whether there are pause frames, so that nothing may wait in a
/// cycle.
pub(crate) fn fewest(net: &Net, ways: &[Ways], pauses: bool) -> Found {
    if net.switches() > SWITCHES_EXACT_MAX || net.trunks() > TRUNKS_MAX {
        return Found::Open;
    }
    let sources: Option<Vec<Source>> = ways.iter().map(|ways| Source::new(net, ways)).collect();
    let Some(sources) = sources else { return Found::Open };
    let mut proven = true;
    for most in least(net, &sources)..=sources.len() {
        let mut search =
            Search { net, sources: &sources, most, pauses, steps: 0, chosen: Vec::new() };
        if search.place(&mut Vec::new(), &Waiting::new(net)) {
            let chosen = std::mem::take(&mut search.chosen);
            return Found::Routes(routes(net, &sources, &chosen, proven));
        }
        proven &= search.steps < STEPS_MAX;
    }
    if proven { Found::Deadlock } else { Found::Open }
}

/// A source and its trees.
struct Source {
    switch: usize,
    trees: Vec<Tree>,
}

struct Tree {
    trunks: u64,
    walk: Walk,
    beyond: Vec<usize>,
}

impl Source {
    fn new(net: &Net, ways: &Ways) -> Option<Self> {
        let mut trees: Vec<Tree> = Vec::new();
        for walk in ways.trees(net, TREES_MAX)? {
            let trunks = walk.needed(net).iter().fold(0, |all, trunk| all | 1 << trunk);
            if trees.iter().all(|tree| tree.trunks != trunks) {
                let beyond = walk.hosts_beyond(net);
                trees.push(Tree { trunks, walk, beyond });
            }
        }
        Some(Self { switch: ways.source, trees })
    }

    /// Whether a forest can hold a tree of each.
    fn shares(&self, net: &Net, other: &Self) -> bool {
        let fits =
            |one: &Tree| other.trees.iter().any(|tree| is_forest(net, one.trunks | tree.trunks));
        self.trees.iter().any(fits)
    }
}

fn is_forest(net: &Net, trunks: u64) -> bool {
    let mut sets = Sets::new(net.switches());
    bits(trunks).all(|trunk| {
        let [one, other] = net.ends(trunk);
        sets.join(one, other)
    })
}

fn bits(word: u64) -> impl Iterator<Item = usize> {
    (0..TRUNKS_MAX).filter(move |bit| word & (1 << bit) != 0)
}

/// The most sources no two of which can share a forest: so many forests at least.
fn least(net: &Net, sources: &[Source]) -> usize {
    let apart: Vec<u32> = sources
        .iter()
        .map(|one| {
            let word = sources.iter().enumerate().filter(|(_, other)| !one.shares(net, other));
            word.fold(0, |all, (at, _)| all | 1 << at)
        })
        .collect();
    let is_apart = |group: u32| {
        (0..sources.len())
            .filter(|at| group & (1 << at) != 0)
            .all(|at| group & !apart[at] & !(1 << at) == 0)
    };
    let groups = (1_u32..1 << sources.len()).filter(|&group| is_apart(group));
    groups.map(|group| usize::try_from(group.count_ones()).unwrap_or(0)).max().unwrap_or(0)
}

struct Search<'a> {
    net: &'a Net,
    sources: &'a [Source],
    most: usize,
    pauses: bool,
    steps: usize,
    /// For each source so far, the forest and the tree.
    chosen: Vec<(usize, usize)>,
}

impl Search<'_> {
    /// Puts the next source somewhere, and all after it; true if that went well.
    fn place(&mut self, forests: &mut Vec<u64>, waiting: &Waiting) -> bool {
        let Some(source) = self.sources.get(self.chosen.len()) else { return true };
        let new = forests.len();
        for at in 0..(new + 1).min(self.most) {
            for (number, tree) in source.trees.iter().enumerate() {
                let before = forests.get(at).copied().unwrap_or(0);
                if !is_forest(self.net, before | tree.trunks) {
                    continue;
                }
                self.steps += 1;
                if self.steps >= STEPS_MAX {
                    return false;
                }
                let mut waiting = waiting.clone();
                waiting.add(self.net, &tree.walk, &tree.beyond);
                if self.pauses && waiting.cycle(self.net).is_some() {
                    continue;
                }
                if at == new {
                    forests.push(0);
                }
                forests[at] = before | tree.trunks;
                self.chosen.push((at, number));
                if self.place(forests, &waiting) {
                    return true;
                }
                self.chosen.pop();
                forests[at] = before;
                forests.truncate(new);
            }
        }
        false
    }
}

fn routes(net: &Net, sources: &[Source], chosen: &[(usize, usize)], proven: bool) -> Routes {
    let count = chosen.iter().map(|(forest, _)| forest + 1).max().unwrap_or(0);
    let mut trunks = vec![0; count];
    let mut choices = vec![Vec::new(); net.switches()];
    for (source, &(forest, tree)) in sources.iter().zip(chosen) {
        trunks[forest] |= source.trees[tree].trunks;
        choices[source.switch].push(forest);
    }
    let forests = trunks.into_iter().map(|trunks| bits(trunks).collect()).collect();
    Routes { forests, choices, proven }
}
