//! Running a model.

use meikyo_units::{Bytes, SimTime};

use crate::check;
use crate::conservative::{self, End};
use crate::context::Lp;
use crate::fault::RunError;
use crate::key::LpId;
use crate::model::Model;
use crate::optimistic;
#[cfg(feature = "mpi")]
use crate::over_ranks;
use crate::panics::{self, Handling};
use crate::partition::{Apart, Partition};
use crate::random::mix;
use crate::ranks::Ranks;
use crate::rules::Rules;
use crate::sequential;
use crate::share::{self, GoesOn, Share, World};
use crate::statistics::{self, Observer, StatisticResult, Unobserved};

/// How events are brought into an order that nobody can tell from the sequential one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// One queue on one thread.
    Sequential,
    /// Threads handle what no other thread can still influence.
    Conservative,
    /// Time Warp: threads run ahead, and take back what came too early.
    Optimistic,
    /// Sequential, every event twice, with its changes taken back in between, and once more in a
    /// second model where one can be built ([`run_built`]).
    Check,
    /// What pays.
    Auto,
}

/// How a model is run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The scheduler.
    pub scheduler: Scheduler,
    /// Threads at most.
    pub threads: usize,
    /// The last instant whose events are handled; [`SimTime::END`]: to the end of all events, none of
    /// which is at that instant itself.
    pub until: SimTime,
    /// How much memory speculation may take before it is held back.
    pub memory_limit: Option<Bytes>,
    /// Whether the committed events of each LP are kept as a chain of digests.
    pub traced: bool,
    /// The longest chain of events without delay.
    pub steps_max: u32,
    /// The processes that run the model together. Of several, each runs one part on one thread, and
    /// all get the same outcome; the first is told what the run says.
    pub ranks: Ranks,
}

impl Options {
    /// `scheduler` on `threads` threads, to the end of all events.
    pub fn new(scheduler: Scheduler, threads: usize) -> Self {
        Self {
            scheduler,
            threads: threads.max(1),
            until: SimTime::END,
            memory_limit: None,
            traced: false,
            steps_max: crate::model::STEPS_MAX,
            ranks: Ranks::ONE,
        }
    }

    /// The same, to `until`.
    #[must_use]
    pub fn until(self, until: SimTime) -> Self {
        Self { until, ..self }
    }

    /// The same with a trace.
    #[must_use]
    pub fn traced(self) -> Self {
        Self { traced: true, ..self }
    }
}

/// How a run went. Nothing in here is part of the result: it differs from run to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Events handled, those that were taken back included.
    pub handled: u64,
    /// Events that were taken back.
    pub undone: u64,
    /// Rollbacks: times an LP was set back.
    pub rollbacks: u64,
    /// Changes in undo logs.
    pub undo_records: u64,
    /// The most threads that worked at once, those of all ranks together.
    pub threads_used: usize,
    /// The LPs that were set back most often, at most [`Effort::SETBACKS_MAX`], and how often.
    pub setbacks: Vec<(LpId, u32)>,
    /// Ranks that had a part of the model.
    pub ranks: usize,
    /// Windows or rounds in which the threads met.
    pub meetings: u64,
    /// Scheduler that handled the most events.
    pub scheduler: &'static str,
}

impl Effort {
    /// How many LPs are named that were set back.
    pub const SETBACKS_MAX: usize = 5;

    /// What to tell a person when most of the work was taken back, so that one rollback led to the
    /// next: the LPs that were set back most often, which are where to look, as `name` calls them.
    pub fn cascade(&self, name: impl Fn(LpId) -> String) -> Option<String> {
        let Self { handled, undone, setbacks, .. } = self;
        let named = setbacks.iter().map(|(lp, times)| format!("{} {times} times", name(*lp)));
        (undone * 2 > *handled).then(|| {
            let named = named.collect::<Vec<_>>().join(", ");
            format!(
                "a cascade of rollbacks: {undone} of {handled} events were taken back; set back \
                 most often: {named}"
            )
        })
    }

    /// Notes that `scheduler` has handled `events` more.
    pub(crate) fn add_handled(&mut self, scheduler: &'static str, events: u64) {
        // The run may change its scheduler once: what was handled before is the other one's.
        if self.scheduler.is_empty() || events > self.handled {
            self.scheduler = scheduler;
        }
        self.handled += events;
    }

    /// Adds LPs that were set back, and keeps those that were most often.
    pub(crate) fn add_setbacks(&mut self, more: impl IntoIterator<Item = (LpId, u32)>) {
        self.setbacks.extend(more.into_iter().filter(|(_, times)| *times > 0));
        self.setbacks.sort_by_key(|(lp, times)| (std::cmp::Reverse(*times), *lp));
        self.setbacks.truncate(Self::SETBACKS_MAX);
    }
}

/// What all threads of a run know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crew<'a> {
    pub(crate) rules: &'a Rules,
    pub(crate) partition: &'a Partition,
    pub(crate) options: &'a Options,
}

/// What a run resulted in: the same under every scheduler, on any number of threads.
#[derive(Clone, Debug)]
pub struct Outcome<L> {
    /// The LPs in their final states, in the order of their numbers.
    pub lps: Vec<L>,
    /// Events handled.
    pub events: u64,
    /// Events each LP handled.
    pub events_per_lp: Vec<u64>,
    /// The declared statistics.
    pub statistics: Vec<StatisticResult>,
    /// Whether events were left after `until`.
    pub events_left: bool,
    /// LPs that wait for something although no event is left, and for what.
    pub waiting: Vec<(LpId, String)>,
    /// A digest of each LP's committed events in their order, if it was asked for.
    pub trace: Vec<u64>,
    /// How the run went.
    pub effort: Effort,
}

impl<L> Outcome<L> {
    /// All LPs' traces as one number.
    pub fn trace_digest(&self) -> u64 {
        self.trace.iter().fold(0, |digest, chain| mix(digest ^ chain))
    }
}

/// Threads that must be busy on the average for `Scheduler::Auto` to go on in parallel.
const PAYS: f64 = 1.2;

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
    #[cfg(feature = "mpi")]
    if options.ranks.count() > 1 {
        over_ranks::agree(&rules, options)?;
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

fn dispatch<L: Lp>(
    rules: &Rules,
    world: World<L>,
    twin: Option<World<L>>,
    options: &Options,
    observer: &mut dyn Observer,
    effort: &mut Effort,
) -> Result<World<L>, RunError> {
    let members = if options.ranks.count() > 1 { options.ranks.count() } else { options.threads };
    let (parts, apart) = match options.scheduler {
        Scheduler::Sequential | Scheduler::Check => (1, Apart::InTime),
        Scheduler::Conservative | Scheduler::Auto => (members, Apart::InTime),
        Scheduler::Optimistic => (members, Apart::InSpace),
    };
    let partition = Partition::new(rules, parts, apart);
    let mut shares = world.split(rules, &partition);
    share::start(rules, &partition, &mut shares)?;
    let crew = Crew { rules, partition: &partition, options };
    #[cfg(feature = "mpi")]
    if options.ranks.count() > 1 && partition.parts() > 1 {
        let (shares, events_left) = over_ranks::run(&crew, shares, observer, effort)?;
        let world = World::join(rules, &partition, shares, GoesOn::No);
        return Ok(World { events_left, ..world });
    }
    match options.scheduler {
        Scheduler::Check => {
            let mut twin = twin.map(|twin| twin.split(rules, &partition));
            if let Some(twin) = &mut twin {
                share::start(rules, &partition, twin)?;
                check::same_start(rules, &mut shares[0], &mut twin[0])?;
            }
            let twin = twin.as_mut().map(|twin| &mut twin[0]);
            let events = check::run(rules, &mut shares[0], twin, options, observer)?;
            effort.add_handled("check", events);
            effort.threads_used = 1;
        }
        Scheduler::Optimistic => shares = optimistic::run(&crew, shares, observer, effort)?,
        Scheduler::Conservative if partition.parts() > 1 => {
            (shares, _) = conservative::run(&crew, shares, observer, effort, None)?;
        }
        Scheduler::Auto if partition.parts() > 1 => {
            let (left, end) = conservative::run(&crew, shares, observer, effort, Some(PAYS))?;
            let world = World::join(rules, &partition, left, GoesOn::Yes);
            if end == End::All {
                return Ok(world);
            }
            let partition = Partition::new(rules, 1, Apart::InTime);
            let mut shares = world.split(rules, &partition);
            run_sequential(rules, &mut shares[0], options, observer, effort)?;
            return Ok(World::join(rules, &partition, shares, GoesOn::No));
        }
        _ => run_sequential(rules, &mut shares[0], options, observer, effort)?,
    }
    Ok(World::join(rules, &partition, shares, GoesOn::No))
}

fn run_sequential<L: Lp>(
    rules: &Rules,
    share: &mut Share<L>,
    options: &Options,
    observer: &mut dyn Observer,
    effort: &mut Effort,
) -> Result<(), RunError> {
    let extent = sequential::Extent { until: options.until, events: effort.handled };
    effort.add_handled("sequential", sequential::run(rules, share, extent, observer)?);
    effort.threads_used = effort.threads_used.max(1);
    Ok(())
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
        statistics: statistics::results(rules, world.tallies),
        events_left,
        waiting,
        trace: world.trace,
        lps: world.slots.into_iter().map(|slot| slot.state).collect(),
        effort,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_named_after_the_scheduler_that_handled_most() {
        for (first, then, most) in
            [(100, 30, "conservative"), (30, 100, "sequential"), (5, 5, "conservative")]
        {
            let mut effort = Effort::default();
            effort.add_handled("conservative", first);
            effort.add_handled("sequential", then);
            assert_eq!((effort.scheduler, effort.handled), (most, first + then));
        }
    }
}
