//! The ranks that `mpirun` started: a simulation runs over all of them, and the first one speaks.

pub(crate) mod joined;

use meikyo_sim::Ranks;

use crate::failure::{Answer, Failure};
pub use joined::joined;

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
    let ranks = joined::join(membership.ranks());
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
