//! The ranks that `mpirun` started: a simulation runs over all of them, and the first one speaks.

pub(crate) mod joined;

use meikyo_sim::{Membership, Ranks};

use crate::failure::{Answer, Failure};
pub use joined::joined;

/// Does `work` over the ranks that `mpirun` started, if it did.
///
/// # Errors
/// That of `work`, and if there are several ranks whose MPI cannot be called.
pub fn over(work: impl FnOnce() -> Result<Answer, Failure>) -> Result<Answer, Failure> {
    if Ranks::started().is_none_or(|count| count < 2) {
        return work();
    }
    let membership = Membership::begin().map_err(|error| {
        Failure::new(error).hint(
            "install the compiler of the MPI whose `mpirun` it is (Debian: libmpich-dev or libopenmpi-dev), or name it: \
             MPICC=mpicc.openmpi",
        )
    })?;
    let Some(membership) = membership else { return work() };
    let ranks = joined::join(membership.ranks());
    let result = work();
    let first_failed = membership.leave(result.is_err());
    // What went wrong for all is said once.
    match result {
        Err(_) if !ranks.is_first() && first_failed => Err(Failure::said_elsewhere()),
        result => result,
    }
}
