//! A barrier for a fixed number of threads: it spins while the wait is short, and sleeps when it is not.
//!
//! With a core for each thread, a barrier costs the journey of a cache line. With fewer cores, a thread
//! that waits leaves its core to those it waits for.
//!
//! The barrier orders memory: what any member wrote before it called [`Barrier::wait`] is visible to
//! every member after the call. It never lets a member through before all have arrived, and it never
//! keeps members waiting for one that has panicked, provided that one calls [`Barrier::abandon`].

use crate::sync::{AtomicU32, Condvar, Mutex, MutexGuard, Ordering, fence, spin_loop, yield_now};

/// The generation of a barrier that one of its members has left for good.
const ABANDONED: u32 = u32::MAX;

/// A member of a barrier has left it for good, and will never arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Abandoned;

/// How long a member waits actively before it sleeps.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    /// Looks at the generation in a row.
    pub(crate) spins: u32,
    /// Looks at the generation with the core offered to other threads in between.
    pub(crate) yields: u32,
}

/// A barrier for a fixed number of threads, which they can wait at any number of times.
pub(crate) struct Barrier {
    members: u32,
    patience: Patience,
    /// How many members wait for the rest of the current generation.
    arrived: AtomicU32,
    /// How often the barrier has opened, modulo [`ABANDONED`], or [`ABANDONED`] itself.
    generation: AtomicU32,
    /// How many members sleep or are about to.
    sleepers: AtomicU32,
    /// Makes a member's last look at the generation and its falling asleep one step.
    lock: Mutex<()>,
    wake: Condvar,
}

impl Barrier {
    pub(crate) fn new(members: usize, patience: Patience) -> Self {
        Self {
            members: u32::try_from(members).expect("a run has fewer than 2^32 threads"),
            patience,
            arrived: AtomicU32::new(0),
            generation: AtomicU32::new(0),
            sleepers: AtomicU32::new(0),
            lock: Mutex::new(()),
            wake: Condvar::new(),
        }
    }

    /// Waits until every member has called this as often as the caller has.
    ///
    /// # Errors
    /// [`Abandoned`] if a member has called [`Self::abandon`] instead.
    pub(crate) fn wait(&self) -> Result<(), Abandoned> {
        // Relaxed: the caller saw the current generation when it left the barrier last, and nobody can
        // open the barrier again before the caller has arrived.
        let generation = self.generation.load(Ordering::Relaxed);
        if generation == ABANDONED {
            return Err(Abandoned);
        }
        // Every arrival releases what its thread wrote, and the last one acquires it all.
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.members {
            self.arrived.store(0, Ordering::Relaxed);
            self.open((generation + 1) % ABANDONED);
            return Ok(());
        }
        let opened = self.look(generation).unwrap_or_else(|| self.sleep(generation));
        if opened == ABANDONED { Err(Abandoned) } else { Ok(()) }
    }

    /// Ends the wait of every member that waits, or ever will, with [`Abandoned`]. For a member that
    /// panics and will not arrive any more.
    #[cold]
    pub(crate) fn abandon(&self) {
        self.open(ABANDONED);
    }

    /// Begins `generation` and wakes those who sleep.
    fn open(&self, generation: u32) {
        self.generation.store(generation, Ordering::Release);
        // A sleeper counts itself before its last look at the generation. Of the two fences one comes
        // first: either the count is seen here, or the new generation is seen there.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            drop(self.locked());
            self.wake.notify_all();
        }
    }

    /// Waits actively for another generation than `generation`; none when patience is at its end.
    fn look(&self, generation: u32) -> Option<u32> {
        for look in 0..self.patience.spins + self.patience.yields {
            let now = self.generation.load(Ordering::Acquire);
            if now != generation {
                return Some(now);
            }
            if look < self.patience.spins {
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
