//! The end of time is never: what is sent there is handled by no scheduler, and nobody is kept waiting.

use meikyo_sim::{Context, Lp, LpId, Model, Options, Scheduler, run};
use meikyo_undo::{Cell, fields};
use meikyo_units::{Nanos, SimTime};

/// Asks its neighbour, with a time-out that never comes; the neighbour answers all but the last time.
#[derive(Clone, Debug, PartialEq)]
struct Asker {
    answers: Cell<u32>,
    time_outs: Cell<u32>,
}
fields!(Asker { answers, time_outs });

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
enum Event {
    Ask { left: u32 },
    Answer { left: u32 },
    TimeOut,
}

const LPS: u32 = 6;

impl Lp for Asker {
    type Message = Event;

    fn start(&mut self, context: &mut impl Context<Event>) {
        let next = LpId::new((context.me().get() + 1) % LPS);
        context.send(next, Nanos::new(10), Event::Ask { left: 20 });
        context.send(context.me(), Nanos::new(u64::MAX), Event::TimeOut);
    }

    fn handle(&mut self, event: Event, context: &mut impl Context<Event>) {
        let me = context.me().get();
        match event {
            Event::Ask { left: 0 } => {}
            Event::Ask { left } => {
                let before = LpId::new((me + LPS - 1) % LPS);
                context.send(before, Nanos::new(10), Event::Answer { left: left - 1 });
            }
            Event::Answer { left } => {
                self.answers.add(context, 1);
                let next = LpId::new((me + 1) % LPS);
                context.send(next, Nanos::new(10), Event::Ask { left });
                // Both just at the end of time and far beyond it.
                let rest = SimTime::END.since(context.now());
                context.send(context.me(), rest, Event::TimeOut);
                context.send(next, Nanos::new(u64::MAX - 1), Event::TimeOut);
            }
            Event::TimeOut => self.time_outs.add(context, 1),
        }
    }

    fn waiting(&self) -> Option<String> {
        Some(format!("answer {}", self.answers.get() + 1))
    }
}

fn askers() -> Model<Asker> {
    let mut model = Model::new(1);
    let ring = model.group("ring", LPS);
    model.link(ring, ring, Nanos::new(10));
    model.fill(ring, |_| Asker { answers: Cell::new(0), time_outs: Cell::new(0) });
    model
}

#[test]
fn what_is_sent_to_the_end_of_time_never_happens_and_leaves_nothing_under_any_scheduler() {
    for scheduler in [
        Scheduler::Sequential,
        Scheduler::Conservative,
        Scheduler::Optimistic,
        Scheduler::Auto,
        Scheduler::Check,
    ] {
        for threads in [1, 2, 4] {
            let what = format!("{scheduler:?} on {threads}");
            let outcome = run(askers(), &Options::new(scheduler, threads)).expect("it is allowed");
            assert!(outcome.lps.iter().all(|lp| lp.time_outs.get() == 0), "{what}");
            assert_eq!(outcome.events, u64::from(LPS) * (20 + 20 + 1), "{what}");
            assert!(!outcome.events_left, "{what}");
            let waiting: Vec<(u32, &str)> =
                outcome.waiting.iter().map(|(lp, text)| (lp.get(), text.as_str())).collect();
            assert_eq!(waiting, (0..LPS).map(|lp| (lp, "answer 21")).collect::<Vec<_>>(), "{what}");
        }
    }
}
