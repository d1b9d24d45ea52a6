//! How fast may be written or sent, and how much of a processor may be taken: shares that leave the rest to the program.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use meikyo_units::{BitsPerSecond, Bytes, Nanos};
use rustix::time::{ClockId, clock_gettime};

/// Time that may be caught up on at once, so that a late thread does not lose its share.
const CATCH_UP: Duration = Duration::from_millis(20);

/// A rate that all writers, or all senders, of a host share, and the processor time of all of them.
#[derive(Debug)]
pub struct Pace {
    rate: Option<BitsPerSecond>,
    next: Mutex<Option<Instant>>,
    effort: Option<Arc<Effort>>,
}

/// How much processor time this process may take, as long as it goes by its paces: 0.5 is half of one processor.
#[derive(Debug)]
pub struct Effort {
    share: f64,
    /// Processor time that was accounted for, and when the next may be taken.
    spent: Mutex<(f64, Instant)>,
}

impl Effort {
    /// At most this share from now on.
    ///
    /// # Panics
    /// If the share is not greater than 0.
    pub fn new(share: f64) -> Self {
        assert!(share > 0.0, "who may take nothing does nothing");
        Self { share, spent: Mutex::new((cpu_seconds(), now())) }
    }

    /// Waits until what was taken is paid for.
    fn rest(&self) {
        let mut spent = self.spent.lock().expect("no thread panics under this lock");
        let (cpu, now) = (cpu_seconds(), now());
        let taken = (cpu - spent.0).max(0.0);
        let begin = spent.1.max(now.checked_sub(CATCH_UP).unwrap_or(now));
        let next = begin + Duration::from_secs_f64(taken / self.share);
        *spent = (cpu, next);
        drop(spent);
        park_until(next);
    }
}

impl Pace {
    /// As fast as disk or network.
    pub const fn unlimited() -> Self {
        Self { rate: None, next: Mutex::new(None), effort: None }
    }

    /// At most so fast.
    pub const fn new(rate: BitsPerSecond) -> Self {
        Self { rate: Some(rate), next: Mutex::new(None), effort: None }
    }

    /// At most so fast and with so much of a processor, where there are limits.
    pub fn of(rate: Option<BitsPerSecond>, effort: Option<Arc<Effort>>) -> Self {
        Self { rate, effort, ..Self::unlimited() }
    }

    /// Waits until so many octets more may be written or sent.
    pub(crate) fn wait_for(&self, octets: usize) {
        self.rest();
        let Some(rate) = self.rate else { return };
        let span = rate.serialization_delay(Bytes::new(octets as u64)).to_std();
        let now = now();
        let mut next = self.next.lock().expect("no thread panics under this lock");
        let begin = next.unwrap_or(now).max(now.checked_sub(CATCH_UP).unwrap_or(now));
        *next = Some(begin + span);
        drop(next);
        park_until(begin);
    }

    /// Waits until more processor time may be taken.
    pub(crate) fn rest(&self) {
        if let Some(effort) = &self.effort {
            effort.rest();
        }
    }
}

fn park_until(instant: Instant) {
    while let Some(left) = instant.checked_duration_since(now())
        && !left.is_zero()
    {
        thread::park_timeout(left);
    }
}

#[expect(clippy::disallowed_methods, reason = "rates and shares are kept by the clock")]
fn now() -> Instant {
    Instant::now()
}

/// Processor seconds of this process so far, the kernel's for it included.
pub(crate) fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let nanos = u64::try_from(time.tv_nsec).ok().zip(u64::try_from(time.tv_sec).ok());
    nanos.map_or(0.0, |(nanos, seconds)| {
        (Nanos::from_secs(seconds) + Nanos::new(nanos)).as_secs_f64()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processor time of the calling thread.
    fn own() -> Duration {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        let nanos = i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
        Duration::from_nanos(u64::try_from(nanos).unwrap())
    }

    #[test]
    fn who_goes_by_a_share_takes_no_more_of_a_processor() {
        let pace = Pace::of(None, Some(Arc::new(Effort::new(0.2))));
        let (begun, before) = (now(), own());
        let mut sum = 0_u64;
        while begun.elapsed() < Duration::from_millis(600) {
            let turn = own();
            while own() - turn < Duration::from_millis(2) {
                sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(7));
            }
            pace.wait_for(1);
        }
        let share = (own() - before).as_secs_f64() / begun.elapsed().as_secs_f64();
        // Other tests of this process are paid for by whoever waits.
        assert!(share < 0.26, "{share}");
        // Whoever has no share does not wait.
        let before = now();
        (0..1_000).for_each(|_| Pace::unlimited().wait_for(1 << 30));
        assert!(before.elapsed() < Duration::from_secs(1));
    }
}
