//! Check mode finds changes that the undo log does not know, and handlers that are no functions.

use std::sync::atomic::{AtomicU64, Ordering};

use meikyo_sim::{Context, Lp, Model, Options, Problem, RunError, Scheduler, run};
use meikyo_undo::{Cell, Deque, Forget, Held, Map, fields};
use meikyo_units::Nanos;

/// How a handler goes past the log.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Plant {
    Nothing,
    PlainField,
    UnlistedField,
    ReplacedField,
    ForgottenLog,
    TakenQueue,
    ReplacedMap,
    InnerCell,
    InsideHeld,
    WorldStatistics,
    WorldSends,
}

static WORLD: AtomicU64 = AtomicU64::new(0);

#[derive(Clone, Debug, PartialEq)]
struct Leaky {
    plant: Plant,
    plain: u64,
    listed: Cell<u64>,
    unlisted: Cell<u64>,
    queue: Deque<u64>,
    map: Map<u64, u64>,
    held: Held<Vec<std::cell::Cell<u64>>>,
    inner: std::cell::Cell<u64>,
}
fields!(Leaky { listed, queue, map, held });

impl Lp for Leaky {
    type Message = u64;

    fn start(&mut self, context: &mut impl Context<u64>) {
        context.send(context.me(), Nanos::new(1), 3);
    }

    fn handle(&mut self, left: u64, context: &mut impl Context<u64>) {
        self.listed.add(context, 1);
        self.queue.push_back(context, left);
        self.map.insert(context, left, left);
        let mut delay = 1;
        match self.plant {
            Plant::Nothing | Plant::TakenQueue | Plant::ReplacedMap if left != 1 => {}
            Plant::Nothing => {}
            Plant::PlainField => self.plain += 1,
            Plant::UnlistedField => self.unlisted.add(context, 1),
            Plant::ReplacedField => self.held = Held::new(vec![std::cell::Cell::new(left + 7)]),
            Plant::ForgottenLog => drop(self.map.remove(&mut Forget, &(left + 1))),
            Plant::TakenQueue => drop(std::mem::take(&mut self.queue)),
            Plant::ReplacedMap => self.map = Map::default(),
            Plant::InnerCell => self.inner.set(left + 7),
            Plant::InsideHeld => self.held.get()[0].set(left + 7),
            Plant::WorldStatistics => {
                let world = WORLD.fetch_add(1, Ordering::Relaxed);
                context.print(&format!("{world}"));
            }
            Plant::WorldSends => delay += WORLD.fetch_add(1, Ordering::Relaxed),
        }
        if left > 0 {
            context.send(context.me(), Nanos::new(delay), left - 1);
        }
    }
}

fn checked(plant: Plant) -> Result<u64, Problem> {
    let mut model = Model::new(5);
    let group = model.group("leaky", 3);
    model.fill(group, |_| Leaky {
        plant,
        plain: 0,
        listed: Cell::new(0),
        unlisted: Cell::new(0),
        queue: Deque::default(),
        map: Map::default(),
        held: Held::new(vec![std::cell::Cell::new(0)]),
        inner: std::cell::Cell::new(0),
    });
    match run(model, &Options::new(Scheduler::Check, 1)) {
        Ok(outcome) => Ok(outcome.events),
        Err(RunError::Fault(fault)) => Err(fault.problem),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn every_planted_escape_is_found_and_named() {
    assert_eq!(checked(Plant::Nothing), Ok(12));
    for (plant, named) in [
        (Plant::PlainField, "in `Leaky`: `plain: 0` became `plain: 1`"),
        (
            Plant::UnlistedField,
            "in `Leaky.unlisted`: `0` became `1`; a change belongs to no field of the state; is a field missing from `fields!`?",
        ),
        (Plant::ReplacedField, "in `Leaky.held.Cell`: `value: 0` became `value: 10`"),
        (Plant::ForgottenLog, "in `Leaky.map"),
        (Plant::InnerCell, "in `Leaky.inner`: `value: 0` became `value: 10`"),
        (Plant::InsideHeld, "in `Leaky.held.Cell`: `value: 0` became `value: 10`"),
    ] {
        match checked(plant) {
            Err(Problem::Escape { difference }) => {
                assert!(difference.starts_with(named), "{plant:?}: {difference}");
            }
            other => panic!("{plant:?} was not found: {other:?}"),
        }
    }
    // What was replaced under the log's feet is found when the log takes its change back.
    for plant in [Plant::TakenQueue, Plant::ReplacedMap] {
        assert!(matches!(checked(plant), Err(Problem::Escape { .. })), "{plant:?}");
    }
    for plant in [Plant::WorldStatistics, Plant::WorldSends] {
        assert!(matches!(checked(plant), Err(Problem::Unrepeatable { .. })), "{plant:?}");
    }
}
