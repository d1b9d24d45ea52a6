//! HPL, the Linpack benchmark for clusters, as process columns that factorise, hand panels on and
//! swap rows.
//!
//! The skeleton follows HPL's own order of things (`HPL_pdgesv0` and `HPL_pdgesvK2` with look-ahead
//! 1, as in versions 1.0a to 2.3):
//!
//! - The owner of a panel factorises it and hands it to other columns, row by row: each process sends
//!   to one of the same process row ([`Broadcast`]). Who receives probes between the pieces of its
//!   own update, and sends the panel on at once; sends are blocking.
//! - Before a column updates, its processes swap rows: spread from the process row that owns the
//!   diagonal block, by a binary tree, then roll around a ring. Tree and ring are in an order that follows from
//!   how many pivot rows each process owns (`HPL_logsort`), new for every panel.
//!
//! By the flow method a process column is one actor: its processes meet in every row swap. Spread and roll are one
//! set of streams each; the study that this follows (`docs/prediction.md`) found every single step no more
//! accurate at eight times the cost. What is left out: the right-hand side's backward substitution (less than 0.1 % of
//! a large run), local copies.
//! The exchanges of pivots inside of a panel are latency and data of their steps, not streams.
//!
//! By the packet method every rank is by itself, and every message is sent ([`Hpl::program`]).

mod column;
mod distribution;
mod ranks;
mod swap;

use std::rc::Rc;

use meikyo_units::{Bytes, Nanos};

use super::network::Network;
use super::placement::Placement;
use crate::completions::count_f64;
use crate::parameters::choice;

pub use column::Column;
pub use ranks::TAGS;

use column::Swap;
use distribution::Dealt;

/// How a panel goes through a process row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broadcast {
    /// Each process to the next (`1ring`).
    Ring,
    /// As a ring, but the next one after the owner gets it first and sends to nobody (`1ringM`).
    RingModified,
    /// Two rings of half the processes (`2ring`).
    TwoRings,
    /// Two rings, and the next one after the owner sends to nobody (`2ringM`).
    TwoRingsModified,
}
choice!(Broadcast {
    Ring = "1ring",
    RingModified = "1ring-modified",
    TwoRings = "2ring",
    TwoRingsModified = "2ring-modified",
});

/// Which ranks are neighbours in the process grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GridOrder {
    /// Those of a process row have consecutive ranks.
    RowMajor,
    /// Those of a process column have consecutive ranks.
    ColumnMajor,
}
choice!(GridOrder { RowMajor = "row-major", ColumnMajor = "column-major" });

/// A run of HPL.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hpl {
    /// The order `N` of the matrix.
    pub order: u64,
    /// The block size `NB`.
    pub block: u64,
    /// Process rows `P`.
    pub rows: usize,
    /// Process columns `Q`.
    pub columns: usize,
    /// Which ranks are neighbours.
    pub grid_order: GridOrder,
    /// Panels that are factorised ahead of the update: 0 or 1.
    pub look_ahead: u8,
    /// How panels go through process rows.
    pub broadcast: Broadcast,
    /// What one process computes in matrix products, in floating point operations a second.
    pub flop_per_s: f64,
    /// The share of that rate that is reached in factorising a panel.
    pub panel_share: f64,
    /// From process to process without data, for what is not a stream: the steps of swaps and pivots.
    pub latency: Nanos,
    /// What pivots follow from.
    pub seed: u64,
}

impl Hpl {
    /// Ranks of the grid.
    pub fn ranks(&self) -> usize {
        self.rows * self.columns
    }

    /// Floating point operations of the whole run, as HPL counts them: 2/3 N^3 + 3/2 N^2.
    pub fn flop(&self) -> f64 {
        let order = count_f64(self.order);
        order * order * (2.0 / 3.0 * order + 1.5)
    }

    /// The rate of a run that takes `time`, in GFLOPS.
    pub fn gflops(&self, time: Nanos) -> f64 {
        self.flop() / time.as_secs_f64() / 1e9
    }

    /// The rank at a place of the grid.
    pub fn rank(&self, row: usize, column: usize) -> usize {
        match self.grid_order {
            GridOrder::RowMajor => row * self.columns + column,
            GridOrder::ColumnMajor => column * self.rows + row,
        }
    }

    /// The matrix, its right-hand side included, in bytes.
    pub fn matrix(&self) -> Bytes {
        Bytes::new(8 * self.order.saturating_mul(self.order + 1))
    }

    /// The process columns of the run, each an actor, on hosts by `placement`.
    pub fn actors<'a>(&'a self, network: &Network, placement: &'a Placement) -> Vec<Column<'a>> {
        let rate_bytes_per_s =
            network.lanes().first().map_or(f64::INFINITY, |lane| lane.bytes_per_s);
        let swaps = Swap::all(self);
        let column = |me| Column::new(self, placement, me, rate_bytes_per_s, Rc::clone(&swaps));
        (0..self.columns).map(column).collect()
    }

    /// How long a process needs to update so many columns by a panel.
    fn update_span(&self, rows: Dealt, by: u64, columns: u64) -> Nanos {
        let size = count_f64(rows.size(by));
        let product = 2.0 * count_f64(rows.most_from(by + 1)) * size;
        let triangle = size * size;
        Nanos::from_secs_f64((product + triangle) * count_f64(columns) / self.flop_per_s)
    }

    /// Which columns a column hands a panel to, by how far it is behind the owner.
    fn successors(&self, distance: usize) -> Vec<usize> {
        let columns = self.columns;
        let ring = |first: usize, end: usize| {
            (distance >= first && distance + 1 < end).then_some(distance + 1)
        };
        // The second ring begins in the middle.
        let middle = columns.div_ceil(2);
        let next: Vec<usize> = match (self.broadcast, distance) {
            (Broadcast::Ring, _) => ring(0, columns).into_iter().collect(),
            (Broadcast::RingModified, 0) => vec![1, 2],
            (Broadcast::RingModified, _) => ring(2, columns).into_iter().collect(),
            (Broadcast::TwoRings, 0) => vec![1, middle],
            (Broadcast::TwoRings, _) => {
                ring(1, middle).into_iter().chain(ring(middle, columns)).collect()
            }
            (Broadcast::TwoRingsModified, 0) => vec![1, 2, middle],
            (Broadcast::TwoRingsModified, _) => {
                ring(2, middle).into_iter().chain(ring(middle, columns)).collect()
            }
        };
        let mut kept: Vec<usize> = Vec::new();
        for distance in next {
            if distance < columns && !kept.contains(&distance) {
                kept.push(distance);
            }
        }
        kept
    }

    /// Who hands a panel to the column at this distance behind the owner.
    fn predecessor(&self, distance: usize) -> usize {
        (0..distance)
            .find(|&before| self.successors(before).contains(&distance))
            .expect("a panel reaches every column")
    }
}
