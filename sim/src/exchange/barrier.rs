//! A barrier whose arrivals are those of parts, not of threads: whoever has done what a part had to do
//! says so, and a thread may do that for several parts.
//!
//! With a core for each thread, a barrier costs the journey of a cache line. With fewer cores, a thread
//! that waits leaves its core to those it waits for.
//!
//! The barrier orders memory: what any thread wrote before it called [`Barrier::arrive`] is visible to
//! every thread that has seen the generation which that opened. It never opens before all parts have
//! arrived, and it never keeps threads waiting for one that has panicked, provided that one calls
//! [`Barrier::abandon`].

use crate::sync::{AtomicU32, Condvar, Mutex, MutexGuard, Ordering, fence, spin_loop, yield_now};

/// The generation of a barrier that a thread has left for good.
const ABANDONED: u32 = u32::MAX;

/// A thread has left the barrier for good, and what it had to do is never done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Abandoned;

/// How long a thread waits actively before it sleeps.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    /// Looks at the generation in a row.
    pub(crate) spins: u32,
    /// Looks at the generation with the core offered to other threads in between.
    pub(crate) yields: u32,
}

#[cfg(test)]
impl Patience {
    /// Sleeps at once.
    pub(crate) const NONE: Self = Self { spins: 0, yields: 0 };
}

/// A barrier for a fixed number of parts, which opens any number of times.
pub(crate) struct Barrier {
    parts: u32,
    /// How many parts have arrived in the current generation.
    arrived: AtomicU32,
    /// How often the barrier has opened, modulo [`ABANDONED`], or [`ABANDONED`] itself.
    generation: AtomicU32,
    /// How many threads sleep or are about to.
    sleepers: AtomicU32,
    /// Makes a thread's last look at the generation and its falling asleep one step.
    lock: Mutex<()>,
    wake: Condvar,
}

impl Barrier {
    pub(crate) fn new(parts: usize) -> Self {
        Self {
            parts: u32::try_from(parts).expect("a run has fewer than 2^32 parts"),
            arrived: AtomicU32::new(0),
            generation: AtomicU32::new(0),
            sleepers: AtomicU32::new(0),
            lock: Mutex::new(()),
            wake: Condvar::new(),
        }
    }

    /// How often the barrier has opened.
    ///
    /// # Errors
    /// [`Abandoned`] if a thread has called [`Self::abandon`].
    pub(crate) fn generation(&self) -> Result<u32, Abandoned> {
        match self.generation.load(Ordering::Acquire) {
            ABANDONED => Err(Abandoned),
            generation => Ok(generation),
        }
    }

    /// The generation that follows.
    pub(crate) fn after(generation: u32) -> u32 {
        (generation + 1) % ABANDONED
    }

    /// Says that a part has done what it had to in this `generation`; the last part opens the barrier. No
    /// part may arrive twice in one generation.
    pub(crate) fn arrive(&self, generation: u32) {
        // Every arrival releases what its thread wrote, and the last one acquires it all.
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.parts {
            self.arrived.store(0, Ordering::Relaxed);
            // Another thread may have abandoned the barrier meanwhile, and that stays so.
            let opened = self.generation.compare_exchange(
                generation,
                Self::after(generation),
                Ordering::Release,
                Ordering::Relaxed,
            );
            if opened.is_ok() {
                self.wake_sleepers();
            }
        }
    }

    /// Waits until the barrier has opened after `generation`; gives the generation that it is in.
    ///
    /// # Errors
    /// [`Abandoned`] if a thread has called [`Self::abandon`].
    pub(crate) fn wait(&self, generation: u32, patience: Patience) -> Result<u32, Abandoned> {
        let looked = self.look(generation, patience);
        match looked.unwrap_or_else(|| self.sleep(generation)) {
            ABANDONED => Err(Abandoned),
            opened => Ok(opened),
        }
    }

    /// Ends the wait of every thread that waits, or ever will, with [`Abandoned`]. For a thread that
    /// panics.
    #[cold]
    pub(crate) fn abandon(&self) {
        // All changes are of one kind, so that their order is the one in which each saw the last.
        self.generation.swap(ABANDONED, Ordering::AcqRel);
        self.wake_sleepers();
    }

    /// Wakes those who sleep, after the generation was changed.
    fn wake_sleepers(&self) {
        // A sleeper counts itself before its last look at the generation. Of the two fences one comes
        // first: either the count is seen here, or the new generation is seen there.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            drop(self.locked());
            self.wake.notify_all();
        }
    }

    /// Waits actively for another generation than `generation`; none when patience is at its end.
    fn look(&self, generation: u32, patience: Patience) -> Option<u32> {
        for look in 0..patience.spins + patience.yields {
            let now = self.generation.load(Ordering::Acquire);
            if now != generation {
                return Some(now);
            }
            if look < patience.spins {
                spin_loop();
            } else {
                yield_now();
            }
        }
        None
    }

    /// Sleeps until there is another generation than `generation`; gives that one.
    #[cold]
    fn sleep(&self, generation: u32) -> u32 {
        let mut guard = self.locked();
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        loop {
            let now = self.generation.load(Ordering::Acquire);
            if now != generation {
                self.sleepers.fetch_sub(1, Ordering::Relaxed);
                return now;
            }
            guard = self.wake.wait(guard).expect(NEVER_POISONED);
        }
    }

    fn locked(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().expect(NEVER_POISONED)
    }
}

const NEVER_POISONED: &str = "no thread panics while it holds this lock";
