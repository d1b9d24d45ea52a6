//! The ranks that `mpirun` started: a simulation runs over all of them, and the first one speaks.

use std::sync::OnceLock;

use meikyo_sim::Ranks;

use crate::failure::{Answer, Failure};

/// The ranks that this process has joined. They are a fact of the process, as its arguments are.
static JOINED: OnceLock<Ranks> = OnceLock::new();

/// The ranks that simulations run over.
pub fn joined() -> Ranks {
    JOINED.get().copied().unwrap_or(Ranks::ONE)
}

/// Does `work` over the ranks that `mpirun` started, if it did.
///
/// # Errors
/// That of `work`.
#[cfg(feature = "mpi")]
pub fn over(work: impl FnOnce() -> Result<Answer, Failure>) -> Result<Answer, Failure> {
    if Ranks::started().is_none_or(|count| count < 2) {
        return work();
    }
    let Some(membership) = meikyo_sim::Membership::begin() else { return work() };
    let ranks = *JOINED.get_or_init(|| membership.ranks());
    let result = work();
    let first_failed = membership.leave(result.is_err());
    // What went wrong for all is said once.
    match result {
        Err(_) if !ranks.is_first() && first_failed => Err(Failure::said_elsewhere()),
        result => result,
    }
}

/// Does `work` if it is not to be done over several ranks.
///
/// # Errors
/// That of `work`, and if there are several ranks: this program was built without MPI.
#[cfg(not(feature = "mpi"))]
pub fn over(work: impl FnOnce() -> Result<Answer, Failure>) -> Result<Answer, Failure> {
    match Ranks::started() {
        Some(count) if count > 1 => Err(Failure::new(format!(
            "`mpirun` started {count} processes, and this program was built without MPI"
        ))
        .hint("cargo build --release --features mpi")),
        _ => work(),
    }
}
