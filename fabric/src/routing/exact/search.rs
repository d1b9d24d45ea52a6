//! Whether sources find room in so many forests.
//!
//! The source that has the fewest trees left is put into one of the forests so far or into a new one, with
//! every tree that fits. Trees of the others with which frames could then wait in a cycle are left out.
//! It is given up where a source has none left, or where the sources for which there is room in no forest
//! so far need more new ones than there may be.

use super::TRUNKS_MAX;
use crate::routing::routes::Sets;
use crate::routing::within::Exceeding;
use crate::routing::{Net, Routes};

/// Most trees that are looked at, each in some state of the search: less than a second.
const STEPS_MAX: usize = 2_000_000;

/// A source and its trees.
pub(super) struct Source {
    switch: usize,
    trees: Vec<Tree>,
}

struct Tree {
    trunks: u64,
    /// The channels that wait for others, and for which.
    waits: Vec<(usize, usize)>,
    /// By how many trunks its paths exceed the shortest.
    excess: usize,
    /// The pairs of hosts on its channels.
    loads: Vec<(usize, usize)>,
}

impl Source {
    pub(super) fn new(net: &Net, switch: usize, walks: Vec<Exceeding>) -> Self {
        let mut trees: Vec<Tree> = Vec::new();
        for (walk, excess) in walks {
            let trunks = walk.needed(net).iter().fold(0, |all, trunk| all | 1 << trunk);
            if trees.iter().all(|tree| tree.trunks != trunks) {
                let (waits, loads) = (walk.waits(net).collect(), walk.loads(net).collect());
                trees.push(Tree { trunks, waits, excess, loads });
            }
        }
        Self { switch, trees }
    }

    /// Whether a forest can hold a tree of each.
    fn shares(&self, net: &Net, other: &Self) -> bool {
        let fits =
            |one: &Tree| other.trees.iter().any(|tree| is_forest(net, one.trunks | tree.trunks));
        self.trees.iter().any(fits)
    }
}

/// Whether trunks, as bits, have no loop.
fn is_forest(net: &Net, trunks: u64) -> bool {
    let mut sets = Sets::new(net.switches());
    usize::try_from(trunks.count_ones()).is_ok_and(|trunks| trunks < net.switches())
        && bits(trunks.into()).all(|trunk| {
            let [one, other] = net.ends(trunk);
            sets.join(one, other)
        })
}

/// The places of the bits of a word, least first.
fn bits(mut word: u128) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let at = usize::try_from(word.trailing_zeros()).ok().filter(|_| word != 0);
        word &= word.wrapping_sub(1);
        at
    })
}

/// For each channel those that it waits for.
#[derive(Clone, Copy)]
struct Waits([u128; 2 * TRUNKS_MAX]);

impl Waits {
    fn with(mut self, tree: &Tree) -> Self {
        tree.waits.iter().for_each(|&(before, after)| self.0[before] |= 1 << after);
        self
    }

    /// Whether channels wait in a cycle: whether some are left when those that wait for none of the
    /// rest are taken away again and again.
    fn cycle(&self, net: &Net) -> bool {
        let mut left = u128::MAX >> (self.0.len() - net.channels());
        loop {
            let mut still = 0;
            for at in bits(left) {
                still |= u128::from(self.0[at] & left != 0) << at;
            }
            if still == left {
                return left != 0;
            }
            left = still;
        }
    }
}

/// For each set of sources the most of them no two of which can share a forest.
fn apart(net: &Net, sources: &[Source]) -> Vec<usize> {
    let shared: Vec<usize> = sources
        .iter()
        .map(|one| {
            let others = sources.iter().enumerate().filter(|(_, other)| one.shares(net, other));
            others.fold(0, |all, (at, _)| all | 1 << at)
        })
        .collect();
    let mut most = vec![0; 1 << sources.len()];
    for set in 1..most.len() {
        // Without its first one, or with it and without those that can share with it.
        let first = (0..sources.len()).find(|at| set & (1 << at) != 0).unwrap_or(0);
        let rest = set & !(1 << first);
        most[set] = most[rest].max(1 + most[rest & !shared[first]]);
    }
    most
}

/// A source that has no forest yet, and the trees that it can still have.
#[derive(Clone)]
struct Left {
    source: usize,
    trees: Vec<usize>,
}

/// What was chosen so far.
#[derive(Clone)]
struct State {
    forests: Vec<u64>,
    waits: Waits,
    /// By how many trunks more the trees of the others may exceed the shortest.
    excess: usize,
    /// Pairs of hosts on each channel.
    loads: Vec<usize>,
}

impl State {
    fn begin(net: &Net, excess: usize) -> Self {
        let waits = Waits([0; 2 * TRUNKS_MAX]);
        Self { forests: Vec::new(), waits, excess, loads: vec![0; net.channels()] }
    }

    /// With a tree that is in no forest yet.
    fn with(&self, tree: &Tree) -> Self {
        let mut loads = self.loads.clone();
        tree.loads.iter().for_each(|&(channel, pairs)| loads[channel] += pairs);
        let (waits, excess) = (self.waits.with(tree), self.excess - tree.excess);
        Self { forests: self.forests.clone(), waits, excess, loads }
    }
}

pub(super) struct Search<'a> {
    net: &'a Net,
    sources: &'a [Source],
    most: usize,
    pauses: bool,
    load_max: usize,
    apart: Vec<usize>,
    steps: usize,
    /// The source, the forest and the tree of each choice so far.
    chosen: Vec<(usize, usize, usize)>,
}

impl<'a> Search<'a> {
    /// In up to `most` forests; with pauses frames must not wait in a cycle.
    pub(super) fn new(net: &'a Net, sources: &'a [Source], most: usize, pauses: bool) -> Self {
        let apart = apart(net, sources);
        let load_max = usize::MAX;
        Self { net, sources, most, pauses, load_max, apart, steps: 0, chosen: Vec::new() }
    }

    /// Whether all sources find room, their paths exceeding the shortest by so many trunks at most.
    pub(super) fn run(&mut self, excess: usize) -> bool {
        let all =
            |(source, of): (usize, &Source)| Left { source, trees: (0..of.trees.len()).collect() };
        let left: Vec<Left> = self.sources.iter().enumerate().map(all).collect();
        let state = State::begin(self.net, excess);
        self.chosen.clear();
        self.narrowed(&left, &state).is_some_and(|left| self.place(left, &state))
    }

    /// Whether the search was given up.
    pub(super) fn is_out_of_steps(&self) -> bool {
        self.steps >= STEPS_MAX
    }

    /// What was found, or the same with less on the busiest channel: the least if the search ends.
    pub(super) fn lightest(&mut self, excess: usize) {
        loop {
            let found = self.chosen.clone();
            let trees = found.iter().map(|&(source, _, tree)| &self.sources[source].trees[tree]);
            let state = trees.fold(State::begin(self.net, excess), |state, tree| state.with(tree));
            self.load_max = state.loads.iter().max().copied().unwrap_or(0).saturating_sub(1);
            if !self.run(excess) {
                self.chosen = found;
                return;
            }
        }
    }

    /// What was found.
    pub(super) fn routes(&self, proven: bool) -> Routes {
        let count = self.chosen.iter().map(|(_, forest, _)| forest + 1).max().unwrap_or(0);
        let mut trunks = vec![0; count];
        let mut choices = vec![Vec::new(); self.net.switches()];
        for &(source, forest, tree) in &self.chosen {
            trunks[forest] |= self.sources[source].trees[tree].trunks;
            choices[self.sources[source].switch].push(forest);
        }
        let forests = trunks.into_iter().map(|trunks: u64| bits(trunks.into()).collect()).collect();
        Routes { forests, choices, proven }
    }

    /// Puts one more source somewhere, and then all others; true if that went well.
    fn place(&mut self, mut left: Vec<Left>, state: &State) -> bool {
        let Some(next) = (0..left.len()).min_by_key(|&at| left[at].trees.len()) else {
            return true;
        };
        let Left { source, trees } = left.swap_remove(next);
        for number in trees {
            let tree = &self.sources[source].trees[number];
            let places = self.places(&state.forests, tree);
            let mut then = state.with(tree);
            let left = if places.is_empty() { None } else { self.narrowed(&left, &then) };
            let Some(left) = left else { continue };
            for at in places {
                then.forests.clone_from(&state.forests);
                then.forests.resize(then.forests.len().max(at + 1), 0);
                then.forests[at] |= tree.trunks;
                if !self.has_room(&left, &then.forests) {
                    continue;
                }
                self.chosen.push((source, at, number));
                if self.place(left.clone(), &then) {
                    return true;
                }
                self.chosen.pop();
            }
        }
        false
    }

    /// The forests that stay such with a tree in them, and a new one if there may be more.
    fn places(&self, forests: &[u64], tree: &Tree) -> Vec<usize> {
        let fits = |at: &usize| {
            forests.get(*at).is_none_or(|forest| is_forest(self.net, forest | tree.trunks))
        };
        (0..(forests.len() + 1).min(self.most)).filter(fits).collect()
    }

    /// The trees that can still be had; `None` if some source has none, or the search is too long.
    fn narrowed(&mut self, left: &[Left], state: &State) -> Option<Vec<Left>> {
        let mut narrowed = Vec::with_capacity(left.len());
        for Left { source, trees } in left {
            self.steps += trees.len();
            if self.is_out_of_steps() {
                return None;
            }
            let can = |number: &usize| {
                let tree = &self.sources[*source].trees[*number];
                let is_light = |&(channel, pairs): &(usize, usize)| {
                    state.loads[channel] + pairs <= self.load_max
                };
                tree.excess <= state.excess
                    && tree.loads.iter().all(is_light)
                    && !(self.pauses && state.waits.with(tree).cycle(self.net))
            };
            let trees: Vec<usize> = trees.iter().copied().filter(can).collect();
            if trees.is_empty() {
                return None;
            }
            narrowed.push(Left { source: *source, trees });
        }
        Some(narrowed)
    }

    /// Whether the sources with room in no forest so far may need no more forests than there can be.
    fn has_room(&self, left: &[Left], forests: &[u64]) -> bool {
        let fits = |Left { source, trees }: &Left| {
            trees.iter().any(|&number| {
                let trunks = self.sources[*source].trees[number].trunks;
                forests.iter().any(|forest| is_forest(self.net, forest | trunks))
            })
        };
        let without = left.iter().filter(|left| !fits(left));
        let set = without.fold(0, |all, left| all | 1 << left.source);
        forests.len() + self.apart[set] <= self.most
    }
}
