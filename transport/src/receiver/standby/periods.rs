//! Whose rows of which time are taken.

use std::collections::BTreeMap;

/// Periods that are told apart; of more the oldest are given to who has the one behind them.
const PERIODS_MAX: usize = 4_096;

/// To whom each instant belongs: nobody before the first turn, exactly one collector from then on.
#[derive(Debug, Default)]
pub(super) struct Periods(BTreeMap<i64, String>);

impl Periods {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Who is active: the owner of what is newest.
    pub(super) fn active(&self) -> Option<&str> {
        self.0.last_key_value().map(|(_, owner)| &**owner)
    }

    /// The newest period, which is the active one's: since when, and whose.
    pub(super) fn newest(&self) -> Option<(i64, &str)> {
        self.0.last_key_value().map(|(&from, owner)| (from, &**owner))
    }

    /// The owner of an instant; none before the first turn.
    pub(super) fn owner(&self, at: i64) -> Option<&str> {
        self.0.range(..=at).next_back().map(|(_, owner)| &**owner)
    }

    /// The parts of a span, with their owners; all of it belongs to nobody before the first turn.
    pub(super) fn parts(&self, (from, until): (i64, i64)) -> Vec<(i64, i64, &str)> {
        let mut parts = Vec::new();
        let mut end = until;
        for (&begin, owner) in self.0.range(..=until).rev() {
            parts.push((begin.max(from), end, &**owner));
            if begin <= from {
                break;
            }
            end = begin - 1;
        }
        parts
    }

    /// The period of one owner around an instant.
    pub(super) fn around(&self, at: i64) -> (i64, i64) {
        let from = self.0.range(..=at).next_back().map_or(i64::MIN, |(&begin, _)| begin);
        let behind = at.checked_add(1).and_then(|next| self.0.range(next..).next());
        (from, behind.map_or(i64::MAX, |(&begin, _)| begin - 1))
    }

    /// Gives a span to a collector, whoever had it.
    pub(super) fn give(&mut self, (from, until): (i64, i64), sender: &str) {
        let next = until.checked_add(1);
        let behind = next.and_then(|next| self.owner(next).map(str::to_owned));
        let inside: Vec<i64> = self.0.range(from..=until).map(|(&begin, _)| begin).collect();
        inside.iter().for_each(|begin| drop(self.0.remove(begin)));
        self.0.insert(from, sender.to_owned());
        if let (Some(next), Some(owner)) = (next, behind) {
            self.0.entry(next).or_insert(owner);
        }
        if self.0.len() > PERIODS_MAX
            && let Some((first, _)) = self.0.pop_first()
            && let Some((_, owner)) = self.0.pop_first()
        {
            self.0.insert(first, owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use meikyo_worlds::Random;

    use super::*;

    #[test]
    fn every_instant_belongs_to_who_was_given_it_last() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let mut below = |most: u64| random.below(most).cast_signed();
            let mut periods = Periods::default();
            periods.give((i64::MIN, i64::MAX), "first");
            let mut owners = vec!["first".to_owned(); 100];
            for _ in 0..below(12) {
                let (from, who) = (below(100), format!("c{}", below(3)));
                let until = (from + below(30)).min(99);
                periods.give((from, until), &who);
                (from..=until).for_each(|at| owners[usize::try_from(at).unwrap()].clone_from(&who));
            }
            for (at, owner) in (0_i64..).zip(&owners) {
                assert_eq!(periods.owner(at), Some(&**owner), "seed {seed}");
                let (begin, end) = periods.around(at);
                assert!(begin <= at && at <= end, "seed {seed}");
                assert_eq!([begin, end].map(|at| periods.owner(at)), [Some(&**owner); 2]);
            }
            let from = below(100);
            let until = from + below(30);
            let mut covered: Vec<i64> = Vec::new();
            for (begin, end, owner) in periods.parts((from, until)) {
                assert!((begin..=end).all(|at| periods.owner(at) == Some(owner)), "seed {seed}");
                covered.extend(begin..=end);
            }
            covered.sort_unstable();
            assert_eq!(covered, (from..=until).collect::<Vec<_>>(), "seed {seed}");
        }
    }

    #[test]
    fn before_the_first_turn_nobody_owns_anything() {
        let mut periods = Periods::default();
        assert!(periods.is_empty() && periods.parts((0, 9)).is_empty());
        periods.give((5, i64::MAX), "a");
        assert_eq!(
            (periods.owner(4), periods.owner(5), periods.active()),
            (None, Some("a"), Some("a"))
        );
        assert_eq!(periods.parts((0, 9)), [(5, 9, "a")]);
    }
}
