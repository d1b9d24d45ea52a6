//! Storage: where something is kept, and how long that takes.

use meikyo_undo::{Cell, Log, fields};
use meikyo_units::{BitsPerSecond, Bytes, Nanos, SimTime};

use crate::digest::Digest;

/// How a storage takes its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Every access takes so long, whatever else goes on.
    Delay(Nanos),
    /// Every access takes so long, one after another.
    Queue(Nanos),
    /// Every access takes a seek and its size over a rate, one after another.
    Device {
        /// What every access takes before data moves.
        seek: Nanos,
        /// How fast data is read and written.
        rate: BitsPerSecond,
    },
}

impl Medium {
    /// What one access of `size` takes, waiting excluded.
    pub fn service(&self, size: Bytes) -> Nanos {
        match self {
            Self::Delay(time) | Self::Queue(time) => *time,
            Self::Device { seek, rate } => *seek + rate.serialization_delay(size),
        }
    }

    /// Whether one access waits for another.
    pub fn queues(&self) -> bool {
        !matches!(self, Self::Delay(_))
    }
}

/// A storage that accesses queue for, if its medium takes one at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Storage {
    medium: Medium,
    idle: Cell<SimTime>,
    busy: Cell<Nanos>,
}
fields!(Storage { idle, busy });

impl Storage {
    /// A storage with nothing to do.
    pub fn new(medium: Medium) -> Self {
        Self { medium, idle: Cell::default(), busy: Cell::default() }
    }

    /// Reads or writes `size` at `now`; gives when that is done. Calls come in the order of `now`.
    pub fn access(&mut self, log: &mut impl Log, now: SimTime, size: Bytes) -> SimTime {
        let service = self.medium.service(size);
        if !self.medium.queues() {
            return now + service;
        }
        let done = now.max(self.idle.get()) + service;
        self.idle.set(log, done);
        self.busy.add(log, service);
        done
    }

    pub(crate) fn add_to(&self, digest: &mut Digest) {
        digest.word(self.idle.get().as_nanos());
        digest.word(self.busy.get().get());
    }

    /// How it takes its time.
    pub fn medium(&self) -> Medium {
        self.medium
    }

    /// How long it was at work up to `end`; nothing is counted for [`Medium::Delay`], which nobody
    /// waits for.
    pub fn busy(&self, end: SimTime) -> Nanos {
        self.busy.get().saturating_sub(self.idle.get().since(end))
    }
}

#[cfg(test)]
mod tests {
    use meikyo_undo::Forget;

    use super::*;

    fn done(medium: Medium) -> [u64; 3] {
        let mut storage = Storage::new(medium);
        [0, 10, 500].map(|now| {
            storage.access(&mut Forget, SimTime::from_nanos(now), Bytes::new(25)).as_nanos()
        })
    }

    #[test]
    fn a_delay_lets_accesses_pass_each_other_and_the_others_do_not() {
        assert_eq!(done(Medium::Delay(Nanos::new(100))), [100, 110, 600]);
        assert_eq!(done(Medium::Queue(Nanos::new(100))), [100, 200, 600]);
        // 25 bytes at 2 Gbit/s: 100 ns.
        let rate = BitsPerSecond::new(2_000_000_000);
        let device = Medium::Device { seek: Nanos::new(40), rate };
        assert_eq!(done(device), [140, 280, 640]);
    }
}
