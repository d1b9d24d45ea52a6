//! Runs the parts of a model on as many threads, the first of them the caller's own.
//!
//! The threads work as a crew ([`crate::exchange::crew`]) and share nothing but its parts and the
//! [`SharedMemory`] of their exchanges. None outlives the call.

use std::sync::Arc;

use meikyo_undo::Wire;

use crate::context::Lp;
use crate::coordinator::{Alone, Coordinator, words_max};
use crate::exchange::crew::{Crew, Part, Patience, Rest};
use crate::exchange::shared_memory::SharedMemory;
use crate::outcome::PartResult;
use crate::setup::Setup;
use crate::share::Share;
use crate::statistics::Observer;
use crate::transport::Transport;

/// How patient threads are that have a core each: some microseconds of looking, then some of giving
/// way to others, before they sleep.
const WITH_A_CORE_EACH: Patience = Patience { first: 200, spins: 1_000, yields: 400 };
/// Threads that share cores give way at once to those they wait for.
const WITH_SHARED_CORES: Patience = Patience { first: 1, spins: 1, yields: 20 };

/// How a scheduler runs the parts of a model.
pub(crate) trait Scheme<L: Lp> {
    /// What parts send each other.
    type Mail: Send + Wire;
    /// A part with all that is needed to run it.
    type Worker<'a>: Part
    where
        L: 'a;

    /// Publishes the first report of a part.
    fn begin<'a>(
        coordinator: Coordinator<'a, Transport<'a, Self::Mail>>,
        share: Share<L>,
    ) -> Self::Worker<'a>
    where
        L: 'a;

    /// What a part has become, when all parts have done their last window.
    fn finish<'a>(worker: Self::Worker<'a>) -> PartResult<L>
    where
        L: 'a;
}

/// Runs `shares` as `S` does and gives what they have become, in their order. The first part speaks to
/// `observer`.
pub(crate) fn run<L: Lp, S: Scheme<L>>(
    setup: &Setup<'_>,
    shares: Vec<Share<L>>,
    observer: &mut dyn Observer,
    alone: Alone,
) -> Vec<PartResult<L>> {
    let parts = shares.len();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let patience = if parts <= cores { WITH_A_CORE_EACH } else { WITH_SHARED_CORES };
    let memory = SharedMemory::new(parts, words_max(parts));
    let rest = Arc::new(Rest::new());
    let judge = (parts > 1).then(|| (Arc::clone(&rest), alone));
    let mut observer = Some(observer);
    let begin = |(part, share)| {
        let endpoint = Transport::Threads(memory.endpoint(part));
        let observer = observer.take().map(|observer| -> &mut dyn Observer { observer });
        let coordinator = Coordinator::new(setup, part, endpoint, observer, judge.clone());
        S::begin(coordinator, share)
    };
    let workers: Vec<_> = shares.into_iter().enumerate().map(begin).collect();
    let crew = Crew::new(workers, &memory, patience, rest);
    std::thread::scope(|scope| {
        let crew = &crew;
        for own in 1..parts {
            scope.spawn(move || crew.work(own));
        }
        crew.work(0);
    });
    crew.into_parts().map(S::finish).collect()
}
