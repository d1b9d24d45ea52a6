//! The fewest forests that hold a routing's paths from every source, by trying all.
//!
//! Each source may use any tree of its [`Ways`], or any at all ([`shortest_acyclic`]). That is tried with
//! 1 forest, 2, 3 and so on ([`Search`]), so the first number that works is the minimum.

mod search;

use self::search::{Search, Source};
use super::ways::Ways;
use super::within::trees_within;
use super::{Net, Routes};

/// The search is tried up to so many switches.
pub(crate) const SWITCHES_EXACT_MAX: usize = 8;
/// Trunks are bits of a word.
const TRUNKS_MAX: usize = 64;
/// Most trees of a source.
const TREES_MAX: usize = 4_096;

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
/// cycle. `ways` is asked for only where the search is tried: those of thousands of switches take seconds.
pub(crate) fn fewest(net: &Net, ways: impl FnOnce() -> Vec<Ways>, pauses: bool) -> Found {
    if !is_small(net) {
        return Found::Open;
    }
    let source = |ways: &Ways| {
        let trees = ways.trees(net, TREES_MAX)?.into_iter().map(|walk| (walk, 0));
        Some(Source::new(net, ways.source, trees.collect()))
    };
    let sources: Option<Vec<Source>> = ways().iter().map(source).collect();
    let Some(sources) = sources else { return Found::Open };
    match by_number(net, &sources, pauses, 0) {
        Ok((search, proven)) => Found::Routes(search.routes(proven)),
        Err(none) => none,
    }
}

/// Finds how short paths that cannot wait in a cycle can be in total, then the fewest forests that hold
/// paths as short as that; among these the least load of a channel that is found. `known` is what there
/// is already: where the search is too large, it is returned.
pub(crate) fn shortest_acyclic(net: &Net, known: Routes) -> Routes {
    if !is_small(net) {
        return known;
    }
    for excess in 0..=known.excess(net) {
        let source = |source: usize| {
            Some(Source::new(net, source, trees_within(net, source, excess, TREES_MAX)?))
        };
        let sources: Option<Vec<Source>> = net.sources().map(source).collect();
        let Some(sources) = sources else { return known };
        let mut search = Search::new(net, &sources, sources.len(), true);
        if search.run(excess) {
            let Ok((mut search, proven)) = by_number(net, &sources, true, excess) else {
                return known;
            };
            search.lightest(excess);
            return search.routes(proven);
        }
        if search.is_out_of_steps() {
            return known;
        }
    }
    known
}

fn is_small(net: &Net) -> bool {
    net.switches() <= SWITCHES_EXACT_MAX && net.trunks() <= TRUNKS_MAX
}

/// Tries one number of forests after the other; true if smaller ones were ruled out.
fn by_number<'a>(
    net: &'a Net,
    sources: &'a [Source],
    pauses: bool,
    excess: usize,
) -> Result<(Search<'a>, bool), Found> {
    let mut proven = true;
    for most in 1..=sources.len() {
        let mut search = Search::new(net, sources, most, pauses);
        if search.run(excess) {
            return Ok((search, proven));
        }
        proven &= !search.is_out_of_steps();
    }
    Err(if proven { Found::Deadlock } else { Found::Open })
}
