//! Threads that do the work of parts together: in every window each part is done once, by any of them.
//!
//! A thread begins with the part of its own number, whose data is in its core's cache, and then does
//! whatever nobody has begun. A thread that the system does not let run therefore holds the others up
//! only for the part that it is in the middle of; its own part is done for it in the windows after that.
//! When all parts of a window are done the [`Barrier`] opens, and the next window begins.
//!
//! While the crew is to work alone, its first thread does all parts and the others sleep.
//!
//! Nothing here knows what a part is. A part is behind a lock that a thread only ever tries; the number of
//! its window stands behind the same lock, so that no part is done twice.

use std::sync::Arc;

use super::barrier::{Arrivals, Barrier, Patience};
use crate::sync::{AtomicBool, Condvar, Mutex, MutexGuard, Ordering, TryLockError};

/// What a part does in a window.
pub(crate) trait Part: Send {
    /// Does it, while one thread does all parts `alone` or several do, and tells at its end that the part has
    /// arrived, but for its last window; gives whether it was that, which all parts find out in the same.
    fn step(&mut self, alone: bool) -> bool;
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
    barrier: Barrier<A>,
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
    /// A crew for `parts` that arrive in `arrivals` at the end of each step, to be worked by as many threads.
    pub(crate) fn new(parts: Vec<P>, arrivals: A, patience: Patience, rest: Arc<Rest>) -> Self {
        let station = |part| Mutex::new(Station { part, window: 0, over: false });
        Self {
            stations: parts.into_iter().map(station).collect(),
            barrier: Barrier::new(arrivals),
            patience,
            rest,
        }
    }

    /// Works as the thread `own` until the last window is done.
    ///
    /// # Panics
    /// If a part panics, here or on another thread.
    pub(crate) fn work(&self, own: usize) {
        let _leaving = Leaving(self);
        let mut window = self.barrier.generation();
        while !self.do_window(own, window) {
            window += 1;
            if own != 0 && self.rest.is_wanted() {
                self.barrier.wake_missed();
                self.rest.wait();
                window = self.barrier.generation();
            }
        }
    }

    /// The parts, after all threads have left.
    pub(crate) fn into_parts(self) -> impl Iterator<Item = P> {
        self.stations.into_iter().map(|station| station.into_inner().expect(NEVER_POISONED).part)
    }

    /// Does what nobody has begun of `window`, and waits for the others; gives whether a part of it was the
    /// last one.
    fn do_window(&self, own: usize, window: u64) -> bool {
        let own_part = self.do_part(own, window);
        let mut over = own_part.as_ref().is_some_and(|station| station.over);
        let first = if self.rest.is_wanted() { 0 } else { self.patience.first };
        if !over && self.barrier.look(window, first, 0).unwrap_or_else(|_| abandoned()) {
            return false;
        }
        drop(own_part);
        self.barrier.wake_missed();
        let parts = self.stations.len();
        for at in (0..parts).map(|offset| (own + offset) % parts) {
            over |= self.do_part(at, window).is_some_and(|station| station.over);
        }
        if !over {
            self.barrier.wait(window, self.patience).unwrap_or_else(|_| abandoned());
        }
        over
    }

    /// Does a part, if nobody has begun it; gives it if it was done or is over.
    fn do_part(&self, at: usize, window: u64) -> Option<MutexGuard<'_, Station<P>>> {
        if self.barrier.has_arrived(at, window) {
            return None;
        }
        let mut station = match self.stations[at].try_lock() {
            Ok(station) => station,
            Err(TryLockError::WouldBlock) => return None,
            Err(TryLockError::Poisoned(_)) => abandoned(),
        };
        if station.window == window && !station.over {
            station.over = station.part.step(self.rest.is_wanted());
            station.window = window + 1;
            self.barrier.arrived();
        }
        Some(station)
    }
}

/// A thread that works, until it leaves: nobody is to wait for it or rest any more then.
struct Leaving<'a, P: Part, A: Arrivals>(&'a Crew<P, A>);

impl<P: Part, A: Arrivals> Drop for Leaving<'_, P, A> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.barrier.abandon();
        }
        self.0.barrier.wake_missed();
        self.0.rest.set(false);
    }
}

/// Ends a thread after another one has panicked.
fn abandoned() -> ! {
    panic!("another thread of this run has panicked")
}
