//! The collective exchange: how the parts of a run tell and send each other things.
//!
//! Everything that parts agree on, they agree on by one operation, in which every part publishes a few
//! words and hands over its mail, and goes on when all have done so. Threads do this in memory
//! ([`shared_memory`]) and meet as a [`crew`]; MPI ranks do it by an `MPI_Allgather` and messages
//! (`ranks::exchange`). The [`Exchange`] trait is all that the schedulers see of either. What the words
//! mean is the coordinator's business.

pub(crate) mod crew;
pub(crate) mod shared_memory;

use crate::exchange::shared_memory::{Apart, Endpoint};
use crate::statistics::Line;

/// One part's access to the collective exchange of a run.
pub(crate) trait Exchange {
    /// What parts send each other: events, or events and anti-messages.
    type Mail;

    /// Publishes `words` (as many as every other part does) and the times of the outbox, sends each part its mail
    /// and `lines` to the first one. The lists are empty afterwards. What the others publish can be read when all
    /// have done so: over ranks when this returns, among threads when the crew begins the next window.
    fn publish(&mut self, words: &[u64], outbox: &mut Outbox<Self::Mail>, lines: &mut Vec<Line>);

    /// The word `at` of those that `part` published at the last exchange.
    fn word(&self, part: usize, at: usize) -> u64;

    /// The earliest time of what a part had for another one before the last exchange, in ns; `u64::MAX` if it
    /// had nothing.
    fn earliest(&self, from: usize, to: usize) -> u64;

    /// Calls `each` with the mail that has arrived: all that was sent before the last exchange, and
    /// perhaps some that was sent after it.
    fn receive(&mut self, each: impl FnMut(Self::Mail));

    /// On the first part, appends the lines that have arrived to `into`.
    fn take_lines(&mut self, into: &mut Vec<Line>);

    /// Sends mail ahead of the next exchange, where the transport can do so. Otherwise the lists stay
    /// as they are, and go with the next exchange.
    fn send_early(&mut self, _outbox: &mut Outbox<Self::Mail>) {}

    /// Asks the other parts to come to the next exchange soon, where the transport can do so.
    fn request(&self) {}

    /// Whether a part has asked for the next exchange.
    fn is_requested(&self) -> bool {
        false
    }
}

/// What a part has for the others until the next exchange.
#[derive(Debug)]
pub(crate) struct Outbox<T>(Vec<Apart<Tray<T>>>);

/// What is for one of the others.
#[derive(Debug)]
struct Tray<T> {
    mail: Vec<T>,
    /// The earliest time in ns of what was put in since the last exchange, even if that was sent early;
    /// `u64::MAX` if nothing was.
    earliest: u64,
}

impl<T> Outbox<T> {
    pub(crate) fn new(parts: usize) -> Self {
        let tray = || Apart(Tray { mail: Vec::new(), earliest: u64::MAX });
        Self((0..parts).map(|_| tray()).collect())
    }

    /// Puts in `mail` for the part `to`, which happens at `time` ns.
    #[inline]
    pub(crate) fn push(&mut self, to: usize, time: u64, mail: T) {
        let Apart(tray) = &mut self.0[to];
        tray.earliest = tray.earliest.min(time);
        tray.mail.push(mail);
    }

    /// The earliest time of what was put in for each part since the last exchange, in ns.
    pub(crate) fn earliest(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|Apart(tray)| tray.earliest)
    }

    /// The mail for each part that is not sent yet.
    pub(crate) fn mail(&mut self) -> impl ExactSizeIterator<Item = &mut Vec<T>> {
        self.0.iter_mut().map(|Apart(tray)| &mut tray.mail)
    }

    /// Begins anew after an exchange.
    pub(crate) fn clear_times(&mut self) {
        self.0.iter_mut().for_each(|Apart(tray)| tray.earliest = u64::MAX);
    }
}

impl<T> Exchange for Endpoint<'_, T, Line> {
    type Mail = T;

    fn publish(&mut self, words: &[u64], outbox: &mut Outbox<T>, lines: &mut Vec<Line>) {
        self.send(outbox.mail());
        self.send_notes(lines);
        // The times first: of few parts, they and the words that are read in every window are on one cache line.
        Endpoint::publish(self, outbox.earliest().chain(words.iter().copied()));
        outbox.clear_times();
    }

    #[inline]
    fn word(&self, part: usize, at: usize) -> u64 {
        self.published(part, self.parts() + at)
    }

    #[inline]
    fn earliest(&self, from: usize, to: usize) -> u64 {
        self.published(from, to)
    }

    fn receive(&mut self, each: impl FnMut(T)) {
        Endpoint::receive(self, each);
    }

    fn take_lines(&mut self, into: &mut Vec<Line>) {
        self.take_notes(into);
    }

    fn send_early(&mut self, outbox: &mut Outbox<T>) {
        self.send(outbox.mail());
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

    use super::crew::{Crew, Part, Patience, Rest};
    use super::shared_memory::{Endpoint, SharedMemory};

    /// Sleeps at once, yields first, spins first.
    const PATIENCES: [Patience; 3] = [
        Patience::NONE,
        Patience { first: 0, spins: 0, yields: 20 },
        Patience { first: 50, spins: 500, yields: 5 },
    ];

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
            self.endpoint.publish([self.own + 1000 * self.part].into_iter());
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
            let crew = Crew::new(adders(&memory, &sums, parts, None), &memory, patience, rest);
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
        let parts = adders(&memory, &sums, 3, None);
        let crew = Crew::new(parts, &memory, Patience::NONE, Arc::clone(&rest));
        crew.work(0);
        assert_eq!(sums.into_inner(), 3 * WINDOWS);
    }

    #[test]
    fn threads_that_rest_are_woken_and_leave_with_the_others() {
        let (memory, sums, rest) =
            (SharedMemory::new(3, 1), AtomicU64::new(0), Arc::new(Rest::new()));
        let parts = adders(&memory, &sums, 3, None);
        let crew = Crew::new(parts, &memory, Patience::NONE, Arc::clone(&rest));
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
            let parts = adders(&memory, &sums, 3, Some(1));
            let crew = Crew::new(parts, &memory, patience, Arc::clone(&rest));
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
