//! Runs the parts of a model on threads, one for each part, the first part on the caller's own.
//!
//! The threads share nothing but the [`SharedMemory`] of their exchanges, and none outlives the call.

use crate::context::Lp;
use crate::coordinator::{Coordinator, words_max};
use crate::exchange::barrier::Patience;
use crate::exchange::shared_memory::{Endpoint, SharedMemory};
use crate::outcome::PartResult;
use crate::setup::Setup;
use crate::share::Share;
use crate::statistics::{Line, Observer};

/// How patient threads are that have a core each: a few microseconds of looking, then some of giving
/// way to others, before they sleep.
const WITH_A_CORE_EACH: Patience = Patience { spins: 4_000, yields: 50 };
/// Threads that share cores give way at once to those they wait for.
const WITH_SHARED_CORES: Patience = Patience { spins: 1, yields: 50 };

/// Calls `work` for each of `shares` on a thread of its own, with the coordinator of that part, and
/// gives what the parts have become, in their order. The first part speaks to `observer`; work that
/// keeps fewer than `pays` threads busy ends early.
pub(crate) fn run<L: Lp, T: Send>(
    setup: &Setup<'_>,
    shares: Vec<Share<L>>,
    observer: &mut dyn Observer,
    pays: Option<f64>,
    work: impl Fn(Coordinator<'_, Endpoint<'_, T, Line>>, Share<L>) -> PartResult<L> + Sync,
) -> Vec<PartResult<L>> {
    let parts = shares.len();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let patience = if parts <= cores { WITH_A_CORE_EACH } else { WITH_SHARED_CORES };
    let memory = SharedMemory::new(parts, words_max(parts), patience);
    let (memory, work) = (&memory, &work);
    let mut shares = shares.into_iter().enumerate();
    let (first, share) = shares.next().expect("a model has at least one part");
    std::thread::scope(|scope| {
        let others: Vec<_> = shares
            .map(|(part, share)| {
                scope.spawn(move || {
                    let endpoint = memory.endpoint(part);
                    work(Coordinator::new(setup, part, endpoint, None, pays), share)
                })
            })
            .collect();
        let endpoint = memory.endpoint(first);
        let own = work(Coordinator::new(setup, first, endpoint, Some(observer), pays), share);
        let others = others.into_iter().map(|other| {
            other.join().expect("a thread that panics makes this one panic at the next exchange")
        });
        std::iter::once(own).chain(others).collect()
    })
}
