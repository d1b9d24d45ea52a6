//! Threads that meet in memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::{Floor, Left, NEVER, Told, Worker};
use crate::context::Lp;
use crate::fault::{Fault, RunError};
use crate::key::Event;
use crate::meeting::Meeting;
use crate::queue::Queue;
use crate::run::{Crew, Effort};
use crate::share::Share;
use crate::statistics::{Line, Observer};

/// What one part tells the others, in cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Notice {
    /// The time of its next event, by the parity of the window.
    next: [AtomicU64; 2],
    /// The time of the first event that it sent to each part in this window.
    sent: Vec<[AtomicU64; 2]>,
    /// The time of the first event that went wrong. Who reads it early handles less in vain.
    fault: AtomicU64,
    handled: AtomicU64,
    busy_ns: AtomicU64,
}

/// Events on their way from one part to another, by the parity of the window.
type Mailbox<M> = [Mutex<Vec<Event<M>>>; 2];

struct Hall<M> {
    meeting: Meeting,
    notices: Vec<Notice>,
    /// From part to part, row by row.
    mail: Vec<Mailbox<M>>,
    /// Lines of all parts that are committed but not in order yet.
    lines: Mutex<Vec<Line>>,
    /// The time at which the threads part: none of them has handled anything after it.
    leave_at: AtomicU64,
}

/// Why threads parted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// No event is left up to the last instant.
    All,
    /// They mostly waited for each other.
    DoesNotPay,
}

/// Runs `shares` to the end, or until parallel work does not pay if `leave_below` says how many
/// busy threads are too few.
pub(crate) fn run<L: Lp>(
    crew: &Crew<'_>,
    shares: Vec<Share<L>>,
    observer: &mut dyn Observer,
    effort: &mut Effort,
    leave_below: Option<f64>,
) -> Result<(Vec<Share<L>>, End), RunError> {
    let parts = shares.len();
    let hall = Hall {
        meeting: Meeting::new(parts),
        notices: (0..parts).map(|_| Notice::new(parts)).collect(),
        mail: (0..parts * parts).map(|_| [Mutex::default(), Mutex::default()]).collect(),
        lines: Mutex::default(),
        leave_at: AtomicU64::new(NEVER),
    };
    let worker = |part, share| {
        let floor = InMemory { hall: &hall, part, parity: 1 };
        Worker::new(crew, floor, part, share)
    };
    let mut shares = shares.into_iter();
    let first = shares.next().into_iter();
    let left: Vec<Left<L>> = std::thread::scope(|scope| {
        let others: Vec<_> = shares
            .enumerate()
            .map(|(part, share)| {
                let worker = worker(part + 1, share);
                scope.spawn(move || worker.work(None, None))
            })
            .collect();
        let own = first.map(|share| worker(0, share).work(Some(observer), leave_below));
        let own: Vec<_> = own.collect();
        let others = others.into_iter().map(|other| other.join().expect("handlers are caught"));
        own.into_iter().chain(others).collect()
    });
    effort.threads_used = effort.threads_used.max(parts);
    effort.meetings += left.first().map_or(0, |left| left.windows);
    effort.add_handled("conservative", left.iter().map(|left| left.handled).sum());
    let mut shares = Vec::new();
    let mut fault: Option<Box<Fault>> = None;
    for left in left {
        shares.push(left.share);
        fault = [fault, left.fault].into_iter().flatten().min_by_key(|fault| fault.key);
    }
    let left_early = hall.leave_at.load(Ordering::Relaxed) != NEVER;
    let end = if left_early { End::DoesNotPay } else { End::All };
    fault.map_or(Ok((shares, end)), |fault| Err(RunError::Fault(fault)))
}

impl Notice {
    fn new(parts: usize) -> Self {
        let never = || [AtomicU64::new(NEVER), AtomicU64::new(NEVER)];
        Self {
            next: never(),
            sent: (0..parts).map(|_| never()).collect(),
            fault: AtomicU64::new(NEVER),
            handled: AtomicU64::new(0),
            busy_ns: AtomicU64::new(0),
        }
    }
}

/// The hall as one thread sees it.
struct InMemory<'a, M> {
    hall: &'a Hall<M>,
    part: usize,
    /// Of the last meeting.
    parity: usize,
}

impl<M> Floor<M> for InMemory<'_, M> {
    fn meet(&mut self, told: Told<'_, M>) {
        self.parity ^= 1;
        let parity = self.parity;
        let parts = told.out.len();
        let notice = &self.hall.notices[self.part];
        for (to, (first_out, out)) in told.first_out.iter_mut().zip(told.out).enumerate() {
            notice.sent[to][parity].store(*first_out, Ordering::Release);
            if *first_out != NEVER {
                *first_out = NEVER;
                let slot = &self.hall.mail[self.part * parts + to][parity];
                let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
                std::mem::swap(&mut *slot, out);
            }
        }
        notice.next[parity].store(told.next, Ordering::Release);
        notice.fault.store(told.fault, Ordering::Release);
        notice.handled.store(told.handled, Ordering::Relaxed);
        notice.busy_ns.store(told.busy_ns, Ordering::Relaxed);
        if !told.lines.is_empty() {
            let mut lines = self.hall.lines.lock().unwrap_or_else(PoisonError::into_inner);
            lines.append(told.lines);
        }
        self.hall.meeting.wait();
    }

    fn next(&self, part: usize) -> u64 {
        self.hall.notices[part].next[self.parity].load(Ordering::Acquire)
    }

    fn sent(&self, from: usize, to: usize) -> u64 {
        self.hall.notices[from].sent[to][self.parity].load(Ordering::Acquire)
    }

    fn fault(&self, part: usize) -> u64 {
        self.hall.notices[part].fault.load(Ordering::Acquire)
    }

    fn handled(&self) -> u64 {
        self.hall.notices.iter().map(|notice| notice.handled.load(Ordering::Relaxed)).sum()
    }

    fn busy_ns(&self) -> u64 {
        self.hall.notices.iter().map(|notice| notice.busy_ns.load(Ordering::Relaxed)).sum()
    }

    fn take_mail(&mut self, queue: &mut Queue<M>) {
        let parts = self.hall.notices.len();
        for from in 0..parts {
            if self.sent(from, self.part) == NEVER {
                continue;
            }
            let slot = &self.hall.mail[from * parts + self.part][self.parity];
            let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
            for event in slot.drain(..) {
                queue.push(event);
            }
        }
    }

    fn lines(&mut self, each: impl FnOnce(&mut Vec<Line>)) {
        each(&mut self.hall.lines.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn leave(&mut self, at: u64) {
        self.hall.leave_at.store(at, Ordering::Release);
    }

    fn leave_at(&self) -> u64 {
        self.hall.leave_at.load(Ordering::Acquire)
    }
}
