//! A barrier whose arrivals are those of parts, not of threads: whoever has done what a part had to do
//! says so, and a thread may do that for several parts.
//!
//! Arrivals are told where parts publish what they report ([`Arrivals`]), so that with a core for each thread
//! one cache line brings both. With fewer cores, a thread that waits leaves its core to those it waits for.
//!
//! The barrier orders memory: what any thread wrote before it told that a part has arrived is visible to
//! every thread that has seen the barrier open. It never opens before all parts have
//! arrived, and it never keeps threads waiting for one that has panicked, provided that one calls
//! [`Barrier::abandon`].
//!
//! A thread that arrives does not wait until others have seen it. It may therefore miss somebody who falls asleep
//! just then; whoever waits for something, or leaves, calls [`Barrier::wake_missed`] first.

use crate::sync::{
    AtomicBool, AtomicU32, Condvar, Mutex, MutexGuard, Ordering, fence, spin_loop, yield_now,
};

/// Where it stands which parts have arrived.
pub(crate) trait Arrivals {
    /// How often every part has arrived, that is how often the barrier has opened.
    fn generation(&self) -> u64;

    /// Whether `part` has arrived in this `generation`. What its thread wrote before is visible then.
    fn has_arrived(&self, part: usize, generation: u64) -> bool;

    /// Whether all parts have.
    fn all_have_arrived(&self, generation: u64) -> bool;
}

/// A thread has left the barrier for good, and what it had to do is never done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Abandoned;

/// How long a thread waits actively before it sleeps.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    /// Looks at the arrivals in a row before it looks whether it can do a part that nobody has begun.
    pub(crate) first: u32,
    /// Looks in a row after that.
    pub(crate) spins: u32,
    /// Looks with the core offered to other threads in between.
    pub(crate) yields: u32,
}

#[cfg(test)]
impl Patience {
    /// Sleeps at once.
    pub(crate) const NONE: Self = Self { first: 0, spins: 0, yields: 0 };
}

/// A barrier that opens any number of times.
pub(crate) struct Barrier<A> {
    arrivals: A,
    abandoned: AtomicBool,
    /// How many threads sleep or are about to.
    sleepers: AtomicU32,
    /// Makes a thread's last look at the arrivals and its falling asleep one step.
    lock: Mutex<()>,
    wake: Condvar,
}

impl<A: Arrivals> Barrier<A> {
    pub(crate) fn new(arrivals: A) -> Self {
        Self {
            arrivals,
            abandoned: AtomicBool::new(false),
            sleepers: AtomicU32::new(0),
            lock: Mutex::new(()),
            wake: Condvar::new(),
        }
    }

    /// How often the barrier has opened.
    pub(crate) fn generation(&self) -> u64 {
        self.arrivals.generation()
    }

    /// Whether `part` has arrived in this `generation`.
    pub(crate) fn has_arrived(&self, part: usize, generation: u64) -> bool {
        self.arrivals.has_arrived(part, generation)
    }

    /// To be called when a part has arrived. Wakes those who sleep, as far as they can be seen.
    pub(crate) fn arrived(&self) {
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.wake_sleepers();
        }
    }

    /// Wakes those who fell asleep when this thread arrived.
    pub(crate) fn wake_missed(&self) {
        // A sleeper counts itself before its last look at the arrivals. Of the two fences one comes
        // first: either the count is seen here, or the arrival is seen there.
        fence(Ordering::SeqCst);
        self.arrived();
    }

    /// Waits actively until the barrier has opened after `generation`, for so many looks in a row and then for so
    /// many with the core offered to others; whether it has.
    ///
    /// # Errors
    /// [`Abandoned`] if a thread has called [`Self::abandon`].
    pub(crate) fn look(&self, generation: u64, spins: u32, yields: u32) -> Result<bool, Abandoned> {
        for look in 0..spins + yields {
            if self.has_opened(generation)? {
                return Ok(true);
            }
            if look < spins {
                spin_loop();
            } else {
                yield_now();
            }
        }
        Ok(false)
    }

    /// Waits until the barrier has opened after `generation`.
    ///
    /// # Errors
    /// [`Abandoned`] if a thread has called [`Self::abandon`].
    pub(crate) fn wait(&self, generation: u64, patience: Patience) -> Result<(), Abandoned> {
        let opened = self.look(generation, patience.spins, patience.yields)?;
        if opened { Ok(()) } else { self.sleep(generation) }
    }

    /// Ends the wait of every thread that waits, or ever will, with [`Abandoned`]. For a thread that
    /// panics.
    #[cold]
    pub(crate) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Release);
        self.wake_missed();
    }

    #[cold]
    fn wake_sleepers(&self) {
        drop(self.locked());
        self.wake.notify_all();
    }

    fn has_opened(&self, generation: u64) -> Result<bool, Abandoned> {
        if self.abandoned.load(Ordering::Acquire) {
            return Err(Abandoned);
        }
        Ok(self.arrivals.all_have_arrived(generation))
    }

    /// Sleeps until the barrier has opened after `generation`.
    #[cold]
    fn sleep(&self, generation: u64) -> Result<(), Abandoned> {
        let mut guard = self.locked();
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let opened = loop {
            match self.has_opened(generation) {
                Ok(false) => guard = self.wake.wait(guard).expect(NEVER_POISONED),
                Ok(true) => break Ok(()),
                Err(abandoned) => break Err(abandoned),
            }
        };
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        opened
    }

    fn locked(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().expect(NEVER_POISONED)
    }
}

const NEVER_POISONED: &str = "no thread panics while it holds this lock";
