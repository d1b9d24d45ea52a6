//! The barrier and the shared memory of the collective exchange under `loom`, which tries the orders in
//! which threads can run and see each other's stores, up to three preemptions in each (two where threads rest).
//!
//! The source files are compiled here once more, against the primitives of `loom` instead of those
//! of the standard library: `crate::sync` is this file's. What is checked is therefore the code that
//! runs, and the crate itself knows nothing of `loom`. The rings of `rtrb` are not among what is tried: they do
//! here what they do in one order.

#[path = "../../src/exchange/barrier.rs"]
mod barrier;
#[path = "../../src/exchange/crew.rs"]
mod crew;
#[path = "../../src/exchange/shared_memory.rs"]
mod shared_memory;

mod sync {
    pub(crate) use std::sync::TryLockError;

    pub(crate) use loom::hint::spin_loop;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use loom::thread::yield_now;
}

use std::sync::Arc;
use std::time::Duration;

use barrier::{Abandoned, Arrivals, Barrier, Patience};
use crew::{Crew, Part, Rest};
use shared_memory::{Endpoint, SharedMemory};
use sync::{AtomicU64, Ordering};

/// Threads that sleep at once, and threads that look first, spinning and giving way.
const PATIENCES: [Patience; 2] = [Patience::NONE, Patience { first: 1, spins: 1, yields: 1 }];

/// Runs `check` in every order that loom finds with three preemptions; it spawns loom's threads.
fn explore(check: impl Fn() + Send + Sync + 'static) {
    explore_up_to(3, check);
}

fn explore_up_to(preemptions: usize, check: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    // All of it takes seconds; a mistake in the code can make the orders too many to try.
    builder.max_duration = Some(Duration::from_secs(20));
    builder.check(check);
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

    fn arrive(&self, part: usize, generation: u64) {
        self.0[part].store(generation + 1, Ordering::Release);
    }
}

impl Arrivals for Counts {
    fn generation(&self) -> u64 {
        self.0.iter().map(|count| count.load(Ordering::Acquire)).min().expect("there are parts")
    }
    fn has_arrived(&self, part: usize, generation: u64) -> bool {
        self.0[part].load(Ordering::Acquire) > generation
    }
    fn all_have_arrived(&self, generation: u64) -> bool {
        (0..self.0.len()).all(|part| self.has_arrived(part, generation))
    }
}

fn barrier_orders_memory(members: usize, rounds: u64, patience: Patience) {
    explore(move || {
        let counts = Counts::new(members);
        let barrier = Barrier::new(counts.clone());
        let written: Vec<_> = (0..members).map(|_| AtomicU64::new(0)).collect();
        on_threads(members, move |own| {
            for round in 1..=rounds {
                written[own].store(round, Ordering::Relaxed);
                counts.arrive(own, round - 1);
                barrier.wake_missed();
                barrier.wait(round - 1, patience).expect("nobody abandons it");
                for other in &written {
                    // A member that is ahead may have written for the next round already.
                    let seen = other.load(Ordering::Relaxed);
                    assert!(seen == round || seen == round + 1, "{seen} in round {round}");
                }
            }
        });
    });
}

#[test]
fn what_was_written_before_a_barrier_is_seen_after_it() {
    for patience in PATIENCES {
        barrier_orders_memory(2, 2, patience);
    }
}

#[test]
fn what_three_threads_wrote_before_a_barrier_is_seen_after_it() {
    barrier_orders_memory(3, 1, Patience::NONE);
}

#[test]
fn a_barrier_that_a_member_abandons_keeps_nobody_waiting() {
    for patience in PATIENCES {
        explore(move || {
            let counts = Counts::new(2);
            let barrier = Barrier::new(counts.clone());
            on_threads(2, move |own| {
                counts.arrive(own, 0);
                barrier.wake_missed();
                if own == 0 {
                    barrier.abandon();
                } else {
                    // It may be abandoned before this member sees that it was open, or even before
                    // it opens.
                    let waited = barrier.wait(0, patience);
                    let again = waited.and_then(|()| barrier.wait(1, patience));
                    assert_eq!(again, Err(Abandoned));
                }
            });
        });
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
    /// On the first part, whom it sends to rest in the first window and wakes in the second.
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
        self.done[self.own].store(self.window, Ordering::Relaxed);
        if let Some(rest) = &self.rests {
            rest.set(self.window == 1);
        }
        self.arrivals.arrive(self.own, self.window - 1);
        self.window == self.windows
    }
}

fn crew_does_each_part_once(threads: usize, windows: u64, patience: Patience, resting: bool) {
    explore_up_to(if resting { 2 } else { 3 }, move || {
        let rest = Arc::new(Rest::new());
        let done: Arc<Vec<_>> = Arc::new((0..2).map(|_| AtomicU64::new(0)).collect());
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

/// The first part sends the other thread to rest in the first window, and wakes it in the second.
#[test]
fn a_thread_that_rests_is_woken() {
    crew_does_each_part_once(2, 2, Patience::NONE, true);
}

/// The memory of two parts, as threads share it.
#[derive(Clone)]
struct Memory(Arc<SharedMemory<u64, u64>>);

impl Arrivals for Memory {
    fn generation(&self) -> u64 {
        (&*self.0).generation()
    }
    fn has_arrived(&self, part: usize, generation: u64) -> bool {
        (&*self.0).has_arrived(part, generation)
    }
    fn all_have_arrived(&self, generation: u64) -> bool {
        (&*self.0).all_have_arrived(generation)
    }
}

/// Explores two parts that do `work` with their endpoints, of rows with one word, in exchanges that a
/// barrier orders. They have published once before.
fn two_parts(
    work: impl Fn(usize, &mut Endpoint<'_, u64, u64>, &mut dyn FnMut()) + Send + Sync + Copy + 'static,
) {
    explore(move || {
        let memory = Memory(Arc::new(SharedMemory::new(2, 1)));
        let barrier = Barrier::new(memory.clone());
        on_threads(2, move |own| {
            let mut endpoint = memory.0.endpoint(own);
            endpoint.publish([0].into_iter());
            let mut exchanges = 0;
            let mut meet = || {
                barrier.wake_missed();
                barrier.wait(exchanges, Patience::NONE).expect("nobody abandons it");
                exchanges += 1;
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

/// So much that some of it finds no room in the ring, in the second case.
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

#[test]
fn mail_that_finds_no_room_in_the_ring_comes_behind_what_does() {
    mail_is_received_once_and_in_order::<300>();
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
