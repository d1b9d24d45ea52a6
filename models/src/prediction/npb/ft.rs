//! FT: one inverse transform an iteration, whose data are transposed between all ranks once.
//!
//! Modelled is the division into planes, which the benchmark takes where there is a plane for each rank.

use super::{COMPUTE, Class, Npb};
use crate::completions::count_f64;
use crate::prediction::collective;
use crate::prediction::ranks::Steps;

/// A complex number.
const POINT_BYTES: u64 = 16;

pub(super) struct Size {
    sides: [u64; 3],
    pub(super) iterations: u32,
}

pub(super) fn size(class: Class) -> Size {
    let (sides, iterations) = match class {
        Class::A => ([256, 256, 128], 6),
        Class::B => ([512, 256, 256], 20),
        Class::C => ([512, 512, 512], 20),
        Class::D => ([2048, 1024, 1024], 25),
    };
    Size { sides, iterations }
}

impl Size {
    fn points(&self) -> u64 {
        self.sides.iter().product()
    }

    /// How many ranks can have a plane of their own.
    pub(super) fn planes(&self) -> u32 {
        let [_, along, across] = self.sides;
        u32::try_from(along.min(across)).expect("some thousands")
    }

    pub(super) fn operations(&self) -> f64 {
        let points = count_f64(self.points());
        let each = 5.235_18 + 7.211_13 * points.ln();
        let first = 14.815_7 + 7.196_41 * points.ln();
        points * (first + each * f64::from(self.iterations))
    }
}

pub(super) fn iteration(run: &Npb, steps: &mut Steps) {
    let ranks = u64::from(run.ranks);
    steps.compute(run.computing_part(2.0 / 3.0), COMPUTE);
    let bytes = POINT_BYTES * size(run.class).points() / (ranks * ranks);
    run.collectives.all_to_all(steps, run.ranks, bytes);
    steps.compute(run.computing_part(1.0 / 3.0), COMPUTE);
    collective::reduce(steps, run.ranks, POINT_BYTES);
}
