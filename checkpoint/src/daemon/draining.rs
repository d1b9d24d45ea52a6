//! Copying generations to a file system that all hosts share: which, when, and by whom.
//!
//! The host that begins a generation says whether it is to be drained, and that is part of what the group agrees on, so that
//! all hosts drain the same. How often follows from what a drain has taken here and from how often more is lost than parity
//! makes up for; both are looked at anew whenever it is asked.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use meikyo_units::{BitsPerSecond, Nanos, SimTime, in_one_line};

use super::{Daemon, Input, What, now};
use crate::charter::{Commit, Generation};
use crate::drain;
use crate::interval::beyond_parity;
use crate::pace::{Effort, Pace};
use crate::shelf::Stored;

/// How generations are drained.
#[derive(Debug, Clone)]
pub struct DrainOptions {
    /// A directory of this job on the file system that all hosts share.
    pub directory: PathBuf,
    /// The most that this host writes to it.
    pub rate: Option<BitsPerSecond>,
    /// From one to the next; nothing to choose the best by what it costs.
    pub every: Option<Nanos>,
    /// How many that are whole are kept.
    pub keep: usize,
    /// Mean time between failures of one host.
    pub between_failures: Nanos,
}

/// The state of this host's copying.
#[derive(Debug)]
pub(super) struct Draining {
    options: DrainOptions,
    pace: Arc<Pace>,
    /// The newest generation that the group has agreed to drain, and when that was noticed here.
    last: Option<(Generation, SimTime)>,
    is_busy: bool,
    /// How long the last one took here.
    took: Option<Nanos>,
    done: Option<u64>,
}

impl Draining {
    pub(super) fn new(options: DrainOptions, effort: Option<Arc<Effort>>) -> Self {
        let pace = Arc::new(Pace::of(options.rate, effort));
        Self { options, pace, last: None, is_busy: false, took: None, done: None }
    }

    /// The step of the newest generation that this host has drained.
    pub(super) const fn done(&self) -> Option<u64> {
        self.done
    }

    /// From one to the next, as far as anything is known.
    pub(super) fn interval(&self, hosts: usize) -> Option<Nanos> {
        let best = |took| beyond_parity(took, self.options.between_failures, hosts);
        self.options.every.or_else(|| self.took.map(best))
    }

    fn is_due(&self, now: SimTime, hosts: usize) -> bool {
        let is_over = |last: SimTime| {
            // Until one has been drained nobody knows what it costs.
            self.interval(hosts).is_some_and(|interval| now.since(last) >= interval)
        };
        !self.is_busy && self.last.is_none_or(|(_, last)| is_over(last))
    }
}

impl Daemon {
    /// Before this host begins a generation: whether all are to drain it.
    pub(super) fn decide_to_drain(&mut self) {
        let (now, hosts) = (self.now(), self.layout.hosts());
        if self.draining.as_ref().is_some_and(|draining| draining.is_due(now, hosts)) {
            self.member.drain_next();
        }
    }

    /// Drains what was committed, if the group has agreed to.
    pub(super) fn drain(&mut self, commit: &Commit) {
        let (now_here, generation) = (self.now(), commit.generation);
        let (has, group) = (self.has(generation), self.group());
        let Some(draining) = self.draining.as_mut().filter(|_| commit.drains) else { return };
        let is_seen = draining.last.is_some_and(|(last, _)| last >= generation);
        if is_seen || draining.is_busy {
            return;
        }
        draining.last = Some((generation, now_here));
        if !has {
            // What is rebuilt here is of a generation that is old by then.
            return;
        }
        draining.is_busy = true;
        let (from, reached) = (self.storage.generation(generation), commit.reached);
        let (to, keep) = (draining.options.directory.clone(), draining.options.keep);
        let (pace, inputs, place) =
            (Arc::clone(&draining.pace), self.inputs.clone(), self.options.place);
        // It stays open, though it may be freed before it is drained.
        let stored = Stored::open(&from);
        thread::spawn(move || {
            let begun = now();
            let outcome = stored.map_err(|error| in_one_line(&error)).and_then(|stored| {
                let written = drain::write(&stored, (group, reached), &to, &pace);
                let pruned =
                    written.and_then(|bytes| drain::prune(&to, place, keep).map(|()| bytes));
                pruned.map_err(|error| in_one_line(&error))
            });
            let took = Nanos::from_secs_f64(begun.elapsed().as_secs_f64());
            let outcome = outcome.map(|bytes| (bytes, took));
            // The daemon may be at its end.
            drop(inputs.send(Input::Drained(reached.step, outcome)));
        });
    }

    pub(super) fn drained(&mut self, step: u64, outcome: Result<(u64, Nanos), String>) {
        let Some(draining) = &mut self.draining else { return };
        draining.is_busy = false;
        match outcome {
            Ok((bytes, took)) => {
                (draining.took, draining.done) = (Some(took), Some(step));
                let text = format!("step {step}: {bytes} octets in {:.1} s", took.as_secs_f64());
                self.tell(What::Drained, None, text);
            }
            Err(trouble) => {
                let text = format!("step {step} is not drained: {trouble}");
                self.trouble = Some(text.clone());
                self.tell(What::NotDrained, None, text);
            }
        }
    }

    fn group(&self) -> u64 {
        self.member.charter().map_or(0, |charter| charter.group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draining(every: Option<Nanos>) -> Draining {
        let directory = PathBuf::new();
        let between_failures = Nanos::from_secs(1_500_000);
        let options = DrainOptions { directory, rate: None, every, keep: 2, between_failures };
        Draining::new(options, None)
    }

    fn at(seconds: u64) -> SimTime {
        SimTime::START + Nanos::from_secs(seconds)
    }

    #[test]
    fn the_first_generation_is_drained_and_then_as_often_as_pays() {
        let mut draining = draining(None);
        assert!(draining.is_due(at(0), 10));
        draining.last = Some((Generation(1), at(0)));
        draining.is_busy = true;
        assert!(!draining.is_due(at(1_000_000), 10));
        draining.is_busy = false;
        assert!(!draining.is_due(at(1_000_000), 10), "nothing is known of what it costs");
        // 5 s of the program in 100 s; ten hosts lose more than parity makes up for once in 1,000,000 s:
        // sqrt(2 * 5 * 1e6) = 3162 s.
        draining.took = Some(Nanos::from_secs(100));
        let interval = draining.interval(10).unwrap().as_secs_f64();
        assert!((interval - 3_162.0).abs() < 10.0, "{interval}");
        assert!(!draining.is_due(at(3_100), 10) && draining.is_due(at(3_200), 10));
        // One that takes four times as long is made half as often.
        draining.took = Some(Nanos::from_secs(400));
        let longer = draining.interval(10).unwrap().as_secs_f64();
        assert!((longer / interval - 2.0).abs() < 0.01, "{longer}");
        // Never before the last can have ended.
        draining.took = Some(Nanos::from_secs(1_000_000));
        assert!(draining.interval(10).unwrap() >= Nanos::from_secs(1_000_000));
    }

    #[test]
    fn whoever_insists_on_an_interval_gets_it() {
        let mut draining = draining(Some(Nanos::from_secs(60)));
        draining.last = Some((Generation(1), at(0)));
        assert!(!draining.is_due(at(59), 10) && draining.is_due(at(60), 10));
    }
}
