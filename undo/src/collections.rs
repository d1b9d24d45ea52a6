//! Sequences that remember.

use std::collections::VecDeque;

use crate::Wire;
use crate::bytes_of_inside;
use crate::log::Log;
use crate::state::{Change, Place, State};

/// What was done to a sequence, as the word in the log; larger words name the index that was set.
mod done {
    pub(super) const PUSHED_BACK: u64 = 0;
    pub(super) const POPPED_BACK: u64 = 1;
    pub(super) const PUSHED_FRONT: u64 = 2;
    pub(super) const POPPED_FRONT: u64 = 3;
    pub(super) const SET: u64 = 4;

    pub(super) fn set(index: usize) -> u64 {
        SET + u64::try_from(index).expect("an index fits into 64 bits")
    }

    pub(super) fn index(word: u64) -> usize {
        usize::try_from(word - SET).expect("the word was made of an index")
    }
}

/// A growable array.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct List<T>(Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> From<Vec<T>> for List<T> {
    fn from(elements: Vec<T>) -> Self {
        Self(elements)
    }
}

impl<T: Clone + Send + 'static> List<T> {
    /// The elements.
    pub fn as_slice(&self) -> &[T] {
        &self.0
    }

    /// Appends `element`.
    pub fn push(&mut self, log: &mut impl Log, element: T) {
        log.word(Place::of(self), done::PUSHED_BACK);
        self.0.push(element);
    }

    /// Removes the last element.
    pub fn pop<L: Log>(&mut self, log: &mut L) -> Option<T> {
        let element = self.0.pop()?;
        if L::KEEPS {
            log.value(Place::of(self), done::POPPED_BACK, element.clone());
        }
        Some(element)
    }

    /// Replaces the element at `index`.
    ///
    /// # Panics
    /// If there is none.
    pub fn set(&mut self, log: &mut impl Log, index: usize, element: T) {
        let place = Place::of(self);
        log.value(place, done::set(index), std::mem::replace(&mut self.0[index], element));
    }
}

impl<T: Send + Wire + 'static> State for List<T> {
    const COPIED: bool = false;

    fn revert(&mut self, change: &mut Change<'_>) -> bool {
        if !change.is_at(self) {
            return false;
        }
        match change.word() {
            done::PUSHED_BACK => drop(self.0.pop()),
            done::POPPED_BACK => self.0.push(change.old_value()),
            word => self.0[done::index(word)] = change.old_value(),
        }
        true
    }

    bytes_of_inside!();
}

/// A queue with two ends.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Deque<T>(VecDeque<T>);

impl<T> Default for Deque<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> Deque<T> {
    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The elements, the front first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator {
        self.0.iter()
    }

    /// The element that [`Deque::pop_front`] would give.
    pub fn front(&self) -> Option<&T> {
        self.0.front()
    }
}

impl<T: Clone + Send + 'static> Deque<T> {
    /// Appends `element` at the back.
    pub fn push_back(&mut self, log: &mut impl Log, element: T) {
        log.word(Place::of(self), done::PUSHED_BACK);
        self.0.push_back(element);
    }

    /// Puts `element` in front of all others.
    pub fn push_front(&mut self, log: &mut impl Log, element: T) {
        log.word(Place::of(self), done::PUSHED_FRONT);
        self.0.push_front(element);
    }

    /// Removes the front element.
    pub fn pop_front<L: Log>(&mut self, log: &mut L) -> Option<T> {
        let element = self.0.pop_front()?;
        if L::KEEPS {
            log.value(Place::of(self), done::POPPED_FRONT, element.clone());
        }
        Some(element)
    }

    /// Removes the element at the back.
    pub fn pop_back<L: Log>(&mut self, log: &mut L) -> Option<T> {
        let element = self.0.pop_back()?;
        if L::KEEPS {
            log.value(Place::of(self), done::POPPED_BACK, element.clone());
        }
        Some(element)
    }
}

impl<T: Send + Wire + 'static> State for Deque<T> {
    const COPIED: bool = false;

    fn revert(&mut self, change: &mut Change<'_>) -> bool {
        if !change.is_at(self) {
            return false;
        }
        match change.word() {
            done::PUSHED_BACK => drop(self.0.pop_back()),
            done::PUSHED_FRONT => drop(self.0.pop_front()),
            done::POPPED_BACK => self.0.push_back(change.old_value()),
            _ => self.0.push_front(change.old_value()),
        }
        true
    }

    bytes_of_inside!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UndoLog;

    #[test]
    fn a_deque_is_what_it_was_after_changes_at_both_ends() {
        let mut queue = Deque::default();
        let mut log = UndoLog::new();
        queue.push_back(&mut log, 1);
        queue.push_back(&mut log, 2);
        let (before, start) = (queue.clone(), log.mark());
        queue.push_front(&mut log, 0);
        assert_eq!(queue.pop_back(&mut log), Some(2));
        assert_eq!(queue.pop_front(&mut log), Some(0));
        assert_eq!(queue.pop_front(&mut log), Some(1));
        assert_eq!(queue.pop_front(&mut log), None);
        log.revert(start, log.mark(), &mut queue).unwrap();
        assert_eq!(queue, before);
    }

    #[test]
    fn a_list_is_what_it_was() {
        let mut list = List::from(vec!["a".to_owned(), "b".to_owned()]);
        let before = list.clone();
        let mut log = UndoLog::new();
        list.set(&mut log, 0, "c".to_owned());
        list.pop(&mut log);
        list.push(&mut log, "d".to_owned());
        list.set(&mut log, 1, "e".to_owned());
        log.revert(crate::Mark::default(), log.mark(), &mut list).unwrap();
        assert_eq!(list, before);
    }
}
