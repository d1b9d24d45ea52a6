//! Joining the other ranks, and leaving them.

use std::fmt;

use meikyo_mpi::{JoinError, World};

use super::{Ranks, run};

/// The exit code of a Rust program that panicked.
const PANICKED: i32 = 101;

/// What this process is among the ranks that `mpirun` started, until it is dropped.
///
/// The runs of all ranks must be the same in the same order, on the thread that joined. Dropping it
/// waits for the other ranks to do so too; while the thread panics, it ends them instead, since they
/// might wait for this one for ever.
pub struct Membership {
    world: World,
    ranks: Ranks,
}

impl Membership {
    /// Joins the other ranks. None if this process has done so before: that cannot be repeated.
    ///
    /// # Errors
    /// If the MPI at hand cannot be called, or is another one than that of `mpirun`.
    pub fn begin() -> Result<Option<Self>, JoinError> {
        let Some(world) = World::join()? else { return Ok(None) };
        let thread = Some(std::thread::current().id());
        let ranks = Ranks { own: world.own(), count: world.count(), thread };
        Ok(Some(Self { world, ranks }))
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

impl Drop for Membership {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.world.abort(PANICKED);
        }
    }
}

impl fmt::Debug for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Membership").field(&self.ranks).finish()
    }
}
