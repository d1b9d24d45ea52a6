//! PHOLD: every LP keeps events in flight, and each event sends one on.
use std::time::Instant;

use meikyo_sim::{Context, Lp, LpId, Model, Options, Scheduler, run};
use meikyo_undo::{Cell, fields};
use meikyo_units::{Nanos, SimTime};

#[derive(Clone, Debug, PartialEq)]
struct Holder {
    remote: f64,
    lps: u32,
    population: u32,
    lookahead: Nanos,
    mean: Nanos,
    events: Cell<u64>,
    digest: Cell<u64>,
}
fields!(Holder { events, digest });

impl Holder {
    fn delay(&self, context: &mut impl Context<u64>) -> Nanos {
        self.lookahead + context.exponential(self.mean.saturating_sub(self.lookahead))
    }
}

impl Lp for Holder {
    type Message = u64;
    fn start(&mut self, context: &mut impl Context<u64>) {
        for _ in 0..self.population {
            let delay = self.delay(context);
            context.send(context.me(), delay, 0);
        }
    }
    fn handle(&mut self, message: u64, context: &mut impl Context<u64>) {
        let key = context.event();
        self.events.add(context, 1);
        let digest = (self.digest.get()
            ^ key.time.as_nanos()
            ^ key.sequence.rotate_left(40)
            ^ u64::from(key.source.get()))
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .rotate_left(29);
        self.digest.set(context, digest);
        let destination = if context.uniform() < self.remote {
            LpId::new(context.below(self.lps))
        } else {
            context.me()
        };
        let delay = self.delay(context);
        context.send(destination, delay, message);
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut next = |default: f64| arguments.next().map_or(default, |text| text.parse().unwrap());
    let (lps, population, remote, end, threads, which) = (
        next(1024.0) as u32,
        next(1.0) as u32,
        next(0.1),
        next(4000.0),
        next(1.0) as usize,
        next(0.0) as usize,
    );
    let (lookahead, mean) = (Nanos::from_secs_f64(0.1), Nanos::from_secs_f64(1.0));
    let mut model = Model::new(1);
    let group = model.group("holders", lps);
    model.fill(group, |_| Holder {
        remote,
        lps,
        population,
        lookahead,
        mean,
        events: Cell::new(0),
        digest: Cell::new(0),
    });
    model.link(group, group, lookahead);
    let scheduler = [
        Scheduler::Sequential,
        Scheduler::Conservative,
        Scheduler::Optimistic,
        Scheduler::Auto,
        Scheduler::Check,
    ][which];
    let start = Instant::now();
    let outcome = run(
        model,
        &Options::new(scheduler, threads).until(SimTime::from_nanos((end * 1e9) as u64)),
    )
    .unwrap();
    let wall = start.elapsed().as_secs_f64();
    let hash = outcome.lps.iter().fold(0_u64, |hash, lp| {
        (hash ^ lp.digest.get()).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31)
    });
    println!(
        "{} events {:.3} s {:.1} ns/event hash {hash:x} {:?}",
        outcome.events,
        wall,
        wall * 1e9 / outcome.events as f64,
        outcome.effort
    );
}
