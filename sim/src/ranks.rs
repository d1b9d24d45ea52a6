//! Processes that run one model together ("ranks"), started by `mpirun`.

mod collective;
pub(crate) mod exchange;
mod membership;
pub(crate) mod run;

use meikyo_mpi::World;

pub use membership::Membership;

/// The ranks of a run, as one of them sees it.
///
/// There is one unless a [`Membership`] says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranks {
    own: usize,
    count: usize,
    /// The thread that joined the ranks, on which every run must be.
    thread: Option<std::thread::ThreadId>,
}

impl Ranks {
    /// This process alone, without MPI.
    pub const ONE: Self = Self { own: 0, count: 1, thread: None };

    /// The number of this process, from 0.
    pub fn own(self) -> usize {
        self.own
    }

    /// How many ranks there are.
    pub fn count(self) -> usize {
        self.count
    }

    /// Whether this is the first rank, which speaks for all: observers are told on it only.
    pub fn is_first(self) -> bool {
        self.own == 0
    }

    /// Whether the caller is on the thread that joined the ranks.
    pub(crate) fn on_its_thread(self) -> bool {
        self.thread == Some(std::thread::current().id())
    }

    /// How many processes the `mpirun` that started this one has started, as it says in the
    /// environment; none if there was no `mpirun`.
    pub fn started() -> Option<usize> {
        World::started()
    }
}
