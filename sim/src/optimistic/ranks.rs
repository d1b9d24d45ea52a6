//! Ranks that send each other events and anti-messages in batches, when they agree on GVT.

use meikyo_undo::{Wire, put, take};

use super::worker::Envelope;
use super::{Agreed, Floor, Member, Told};
use crate::context::Lp;
use crate::over_ranks::Ending;
use crate::ranks::exchange::Exchange;
use crate::run::{Crew, Effort};
use crate::share::Share;
use crate::statistics::{Line, Observer};

/// Words of [`Told`].
const WORDS: usize = 8;

/// Runs the part of this rank, if it has one, to the end.
pub(crate) fn run<L: Lp>(
    crew: &Crew<'_>,
    share: Option<Share<L>>,
    observer: &mut dyn Observer,
) -> (Option<Share<L>>, Ending) {
    let ranks = crew.options.ranks;
    let parts = crew.partition.parts();
    let exchange = Exchange::among(ranks, parts, WORDS);
    let (Some(exchange), Some(share)) = (exchange, share) else { return (None, Ending::default()) };
    let floor = OverRanks {
        exchange,
        own: ranks.own(),
        parts,
        out: (0..parts).map(|_| Vec::new()).collect(),
        bytes: vec![Vec::new(); parts],
        mail: Vec::new(),
        given: Vec::new(),
        lines: Vec::new(),
    };
    let observer = ranks.is_first().then_some(observer);
    let Member { mut worker, rounds, .. } =
        Member::new(crew, floor, ranks.own(), share).work(observer);
    let mut effort = Effort::default();
    effort.add_setbacks(worker.setbacks());
    let ending = Ending {
        fault: worker.fault.take(),
        handled: worker.counts.handled,
        undone: worker.counts.undone,
        rollbacks: worker.counts.rollbacks,
        setbacks: effort.setbacks,
        undo_records: worker.history.log.changes(),
        meetings: rounds,
        ..Ending::default()
    };
    (Some(worker.into_share()), ending)
}

/// What this rank has of the others, and for them.
struct OverRanks<M> {
    exchange: Exchange,
    own: usize,
    parts: usize,
    /// What is sent to each other rank at the next meeting.
    out: Vec<Vec<Envelope<M>>>,
    /// The same as bytes.
    bytes: Vec<Vec<u8>>,
    /// What was sent here.
    mail: Vec<Envelope<M>>,
    /// Lines for the first rank that go with the next meeting.
    given: Vec<Line>,
    /// Lines that are not told yet; the others' come to the first rank.
    lines: Vec<Line>,
}

impl<M: Wire> OverRanks<M> {
    fn exchange(&mut self, words: &[u64; WORDS]) {
        for (to, (bytes, out)) in self.bytes.iter_mut().zip(&mut self.out).enumerate() {
            bytes.clear();
            let lines: &[Line] = if to == 0 { &self.given } else { &[] };
            if !out.is_empty() || !lines.is_empty() {
                put(out, bytes).expect("what LPs send can be written as bytes");
                put(&lines, bytes).expect("lines can be written as bytes");
                out.clear();
            }
        }
        self.given.clear();
        self.exchange.meet(words, |rank| &self.bytes[rank]);
        for from in 0..self.parts {
            let mut bytes = self.exchange.inbox(from);
            if !bytes.is_empty() {
                let mail: Vec<Envelope<M>> = take(&mut bytes).expect("another rank wrote mail");
                let lines: Vec<Line> = take(&mut bytes).expect("another rank wrote lines");
                self.mail.extend(mail);
                self.lines.extend(lines);
            }
        }
    }

    /// What `part` told at the last meeting.
    fn told(&self, part: usize) -> Told {
        let words = self.exchange.told(part);
        let [next, handled, undone, crowded, fault, output, committed, rollbacks] =
            *words.first_chunk::<WORDS>().expect("every part tells as many words");
        let crowded = crowded != 0;
        Told { next, handled, undone, crowded, fault, output, committed, rollbacks }
    }
}

impl<M: Wire> Floor<M> for OverRanks<M> {
    fn send(&mut self, out: &mut [Vec<Envelope<M>>]) {
        for (all, out) in self.out.iter_mut().zip(out) {
            all.append(out);
        }
    }

    fn receive(&mut self, inbox: &mut Vec<Envelope<M>>) {
        inbox.append(&mut self.mail);
    }

    fn meet(&mut self, told: &Told) {
        let Told { next, handled, undone, crowded, fault, output, committed, rollbacks } = *told;
        let crowded = u64::from(crowded);
        self.exchange(&[next, handled, undone, crowded, fault, output, committed, rollbacks]);
    }

    fn agreed(&self) -> Agreed {
        let told = (0..self.parts).map(|part| self.told(part));
        told.fold(Agreed::NOTHING, |agreed, told| agreed.and(&told))
    }

    fn progress(&self) -> (u64, u64) {
        let told = (0..self.parts).map(|part| self.told(part));
        told.fold((0, 0), |(events, rollbacks), told| {
            (events + told.committed, rollbacks + told.rollbacks)
        })
    }

    fn give(&mut self, lines: &mut Vec<Line>) {
        let place = if self.own == 0 { &mut self.lines } else { &mut self.given };
        place.append(lines);
    }

    fn part(&mut self) {
        self.exchange(&[0; WORDS]);
    }

    fn lines(&mut self, each: impl FnOnce(&mut Vec<Line>)) {
        each(&mut self.lines);
    }
}
