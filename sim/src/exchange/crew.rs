//! Threads that do the work of parts together: in every window each part is done once, by any of them.
//!
//! A thread begins with the part of its own number, whose data is in its core's cache, and then does
//! whatever nobody has begun. A thread that the system does not let run therefore holds the others up
//! only for the part that it is in the middle of; its own part is done for it in the windows after that. During its
//! first looks at whether the others are done it also keeps its own part, with which it mostly goes on at once.
//! When all parts of a window are done, the next window begins.
//!
//! A part tells that it is done where it publishes what it reports ([`Arrivals`]), so that one thread learns both of
//! another by the same cache line. With fewer cores than threads, a thread that waits leaves its core to those it
//! waits for. In the end it sleeps until it gets the lock of a part that is not done: whoever does that part holds
//! the lock, so that nobody has to be woken, and a thread that leaves a part undone leaves it to those who wait.
//!
//! While the crew is to work alone, its first thread does all parts and the others sleep.
//!
//! What a thread wrote while it did a part is visible to all who have seen that the part is done. Nothing here knows
//! what a part is. The number of its window stands behind the lock of the part, so that no part is done twice.

use std::sync::Arc;

use crate::sync::{
    AtomicBool, Condvar, Mutex, MutexGuard, Ordering, TryLockError, spin_loop, yield_now,
};

/// What a part does in a window.
pub(crate) trait Part: Send {
    /// Does it, while one thread does all parts `alone` or several do. At its end, the part tells that it is
    /// done. Gives whether that was its last window, which all parts find out in the same one.
    fn step(&mut self, alone: bool) -> bool;
}

/// Records which parts are done.
pub(crate) trait Arrivals {
    /// How many windows all parts have done.
    fn windows(&self) -> u64;

    /// Whether `part` has done this `window`, the first of which is 0. What its thread wrote before is visible
    /// then.
    fn has_arrived(&self, part: usize, window: u64) -> bool;

    /// Whether all parts have.
    fn all_have_arrived(&self, window: u64) -> bool;
}

/// How long a thread waits actively before it sleeps.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    /// Looks in a row at whether all parts are done, before the thread tries to do those of others.
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

/// A part, and how far it is, on cache lines of its own.
#[repr(align(128))]
struct Station<P> {
    part: P,
    /// The next window to be done.
    window: u64,
    over: bool,
}

/// Parts, and what the threads that do them share.
pub(crate) struct Crew<P, A> {
    stations: Vec<Mutex<Station<P>>>,
    arrivals: A,
    patience: Patience,
    rest: Arc<Rest>,
}

/// Whether all threads but the first are to rest, shared with whoever decides that.
pub(crate) struct Rest {
    wanted: AtomicBool,
    lock: Mutex<()>,
    wake: Condvar,
}

impl Rest {
    pub(crate) fn new() -> Self {
        Self { wanted: AtomicBool::new(false), lock: Mutex::new(()), wake: Condvar::new() }
    }

    /// Sends all threads but the first to rest after what they do now, or wakes them.
    pub(crate) fn set(&self, wanted: bool) {
        self.wanted.store(wanted, Ordering::Release);
        if !wanted {
            drop(self.lock.lock().expect(NEVER_POISONED));
            self.wake.notify_all();
        }
    }

    fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire)
    }

    fn wait(&self) {
        let mut guard = self.lock.lock().expect(NEVER_POISONED);
        while self.is_wanted() {
            guard = self.wake.wait(guard).expect(NEVER_POISONED);
        }
    }
}

const NEVER_POISONED: &str = "no thread panics while it holds this lock";

impl<P: Part, A: Arrivals> Crew<P, A> {
    /// A crew for `parts`, which tell `arrivals` when they are done, to be worked by as many threads.
    pub(crate) fn new(parts: Vec<P>, arrivals: A, patience: Patience, rest: Arc<Rest>) -> Self {
        let station = |part| Mutex::new(Station { part, window: 0, over: false });
        let stations = parts.into_iter().map(station).collect();
        Self { stations, arrivals, patience, rest }
    }

    /// Works as the thread `own` until the last window is done.
    ///
    /// # Panics
    /// If a part panics, here or on another thread.
    pub(crate) fn work(&self, own: usize) {
        let _leaving = Leaving(&self.rest);
        let mut window = self.arrivals.windows();
        while !self.do_window(own, window) {
            window += 1;
            if own != 0 && self.rest.is_wanted() {
                self.rest.wait();
                window = self.arrivals.windows();
            }
        }
    }

    /// The parts, after all threads have left.
    pub(crate) fn into_parts(self) -> impl Iterator<Item = P> {
        self.stations.into_iter().map(|station| station.into_inner().expect(NEVER_POISONED).part)
    }

    /// Does what nobody has begun of `window`, and waits for the others; gives whether it was the last one.
    fn do_window(&self, own: usize, window: u64) -> bool {
        let Patience { first, spins, yields } = self.patience;
        let first = if self.rest.is_wanted() { 0 } else { first };
        let own_part = self.try_part(own, window);
        let mut over = own_part.as_ref().is_some_and(|station| station.over);
        if !over && self.look(window, first, 0) {
            return false;
        }
        drop(own_part);
        let parts = self.stations.len();
        let others_first = || (1..=parts).map(|offset| (own + offset) % parts);
        for at in others_first() {
            over |= self.try_part(at, window).is_some_and(|station| station.over);
        }
        if over || self.look(window, spins, yields) {
            return over;
        }
        for at in others_first().filter(|at| !self.arrivals.has_arrived(*at, window)) {
            let station = self.stations[at].lock().unwrap_or_else(|_| panicked());
            over |= self.do_part(station, window).over;
        }
        over
    }

    /// Whether all parts have done a window, by so many looks in a row, and then by so many with the core offered
    /// to other threads in between.
    fn look(&self, window: u64, spins: u32, yields: u32) -> bool {
        for look in 0..spins + yields {
            if self.arrivals.all_have_arrived(window) {
                return true;
            }
            if look < spins {
                spin_loop();
            } else {
                yield_now();
            }
        }
        false
    }

    /// Does a part unless it is done or somebody has begun it; gives it if nobody has it.
    fn try_part(&self, at: usize, window: u64) -> Option<MutexGuard<'_, Station<P>>> {
        if self.arrivals.has_arrived(at, window) {
            return None;
        }
        match self.stations[at].try_lock() {
            Ok(station) => Some(self.do_part(station, window)),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Poisoned(_)) => panicked(),
        }
    }

    /// Does a part unless it is done.
    fn do_part<'a>(
        &self,
        mut station: MutexGuard<'a, Station<P>>,
        window: u64,
    ) -> MutexGuard<'a, Station<P>> {
        if station.window == window && !station.over {
            station.over = station.part.step(self.rest.is_wanted());
            station.window = window + 1;
        }
        station
    }
}

/// A thread that works, until it leaves: nobody is to rest any more then.
struct Leaving<'a>(&'a Rest);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// Ends a thread after another one has panicked, which has left the lock of its part poisoned.
fn panicked() -> ! {
    panic!("another thread of this run has panicked")
}
