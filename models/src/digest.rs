//! One number for a result, so that two runs can be compared at a glance.

use meikyo_sim::{StatisticResult, Tally};

/// A chain of words, in their order. It is no protection against somebody who wants two results to
/// look the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Digest(u64);

impl Digest {
    /// Adds 64 bits; where they stand among the others matters.
    pub(crate) fn word(&mut self, word: u64) {
        let bits = (self.0.rotate_left(25) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = bits ^ (bits >> 29);
    }

    /// Adds bytes, and how many they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
        self.word(u64::try_from(bytes.len()).expect("a length fits into 64 bits"));
    }

    /// Adds every tally of every statistic, floating point by its bits.
    pub(crate) fn statistics(&mut self, statistics: &[StatisticResult]) {
        for statistic in statistics {
            self.bytes(statistic.name.as_bytes());
            for tally in &statistic.per_lp {
                let Tally { count, sum, deviations_squared, least, greatest } = *tally;
                self.word(count);
                for value in [sum, deviations_squared, least, greatest] {
                    self.word(value.to_bits());
                }
            }
        }
    }

    /// What has been added so far, as one number.
    pub(crate) fn get(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(of: &[&[u8]]) -> u64 {
        let mut digest = Digest::default();
        of.iter().for_each(|bytes| digest.bytes(bytes));
        digest.get()
    }

    #[test]
    fn order_and_length_count() {
        let texts: [&[&[u8]]; 5] = [&[b"ab"], &[b"ba"], &[b"a", b"b"], &[b"ab\0"], &[]];
        for (at, one) in texts.iter().enumerate() {
            for other in &texts[..at] {
                assert_ne!(digest(one), digest(other), "{one:?} {other:?}");
            }
        }
    }
}
