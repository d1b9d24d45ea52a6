//! Mail between ranks: what one has for another, written as bytes, with the lines for the first rank.

use meikyo_undo::{Wire, put, take};

use super::Ranks;
use super::exchange::Exchange;
use crate::statistics::Line;

/// What a rank has of the others, and how it reaches them.
pub(crate) struct Mail<T> {
    exchange: Exchange,
    own: usize,
    /// What goes to each rank, as bytes.
    bytes: Vec<Vec<u8>>,
    /// What was sent here and not taken yet.
    pub(crate) inbox: Vec<T>,
    /// Lines that are not told yet; the others' come to the first rank.
    pub(crate) lines: Vec<Line>,
}

impl<T: Wire> Mail<T> {
    /// Among the first `parts` ranks, who tell each other `words` words; none for another rank. All
    /// ranks must call this together.
    pub(crate) fn among(ranks: Ranks, parts: usize, words: usize) -> Option<Self> {
        let exchange = Exchange::among(ranks, parts, words)?;
        Some(Self {
            exchange,
            own: ranks.own(),
            bytes: vec![Vec::new(); parts],
            inbox: Vec::new(),
            lines: Vec::new(),
        })
    }

    /// Tells `words`, sends `out` to each rank and `lines` to the first, and takes what comes.
    pub(crate) fn meet(&mut self, words: &[u64], out: &mut [Vec<T>], lines: &mut Vec<Line>) {
        if self.own == 0 {
            self.lines.append(lines);
        }
        for (to, (bytes, out)) in self.bytes.iter_mut().zip(out).enumerate() {
            bytes.clear();
            let lines: &[Line] = if to == 0 { lines } else { &[] };
            if !out.is_empty() || !lines.is_empty() {
                put(out, bytes).expect("what LPs send can be written as bytes");
                put(&lines, bytes).expect("lines can be written as bytes");
                out.clear();
            }
        }
        lines.clear();
        self.exchange.meet(words, |rank| &self.bytes[rank]);
        for from in 0..self.bytes.len() {
            let mut bytes = self.exchange.inbox(from);
            if !bytes.is_empty() {
                let mail: Vec<T> = take(&mut bytes).expect("another rank wrote mail");
                let lines: Vec<Line> = take(&mut bytes).expect("another rank wrote lines");
                self.inbox.extend(mail);
                self.lines.extend(lines);
            }
        }
    }

    /// The words that the rank of `part` told at the last meeting.
    pub(crate) fn told(&self, part: usize) -> &[u64] {
        self.exchange.told(part)
    }

    /// The parts.
    pub(crate) fn parts(&self) -> std::ops::Range<usize> {
        0..self.bytes.len()
    }
}
