//! Runs a model: chooses the scheduler, divides the model, and puts the parts together again.
//!
//! What the schedulers do is theirs; this module never handles an event.

use std::time::Duration;

use crate::check;
use crate::conservative::Conservative;
use crate::context::Lp;
use crate::coordinator::{Alone, Verdict, now};
use crate::fault::RunError;
use crate::key::LpId;
use crate::model::Model;
use crate::optimistic::Optimistic;
use crate::options::{Options, Scheduler};
use crate::outcome::{Effort, Outcome, PartResult};
use crate::panics::{self, Handling};
use crate::partition::{Partition, ZeroDelay};
use crate::ranks;
use crate::rules::Rules;
use crate::sequential;
use crate::setup::Setup;
use crate::share::{self, Pending, Share, World};
use crate::statistics::{self, Observer, Unobserved};
use crate::threads;

/// How long one queue handles all events at first, where windows have few, until threads are tried again;
/// twice as long after each time.
const PAUSE: Duration = Duration::from_millis(200);

/// Runs `model`.
///
/// Under [`Scheduler::Check`], use [`run_built`] if the model can be built more than once.
///
/// # Errors
/// [`RunError`] if the model does what it may not, or is empty.
pub fn run<L: Lp>(model: Model<L>, options: &Options) -> Result<Outcome<L>, RunError> {
    run_observed(model, options, &mut Unobserved)
}

/// Runs `model`, and tells `observer` what is committed and how far it is.
///
/// # Errors
/// [`RunError`] if the model does what it may not, or is empty.
pub fn run_observed<L: Lp>(
    model: Model<L>,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<Outcome<L>, RunError> {
    run_models(model, None, options, observer)
}

/// Builds a model and runs it, as [`run_observed`] does. [`Scheduler::Check`] builds a second one and
/// compares the two event by event: what depends on the order of a `HashMap` in a state, say, is the
/// same in a clone of that state, but not in another model.
///
/// # Errors
/// [`RunError`] if the model does what it may not, or is empty.
pub fn run_built<L: Lp>(
    mut build: impl FnMut() -> Model<L>,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<Outcome<L>, RunError> {
    let model = build();
    let twin = (options.scheduler == Scheduler::Check).then(build);
    run_models(model, twin, options, observer)
}

fn run_models<L: Lp>(
    model: Model<L>,
    twin: Option<Model<L>>,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<Outcome<L>, RunError> {
    panics::wrap_hook();
    let (rules, lps) = model.into_parts(options)?;
    let world = World::new(&rules, lps);
    let twin = twin.map(|twin| rebuilt(&rules, twin, options)).transpose()?;
    let mut effort = Effort { ranks: 1, ..Effort::default() };
    if options.ranks.count() > 1 {
        ranks::run::agree(&rules, options)?;
    }
    let mut unobserved = Unobserved;
    let observer = if options.ranks.is_first() { observer } else { &mut unobserved };
    let world = dispatch(&rules, world, twin, options, observer, &mut effort)?;
    outcome(&rules, world, effort)
}

/// The second model of check mode.
fn rebuilt<L: Lp>(rules: &Rules, twin: Model<L>, options: &Options) -> Result<World<L>, RunError> {
    let (other, lps) = twin.into_parts(options)?;
    if other == *rules { Ok(World::new(rules, lps)) } else { Err(RunError::OtherModel) }
}

/// Runs `world` to its end under the scheduler of `options`.
fn dispatch<L: Lp>(
    rules: &Rules,
    world: World<L>,
    twin: Option<World<L>>,
    options: &Options,
    observer: &mut dyn Observer,
    effort: &mut Effort,
) -> Result<World<L>, RunError> {
    let workers = if options.ranks.count() > 1 { options.ranks.count() } else { options.threads };
    let (parts, zero_delay) = match options.scheduler {
        Scheduler::Sequential | Scheduler::Check => (1, ZeroDelay::StaysInside),
        Scheduler::Conservative | Scheduler::Auto => (workers, ZeroDelay::StaysInside),
        Scheduler::Optimistic => (workers, ZeroDelay::MayCross),
    };
    let partition = Partition::new(rules, parts, zero_delay);
    let mut shares = world.split(rules, &partition);
    share::start(rules, &partition, &mut shares)?;
    let setup = Setup { rules, partition: &partition, options };
    if options.ranks.count() > 1 && partition.parts() > 1 {
        let (shares, events_left) = ranks::run::run(&setup, shares, observer, effort)?;
        let world = World::join(rules, &partition, shares, Pending::Dropped);
        return Ok(World { events_left, ..world });
    }
    match options.scheduler {
        Scheduler::Check => {
            let twin = twin.map(|twin| twin.split(rules, &partition));
            run_check(&setup, &mut shares, twin, observer, effort)?;
        }
        Scheduler::Optimistic => {
            let results = threads::run::<L, Optimistic>(&setup, shares, observer, Alone::Windows);
            (shares, _) = parts_of(results, "optimistic", effort)?;
        }
        Scheduler::Conservative if partition.parts() > 1 => {
            let results = threads::run::<L, Conservative>(&setup, shares, observer, Alone::Windows);
            (shares, _) = parts_of(results, "conservative", effort)?;
        }
        Scheduler::Auto if partition.parts() > 1 => {
            return run_auto(&setup, shares, observer, effort);
        }
        _ => {
            run_sequential(&setup, &mut shares[0], None, observer, effort)?;
        }
    }
    Ok(World::join(rules, &partition, shares, Pending::Dropped))
}

/// Brings together what the parts of a run have become: their shares, and why the run ended.
fn parts_of<L: Lp>(
    results: Vec<PartResult<L>>,
    scheduler: &'static str,
    effort: &mut Effort,
) -> Result<(Vec<Share<L>>, Verdict), RunError> {
    let verdict = results.first().expect("a run has at least one part").verdict;
    effort.threads_used = effort.threads_used.max(results.len());
    match effort.add_parts(scheduler, results.iter().map(|result| &result.ending)) {
        Some(fault) => Err(RunError::Fault(fault)),
        None => Ok((results.into_iter().map(|result| result.share).collect(), verdict)),
    }
}

fn run_check<L: Lp>(
    setup: &Setup<'_>,
    shares: &mut [Share<L>],
    mut twin: Option<Vec<Share<L>>>,
    observer: &mut dyn Observer,
    effort: &mut Effort,
) -> Result<(), RunError> {
    let Setup { rules, partition, options } = *setup;
    if let Some(twin) = &mut twin {
        share::start(rules, partition, twin)?;
        check::same_start(rules, &mut shares[0], &mut twin[0])?;
    }
    let twin = twin.as_mut().map(|twin| &mut twin[0]);
    let events = check::run(rules, &mut shares[0], twin, options, observer)?;
    effort.add_handled("check", events);
    effort.threads_used = 1;
    Ok(())
}

/// Runs on threads while that is better than one queue, and comes back to them.
fn run_auto<L: Lp>(
    setup: &Setup<'_>,
    mut shares: Vec<Share<L>>,
    observer: &mut dyn Observer,
    effort: &mut Effort,
) -> Result<World<L>, RunError> {
    let Setup { rules, partition, .. } = *setup;
    let whole = Partition::new(rules, 1, ZeroDelay::StaysInside);
    let mut pause = PAUSE;
    loop {
        let results = threads::run::<L, Conservative>(setup, shares, observer, Alone::Queue);
        let (parts, verdict) = parts_of(results, "conservative", effort)?;
        let world = World::join(rules, partition, parts, Pending::Kept);
        if verdict != Verdict::DoesNotPay {
            return Ok(world);
        }
        let mut alone = world.split(rules, &whole);
        let over = run_sequential(setup, &mut alone[0], Some(pause), observer, effort)?;
        let world = World::join(rules, &whole, alone, Pending::Kept);
        if over {
            return Ok(world);
        }
        pause = pause.saturating_mul(2);
        shares = world.split(rules, partition);
    }
}

/// Runs the only part, for as long as `pause` says; gives whether it is over.
fn run_sequential<L: Lp>(
    setup: &Setup<'_>,
    share: &mut Share<L>,
    pause: Option<Duration>,
    observer: &mut dyn Observer,
    effort: &mut Effort,
) -> Result<bool, RunError> {
    let pause = pause.and_then(|pause| now().checked_add(pause));
    let extent = sequential::Extent { until: setup.options.until, pause, events: effort.handled };
    let (events, over) = sequential::run(setup.rules, share, extent, observer)?;
    effort.add_handled("sequential", events);
    effort.threads_used = effort.threads_used.max(1);
    Ok(over)
}

fn outcome<L: Lp>(rules: &Rules, world: World<L>, effort: Effort) -> Result<Outcome<L>, RunError> {
    let events_left = world.events_left;
    let mut waiting = Vec::new();
    if !events_left {
        for (lp, slot) in (0..rules.lps()).map(LpId).zip(&world.slots) {
            let waits = panics::caught(Handling::Committed, || slot.state.waiting());
            let group = || rules.group_name(rules.group_of(lp)).to_owned();
            let waits =
                waits.map_err(|problem| RunError::Waiting { lp, group: group(), problem })?;
            waiting.extend(waits.map(|what| (lp, what)));
        }
    }
    let events_per_lp: Vec<u64> = world.slots.iter().map(|slot| slot.counters.handled).collect();
    Ok(Outcome {
        events: events_per_lp.iter().sum(),
        events_per_lp,
        statistics: statistics::results(rules, world.tallies, world.spreads),
        events_left,
        waiting,
        trace: world.trace,
        lps: world.slots.into_iter().map(|slot| slot.state).collect(),
        effort,
    })
}
