//! Time Warp (Jefferson 1985): threads run ahead, and take back what came too early.
//!
//! Every thread handles its own events in the order of their keys without asking whether an earlier
//! one is still on its way. When one arrives, the LP's later events are taken back from the undo log,
//! the events they had sent are followed by anti-messages, and all is done again in the right order.
//! From time to time the threads meet, deliver everything, and agree on the global virtual time (GVT):
//! nothing before it can be taken back, so it is committed and forgotten.
//!
//! What the declared links prove final is not speculation: nothing from another part can come before
//! GVT plus the least delay between parts. Events up to there are handled in the order of their keys,
//! with nothing kept of them, and a thread runs ahead only where that leaves it with little to do. With
//! one part everything is handled speculatively, as that is what was asked for.
//!
//! How far a thread may run ahead of GVT follows from what is taken back: the span grows while nearly
//! everything is kept and shrinks when it is not, or when the memory given to speculation is used up.
//! At its smallest it is the least delay between the parts, and then nothing is taken back at all.
//!
//! Where parts meet is a [`Floor`]: threads find each other's events in memory at any time, ranks send
//! theirs in batches when they agree on GVT.
//!
//! Cost, against the sequential scheduler: a record of about 200 bytes an event, written and read
//! once while it is in the cache; 16 bytes for each changed field; the message once more.

mod history;
#[cfg(feature = "mpi")]
mod ranks;
mod threads;
mod worker;

use std::time::Instant;

use meikyo_units::{Nanos, SimTime};

use self::worker::{Envelope, Worker};
use crate::context::Lp;
use crate::links::NO_LINK;
use crate::run::Crew;
use crate::share::Share;
use crate::statistics::{Line, Observer, Progress};
use crate::telling::{TELL, now, tell_lines};

#[cfg(feature = "mpi")]
pub(crate) use ranks::run as run_part;
pub(crate) use threads::run;

/// Events between two looks at what was sent here.
const BATCH: usize = 64;
/// Events of one part after which the parts agree on GVT.
const ROUND: usize = 512;
/// Certain events of one part after which the parts agree again without running ahead.
const ENOUGH: usize = 64;
const NEVER: u64 = u64::MAX;

/// Where the parts of a run meet, as one of them sees it.
trait Floor<M> {
    /// Sends what stands in `out` for each part.
    fn send(&mut self, out: &mut [Vec<Envelope<M>>]);
    /// Takes what was sent here and has come: all that was sent before the last meeting, at least.
    fn receive(&mut self, inbox: &mut Vec<Envelope<M>>);
    /// Asks the other parts to agree on GVT soon.
    fn ask(&self) {}
    /// Whether a part has asked for that.
    fn asked(&self) -> bool {
        false
    }
    /// Tells the others, and waits until all have done so.
    fn meet(&mut self, told: &Told);
    /// What the parts told when they met last.
    fn agreed(&self) -> Agreed;
    /// Events committed and rollbacks of all parts so far.
    fn progress(&self) -> (u64, u64);
    /// Gives `lines`, which are committed, to the part that speaks for all.
    fn give(&mut self, lines: &mut Vec<Line>);
    /// Waits until all have given their last lines.
    fn part(&mut self);
    /// Calls `each` with the lines that were given and are not told yet.
    fn lines(&mut self, each: impl FnOnce(&mut Vec<Line>));
}

/// What a part tells the others; times are in ns.
#[derive(Clone, Copy, Debug)]
struct Told {
    /// The time of its next event, or of the first that it sent since the meeting before.
    next: u64,
    /// Events handled that could be taken back, and those that were.
    handled: u64,
    undone: u64,
    /// Whether its speculation takes more memory than it may.
    crowded: bool,
    fault: u64,
    /// The first output that is not committed.
    output: u64,
    committed: u64,
    rollbacks: u64,
}

/// What a round of meetings agreed on.
#[derive(Clone, Copy, Debug)]
struct Agreed {
    gvt: u64,
    fault: u64,
    handled: u64,
    undone: u64,
    crowded: bool,
    /// Before this time every line that was committed in the round before is given.
    output: u64,
}

impl Agreed {
    const NOTHING: Self =
        Self { gvt: NEVER, fault: NEVER, handled: 0, undone: 0, crowded: false, output: NEVER };

    /// This, and what one part more told.
    fn and(self, told: &Told) -> Self {
        Self {
            gvt: self.gvt.min(told.next),
            fault: self.fault.min(told.fault),
            handled: self.handled + told.handled,
            undone: self.undone + told.undone,
            crowded: self.crowded | told.crowded,
            output: self.output.min(told.output),
        }
    }
}

/// One part at work.
struct Member<'a, L: Lp, F> {
    crew: &'a Crew<'a>,
    floor: F,
    worker: Worker<'a, L>,
    /// How far this part may run ahead of GVT, in ns.
    ahead: u64,
    /// The least delay between parts.
    lookahead: u64,
    /// Bytes that this part's speculation may take.
    memory: usize,
    rounds: u64,
    inbox: Vec<Envelope<L::Message>>,
    /// The time of the first event or anti-message that was sent since the last meeting, in ns.
    first_sent: u64,
    /// Events handled and taken back up to the agreement before.
    agreed: (u64, u64),
}

impl<'a, L: Lp, F: Floor<L::Message>> Member<'a, L, F> {
    fn new(crew: &'a Crew<'a>, floor: F, part: usize, share: Share<L>) -> Self {
        let parts = crew.partition.parts();
        let lookahead = (0..parts).map(|part| crew.partition.reach(part)).min().unwrap_or(0);
        let lookahead = if lookahead == NO_LINK { NEVER } else { lookahead };
        let memory = crew
            .options
            .memory_limit
            .map_or(usize::MAX, |limit| usize::try_from(limit.get()).unwrap_or(usize::MAX) / parts);
        Self {
            crew,
            floor,
            worker: Worker::new(crew, part, share),
            ahead: if parts == 1 { NEVER } else { lookahead.max(1) },
            lookahead,
            memory,
            rounds: 0,
            inbox: Vec::new(),
            first_sent: NEVER,
            agreed: (0, 0),
        }
    }

    fn work(mut self, observer: Option<&mut dyn Observer>) -> Self {
        let mut chair = observer.map(Chair::new);
        let last = self.crew.options.until.as_nanos();
        loop {
            let agreed = self.round();
            self.rounds += 1;
            self.worker.commit(agreed.gvt.min(last.saturating_add(1)));
            if !self.worker.ledger.lines.is_empty() {
                self.floor.give(&mut self.worker.ledger.lines);
            }
            if let Some(chair) = &mut chair {
                chair.preside(&mut self, &agreed);
            }
            if agreed.gvt > last.min(agreed.fault) || agreed.gvt == NEVER {
                break;
            }
            self.adapt(&agreed);
            let limit = last.saturating_add(1);
            let alone = self.crew.partition.parts() == 1;
            let safe = if alone { 0 } else { agreed.gvt.saturating_add(self.lookahead) };
            if self.worker.settle(safe.min(limit)) < ENOUGH {
                self.speculate(agreed.gvt.saturating_add(self.ahead).min(limit));
            }
            self.floor.ask();
        }
        self.floor.part();
        if let Some(chair) = &mut chair {
            self.floor.lines(|lines| tell_lines(chair.observer, lines, NEVER));
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
            if (done == 0 && opened == 0) || crowded || self.floor.asked() {
                break;
            }
        }
    }

    fn receive(&mut self) -> usize {
        self.floor.receive(&mut self.inbox);
        let mut inbox = std::mem::take(&mut self.inbox);
        let opened = inbox.len();
        for envelope in inbox.drain(..) {
            self.worker.open(envelope);
        }
        self.inbox = inbox;
        opened
    }

    fn send(&mut self) {
        let out = &mut self.worker.out;
        let first = out.iter().flatten().map(Envelope::time).min();
        if let Some(first) = first {
            self.first_sent = self.first_sent.min(first);
            self.floor.send(out);
        }
    }

    /// Meets the others and agrees on GVT: no event that is pending or on its way is before it, since
    /// what was sent before the last meeting has been received, and what was sent after it is told by
    /// its sender.
    fn round(&mut self) -> Agreed {
        self.send();
        let told = self.tells();
        self.first_sent = NEVER;
        self.floor.meet(&told);
        let agreed = self.floor.agreed();
        self.receive();
        agreed
    }

    fn tells(&mut self) -> Told {
        let counts = self.worker.counts;
        Told {
            next: self.worker.next_time().unwrap_or(NEVER).min(self.first_sent),
            handled: counts.handled - counts.certain,
            undone: counts.undone,
            crowded: self.worker.history.bytes() > self.memory,
            fault: self.worker.fault.as_ref().map_or(NEVER, |fault| fault.time.as_nanos()),
            output: self.worker.history.first_output().unwrap_or(NEVER),
            committed: counts.committed,
            rollbacks: counts.rollbacks,
        }
    }

    /// Lets the parts run further ahead while nearly everything is kept, and less far otherwise.
    fn adapt(&mut self, agreed: &Agreed) {
        let (handled, undone) = (agreed.handled - self.agreed.0, agreed.undone - self.agreed.1);
        self.agreed = (agreed.handled, agreed.undone);
        let least = self.lookahead.max(1);
        if agreed.crowded {
            self.ahead = (self.ahead / 2).max(1);
        } else if undone * 32 > handled {
            self.ahead = (self.ahead - self.ahead / 4).max(least);
        } else if undone * 100 <= handled {
            self.ahead = self.ahead.saturating_add(self.ahead / 8 + 1);
        }
    }
}

/// The part that speaks for all.
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

    fn preside<L: Lp, F: Floor<L::Message>>(
        &mut self,
        member: &mut Member<'_, L, F>,
        agreed: &Agreed,
    ) {
        let before = self.gvt_before.min(agreed.output);
        member.floor.lines(|lines| tell_lines(self.observer, lines, before));
        self.gvt_before = agreed.gvt;
        if member.rounds.is_multiple_of(8) && now().duration_since(self.told) >= TELL {
            self.told = now();
            let (events, rollbacks) = member.floor.progress();
            self.observer.progress(&Progress {
                virtual_time: SimTime::from_nanos(agreed.gvt),
                events,
                handled: events + agreed.undone,
                rollbacks,
                gvt_lag: Nanos::new(member.ahead),
            });
        }
    }
}
