//! Ranks that send each other events and anti-messages in batches, when they agree on GVT.

use meikyo_undo::Wire;

use super::worker::Envelope;
use super::{Agreed, Floor, Member, Told};
use crate::context::Lp;
use crate::over_ranks::Ending;
use crate::ranks::mail::Mail;
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
    let mail = Mail::among(ranks, parts, WORDS);
    let (Some(mail), Some(share)) = (mail, share) else { return (None, Ending::default()) };
    let out = (0..parts).map(|_| Vec::new()).collect();
    let floor = OverRanks { mail, out, given: Vec::new() };
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
    mail: Mail<Envelope<M>>,
    /// What is sent to each other rank at the next meeting.
    out: Vec<Vec<Envelope<M>>>,
    /// Lines that go with the next meeting.
    given: Vec<Line>,
}

impl<M: Wire> OverRanks<M> {
    fn exchange(&mut self, words: &[u64; WORDS]) {
        self.mail.meet(words, &mut self.out, &mut self.given);
    }

    /// What `part` told at the last meeting.
    fn told(&self, part: usize) -> Told {
        let words = self.mail.told(part);
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
        inbox.append(&mut self.mail.inbox);
    }

    fn meet(&mut self, told: &Told) {
        let Told { next, handled, undone, crowded, fault, output, committed, rollbacks } = *told;
        let crowded = u64::from(crowded);
        self.exchange(&[next, handled, undone, crowded, fault, output, committed, rollbacks]);
    }

    fn agreed(&self) -> Agreed {
        let told = self.mail.parts().map(|part| self.told(part));
        told.fold(Agreed::NOTHING, |agreed, told| agreed.and(&told))
    }

    fn progress(&self) -> (u64, u64) {
        let told = self.mail.parts().map(|part| self.told(part));
        told.fold((0, 0), |(events, rollbacks), told| {
            (events + told.committed, rollbacks + told.rollbacks)
        })
    }

    fn give(&mut self, lines: &mut Vec<Line>) {
        self.given.append(lines);
    }

    fn part(&mut self) {
        self.exchange(&[0; WORDS]);
    }

    fn lines(&mut self, each: impl FnOnce(&mut Vec<Line>)) {
        each(&mut self.mail.lines);
    }
}
