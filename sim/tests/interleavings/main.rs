//! The barrier and the shared memory of the collective exchange under `loom`, which tries the orders in
//! which threads can run and see each other's stores, up to three preemptions in each.
//!
//! The two source files are compiled here once more, against the primitives of `loom` instead of those
//! of the standard library: `crate::sync` is this file's. What is checked is therefore the code that
//! runs, and the crate itself knows nothing of `loom`.

#[path = "../../src/exchange/barrier.rs"]
mod barrier;
#[path = "../../src/exchange/shared_memory.rs"]
mod shared_memory;

mod sync {
    pub(crate) use loom::hint::spin_loop;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use loom::thread::yield_now;
}

use std::sync::Arc;
use std::time::Duration;

use barrier::{Abandoned, Barrier, Patience};
use shared_memory::{Endpoint, SharedMemory};
use sync::{AtomicU64, Ordering};

/// Members that sleep at once, and members that look first, spinning and giving way.
const PATIENCES: [Patience; 2] =
    [Patience { spins: 0, yields: 0 }, Patience { spins: 1, yields: 1 }];

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
        let barrier = Barrier::new(members, patience);
        let written: Vec<_> = (0..members).map(|_| AtomicU64::new(0)).collect();
        on_threads(members, move |own| {
            for round in 1..=rounds {
                written[own].store(round, Ordering::Relaxed);
                assert_eq!(barrier.wait(), Ok(()));
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
    barrier_orders_memory(3, 1, Patience { spins: 0, yields: 0 });
}

#[test]
fn a_barrier_that_a_member_abandons_keeps_nobody_waiting() {
    for patience in PATIENCES {
        explore(move || {
            let barrier = Barrier::new(2, patience);
            on_threads(2, move |own| {
                let first = barrier.wait();
                if own == 0 {
                    assert_eq!(first, Ok(()));
                    barrier.abandon();
                } else {
                    // The barrier may be abandoned before this member sees that it was open.
                    assert_eq!(first.and_then(|()| barrier.wait()), Err(Abandoned));
                }
            });
        });
    }
}

/// Explores two parts that do `work` with their endpoints, of rows with one word.
fn two_parts(
    patience: Patience,
    work: impl Fn(usize, &mut Endpoint<'_, u64, u64>) + Send + Sync + Copy + 'static,
) {
    explore(move || {
        let memory = SharedMemory::new(2, 1, patience);
        on_threads(2, move |own| work(own, &mut memory.endpoint(own)));
    });
}

#[test]
fn every_part_reads_the_words_of_this_exchange_and_no_other() {
    for patience in PATIENCES {
        two_parts(patience, |own, endpoint| {
            let tag = |part: usize, round: u64| 10 * round + u64::from(part == 1);
            for round in 1..=3 {
                endpoint.meet(&[tag(own, round)], &mut [], &mut Vec::new());
                for part in 0..2 {
                    assert_eq!(endpoint.published(part, 0), tag(part, round));
                }
            }
        });
    }
}

#[test]
fn mail_that_was_sent_before_an_exchange_is_received_after_it_and_only_once() {
    for patience in PATIENCES {
        two_parts(patience, |own, endpoint| {
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
            endpoint.meet(&[0], &mut mail, &mut Vec::new());
            endpoint.receive(|mail| received.push(mail));
            let expected: &[u64] = if own == 1 { &[1, 2] } else { &[] };
            assert_eq!(received, expected);
            assert!(mail.iter().all(Vec::is_empty));
        });
    }
}

#[test]
fn notes_come_with_the_exchange_and_a_request_ends_with_it() {
    two_parts(PATIENCES[0], |own, endpoint| {
        endpoint.request();
        let mut notes = vec![u64::from(own == 1)];
        endpoint.meet(&[0], &mut [], &mut notes);
        assert!(notes.is_empty());
        assert!(!endpoint.is_requested());
        if own == 0 {
            endpoint.take_notes(&mut notes);
            notes.sort_unstable();
            assert_eq!(notes, [0, 1]);
        }
    });
}
