//! Ranks that meet over MPI, one part each.

use meikyo_undo::{put, take};

use super::{Floor, Left, NEVER, Told, Worker};
use crate::context::Lp;
use crate::key::Event;
use crate::over_ranks::Ending;
use crate::queue::Queue;
use crate::ranks::exchange::Exchange;
use crate::run::Crew;
use crate::share::Share;
use crate::statistics::{Line, Observer};

/// Where the words of a part stand that it tells; after them the times of the first events that it
/// sent to each part.
mod word {
    pub(super) const NEXT: usize = 0;
    pub(super) const FAULT: usize = 1;
    pub(super) const HANDLED: usize = 2;
    pub(super) const BUSY_NS: usize = 3;
    pub(super) const SENT: usize = 4;
}

/// Runs the part of this rank, if it has one, to the end.
pub(crate) fn run<L: Lp>(
    crew: &Crew<'_>,
    share: Option<Share<L>>,
    observer: &mut dyn Observer,
) -> (Option<Share<L>>, Ending) {
    let ranks = crew.options.ranks;
    let parts = crew.partition.parts();
    let exchange = Exchange::among(ranks, parts, word::SENT + parts);
    let (Some(exchange), Some(share)) = (exchange, share) else { return (None, Ending::default()) };
    let floor = OverRanks {
        exchange,
        own: ranks.own(),
        words: Vec::new(),
        out: vec![Vec::new(); parts],
        mail: Vec::new(),
        lines: Vec::new(),
    };
    let observer = ranks.is_first().then_some(observer);
    let worker = Worker::new(crew, floor, ranks.own(), share);
    let Left { share, fault, handled, windows } = worker.work(observer, None);
    let ending = Ending { fault, handled, meetings: windows, ..Ending::default() };
    (Some(share), ending)
}

/// What this rank has of the others.
struct OverRanks<M> {
    exchange: Exchange,
    own: usize,
    words: Vec<u64>,
    /// Bytes for each other rank.
    out: Vec<Vec<u8>>,
    /// Events that were sent here.
    mail: Vec<Event<M>>,
    /// Lines that are not told yet; the others' come to the first rank.
    lines: Vec<Line>,
}

impl<M: meikyo_undo::Wire> Floor<M> for OverRanks<M> {
    fn meet(&mut self, told: Told<'_, M>) {
        self.words.clear();
        self.words.extend([told.next, told.fault, told.handled, told.busy_ns]);
        self.words.extend(told.first_out.iter());
        told.first_out.fill(NEVER);
        if self.own == 0 {
            self.lines.append(told.lines);
        }
        for (to, (bytes, events)) in self.out.iter_mut().zip(told.out).enumerate() {
            bytes.clear();
            let lines: &[Line] = if to == 0 { told.lines } else { &[] };
            if !events.is_empty() || !lines.is_empty() {
                put(events, bytes).expect("what LPs send can be written as bytes");
                put(&lines, bytes).expect("lines can be written as bytes");
                events.clear();
            }
        }
        told.lines.clear();
        self.exchange.meet(&self.words, |rank| &self.out[rank]);
        for from in 0..self.out.len() {
            let mut bytes = self.exchange.inbox(from);
            if !bytes.is_empty() {
                let events: Vec<Event<M>> = take(&mut bytes).expect("another rank wrote events");
                let lines: Vec<Line> = take(&mut bytes).expect("another rank wrote lines");
                self.mail.extend(events);
                self.lines.extend(lines);
            }
        }
    }

    fn next(&self, part: usize) -> u64 {
        self.exchange.told(part)[word::NEXT]
    }

    fn sent(&self, from: usize, to: usize) -> u64 {
        self.exchange.told(from)[word::SENT + to]
    }

    fn fault(&self, part: usize) -> u64 {
        self.exchange.told(part)[word::FAULT]
    }

    fn handled(&self) -> u64 {
        (0..self.out.len()).map(|part| self.exchange.told(part)[word::HANDLED]).sum()
    }

    fn busy_ns(&self) -> u64 {
        (0..self.out.len()).map(|part| self.exchange.told(part)[word::BUSY_NS]).sum()
    }

    fn take_mail(&mut self, queue: &mut Queue<M>) {
        self.mail.drain(..).for_each(|event| queue.push(event));
    }

    fn lines(&mut self, each: impl FnOnce(&mut Vec<Line>)) {
        each(&mut self.lines);
    }
}
