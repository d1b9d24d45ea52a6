//! IS: keys are counted by bucket, and every rank gets the keys of its buckets.
//!
//! Keys are sums of four random numbers and buckets are dealt so that ranks get equally many, so that
//! every pair exchanges the same amount here; the real amounts differ by some percent.

use super::{COMPUTE, Class, Npb};
use crate::completions::count_f64;
use crate::prediction::ranks::Steps;

pub(super) const ITERATIONS: u32 = 10;

/// Buckets, and keys that are looked up to check the result: 4 octets each are summed over all ranks.
const COUNTED: u64 = 1_024 + 5;

fn keys(class: Class) -> u64 {
    match class {
        Class::A => 1 << 23,
        Class::B => 1 << 25,
        Class::C => 1 << 27,
        Class::D => 1 << 31,
    }
}

/// Keys that are ranked.
pub(super) fn operations(class: Class) -> f64 {
    f64::from(ITERATIONS) * count_f64(keys(class))
}

pub(super) fn iteration(run: &Npb, steps: &mut Steps) {
    let ranks = u64::from(run.ranks);
    steps.compute(run.computing_part(0.5), COMPUTE);
    run.collectives.all_reduce(steps, run.ranks, 4 * COUNTED);
    run.collectives.all_to_all(steps, run.ranks, 4);
    run.collectives.all_to_all_uneven(steps, run.ranks, 4 * keys(run.class) / (ranks * ranks));
    steps.compute(run.computing_part(0.5), COMPUTE);
}
