//! A run in which most events are rolled back says so, and names the LPs.

use meikyo_sim::{Context, Effort, Lp, LpId, Model, Options, Outcome, Scheduler, run};
use meikyo_undo::{Cell, fields};
use meikyo_units::Nanos;

/// LPs that nobody disturbs.
const BYSTANDERS: u32 = 8;
/// Steps without delay of each duellist in one instant.
const STEPS: u32 = 300;
const INSTANTS: u32 = 4;

/// Two LPs that send each other a message in every step of an instant, in parts of their own: whoever
/// is ahead is rolled back by the other's messages, and rolls back what the other has already handled.
#[derive(Clone, Debug, PartialEq)]
struct Duellist {
    digest: Cell<u64>,
}
fields!(Duellist { digest });

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
enum Duel {
    Step { left: u32, instants: u32 },
    Hit,
}

impl Lp for Duellist {
    type Message = Duel;

    fn start(&mut self, context: &mut impl Context<Duel>) {
        let first = Duel::Step { left: STEPS, instants: INSTANTS };
        context.send(context.me(), Nanos::SECOND, first);
    }

    fn handle(&mut self, message: Duel, context: &mut impl Context<Duel>) {
        let (key, me) = (context.event(), context.me());
        let digest = self.digest.get().rotate_left(7) ^ key.sequence ^ u64::from(key.depth);
        self.digest.set(context, digest);
        let Duel::Step { left, instants } = message else { return };
        let next = match (left.checked_sub(1), instants.checked_sub(1)) {
            (Some(left), _) => (Nanos::ZERO, Duel::Step { left, instants }),
            (None, Some(instants)) => (Nanos::SECOND, Duel::Step { left: STEPS, instants }),
            (None, None) => return,
        };
        context.send(me, next.0, next.1);
        if me.get() >= BYSTANDERS {
            let other = LpId::new(2 * BYSTANDERS + 1 - me.get());
            context.send(other, Nanos::ZERO, Duel::Hit);
        }
    }
}

fn duel(scheduler: Scheduler, threads: usize) -> Outcome<Duellist> {
    let mut model = Model::new(7);
    let bystanders = model.group("bystanders", BYSTANDERS);
    let duellists = model.group("duellists", 2);
    model.link(duellists, duellists, Nanos::ZERO);
    for group in [bystanders, duellists] {
        model.fill(group, |_| Duellist { digest: Cell::new(0) });
    }
    run(model, &Options::new(scheduler, threads).traced()).expect("the model keeps the rules")
}

fn told(effort: &Effort) -> Option<String> {
    effort.cascade(|lp| match lp.get().checked_sub(BYSTANDERS) {
        Some(place) => format!("duellist {place}"),
        None => format!("bystander {lp}"),
    })
}

#[test]
fn a_cascade_of_rollbacks_is_told_with_the_lps_that_set_each_other_back() {
    let truth = duel(Scheduler::Sequential, 1);
    assert_eq!(told(&truth.effort), None);
    let outcome = duel(Scheduler::Optimistic, 2);
    assert_eq!((&outcome.trace, &outcome.lps), (&truth.trace, &truth.lps));
    let Effort { handled, undone, rollbacks, .. } = outcome.effort;
    assert_eq!(handled - undone, truth.events);
    let said = told(&outcome.effort).expect("most events are rolled back");
    let begin = format!("a cascade of rollbacks: {undone} of {handled} events were rolled back; ");
    let named =
        said.strip_prefix(&begin).and_then(|rest| rest.strip_prefix("rolled back most often: "));
    let mut times: Vec<(&str, u64)> = named
        .expect("the message has its form")
        .split(", ")
        .map(|one| {
            let (name, times) =
                one.strip_suffix(" times").and_then(|one| one.rsplit_once(' ')).unwrap();
            (name, times.parse().unwrap())
        })
        .collect();
    assert!(times.is_sorted_by(|one, next| one.1 >= next.1), "{said}");
    assert_eq!(times.iter().map(|(_, times)| times).sum::<u64>(), rollbacks, "{said}");
    times.sort_unstable();
    assert_eq!(
        times.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        ["duellist 0", "duellist 1"],
        "{said}"
    );
}

#[test]
fn a_run_that_keeps_nearly_everything_tells_of_no_cascade() {
    for scheduler in [Scheduler::Conservative, Scheduler::Optimistic, Scheduler::Auto] {
        assert_eq!(told(&duel(scheduler, 1).effort), None, "{scheduler:?}");
    }
}
