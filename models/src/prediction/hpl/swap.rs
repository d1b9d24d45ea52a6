//! The row swap of a process column: who holds how many pivot rows, in which order the processes stand,
//! and what goes from which to which.

use meikyo_worlds::random::{below, draw, stream_key};

use super::distribution::wide;

/// Processes in the order of tree and ring, the owner of the diagonal block first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Order {
    /// The process row at each position.
    pub(super) row: Vec<usize>,
    /// How many pivot rows that one exchanges with the owner of the diagonal block; at position 0
    /// those that stay.
    pub(super) pivots: Vec<u64>,
}

/// What goes from one position to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) from: usize,
    pub(super) to: usize,
    /// In rows of the block of `U`.
    pub(super) rows: u64,
}

/// Draws which process row each of `count` pivots is in: any row that is left is as likely as another.
/// The result follows from seed and panel alone, so that all columns know the same.
pub(super) fn draw_pivots(seed: u64, panel: u64, count: u64, rows_left: &[u64]) -> Vec<u64> {
    let key = stream_key(seed, panel);
    let total: u64 = rows_left.iter().sum();
    let mut pivots = vec![0; rows_left.len()];
    for pivot in 0..count {
        let mut drawn = below(draw(key, pivot), total);
        for (owned, &rows) in pivots.iter_mut().zip(rows_left) {
            if drawn < rows {
                *owned += 1;
                break;
            }
            drawn -= rows;
        }
    }
    pivots
}

/// The order of the processes: position 0 is the owner's, and the more rows a process gets, the fewer
/// bits its position has, since a row passes one process for each bit on its way down the tree.
pub(super) fn logarithmic_order(owner: usize, pivots: &[u64]) -> Order {
    let processes = pivots.len();
    let mut row: Vec<usize> = (0..processes).map(|at| (owner + at) % processes).collect();
    let bits: Vec<u32> = (0..processes).map(usize::count_ones).collect();
    let most = bits.iter().max().copied().unwrap_or(0);
    for few in 1..=most {
        for at in (1..processes).filter(|&at| bits[at] == few) {
            for other in (2..processes).filter(|&other| bits[other] > few) {
                if pivots[row[at]] < pivots[row[other]] {
                    row.swap(at, other);
                }
            }
        }
    }
    let pivots = row.iter().map(|&row| pivots[row]).collect();
    Order { row, pivots }
}

/// What spreads the owner's rows: at each level of a binary tree, each process that has rows for others
/// sends the farther half of them.
pub(super) fn spread(pivots: &[u64]) -> Vec<Part> {
    let processes = pivots.len();
    let mut parts = Vec::new();
    let mut half = processes.next_power_of_two() / 2;
    while half > 0 {
        for from in (0..processes).step_by(2 * half) {
            let to = from + half;
            if to < processes {
                let rows = pivots[to..(to + half).min(processes)].iter().sum();
                parts.push(Part { from, to, rows });
            }
        }
        half /= 2;
    }
    parts
}

/// Who sends to whom when the first of so many processes tells all others by a binary tree.
pub(super) fn tree(processes: usize) -> Vec<[usize; 2]> {
    let mut parts = Vec::new();
    let mut half = processes.next_power_of_two() / 2;
    while half > 0 {
        for from in (0..processes).step_by(2 * half).filter(|from| from + half < processes) {
            parts.push([from, from + half]);
        }
        half /= 2;
    }
    parts
}

/// Sums of the first 0, 1, ... lengths.
pub(super) fn sums(lengths: &[u64]) -> Vec<u64> {
    let mut sum = 0_u64;
    let after = lengths.iter().map(|length| {
        sum += length;
        sum
    });
    std::iter::once(0).chain(after.collect::<Vec<_>>()).collect()
}

/// What goes from a position to those behind it, which get rows as `sums` tell (`HPL_spreadT`).
pub(super) fn spread_right(sums: &[u64], source: usize) -> Vec<Part> {
    let count = sums.len() - 1 - source;
    let part = |[from, to]: [usize; 2]| {
        let end = (to + (to - from)).min(count);
        let rows = sums[source + end] - sums[source + to];
        Part { from: source + from, to: source + to, rows }
    };
    tree(count).into_iter().map(part).filter(|part| part.rows > 0).collect()
}

/// What goes from a position to those before it. HPL sends more rows than needed here.
fn spread_left(sums: &[u64], source: usize) -> Vec<Part> {
    let part = |[from, to]: [usize; 2]| {
        let place = source - to;
        let rows = sums[place + 1] - sums[place - place.min(to - from)];
        Part { from: source - from, to: place, rows }
    };
    tree(source + 1).into_iter().map(part).filter(|part| part.rows > 0).collect()
}

/// What makes the pieces of all positions equal, but for one row, and their sums then (`HPL_equil`).
pub(super) fn equilibrate(sums: &mut [u64]) -> Vec<Part> {
    let count = sums.len() - 1;
    let processes = wide(count);
    let all = sums[count];
    let (least, most, longer) = (all / processes, all.div_ceil(processes), all % processes);
    let wanted = |at: usize| {
        let at = wide(at);
        if at < longer {
            [at * most, (at + 1) * most]
        } else {
            [at, at + 1].map(|at| at * least + longer)
        }
    };
    // HPL looks for the first piece of another length, and takes the last one for right.
    let right = |at: usize| [least, most].contains(&(sums[at + 1] - sums[at]));
    if count <= 2 || (0..count - 1).all(right) {
        return Vec::new();
    }
    let mut parts = Vec::new();
    for source in 0..count {
        let [begin, end] = [sums[source], sums[source + 1]];
        let [wanted_begin, wanted_end] = wanted(source);
        let (left, right) = (begin < wanted_begin, wanted_end < end);
        if begin == end || !(left || right) {
            continue;
        }
        let mut shares = vec![begin; count + 1];
        let (mut at, mut rest) = (begin, end - begin);
        for (place, share) in shares.iter_mut().enumerate() {
            *share = at;
            if place < count {
                let [_, wanted_end] = wanted(place);
                let taken = wanted_end.saturating_sub(at).min(rest);
                (at, rest) = (at + taken, rest - taken);
            }
        }
        if left {
            parts.extend(spread_left(&shares, source));
        }
        if right {
            parts.extend(spread_right(&shares, source));
        }
    }
    for (at, sum) in sums.iter_mut().take(count).enumerate() {
        *sum = wanted(at)[0];
    }
    parts
}

/// What rolls around the ring until every process has all of `rows`: each has an equal piece, and in
/// each of the P - 1 steps exchanges one with the neighbour on the one side, then on the other.
pub(super) fn roll(processes: usize, rows: u64) -> Vec<Part> {
    let count = u64::try_from(processes).expect("a count fits in 64 bits");
    if processes < 2 {
        return Vec::new();
    }
    let (each, more) = (rows / count, rows % count);
    let piece = |at: usize| each + u64::from(u64::try_from(at).is_ok_and(|at| at < more));
    let mut to_next = vec![0; processes];
    let mut to_previous = vec![0; processes];
    for step in 0..processes - 1 {
        let far = step / 2;
        for at in 0..processes {
            if (at + step) % 2 == 1 {
                to_previous[at] += piece((at + far) % processes);
            } else {
                to_next[at] += piece((at + processes - far) % processes);
            }
        }
    }
    let next = |at: usize| (at + 1) % processes;
    let previous = |at: usize| (at + processes - 1) % processes;
    let forth = (0..processes).map(|at| Part { from: at, to: next(at), rows: to_next[at] });
    let back = (0..processes).map(|at| Part { from: at, to: previous(at), rows: to_previous[at] });
    forth.chain(back).filter(|part| part.rows > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_process_gets_its_rows_and_hands_the_others_on() {
        for processes in 1..20_usize {
            let pivots: Vec<u64> = (0..processes).map(|at| 3 * at as u64 % 7 + 1).collect();
            let parts = spread(&pivots);
            assert_eq!(parts.len(), processes - 1);
            for (at, &own) in pivots.iter().enumerate().skip(1) {
                let comes: u64 =
                    parts.iter().filter(|part| part.to == at).map(|part| part.rows).sum();
                let goes: u64 =
                    parts.iter().filter(|part| part.from == at).map(|part| part.rows).sum();
                assert_eq!(comes - goes, own, "{processes} processes, {at}");
            }
        }
    }

    /// Pieces are carried step by step; in the end each process has seen all of them.
    #[test]
    fn rolling_brings_all_rows_to_everybody() {
        for processes in [2, 4, 6, 18] {
            let rows = 240;
            let parts = roll(processes, rows);
            for at in 0..processes {
                let comes: u64 =
                    parts.iter().filter(|part| part.to == at).map(|part| part.rows).sum();
                let own =
                    rows / processes as u64 + u64::from((at as u64) < rows % processes as u64);
                assert_eq!(comes, rows - own, "{processes} processes, {at}");
            }
        }
    }

    #[test]
    fn equal_pieces_are_made_of_any() {
        let mut lengths = [0, 9, 1, 0, 14, 3];
        for turn in 0..lengths.len() {
            let mut sums = sums(&lengths);
            assert!(!equilibrate(&mut sums).is_empty());
            let now: Vec<u64> = sums.windows(2).map(|pair| pair[1] - pair[0]).collect();
            assert_eq!(now, [5, 5, 5, 4, 4, 4]);
            assert!(equilibrate(&mut sums).is_empty(), "they are equal");
            lengths.rotate_left(turn);
        }
    }

    #[test]
    fn those_with_most_rows_stand_where_few_bits_are() {
        let pivots = [5, 1, 9, 2, 8, 3, 7, 4, 6];
        let order = logarithmic_order(3, &pivots);
        assert_eq!(order.row[0], 3);
        let mut sorted = order.row.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..9).collect::<Vec<_>>());
        for one in 1..9_usize {
            for other in (1..9_usize).filter(|other| one.count_ones() < other.count_ones()) {
                assert!(order.pivots[one] >= order.pivots[other], "{order:?}");
            }
        }
    }

    #[test]
    fn pivots_are_drawn_in_proportion_to_the_rows_that_are_left() {
        let pivots = draw_pivots(1, 0, 100_000, &[100, 300, 0, 600]);
        assert_eq!(pivots.iter().sum::<u64>(), 100_000);
        assert_eq!(pivots[2], 0);
        // Six standard deviations of a binomial with p = 0.1: 569.
        assert!(pivots[0].abs_diff(10_000) < 569, "{pivots:?}");
    }
}
