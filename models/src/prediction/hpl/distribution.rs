//! What of a matrix each process owns: blocks dealt out in turn (block-cyclic distribution).

/// Blocks of `block` rows or columns, the last one shorter, dealt to `processes` in turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dealt {
    pub(super) order: u64,
    pub(super) block: u64,
    pub(super) processes: u64,
}

impl Dealt {
    /// How many blocks there are.
    pub(super) fn blocks(self) -> u64 {
        self.order.div_ceil(self.block)
    }

    /// How many rows of block `first` and those after it a process owns.
    pub(super) fn rows_from(self, first: u64, process: u64) -> u64 {
        let blocks = self.blocks();
        let owned_below = |end: u64| (end + self.processes - 1 - process) / self.processes;
        let count = owned_below(blocks) - owned_below(first.min(blocks));
        let short = blocks * self.block - self.order;
        let owns_last = first < blocks && (blocks - 1) % self.processes == process;
        count * self.block - if owns_last { short } else { 0 }
    }

    /// As [`Dealt::rows_from`], of the process that has most of them.
    pub(super) fn most_from(self, first: u64) -> u64 {
        (0..self.processes).map(|process| self.rows_from(first, process)).max().unwrap_or(0)
    }

    /// How many of the first `end` rows a process owns.
    pub(super) fn rows_below(self, end: u64, process: u64) -> u64 {
        let part = if end / self.block % self.processes == process { end % self.block } else { 0 };
        let whole = end / self.block;
        (whole + self.processes - 1 - process) / self.processes * self.block + part
    }

    /// The process that owns a row.
    pub(super) fn owner(self, row: u64) -> usize {
        usize::try_from(row / self.block % self.processes).expect("it is below a count")
    }

    /// The size of a block.
    pub(super) fn size(self, block: u64) -> u64 {
        self.block.min(self.order - block * self.block)
    }
}

pub(super) fn wide(count: usize) -> u64 {
    u64::try_from(count).expect("a count fits in 64 bits")
}

pub(super) fn narrow(place: u64) -> usize {
    usize::try_from(place).expect("it is below a place")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_belongs_to_the_process_whose_turn_its_block_is() {
        for (order, block, processes) in [(100, 7, 3), (64, 8, 4), (5, 8, 2), (31, 5, 6)] {
            let dealt = Dealt { order, block, processes };
            for first in 0..dealt.blocks() {
                for process in 0..processes {
                    let rows =
                        (first * block..order).filter(|row| row / block % processes == process);
                    assert_eq!(dealt.rows_from(first, process), rows.count() as u64);
                    let end = first * block + process % block;
                    let rows = (0..end).filter(|&row| dealt.owner(row) as u64 == process);
                    assert_eq!(dealt.rows_below(end, process), rows.count() as u64);
                }
            }
        }
    }
}
