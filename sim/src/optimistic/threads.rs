//! Threads that find each other's events in memory.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::worker::Envelope;
use super::{Agreed, Floor, Member, Told};
use crate::context::Lp;
use crate::fault::{Fault, RunError};
use crate::meeting::Meeting;
use crate::run::{Crew, Effort};
use crate::share::Share;
use crate::statistics::{Line, Observer};

/// What one part tells the others, in cache lines of its own, by the parity of the meeting.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Notice {
    next: [AtomicU64; 2],
    handled: [AtomicU64; 2],
    undone: [AtomicU64; 2],
    crowded: [AtomicBool; 2],
    fault: [AtomicU64; 2],
    output: [AtomicU64; 2],
    committed: AtomicU64,
    rollbacks: AtomicU64,
}

struct Hall<M> {
    meeting: Meeting,
    notices: Vec<Notice>,
    mail: Vec<Mutex<Vec<Envelope<M>>>>,
    has_mail: Vec<AtomicBool>,
    /// Whether somebody wants to agree on GVT.
    asked: AtomicBool,
    lines: Mutex<Vec<Line>>,
}

/// Runs `shares` to the end.
pub(crate) fn run<L: Lp>(
    crew: &Crew<'_>,
    shares: Vec<Share<L>>,
    observer: &mut dyn Observer,
    effort: &mut Effort,
) -> Result<Vec<Share<L>>, RunError> {
    let parts = shares.len();
    let hall = Hall {
        meeting: Meeting::new(parts),
        notices: (0..parts).map(|_| Notice::default()).collect(),
        mail: (0..parts).map(|_| Mutex::default()).collect(),
        has_mail: (0..parts).map(|_| AtomicBool::new(false)).collect(),
        asked: AtomicBool::new(false),
        lines: Mutex::default(),
    };
    let member =
        |part, share| Member::new(crew, InMemory { hall: &hall, part, parity: 1 }, part, share);
    let mut shares = shares.into_iter();
    let first = shares.next();
    let left: Vec<Member<'_, L, _>> = std::thread::scope(|scope| {
        let others: Vec<_> = shares
            .enumerate()
            .map(|(part, share)| {
                let member = &member;
                scope.spawn(move || member(part + 1, share).work(None))
            })
            .collect();
        let own = first.map(|share| member(0, share).work(Some(observer)));
        let others = others.into_iter().map(|other| other.join().expect("handlers are caught"));
        own.into_iter().chain(others).collect()
    });
    let mut shares = Vec::new();
    let mut fault: Option<Box<Fault>> = None;
    for member in left {
        let mut worker = member.worker;
        effort.add_handled("optimistic", worker.counts.handled);
        effort.undone += worker.counts.undone;
        effort.rollbacks += worker.counts.rollbacks;
        effort.add_setbacks(worker.setbacks());
        effort.undo_records += worker.history.log.changes();
        effort.meetings = effort.meetings.max(member.rounds);
        fault = [fault, worker.fault.take()].into_iter().flatten().min_by_key(|fault| fault.key);
        shares.push(worker.into_share());
    }
    effort.threads_used = effort.threads_used.max(parts);
    fault.map_or(Ok(shares), |fault| Err(RunError::Fault(fault)))
}

/// The hall as one thread sees it.
struct InMemory<'a, M> {
    hall: &'a Hall<M>,
    part: usize,
    /// Of the last meeting.
    parity: usize,
}

impl<M> Floor<M> for InMemory<'_, M> {
    fn send(&mut self, out: &mut [Vec<Envelope<M>>]) {
        for (part, out) in out.iter_mut().enumerate() {
            if !out.is_empty() {
                let mail = &self.hall.mail[part];
                mail.lock().unwrap_or_else(PoisonError::into_inner).append(out);
                self.hall.has_mail[part].store(true, Ordering::Release);
            }
        }
    }

    fn receive(&mut self, inbox: &mut Vec<Envelope<M>>) {
        if self.hall.has_mail[self.part].load(Ordering::Acquire) {
            let mut mail = self.hall.mail[self.part].lock().unwrap_or_else(PoisonError::into_inner);
            self.hall.has_mail[self.part].store(false, Ordering::Release);
            std::mem::swap(&mut *mail, inbox);
        }
    }

    fn ask(&self) {
        self.hall.asked.store(true, Ordering::Relaxed);
    }

    fn asked(&self) -> bool {
        self.hall.asked.load(Ordering::Relaxed)
    }

    fn meet(&mut self, told: &Told) {
        self.parity ^= 1;
        let parity = self.parity;
        let notice = &self.hall.notices[self.part];
        notice.next[parity].store(told.next, Ordering::Release);
        notice.handled[parity].store(told.handled, Ordering::Release);
        notice.undone[parity].store(told.undone, Ordering::Release);
        notice.crowded[parity].store(told.crowded, Ordering::Release);
        notice.fault[parity].store(told.fault, Ordering::Release);
        notice.output[parity].store(told.output, Ordering::Release);
        notice.committed.store(told.committed, Ordering::Relaxed);
        notice.rollbacks.store(told.rollbacks, Ordering::Relaxed);
        self.hall.asked.store(false, Ordering::Relaxed);
        self.hall.meeting.wait();
    }

    fn agreed(&self) -> Agreed {
        let parity = self.parity;
        let mut agreed = Agreed::NOTHING;
        for notice in &self.hall.notices {
            let told = Told {
                next: notice.next[parity].load(Ordering::Acquire),
                handled: notice.handled[parity].load(Ordering::Acquire),
                undone: notice.undone[parity].load(Ordering::Acquire),
                crowded: notice.crowded[parity].load(Ordering::Acquire),
                fault: notice.fault[parity].load(Ordering::Acquire),
                output: notice.output[parity].load(Ordering::Acquire),
                committed: 0,
                rollbacks: 0,
            };
            agreed = agreed.and(&told);
        }
        agreed
    }

    fn progress(&self) -> (u64, u64) {
        let sum = |field: fn(&Notice) -> &AtomicU64| -> u64 {
            self.hall.notices.iter().map(|notice| field(notice).load(Ordering::Relaxed)).sum()
        };
        (sum(|notice| &notice.committed), sum(|notice| &notice.rollbacks))
    }

    fn give(&mut self, lines: &mut Vec<Line>) {
        self.hall.lines.lock().unwrap_or_else(PoisonError::into_inner).append(lines);
    }

    fn part(&mut self) {
        self.hall.meeting.wait();
    }

    fn lines(&mut self, each: impl FnOnce(&mut Vec<Line>)) {
        each(&mut self.hall.lines.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
