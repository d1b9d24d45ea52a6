//! Dimension order: a frame goes along one dimension until it is right there, then along the next.
//!
//! On lines and complete lines that never deadlocks. On rings it depends on where frames may go round:
//!
//! - [`Rings::Shorter`]: the shorter way. Up to 4 switches no channel of a ring then waits for a third
//!   one and closes a cycle; from 5 on every one does. Where both ways are as long, neighbours 2n and
//!   2n + 1 of an even ring both leave out the same link, so that they share a tree.
//! - [`Rings::Seam`]: over one link of the ring, its seam, go only frames that begin at its ends (rings
//!   of up to 4 keep the shorter way). Both directions are then lines: no frame goes through the seam's
//!   one end in the one direction, nor through its other end in the other. Ends go the shorter way.
//!   Sources share two trees: that which leaves out the seam and, for its ends, that which leaves out
//!   the link opposite; on an odd ring each end has its own. The seams of parallel rings are at
//!   different places, so that tables fill evenly.
//!
//! The trees from one line of the dimension that is routed first differ in that line only, so the number
//! of trees is that of the lines times the trees of a line: the product of all sizes but that one for a
//! mesh.

use super::{Net, Routes, Walk};

/// A grid of switches; the first coordinate runs fastest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grid {
    pub(crate) sizes: Vec<usize>,
    pub(crate) lines: Lines,
}

/// What joins the switches of one line of a grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lines {
    /// Each to the next.
    Open,
    /// Each to the next, the last to the first where there are three or more.
    Ring,
    /// Each to all others.
    Complete,
}

/// Which way frames go round a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rings {
    /// The way round that has fewer hops.
    Shorter,
    /// The one that avoids the seam, but from its ends.
    Seam,
}

/// The longest ring on which the shorter way is free of deadlock.
pub(crate) const RING_SHORTER_MAX: usize = 4;

impl Grid {
    pub(super) fn is_ring(&self, dimension: usize) -> bool {
        self.lines == Lines::Ring && self.sizes[dimension] > 2
    }

    /// Whether going the shorter way round rings never deadlocks.
    pub(crate) fn shorter_is_safe(&self) -> bool {
        (0..self.sizes.len()).all(|at| !self.is_ring(at) || self.sizes[at] <= RING_SHORTER_MAX)
    }

    pub(super) fn stride(&self, dimension: usize) -> usize {
        self.sizes[..dimension].iter().product()
    }

    pub(super) fn coordinate(&self, switch: usize, dimension: usize) -> usize {
        switch / self.stride(dimension) % self.sizes[dimension]
    }

    /// How many trees the sources of one line have, if it is routed first.
    fn trees(&self, dimension: usize, rings: Rings) -> usize {
        let size = self.sizes[dimension];
        match self.lines {
            _ if size == 2 => 1,
            Lines::Open => 1,
            Lines::Complete => size,
            Lines::Ring if rings == Rings::Seam && size > RING_SHORTER_MAX => 2 + size % 2,
            Lines::Ring if size.is_multiple_of(2) => size / 2,
            Lines::Ring => size,
        }
    }

    /// The link of a ring that paths from coordinate `at` leave out: that from the coordinate given to
    /// the next. `seam` is the coordinate from which the seam goes to the next.
    fn left_out(&self, dimension: usize, at: usize, seam: usize, rings: Rings) -> usize {
        let size = self.sizes[dimension];
        let has_seam = rings == Rings::Seam && size > RING_SHORTER_MAX;
        if has_seam && (at + size - seam) % size > 1 {
            return seam;
        }
        let opposite = match size.is_multiple_of(2) {
            true if has_seam => seam,
            true => at / 2 * 2,
            false => at,
        };
        (opposite + size / 2) % size
    }

    /// Adds the line of `from` in a dimension to the walk; `None` if a link is missing.
    fn walk_line(
        &self,
        net: &Net,
        walk: &mut Walk,
        from: usize,
        dimension: usize,
        rings: Rings,
    ) -> Option<()> {
        let (size, stride) = (self.sizes[dimension], self.stride(dimension));
        let at = self.coordinate(from, dimension);
        let switch = |coordinate: usize| from - at * stride + coordinate * stride;
        let mut go = |one: usize, other: usize| {
            net.channel(switch(one), switch(other)).map(|channel| walk.reach(net, channel))
        };
        if self.lines == Lines::Complete {
            return (0..size).filter(|&other| other != at).try_for_each(|other| go(at, other));
        }
        let (mut up, mut down) = (size - 1 - at, at);
        if self.is_ring(dimension) {
            let others = 0..self.sizes.len();
            let sum: usize = others
                .filter(|&other| other != dimension)
                .map(|other| self.coordinate(from, other))
                .sum();
            let last = self.left_out(dimension, at, sum % size, rings);
            up = (last + size - at) % size;
            down = size - 1 - up;
        }
        (0..up).try_for_each(|step| go((at + step) % size, (at + step + 1) % size))?;
        (0..down).try_for_each(|step| go((at + size - step) % size, (at + size - step - 1) % size))
    }

    fn tree(&self, net: &Net, source: usize, order: &[usize], rings: Rings) -> Option<Walk> {
        let mut walk = Walk::begin(net, source);
        for &dimension in order {
            for place in 0..walk.order.len() {
                let from = walk.order[place];
                self.walk_line(net, &mut walk, from, dimension, rings)?;
            }
        }
        Some(walk)
    }
}

/// The order of dimensions that makes the fewest trees when the dimension that is routed first is all
/// that counts; the others longest first.
pub(crate) fn best_order(grid: &Grid, rings: Rings) -> Vec<usize> {
    let mut order: Vec<usize> = (0..grid.sizes.len()).collect();
    order.sort_by_key(|&dimension| std::cmp::Reverse(grid.sizes[dimension]));
    let first = order.iter().copied().min_by(|&one, &other| {
        // Trees for each switch of the line, compared as fractions.
        let trees = |at| grid.trees(at, rings);
        (trees(one) * grid.sizes[other]).cmp(&(trees(other) * grid.sizes[one]))
    });
    if let Some(first) = first {
        order.retain(|&dimension| dimension != first);
        order.insert(0, first);
    }
    order
}

/// The trees of a grid, its dimensions in this order; `None` if the wiring lacks a link of the grid.
pub(crate) fn dimension_order(
    net: &Net,
    grid: &Grid,
    order: &[usize],
    rings: Rings,
) -> Option<Routes> {
    let trees = net
        .sources()
        .map(|source| Some((source, grid.tree(net, source, order, rings)?.needed(net))))
        .collect::<Option<Vec<_>>>()?;
    Some(Routes::merged(net, trees))
}
