//! A fabric with a group for each of its switches: as quick to build and to run as one with a few.

use std::time::{Duration, Instant};

use meikyo_sim::{
    Context, Group, Lp, LpId, Model, Options, Outcome, Problem, RunError, Scheduler, run,
};
use meikyo_undo::{Cell, fields};
use meikyo_units::{Nanos, SimTime};

/// A switch of a torus that hands frames on to its four neighbours.
#[derive(Clone, Debug, PartialEq)]
struct Switch {
    neighbours: [LpId; 4],
    passed: Cell<u64>,
}
fields!(Switch { passed });

impl Lp for Switch {
    type Message = u32;

    fn start(&mut self, context: &mut impl Context<u32>) {
        context.send(context.me(), Nanos::new(u64::from(context.me().get() % 7)), 12);
    }

    fn handle(&mut self, hops: u32, context: &mut impl Context<u32>) {
        self.passed.add(context, u64::from(hops));
        if let Some(hops) = hops.checked_sub(1) {
            let port = context.below(4) as usize;
            let delay = Nanos::new(100 + u64::from(context.below(50)));
            context.send(self.neighbours[port], delay, hops);
        }
    }
}

const LEAST: Nanos = Nanos::new(100);

fn neighbours(side: u32, lp: u32) -> [LpId; 4] {
    let (x, y) = (lp % side, lp / side);
    let at = |x: u32, y: u32| LpId::new(y % side * side + x % side);
    [at(x + 1, y), at(x + side - 1, y), at(x, y + 1), at(x, y + side - 1)]
}

/// How a torus is declared.
#[derive(Clone, Copy, Debug, PartialEq)]
enum As {
    /// One group of all switches, linked to itself.
    OneGroup,
    /// One group of all switches, linked cable by cable.
    Cables,
    /// A group for each switch, linked cable by cable.
    Groups,
}

fn torus(side: u32, declared: As) -> Model<Switch> {
    let mut model = Model::new(11);
    let count = side * side;
    let make = |me: LpId| Switch { neighbours: neighbours(side, me.get()), passed: Cell::new(0) };
    if declared == As::Groups {
        let groups: Vec<Group> =
            (0..count).map(|at| model.group(&format!("switch {at}"), 1)).collect();
        for group in &groups {
            for neighbour in neighbours(side, group.lp(0).get()) {
                model.link(*group, groups[neighbour.get() as usize], LEAST);
            }
            model.fill(*group, make);
        }
        return model;
    }
    let switches = model.group("switches", count);
    match declared {
        As::OneGroup => model.link(switches, switches, LEAST),
        _ => {
            for lp in switches.lps() {
                neighbours(side, lp.get()).into_iter().for_each(|to| model.link_lps(lp, to, LEAST));
            }
        }
    }
    model.fill(switches, make);
    model
}

fn done(side: u32, declared: As, scheduler: Scheduler, threads: usize) -> Outcome<Switch> {
    let options = Options::new(scheduler, threads).traced();
    run(torus(side, declared), &options).expect("frames go over cables only")
}

#[test]
fn a_torus_does_the_same_however_its_links_are_declared_and_it_is_run() {
    let truth = done(8, As::OneGroup, Scheduler::Sequential, 1);
    assert_eq!(truth.events, 64 * 13);
    for declared in [As::OneGroup, As::Cables, As::Groups] {
        for scheduler in [Scheduler::Conservative, Scheduler::Optimistic, Scheduler::Check] {
            for threads in [1, 2, 4] {
                let outcome = done(8, declared, scheduler, threads);
                let what = format!("{declared:?}, {scheduler:?} on {threads}");
                assert_eq!(outcome.trace, truth.trace, "{what}");
                assert_eq!(outcome.lps, truth.lps, "{what}");
            }
        }
    }
}

/// With a table of all pairs, these would be 800 MB, filled ten thousand times over.
#[test]
#[expect(clippy::disallowed_methods, reason = "how long a model takes is what is tested")]
fn ten_thousand_groups_take_no_time() {
    let started = Instant::now();
    for (scheduler, threads) in [(Scheduler::Sequential, 1), (Scheduler::Conservative, 2)] {
        let outcome = done(100, As::Groups, scheduler, threads);
        assert_eq!(outcome.events, 10_000 * 13);
    }
    // A tenth of a second each in a release build on an idle machine.
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

/// A switch in the middle, and those around it; each event goes from one to the other.
#[derive(Clone, Debug, PartialEq)]
struct Star {
    leaves: u32,
    passed: Cell<u64>,
}
fields!(Star { passed });

impl Lp for Star {
    type Message = ();

    fn start(&mut self, context: &mut impl Context<()>) {
        if context.me() == LpId::new(0) {
            context.send(context.me(), Nanos::new(1), ());
        }
    }

    fn handle(&mut self, (): (), context: &mut impl Context<()>) {
        self.passed.add(context, 1);
        let in_the_middle = context.me() == LpId::new(0);
        let to = if in_the_middle { 1 + context.below(self.leaves) } else { 0 };
        context.send(LpId::new(to), LEAST, ());
    }
}

fn star(leaves: u32, groups: u32) -> Model<Star> {
    let mut model = Model::new(3);
    let make = |_| Star { leaves, passed: Cell::new(0) };
    let middle = model.group("middle", 1);
    model.fill(middle, make);
    for at in 0..groups {
        let group = model.group(&format!("around {at}"), leaves / groups);
        model.link(middle, group, LEAST);
        model.link(group, middle, LEAST);
        model.fill(group, make);
    }
    model
}

/// To look through the links of the middle one after the other would take 20 times as long.
#[test]
#[expect(clippy::disallowed_methods, reason = "how long a model takes is what is tested")]
fn an_event_of_a_group_with_thousands_of_links_costs_little_more_than_of_one_with_one() {
    let took = |groups: u32| {
        let options = Options::new(Scheduler::Sequential, 1).until(SimTime::from_nanos(20_000_000));
        let model = star(4_000, groups);
        let started = Instant::now();
        assert_eq!(run(model, &options).unwrap().events, 200_000);
        started.elapsed()
    };
    // Whatever else runs disturbs one of three runs, but hardly all of them.
    let least = |groups| (0..3).map(|_| took(groups)).min().unwrap();
    let (one, thousands) = (least(1), least(4_000));
    assert!(thousands < one * 8, "{thousands:?} with thousands of groups, {one:?} with one");
}

#[test]
fn a_link_of_two_lps_permits_nothing_else() {
    let told = |to: u32, delay: u64| {
        let once = Once { to: LpId::new(to), delay: Nanos::new(delay) };
        let mut model = Model::new(1);
        let (switches, sender) = (model.group("switches", 16), model.group("sender", 1));
        model.fill(switches, |_| once);
        model.fill(sender, |_| once);
        model.link_lps(sender.lp(0), LpId::new(5), Nanos::new(120));
        let options = Options::new(Scheduler::Sequential, 1).until(SimTime::from_nanos(1_000));
        run(model, &options).map(|outcome| outcome.events)
    };
    assert_eq!(told(5, 120), Ok(2));
    let problem = |result: Result<u64, RunError>| match result {
        Err(RunError::Fault(fault)) => fault.problem,
        other => panic!("{other:?}"),
    };
    let (from, to) = ("sender".to_owned(), "switches".to_owned());
    assert_eq!(
        problem(told(4, 500)),
        Problem::NoLink { destination: LpId::new(4), from: from.clone(), to: to.clone() }
    );
    let (destination, delay, least) = (LpId::new(5), Nanos::new(119), Nanos::new(120));
    assert_eq!(problem(told(5, 119)), Problem::TooSoon { destination, delay, least, from, to });
}

/// The last LP sends one message.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Once {
    to: LpId,
    delay: Nanos,
}
fields!(Once {});

impl Lp for Once {
    type Message = ();

    fn start(&mut self, context: &mut impl Context<()>) {
        if context.me() == LpId::new(16) {
            context.send(context.me(), Nanos::new(1), ());
        }
    }

    fn handle(&mut self, (): (), context: &mut impl Context<()>) {
        if context.me() == LpId::new(16) {
            context.send(self.to, self.delay, ());
        }
    }
}
