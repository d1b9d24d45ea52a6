//! What is sent in the lab: patterns of messages, rank by rank.

use meikyo_models::prediction::npb::cg_exchange;
use meikyo_models::prediction::{RankProgram, Script, Steps};

/// What all of them wait for.
const WAIT: &str = "messages";

/// A pattern of messages of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pattern {
    /// The first rank sends to this one.
    OneWay(u32),
    /// The first rank and the last send to each other at once.
    BothWays,
    /// Every rank sends to the one so far after it.
    Shift(u32),
    /// Every rank exchanges with every other, one after the other.
    AllToAll,
    /// What each rank has goes all around.
    AllGather,
    /// The exchange of a product of matrix and vector in CG.
    Cg,
}

impl Pattern {
    /// All that are measured.
    pub(super) const ALL: [Self; 7] = [
        Self::OneWay(super::HOSTS - 1),
        Self::BothWays,
        Self::Shift(1),
        Self::Shift(2),
        Self::AllToAll,
        Self::AllGather,
        Self::Cg,
    ];

    /// What tables call it.
    pub(super) fn name(self) -> String {
        match self {
            Self::OneWay(_) => "one way".to_owned(),
            Self::BothWays => "both ways".to_owned(),
            Self::Shift(by) => format!("shift by {by}"),
            Self::AllToAll => "all-to-all, pairwise".to_owned(),
            Self::AllGather => "allgather, ring".to_owned(),
            Self::Cg => "exchange of CG".to_owned(),
        }
    }

    /// How often it is measured at least: several times where pairs of ranks exchange messages after they came from others,
    /// so that chance decides who comes first.
    pub(super) fn races(self) -> usize {
        match self {
            Self::Cg => 15,
            Self::AllToAll => 3,
            _ => 1,
        }
    }

    /// What the ranks do, with messages of so many octets.
    pub(super) fn program(self, ranks: u32, bytes: u64) -> RankProgram {
        let script = |own: u32| {
            let mut steps = Steps::of(own);
            let shift = |steps: &mut Steps, by: u32, tag: u32| {
                let (to, from) = ((own + by) % ranks, (own + ranks - by) % ranks);
                steps.exchange(from, to, tag, bytes, WAIT);
            };
            let last = ranks - 1;
            match self {
                Self::OneWay(to) if own == 0 => steps.send(to, 0, bytes),
                Self::OneWay(to) if own == to => steps.receive(0, 0),
                Self::BothWays if own == 0 => steps.exchange(last, last, 0, bytes, WAIT),
                Self::BothWays if own == last => steps.exchange(0, 0, 0, bytes, WAIT),
                Self::OneWay(_) | Self::BothWays => {}
                Self::Shift(by) => shift(&mut steps, by, 0),
                Self::AllToAll => (1..ranks).for_each(|by| shift(&mut steps, by, by)),
                Self::AllGather => (1..ranks).for_each(|tag| shift(&mut steps, 1, tag)),
                Self::Cg => cg_exchange(ranks, bytes, &mut steps),
            }
            if let Self::OneWay(_) = self {
                steps.wait(WAIT);
            }
            let mut script = Script::default();
            script.repeat(1, steps.finish());
            script
        };
        RankProgram::new((0..ranks).map(script).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use meikyo_models::prediction::Op;

    use super::*;

    /// How many messages each pair of ranks exchanges, all of which have a receive.
    fn messages(pattern: Pattern, ranks: u32) -> BTreeMap<(u32, u32), usize> {
        let program = pattern.program(ranks, 100);
        let (mut sent, mut received) = (BTreeMap::new(), BTreeMap::new());
        for own in 0..ranks {
            for op in program.script(usize::try_from(own).unwrap()).ops() {
                match op {
                    Op::Send { to, tag, bytes } => {
                        assert_eq!(bytes, 100);
                        *sent.entry((own, to, tag)).or_insert(0) += 1;
                    }
                    Op::Receive { from, tag } => {
                        *received.entry((from, own, tag)).or_insert(0) += 1
                    }
                    _ => {}
                }
            }
        }
        assert_eq!(sent, received, "{pattern:?}");
        let mut pairs = BTreeMap::new();
        sent.into_iter()
            .for_each(|((from, to, _), count)| *pairs.entry((from, to)).or_insert(0) += count);
        pairs
    }

    #[test]
    fn who_sends_to_whom_is_what_the_pattern_says() {
        let all =
            |ranks: u32| (0..ranks).flat_map(move |one| (0..ranks).map(move |other| (one, other)));
        assert_eq!(messages(Pattern::OneWay(3), 8), [((0, 3), 1)].into());
        assert_eq!(messages(Pattern::BothWays, 8), [((0, 7), 1), ((7, 0), 1)].into());
        let shifted = (0..8).map(|own| ((own, (own + 2) % 8), 1)).collect();
        assert_eq!(messages(Pattern::Shift(2), 8), shifted);
        let others = all(6).filter(|(one, other)| one != other).map(|pair| (pair, 1)).collect();
        assert_eq!(messages(Pattern::AllToAll, 6), others);
        let around = (0..8).map(|own| ((own, (own + 1) % 8), 7)).collect();
        assert_eq!(messages(Pattern::AllGather, 8), around);
        // Eight ranks are two rows of four: partners at half and a quarter of a row, then the transposed place, of
        // which ranks 0, 1, 6 and 7 are their own (NPB 3.3, `cg.f`, `setup_submatrix_info`).
        let mut cg = BTreeMap::new();
        for (one, other) in all(8) {
            let same_row = one / 4 == other / 4;
            let summed = same_row && (one ^ other == 1 || one ^ other == 2);
            let swapped =
                [(2, 4), (3, 5)].iter().any(|pair| *pair == (one.min(other), one.max(other)));
            if summed || swapped {
                cg.insert((one, other), 1);
            }
        }
        assert_eq!(messages(Pattern::Cg, 8), cg);
    }
}
