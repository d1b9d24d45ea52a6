//! Where threads meet: a barrier that spins while it is short, and parks when it is not.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// Looks at the generation before a thread gives way to others.
const SPINS: u32 = 4_000;
/// Times it gives way before it sleeps.
const YIELDS: u32 = 50;

/// A barrier for a fixed number of threads.
///
/// With a core for each of them a meeting costs a cache line's journey; with fewer, a thread that
/// waits leaves its core to those it waits for.
#[derive(Debug)]
pub(crate) struct Meeting {
    members: u32,
    spins: u32,
    arrived: AtomicU32,
    generation: AtomicU32,
    sleepers: AtomicUsize,
    lock: Mutex<()>,
    wake: Condvar,
}

impl Meeting {
    pub(crate) fn new(members: usize) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            members: u32::try_from(members).expect("threads are few"),
            spins: if members <= cores { SPINS } else { 1 },
            arrived: AtomicU32::new(0),
            generation: AtomicU32::new(0),
            sleepers: AtomicUsize::new(0),
            lock: Mutex::new(()),
            wake: Condvar::new(),
        }
    }

    /// Waits until every member has called this as often as the caller has. What the others wrote
    /// before is seen after.
    pub(crate) fn wait(&self) {
        let generation = self.generation.load(Ordering::SeqCst);
        if self.arrived.fetch_add(1, Ordering::SeqCst) + 1 == self.members {
            self.arrived.store(0, Ordering::SeqCst);
            self.generation.store(generation.wrapping_add(1), Ordering::SeqCst);
            // A sleeper counts itself before it looks at the generation for the last time, so it is
            // seen here or sees the new generation itself.
            if self.sleepers.load(Ordering::SeqCst) > 0 {
                drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
                self.wake.notify_all();
            }
            return;
        }
        for _ in 0..self.spins {
            if self.generation.load(Ordering::Acquire) != generation {
                return;
            }
            std::hint::spin_loop();
        }
        for _ in 0..YIELDS {
            if self.generation.load(Ordering::Acquire) != generation {
                return;
            }
            std::thread::yield_now();
        }
        self.sleep(generation);
    }

    #[cold]
    fn sleep(&self, generation: u32) {
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        while self.generation.load(Ordering::SeqCst) == generation {
            guard = self.wake.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn nobody_leaves_before_the_last_has_come() {
        for members in [2, 3, 8] {
            let meeting = Meeting::new(members);
            let total = AtomicU64::new(0);
            let expected = |round: u64| round * u64::try_from(members).unwrap();
            std::thread::scope(|scope| {
                for _ in 0..members {
                    scope.spawn(|| {
                        for round in 1..=500 {
                            total.fetch_add(1, Ordering::SeqCst);
                            meeting.wait();
                            assert_eq!(total.load(Ordering::SeqCst), expected(round));
                            meeting.wait();
                        }
                    });
                }
            });
        }
    }
}
