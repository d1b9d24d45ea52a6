//! Joining the other ranks, and leaving them.

use std::fmt;

use mpi::Threading;
use mpi::environment::Universe;
use mpi::topology::Communicator as _;

use super::{Ranks, run};

/// The exit code of a Rust program that panicked.
const PANICKED: i32 = 101;

/// What this process is among the ranks that `mpirun` started, until it is dropped.
///
/// The runs of all ranks must be the same in the same order, on the thread that joined. Dropping it
/// waits for the other ranks to do so too; while the thread panics, it ends them instead, since they
/// might wait for this one for ever.
pub struct Membership {
    universe: Universe,
    ranks: Ranks,
}

impl Membership {
    /// Joins the other ranks. None if this process has done so before: that cannot be repeated.
    pub fn begin() -> Option<Self> {
        let (universe, _) = mpi::initialize_with_threading(Threading::Funneled)?;
        let world = universe.world();
        let thread = Some(std::thread::current().id());
        let ranks = Ranks { own: number(world.rank()), count: number(world.size()), thread };
        Some(Self { universe, ranks })
    }

    /// The ranks that joined, for [`Options::ranks`](crate::Options::ranks).
    pub fn ranks(&self) -> Ranks {
        self.ranks
    }

    /// Waits until all ranks leave, and says whether the first one leaves at the same point of the
    /// program and `failed` as well. A rank that begins a run in the meantime gets
    /// [`RunError::Gone`](crate::RunError::Gone).
    pub fn leave(self, failed: bool) -> bool {
        let mut together = true;
        loop {
            let words = run::roll_call(self.ranks, u64::from(failed));
            if words.iter().all(|word| word & run::BEGINS == 0) {
                return together && words[0] != 0;
            }
            together = false;
        }
    }
}

fn number(rank: mpi::Rank) -> usize {
    usize::try_from(rank).expect("MPI counts from 0")
}

impl Drop for Membership {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.universe.world().abort(PANICKED);
        }
    }
}

impl fmt::Debug for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Membership").field(&self.ranks).finish()
    }
}
