//! What a model may not do is told the same way under every scheduler.

use meikyo_sim::{Context, Group, Lp, LpId, Model, Options, RunError, Scheduler, Statistic, run};
use meikyo_undo::{Cell, fields};
use meikyo_units::{Nanos, SimTime};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Sin {
    UnknownLp,
    NoLink,
    TooSoon,
    Endless,
    ForeignStatistic(Statistic),
    Panic,
    Silence,
}

/// Two groups of LPs send each other messages until one of them sins, somewhere in the middle.
#[derive(Clone, Debug, PartialEq)]
struct Sinner {
    sin: Sin,
    peers: u32,
    seen: Cell<u64>,
}
fields!(Sinner { seen });

impl Lp for Sinner {
    type Message = u32;

    fn start(&mut self, context: &mut impl Context<u32>) {
        let delay = Nanos::new(u64::from(context.me().get()));
        context.send(context.me(), delay, 0);
    }

    fn handle(&mut self, hops: u32, context: &mut impl Context<u32>) {
        self.seen.add(context, 1);
        let me = context.me();
        let next = LpId::new((me.get() + 1) % self.peers);
        if hops < 40 {
            context.send(next, Nanos::new(10), hops + 1);
            return;
        }
        match self.sin {
            Sin::UnknownLp => context.send(LpId::new(77), Nanos::new(10), 0),
            Sin::NoLink => context.send(LpId::new(self.peers), Nanos::new(10), 0),
            Sin::TooSoon => context.send(next, Nanos::new(9), 0),
            Sin::Endless => context.send(me, Nanos::ZERO, hops),
            Sin::ForeignStatistic(statistic) => context.tally(statistic, 1.0),
            Sin::Panic => panic!("hop {hops} is too far"),
            Sin::Silence => {}
        }
    }

    fn waiting(&self) -> Option<String> {
        (self.seen.get() < 30).then(|| "a thirtieth message".to_owned())
    }
}

fn sinners(sin: impl Fn(Statistic) -> Sin) -> Model<Sinner> {
    let mut model = Model::new(1);
    let ring: Group = model.group("ring", 6);
    let outside = model.group("outside", 2);
    let statistic = model.statistic(outside, "visits");
    let sin = sin(statistic);
    model.link(ring, ring, Nanos::new(10));
    model.fill(ring, |_| Sinner { sin, peers: 6, seen: Cell::new(0) });
    model.fill(outside, |_| Sinner { sin, peers: 6, seen: Cell::new(100) });
    model.link(outside, ring, Nanos::new(10));
    model
}

fn told(sin: impl Fn(Statistic) -> Sin) -> String {
    let options = |scheduler, threads| {
        let mut options = Options::new(scheduler, threads).until(SimTime::from_nanos(10_000));
        options.steps_max = 500;
        options
    };
    let message =
        |options: &Options| run(sinners(&sin), options).expect_err("a sin is told").to_string();
    let truth = message(&options(Scheduler::Sequential, 1));
    for scheduler in [Scheduler::Conservative, Scheduler::Optimistic, Scheduler::Auto] {
        for threads in [1, 2, 4] {
            assert_eq!(message(&options(scheduler, threads)), truth, "{scheduler:?} {threads}");
        }
    }
    assert_eq!(message(&options(Scheduler::Check, 1)), truth);
    truth
}

#[test]
fn every_scheduler_tells_the_same_fault() {
    assert_eq!(
        told(|_| Sin::UnknownLp),
        "LP 4 of `ring` at 400ns, event 53 of LP 3: it sends to LP 77, and the model has 8 LPs (0 to 7)"
    );
    assert_eq!(
        told(|_| Sin::NoLink),
        "LP 4 of `ring` at 400ns, event 53 of LP 3: it sends to LP 6 of `outside`, and no link from `ring` to `outside` is declared"
    );
    assert_eq!(
        told(|_| Sin::TooSoon),
        "LP 4 of `ring` at 400ns, event 53 of LP 3: it sends to LP 5 after 9ns, and the link from `ring` to `ring` has a least delay of 10ns"
    );
    assert_eq!(
        told(|_| Sin::Endless),
        "LP 4 of `ring` at 400ns, event 553 of LP 4: 500 events without delay followed each other in this instant, the last of them sent by LP 4 of `ring` to LP 4 of `ring`"
    );
    assert_eq!(
        told(Sin::ForeignStatistic),
        "LP 4 of `ring` at 400ns, event 53 of LP 3: it tallies `visits`, which belongs to the LPs of `outside`"
    );
    let panicked = told(|_| Sin::Panic);
    let begin = "LP 4 of `ring` at 400ns, event 53 of LP 3: its handler panicked at sim/tests/it/refusals.rs:";
    assert!(panicked.starts_with(begin), "{panicked}");
    assert!(panicked.ends_with(": hop 40 is too far"), "{panicked}");
}

#[test]
fn lps_that_wait_for_ever_are_named() {
    for (scheduler, threads) in
        [(Scheduler::Sequential, 1), (Scheduler::Conservative, 2), (Scheduler::Optimistic, 2)]
    {
        let options = Options::new(scheduler, threads);
        let outcome = run(sinners(|_| Sin::Silence), &options).unwrap();
        let total: u64 = outcome.lps.iter().map(|lp| lp.seen.get()).sum();
        assert_eq!(total, 200 + 8 * 41, "{scheduler:?}");
        assert!(!outcome.events_left);
        let waiting: Vec<u32> = outcome.waiting.iter().map(|(lp, _)| lp.get()).collect();
        let few = (0..6).filter(|lp| outcome.lps[*lp as usize].seen.get() < 30);
        assert_eq!(waiting, few.collect::<Vec<_>>());
    }
}

#[test]
fn incomplete_models_are_refused() {
    let empty: Model<Sinner> = Model::new(1);
    let options = Options::new(Scheduler::Sequential, 1);
    assert_eq!(run(empty, &options).unwrap_err(), RunError::Empty);
    let mut declared: Model<Sinner> = Model::new(1);
    declared.group("ring", 3);
    assert_eq!(
        run(declared, &options).unwrap_err().to_string(),
        "group `ring` was declared and never filled"
    );
}

/// An LP of a mebibyte: 4 PiB of them are more than addresses reach.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Large([[[[u64; 4]; 32]; 32]; 32]);
meikyo_undo::copied!(Large);

impl Lp for Large {
    type Message = ();

    fn handle(&mut self, (): (), _context: &mut impl Context<()>) {
        self.0[0][0][0][0] += 1;
    }
}

#[test]
fn lps_that_no_memory_can_hold_are_refused() {
    let mut model = Model::new(1);
    let giants = model.group("giants", u32::MAX);
    model.fill(giants, |_| Large([[[[0; 4]; 32]; 32]; 32]));
    let error = run(model, &Options::new(Scheduler::Auto, 2)).expect_err("it cannot be made");
    assert_eq!(
        error.to_string(),
        "4294967295 LPs in the group `giants`, 1048576 bytes each, do not fit into memory"
    );
}
