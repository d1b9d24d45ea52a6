//! Where changes are written down.

use std::any::Any;
use std::collections::VecDeque;

use crate::state::{Change, Place, State};

/// What a change hands its past to.
pub trait Log {
    /// Whether anything is kept. Where it is not, what was there before need not be copied.
    const KEEPS: bool;

    /// Notes a change at `place` that `word` is enough to take back.
    fn word(&mut self, place: Place, word: u64);

    /// Notes a change at `place` that needs `word` and `value` to be taken back.
    fn value<T: Send + 'static>(&mut self, place: Place, word: u64, value: T);
}

/// A log that keeps nothing and costs nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Forget;

impl Log for Forget {
    const KEEPS: bool = false;

    fn word(&mut self, _place: Place, _word: u64) {}

    fn value<T: Send + 'static>(&mut self, _place: Place, _word: u64, _value: T) {}
}

/// A position in an [`UndoLog`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Mark {
    entries: u64,
    values: u64,
}

/// No field of the state owns a change in the log: it is missing from the list of
/// [`fields!`](crate::fields), or the state was moved since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a change belongs to no field of the state; is a field missing from `fields!`?")]
pub struct Unclaimed;

#[derive(Clone, Copy, Debug)]
struct Entry {
    place: Place,
    word: u64,
}

/// A log of changes, oldest first, of any number of states.
///
/// Spans between two marks are taken back in any order as long as every state sees its own newest
/// change first; the oldest part is forgotten when it is certain that nobody will want it.
#[derive(Debug, Default)]
pub struct UndoLog {
    entries: VecDeque<Entry>,
    values: VecDeque<Option<Box<dyn Any + Send>>>,
    first: Mark,
}

impl UndoLog {
    /// An empty log.
    pub fn new() -> Self {
        Self::default()
    }

    /// The position after the newest change.
    #[inline]
    pub fn mark(&self) -> Mark {
        Mark {
            entries: self.first.entries + count(self.entries.len()),
            values: self.first.values + count(self.values.len()),
        }
    }

    /// Takes the changes from `start` to `end` back, the newest first.
    ///
    /// # Errors
    /// [`Unclaimed`] at the first change that no field of `state` owns; the changes after it are taken
    /// back, those before it are not.
    pub fn revert(
        &mut self,
        start: Mark,
        end: Mark,
        state: &mut impl State,
    ) -> Result<(), Unclaimed> {
        let mut newest_value = end.values;
        for at in (start.entries..end.entries).rev() {
            let entry = self.entries[offset(at, self.first.entries)];
            let value = newest_value
                .checked_sub(1)
                .filter(|index| *index >= start.values)
                .map(|index| &mut self.values[offset(index, self.first.values)]);
            let mut change = Change::new(entry.place, entry.word, value);
            if !state.revert(&mut change) {
                return Err(Unclaimed);
            }
            newest_value -= u64::from(change.took_value());
        }
        Ok(())
    }

    /// Forgets every change before `mark`.
    pub fn forget_before(&mut self, mark: Mark) {
        let entries = offset(mark.entries, self.first.entries).min(self.entries.len());
        let values = offset(mark.values, self.first.values).min(self.values.len());
        self.entries.drain(..entries);
        self.values.drain(..values);
        self.first.entries += count(entries);
        self.first.values += count(values);
    }

    /// The bytes that the log itself holds, without what boxed values point to.
    pub fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
            + self.values.capacity() * size_of::<Option<Box<dyn Any + Send>>>()
    }

    /// How many changes were ever written down.
    pub fn changes(&self) -> u64 {
        self.mark().entries
    }
}

impl Log for UndoLog {
    const KEEPS: bool = true;

    #[inline]
    fn word(&mut self, place: Place, word: u64) {
        self.entries.push_back(Entry { place, word });
    }

    fn value<T: Send + 'static>(&mut self, place: Place, word: u64, value: T) {
        self.entries.push_back(Entry { place, word });
        self.values.push_back(Some(Box::new(value)));
    }
}

#[inline]
fn count(len: usize) -> u64 {
    u64::try_from(len).expect("a length fits into 64 bits")
}

#[inline]
fn offset(at: u64, first: u64) -> usize {
    usize::try_from(at.saturating_sub(first)).expect("what is in memory is counted by usize")
}
