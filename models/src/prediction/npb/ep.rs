//! EP: every rank draws its share of the random numbers, then three sums.

use super::{COMPUTE, Class, Npb};
use crate::prediction::ranks::Steps;

/// Pairs of random numbers.
pub(super) fn operations(class: Class) -> f64 {
    let exponent = match class {
        Class::A => 28,
        Class::B => 30,
        Class::C => 32,
        Class::D => 36,
    };
    2_f64.powi(exponent + 1)
}

pub(super) fn iteration(run: &Npb, steps: &mut Steps) {
    steps.compute(run.computing(), COMPUTE);
    // Two sums, and how many pairs fell into each of ten rings.
    for bytes in [8, 8, 80] {
        run.collectives.all_reduce(steps, run.ranks, bytes);
    }
}
