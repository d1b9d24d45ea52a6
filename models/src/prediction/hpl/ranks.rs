//! HPL rank by rank: every message of the factorisation and of the backward substitution, in HPL's order.
//!
//! The order of the messages between two ranks in one communicator, and their sizes, are those of HPL 1.0a to
//! 2.x with long swaps (`SWAP` 1) and equilibration. When a panel is handed on while columns are updated is
//! not part of that: HPL asks for it between the pieces of its update, here it is in the middle.

mod solve;
mod swaps;

use meikyo_units::Nanos;
use meikyo_worlds::random::{below, draw, stream_key};

use super::Hpl;
use super::column::{FACTORISE, RECEIVE, ROLL, SEND, SPREAD, UPDATE};
use super::distribution::{Dealt, narrow, wide};
use super::swap::{equilibrate, logarithmic_order, spread_right, sums};
use crate::completions::count_f64;
use crate::prediction::ranks::{RankProgram, Script, Steps, number};

use swaps::{Pieces, Turn};

const PIVOT: &str = "exchange pivots";

/// What messages within process rows are called, and those within process columns: HPL's two
/// communicators.
pub const TAGS: [u32; 2] = [ROW, COLUMN];
const ROW: u32 = 0;
const COLUMN: u32 = 1;

/// The steps of all ranks, in the making.
struct Writer<'a> {
    hpl: &'a Hpl,
    rows: Dealt,
    /// The right-hand side is one more column.
    columns: Dealt,
    /// By rank.
    steps: Vec<Steps>,
}

impl Hpl {
    /// For each column the row that is swapped with the one of the same number: any row that is left is as
    /// likely as another.
    pub fn drawn_pivots(&self) -> Vec<u64> {
        let key = stream_key(self.seed, 0);
        let drawn = |column| column + below(draw(key, column), self.order - column);
        (0..self.order).map(drawn).collect()
    }

    /// How many messages the program of all ranks has, to a few percent.
    pub fn messages(&self) -> f64 {
        let [order, block] = [self.order, self.block].map(count_f64);
        let [rows, columns] = [self.rows, self.columns].map(|count| count_f64(wide(count)));
        let pivots = order * rows * rows.log2();
        let swaps = order / block * columns * rows * rows;
        pivots + swaps + order / block * rows * columns
    }

    /// The run rank by rank, in which the pivot of each column is in this row.
    ///
    /// # Panics
    /// If there are not as many pivots as rows, or one is above its own row or below all.
    pub fn program(&self, pivots: &[u64]) -> RankProgram {
        assert_eq!(wide(pivots.len()), self.order, "each column has a pivot");
        let dealt =
            |order, processes| Dealt { order, block: self.block, processes: wide(processes) };
        let ranks = (0..self.ranks()).map(|rank| Steps::of(number(rank)));
        let mut writer = Writer {
            hpl: self,
            rows: dealt(self.order, self.rows),
            columns: dealt(self.order + 1, self.columns),
            steps: ranks.collect(),
        };
        writer.factorise_all(pivots);
        writer.solve();
        let script = |steps: Steps| {
            let mut script = Script::default();
            script.repeat(1, steps.finish());
            script
        };
        RankProgram::new(writer.steps.into_iter().map(script).collect())
    }
}

impl Writer<'_> {
    fn factorise_all(&mut self, pivots: &[u64]) {
        let panels = self.rows.blocks();
        let columns = self.hpl.columns;
        let ahead = self.hpl.look_ahead > 0;
        let mut before: Option<Pieces> = None;
        for panel in 0..panels {
            let pieces = Pieces::new(self.rows, panel, pivots);
            let owner = narrow(panel % wide(columns));
            if let Some(pieces) = before.as_ref().filter(|_| ahead) {
                self.update(owner, pieces, panel - 1, self.rows.size(panel));
            }
            self.factorise(owner, panel);
            for column in (0..columns).map(|behind| (owner + behind) % columns) {
                if !ahead {
                    self.hand_on(column, panel);
                    self.update(column, &pieces, panel, self.columns_after(panel, column));
                } else if let Some(pieces) = &before {
                    self.update_and_hand_on(column, pieces, panel);
                } else {
                    self.hand_on(column, panel);
                }
            }
            before = Some(pieces);
        }
        // What is left is the right-hand side.
        if let Some(pieces) = before.as_ref().filter(|_| ahead) {
            for column in 0..columns {
                let rest = self.columns_after(panels - 1, column);
                self.update(column, pieces, panels - 1, rest);
            }
        }
    }

    fn owns(&self, column: usize, panel: u64) -> bool {
        panel % wide(self.hpl.columns) == wide(column)
    }

    /// Columns of a process column behind those of a panel. The right-hand side is in the block of the last
    /// one, if that is not full.
    fn columns_after(&self, panel: u64, column: usize) -> u64 {
        let in_block = self.columns.size(panel) - self.rows.size(panel);
        let own = if self.owns(column, panel) { in_block } else { 0 };
        own + self.columns.rows_from(panel + 1, wide(column))
    }

    fn at(&mut self, row: usize, column: usize) -> &mut Steps {
        &mut self.steps[self.hpl.rank(row, column)]
    }

    /// Sends doubles from rank to rank within a process row or column, and waits until they may be forgotten.
    fn send(&mut self, [from, to]: [usize; 2], within: u32, doubles: u64, what: &'static str) {
        let steps = &mut self.steps[from];
        steps.send(number(to), within, 8 * doubles);
        steps.wait(what);
    }

    fn receive(&mut self, [from, to]: [usize; 2], within: u32, what: &'static str) {
        let steps = &mut self.steps[to];
        steps.receive(number(from), within);
        steps.wait(what);
    }

    fn send_down(&mut self, column: usize, rows: [usize; 2], doubles: u64, what: &'static str) {
        self.send(rows.map(|row| self.hpl.rank(row, column)), COLUMN, doubles, what);
    }

    fn receive_down(&mut self, column: usize, rows: [usize; 2], what: &'static str) {
        self.receive(rows.map(|row| self.hpl.rank(row, column)), COLUMN, what);
    }

    fn send_across(&mut self, row: usize, columns: [usize; 2], doubles: u64, what: &'static str) {
        self.send(columns.map(|column| self.hpl.rank(row, column)), ROW, doubles, what);
    }

    fn receive_across(&mut self, row: usize, columns: [usize; 2], what: &'static str) {
        self.receive(columns.map(|column| self.hpl.rank(row, column)), ROW, what);
    }

    /// Factorises a panel: for each of its columns the processes agree on a pivot (`HPL_pdmxswp`).
    fn factorise(&mut self, column: usize, panel: u64) {
        let size = self.rows.size(panel);
        let first = narrow(panel % wide(self.hpl.rows));
        let flop = count_f64(size) * count_f64(self.rows.most_from(panel));
        let span = Nanos::from_secs_f64(flop / (self.hpl.flop_per_s * self.hpl.panel_share));
        for _ in 0..size {
            for distance in 0..self.hpl.rows {
                let row = (first + distance) % self.hpl.rows;
                self.at(row, column).compute(span, FACTORISE);
                for turn in swaps::pivot_turns(self.hpl.rows, distance, size) {
                    self.take_turn(column, first, distance, turn);
                }
            }
        }
    }

    /// One turn of a process, by its distance from the first one.
    fn take_turn(&mut self, column: usize, first: usize, distance: usize, turn: Turn) {
        let row = |distance: usize| (first + distance) % self.hpl.rows;
        let own = row(distance);
        let other = number(self.hpl.rank(row(turn.partner), column));
        let steps = self.at(own, column);
        if turn.receives {
            steps.receive(other, COLUMN);
        }
        if turn.sends > 0 {
            steps.send(other, COLUMN, 8 * turn.sends);
        }
        steps.wait(PIVOT);
    }

    /// A panel comes to a process column and goes on.
    fn hand_on(&mut self, column: usize, panel: u64) {
        let columns = self.hpl.columns;
        let owner = narrow(panel % wide(columns));
        let distance = (column + columns - owner) % columns;
        let size = self.rows.size(panel);
        let place = |distance: usize| (owner + distance) % columns;
        for row in 0..self.hpl.rows {
            let rows_below = self.rows.rows_from(panel + 1, wide(row));
            let doubles = rows_below * size + size * size + size + 1;
            if distance > 0 {
                let from = place(self.hpl.predecessor(distance));
                self.receive_across(row, [from, column], RECEIVE);
            }
            for next in self.hpl.successors(distance) {
                self.send_across(row, [column, place(next)], doubles, SEND);
            }
        }
    }

    /// Updates the rest of a process column by the panel before one that comes meanwhile. Its owner sends
    /// that first.
    fn update_and_hand_on(&mut self, column: usize, pieces: &Pieces, panel: u64) {
        let rest = self.columns_after(panel, column);
        if self.owns(column, panel) {
            self.hand_on(column, panel);
            self.update(column, pieces, panel - 1, rest);
            return;
        }
        self.swap(column, pieces, rest);
        self.compute_update(column, panel - 1, rest / 2);
        self.hand_on(column, panel);
        self.compute_update(column, panel - 1, rest - rest / 2);
    }

    fn update(&mut self, column: usize, pieces: &Pieces, by: u64, columns: u64) {
        self.swap(column, pieces, columns);
        self.compute_update(column, by, columns);
    }

    fn compute_update(&mut self, column: usize, by: u64, columns: u64) {
        let span = self.hpl.update_span(self.rows, by, columns);
        for row in 0..self.hpl.rows {
            self.at(row, column).compute(span, UPDATE);
        }
    }

    /// Swaps the rows of so many columns: spread, equilibrate, roll (`HPL_pdlaswp01T`).
    fn swap(&mut self, column: usize, pieces: &Pieces, columns: u64) {
        if columns == 0 || self.hpl.rows == 1 {
            return;
        }
        let order = logarithmic_order(pieces.owner, &pieces.counts);
        let mut lengths = sums(&order.pivots);
        let mut parts = spread_right(&lengths, 0);
        parts.extend(equilibrate(&mut lengths));
        for part in parts {
            let ends = [order.row[part.from], order.row[part.to]];
            self.receive_down(column, ends, SPREAD);
            self.send_down(column, ends, part.rows * columns, SPREAD);
        }
        for step in 0..self.hpl.rows - 1 {
            for position in 0..self.hpl.rows {
                let turn = swaps::roll_turn(&lengths, position, step);
                let other = number(self.hpl.rank(order.row[turn.partner], column));
                let steps = self.at(order.row[position], column);
                if turn.receives {
                    steps.receive(other, COLUMN);
                }
                if turn.sends > 0 {
                    steps.send(other, COLUMN, 8 * turn.sends * columns);
                }
                steps.wait(ROLL);
            }
        }
    }
}
