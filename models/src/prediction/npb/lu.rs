//! LU: two sweeps an iteration, each a wave front over the planes of the grid, and faces for the right-hand
//! side.
//!
//! The ranks share two dimensions. In a sweep every rank waits for its neighbours before it works on a
//! plane, and hands its edges on afterwards: two messages of a few hundred numbers a plane.

use super::{COMPUTE, Class, Npb, cube};
use crate::completions::count_f64;
use crate::prediction::ranks::Steps;

const TAG_SWEEP: u32 = 1;
const TAG_FACES: u32 = 2;

/// Numbers at a point of the grid.
const VALUES: u64 = 5;

pub(super) struct Size {
    points: u64,
    pub(super) iterations: u32,
}

pub(super) fn size(class: Class) -> Size {
    let (points, iterations) = match class {
        Class::A => (64, 250),
        Class::B => (102, 250),
        Class::C => (162, 250),
        Class::D => (408, 300),
    };
    Size { points, iterations }
}

impl Size {
    pub(super) fn operations(&self) -> f64 {
        let side = count_f64(self.points);
        let each =
            1_984.77 * cube(self.points) - 10_923.3 * side * side + 27_770.9 * side - 144_010.0;
        f64::from(self.iterations) * each
    }
}

/// Neighbours of a rank, where it has them, and the sides of its column of points.
struct Place {
    north: Option<u32>,
    south: Option<u32>,
    west: Option<u32>,
    east: Option<u32>,
    sides: [u64; 2],
}

fn place(run: &Npb, own: u32) -> Place {
    let rows = 1_u32 << run.ranks.trailing_zeros().div_ceil(2);
    let columns = run.ranks / rows;
    let (row, column) = (own % rows, own / rows);
    let points = size(run.class).points;
    // The first ones have one point more where it cannot be divided.
    let side = |at: u32, of: u32| {
        points / u64::from(of) + u64::from(u64::from(at) < points % u64::from(of))
    };
    Place {
        north: (row > 0).then(|| own - 1),
        south: (row + 1 < rows).then(|| own + 1),
        west: (column > 0).then(|| own - rows),
        east: (column + 1 < columns).then(|| own + rows),
        sides: [side(row, rows), side(column, columns)],
    }
}

pub(super) fn iteration(run: &Npb, steps: &mut Steps) {
    let place = place(run, steps.rank());
    let planes = size(run.class).points - 2;
    // Two thirds of the operations are in the sweeps.
    let of_plane = run.computing_part(2.0 / 3.0 / (2.0 * count_f64(planes)));
    let [along, across] = place.sides;
    let sweep = |steps: &mut Steps, from: [Option<u32>; 2], to: [Option<u32>; 2]| {
        for _ in 0..planes {
            from.into_iter().flatten().for_each(|rank| steps.receive(rank, TAG_SWEEP));
            steps.wait("sweeps");
            steps.compute(of_plane, COMPUTE);
            for (rank, edge) in to.into_iter().zip([across, along]) {
                if let Some(rank) = rank {
                    steps.send(rank, TAG_SWEEP, 8 * VALUES * edge);
                }
            }
            steps.wait("sweeps");
        }
    };
    sweep(steps, [place.north, place.west], [place.south, place.east]);
    sweep(steps, [place.south, place.east], [place.north, place.west]);
    steps.compute(run.computing_part(1.0 / 3.0), COMPUTE);
    let height = planes + 2;
    for (neighbours, edge) in
        [([place.north, place.south], across), ([place.west, place.east], along)]
    {
        neighbours.into_iter().flatten().for_each(|rank| steps.receive(rank, TAG_FACES));
        // Two layers of points.
        let bytes = 8 * 2 * VALUES * edge * height;
        neighbours.into_iter().flatten().for_each(|rank| steps.send(rank, TAG_FACES, bytes));
        steps.wait("faces");
    }
}
