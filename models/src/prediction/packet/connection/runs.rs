//! Segments that have arrived before others that should have come first, as runs from and to.

use meikyo_undo::{Log, Map};

/// Adds a run to others, none of which touch each other, and gives the run that it is in then.
pub(super) fn add(runs: &mut Map<u32, u32>, run: [u32; 2], log: &mut impl Log) -> [u32; 2] {
    let [mut from, mut to] = run;
    while let Some((begin, end)) = last_up_to(runs, to).filter(|&(_, end)| end >= from) {
        runs.remove(log, &begin);
        (from, to) = (from.min(begin), to.max(end));
    }
    runs.insert(log, from, to);
    [from, to]
}

/// Removes what is below `limit`.
pub(super) fn forget_below(runs: &mut Map<u32, u32>, limit: u32, log: &mut impl Log) {
    while let Some((begin, end)) = first(runs).filter(|(begin, _)| *begin < limit) {
        runs.remove(log, &begin);
        if end > limit {
            runs.insert(log, limit, end);
        }
    }
}

/// Where the last run ends.
pub(super) fn end(runs: &Map<u32, u32>) -> Option<u32> {
    runs.iter().next_back().map(|(_, end)| *end)
}

/// How many segments of a range are in runs.
pub(super) fn count(runs: &Map<u32, u32>, from: u32, to: u32) -> u32 {
    if runs.is_empty() {
        return 0;
    }
    let within = |(begin, end): (&u32, &u32)| (*end).min(to).saturating_sub((*begin).max(from));
    runs.range(..to).map(within).sum()
}

/// The first segment from `from` on that is in no run.
pub(super) fn gap(runs: &Map<u32, u32>, from: u32) -> u32 {
    let run = last_up_to(runs, from).filter(|&(_, end)| end > from);
    run.map_or(from, |(_, end)| end)
}

fn first(runs: &Map<u32, u32>) -> Option<(u32, u32)> {
    runs.iter().next().map(|(begin, end)| (*begin, *end))
}

fn last_up_to(runs: &Map<u32, u32>, at: u32) -> Option<(u32, u32)> {
    runs.range(..=at).next_back().map(|(begin, end)| (*begin, *end))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use meikyo_undo::Forget;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn runs_are_a_set_of_segments(
            added in prop::collection::vec((0..60_u32, 1..9_u32), 0..20),
            limit in 0..70_u32,
            (from, to) in (0..70_u32, 0..70_u32),
        ) {
            let (mut runs, mut all) = (Map::default(), BTreeSet::new());
            for (begin, length) in added {
                all.extend(begin..begin + length);
                let [first, last] = add(&mut runs, [begin, begin + length], &mut Forget);
                prop_assert!(first <= begin && (first..last).all(|at| all.contains(&at)));
                prop_assert!(!all.contains(&last) && (first == 0 || !all.contains(&(first - 1))));
            }
            forget_below(&mut runs, limit, &mut Forget);
            all.retain(|at| *at >= limit);
            let told: Vec<u32> = runs.iter().flat_map(|(begin, end)| *begin..*end).collect();
            prop_assert_eq!(told, all.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(end(&runs), all.last().map(|last| last + 1));
            let within = (from..to.max(from)).filter(|at| all.contains(at)).count();
            prop_assert_eq!(usize::try_from(count(&runs, from, to.max(from))).unwrap(), within);
            prop_assert_eq!(Some(gap(&runs, from)), (from..).find(|at| !all.contains(at)));
        }
    }
}
