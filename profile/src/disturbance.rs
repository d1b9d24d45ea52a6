//! What a sample takes from the thread that it interrupts.
//!
//! A thread that does nothing but read the clock sees every interrupt as a gap between two readings. It
//! is sampled itself meanwhile, so that it is known which gaps were samples; the median of those is
//! what a sample takes, whatever else disturbed the thread. On hardware that is a microsecond or two;
//! in a virtual machine setting a timer anew leaves the machine, and it is ten times that.

use std::io;

use meikyo_units::Nanos;

use crate::clock;
use crate::perf_event::{Clock, Event, EventOptions, Subject, TakenBy};
use crate::records::{self, Carried, Record};
use crate::ring::Ring;

/// How long the thread reads the clock.
const SPAN: Nanos = Nanos::from_millis(40);

/// Span between two samples of it.
const PERIOD: Nanos = Nanos::from_millis(1);

/// How often it is tried where the thread hardly came to run.
const TRIES: usize = 10;

/// What a sample is taken to take where the thread never came to run: as much as in the virtual
/// machines that were looked at, so that a budget is rather kept than missed.
pub const ASSUMED: Nanos = Nanos::from_micros(25);

/// Gaps below this are readings of the clock.
const GAP_MIN: u64 = 500;

/// Measures what a sample takes, which keeps one CPU busy for 40 ms; [`ASSUMED`] where ten tries did not
/// catch enough samples, because others kept this thread from running.
///
/// # Errors
/// When the calling thread may not sample itself.
pub fn measure() -> io::Result<Nanos> {
    for _ in 0..TRIES {
        if let Some(taken) = try_once()? {
            return Ok(taken);
        }
    }
    Ok(ASSUMED)
}

/// One try; `None` where too few samples were taken to tell.
fn try_once() -> io::Result<Option<Nanos>> {
    let options = EventOptions {
        taken_by: TakenBy::Clock(Clock::CpuClock),
        period: PERIOD,
        chain_max: 0,
        user_chains_only: false,
        copied: 0,
        cgroups: false,
        events: false,
        side_band: false,
        inherit: false,
        on_exec: false,
    };
    let tid = u32::try_from(thread_id()).map_err(io::Error::other)?;
    let cpu = current_cpu()?;
    let event = Event::open(Subject::Thread(tid), cpu, &options)?;
    let mut ring = Ring::map(event.file(), 8 << 10)?;
    event.enable()?;
    let gaps = gaps();
    event.disable()?;
    let mut times = Vec::new();
    ring.drain(ring.head(), |octets| {
        let carried = Carried { callers: false, user: false, cgroup: false, event: false };
        if let Some(Record::Sample { time, .. }) = records::read(octets, carried) {
            times.push(time);
        }
    });
    Ok(taken_by(&gaps, &times))
}

/// The gaps that a thread sees which does nothing but read the clock.
fn gaps() -> Vec<(u64, u64)> {
    let mut gaps = Vec::new();
    let begin = clock::monotonic();
    let mut before = begin;
    while before - begin < SPAN.get() {
        let now = clock::monotonic();
        if now - before > GAP_MIN {
            gaps.push((before, now));
        }
        before = now;
    }
    gaps
}

/// The median length of the gaps that a sample lies in.
fn taken_by(gaps: &[(u64, u64)], samples: &[u64]) -> Option<Nanos> {
    const SAMPLES_MIN: usize = 5;
    let mut lengths: Vec<u64> = samples
        .iter()
        .filter_map(|time| {
            let gap = gaps.iter().find(|(begin, end)| (begin..=end).contains(&time))?;
            Some(gap.1 - gap.0)
        })
        .collect();
    lengths.sort_unstable();
    (lengths.len() >= SAMPLES_MIN).then(|| Nanos::new(lengths[lengths.len() / 2]))
}

#[expect(unsafe_code, reason = "the kernel is asked for the number of this thread")]
fn thread_id() -> libc::pid_t {
    // SAFETY: asks for a number.
    unsafe { libc::gettid() }
}

#[expect(unsafe_code, reason = "the kernel is asked where this thread runs")]
fn current_cpu() -> io::Result<u32> {
    // SAFETY: asks for a number.
    let cpu = unsafe { libc::sched_getcpu() };
    u32::try_from(cpu).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use meikyo_units::Nanos;

    use super::taken_by;

    #[test]
    fn only_gaps_with_a_sample_in_them_count_and_the_median_of_those() {
        let gaps =
            [(100, 120), (200, 203), (300, 322), (400, 9_000), (9_500, 9_521), (9_600, 9_623)];
        let samples = [105, 310, 500, 9_510, 9_601, 9_700];
        assert_eq!(taken_by(&gaps, &samples), Some(Nanos::new(22)));
        assert_eq!(taken_by(&gaps, &samples[..4]), None);
    }
}
