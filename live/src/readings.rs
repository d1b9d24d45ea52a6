//! Rows of a table and of answers on their way to a viewer, as both sources give them: the log of a
//! running recording, and the files of one that is replayed.

use std::collections::{BTreeMap, VecDeque};

use meikyo_recording::ColumnKind;
use meikyo_recording::schema::Hint;

/// Rows of one table, values as raw bits.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    pub(crate) due: Vec<i64>,
    pub(crate) series: Vec<u32>,
    /// By wanted column.
    pub(crate) values: Vec<Vec<Option<u64>>>,
    /// Of the columns that say how counters count, in the order of [`Hint::ALL`].
    pub(crate) hints: [Vec<Option<u64>>; 4],
}

impl Readings {
    pub(crate) fn new(columns: usize) -> Self {
        Self { values: vec![Vec::new(); columns], ..Self::default() }
    }

    pub(crate) fn hint(&self, hint: Hint, row: usize) -> Option<u64> {
        self.hints[hint as usize].get(row).copied().flatten()
    }

    /// Some of the rows, in the order in which `rows` names them.
    pub(crate) fn picked(&self, rows: &[usize]) -> Self {
        let pick = |values: &[Option<u64>]| rows.iter().map(|&row| values[row]).collect();
        Self {
            due: rows.iter().map(|&row| self.due[row]).collect(),
            series: rows.iter().map(|&row| self.series[row]).collect(),
            values: self.values.iter().map(|values| pick(values)).collect(),
            hints: self.hints.each_ref().map(|hints| pick(hints)),
        }
    }
}

/// The number that raw bits stand for.
#[expect(clippy::cast_precision_loss, reason = "for drawing; 24 bits are sent")]
pub(crate) fn number(kind: ColumnKind, bits: u64) -> f64 {
    match kind {
        ColumnKind::I64 => bits.cast_signed() as f64,
        ColumnKind::F64 => f64::from_bits(bits),
        _ => bits as f64,
    }
}

/// One answer, or why there was none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Poll {
    pub(crate) pdu: Option<u64>,
    /// Kernel receive time, ns since the epoch; `None` without an answer.
    pub(crate) received: Option<i64>,
    pub(crate) uptime_cs: Option<u64>,
    pub(crate) state: u8,
}

/// Chunks of rows for which polls are remembered: rows of an answer and its poll are written
/// together, and can be read in two chunks when the write lies between.
const CHUNKS: usize = 3;

/// The newest polls, by device and due instant.
#[derive(Debug, Default)]
pub(crate) struct Polls {
    chunks: VecDeque<BTreeMap<(u32, i64), Vec<Poll>>>,
}

impl Polls {
    /// Begins a chunk; the oldest one is forgotten.
    pub(crate) fn begin_chunk(&mut self) {
        if self.chunks.len() == CHUNKS {
            self.chunks.pop_back();
        }
        self.chunks.push_front(BTreeMap::new());
    }

    pub(crate) fn add(&mut self, device: u32, due: i64, poll: Poll) {
        if self.chunks.is_empty() {
            self.begin_chunk();
        }
        self.chunks[0].entry((device, due)).or_default().push(poll);
    }

    /// The poll that brought a row.
    pub(crate) fn find(&self, device: u32, due: i64, pdu: Option<u64>) -> Option<Poll> {
        let polls = self.chunks.iter().filter_map(|chunk| chunk.get(&(device, due))).flatten();
        let fits = |poll: &&Poll| pdu.is_none() || poll.pdu.is_none() || poll.pdu == pdu;
        polls.into_iter().find(fits).copied()
    }

    /// The polls of the newest chunk: device, due instant, poll.
    pub(crate) fn newest(&self) -> impl Iterator<Item = (u32, i64, Poll)> {
        let chunk = self.chunks.front().into_iter().flatten();
        chunk.flat_map(|(&(device, due), polls)| polls.iter().map(move |&poll| (device, due, poll)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_are_found_by_pdu_and_forgotten_in_the_end() {
        let mut polls = Polls::default();
        let poll = |pdu, state| Poll { pdu: Some(pdu), received: None, uptime_cs: None, state };
        polls.begin_chunk();
        polls.add(7, 100, poll(0, 0));
        polls.add(7, 100, poll(1, 4));
        assert_eq!(polls.find(7, 100, Some(1)), Some(poll(1, 4)));
        assert_eq!(polls.find(7, 100, None), Some(poll(0, 0)));
        assert_eq!(polls.find(7, 101, None), None);
        assert_eq!(polls.newest().count(), 2);
        polls.begin_chunk();
        polls.begin_chunk();
        assert!(polls.find(7, 100, Some(1)).is_some());
        polls.begin_chunk();
        assert_eq!(polls.find(7, 100, Some(1)), None);
    }
}
