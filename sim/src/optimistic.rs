//! Time Warp (Jefferson 1985): threads run ahead, and take back what came too early.
//!
//! Every thread handles its own events in the order of their keys without asking whether an earlier
//! one is still on its way. When one arrives, the LP's later events are taken back from the undo log,
//! the events they had sent are followed by anti-messages, and all is done again in the right order.
//! From time to time the threads meet, deliver everything, and agree on the global virtual time (GVT):
//! nothing before it can be taken back, so it is committed and forgotten.
//!
//! How far a thread may run ahead of GVT follows from what is taken back: the span grows while nearly
//! everything is kept and shrinks when it is not, or when the memory given to speculation is used up.
//! At its smallest it is the least delay between the parts, and then nothing is taken back at all.
//!
//! Cost, against the sequential scheduler: a record of about 200 bytes an event, written and read
//! once while it is in the cache; 16 bytes for each changed field; the message once more.

mod history;
mod worker;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use meikyo_units::{Nanos, SimTime};

use self::worker::{Envelope, Worker};
use crate::context::Lp;
use crate::fault::{Fault, RunError};
use crate::meeting::Meeting;
use crate::rules::NO_LINK;
use crate::run::{Crew, Effort};
use crate::share::Share;
use crate::statistics::{Line, Observer, Progress};

/// Events between two looks into the mailbox.
const BATCH: usize = 64;
/// Events of one part after which the parts agree on GVT.
const ROUND: usize = 512;
/// Time between two tellings of progress.
const TELL: Duration = Duration::from_millis(250);
const NEVER: u64 = u64::MAX;

/// What one part tells the others, in cache lines of its own, by the parity of the meeting.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Notice {
    /// The time of its next event, or of the first that it sent since the meeting before.
    next: [AtomicU64; 2],
    handled: [AtomicU64; 2],
    undone: [AtomicU64; 2],
    crowded: [AtomicBool; 2],
    fault: [AtomicU64; 2],
    /// Before this time everything that was given out is in the hall, if GVT was beyond it.
    told: [AtomicU64; 2],
    committed: AtomicU64,
    rollbacks: AtomicU64,
}

struct Hall<'a, M> {
    crew: &'a Crew<'a>,
    meeting: Meeting,
    notices: Vec<Notice>,
    mail: Vec<Mutex<Vec<Envelope<M>>>>,
    has_mail: Vec<AtomicBool>,
    /// Whether somebody wants to agree on GVT.
    wanted: AtomicBool,
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
        crew,
        meeting: Meeting::new(parts),
        notices: (0..parts).map(|_| Notice::default()).collect(),
        mail: (0..parts).map(|_| Mutex::default()).collect(),
        has_mail: (0..parts).map(|_| AtomicBool::new(false)).collect(),
        wanted: AtomicBool::new(false),
        lines: Mutex::default(),
    };
    let mut shares = shares.into_iter();
    let first = shares.next();
    let left: Vec<Member<'_, L>> = std::thread::scope(|scope| {
        let others: Vec<_> = shares
            .enumerate()
            .map(|(part, share)| {
                let hall = &hall;
                scope.spawn(move || Member::new(hall, part + 1, share).work(None))
            })
            .collect();
        let own = first.map(|share| Member::new(&hall, 0, share).work(Some(observer)));
        let others = others.into_iter().map(|other| other.join().expect("handlers are caught"));
        own.into_iter().chain(others).collect()
    });
    let mut shares = Vec::new();
    let mut fault: Option<Box<Fault>> = None;
    for member in left {
        let mut worker = member.worker;
        effort.handled += worker.counts.handled;
        effort.undone += worker.counts.undone;
        effort.rollbacks += worker.counts.rollbacks;
        effort.add_setbacks(worker.setbacks());
        effort.undo_records += worker.history.log.changes();
        effort.meetings = effort.meetings.max(member.rounds);
        fault = [fault, worker.fault.take()].into_iter().flatten().min_by_key(|fault| fault.key);
        shares.push(worker.into_share());
    }
    effort.threads_used = effort.threads_used.max(parts);
    effort.scheduler = "optimistic";
    fault.map_or(Ok(shares), |fault| Err(RunError::Fault(fault)))
}

/// One thread.
struct Member<'a, L: Lp> {
    hall: &'a Hall<'a, L::Message>,
    part: usize,
    worker: Worker<'a, L>,
    /// How far this part may run ahead of GVT, in ns.
    ahead: u64,
    /// The least delay between parts.
    lookahead: u64,
    /// Bytes that this part's speculation may take.
    memory: usize,
    parity: usize,
    rounds: u64,
    inbox: Vec<Envelope<L::Message>>,
    /// The time of the first event or anti-message that was sent since the last meeting, in ns.
    first_sent: u64,
    told: (u64, u64),
}

/// What a round of meetings agreed on.
#[derive(Clone, Copy, Debug)]
struct Agreed {
    gvt: u64,
    fault: u64,
    handled: u64,
    undone: u64,
    crowded: bool,
    /// Before this time every line that was committed in the round before is in the hall.
    told: u64,
}

impl<'a, L: Lp> Member<'a, L> {
    fn new(hall: &'a Hall<'a, L::Message>, part: usize, share: Share<L>) -> Self {
        let crew = hall.crew;
        let parts = crew.partition.parts();
        let lookahead = (0..parts).map(|part| crew.partition.reach(part)).min().unwrap_or(0);
        let lookahead = if lookahead == NO_LINK { NEVER } else { lookahead };
        let memory = crew
            .options
            .memory_limit
            .map_or(usize::MAX, |limit| usize::try_from(limit.get()).unwrap_or(usize::MAX) / parts);
        Self {
            hall,
            part,
            worker: Worker::new(crew, part, share),
            ahead: if parts == 1 { NEVER } else { lookahead.max(1) },
            lookahead,
            memory,
            parity: 0,
            rounds: 0,
            inbox: Vec::new(),
            first_sent: NEVER,
            told: (0, 0),
        }
    }

    fn work(mut self, observer: Option<&mut dyn Observer>) -> Self {
        let mut chair = observer.map(Chair::new);
        let last = self.hall.crew.options.until.as_nanos();
        loop {
            let agreed = self.round();
            self.rounds += 1;
            self.worker.commit(agreed.gvt.min(last.saturating_add(1)));
            self.hand_lines_over();
            if let Some(chair) = &mut chair {
                chair.preside(&self, &agreed);
            }
            if agreed.gvt > last.min(agreed.fault) || agreed.gvt == NEVER {
                break;
            }
            self.adapt(&agreed);
            let limit = last.saturating_add(1);
            self.speculate(agreed.gvt.saturating_add(self.ahead).min(limit));
        }
        self.hall.meeting.wait();
        if let Some(chair) = &mut chair {
            chair.lines(self.hall, NEVER);
        }
        self
    }

    /// Runs ahead until the parts are to agree again.
    fn speculate(&mut self, horizon: u64) {
        let mut left = ROUND;
        while left > 0 {
            let done = self.worker.speculate(horizon, BATCH.min(left));
            left -= done;
            self.send();
            let opened = self.receive();
            let crowded = self.worker.history.bytes() > self.memory;
            if (done == 0 && opened == 0) || crowded || self.hall.wanted.load(Ordering::Relaxed) {
                break;
            }
        }
        self.hall.wanted.store(true, Ordering::Relaxed);
    }

    fn send(&mut self) {
        for (part, out) in self.worker.out.iter_mut().enumerate() {
            if !out.is_empty() {
                let first = out.iter().map(Envelope::time).min().unwrap_or(NEVER);
                self.first_sent = self.first_sent.min(first);
                let mail = &self.hall.mail[part];
                mail.lock().unwrap_or_else(PoisonError::into_inner).append(out);
                self.hall.has_mail[part].store(true, Ordering::Release);
            }
        }
    }

    fn receive(&mut self) -> usize {
        if !self.hall.has_mail[self.part].load(Ordering::Acquire) {
            return 0;
        }
        {
            let mut mail = self.hall.mail[self.part].lock().unwrap_or_else(PoisonError::into_inner);
            self.hall.has_mail[self.part].store(false, Ordering::Release);
            std::mem::swap(&mut *mail, &mut self.inbox);
        }
        let mut inbox = std::mem::take(&mut self.inbox);
        let opened = inbox.len();
        for envelope in inbox.drain(..) {
            self.worker.open(envelope);
        }
        self.inbox = inbox;
        opened
    }

    /// Meets the others and agrees on GVT: no event that is pending or on its way is before it, since
    /// what was sent before the last meeting has been received, and what was sent after it is told by
    /// its sender.
    fn round(&mut self) -> Agreed {
        self.send();
        self.tell();
        self.hall.meeting.wait();
        let agreed = self.read();
        self.parity ^= 1;
        self.receive();
        agreed
    }

    fn tell(&mut self) {
        let next = self.worker.next_time().unwrap_or(NEVER).min(self.first_sent);
        self.first_sent = NEVER;
        let notice = &self.hall.notices[self.part];
        let parity = self.parity;
        let counts = self.worker.counts;
        notice.next[parity].store(next, Ordering::Release);
        notice.handled[parity].store(counts.handled - self.told.0, Ordering::Release);
        notice.undone[parity].store(counts.undone - self.told.1, Ordering::Release);
        let crowded = self.worker.history.bytes() > self.memory;
        notice.crowded[parity].store(crowded, Ordering::Release);
        let fault = self.worker.fault.as_ref().map_or(NEVER, |fault| fault.time.as_nanos());
        notice.fault[parity].store(fault, Ordering::Release);
        let told = self.worker.history.first_output().unwrap_or(NEVER);
        notice.told[parity].store(told, Ordering::Release);
        notice.committed.store(counts.committed, Ordering::Relaxed);
        notice.rollbacks.store(counts.rollbacks, Ordering::Relaxed);
        self.hall.wanted.store(false, Ordering::Relaxed);
    }

    fn read(&self) -> Agreed {
        let parity = self.parity;
        let mut agreed =
            Agreed { gvt: NEVER, fault: NEVER, handled: 0, undone: 0, crowded: false, told: NEVER };
        for notice in &self.hall.notices {
            agreed.gvt = agreed.gvt.min(notice.next[parity].load(Ordering::Acquire));
            agreed.fault = agreed.fault.min(notice.fault[parity].load(Ordering::Acquire));
            agreed.told = agreed.told.min(notice.told[parity].load(Ordering::Acquire));
            agreed.handled += notice.handled[parity].load(Ordering::Acquire);
            agreed.undone += notice.undone[parity].load(Ordering::Acquire);
            agreed.crowded |= notice.crowded[parity].load(Ordering::Acquire);
        }
        agreed
    }

    /// Lets the parts run further ahead while nearly everything is kept, and less far otherwise.
    fn adapt(&mut self, agreed: &Agreed) {
        self.told = (self.worker.counts.handled, self.worker.counts.undone);
        let least = self.lookahead.max(1);
        if agreed.crowded {
            self.ahead = (self.ahead / 2).max(1);
        } else if agreed.undone * 32 > agreed.handled {
            self.ahead = (self.ahead - self.ahead / 4).max(least);
        } else if agreed.undone * 100 <= agreed.handled {
            self.ahead = self.ahead.saturating_add(self.ahead / 8 + 1);
        }
    }

    fn hand_lines_over(&mut self) {
        if !self.worker.ledger.lines.is_empty() {
            let mut lines = self.hall.lines.lock().unwrap_or_else(PoisonError::into_inner);
            lines.append(&mut self.worker.ledger.lines);
        }
    }
}

/// The thread that speaks for all.
struct Chair<'a> {
    observer: &'a mut dyn Observer,
    told: Instant,
    /// What the round before agreed on: the others have committed up to there since.
    gvt_before: u64,
}

impl<'a> Chair<'a> {
    fn new(observer: &'a mut dyn Observer) -> Self {
        Self { observer, told: now(), gvt_before: 0 }
    }

    fn preside<L: Lp>(&mut self, member: &Member<'_, L>, agreed: &Agreed) {
        let hall = member.hall;
        self.lines(hall, self.gvt_before.min(agreed.told));
        self.gvt_before = agreed.gvt;
        if member.rounds.is_multiple_of(8) && now().duration_since(self.told) >= TELL {
            self.told = now();
            let sum = |field: fn(&Notice) -> &AtomicU64| -> u64 {
                hall.notices.iter().map(|notice| field(notice).load(Ordering::Relaxed)).sum()
            };
            self.observer.progress(&Progress {
                virtual_time: SimTime::from_nanos(agreed.gvt),
                events: sum(|notice| &notice.committed),
                handled: agreed.handled,
                rollbacks: sum(|notice| &notice.rollbacks),
                gvt_lag: Nanos::new(member.ahead),
            });
        }
    }

    /// Tells the lines before `before` ns.
    fn lines<M>(&mut self, hall: &Hall<'_, M>, before: u64) {
        let mut lines = hall.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.is_empty() {
            return;
        }
        lines.sort_by_key(|line| line.key);
        let certain = lines.partition_point(|line| line.key.time.as_nanos() < before);
        if certain > 0 {
            self.observer.lines(&lines[..certain]);
            lines.drain(..certain);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "progress is told as time passes")]
fn now() -> Instant {
    Instant::now()
}
