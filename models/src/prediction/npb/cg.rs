//! CG: products of a sparse matrix with a vector, the ranks in a grid.
//!
//! In each of 26 products of an iteration the parts are summed along a row of the grid, by exchanges at
//! half, then at a quarter of the row and so on, and the result goes to the rank in the transposed place. Each
//! of 25 steps of the conjugate gradient has two sums of one number along the row, too. The grid has as many
//! columns as rows, or twice as many.

use super::{COMPUTE, Class, Npb};
use crate::completions::count_f64;
use crate::prediction::ranks::Steps;

/// Steps of the conjugate gradient in an iteration, and products of matrix and vector.
const INNER: u32 = 25;
const PRODUCTS: u32 = INNER + 1;

const TAG_SUM: u32 = 1;
const TAG_TRANSPOSE: u32 = 2;
const TAG_DOT: u32 = 3;

pub(super) struct Size {
    order: u64,
    nonzeros: u64,
    pub(super) iterations: u32,
}

pub(super) fn size(class: Class) -> Size {
    let (order, nonzeros, iterations) = match class {
        Class::A => (14_000, 11, 15),
        Class::B => (75_000, 13, 75),
        Class::C => (150_000, 15, 75),
        Class::D => (1_500_000, 21, 100),
    };
    Size { order, nonzeros, iterations }
}

impl Size {
    pub(super) fn operations(&self) -> f64 {
        let row = count_f64(self.nonzeros * (self.nonzeros + 1));
        let each = 3.0 + row + f64::from(INNER) * (5.0 + row) + 3.0;
        2.0 * f64::from(self.iterations) * count_f64(self.order) * each
    }
}

/// The grid of ranks, and one rank's place in it.
struct Grid {
    rows: u32,
    columns: u32,
    own: u32,
}

impl Grid {
    fn of(ranks: u32, own: u32) -> Self {
        let columns = 1 << ranks.trailing_zeros().div_ceil(2);
        Self { rows: ranks / columns, columns, own }
    }

    /// Whom it exchanges parts of a sum with, in the order of the program: the nearest first.
    fn partners(&self) -> impl Iterator<Item = u32> + Clone {
        let (own, columns) = (self.own, self.columns);
        let halvings = columns.trailing_zeros();
        (0..halvings).map(move |step| {
            let group = 2 << step;
            let (row, column) = (own / columns, own % columns);
            row * columns + (column + group / 2) % group + column / group * group
        })
    }

    /// The exchange of a product: parts of sums, then a part of the vector, with messages of these sizes.
    fn exchange(&self, [sum, transposed]: [u64; 2], steps: &mut Steps) {
        for partner in self.partners() {
            steps.exchange(partner, partner, TAG_SUM, sum, "sums along rows");
        }
        let other = self.transposed();
        steps.exchange(other, other, TAG_TRANSPOSE, transposed, "transposition");
    }

    /// Who has the same part of the vector as a column that this rank has as a row.
    fn transposed(&self) -> u32 {
        let (rows, own) = (self.rows, self.own);
        if self.rows == self.columns {
            own % rows * rows + own / rows
        } else {
            2 * (own / 2 % rows * rows + own / 2 / rows) + own % 2
        }
    }
}

/// The exchange of one product of matrix and vector, with all messages of one size, by itself.
///
/// # Panics
/// If the number of ranks is no power of two.
pub fn exchange(ranks: u32, bytes: u64, steps: &mut Steps) {
    assert!(ranks.is_power_of_two(), "CG runs on a power of two of ranks, not {ranks}");
    Grid::of(ranks, steps.rank()).exchange([bytes; 2], steps);
}

pub(super) fn iteration(run: &Npb, steps: &mut Steps) {
    let grid = Grid::of(run.ranks, steps.rank());
    let order = size(run.class).order;
    let of_row = order / u64::from(grid.rows);
    // Where there are two columns for each row, both halves of a row's part are summed apart.
    let part = if grid.rows == grid.columns { of_row } else { of_row / 2 };
    let of_column = order / u64::from(grid.columns);
    for product in 0..PRODUCTS {
        steps.compute(run.computing_part(1.0 / f64::from(PRODUCTS)), COMPUTE);
        grid.exchange([8 * part, 8 * of_column], steps);
        let dots = if product < INNER { 2 } else { 1 };
        for _ in 0..dots {
            for partner in grid.partners() {
                steps.exchange(partner, partner, TAG_DOT, 8, "scalar products");
            }
        }
    }
}
