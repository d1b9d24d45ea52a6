//! The NAS Parallel Benchmarks as skeletons: who sends how much to whom, and how long each rank works
//! in between.
//!
//! Partners, sizes and order of messages are those of the MPI implementation of version 3.2 and 3.3;
//! the modules say what each of them leaves out. What is computed is the benchmark's own count of operations,
//! at one rate for all of it. Iterations are alike, so that a few of them stand for all
//! ([`Npb::program`]); what comes before the first and after the last one is left out.
//!
//! Source: D. Bailey and others, "The NAS Parallel Benchmarks" (1994) and their reference
//! implementation.

mod cg;
mod ep;
mod ft;
mod is;
mod lu;
mod mg;
mod multipartition;

use meikyo_units::Nanos;

use super::collective::Collectives;
use super::ranks::{RankProgram, Script, Steps};
use crate::completions::count_f64;
use crate::parameters::choice;

pub use cg::exchange as cg_exchange;

/// A benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// Embarrassingly parallel: random numbers, and three sums.
    Ep,
    /// Integer sort: all keys change their rank in every iteration.
    Is,
    /// Conjugate gradient on a sparse matrix: long exchanges along rows of the grid of ranks.
    Cg,
    /// Multigrid: faces of cubes of every size.
    Mg,
    /// Three-dimensional Fourier transforms: transposition of everything.
    Ft,
    /// Gauss-Seidel sweeps in wave fronts: many short messages.
    Lu,
    /// Block tridiagonal systems along each dimension.
    Bt,
    /// Scalar pentadiagonal systems along each dimension.
    Sp,
}
choice!(Kernel {
    Ep = "ep",
    Is = "is",
    Cg = "cg",
    Mg = "mg",
    Ft = "ft",
    Lu = "lu",
    Bt = "bt",
    Sp = "sp",
});

/// How large the problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// For small clusters of the time.
    A,
    /// About four times A.
    B,
    /// About four times B.
    C,
    /// About sixteen times C.
    D,
}
choice!(Class { A = "a", B = "b", C = "c", D = "d" });

/// A run of a benchmark.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Npb {
    /// The benchmark.
    pub kernel: Kernel,
    /// Its size.
    pub class: Class,
    /// How many ranks run it.
    pub ranks: u32,
    /// How many iterations are run; the time of all follows from these. 0: all.
    pub sample: u32,
    /// What one rank computes, in the benchmark's operations a second.
    pub operations_per_s: f64,
    /// Algorithms of the library.
    pub collectives: Collectives,
}

/// The benchmark does not run on so many ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{} of class {} does not run on {ranks} ranks: it needs {needs}", word(*kernel), word(*class))]
pub struct WrongRanks {
    /// The benchmark.
    pub kernel: Kernel,
    /// Its size.
    pub class: Class,
    /// How many ranks were asked for.
    pub ranks: u32,
    /// How many there may be.
    pub needs: &'static str,
}

fn word<C: crate::parameters::Choice>(choice: C) -> String {
    choice.word().to_uppercase()
}

impl Npb {
    /// Iterations of a whole run.
    pub fn iterations(&self) -> u32 {
        match self.kernel {
            Kernel::Ep => 1,
            Kernel::Is => is::ITERATIONS,
            Kernel::Cg => cg::size(self.class).iterations,
            Kernel::Mg => mg::size(self.class).iterations,
            Kernel::Ft => ft::size(self.class).iterations,
            Kernel::Lu => lu::size(self.class).iterations,
            Kernel::Bt => multipartition::BT.size(self.class).iterations,
            Kernel::Sp => multipartition::SP.size(self.class).iterations,
        }
    }

    /// Iterations that are run for a prediction, at least one.
    pub fn sampled(&self) -> u32 {
        match self.sample {
            0 => self.iterations(),
            sample => sample.min(self.iterations()),
        }
    }

    /// Operations of a whole run, as the benchmark counts them in its Mop/s.
    pub fn operations(&self) -> f64 {
        match self.kernel {
            Kernel::Ep => ep::operations(self.class),
            Kernel::Is => is::operations(self.class),
            Kernel::Cg => cg::size(self.class).operations(),
            Kernel::Mg => mg::size(self.class).operations(),
            Kernel::Ft => ft::size(self.class).operations(),
            Kernel::Lu => lu::size(self.class).operations(),
            Kernel::Bt => multipartition::BT.operations(self.class),
            Kernel::Sp => multipartition::SP.operations(self.class),
        }
    }

    /// The rate of a run that takes `time`, in 10^6 operations a second for each rank, which is what the
    /// benchmark prints as Mop/s/process.
    pub fn mops_per_rank(&self, time: Nanos) -> f64 {
        self.operations() / time.as_secs_f64() / 1e6 / f64::from(self.ranks)
    }

    /// What all ranks do in [`Npb::sampled`] iterations.
    ///
    /// # Errors
    /// If the benchmark does not run on so many ranks.
    pub fn program(&self) -> Result<RankProgram, WrongRanks> {
        self.check()?;
        let script = |rank| {
            let mut steps = Steps::of(rank);
            match self.kernel {
                Kernel::Ep => ep::iteration(self, &mut steps),
                Kernel::Is => is::iteration(self, &mut steps),
                Kernel::Cg => cg::iteration(self, &mut steps),
                Kernel::Mg => mg::iteration(self, &mut steps),
                Kernel::Ft => ft::iteration(self, &mut steps),
                Kernel::Lu => lu::iteration(self, &mut steps),
                Kernel::Bt => multipartition::BT.iteration(self, &mut steps),
                Kernel::Sp => multipartition::SP.iteration(self, &mut steps),
            }
            let mut script = Script::default();
            script.repeat(u64::from(self.sampled()), steps.finish());
            script
        };
        Ok(RankProgram::new((0..self.ranks).map(script).collect()))
    }

    fn check(&self) -> Result<(), WrongRanks> {
        let ranks = self.ranks;
        let (runs, needs) = match self.kernel {
            Kernel::Ep => (ranks > 0, "at least one"),
            Kernel::Is => (ranks.is_power_of_two() && ranks <= 1024, "a power of two up to 1024"),
            Kernel::Cg => (ranks.is_power_of_two(), "a power of two"),
            Kernel::Mg => (
                ranks.is_power_of_two() && ranks <= 1 << (3 * (mg::size(self.class).levels - 2)),
                "a power of two, with at least four points a side for each",
            ),
            Kernel::Ft => (
                ranks.is_power_of_two() && ranks <= ft::size(self.class).planes(),
                "a power of two, and a whole plane for each: another division is not modelled",
            ),
            Kernel::Lu => (ranks.is_power_of_two(), "a power of two"),
            Kernel::Bt | Kernel::Sp => {
                (ranks > 0 && ranks.isqrt().pow(2) == ranks, "a square number")
            }
        };
        let Self { kernel, class, .. } = *self;
        if runs { Ok(()) } else { Err(WrongRanks { kernel, class, ranks, needs }) }
    }

    /// What one rank computes in one iteration.
    fn computing(&self) -> Nanos {
        let iterations = f64::from(self.iterations()) * f64::from(self.ranks);
        Nanos::from_secs_f64(self.operations() / iterations / self.operations_per_s)
    }

    /// A part of what one rank computes in one iteration.
    fn computing_part(&self, share: f64) -> Nanos {
        Nanos::from_secs_f64(self.computing().as_secs_f64() * share)
    }
}

/// What working by itself is called in the breakdown.
const COMPUTE: &str = "compute";

/// The cube of a number of points, as a float.
fn cube(points: u64) -> f64 {
    count_f64(points).powi(3)
}

#[cfg(test)]
mod tests;
