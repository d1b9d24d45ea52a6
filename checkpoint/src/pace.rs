//! How fast may be written or sent: a share of the disk or the network that leaves the rest to the program.

use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use meikyo_units::{BitsPerSecond, Bytes};

/// Time that may be caught up on at once, so that a late thread does not lose its share.
const CATCH_UP: Duration = Duration::from_millis(20);

/// A rate that all writers, or all senders, of a host share.
#[derive(Debug)]
pub struct Pace {
    rate: Option<BitsPerSecond>,
    next: Mutex<Option<Instant>>,
}

impl Pace {
    /// As fast as disk or network.
    pub const fn unlimited() -> Self {
        Self { rate: None, next: Mutex::new(None) }
    }

    /// At most so fast.
    pub const fn new(rate: BitsPerSecond) -> Self {
        Self { rate: Some(rate), next: Mutex::new(None) }
    }

    /// At most so fast, where there is a limit.
    pub fn of(rate: Option<BitsPerSecond>) -> Self {
        rate.map_or_else(Self::unlimited, Self::new)
    }

    /// Waits until so many octets more may be written or sent.
    #[expect(clippy::disallowed_methods, reason = "a rate is kept by the clock")]
    pub(crate) fn wait_for(&self, octets: usize) {
        let Some(rate) = self.rate else { return };
        let span = rate.serialization_delay(Bytes::new(octets as u64)).to_std();
        let now = Instant::now();
        let mut next = self.next.lock().expect("no thread panics under this lock");
        let begin = next.unwrap_or(now).max(now.checked_sub(CATCH_UP).unwrap_or(now));
        *next = Some(begin + span);
        drop(next);
        while let Some(left) = begin.checked_duration_since(Instant::now())
            && !left.is_zero()
        {
            thread::park_timeout(left);
        }
    }
}
