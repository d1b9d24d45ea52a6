//! Events that LPs schedule for themselves and take back.

use meikyo_sim::Problem;
use meikyo_sim::prelude::*;

/// Asks again and again, with a time-out for each question: answers come after 1 to 8 ns, time-outs
/// after 5.
#[derive(Clone, Debug, PartialEq, State)]
struct Asker {
    #[state(fixed)]
    other: LpId,
    timer: Held<Option<Handle>>,
    asked: Cell<u64>,
    answered: Cell<u64>,
    timed_out: Cell<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
enum Message {
    Answer(u64),
    TimeOut,
}

impl Asker {
    fn ask(&mut self, context: &mut impl Context<Message>) {
        if self.asked.get() == 400 {
            return;
        }
        self.asked.add(context, 1);
        let delay = Nanos::new(1 + u64::from(context.below(8)));
        context.send(self.other, Nanos::new(1), Message::Answer(self.asked.get()));
        context.send(context.me(), delay, Message::Answer(self.asked.get()));
        let timer = context.schedule(Nanos::new(5), Message::TimeOut);
        self.timer.set(context, Some(timer));
    }
}

impl Lp for Asker {
    type Message = Message;

    fn start(&mut self, context: &mut impl Context<Message>) {
        self.ask(context);
    }

    fn handle(&mut self, message: Message, context: &mut impl Context<Message>) {
        let own = context.event().source == context.me();
        match message {
            Message::Answer(number) if own && number == self.asked.get() => {
                let Some(timer) = *self.timer.get() else { return };
                context.cancel(timer);
                self.answered.add(context, 1);
                self.ask(context);
            }
            Message::Answer(_) => {}
            Message::TimeOut => {
                self.timer.set(context, None);
                self.timed_out.add(context, 1);
                self.ask(context);
            }
        }
    }

    fn waiting(&self) -> Option<String> {
        (self.answered.get() + self.timed_out.get() < 400).then(|| "an answer".to_owned())
    }
}

fn askers() -> Model<Asker> {
    let mut model = Model::new(7);
    let [askers] = model.groups([("askers", 40)]);
    model.link(askers, askers, Nanos::new(1));
    model.fill(askers, |me| Asker {
        other: LpId::new((me.get() + 20) % 40),
        timer: Held::new(None),
        asked: Cell::new(0),
        answered: Cell::new(0),
        timed_out: Cell::new(0),
    });
    model
}

/// An answer after 5 ns comes before the time-out of that instant, since it was sent before.
#[test]
fn a_time_out_comes_if_and_only_if_its_answer_does_not() {
    let truth = run(askers(), &Options::new(Scheduler::Sequential, 1)).unwrap();
    let sum = |of: fn(&Asker) -> u64| truth.lps.iter().map(of).sum::<u64>();
    let (answered, timed_out) = (sum(|lp| lp.answered.get()), sum(|lp| lp.timed_out.get()));
    assert_eq!(answered + timed_out, 40 * 400);
    // Five of eight delays: 10,000 of 16,000 with a standard deviation of 61.
    assert!((9_700..10_300).contains(&answered), "{answered}");
    // Two events for each question, and one for each time-out that was not taken back.
    assert_eq!(truth.events, 2 * 40 * 400 + timed_out);
    assert!(!truth.events_left);
    assert_eq!(truth.waiting, []);
    for scheduler in [Scheduler::Conservative, Scheduler::Optimistic, Scheduler::Check] {
        for threads in [1, 2, 3] {
            let other = run(askers(), &Options::new(scheduler, threads)).unwrap();
            assert!(other.lps == truth.lps, "{scheduler:?} on {threads}");
            assert_eq!((other.events, other.events_left), (truth.events, false));
        }
    }
}

/// A timer that is far away and taken back: no event is left, whoever runs it.
#[derive(Clone, Debug, PartialEq, State)]
struct Sleeper {
    timer: Held<Option<Handle>>,
    #[state(fixed)]
    steals: bool,
}

impl Lp for Sleeper {
    type Message = Option<Handle>;

    fn start(&mut self, context: &mut impl Context<Option<Handle>>) {
        let far = context.schedule(Nanos::SECOND, None);
        self.timer.set(context, Some(far));
        context.send(context.me(), Nanos::new(1), Some(far));
    }

    fn handle(&mut self, handle: Option<Handle>, context: &mut impl Context<Option<Handle>>) {
        match handle {
            Some(handle) if self.steals && context.event().source == context.me() => {
                let other = LpId::new(1 - context.me().get());
                context.send(other, Nanos::new(1), Some(handle));
            }
            Some(handle) => {
                context.cancel(handle);
                context.cancel(handle);
            }
            None => {}
        }
    }
}

fn sleepers(steals: bool) -> Model<Sleeper> {
    let mut model = Model::new(7);
    let both = model.group("sleepers", 2);
    model.link(both, both, Nanos::new(1));
    model.fill(both, |_| Sleeper { timer: Held::new(None), steals });
    model
}

const SCHEDULERS: [Scheduler; 5] = [
    Scheduler::Sequential,
    Scheduler::Conservative,
    Scheduler::Optimistic,
    Scheduler::Auto,
    Scheduler::Check,
];

#[test]
fn what_was_taken_back_is_not_left_when_a_run_ends_before_it() {
    for scheduler in SCHEDULERS {
        let options = Options::new(scheduler, 2).until(SimTime::from_nanos(50));
        let outcome = run(sleepers(false), &options).unwrap();
        assert_eq!((outcome.events, outcome.events_left), (2, false), "{scheduler:?}");
    }
}

#[test]
fn only_the_lp_that_scheduled_an_event_can_take_it_back() {
    for scheduler in SCHEDULERS {
        let error = run(sleepers(true), &Options::new(scheduler, 2)).unwrap_err();
        let RunError::Fault(fault) = error else { panic!("{scheduler:?}: {error}") };
        let owner = LpId::new(1 - fault.lp.get());
        assert_eq!(fault.problem, Problem::ForeignHandle { owner }, "{scheduler:?}");
    }
}
