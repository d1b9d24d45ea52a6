//! The ranks that `mpirun` started: a simulation runs over all of them, and the first one speaks.

pub(crate) mod joined;

use meikyo_mpi::{BuildError, JoinError};
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
        let hint = match error {
            JoinError::OtherMpi { .. } => {
                "name the compiler of the MPI whose `mpirun` it is: MPICC=mpicc.openmpi or MPICC=mpicc.mpich"
            }
            JoinError::Build(BuildError::Unwritten { .. }) => {
                "name a directory that you may write to in XDG_CACHE_HOME or TMPDIR"
            }
            _ => {
                "install the compiler of the MPI whose `mpirun` it is (Debian: libmpich-dev or libopenmpi-dev), \
                 or name it: MPICC=/opt/mpi/bin/mpicc"
            }
        };
        Failure::new(error).hint(hint)
    })?;
    let Some(membership) = membership else { return work() };
    let ranks = joined::join(membership.ranks());
    // The first rank speaks before any leaves: `mpirun` kills all once one has ended with an error.
    let result = if ranks.is_first() { work().map_err(Failure::say) } else { work() };
    let first_failed = membership.leave(result.is_err());
    // What went wrong for all is said once.
    match result {
        Err(_) if !ranks.is_first() && first_failed => Err(Failure::said()),
        result => result,
    }
}
