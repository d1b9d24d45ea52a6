//! The collective exchange: how the parts of a run tell and send each other things.
//!
//! Everything that parts agree on, they agree on by one operation, in which every part publishes a few
//! words, hands over its mail, and waits until all have done so. Threads do this in memory
//! ([`shared_memory`]), MPI ranks by an `MPI_Allgather` and messages (`ranks::exchange`); the
//! [`Exchange`] trait is all that the schedulers see of either. What the words mean is the
//! coordinator's business.

pub(crate) mod barrier;
pub(crate) mod shared_memory;

use crate::exchange::shared_memory::Endpoint;
use crate::statistics::Line;

/// One part's access to the collective exchange of a run.
pub(crate) trait Exchange {
    /// What parts send each other: events, or events and anti-messages.
    type Mail;

    /// Publishes `words` (as many as every other part does), sends `mail[to]` to each part and `lines`
    /// to the first one, and returns when all parts have done so. The lists are empty afterwards.
    fn exchange(&mut self, words: &[u64], mail: &mut [Vec<Self::Mail>], lines: &mut Vec<Line>);

    /// The word `at` of those that `part` published at the last exchange.
    fn word(&self, part: usize, at: usize) -> u64;

    /// Calls `each` with the mail that has arrived: all that was sent before the last exchange, and
    /// perhaps some that was sent after it.
    fn receive(&mut self, each: impl FnMut(Self::Mail));

    /// On the first part, appends the lines that have arrived to `into`.
    fn take_lines(&mut self, into: &mut Vec<Line>);

    /// Sends mail ahead of the next exchange, where the transport can do so. Otherwise the lists stay
    /// as they are, and go with the next exchange.
    fn send_early(&mut self, _mail: &mut [Vec<Self::Mail>]) {}

    /// Asks the other parts to come to the next exchange soon, where the transport can do so.
    fn request(&self) {}

    /// Whether a part has asked for the next exchange.
    fn is_requested(&self) -> bool {
        false
    }
}

/// What a part has for the others until the next exchange.
#[derive(Debug)]
pub(crate) struct Outbox<T> {
    mail: Vec<Vec<T>>,
    /// For each part, the earliest time in ns of what was put in for it since the last exchange, even
    /// if that was sent early; `u64::MAX` if nothing was.
    earliest: Vec<u64>,
}

impl<T> Outbox<T> {
    pub(crate) fn new(parts: usize) -> Self {
        Self { mail: (0..parts).map(|_| Vec::new()).collect(), earliest: vec![u64::MAX; parts] }
    }

    /// Puts in `mail` for the part `to`, which happens at `time` ns.
    #[inline]
    pub(crate) fn push(&mut self, to: usize, time: u64, mail: T) {
        let earliest = &mut self.earliest[to];
        *earliest = (*earliest).min(time);
        self.mail[to].push(mail);
    }

    /// The earliest time of what was put in for each part since the last exchange, in ns.
    pub(crate) fn earliest(&self) -> &[u64] {
        &self.earliest
    }

    /// The mail for each part that is not sent yet.
    pub(crate) fn mail(&mut self) -> &mut [Vec<T>] {
        &mut self.mail
    }

    /// Begins anew after an exchange.
    pub(crate) fn clear_times(&mut self) {
        self.earliest.fill(u64::MAX);
    }
}

impl<T> Exchange for Endpoint<'_, T, Line> {
    type Mail = T;

    fn exchange(&mut self, words: &[u64], mail: &mut [Vec<T>], lines: &mut Vec<Line>) {
        self.meet(words, mail, lines);
    }

    #[inline]
    fn word(&self, part: usize, at: usize) -> u64 {
        self.published(part, at)
    }

    fn receive(&mut self, each: impl FnMut(T)) {
        Endpoint::receive(self, each);
    }

    fn take_lines(&mut self, into: &mut Vec<Line>) {
        self.take_notes(into);
    }

    fn send_early(&mut self, mail: &mut [Vec<T>]) {
        self.send(mail);
    }

    fn request(&self) {
        Endpoint::request(self);
    }

    fn is_requested(&self) -> bool {
        Endpoint::is_requested(self)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::barrier::{Barrier, Patience};
    use super::shared_memory::SharedMemory;

    /// Sleeps at once, yields first, spins first.
    const PATIENCES: [Patience; 3] = [
        Patience { spins: 0, yields: 0 },
        Patience { spins: 0, yields: 20 },
        Patience { spins: 500, yields: 5 },
    ];

    #[test]
    fn nobody_leaves_a_barrier_before_the_last_has_come() {
        for (members, patience) in [2, 3, 8].into_iter().zip(PATIENCES) {
            let barrier = Barrier::new(members, patience);
            let total = AtomicU64::new(0);
            let expected = |round: u64| round * u64::try_from(members).unwrap();
            std::thread::scope(|scope| {
                for _ in 0..members {
                    scope.spawn(|| {
                        for round in 1..=500 {
                            total.fetch_add(1, Ordering::SeqCst);
                            barrier.wait().unwrap();
                            assert_eq!(total.load(Ordering::SeqCst), expected(round));
                            barrier.wait().unwrap();
                        }
                    });
                }
            });
        }
    }

    #[test]
    fn a_thread_that_panics_ends_the_wait_of_the_others() {
        for patience in PATIENCES {
            let memory: SharedMemory<u64, u64> = SharedMemory::new(3, 1, patience);
            let panicked: Vec<bool> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..3)
                    .map(|part| {
                        let mut endpoint = memory.endpoint(part);
                        scope.spawn(move || {
                            catch_unwind(AssertUnwindSafe(move || {
                                for round in 0..100 {
                                    assert!(part != 1 || round < 50, "round {round}");
                                    endpoint.meet(&[round], &mut [], &mut Vec::new());
                                }
                            }))
                            .is_err()
                        })
                    })
                    .collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(panicked, [true; 3]);
        }
    }
}
