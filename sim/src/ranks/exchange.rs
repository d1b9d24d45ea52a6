//! The transport of the coordinator's exchange over MPI: mail and lines written as bytes.
//!
//! Ranks send mail at exchanges only; nothing arrives in between.

use meikyo_undo::{Wire, read_value, write_value};

use super::Ranks;
use super::collective::Collective;
use crate::exchange::{Exchange, Outbox};
use crate::statistics::Line;

/// One rank's access to the exchange of a run. The part of a rank has the rank's number.
pub(crate) struct MpiExchange<T> {
    collective: Collective,
    own: usize,
    /// What goes to each rank, as bytes.
    bytes: Vec<Vec<u8>>,
    /// Mail that was sent here and is not received yet.
    inbox: Vec<T>,
    /// On the first rank, lines that were sent here and are not taken yet.
    lines: Vec<Line>,
}

impl<T: Wire> MpiExchange<T> {
    /// The exchange among the first `parts` ranks, which publish `words` words each; none for another
    /// rank. All ranks must call this together.
    pub(crate) fn among(ranks: Ranks, parts: usize, words: usize) -> Option<Self> {
        let collective = Collective::among(ranks, parts, words)?;
        Some(Self {
            collective,
            own: ranks.own(),
            bytes: vec![Vec::new(); parts],
            inbox: Vec::new(),
            lines: Vec::new(),
        })
    }
}

impl<T: Wire> Exchange for MpiExchange<T> {
    type Mail = T;

    fn publish(&mut self, words: &[u64], outbox: &mut Outbox<T>, lines: &mut Vec<Line>) {
        if self.own == 0 {
            self.lines.append(lines);
        }
        for (to, (bytes, mail)) in self.bytes.iter_mut().zip(outbox.mail()).enumerate() {
            bytes.clear();
            let lines: &[Line] = if to == 0 { lines } else { &[] };
            if !mail.is_empty() || !lines.is_empty() {
                write_value(mail, bytes).expect("what LPs send can be written as bytes");
                write_value(&lines, bytes).expect("lines can be written as bytes");
                mail.clear();
            }
        }
        lines.clear();
        let words = outbox.earliest().chain(words.iter().copied());
        self.collective.exchange(words, |rank| &self.bytes[rank]);
        outbox.clear_times();
        for from in 0..self.bytes.len() {
            let mut bytes = self.collective.inbox(from);
            if !bytes.is_empty() {
                let mail: Vec<T> = read_value(&mut bytes).expect("another rank wrote mail");
                let lines: Vec<Line> = read_value(&mut bytes).expect("another rank wrote lines");
                self.inbox.extend(mail);
                self.lines.extend(lines);
            }
        }
    }

    fn word(&self, part: usize, at: usize) -> u64 {
        self.collective.words(part)[self.bytes.len() + at]
    }

    fn earliest(&self, from: usize, to: usize) -> u64 {
        self.collective.words(from)[to]
    }

    fn receive(&mut self, each: impl FnMut(T)) {
        self.inbox.drain(..).for_each(each);
    }

    fn take_lines(&mut self, into: &mut Vec<Line>) {
        into.append(&mut self.lines);
    }
}
