//! MG: a V-cycle over grids from the finest to one of two points a side; each rank has a box of each.
//!
//! After every restriction, smoothing and residual the ranks exchange the faces of their boxes, one
//! dimension after the other. On coarse grids some ranks have no points: they wait, and get their part
//! of the correction on the way up. What is computed on a grid is in proportion to its points.

use super::{COMPUTE, Class, Npb, cube};
use crate::prediction::ranks::Steps;

/// 10 for each dimension, and 1 more towards greater coordinates.
const TAG_FACES: u32 = 10;
const TAG_EXPAND: u32 = 100;

pub(super) struct Size {
    /// The finest grid has 2 to this number of points a side.
    pub(super) levels: u32,
    pub(super) iterations: u32,
}

pub(super) fn size(class: Class) -> Size {
    let (levels, iterations) = match class {
        Class::A => (8, 4),
        Class::B => (8, 20),
        Class::C => (9, 20),
        Class::D => (10, 50),
    };
    Size { levels, iterations }
}

impl Size {
    pub(super) fn operations(&self) -> f64 {
        58.0 * f64::from(self.iterations) * cube(1 << self.levels)
    }
}

/// One rank's box on the grid of one level.
#[derive(Debug, Clone, Default)]
struct Level {
    /// Points a side, with one of a neighbour on each side.
    sides: [u64; 3],
    /// Neighbours in each dimension, down and up.
    neighbours: [[u32; 2]; 3],
    /// Whether it has no points.
    is_dead: bool,
    /// Dimensions in which it gives its values to, or takes them from, neighbours that have no points on
    /// the next coarser grid.
    gives: [bool; 3],
    takes: [bool; 3],
}

/// The levels of a rank, the coarsest first; level 1 has two points a side and stands at 0.
fn levels(run: &Npb, own: u32) -> Vec<Level> {
    let count = size(run.class).levels;
    let halvings = run.ranks.trailing_zeros();
    let along = halvings / 3;
    let across = (halvings - along) / 2;
    let grid = [along, across, halvings - along - across].map(|exponent| 1_u32 << exponent);
    let place = [own % grid[0], own / grid[0] % grid[1], own / (grid[0] * grid[1])];
    let mut next = [1_u32; 3];
    let mut levels = vec![Level::default(); usize::try_from(count).expect("some ten")];
    for at in (0..levels.len()).rev() {
        let points = 2_u64 << at;
        for axis in 0..3 {
            let bound = |place: u32| u64::from(place) * points / u64::from(grid[axis]);
            let width = |first: u32| 2 + bound(first + 1) - bound(first);
            let (own_side, next_side) = (width(place[axis]), width(place[axis] + next[axis]));
            if own_side == 2 || next_side == 2 {
                next[axis] *= 2;
            }
            if let Some(finer) = levels.get_mut(at + 1) {
                finer.gives[axis] = own_side == 3 && next_side == 2;
                finer.takes[axis] = own_side == 2 && next_side == 3;
            }
            levels[at].sides[axis] = own_side;
        }
        levels[at].is_dead = levels[at].sides.contains(&2);
        levels[at].neighbours = std::array::from_fn(|axis| {
            let beside = |by: u32| {
                let mut other = place;
                other[axis] = (place[axis] + by) % grid[axis];
                other[0] + grid[0] * (other[1] + grid[1] * other[2])
            };
            let by = next[axis] % grid[axis];
            [beside(grid[axis] - by), beside(by)]
        });
    }
    levels
}

/// Exchanges the faces of one level.
fn faces(level: &Level, steps: &mut Steps) {
    if level.is_dead {
        return;
    }
    let [first, second, third] = level.sides;
    let inner = |side: u64| side - 2;
    let areas = [inner(second) * inner(third), first * inner(third), first * second];
    for ((axis, neighbours), area) in (0..).zip(level.neighbours).zip(areas) {
        let [down, up] = neighbours;
        let tag = TAG_FACES + 2 * axis;
        steps.receive(up, tag);
        steps.receive(down, tag + 1);
        steps.send(up, tag + 1, 8 * area);
        steps.send(down, tag, 8 * area);
        steps.wait("faces");
    }
}

/// Hands values to ranks that had no points on the coarser grid.
fn expand(level: &Level, steps: &mut Steps) {
    let [first, second, third] = level.sides;
    let areas = [second * third, first * third, first * second];
    for (axis, area) in (0..3_usize).zip(areas) {
        let [down, up] = level.neighbours[axis];
        let tag = TAG_EXPAND + 2 * u32::try_from(axis).expect("three dimensions");
        if level.takes[axis] {
            steps.receive(up, tag);
            steps.receive(down, tag + 1);
        }
        if level.gives[axis] {
            steps.send(up, tag + 1, 2 * 8 * area);
            steps.send(down, tag, 8 * area);
        }
        if level.takes[axis] || level.gives[axis] {
            steps.wait("faces");
        }
    }
}

pub(super) fn iteration(run: &Npb, steps: &mut Steps) {
    let levels = levels(run, steps.rank());
    let finest = levels.len() - 1;
    // On the finest grid: restriction, interpolation, two residuals, smoothing. On others one less.
    let weight = |at: usize| 8_f64.powi(-i32::try_from(finest - at).expect("some ten"));
    let parts: f64 = (0..finest).map(|at| 4.0 * weight(at)).sum::<f64>() + 5.0;
    let work = |steps: &mut Steps, at: usize, times: f64| {
        if !levels[at].is_dead {
            steps.compute(run.computing_part(times * weight(at) / parts), COMPUTE);
        }
    };
    for at in (1..=finest).rev() {
        work(steps, at, 1.0);
        faces(&levels[at - 1], steps);
    }
    work(steps, 0, 1.0);
    faces(&levels[0], steps);
    for (at, level) in levels.iter().enumerate().skip(1) {
        work(steps, at, 1.0);
        expand(level, steps);
        for _ in 0..2 {
            work(steps, at, 1.0);
            faces(level, steps);
        }
    }
    work(steps, finest, 1.0);
    faces(&levels[finest], steps);
}
