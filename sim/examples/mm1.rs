//! M/M/1: customers come to one server at random instants, and queue.
use meikyo_sim::{Context, Lp, Model, Options, RunError, Scheduler, Statistic, run};
use meikyo_undo::{Cell, fields};
use meikyo_units::{Nanos, SimTime};

#[derive(Clone, Debug, PartialEq)]
struct Server {
    wait_s: Statistic,
    free: Cell<SimTime>, // when everybody who is here has been served
}
fields!(Server { free });

impl Lp for Server {
    type Message = u32; // a customer comes, and so many will come after it

    fn start(&mut self, context: &mut impl Context<u32>) {
        context.send(context.me(), Nanos::ZERO, 1_000_000);
    }

    fn handle(&mut self, to_come: u32, context: &mut impl Context<u32>) {
        let begins = context.now().max(self.free.get());
        context.tally(self.wait_s, begins.since(context.now()).as_secs_f64());
        let service = context.exponential(Nanos::from_millis(10));
        self.free.set(context, begins + service);
        if to_come > 0 {
            let gap = context.exponential(Nanos::from_millis(20));
            context.send(context.me(), gap, to_come - 1);
        }
    }
}

pub(crate) fn main() -> Result<(), RunError> {
    let mut model = Model::new(1);
    let servers = model.group("servers", 1);
    let wait_s = model.statistic(servers, "wait_s");
    model.fill(servers, |_| Server { wait_s, free: Cell::default() });
    let wait = run(model, &Options::new(Scheduler::Sequential, 1))?.statistics[0].total();
    assert!((wait.sum / 1e6 - 0.010).abs() < 0.0002); // half busy: as long as one service
    Ok(())
}
