//! Numbers of which each is about as far from the one before as all are: times, and counters.

use super::magnitudes::{self, bits_of};
use super::met::hash_of;
use super::sections::{SectionWriter, zigzag};

/// Differences that the usual one is found among, and that are looked at before all are.
const LOOKED_AT: usize = 128;

/// Differences that are mostly alike.
pub(super) struct Steps {
    /// The usual difference.
    step: u64,
    /// What all differences are apart from it by a multiple of: 1,000 where a clock of microseconds
    /// is kept in nanoseconds.
    unit: u64,
}

impl Steps {
    /// The steps from value to value; the usual one is the median of some of them.
    pub(super) fn of(values: &[u64]) -> Self {
        Self::among(some_differences(values), differences(values))
    }

    /// The median of some differences, and the greatest unit of others.
    fn among(some: impl Iterator<Item = u64>, all: impl Iterator<Item = u64>) -> Self {
        let mut steps: Vec<i64> = some.map(u64::cast_signed).collect();
        let middle = steps.len() / 2;
        let step = if steps.is_empty() { 0 } else { *steps.select_nth_unstable(middle).1 };
        let step = step.cast_unsigned();
        let mut unit = 0;
        for apart in all.map(|difference| difference.wrapping_sub(step)) {
            unit = greatest_divisor(unit, apart.cast_signed().unsigned_abs());
            if unit == 1 {
                break;
            }
        }
        Self { step, unit: unit.max(1) }
    }

    /// Whether steps may take fewer bits than `most`, by some of the differences; an estimate of up to twice as many
    /// is still tried. Addresses seldom do, and are many.
    pub(super) fn may_take_less(values: &[u64], most: u64) -> bool {
        let some = || some_differences(values);
        let bits: u64 = Self::among(some(), some()).apart(some()).map(bits_of).sum();
        bits * looked_at_every(values) as u64 / 2 < most
    }

    /// About how many bits the steps of these values take.
    pub(super) fn bits(&self, values: &[u64]) -> u64 {
        self.apart(differences(values)).map(bits_of).sum()
    }

    /// Appends the first value, the usual step, and how far each one is from it.
    pub(super) fn put(&self, values: &[u64], sections: &mut SectionWriter, out: &mut Vec<u8>) {
        for number in [values[0], self.step, self.unit] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        magnitudes::put(self.apart(differences(values)), sections, out);
    }

    /// How many units each difference is apart from the usual one.
    fn apart(&self, differences: impl Iterator<Item = u64>) -> impl Iterator<Item = u64> {
        let (step, unit) = (self.step, self.unit);
        differences.map(move |difference| {
            let apart = difference.wrapping_sub(step).cast_signed();
            let apart_by = apart.unsigned_abs();
            let units = if unit == 1 { apart_by } else { apart_by / unit }.cast_signed();
            zigzag(if apart < 0 { units.wrapping_neg() } else { units }.cast_unsigned())
        })
    }
}

fn differences(values: &[u64]) -> impl Iterator<Item = u64> {
    values.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]))
}

/// One of every so many differences, at uneven distances: values may repeat themselves at even ones.
fn some_differences(values: &[u64]) -> impl Iterator<Item = u64> {
    let every = looked_at_every(values);
    let places = (0..values.len().div_ceil(every)).map(move |part| {
        let within = usize::try_from(hash_of(part as u64) >> 32).expect("32 bits") % every;
        part * every + within
    });
    places.filter_map(|at| Some(values.get(at + 1)?.wrapping_sub(*values.get(at)?)))
}

fn looked_at_every(values: &[u64]) -> usize {
    values.len().div_ceil(LOOKED_AT).max(1)
}

/// The greatest common divisor (Euclid); that of a number and 0 is the number.
fn greatest_divisor(mut one: u64, mut other: u64) -> u64 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}
