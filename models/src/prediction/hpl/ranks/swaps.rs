//! Which messages the swaps of rows are: those of single rows inside of a panel, and those of all rows of a
//! panel before an update.

use std::collections::BTreeMap;

use super::Dealt;
use crate::prediction::hpl::distribution::narrow;
use crate::prediction::hpl::swap::tree;

/// What a process exchanges with one other at a time: it asks for a message, sends one, and waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn {
    /// The other process, by its place in the order that is spoken of.
    pub(super) partner: usize,
    /// How much is sent, if anything.
    pub(super) sends: u64,
    pub(super) receives: bool,
}

/// The greatest power of two that is not above a count, which is not 0.
fn power_below(count: usize) -> usize {
    1 << count.ilog2()
}

/// What the process at a distance from the owner of the first row takes part in when all of a column agree
/// on a pivot: its row, and the first one, of `size` numbers each, and four numbers about the pivot.
pub(super) fn pivot_turns(processes: usize, distance: usize, size: u64) -> Vec<Turn> {
    let power = power_below(processes);
    let (one, both) = (size + 4, 2 * size + 4);
    let turn = |partner, sends, receives| Turn { partner, sends, receives };
    let beyond = distance & power != 0;
    // Processes beyond the power of two take part by way of another one.
    let stands_in = Some(distance ^ power).filter(|&other| processes > power && other < processes);
    let mut turns = Vec::new();
    if let Some(other) = stands_in {
        turns.push(match (beyond, distance == power, distance) {
            (true, true, _) => turn(other, one, true),
            (true, false, _) => turn(other, one, false),
            (false, _, 0) => turn(other, size, true),
            (false, ..) => turn(other, 0, true),
        });
    }
    if distance < power {
        for step in 0..power.ilog2() {
            // Who has the first row hands it on.
            let has_first = distance >> step == 0;
            turns.push(turn(distance ^ (1 << step), if has_first { both } else { one }, true));
        }
    } else {
        let others = processes - power;
        for part in tree(others) {
            let [from, to] = part.map(|place| power + place);
            if from == distance {
                turns.push(turn(to, size, false));
            } else if to == distance {
                turns.push(turn(from, 0, true));
            }
        }
    }
    if let Some(other) = stands_in {
        turns.push(if beyond { turn(other, 0, true) } else { turn(other, one, false) });
    }
    turns
}

/// What of the rows of a panel is where before they are swapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pieces {
    /// The process row that owns the diagonal block.
    pub(super) owner: usize,
    /// For each process row, how many of its rows the owner gets for its own, which it sends; of the
    /// owner how many stay.
    pub(super) counts: Vec<u64>,
}

impl Pieces {
    /// Those of a panel with these pivots of all columns (`HPL_pipid`, `HPL_plindx10`).
    pub(super) fn new(rows: Dealt, panel: u64, pivots: &[u64]) -> Self {
        let first = panel * rows.block;
        let end = first + rows.size(panel);
        // Which row comes to stand where, of all that are moved, and those of the panel.
        let mut stands: BTreeMap<u64, u64> = (first..end).map(|row| (row, row)).collect();
        for row in first..end {
            let pivot = pivots[narrow(row)];
            assert!(row <= pivot && pivot < rows.order, "row {pivot} is no pivot of column {row}");
            let [own, other] = [row, pivot].map(|at| stands.get(&at).copied().unwrap_or(at));
            stands.insert(row, other);
            stands.insert(pivot, own);
        }
        let owner = rows.owner(first);
        let mut counts = vec![0; narrow(rows.processes)];
        for (&to, &from) in &stands {
            let goes = rows.owner(to);
            if rows.owner(from) == owner && (goes != owner || to < end) {
                counts[goes] += 1;
            }
        }
        Self { owner, counts }
    }
}

/// What a position exchanges in one step of the roll (`HPL_rollT`).
pub(super) fn roll_turn(sums: &[u64], position: usize, step: usize) -> Turn {
    let count = sums.len() - 1;
    let length = |at: usize| sums[at % count + 1] - sums[at % count];
    let far = step / 2;
    let back = |by: usize| position + count - by;
    let [sent, received, partner] = if (position + step) % 2 == 1 {
        [position + far, back(far + 1), back(1)]
    } else {
        [back(far), position + far + 1, position + 1]
    };
    Turn { partner: partner % count, sends: length(sent), receives: length(received) > 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prediction::hpl::distribution::wide;
    use crate::prediction::hpl::swap::sums;

    /// What everybody sends is what the others receive, and in an order that ends.
    fn agree(turns: &[Vec<Turn>]) {
        let mut at = vec![0; turns.len()];
        let mut waiting: BTreeMap<[usize; 2], usize> = BTreeMap::new();
        let mut sent = vec![false; turns.len()];
        loop {
            let mut moved = false;
            for own in 0..turns.len() {
                let Some(turn) = turns[own].get(at[own]) else { continue };
                if !sent[own] && turn.sends > 0 {
                    *waiting.entry([own, turn.partner]).or_default() += 1;
                    moved = true;
                }
                sent[own] = true;
                let comes = waiting.get_mut(&[turn.partner, own]).filter(|count| **count > 0);
                if turn.receives {
                    let Some(count) = comes else { continue };
                    *count -= 1;
                }
                (at[own], sent[own], moved) = (at[own] + 1, false, true);
            }
            if !moved {
                break;
            }
        }
        assert!(at.iter().zip(turns).all(|(at, turns)| *at == turns.len()), "{turns:?}");
        assert!(waiting.values().all(|count| *count == 0), "{turns:?}");
    }

    #[test]
    fn pivots_are_exchanged_by_any_number_of_processes() {
        for processes in 1..20 {
            let turns = (0..processes).map(|distance| pivot_turns(processes, distance, 8));
            agree(&turns.collect::<Vec<_>>());
        }
    }

    #[test]
    fn pieces_roll_until_everybody_has_all() {
        for processes in 2..12_usize {
            let lengths: Vec<u64> = (0..processes).map(|at| wide(at) % 3).collect();
            let sums = sums(&lengths);
            let steps = 0..processes - 1;
            let turns = |own| steps.clone().map(|step| roll_turn(&sums, own, step)).collect();
            agree(&(0..processes).map(turns).collect::<Vec<_>>());
            for (own, length) in lengths.iter().enumerate() {
                let all = (0..processes).flat_map(|from| {
                    let sums = &sums;
                    steps.clone().map(move |step| roll_turn(sums, from, step))
                });
                let comes = all.filter(|turn| turn.partner == own).map(|turn| turn.sends);
                let wanted = sums[processes] - length;
                assert_eq!(comes.sum::<u64>(), wanted, "{processes}, {own}");
            }
        }
    }

    #[test]
    fn a_panel_sends_as_many_rows_as_it_has() {
        let rows = Dealt { order: 60, block: 8, processes: 3 };
        let pivots: Vec<u64> = (0..60).map(|row| row + (row * 37 + 11) % (60 - row)).collect();
        for panel in 0..rows.blocks() {
            let pieces = Pieces::new(rows, panel, &pivots);
            assert_eq!(pieces.owner, narrow(panel % 3));
            assert_eq!(pieces.counts.iter().sum::<u64>(), rows.size(panel), "{pieces:?}");
        }
    }
}
