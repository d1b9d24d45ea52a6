//! The backward substitution (`HPL_pdtrsv`): blocks of the solution go up the process columns, what they
//! contribute to the next blocks goes along the process rows.

use meikyo_units::Nanos;

use super::{COLUMN, Writer, narrow, wide};
use crate::completions::count_f64;
use crate::prediction::hpl::swap::tree;
use crate::prediction::ranks::number;

const SOLVE: &str = "solve backwards";

/// A block of the solution: who owns its diagonal block, and its size.
#[derive(Debug, Clone, Copy)]
struct Block {
    row: usize,
    column: usize,
    size: u64,
}

impl Writer<'_> {
    /// Blocks of the solution from the last one to the first.
    pub(super) fn solve(&mut self) {
        let (rows, columns) = (self.hpl.rows, self.hpl.columns);
        let (order, dealt) = (self.hpl.order, self.rows);
        let blocks = dealt.blocks();
        let block = |at: u64| Block {
            row: narrow(at % wide(rows)),
            column: narrow(at % wide(columns)),
            size: dealt.size(at),
        };
        // The right-hand side moves to the process column of the last block.
        let last = block(blocks - 1);
        let holds = narrow(order / self.hpl.block % wide(columns));
        if holds != last.column {
            for row in 0..rows {
                let doubles = dealt.rows_below(order, wide(row));
                if doubles > 0 {
                    self.receive_across(row, [holds, last.column], SOLVE);
                    self.send_across(row, [holds, last.column], doubles, SOLVE);
                }
            }
        }
        let all: Vec<Block> = (0..blocks).rev().map(block).collect();
        let mut end = order - last.size;
        for pair in all.windows(2) {
            let [before, next] = [pair[0], pair[1]];
            for step in 0..rows {
                let row = (before.row + rows - step) % rows;
                self.contribute(row, before, next, end);
            }
            end -= next.size;
        }
        let first = all[all.len() - 1];
        for pair in tree(rows) {
            let ends = pair.map(|place| (first.row + place) % rows);
            self.receive_down(first.column, ends, SOLVE);
            self.send_down(first.column, ends, first.size, SOLVE);
        }
    }

    /// A process takes a block of the solution, adds what follows from it to the rows above, and hands
    /// it on. There are `end` rows above.
    fn contribute(&mut self, row: usize, before: Block, next: Block, end: u64) {
        let rows = self.hpl.rows;
        let (above, below) = ((row + rows - 1) % rows, (row + 1) % rows);
        let column = before.column;
        if row != before.row {
            self.receive_down(column, [below, row], SOLVE);
        } else if rows > 1 {
            self.send_down(column, [row, above], before.size, SOLVE);
        }
        // Only rows of the next blocks are needed soon, one less than there are process columns.
        let soon = ((wide(self.hpl.columns) - 1) * self.hpl.block).max(self.hpl.block).min(end);
        let [all, early] = [end, end - soon].map(|end| self.rows.rows_below(end, wide(row)));
        let doubles = all - early;
        let work = |rows: u64| {
            let flop = 2.0 * count_f64(rows) * count_f64(before.size);
            Nanos::from_secs_f64(flop / self.hpl.flop_per_s)
        };
        let [first, later] = [doubles, early].map(work);
        if doubles > 0 {
            self.at(row, column).compute(first, SOLVE);
            if next.column != column {
                self.send_across(row, [column, next.column], doubles, SOLVE);
                self.receive_across(row, [column, next.column], SOLVE);
            }
        }
        if row != before.row && row != (before.row + 1) % rows {
            let to = number(self.hpl.rank(above, column));
            let steps = self.at(row, column);
            steps.send(to, COLUMN, 8 * before.size);
            steps.wait(SOLVE);
        }
        self.at(row, column).compute(later, SOLVE);
    }
}
