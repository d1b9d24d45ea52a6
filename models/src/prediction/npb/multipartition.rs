//! BT and SP: systems of equations along each dimension, the cube divided so that every rank has a cell
//! in every layer of every dimension.
//!
//! An iteration exchanges faces with six neighbours, then solves along each dimension: a rank works on one cell
//! after the other and hands what the next one needs to its successor, forward and back. Sizes of
//! messages are those of the largest cell.

use super::{COMPUTE, Class, Npb, cube};
use crate::completions::count_f64;
use crate::prediction::ranks::Steps;

const TAG_FACES: u32 = 10;
const TAG_FORWARD: u32 = 20;
const TAG_BACK: u32 = 30;

/// Numbers at a point of the grid.
const VALUES: u64 = 5;

/// One of the two benchmarks.
pub(super) struct Multipartition {
    /// Numbers that a point of a face takes on the way forward, and back.
    forward: u64,
    back: u64,
    /// Operations of an iteration, by powers of the side, the third power first.
    operations: [f64; 4],
    sizes: [Size; 4],
}

#[derive(Clone, Copy)]
pub(super) struct Size {
    points: u64,
    pub(super) iterations: u32,
}

const fn of(points: u64, iterations: u32) -> Size {
    Size { points, iterations }
}

pub(super) const BT: Multipartition = Multipartition {
    forward: VALUES * VALUES + VALUES,
    back: VALUES,
    operations: [3_478.8, -17_655.7, 28_023.7, 0.0],
    sizes: [of(64, 200), of(102, 200), of(162, 200), of(408, 250)],
};

pub(super) const SP: Multipartition = Multipartition {
    forward: 22,
    back: 10,
    operations: [881.174, -4_683.91, 11_484.5, -19_272.4],
    sizes: [of(64, 400), of(102, 400), of(162, 400), of(408, 500)],
};

impl Multipartition {
    pub(super) fn size(&self, class: Class) -> Size {
        let [a, b, c, d] = self.sizes;
        match class {
            Class::A => a,
            Class::B => b,
            Class::C => c,
            Class::D => d,
        }
    }

    pub(super) fn operations(&self, class: Class) -> f64 {
        let Size { points, iterations } = self.size(class);
        let side = count_f64(points);
        let [third, second, first, constant] = self.operations;
        f64::from(iterations)
            * (third * cube(points) + second * side * side + first * side + constant)
    }

    pub(super) fn iteration(&self, run: &Npb, steps: &mut Steps) {
        let side = run.ranks.isqrt();
        let cells = u64::from(side);
        let points = self.size(run.class).points;
        let neighbours = neighbours(side, steps.rank());
        if side > 1 {
            // Every cell but those at one end of the cube, two layers of points.
            let cell = points / cells;
            let bytes = 8 * VALUES * 2 * cell * cell * (cells - 1);
            for (tag, [before, after]) in (TAG_FACES..).step_by(2).zip(neighbours) {
                steps.receive(after, tag);
                steps.receive(before, tag + 1);
                steps.send(after, tag + 1, bytes);
                steps.send(before, tag, bytes);
            }
            steps.wait("faces");
        }
        // A third of the operations is in the right-hand side.
        steps.compute(run.computing_part(1.0 / 3.0), COMPUTE);
        let of_cell = run.computing_part(2.0 / 3.0 / count_f64(3 * 2 * cells));
        let face = points.div_ceil(cells).pow(2);
        for (axis, [before, after]) in (0..).zip(neighbours) {
            let mut sweep = |from, to, tag, bytes| {
                for cell in 0..side {
                    if cell > 0 {
                        // What was sent before goes on meanwhile, else all would wait for each other.
                        steps.receive(from, tag);
                        steps.wait("solving");
                    }
                    steps.compute(of_cell, COMPUTE);
                    if cell + 1 < side {
                        steps.send(to, tag, bytes);
                    }
                }
            };
            sweep(before, after, TAG_FORWARD + axis, 8 * self.forward * face);
            sweep(after, before, TAG_BACK + axis, 8 * self.back * face);
        }
    }
}

/// For each dimension, who has the neighbouring cells on both sides.
fn neighbours(side: u32, own: u32) -> [[u32; 2]; 3] {
    let (column, row) = (own % side, own / side);
    let rank = |column: u32, row: u32| column % side + side * (row % side);
    let (left, right, below, above) = (column + side - 1, column + 1, row + side - 1, row + 1);
    [
        [rank(left, row), rank(right, row)],
        [rank(column, below), rank(column, above)],
        [rank(right, below), rank(left, above)],
    ]
}
