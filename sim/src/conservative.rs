//! Threads that handle only what nobody can influence any more.
//!
//! Each part tells when its next event is; from that and the least delay of the links that leave each
//! part, every thread knows up to where nothing of one part can reach another, and handles its events
//! so far. Then the threads meet, take what was sent to them, and go on. The delays are those of the
//! declared links: nobody guesses a lookahead.
//!
//! All parts go to the same instant. A part could often go further alone, since what it sends comes
//! back even later; but then the parts take long windows in turn, and each waits for the other's.
//!
//! Cost: one meeting a window, a few hundred ns with a core for each thread; an event to another part
//! is written once more, into a list that only its sender touches within a window.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use meikyo_units::{Nanos, SimTime};

use crate::context::Lp;
use crate::direct::{Away, Direct};
use crate::fault::{Fault, Problem, RunError};
use crate::key::{Event, EventKey, LpId};
use crate::meeting::Meeting;
use crate::run::{Crew, Effort};
use crate::share::{self, Share};
use crate::statistics::{Line, Observer, Origin, Progress};

/// LPs of coming events that are brought into the cache beforehand.
const AHEAD: usize = 6;
/// One window in so many is timed.
const TIMED: u64 = 8;
/// How long threads may work before they are judged.
const JUDGE: Duration = Duration::from_millis(20);
/// Time between two tellings of progress.
const TELL: Duration = Duration::from_millis(250);
/// No event.
const NEVER: u64 = u64::MAX;

/// What one part tells the others, in cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Notice {
    /// The time of its next event, by the parity of the window.
    next: [AtomicU64; 2],
    /// The time of the first event that it sent to each part in this window.
    sent: Vec<[AtomicU64; 2]>,
    /// The time of the first event that went wrong.
    fault: AtomicU64,
    handled: AtomicU64,
    /// How long it handled events in the windows that are timed.
    busy_ns: AtomicU64,
}

/// Events on their way from one part to another, by the parity of the window.
type Mailbox<M> = [Mutex<Vec<Event<M>>>; 2];

struct Hall<'a, M> {
    crew: &'a Crew<'a>,
    meeting: Meeting,
    notices: Vec<Notice>,
    /// From part to part, row by row.
    mail: Vec<Mailbox<M>>,
    /// Lines of all parts that are committed but not in order yet.
    lines: Mutex<Vec<Line>>,
    /// The time at which the threads part: none of them has handled anything after it.
    leave_at: AtomicU64,
}

/// What became of one part.
struct Left<L: Lp> {
    share: Share<L>,
    fault: Option<Box<Fault>>,
    windows: u64,
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
        crew,
        meeting: Meeting::new(parts),
        notices: (0..parts).map(|_| Notice::new(parts)).collect(),
        mail: (0..parts * parts).map(|_| [Mutex::default(), Mutex::default()]).collect(),
        lines: Mutex::default(),
        leave_at: AtomicU64::new(NEVER),
    };
    let mut shares = shares.into_iter();
    let first = shares.next().into_iter();
    let left: Vec<Left<L>> = std::thread::scope(|scope| {
        let others: Vec<_> = shares
            .enumerate()
            .map(|(part, share)| {
                let hall = &hall;
                scope.spawn(move || Worker::new(hall, part + 1, share).work(None, None))
            })
            .collect();
        let own = first.map(|share| Worker::new(&hall, 0, share).work(Some(observer), leave_below));
        let own: Vec<_> = own.collect();
        let others = others.into_iter().map(|other| other.join().expect("handlers are caught"));
        own.into_iter().chain(others).collect()
    });
    effort.handled += hall.notices.iter().map(|n| n.handled.load(Ordering::Relaxed)).sum::<u64>();
    effort.threads_used = effort.threads_used.max(parts);
    effort.meetings += left.first().map_or(0, |left| left.windows);
    effort.scheduler = "conservative";
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

struct Worker<'a, L: Lp> {
    hall: &'a Hall<'a, L::Message>,
    part: usize,
    share: Share<L>,
    out: Vec<Vec<Event<L::Message>>>,
    /// The time of the first event of `out`, for each part.
    first_out: Vec<u64>,
    fault: Option<Box<Fault>>,
    windows: u64,
}

/// What all threads know after a meeting.
struct Agreed {
    /// Every event before this time is handled.
    before: u64,
    /// Nothing of one part reaches another before this time.
    horizon: u64,
    /// The first fault's time.
    fault: u64,
}

impl<'a, L: Lp> Worker<'a, L> {
    fn new(hall: &'a Hall<'a, L::Message>, part: usize, share: Share<L>) -> Self {
        let parts = hall.notices.len();
        Self {
            hall,
            part,
            share,
            out: (0..parts).map(|_| Vec::new()).collect(),
            first_out: vec![NEVER; parts],
            fault: None,
            windows: 0,
        }
    }

    fn work(mut self, observer: Option<&mut dyn Observer>, leave_below: Option<f64>) -> Left<L> {
        let mut chair = observer.map(|observer| Chair::new(observer, leave_below));
        let last = self.hall.crew.options.until.as_nanos();
        loop {
            let parity = usize::from(self.windows % 2 == 1);
            self.tell(parity);
            self.hall.meeting.wait();
            let agreed = self.agree(parity);
            self.windows += 1;
            if let Some(chair) = &mut chair {
                chair.preside(self.hall, &agreed, self.windows);
            }
            let leave_at = self.hall.leave_at.load(Ordering::Acquire);
            self.take_mail(parity);
            if agreed.before > last.min(agreed.fault) || agreed.before >= leave_at {
                break;
            }
            let end = last.min(agreed.fault).saturating_add(1);
            let limit = agreed.horizon.min(end).min(leave_at);
            let timed = self.windows.is_multiple_of(TIMED);
            let start = timed.then(now);
            self.window(limit);
            if let Some(start) = start {
                let busy = u64::try_from(start.elapsed().as_nanos()).unwrap_or(NEVER);
                self.hall.notices[self.part].busy_ns.fetch_add(busy, Ordering::Relaxed);
            }
        }
        Left { share: self.share, fault: self.fault, windows: self.windows }
    }

    /// Hands over what was sent, and says when this part's next event is.
    fn tell(&mut self, parity: usize) {
        let parts = self.out.len();
        let notice = &self.hall.notices[self.part];
        for to in 0..parts {
            notice.sent[to][parity].store(self.first_out[to], Ordering::Release);
            if self.first_out[to] != NEVER {
                self.first_out[to] = NEVER;
                let slot = &self.hall.mail[self.part * parts + to][parity];
                let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
                std::mem::swap(&mut *slot, &mut self.out[to]);
            }
        }
        let next = match &self.fault {
            Some(_) => NEVER,
            None => self.share.queue.next_key().map_or(NEVER, |key| key.time.as_nanos()),
        };
        notice.next[parity].store(next, Ordering::Release);
        if !self.share.ledger.lines.is_empty() {
            let mut lines = self.hall.lines.lock().unwrap_or_else(PoisonError::into_inner);
            lines.append(&mut self.share.ledger.lines);
        }
    }

    fn agree(&self, parity: usize) -> Agreed {
        let hall = self.hall;
        let mut agreed = Agreed { before: NEVER, horizon: NEVER, fault: NEVER };
        for (part, notice) in hall.notices.iter().enumerate() {
            let coming = hall.notices.iter().map(|n| n.sent[part][parity].load(Ordering::Acquire));
            let own = notice.next[parity].load(Ordering::Acquire);
            let next = coming.fold(own, u64::min);
            let reach = next.saturating_add(hall.crew.partition.reach(part));
            agreed.before = agreed.before.min(next);
            agreed.horizon = agreed.horizon.min(reach);
            agreed.fault = agreed.fault.min(notice.fault.load(Ordering::Acquire));
        }
        agreed
    }

    fn take_mail(&mut self, parity: usize) {
        let parts = self.out.len();
        for from in 0..parts {
            if self.hall.notices[from].sent[self.part][parity].load(Ordering::Acquire) == NEVER {
                continue;
            }
            let slot = &self.hall.mail[from * parts + self.part][parity];
            let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
            for event in slot.drain(..) {
                self.share.queue.push(event);
            }
        }
    }

    /// Handles this part's events before `limit`.
    fn window(&mut self, limit: u64) {
        if self.fault.is_some() {
            return;
        }
        let mut at: Option<(EventKey, LpId)> = None;
        let window = catch_unwind(AssertUnwindSafe(|| self.events(limit, &mut at)));
        let problem = match window {
            Ok(None) => return,
            Ok(Some(problem)) => *problem,
            Err(payload) => Problem::Panicked { message: share::panic_message(payload.as_ref()) },
        };
        let (key, lp) = at.expect("only an event goes wrong");
        self.fault = Some(share::fault(self.hall.crew.rules, lp, Some(key), problem));
        self.hall.notices[self.part].fault.store(key.time.as_nanos(), Ordering::Release);
    }

    fn events(&mut self, limit: u64, at: &mut Option<(EventKey, LpId)>) -> Option<Box<Problem>> {
        let crew = self.hall.crew;
        let rules = crew.rules;
        let mut handled = 0;
        let mut problem = None;
        let share = &mut self.share;
        while let Some(event) = share.queue.pop_before(limit) {
            if let Some(coming) = share.queue.ahead(AHEAD) {
                let seat = share.layout.seat(rules, coming.destination);
                std::hint::black_box(share.slots[seat.local].counters.sent);
            }
            let (key, lp) = (event.key(), event.destination);
            *at = Some((key, lp));
            let seat = share.layout.seat(rules, lp);
            let mut port = Direct {
                queue: &mut share.queue,
                ledger: &mut share.ledger,
                origin: Origin { key, lp, member: seat.member },
                problem: None,
                away: Outward {
                    crew,
                    part: self.part,
                    out: &mut self.out,
                    first_out: &mut self.first_out,
                },
            };
            share::handle(rules, &mut share.slots[seat.local], seat.group, event, &mut port);
            if port.problem.is_some() {
                problem = port.problem;
                break;
            }
            if rules.traced {
                share.ledger.trace(seat.local, &key);
            }
            handled += 1;
        }
        self.hall.notices[self.part].handled.fetch_add(handled, Ordering::Relaxed);
        problem
    }
}

/// The way to other parts.
struct Outward<'a, M> {
    crew: &'a Crew<'a>,
    part: usize,
    out: &'a mut [Vec<Event<M>>],
    first_out: &'a mut [u64],
}

impl<M> Away<M> for Outward<'_, M> {
    fn take(&mut self, event: Event<M>) -> Option<Event<M>> {
        let group = self.crew.rules.group_of(event.destination);
        let part = self.crew.partition.part_of(group, event.destination);
        if part == self.part {
            return Some(event);
        }
        let first = &mut self.first_out[part];
        *first = (*first).min(event.time());
        self.out[part].push(event);
        None
    }
}

/// The thread that speaks for all.
struct Chair<'a> {
    observer: &'a mut dyn Observer,
    leave_below: Option<f64>,
    started: Instant,
    told: Instant,
    /// When the window began that is timed.
    timing: Option<Instant>,
    timed_ns: u64,
}

impl<'a> Chair<'a> {
    fn new(observer: &'a mut dyn Observer, leave_below: Option<f64>) -> Self {
        let started = now();
        Self { observer, leave_below, started, told: started, timing: None, timed_ns: 0 }
    }

    fn preside<M>(&mut self, hall: &Hall<'_, M>, agreed: &Agreed, window: u64) {
        self.hand_lines_over(hall, agreed.before);
        if let Some(start) = self.timing.take() {
            self.timed_ns += u64::try_from(start.elapsed().as_nanos()).unwrap_or(NEVER);
            self.judge(hall, agreed);
        }
        if window.is_multiple_of(TIMED) {
            let now = now();
            self.timing = Some(now);
            if now.duration_since(self.told) >= TELL {
                self.told = now;
                let handled = |n: &Notice| n.handled.load(Ordering::Relaxed);
                let events = hall.notices.iter().map(handled).sum();
                self.observer.progress(&Progress {
                    virtual_time: SimTime::from_nanos(agreed.before),
                    events,
                    handled: events,
                    rollbacks: 0,
                    gvt_lag: Nanos::ZERO,
                });
            }
        }
    }

    /// Ends parallel work when the threads mostly wait for each other.
    #[expect(clippy::cast_precision_loss, reason = "a ratio of spans")]
    fn judge<M>(&mut self, hall: &Hall<'_, M>, agreed: &Agreed) {
        let Some(least) = self.leave_below else { return };
        if self.started.elapsed() < JUDGE {
            return;
        }
        let busy = hall.notices.iter().map(|n| n.busy_ns.load(Ordering::Relaxed)).sum::<u64>();
        if (busy as f64) < least * self.timed_ns as f64 {
            self.leave_below = None;
            hall.leave_at.store(agreed.horizon, Ordering::Release);
        }
    }

    fn hand_lines_over<M>(&mut self, hall: &Hall<'_, M>, before: u64) {
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

#[expect(clippy::disallowed_methods, reason = "threads are judged by the time that passes")]
fn now() -> Instant {
    Instant::now()
}
