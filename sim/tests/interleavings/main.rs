//! The barrier and the shared memory of the collective exchange under `loom`, which tries the orders in
//! which threads can run and see each other's stores, up to three preemptions in each.
//!
//! The two source files are compiled here once more, against the primitives of `loom` instead of those
//! of the standard library: `crate::sync` is this file's. What is checked is therefore the code that
//! runs, and the crate itself knows nothing of `loom`.

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

use barrier::{Abandoned, Barrier, Patience};
use crew::{Crew, Part, Rest};
use shared_memory::{Endpoint, SharedMemory};
use sync::{AtomicU64, Ordering};

/// Threads that sleep at once, and threads that look first, spinning and giving way.
const PATIENCES: [Patience; 2] = [Patience::NONE, Patience { spins: 1, yields: 1 }];

/// Runs `check` in every order that loom finds; it spawns loom's threads.
fn explore(check: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
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

fn barrier_orders_memory(members: usize, rounds: u64, patience: Patience) {
    explore(move || {
        let barrier = Barrier::new(members);
        let written: Vec<_> = (0..members).map(|_| AtomicU64::new(0)).collect();
        on_threads(members, move |own| {
            let mut generation = barrier.generation().expect("nobody abandons it");
            for round in 1..=rounds {
                written[own].store(round, Ordering::Relaxed);
                barrier.arrive(generation);
                generation = barrier.wait(generation, patience).expect("nobody abandons it");
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
            let barrier = Barrier::new(2);
            on_threads(2, move |own| {
                barrier.arrive(0);
                if own == 0 {
                    barrier.abandon();
                } else {
                    // It may be abandoned before this member sees that it was open, or even before
                    // it opens.
                    let waited = barrier.wait(0, patience);
                    let again = waited.and_then(|generation| barrier.wait(generation, patience));
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
        self.window == self.windows
    }
}

fn crew_does_each_part_once(threads: usize, windows: u64, patience: Patience, resting: bool) {
    explore(move || {
        let rest = Arc::new(Rest::new());
        let done: Arc<Vec<_>> = Arc::new((0..2).map(|_| AtomicU64::new(0)).collect());
        let counter = |own| {
            let rests = (resting && own == 0).then(|| Arc::clone(&rest));
            Counter { own, done: Arc::clone(&done), window: 0, windows, rests }
        };
        let crew = Crew::new((0..2).map(counter).collect(), patience, Arc::clone(&rest));
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

/// Explores two parts that do `work` with their endpoints, of rows with one word, in exchanges that a
/// barrier orders.
fn two_parts(
    work: impl Fn(usize, &mut Endpoint<'_, u64, u64>, &dyn Fn()) + Send + Sync + Copy + 'static,
) {
    explore(move || {
        let (memory, barrier) = (SharedMemory::new(2, 1), Barrier::new(2));
        on_threads(2, move |own| {
            let meet = || {
                let generation = barrier.generation().expect("nobody abandons it");
                barrier.arrive(generation);
                barrier.wait(generation, Patience::NONE).expect("nobody abandons it");
            };
            work(own, &mut memory.endpoint(own), &meet);
        });
    });
}

#[test]
fn every_part_reads_the_words_of_this_exchange_and_no_other() {
    two_parts(|own, endpoint, meet| {
        let tag = |part: usize, round: u64| 10 * round + u64::from(part == 1);
        for round in 1..=3 {
            endpoint.publish(&[tag(own, round)], &mut [], &mut Vec::new());
            meet();
            for part in 0..2 {
                assert_eq!(endpoint.published(part, 0), tag(part, round));
            }
        }
    });
}

#[test]
fn mail_that_was_sent_before_an_exchange_is_received_after_it_and_only_once() {
    two_parts(|own, endpoint, meet| {
        let mut received = Vec::new();
        let mut mail = [Vec::new(), Vec::new()];
        // Part 1 may receive this between two exchanges, or while it is being sent.
        if own == 0 {
            mail[1].push(1);
            endpoint.send(&mut mail);
            mail[1].push(2);
        } else {
            endpoint.receive(|mail| received.push(mail));
        }
        endpoint.publish(&[0], &mut mail, &mut Vec::new());
        meet();
        endpoint.receive(|mail| received.push(mail));
        let expected: &[u64] = if own == 1 { &[1, 2] } else { &[] };
        assert_eq!(received, expected);
        assert!(mail.iter().all(Vec::is_empty));
    });
}

#[test]
fn notes_come_with_the_exchange_and_a_request_ends_with_it() {
    two_parts(|own, endpoint, meet| {
        endpoint.request();
        let mut notes = vec![u64::from(own == 1)];
        endpoint.publish(&[0], &mut [], &mut notes);
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
