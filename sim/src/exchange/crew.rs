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

use super::barrier::{Barrier, Patience};
use crate::sync::{AtomicBool, AtomicU32, Condvar, Mutex, Ordering, TryLockError};

/// What a part does in a window.
pub(crate) trait Part: Send {
    /// Does it, while one thread does all parts `alone` or several do; gives whether that was the part's
    /// last window, which all parts find out in the same.
    fn step(&mut self, alone: bool) -> bool;
}

/// A part, and how far it is.
struct Station<P> {
    part: P,
    /// The next window to be done.
    window: u32,
    over: bool,
}

/// Parts, and what the threads that do them share.
pub(crate) struct Crew<P> {
    stations: Vec<Mutex<Station<P>>>,
    /// The next window of each part, as a hint that saves trying its lock.
    windows: Vec<Window>,
    barrier: Barrier,
    patience: Patience,
    rest: Arc<Rest>,
}

/// The next window of a part, on cache lines of its own.
#[repr(align(128))]
struct Window(AtomicU32);

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

impl<P: Part> Crew<P> {
    /// A crew for the parts that `make` gives, to be worked by as many threads.
    pub(crate) fn new(parts: Vec<P>, patience: Patience, rest: Arc<Rest>) -> Self {
        let count = parts.len();
        let station = |part| Mutex::new(Station { part, window: 0, over: false });
        Self {
            stations: parts.into_iter().map(station).collect(),
            windows: (0..count).map(|_| Window(AtomicU32::new(0))).collect(),
            barrier: Barrier::new(count),
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
        let mut window = self.barrier.generation().unwrap_or_else(|_| abandoned());
        while !self.do_parts(own, window) {
            if own != 0 && self.rest.is_wanted() {
                self.rest.wait();
            }
            let patience = self.patience;
            window = self.barrier.wait(window, patience).unwrap_or_else(|_| abandoned());
        }
    }

    /// The parts, after all threads have left.
    pub(crate) fn into_parts(self) -> impl Iterator<Item = P> {
        self.stations.into_iter().map(|station| station.into_inner().expect(NEVER_POISONED).part)
    }

    /// Does what nobody has begun of `window`; gives whether a part of it was the last one.
    fn do_parts(&self, own: usize, window: u32) -> bool {
        let parts = self.stations.len();
        let mut over = false;
        for at in (0..parts).map(|offset| (own + offset) % parts) {
            if self.windows[at].0.load(Ordering::Relaxed) == window {
                over |= self.do_part(at, window);
            }
        }
        over
    }

    fn do_part(&self, at: usize, window: u32) -> bool {
        let mut station = match self.stations[at].try_lock() {
            Ok(station) => station,
            Err(TryLockError::WouldBlock) => return false,
            Err(TryLockError::Poisoned(_)) => abandoned(),
        };
        if station.window != window || station.over {
            return station.over;
        }
        station.over = station.part.step(self.rest.is_wanted());
        station.window = Barrier::after(window);
        let over = station.over;
        self.windows[at].0.store(station.window, Ordering::Relaxed);
        drop(station);
        self.barrier.arrive(window);
        over
    }
}

/// A thread that works, until it leaves: nobody is to wait for it or rest any more then.
struct Leaving<'a, P: Part>(&'a Crew<P>);

impl<P: Part> Drop for Leaving<'_, P> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.barrier.abandon();
        }
        self.0.rest.set(false);
    }
}

/// Ends a thread after another one has panicked.
fn abandoned() -> ! {
    panic!("another thread of this run has panicked")
}
