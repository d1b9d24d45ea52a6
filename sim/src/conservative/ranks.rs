//! Ranks that meet over MPI, one part each.

use meikyo_undo::Wire;

use super::{Floor, Left, NEVER, Told, Worker};
use crate::context::Lp;
use crate::key::Event;
use crate::over_ranks::Ending;
use crate::queue::Queue;
use crate::ranks::mail::Mail;
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
    let mail = Mail::among(ranks, parts, word::SENT + parts);
    let (Some(mail), Some(share)) = (mail, share) else { return (None, Ending::default()) };
    let floor = OverRanks { mail, words: Vec::new() };
    let observer = ranks.is_first().then_some(observer);
    let worker = Worker::new(crew, floor, ranks.own(), share);
    let Left { share, fault, handled, windows } = worker.work(observer, None);
    let ending = Ending { fault, handled, meetings: windows, ..Ending::default() };
    (Some(share), ending)
}

/// What this rank has of the others.
struct OverRanks<M> {
    mail: Mail<Event<M>>,
    words: Vec<u64>,
}

impl<M: Wire> Floor<M> for OverRanks<M> {
    fn meet(&mut self, told: Told<'_, M>) {
        self.words.clear();
        self.words.extend([told.next, told.fault, told.handled, told.busy_ns]);
        self.words.extend(told.first_out.iter());
        told.first_out.fill(NEVER);
        self.mail.meet(&self.words, told.out, told.lines);
    }

    fn next(&self, part: usize) -> u64 {
        self.mail.told(part)[word::NEXT]
    }

    fn sent(&self, from: usize, to: usize) -> u64 {
        self.mail.told(from)[word::SENT + to]
    }

    fn fault(&self, part: usize) -> u64 {
        self.mail.told(part)[word::FAULT]
    }

    fn handled(&self) -> u64 {
        self.mail.parts().map(|part| self.mail.told(part)[word::HANDLED]).sum()
    }

    fn busy_ns(&self) -> u64 {
        self.mail.parts().map(|part| self.mail.told(part)[word::BUSY_NS]).sum()
    }

    fn take_mail(&mut self, queue: &mut Queue<M>) {
        self.mail.inbox.drain(..).for_each(|event| queue.push(event));
    }

    fn lines(&mut self, each: impl FnOnce(&mut Vec<Line>)) {
        each(&mut self.mail.lines);
    }
}
