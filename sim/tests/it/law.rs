//! The law: what a run results in does not depend on how it is run.

use meikyo_sim::{Line, Lp, Model, Observer, Options, Outcome, Progress, Scheduler, run_observed};
use meikyo_units::{Bytes, SimTime};

use crate::drawn::{self, Copied, Drawn};

/// Keeps everything that a run says, in the order in which it says it.
#[derive(Default)]
struct Listener(Vec<Line>);

impl Observer for Listener {
    fn lines(&mut self, lines: &[Line]) {
        self.0.extend_from_slice(lines);
    }
    fn progress(&mut self, _progress: &Progress) {}
}

fn result(seed: u64, options: &Options) -> (Outcome<Drawn>, Vec<Line>) {
    // Two of three runs have a warm-up that statistics leave out.
    let from = SimTime::from_nanos(seed % 3 * 150);
    of(drawn::model(seed, |lp| lp), &options.statistics_from(from).timelines())
}

fn of<L: Lp>(model: Model<L>, options: &Options) -> (Outcome<L>, Vec<Line>) {
    let mut listener = Listener::default();
    let outcome = run_observed(model, &options.traced(), &mut listener)
        .expect("a drawn model keeps the rules");
    (outcome, listener.0)
}

#[track_caller]
fn assert_same(seed: u64, until: SimTime, options: &Options) -> Outcome<Drawn> {
    let (truth, said) = result(seed, &Options::new(Scheduler::Sequential, 1).until(until));
    let (outcome, heard) = result(seed, &options.until(until));
    let what = format!("seed {seed}, {options:?}");
    assert!(outcome.trace == truth.trace, "committed events, {what}");
    assert_eq!(outcome.events_per_lp, truth.events_per_lp, "events, {what}");
    let other = outcome.lps.iter().zip(&truth.lps).position(|(one, other)| one != other);
    assert_eq!(other, None, "final state of an LP, {what}");
    assert_eq!(outcome.statistics, truth.statistics, "statistics, {what}");
    assert_eq!(outcome.events_left, truth.events_left, "events left, {what}");
    let first_other = heard.iter().zip(&said).position(|(heard, said)| heard != said);
    assert_eq!((heard.len(), first_other), (said.len(), None), "lines, {what}");
    outcome
}

#[test]
fn every_scheduler_on_any_number_of_threads_gives_the_same_result() {
    let (mut events, mut rollbacks, mut parallel) = (0, 0, 0);
    for seed in 0..24 {
        let until = if seed % 4 == 1 { SimTime::from_nanos(700) } else { SimTime::END };
        for threads in [1, 2, 4, 8] {
            let conservative = Options::new(Scheduler::Conservative, threads);
            let outcome = assert_same(seed, until, &conservative);
            parallel += u32::from(outcome.effort.threads_used > 1);
            events += outcome.events;
            let optimistic = Options::new(Scheduler::Optimistic, threads);
            let effort = assert_same(seed, until, &optimistic).effort;
            rollbacks += effort.rollbacks;
            let named: u64 = effort.setbacks.iter().map(|(_, times)| u64::from(*times)).sum();
            assert!(named <= effort.rollbacks && (named > 0) == (effort.rollbacks > 0));
            assert!(effort.undone >= effort.rollbacks.min(1) && effort.undone <= effort.handled);
            assert_same(seed, until, &Options::new(Scheduler::Auto, threads));
        }
        assert_same(seed, until, &Options::new(Scheduler::Check, 1));
    }
    assert!(events > 20_000, "{events} events are too few to find anything");
    assert!(rollbacks > 100, "{rollbacks} rollbacks are too few to find anything");
    assert!(parallel > 24, "{parallel} runs were parallel");
}

#[test]
fn little_memory_holds_speculation_back_and_changes_nothing() {
    for seed in [2, 7, 11] {
        let mut options = Options::new(Scheduler::Optimistic, 2);
        options.memory_limit = Some(Bytes::new(1));
        assert_same(seed, SimTime::END, &options);
    }
}

#[test]
fn lps_that_are_copied_are_set_back_as_those_that_keep_a_log() {
    let mut rollbacks = 0;
    for seed in 0..8 {
        let sequential = Options::new(Scheduler::Sequential, 1);
        let (truth, said) = result(seed, &sequential);
        for options in [Options::new(Scheduler::Optimistic, 3), Options::new(Scheduler::Check, 1)] {
            let from = SimTime::from_nanos(seed % 3 * 150);
            let options = options.statistics_from(from).timelines();
            let (outcome, heard) = of(drawn::model(seed, Copied), &options);
            assert!(outcome.trace == truth.trace, "committed events, seed {seed}, {options:?}");
            assert!(outcome.lps.iter().map(|lp| &lp.0).eq(&truth.lps), "states, seed {seed}");
            assert!(heard == said, "lines, seed {seed}, {options:?}");
            assert_eq!(outcome.statistics, truth.statistics, "seed {seed}, {options:?}");
            rollbacks += outcome.effort.rollbacks;
        }
    }
    assert!(rollbacks > 20, "{rollbacks} rollbacks are too few to find anything");
}
