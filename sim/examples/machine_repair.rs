//! Machines that break down, and one repairer: two groups of LPs, the links between them, and a queue.
//!
//! The share of time for which the repairer is busy has a closed form (Erlang's loss formula; the
//! machine repair model, also with constant ways to the repairer and back).

use meikyo_sim::{Context, Lp, LpId, Model, Options, RunError, Scheduler, run};
use meikyo_undo::{Cell, Deque, fields, variants};
use meikyo_units::{Nanos, SimTime};

const MACHINES: u32 = 6;
const REPAIRER: LpId = LpId::new(MACHINES);
/// How long a machine works, in the mean; how long it is on its way, there and back; how long its
/// repair takes, in the mean.
const WORKS: Nanos = Nanos::from_secs(80);
const WAY: Nanos = Nanos::from_secs(10);
const REPAIR: Nanos = Nanos::from_secs(20);
const UNTIL: SimTime = SimTime::from_nanos(20_000_000 * 1_000_000_000);

#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
enum Event {
    /// A machine comes to the repairer, or back from it.
    Comes(LpId),
    /// The repairer has done the first machine of its queue.
    Done,
}

#[derive(Clone, Debug, PartialEq)]
struct Machine {
    repairs: Cell<u64>,
}
fields!(Machine { repairs });

impl Machine {
    fn work(&mut self, context: &mut impl Context<Event>) {
        let works = context.exponential(WORKS);
        context.send(REPAIRER, works + WAY, Event::Comes(context.me()));
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Repairer {
    queue: Deque<LpId>,
    busy: Cell<Nanos>,
}
fields!(Repairer { queue, busy });

impl Repairer {
    fn handle(&mut self, event: Event, context: &mut impl Context<Event>) {
        let starts = match event {
            Event::Comes(machine) => {
                self.queue.push_back(context, machine);
                self.queue.len() == 1
            }
            Event::Done => {
                if let Some(machine) = self.queue.pop_front(context) {
                    context.send(machine, WAY, Event::Comes(machine));
                }
                !self.queue.is_empty()
            }
        };
        if starts {
            let repair = context.exponential(REPAIR);
            self.busy.add(context, repair);
            context.send(context.me(), repair, Event::Done);
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Workshop {
    Machine(Machine),
    Repairer(Repairer),
}
variants!(Workshop { Machine(Machine), Repairer(Repairer) });

impl Lp for Workshop {
    type Message = Event;

    fn start(&mut self, context: &mut impl Context<Event>) {
        if let Self::Machine(machine) = self {
            machine.work(context);
        }
    }

    fn handle(&mut self, event: Event, context: &mut impl Context<Event>) {
        match self {
            Self::Machine(machine) => {
                machine.repairs.add(context, 1);
                machine.work(context);
            }
            Self::Repairer(repairer) => repairer.handle(event, context),
        }
    }
}

/// 1 - 1 / (1 + N r + N (N - 1) r^2 + ...), with r = repair / (work and both ways).
fn busy_share() -> f64 {
    let ratio = REPAIR.as_secs_f64() / (WORKS + WAY * 2).as_secs_f64();
    let (mut state, mut states) = (1.0, 1.0);
    for broken in 0..MACHINES {
        state *= f64::from(MACHINES - broken) * ratio;
        states += state;
    }
    1.0 - 1.0 / states
}

pub(crate) fn main() -> Result<(), RunError> {
    let mut model = Model::new(1);
    let machines = model.group("machines", MACHINES);
    let repairer = model.group("repairer", 1);
    model.link(machines, repairer, WAY);
    model.link(repairer, machines, WAY);
    model.fill(machines, |_| Workshop::Machine(Machine { repairs: Cell::default() }));
    model.fill(repairer, |_| Workshop::Repairer(Repairer::default()));

    let outcome = run(model, &Options::new(Scheduler::Sequential, 1).until(UNTIL))?;
    let Some(Workshop::Repairer(repairer)) = outcome.lps.last() else {
        unreachable!("the repairer is the last LP")
    };
    let span = UNTIL.since(SimTime::START).as_secs_f64();
    let busy = repairer.busy.get().as_secs_f64() / span;
    assert!((busy / busy_share() - 1.0).abs() < 0.005, "{busy} against {}", busy_share());
    Ok(())
}
