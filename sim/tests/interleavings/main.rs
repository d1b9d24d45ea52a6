//! The crew and the shared memory of the collective exchange under `loom`, which tries the orders in
//! which threads can run and see each other's stores, up to three preemptions in each (two where threads rest).
//!
//! The source files are compiled here once more, against the primitives of `loom` instead of those
//! of the standard library: `crate::sync` is this file's. What is checked is therefore the code that
//! runs, and the crate itself knows nothing of `loom`, which does not explore the rings of `rtrb`.

#[path = "../../src/exchange/crew.rs"]
mod crew;
#[path = "../../src/exchange/shared_memory.rs"]
mod shared_memory;

mod sync {
    pub(crate) use std::sync::TryLockError;

    pub(crate) use loom::hint::spin_loop;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use loom::thread::yield_now;
}

use std::sync::Arc;
use std::time::{Duration, Instant};

use crew::{Arrivals, Crew, Part, Patience, Rest};
use shared_memory::{Endpoint, SharedMemory};
use sync::{AtomicU64, Ordering};

/// Threads that sleep at once, and threads that look first, spinning and giving way.
const PATIENCES: [Patience; 2] = [Patience::NONE, Patience { first: 1, spins: 1, yields: 1 }];

/// Runs `check` in every order that loom finds with three preemptions; it spawns loom's threads.
fn explore(check: impl Fn() + Send + Sync + 'static) {
    explore_up_to(3, check);
}

#[expect(clippy::disallowed_methods, reason = "a search that has not ended proves nothing")]
fn explore_up_to(preemptions: usize, check: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    // A mistake in the code can make the orders too many to try.
    const ENOUGH: Duration = Duration::from_secs(60);
    builder.max_duration = Some(ENOUGH);
    let start = Instant::now();
    builder.check(check);
    assert!(start.elapsed() < ENOUGH, "not all orders were tried");
}

/// Runs `member` on `members` threads with their numbers, the last one on this thread.
fn on_threads(members: usize, member: impl Fn(usize) + Send + Sync + 'static) {
    let member = Arc::new(member);
    let others: Vec<_> = (1..members)
        .map(|number| {
            let member = Arc::clone(&member);
            loom::thread::spawn(move || member(number))
        })
        .collect();
    member(0);
    for other in others {
        other.join().expect("a failed assertion ends the whole check");
    }
}

/// How often each part has arrived.
#[derive(Clone)]
struct Counts(Arc<Vec<AtomicU64>>);

impl Counts {
    fn new(parts: usize) -> Self {
        Self(Arc::new((0..parts).map(|_| AtomicU64::new(0)).collect()))
    }

    fn arrive(&self, part: usize, window: u64) {
        self.0[part].store(window + 1, Ordering::Release);
    }
}

impl Arrivals for Counts {
    fn windows(&self) -> u64 {
        self.0.iter().map(|count| count.load(Ordering::Acquire)).min().expect("there are parts")
    }
    fn has_arrived(&self, part: usize, window: u64) -> bool {
        self.0[part].load(Ordering::Acquire) > window
    }
    fn all_have_arrived(&self, window: u64) -> bool {
        (0..self.0.len()).all(|part| self.has_arrived(part, window))
    }
}

/// A part that writes what it has done where all parts read it in the next window, without any order of
/// its own.
struct Counter {
    own: usize,
    done: Arc<Vec<AtomicU64>>,
    arrivals: Counts,
    window: u64,
    windows: u64,
    /// On the first part, whom it sends to rest in every window but the last one, and wakes in that.
    rests: Option<Arc<Rest>>,
}

impl Part for Counter {
    fn step(&mut self, _alone: bool) -> bool {
        for (other, done) in self.done.iter().enumerate() {
            let seen = done.load(Ordering::Relaxed);
            let ahead = u64::from(other != self.own);
            assert!((self.window..=self.window + ahead).contains(&seen), "{seen}");
        }
        self.window += 1;
        if let Some(own) = self.done.get(self.own) {
            own.store(self.window, Ordering::Relaxed);
        }
        if let Some(rest) = &self.rests {
            rest.set(self.window < self.windows);
        }
        self.arrivals.arrive(self.own, self.window - 1);
        self.window == self.windows
    }
}

fn crew_does_each_part_once(threads: usize, windows: u64, patience: Patience, resting: bool) {
    // Where threads rest, what parts see of each other is left out, since there are too many orders.
    let (preemptions, seen) = if resting { (2, 0) } else { (3, 2) };
    explore_up_to(preemptions, move || {
        let rest = Arc::new(Rest::new());
        let done: Arc<Vec<_>> = Arc::new((0..seen).map(|_| AtomicU64::new(0)).collect());
        let counts = Counts::new(2);
        let counter = |own| {
            let rests = (resting && own == 0).then(|| Arc::clone(&rest));
            let (done, arrivals) = (Arc::clone(&done), counts.clone());
            Counter { own, done, arrivals, window: 0, windows, rests }
        };
        let parts = (0..2).map(counter).collect();
        let crew = Crew::new(parts, counts.clone(), patience, Arc::clone(&rest));
        let crew = Arc::new(crew);
        let working = Arc::clone(&crew);
        on_threads(threads, move |own| working.work(own));
        assert!(done.iter().all(|done| done.load(Ordering::Relaxed) == windows));
        let crew = Arc::into_inner(crew).expect("all threads have ended");
        assert!(crew.into_parts().all(|part| part.window == windows));
    });
}

#[test]
fn two_threads_do_each_part_once_in_each_window_and_see_what_it_did() {
    for patience in PATIENCES {
        crew_does_each_part_once(2, 2, patience, false);
    }
}

#[test]
fn one_thread_does_all_parts_while_the_other_does_not_come() {
    crew_does_each_part_once(1, 3, Patience::NONE, false);
}

/// The first part sends the other thread to rest in every window but the last one, in which it wakes it.
#[test]
fn a_thread_that_rests_is_woken() {
    // A thread that looks first is caught by others while it keeps its part.
    let patience = Patience { first: 1, ..Patience::NONE };
    crew_does_each_part_once(2, 3, patience, true);
}

/// Explores two parts that do `work` with their endpoints, of rows with one word, in exchanges after which they
/// wait for each other. They have published once before.
fn two_parts(
    work: impl Fn(usize, &mut Endpoint<'_, u64, u64>, &mut dyn FnMut()) + Send + Sync + Copy + 'static,
) {
    explore(move || {
        let memory = SharedMemory::new(2, 1);
        on_threads(2, move |own| {
            let mut endpoint = memory.endpoint(own);
            endpoint.publish([0].into_iter());
            let mut windows = 0;
            let mut meet = || {
                while !(&memory).all_have_arrived(windows) {
                    loom::thread::yield_now();
                }
                windows += 1;
            };
            work(own, &mut endpoint, &mut meet);
        });
    });
}

#[test]
fn every_part_reads_the_words_of_this_exchange_and_no_other() {
    two_parts(|own, endpoint, meet| {
        let tag = |part: usize, round: u64| 10 * round + u64::from(part == 1);
        for round in 1..=3 {
            endpoint.publish([tag(own, round)].into_iter());
            meet();
            for part in 0..endpoint.parts() {
                assert_eq!(endpoint.published(part, 0), tag(part, round));
            }
        }
    });
}

fn mail_is_received_once_and_in_order<const COUNT: u64>() {
    two_parts(|own, endpoint, meet| {
        let mut received = Vec::new();
        let mut mail = [Vec::new(), Vec::new()];
        // Part 1 may receive this between two exchanges, or while it is being sent.
        if own == 0 {
            mail[1].extend(0..COUNT);
            endpoint.send(mail.iter_mut());
            mail[1].push(COUNT);
            endpoint.send(mail.iter_mut());
        } else {
            endpoint.receive(|mail| received.push(mail));
        }
        endpoint.publish([0].into_iter());
        meet();
        endpoint.receive(|mail| received.push(mail));
        if own == 1 {
            assert!(received.into_iter().eq(0..=COUNT));
        } else {
            assert_eq!(received, []);
        }
        assert!(mail.iter().all(Vec::is_empty));
    });
}

#[test]
fn mail_that_was_sent_before_an_exchange_is_received_after_it_and_only_once() {
    mail_is_received_once_and_in_order::<1>();
}

/// So much that there is no room for all of it, and so much that the ring is full when more comes.
#[test]
fn mail_that_finds_no_room_in_the_ring_comes_behind_what_does() {
    mail_is_received_once_and_in_order::<300>();
    mail_is_received_once_and_in_order::<16>();
}

#[test]
fn notes_come_with_the_exchange_and_a_request_ends_with_it() {
    two_parts(|own, endpoint, meet| {
        endpoint.request();
        let mut notes = vec![u64::from(own == 1)];
        endpoint.send_notes(&mut notes);
        endpoint.publish([0].into_iter());
        meet();
        assert!(notes.is_empty());
        assert!(!endpoint.is_requested());
        if own == 0 {
            endpoint.take_notes(&mut notes);
            notes.sort_unstable();
            assert_eq!(notes, [0, 1]);
        }
    });
}
