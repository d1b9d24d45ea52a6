//! The coordinator: what all workers of a run agree on after every window.
//!
//! There is one coordinator for every scheduler and every transport. Each worker reports on its part,
//! the reports go through the collective [`Exchange`], and then every worker derives the same
//! [`Decision`] from the same reports: the global virtual time (GVT), how far nothing from another part
//! can come any more, whether something went wrong, and whether the run is over. Nobody is asked, so
//! nobody is waited for twice.
//!
//! On the first part, the coordinator also speaks for the run: it tells the observer what is committed
//! and how far the run is, and it ends parallel work that does not pay.
//!
//! # Why nothing before the GVT can change, and nothing arrives before the horizon
//!
//! What a part will handle next is no earlier than its earliest pending event and the earliest event or
//! anti-message that is on its way to it: call that the part's next time. Whatever it sends, also when it
//! rolls back, is later than that by the least delay of the links that leave the part, its lookahead.
//! The GVT is the least next time of all parts. The horizon is the least sum of a part's next time and
//! its lookahead: before it, nothing of one part reaches another. By induction over the exchanges
//! neither of the two ever goes back, which is asserted here each time.
//!
//! Every part goes to the same horizon. A part could often go further alone, since what it sends comes
//! back even later; but then the parts take long windows in turn, and each waits for the other's.
//!
//! The coordinator never looks at an event, and never starts a thread.

mod announcer;
mod payoff;

use std::sync::Arc;

use meikyo_units::{Nanos, SimTime};

use crate::coordinator::announcer::Announcer;
use crate::coordinator::payoff::Payoff;
use crate::exchange::crew::Rest;
use crate::exchange::{Exchange, Outbox};
use crate::setup::Setup;
use crate::statistics::{Line, Observer, Progress};

pub(crate) use announcer::now;
pub(crate) use payoff::Alone;

/// A time that never comes: no event.
pub(crate) const NEVER: u64 = u64::MAX;

/// One window in so many is looked at by the observer's clock.
const TIMED: u64 = 8;

/// Where each number of a [`Report`] stands among the words that a part publishes. What every
/// scheduler reads in every window comes first.
mod word {
    pub(super) const NEXT: usize = 0;
    pub(super) const FAULT: usize = 1;
    pub(super) const STOP: usize = 2;
    pub(super) const COMMITTED: usize = 3;
    pub(super) const LINES_BEFORE: usize = 4;
    pub(super) const SPECULATED: usize = 5;
    pub(super) const UNDONE: usize = 6;
    pub(super) const CROWDED: usize = 7;
    pub(super) const ROLLBACKS: usize = 8;
    pub(super) const AHEAD: usize = 9;
    pub(super) const COUNT: usize = 10;
}

/// What a worker reports on its part. Times are in ns; counts are since the beginning of the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    /// The time of the earliest pending event.
    pub(crate) next: u64,
    /// The time of the first committed event that went wrong.
    pub(crate) fault: u64,
    /// Every line of events before this time is handed over, or belongs to an event that is pending.
    pub(crate) lines_before: u64,
    /// Events handled speculatively, those that were rolled back included.
    pub(crate) speculated: u64,
    /// Events that were rolled back.
    pub(crate) undone: u64,
    /// Whether speculation takes more memory than it may.
    pub(crate) crowded: bool,
    /// Events committed, which nothing can roll back any more.
    pub(crate) committed: u64,
    /// How many times an LP was rolled back.
    pub(crate) rollbacks: u64,
    /// How far the part runs ahead of the GVT.
    pub(crate) ahead: u64,
}

impl Report {
    /// The report as words; `stop` is the coordinator's own.
    fn words(&self, stop: bool) -> [u64; word::COUNT] {
        let mut words = [0; word::COUNT];
        words[word::NEXT] = self.next;
        words[word::FAULT] = self.fault;
        words[word::STOP] = u64::from(stop);
        words[word::COMMITTED] = self.committed;
        words[word::LINES_BEFORE] = self.lines_before;
        words[word::SPECULATED] = self.speculated;
        words[word::UNDONE] = self.undone;
        words[word::CROWDED] = u64::from(self.crowded);
        words[word::ROLLBACKS] = self.rollbacks;
        words[word::AHEAD] = self.ahead;
        words
    }
}

/// What every worker knows after an exchange. Times are in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    /// The global virtual time: no event before it is pending or on its way, on any part.
    pub(crate) gvt: u64,
    /// No part receives anything before this time any more, but what is on its way already.
    pub(crate) horizon: u64,
    /// The time of the first committed event that went wrong on any part.
    pub(crate) fault: u64,
    /// Whether the run goes on.
    pub(crate) verdict: Verdict,
}

/// Whether a run goes on after an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// There is more to do.
    Continue,
    /// Every event up to the last instant, or up to the first fault, is committed.
    Finished,
    /// Events are left, but windows are so short that one queue on one thread is better.
    DoesNotPay,
}

/// What all parts reported together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Totals {
    pub(crate) speculated: u64,
    pub(crate) undone: u64,
    /// Whether the speculation of any part takes more memory than it may.
    pub(crate) crowded: bool,
}

/// The coordinator as one worker holds it.
pub(crate) struct Coordinator<'a, X> {
    setup: &'a Setup<'a>,
    part: usize,
    exchange: X,
    gvt: u64,
    horizon: u64,
    /// How many exchanges there were.
    windows: u64,
    /// On the first part only.
    announcer: Option<Announcer<'a>>,
    /// On the first part only, if it is asked whether parallel work pays.
    payoff: Option<Payoff>,
    /// On the first part, that parallel work does not pay; goes with the next report.
    stop: bool,
}

impl<'a, X: Exchange> Coordinator<'a, X> {
    /// The coordinator of `part`, which is the first one if it has an `observer`. With `rest`, the first
    /// part has the other threads rest while one of them is faster alone.
    pub(crate) fn new(
        setup: &'a Setup<'a>,
        part: usize,
        exchange: X,
        observer: Option<&'a mut dyn Observer>,
        rest: Option<(Arc<Rest>, Alone)>,
    ) -> Self {
        let parts = setup.partition.parts();
        let payoff = rest
            .filter(|_| observer.is_some())
            .map(|(rest, alone)| Payoff::new(rest, parts, alone));
        Self {
            setup,
            part,
            exchange,
            gvt: 0,
            horizon: 0,
            windows: 0,
            announcer: observer.map(Announcer::new),
            payoff,
            stop: false,
        }
    }

    /// What all workers know from the beginning.
    pub(crate) fn setup(&self) -> &'a Setup<'a> {
        self.setup
    }

    /// The part of this worker.
    pub(crate) fn part(&self) -> usize {
        self.part
    }

    /// How many exchanges there were, the closing one not counted.
    pub(crate) fn windows(&self) -> u64 {
        self.windows
    }

    /// The transport, to send and receive mail between two decisions.
    pub(crate) fn exchange(&mut self) -> &mut X {
        &mut self.exchange
    }

    /// Hands `report`, the mail in `outbox` and the committed `lines` to the other parts.
    pub(crate) fn publish(
        &mut self,
        report: &Report,
        outbox: &mut Outbox<X::Mail>,
        lines: &mut Vec<Line>,
    ) {
        self.exchange.publish(&report.words(self.stop), outbox, lines);
    }

    /// Decides, when all parts have published. All of them must do so equally often.
    ///
    /// # Panics
    /// If the GVT or the horizon would go back, which would break what is committed already.
    pub(crate) fn decide(&mut self) -> Decision {
        self.windows += 1;
        let decision = self.decision();
        assert!(
            decision.gvt >= self.gvt && decision.horizon >= self.horizon,
            "the GVT went from {} to {} ns, the horizon from {} to {} ns",
            self.gvt,
            decision.gvt,
            self.horizon,
            decision.horizon
        );
        (self.gvt, self.horizon) = (decision.gvt, decision.horizon);
        if self.announcer.is_some() {
            self.announce(&decision);
        }
        decision
    }

    /// After the last decision, hands over the `lines` that were committed since. All parts must call
    /// this.
    pub(crate) fn close(&mut self, outbox: &mut Outbox<X::Mail>, lines: &mut Vec<Line>) {
        self.exchange.publish(&[0; word::COUNT], outbox, lines);
    }

    /// When all parts have closed: on the first one, tells the observer all lines that are left.
    pub(crate) fn finish(&mut self) {
        if let Some(announcer) = &mut self.announcer {
            self.exchange.take_lines(&mut announcer.lines);
            announcer.deliver_lines(NEVER);
        }
    }

    /// What all parts reported at the last exchange.
    pub(crate) fn totals(&self) -> Totals {
        let parts = self.setup.partition.parts();
        let total = |at| sum(&self.exchange, parts, at);
        Totals {
            speculated: total(word::SPECULATED),
            undone: total(word::UNDONE),
            crowded: total(word::CROWDED) > 0,
        }
    }

    fn decision(&self) -> Decision {
        let (exchange, partition) = (&self.exchange, self.setup.partition);
        let parts = partition.parts();
        let (mut gvt, mut horizon, mut fault) = (NEVER, NEVER, NEVER);
        for part in 0..parts {
            let on_its_way = (0..parts).map(|from| exchange.earliest(from, part));
            let next = on_its_way.fold(exchange.word(part, word::NEXT), u64::min);
            gvt = gvt.min(next);
            horizon = horizon.min(next.saturating_add(partition.lookahead(part)));
            fault = fault.min(exchange.word(part, word::FAULT));
        }
        let last = self.setup.options.until.as_nanos().min(fault);
        let verdict = if gvt > last || gvt == NEVER {
            Verdict::Finished
        } else if exchange.word(0, word::STOP) > 0 {
            Verdict::DoesNotPay
        } else {
            Verdict::Continue
        };
        Decision { gvt, horizon, fault, verdict }
    }

    /// On the first part: tells the observer what is new, and judges whether parallel work pays.
    fn announce(&mut self, decision: &Decision) {
        let (exchange, parts) = (&mut self.exchange, self.setup.partition.parts());
        let timed = self.windows.is_multiple_of(TIMED);
        if let Some(payoff) = &mut self.payoff {
            self.stop |= payoff.judge(sum(exchange, parts, word::COMMITTED), now());
        }
        let Some(announcer) = &mut self.announcer else { return };
        exchange.take_lines(&mut announcer.lines);
        if !announcer.lines.is_empty() {
            let handed_over = (0..parts).map(|part| exchange.word(part, word::LINES_BEFORE));
            announcer.deliver_lines(handed_over.fold(decision.gvt, u64::min));
        }
        if timed && announcer.progress_is_due() {
            let events = sum(exchange, parts, word::COMMITTED);
            let ahead = (0..parts).map(|part| exchange.word(part, word::AHEAD)).max();
            announcer.tell_progress(&Progress {
                virtual_time: SimTime::from_nanos(decision.gvt),
                events,
                handled: events + sum(exchange, parts, word::UNDONE),
                rollbacks: sum(exchange, parts, word::ROLLBACKS),
                gvt_lag: Nanos::new(ahead.expect("a run has at least one part")),
            });
        }
    }
}

/// The sum of the words `at` that the parts published.
fn sum(exchange: &impl Exchange, parts: usize, at: usize) -> u64 {
    (0..parts).map(|part| exchange.word(part, at)).sum()
}

/// How many words each of `parts` parts publishes, with the times of its outbox.
pub(crate) fn words_max(parts: usize) -> usize {
    parts + word::COUNT
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::links::Link;
    use crate::options::{Options, Scheduler};
    use crate::partition::{Partition, ZeroDelay};
    use crate::rules::{Declarations, Rules};

    /// What two parts publish: the first one through the coordinator, the second one from here.
    struct Published([([u64; word::COUNT], [u64; 2]); 2]);

    impl Exchange for Published {
        type Mail = ();

        fn publish(&mut self, words: &[u64], outbox: &mut Outbox<()>, _: &mut Vec<Line>) {
            let times: Vec<u64> = outbox.earliest().collect();
            self.0[0] = (words.try_into().unwrap(), times.try_into().unwrap());
        }
        fn word(&self, part: usize, at: usize) -> u64 {
            self.0[part].0[at]
        }
        fn earliest(&self, from: usize, to: usize) -> u64 {
            self.0[from].1[to]
        }
        fn receive(&mut self, _: impl FnMut(())) {}
        fn take_lines(&mut self, _: &mut Vec<Line>) {}
    }

    const NOTHING: Report = Report {
        next: NEVER,
        fault: NEVER,
        lines_before: NEVER,
        speculated: 0,
        undone: 0,
        crowded: false,
        committed: 0,
        rollbacks: 0,
        ahead: 0,
    };

    /// Two LPs in parts of their own, the first one with a lookahead of 5 ns, the second one of 9 ns.
    fn rules() -> Rules {
        let declared = Declarations {
            seed: 0,
            starts: vec![0, 1, 2],
            names: vec!["left".to_owned(), "right".to_owned()],
            group_links: vec![Link::groups(0, 1, Nanos::new(5)), Link::groups(1, 0, Nanos::new(9))],
            lp_links: Vec::new(),
            statistics: Vec::new(),
            series: Vec::new(),
            weights: vec![None; 2],
        };
        Rules::new(declared, &Options::new(Scheduler::Sequential, 1))
    }

    /// What both parts report in one window, and the times of what they sent each other.
    struct Window {
        next: [u64; 2],
        sent: [u64; 2],
        fault: u64,
        stop: bool,
    }

    const QUIET: Window = Window { next: [NEVER; 2], sent: [NEVER; 2], fault: NEVER, stop: false };

    /// What the coordinator decides after each of `windows`, of a run that ends after 100 ns.
    fn decisions(windows: &[Window]) -> Vec<Decision> {
        let rules = rules();
        let partition = Partition::new(&rules, 2, ZeroDelay::StaysInside);
        let options = Options::new(Scheduler::Conservative, 2).until(SimTime::from_nanos(100));
        let setup = Setup { rules: &rules, partition: &partition, options: &options };
        let published = Published(Default::default());
        let mut coordinator = Coordinator::new(&setup, 0, published, None, None);
        let decide = |window: &Window| {
            let second = Report { next: window.next[1], ..NOTHING }.words(false);
            coordinator.exchange.0[1] = (second, [window.sent[1], NEVER]);
            coordinator.stop = window.stop;
            let mut outbox = Outbox::new(2);
            if window.sent[0] != NEVER {
                outbox.push(1, window.sent[0], ());
            }
            let report = Report { next: window.next[0], fault: window.fault, ..NOTHING };
            coordinator.publish(&report, &mut outbox, &mut Vec::new());
            coordinator.decide()
        };
        windows.iter().map(decide).collect()
    }

    fn times(window: Window) -> (u64, u64) {
        let decision = decisions(&[window])[0];
        (decision.gvt, decision.horizon)
    }

    #[test]
    fn the_gvt_and_the_horizon_follow_from_what_is_pending_and_from_what_is_on_its_way() {
        assert_eq!(times(Window { next: [10, 12], ..QUIET }), (10, 15));
        assert_eq!(times(Window { next: [20, 12], ..QUIET }), (12, 21));
        // An event at 11 is on its way to the second part, one at 7 to the first.
        assert_eq!(times(Window { next: [20, 30], sent: [11, NEVER], ..QUIET }), (11, 20));
        assert_eq!(times(Window { next: [20, 30], sent: [NEVER, 7], ..QUIET }), (7, 12));
        assert_eq!(times(QUIET), (NEVER, NEVER));
    }

    #[test]
    fn a_run_ends_when_nothing_is_left_up_to_its_end_or_to_a_fault_or_does_not_pay() {
        let verdict = |window| decisions(&[window])[0].verdict;
        assert_eq!(verdict(Window { next: [100, NEVER], ..QUIET }), Verdict::Continue);
        assert_eq!(verdict(Window { next: [101, NEVER], ..QUIET }), Verdict::Finished);
        assert_eq!(verdict(Window { next: [101, 100], ..QUIET }), Verdict::Continue);
        assert_eq!(verdict(QUIET), Verdict::Finished);
        let after_fault = |next| Window { next: [NEVER, next], fault: 50, ..QUIET };
        assert_eq!(verdict(after_fault(50)), Verdict::Continue);
        assert_eq!(verdict(after_fault(51)), Verdict::Finished);
        let stopped = |next| Window { next: [next, NEVER], stop: true, ..QUIET };
        assert_eq!(verdict(stopped(50)), Verdict::DoesNotPay);
        assert_eq!(verdict(stopped(101)), Verdict::Finished);
    }

    #[test]
    fn a_gvt_or_a_horizon_that_would_go_back_ends_the_run() {
        let goes_on = |first: [u64; 2], then: [u64; 2]| {
            let windows = [first, then].map(|next| Window { next, ..QUIET });
            catch_unwind(AssertUnwindSafe(|| decisions(&windows))).is_ok()
        };
        assert!(goes_on([10, 12], [10, 12]));
        assert!(goes_on([10, 12], [15, 15]));
        assert!(!goes_on([10, 12], [9, 12]), "from 10 to 9");
        assert!(!goes_on([20, 12], [12, 30]), "the horizon from 21 to 17");
    }
}
