//! Panics: silent while they are speculation, told with their place when they are committed, and never
//! out of `run`.

use std::process::Command;

use meikyo_sim::{
    Context, Lp, LpId, Model, Options, Outcome, RunError, Scheduler, Series, Statistic, run,
};
use meikyo_undo::{Cell, fields};
use meikyo_units::{Nanos, SimTime};

/// Steps of both LPs, ten ns apart.
const STEPS: u32 = 4_000;

/// One LP sends the other a message each step; the other one ticks by itself in between, and insists
/// that it has what was sent before. In the sequential order it always has.
#[derive(Clone, Debug, PartialEq)]
struct Party {
    last_step: u32,
    received: Cell<u32>,
}
fields!(Party { received });

const CONSUMER: LpId = LpId::new(1);

impl Lp for Party {
    type Message = u32;

    fn start(&mut self, context: &mut impl Context<u32>) {
        let first = if context.me() == CONSUMER { 15 } else { 9 };
        context.send(context.me(), Nanos::new(first), 1);
    }

    fn handle(&mut self, step: u32, context: &mut impl Context<u32>) {
        let me = context.me();
        if me != CONSUMER {
            context.send(CONSUMER, Nanos::new(1), step);
        } else if context.event().source != CONSUMER {
            self.received.add(context, 1);
            return;
        } else {
            let received = self.received.get();
            assert!(received >= step, "step {step}, and only {received} messages are here");
            assert!(step < self.last_step, "step {step} is the last one");
        }
        if step < STEPS {
            context.send(me, Nanos::new(10), step + 1);
        }
    }
}

fn run_parties(last_step: u32, scheduler: Scheduler) -> Result<Outcome<Party>, RunError> {
    let mut model = Model::new(1);
    let [producer, consumer] = ["producer", "consumer"].map(|name| model.group(name, 1));
    model.link(producer, consumer, Nanos::new(1));
    for group in [producer, consumer] {
        model.fill(group, |_| Party { last_step, received: Cell::new(0) });
    }
    run(model, &Options::new(scheduler, 2))
}

const CHILD: &str = "MEIKYO_TEST_OF_PANICS";

/// What [`panics_of_events_that_are_taken_back_are_silent`] runs in a process of its own.
#[test]
fn speculate_in_a_process_of_its_own() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    // How much is taken back depends on the threads' pace.
    let undone: u64 = std::iter::repeat_with(|| {
        run_parties(STEPS + 1, Scheduler::Optimistic).expect("it ends right").effort.undone
    })
    .take(200)
    .take_while({
        let mut sum = 0;
        move |undone| {
            let enough = sum > 100;
            sum += undone;
            !enough
        }
    })
    .sum();
    assert!(undone > 100, "{undone} events were taken back, too few to find anything");
    let error = run_parties(STEPS / 2, Scheduler::Optimistic).expect_err("it ends wrong");
    let truth = run_parties(STEPS / 2, Scheduler::Sequential).expect_err("it ends wrong");
    assert_eq!(error, truth);
}

#[test]
fn panics_of_events_that_are_taken_back_are_silent() {
    let output = Command::new(std::env::current_exe().expect("it runs"))
        .args(["--exact", "panics::speculate_in_a_process_of_its_own", "--nocapture"])
        .env(CHILD, "yes")
        .output()
        .expect("it can be run again");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    // The sequential run prints its panic as every program does, and so does the optimistic one where
    // nothing could take the event back any more. What is speculation prints nothing: all that ends
    // wrong there is that messages are missing.
    let panics = said.matches("panicked at").count();
    assert!((1..=2).contains(&panics), "{said}");
    assert_eq!(said.matches("step 2000 is the last one").count(), panics, "{said}");
}

/// What an LP does in its start, or when it is asked what it waits for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Odd {
    PanicsAtStart,
    PanicsWhenAsked,
    Tallies(Statistic),
    Records(Series),
}

#[derive(Clone, Debug, PartialEq)]
struct Oddity {
    odd: Odd,
}
fields!(Oddity {});

impl Lp for Oddity {
    type Message = ();

    fn start(&mut self, context: &mut impl Context<()>) {
        match self.odd {
            Odd::PanicsAtStart if context.me().get() == 2 => panic!("no fuel"),
            Odd::Tallies(statistic) => context.tally(statistic, 1.0),
            Odd::Records(series) => context.record(series, 1.0),
            Odd::PanicsAtStart | Odd::PanicsWhenAsked => {}
        }
    }

    fn handle(&mut self, (): (), _context: &mut impl Context<()>) {}

    fn waiting(&self) -> Option<String> {
        assert!(self.odd != Odd::PanicsWhenAsked, "nobody knows");
        None
    }
}

fn told(odd: Odd) -> String {
    let texts = [
        (Scheduler::Sequential, 1),
        (Scheduler::Conservative, 2),
        (Scheduler::Optimistic, 2),
        (Scheduler::Check, 1),
    ]
    .map(|(scheduler, threads)| {
        let mut model = Model::new(1);
        let engines = model.group("engines", 4);
        model.link(engines, engines, Nanos::new(5));
        model.fill(engines, |_| Oddity { odd });
        let error = run(model, &Options::new(scheduler, threads)).expect_err("it is told");
        error.to_string()
    });
    assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
    let [text, ..] = texts;
    text
}

#[test]
fn what_goes_wrong_outside_of_handlers_is_an_error_of_the_run_too() {
    let place = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "N");
    assert_eq!(
        place(&told(Odd::PanicsAtStart)),
        "LP N of `engines` at Nns, its start: its handler panicked at sim/tests/it/panics.rs:NNN:NN: no fuel"
    );
    assert_eq!(
        place(&told(Odd::PanicsWhenAsked)),
        "LP N of `engines` at the end of the run, asked what it waits for: its handler panicked at sim/tests/it/panics.rs:NNN:N: nobody knows"
    );
    let mut other: Model<Oddity> = Model::new(1);
    let strangers = other.group("strangers", 9);
    let statistic = other.statistic(strangers, "visits");
    let series = other.series("visits");
    assert_eq!(
        told(Odd::Tallies(statistic)),
        "LP 0 of `engines` at 0ns, its start: it tallies a statistic that another model declared; this one has 0"
    );
    assert_eq!(
        told(Odd::Records(series)),
        "LP 0 of `engines` at 0ns, its start: it records into a series that another model declared; this one has 0"
    );
}

#[test]
fn a_group_of_another_model_is_an_error_of_the_run() {
    let mut other: Model<Oddity> = Model::new(1);
    other.group("first", 3);
    let stranger = other.group("second", 9);
    type Use<'a> = &'a dyn Fn(&mut Model<Oddity>);
    let uses: [Use<'_>; 4] = [
        &|model| model.fill(stranger, |_| Oddity { odd: Odd::PanicsAtStart }),
        &|model| model.link(stranger, stranger, Nanos::ZERO),
        &|model| {
            model.statistic(stranger, "visits");
        },
        &|model| {
            let own = model.group("own", 3);
            model.link(own, stranger, Nanos::ZERO);
        },
    ];
    for (at, use_it) in uses.iter().enumerate() {
        let mut model = Model::new(1);
        use_it(&mut model);
        let error = run(model, &Options::new(Scheduler::Sequential, 1)).expect_err("it is told");
        assert_eq!(error, RunError::ForeignGroup { first: LpId::new(3), count: 9 }, "use {at}");
    }
    let mut model = Model::new(1);
    let own = model.group("own", 3);
    model.fill(own, |_| Oddity { odd: Odd::PanicsAtStart });
    model.link_lps(LpId::new(2), LpId::new(3), Nanos::ZERO);
    let options = Options::new(Scheduler::Sequential, 1).until(SimTime::from_nanos(1));
    let error = run(model, &options).expect_err("it is told");
    assert_eq!(error, RunError::UnknownLp { lp: LpId::new(3), count: 3 });
}
