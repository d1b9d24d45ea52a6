//! The profiling engine on this machine: real programs, the kernel's own samples, `perf` as the oracle.

#![expect(clippy::disallowed_methods, reason = "starts the programs that are sampled")]
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod blocks;
mod callers;
mod exports;
mod flames;
mod imports;
mod off_cpu;
mod programs;
mod recordings;
mod reports;
mod tables;
mod written;

use std::io;

use meikyo_profile::sampler::{Clock, OpenSamplerError, Phase, Sampler, SamplerOptions, Target};
use meikyo_units::Nanos;

/// Samples of this clock and rate with nothing beside.
const PLAIN: SamplerOptions = SamplerOptions {
    clock: Clock::CpuClock,
    period: Nanos::from_millis(1),
    phase: Phase::Staggered,
    stacks: None,
    cgroups: false,
    off_cpu: false,
    on_exec: false,
};

/// Whether this user may sample every CPU; where not, the test says that it was skipped.
fn may_sample() -> bool {
    match Sampler::open(&Target::Everything, PLAIN) {
        Ok(_) => true,
        Err(OpenSamplerError::Permission(_)) => {
            meikyo_testing::skipped("sampling every CPU needs root or CAP_PERFMON");
            false
        }
        Err(error) => panic!("{error}: {:?}", io::Error::last_os_error()),
    }
}
