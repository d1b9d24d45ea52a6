//! The collective exchange: how the parts of a run tell and send each other things.
//!
//! Everything that parts agree on, they agree on by one operation, in which every part publishes a few
//! words and hands over its mail, and goes on when all have done so. Threads do this in memory
//! ([`shared_memory`]) and meet as a [`crew`]; MPI ranks do it by an `MPI_Allgather` and messages
//! (`ranks::exchange`). The [`Exchange`] trait is all that the schedulers see of either. What the words
//! mean is the coordinator's business.

pub(crate) mod barrier;
pub(crate) mod crew;
pub(crate) mod shared_memory;

use crate::exchange::shared_memory::Endpoint;
use crate::statistics::Line;

/// One part's access to the collective exchange of a run.
pub(crate) trait Exchange {
    /// What parts send each other: events, or events and anti-messages.
    type Mail;

    /// Publishes `words` (as many as every other part does), sends `mail[to]` to each part and `lines`
    /// to the first one. The lists are empty afterwards. What the others publish can be read when all
    /// have done so: over ranks when this returns, among threads when the crew begins the next window.
    fn publish(&mut self, words: &[u64], mail: &mut [Vec<Self::Mail>], lines: &mut Vec<Line>);

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

    fn publish(&mut self, words: &[u64], mail: &mut [Vec<T>], lines: &mut Vec<Line>) {
        Endpoint::publish(self, words, mail, lines);
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
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::barrier::Patience;
    use super::crew::{Crew, Part, Rest};
    use super::shared_memory::{Endpoint, SharedMemory};

    /// Sleeps at once, yields first, spins first.
    const PATIENCES: [Patience; 3] =
        [Patience::NONE, Patience { spins: 0, yields: 20 }, Patience { spins: 500, yields: 5 }];

    /// Adds up what all parts publish, and says so in the next window.
    struct Adder<'a> {
        part: u64,
        own: u64,
        parts: usize,
        sums: &'a AtomicU64,
        endpoint: Endpoint<'a, u64, u64>,
        /// After so many windows it panics.
        panics_after: u64,
    }

    const WINDOWS: u64 = 500;

    impl Part for Adder<'_> {
        fn step(&mut self, _alone: bool) -> bool {
            let parts = self.parts;
            for part in 0..parts {
                let expected = self.own + u64::try_from(part).unwrap() * 1000;
                assert_eq!(self.endpoint.published(part, 0), expected);
            }
            self.sums.fetch_add(1, Ordering::Relaxed);
            self.own += 1;
            assert!(self.own < self.panics_after, "after {} windows", self.own);
            self.publish();
            self.own == WINDOWS
        }
    }

    impl Adder<'_> {
        fn publish(&mut self) {
            let words = [self.own + 1000 * self.part];
            self.endpoint.publish(&words, &mut [], &mut Vec::new());
        }
    }

    fn adders<'a>(
        memory: &'a SharedMemory<u64, u64>,
        sums: &'a AtomicU64,
        parts: usize,
        panics: Option<usize>,
    ) -> Vec<Adder<'a>> {
        let adder = |part| {
            let panics_after = if panics == Some(part) { 50 } else { u64::MAX };
            let endpoint = memory.endpoint(part);
            let number = u64::try_from(part).unwrap();
            let mut adder = Adder { part: number, own: 0, parts, sums, endpoint, panics_after };
            adder.publish();
            adder
        };
        (0..parts).map(adder).collect()
    }

    #[test]
    fn every_part_is_done_once_in_every_window_whoever_does_it() {
        for (parts, patience) in [1, 2, 3, 8].into_iter().zip(PATIENCES.into_iter().cycle()) {
            let (memory, sums, rest) =
                (SharedMemory::new(parts, 1), AtomicU64::new(0), Arc::new(Rest::new()));
            let crew = Crew::new(adders(&memory, &sums, parts, None), patience, rest);
            std::thread::scope(|scope| {
                let crew = &crew;
                (1..parts).for_each(|own| drop(scope.spawn(move || crew.work(own))));
                crew.work(0);
            });
            let steps = WINDOWS * u64::try_from(parts).unwrap();
            assert_eq!(sums.load(Ordering::Relaxed), steps);
            assert!(crew.into_parts().all(|part| part.own == WINDOWS));
        }
    }

    /// Threads 1 and 2 never come: the first one does everything.
    #[test]
    fn parts_of_threads_that_do_not_run_are_done_by_the_others() {
        let (memory, sums, rest) =
            (SharedMemory::new(3, 1), AtomicU64::new(0), Arc::new(Rest::new()));
        let crew = Crew::new(adders(&memory, &sums, 3, None), Patience::NONE, Arc::clone(&rest));
        crew.work(0);
        assert_eq!(sums.into_inner(), 3 * WINDOWS);
    }

    #[test]
    fn threads_that_rest_are_woken_and_leave_with_the_others() {
        let (memory, sums, rest) =
            (SharedMemory::new(3, 1), AtomicU64::new(0), Arc::new(Rest::new()));
        let crew = Crew::new(adders(&memory, &sums, 3, None), Patience::NONE, Arc::clone(&rest));
        rest.set(true);
        std::thread::scope(|scope| {
            let crew = &crew;
            (1..3).for_each(|own| drop(scope.spawn(move || crew.work(own))));
            crew.work(0);
        });
        assert_eq!(sums.into_inner(), 3 * WINDOWS);
    }

    #[test]
    fn a_thread_that_panics_ends_the_wait_of_the_others() {
        for (patience, resting) in PATIENCES.into_iter().zip([false, true, false]) {
            let (memory, sums, rest) =
                (SharedMemory::new(3, 1), AtomicU64::new(0), Arc::new(Rest::new()));
            let crew = Crew::new(adders(&memory, &sums, 3, Some(1)), patience, Arc::clone(&rest));
            rest.set(resting);
            let panicked: Vec<bool> = std::thread::scope(|scope| {
                let crew = &crew;
                let work =
                    |own| move || catch_unwind(AssertUnwindSafe(move || crew.work(own))).is_err();
                let threads: Vec<_> = (0..3).map(|own| scope.spawn(work(own))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(panicked, [true; 3]);
        }
    }
}
