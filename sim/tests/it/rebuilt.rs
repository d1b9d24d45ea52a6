//! Check mode builds the model a second time, names NaNs and loses no line.
#![expect(
    clippy::disallowed_types,
    reason = "the order of a `HashMap` is what check mode must find"
)]

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};

use meikyo_sim::{
    Context, Line, LineContent, Lp, Model, Observer, Options, Problem, Progress, RunError,
    Scheduler, Unobserved, run_built,
};
use meikyo_undo::{Cell, copied, fields};
use meikyo_units::{Nanos, SimTime};

/// How the order of a `HashMap` gets out.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
enum Leak {
    Nothing,
    State,
    Sent,
    Tallied,
    AtStart,
}

/// A directory whose entries are hashed with a key that each map draws for itself.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Directory {
    leak: Leak,
    entries: HashMap<u32, u32>,
    first: u32,
    statistic: meikyo_sim::Statistic,
}
copied!(Directory);

impl Directory {
    fn first(&self) -> u32 {
        self.entries.keys().next().copied().unwrap_or(0)
    }
}

impl Lp for Directory {
    type Message = u32;

    fn start(&mut self, context: &mut impl Context<u32>) {
        let first = if self.leak == Leak::AtStart { self.first() } else { 0 };
        context.send(context.me(), Nanos::new(1), first);
    }

    fn handle(&mut self, message: u32, context: &mut impl Context<u32>) {
        self.entries.insert(1_000 + message, message);
        let first = self.first();
        match self.leak {
            Leak::Nothing | Leak::AtStart => {}
            Leak::State => self.first = first,
            Leak::Tallied => context.tally(self.statistic, f64::from(first)),
            Leak::Sent => {
                context.send(context.me(), Nanos::new(1 + u64::from(first)), message);
                return;
            }
        }
        if message < 5 {
            context.send(context.me(), Nanos::new(1), message + 1);
        }
    }
}

fn checked(leak: Leak) -> Result<u64, Problem> {
    let build = || {
        let mut model = Model::new(5);
        let group = model.group("directories", 16);
        let statistic = model.statistic(group, "first");
        model.fill(group, |_| Directory {
            leak,
            entries: (0..40).map(|at| (at, at)).collect(),
            first: 0,
            statistic,
        });
        model
    };
    let options = Options::new(Scheduler::Check, 1).until(SimTime::from_nanos(5_000));
    match run_built(build, &options, &mut Unobserved) {
        Ok(outcome) => Ok(outcome.events),
        Err(RunError::Fault(fault)) => Err(fault.problem),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn the_order_of_a_hash_map_is_found_though_a_clone_keeps_it() {
    assert_eq!(checked(Leak::Nothing), Ok(16 * 6));
    for (leak, named) in [
        (Leak::State, "the state became another: in `Directory."),
        (Leak::Sent, "it sent other events"),
        (Leak::Tallied, "it gave out something else"),
        (Leak::AtStart, "it sent other events"),
    ] {
        match checked(leak) {
            Err(Problem::Rebuilt { difference }) => {
                assert!(difference.starts_with(named), "{leak:?}: {difference}");
            }
            other => panic!("{leak:?} was not found: {other:?}"),
        }
    }
}

#[test]
fn a_model_that_is_declared_differently_the_second_time_is_told() {
    let built = AtomicU32::new(0);
    let build = || {
        let mut model = Model::new(5);
        let group = model.group("meters", 1 + built.fetch_add(1, Ordering::Relaxed));
        model.fill(group, |_| Meter::new(0.0));
        model
    };
    let options = Options::new(Scheduler::Check, 1);
    let error = run_built(build, &options, &mut Unobserved).expect_err("it is told");
    assert_eq!(error, RunError::OtherModel);
    let built = AtomicU32::new(0);
    let build = || {
        let mut model = Model::new(5);
        let group = model.group("meters", 3);
        let level = f64::from(built.fetch_add(1, Ordering::Relaxed));
        model.fill(group, |_| Meter::new(level));
        model
    };
    let error = run_built(build, &options, &mut Unobserved).expect_err("it is told");
    assert_eq!(
        error.to_string(),
        "LP 0 of `meters` at 0ns, its start: in a second model, built anew, its state is in \
         `Meter.level`: `0.0` became `1.0`; does anything depend on the order of a `HashMap`, an \
         address or a clock?"
    );
}

/// An LP with a number that may be none.
#[derive(Clone, Debug, PartialEq)]
struct Meter {
    level: Cell<f64>,
    /// It becomes a NaN with this many events left.
    broken_at: Option<u32>,
}
fields!(Meter { level });

impl Meter {
    fn new(level: f64) -> Self {
        Self { level: Cell::new(level), broken_at: None }
    }
}

impl Lp for Meter {
    type Message = u32;

    fn start(&mut self, context: &mut impl Context<u32>) {
        context.print("begins");
        context.send(context.me(), Nanos::new(100), 3);
    }

    fn handle(&mut self, left: u32, context: &mut impl Context<u32>) {
        if self.broken_at == Some(left) {
            self.level.set(context, f64::NAN);
        }
        if left > 0 {
            context.send(context.me(), Nanos::new(100), left - 1);
        }
    }
}

fn meters(level: f64, broken_at: Option<u32>) -> impl FnMut() -> Model<Meter> {
    move || {
        let mut model = Model::new(5);
        let group = model.group("meters", 2);
        model.fill(group, |_| Meter { broken_at, ..Meter::new(level) });
        model
    }
}

#[test]
fn a_nan_in_a_state_is_named() {
    for (level, broken_at, place) in [
        (f64::NAN, None, "LP 0 of `meters` at 0ns, its start"),
        (1.0, Some(1), "LP 0 of `meters` at 300ns, event 2 of LP 0"),
    ] {
        let options = Options::new(Scheduler::Check, 1);
        let error = run_built(meters(level, broken_at), &options, &mut Unobserved);
        assert_eq!(
            error.expect_err("it is told").to_string(),
            format!(
                "{place}: its state is not equal to its own copy and cannot be checked: \
                 in `Meter.level`: `NaN` is not equal to itself"
            )
        );
    }
}

/// Keeps the texts that a run tells.
#[derive(Default)]
struct Texts(Vec<(u32, String)>);

impl Observer for Texts {
    fn lines(&mut self, lines: &[Line]) {
        for line in lines {
            if let LineContent::Text(text) = &line.content {
                self.0.push((line.lp.get(), text.to_string()));
            }
        }
    }
    fn progress(&mut self, _progress: &Progress) {}
}

#[test]
fn lines_of_the_start_are_told_though_no_event_comes_before_the_end() {
    for (scheduler, threads) in [
        (Scheduler::Sequential, 1),
        (Scheduler::Conservative, 2),
        (Scheduler::Optimistic, 2),
        (Scheduler::Check, 1),
    ] {
        let mut texts = Texts::default();
        let options = Options::new(scheduler, threads).until(SimTime::from_nanos(99));
        let outcome = run_built(meters(1.0, None), &options, &mut texts).expect("it is right");
        assert_eq!((outcome.events, outcome.events_left), (0, true));
        let expected = [0, 1].map(|lp| (lp, "begins".to_owned()));
        assert_eq!(texts.0, expected, "{scheduler:?}");
    }
}
