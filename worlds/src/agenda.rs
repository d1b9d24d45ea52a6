//! What happens when: the earliest first, and of equals the one that was added first.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Events by their instants.
#[derive(Debug)]
pub struct Agenda<T, E> {
    events: BinaryHeap<Entry<T, E>>,
    added: u64,
}

#[derive(Debug)]
struct Entry<T, E> {
    at: T,
    ordinal: u64,
    event: E,
}

impl<T: Ord, E> Ord for Entry<T, E> {
    /// The heap gives its greatest first, so the earliest is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        (&other.at, other.ordinal).cmp(&(&self.at, self.ordinal))
    }
}

impl<T: Ord, E> PartialOrd for Entry<T, E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Ord, E> PartialEq for Entry<T, E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T: Ord, E> Eq for Entry<T, E> {}

impl<T: Ord + Copy, E> Default for Agenda<T, E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Ord + Copy, E> Agenda<T, E> {
    /// An agenda on which nothing stands.
    pub fn new() -> Self {
        Self { events: BinaryHeap::new(), added: 0 }
    }

    /// Lets `event` happen at `at`.
    pub fn add(&mut self, at: T, event: E) {
        self.added += 1;
        self.events.push(Entry { at, ordinal: self.added, event });
    }

    /// When the next event happens.
    pub fn next_at(&self) -> Option<T> {
        self.events.peek().map(|entry| entry.at)
    }

    /// Takes the next event.
    pub fn pop(&mut self) -> Option<(T, E)> {
        self.events.pop().map(|entry| (entry.at, entry.event))
    }

    /// Takes the next event if it happens at `now` or before.
    pub fn pop_until(&mut self, now: T) -> Option<(T, E)> {
        if self.next_at().is_some_and(|at| at <= now) { self.pop() } else { None }
    }

    /// Moves every instant, as when the clock that they are told by is set.
    pub fn shift(&mut self, moved: impl Fn(T) -> T) {
        let entries = std::mem::take(&mut self.events).into_iter();
        self.events = entries.map(|entry| Entry { at: moved(entry.at), ..entry }).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_happen_in_the_order_of_their_instants_and_equals_as_they_were_added() {
        let mut agenda = Agenda::new();
        for (ordinal, at) in [5_u32, 1, 5, 3, 1, 5].into_iter().enumerate() {
            agenda.add(at, ordinal);
        }
        assert_eq!(agenda.pop_until(0), None);
        let popped: Vec<_> = std::iter::from_fn(|| agenda.pop()).collect();
        assert_eq!(popped, [(1, 1), (1, 4), (3, 3), (5, 0), (5, 2), (5, 5)]);
    }

    #[test]
    fn a_clock_that_is_set_moves_all_instants() {
        let mut agenda = Agenda::new();
        agenda.add(10_i64, "a");
        agenda.add(20, "b");
        agenda.shift(|at| at - 15);
        assert_eq!((agenda.next_at(), agenda.pop_until(0)), (Some(-5), Some((-5, "a"))));
        assert_eq!(agenda.pop(), Some((5, "b")));
    }
}
