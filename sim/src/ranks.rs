//! Processes that run one model together ("ranks"), started by `mpirun`.

#[cfg(feature = "mpi")]
pub(crate) mod exchange;
#[cfg(feature = "mpi")]
pub(crate) mod mail;
#[cfg(feature = "mpi")]
mod membership;

#[cfg(feature = "mpi")]
pub use membership::Membership;

/// The ranks of a run, as one of them sees it.
///
/// There is one unless a `Membership` says otherwise (feature `mpi`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranks {
    own: usize,
    count: usize,
    /// The thread that joined them.
    #[cfg(feature = "mpi")]
    thread: Option<std::thread::ThreadId>,
}

impl Ranks {
    /// This process alone.
    pub const ONE: Self = Self {
        own: 0,
        count: 1,
        #[cfg(feature = "mpi")]
        thread: None,
    };

    /// The number of this process, from 0.
    pub fn own(self) -> usize {
        self.own
    }

    /// How many there are.
    pub fn count(self) -> usize {
        self.count
    }

    /// Whether this is the process that speaks for all: what a run says is said here only.
    pub fn is_first(self) -> bool {
        self.own == 0
    }

    /// Whether this is the thread that joined them.
    #[cfg(feature = "mpi")]
    pub(crate) fn on_its_thread(self) -> bool {
        self.thread == Some(std::thread::current().id())
    }

    /// How many processes the `mpirun` that started this one has started, as it says in the
    /// environment; none if there was no `mpirun`.
    pub fn started() -> Option<usize> {
        // MPICH and Slurm, Open MPI.
        ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE"]
            .iter()
            .find_map(|name| std::env::var(name).ok()?.parse().ok())
    }
}
