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
//! Where parts meet is a [`Floor`]: that of threads is in memory, that of ranks is messages.
//!
//! Cost: one meeting a window, a few hundred ns with a core for each thread; an event to another part
//! is written once more, into a list that only its sender touches within a window.

#[cfg(feature = "mpi")]
mod ranks;
mod threads;

use std::time::{Duration, Instant};

use meikyo_units::{Nanos, SimTime};

use crate::context::Lp;
use crate::direct::{self, Away, Stretch};
use crate::fault::{Fault, Problem};
use crate::key::{Event, EventKey, LpId};
use crate::panics::{self, Handling};
use crate::queue::Queue;
use crate::run::Crew;
use crate::share::{self, Share};
use crate::statistics::{Line, Observer, Progress};
use crate::telling::{TELL, now, tell_lines};

#[cfg(feature = "mpi")]
pub(crate) use ranks::run as run_part;
pub(crate) use threads::{End, run};

/// One window in so many is timed.
const TIMED: u64 = 8;
/// How long threads may work before they are judged.
const JUDGE: Duration = Duration::from_millis(20);
/// No event.
const NEVER: u64 = u64::MAX;

/// Where the parts of a run meet after every window, as one of them sees it.
///
/// What it says of the parts is what they told at the last meeting.
trait Floor<M> {
    /// Tells the others and hands over what was sent, then waits until all have done so.
    fn meet(&mut self, told: Told<'_, M>);
    /// The time of the next event of `part`, of those that it had itself.
    fn next(&self, part: usize) -> u64;
    /// The time of the first event that went from one part to another.
    fn sent(&self, from: usize, to: usize) -> u64;
    /// The time of the first event of `part` that went wrong.
    fn fault(&self, part: usize) -> u64;
    /// Events that all parts have handled.
    fn handled(&self) -> u64;
    /// How long all parts handled events in the windows that are timed.
    fn busy_ns(&self) -> u64;
    /// Takes the events that were sent here.
    fn take_mail(&mut self, queue: &mut Queue<M>);
    /// Calls `each` with the lines of all parts that are not told yet.
    fn lines(&mut self, each: impl FnOnce(&mut Vec<Line>));
    /// Lets the parts leave at a time after which none of them has handled anything, where they can.
    fn leave(&mut self, _at: u64) {}
    /// The time at which the parts leave.
    fn leave_at(&self) -> u64 {
        NEVER
    }
}

/// What a part tells the others when they meet; times are in ns.
struct Told<'a, M> {
    next: u64,
    fault: u64,
    handled: u64,
    busy_ns: u64,
    /// The events for each part. They are taken.
    out: &'a mut [Vec<Event<M>>],
    /// The time of the first event for each part. They are taken.
    first_out: &'a mut [u64],
    /// What is committed and not told yet. It is taken.
    lines: &'a mut Vec<Line>,
}

/// What became of one part.
struct Left<L: Lp> {
    share: Share<L>,
    fault: Option<Box<Fault>>,
    handled: u64,
    windows: u64,
}

/// One part at work.
struct Worker<'a, L: Lp, F> {
    crew: &'a Crew<'a>,
    floor: F,
    part: usize,
    share: Share<L>,
    out: Vec<Vec<Event<L::Message>>>,
    /// The time of the first event of `out`, for each part.
    first_out: Vec<u64>,
    fault: Option<Box<Fault>>,
    handled: u64,
    busy_ns: u64,
    windows: u64,
}

/// What all parts know after a meeting.
struct Agreed {
    /// Every event before this time is handled.
    before: u64,
    /// Nothing of one part reaches another before this time.
    horizon: u64,
    /// The first fault's time.
    fault: u64,
}

impl<'a, L: Lp, F: Floor<L::Message>> Worker<'a, L, F> {
    fn new(crew: &'a Crew<'a>, floor: F, part: usize, share: Share<L>) -> Self {
        let parts = crew.partition.parts();
        Self {
            crew,
            floor,
            part,
            share,
            out: (0..parts).map(|_| Vec::new()).collect(),
            first_out: vec![NEVER; parts],
            fault: None,
            handled: 0,
            busy_ns: 0,
            windows: 0,
        }
    }

    fn work(mut self, observer: Option<&mut dyn Observer>, leave_below: Option<f64>) -> Left<L> {
        let mut chair = observer.map(|observer| Chair::new(observer, leave_below));
        let last = self.crew.options.until.as_nanos();
        loop {
            self.meet();
            let agreed = self.agree();
            self.windows += 1;
            if let Some(chair) = &mut chair {
                chair.preside(&mut self.floor, &agreed, self.windows);
            }
            let leave_at = self.floor.leave_at();
            self.floor.take_mail(&mut self.share.queue);
            if agreed.before > last.min(agreed.fault) || agreed.before >= leave_at {
                break;
            }
            let end = last.min(agreed.fault).saturating_add(1);
            let limit = agreed.horizon.min(end).min(leave_at);
            let timed = self.windows.is_multiple_of(TIMED);
            let start = timed.then(now);
            self.window(limit);
            if let Some(start) = start {
                self.busy_ns += u64::try_from(start.elapsed().as_nanos()).unwrap_or(NEVER);
            }
        }
        let Self { share, fault, handled, windows, .. } = self;
        Left { share, fault, handled, windows }
    }

    /// Hands over what was sent, and says when this part's next event is.
    fn meet(&mut self) {
        let next = match &self.fault {
            Some(_) => NEVER,
            None => self.share.queue.next_key().map_or(NEVER, |key| key.time.as_nanos()),
        };
        self.floor.meet(Told {
            next,
            fault: self.fault.as_ref().map_or(NEVER, |fault| fault.time.as_nanos()),
            handled: self.handled,
            busy_ns: self.busy_ns,
            out: &mut self.out,
            first_out: &mut self.first_out,
            lines: &mut self.share.ledger.lines,
        });
    }

    fn agree(&self) -> Agreed {
        let (floor, partition) = (&self.floor, self.crew.partition);
        let parts = partition.parts();
        let mut agreed = Agreed { before: NEVER, horizon: NEVER, fault: NEVER };
        for part in 0..parts {
            let coming = (0..parts).map(|from| floor.sent(from, part));
            let next = coming.fold(floor.next(part), u64::min);
            agreed.before = agreed.before.min(next);
            agreed.horizon = agreed.horizon.min(next.saturating_add(partition.reach(part)));
            agreed.fault = agreed.fault.min(floor.fault(part));
        }
        agreed
    }

    /// Handles this part's events before `limit`.
    fn window(&mut self, limit: u64) {
        if self.fault.is_some() {
            return;
        }
        let mut at: Option<(EventKey, LpId)> = None;
        let window = panics::caught(Handling::Committed, || self.events(limit, &mut at));
        let problem = match window {
            Ok(None) => return,
            Ok(Some(problem)) => *problem,
            Err(panicked) => panicked,
        };
        let (key, lp) = at.expect("only an event goes wrong");
        self.fault = Some(share::fault(self.crew.rules, lp, Some(key), problem));
    }

    fn events(&mut self, limit: u64, at: &mut Option<(EventKey, LpId)>) -> Option<Box<Problem>> {
        let mut away = Outward {
            crew: self.crew,
            part: self.part,
            out: &mut self.out,
            first_out: &mut self.first_out,
        };
        let stretch = Stretch { before: limit, most: u64::MAX };
        let (handled, problem) =
            direct::events(self.crew.rules, &mut self.share, stretch, &mut away, at);
        self.handled += handled;
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

/// The part that speaks for all.
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

    fn preside<M>(&mut self, floor: &mut impl Floor<M>, agreed: &Agreed, window: u64) {
        floor.lines(|lines| tell_lines(self.observer, lines, agreed.before));
        if let Some(start) = self.timing.take() {
            self.timed_ns += u64::try_from(start.elapsed().as_nanos()).unwrap_or(NEVER);
            self.judge(floor, agreed);
        }
        if window.is_multiple_of(TIMED) {
            let now = now();
            self.timing = Some(now);
            if now.duration_since(self.told) >= TELL {
                self.told = now;
                let events = floor.handled();
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

    /// Ends parallel work when the parts mostly wait for each other.
    #[expect(clippy::cast_precision_loss, reason = "a ratio of spans")]
    fn judge<M>(&mut self, floor: &mut impl Floor<M>, agreed: &Agreed) {
        let Some(least) = self.leave_below else { return };
        if self.started.elapsed() < JUDGE {
            return;
        }
        if (floor.busy_ns() as f64) < least * self.timed_ns as f64 {
            self.leave_below = None;
            floor.leave(agreed.horizon);
        }
    }
}
