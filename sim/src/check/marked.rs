//! An undo log that is reverted change by change.

use meikyo_undo::{Log, Mark, Place, State, Unclaimed, UndoLog};

/// A log that goes on behind a change that no field owns, so that in the end only what such changes
/// have left behind differs from the state before.
#[derive(Debug, Default)]
pub(super) struct MarkedLog {
    log: UndoLog,
    /// Where each change begins in the log, the oldest first.
    marks: Vec<Mark>,
}

impl MarkedLog {
    /// Reverts everything, the newest change first.
    ///
    /// # Errors
    /// [`Unclaimed`] if no field of `state` owns one of the changes; the others are reverted.
    pub(super) fn revert(&mut self, state: &mut impl State) -> Result<(), Unclaimed> {
        let mut end = self.log.mark();
        let mut result = Ok(());
        while let Some(start) = self.marks.pop() {
            if let Err(unclaimed) = self.log.revert(start, end, state) {
                result = Err(unclaimed);
            }
            end = start;
        }
        result
    }
}

impl Log for MarkedLog {
    const KEEPS: bool = true;

    fn word(&mut self, place: Place, word: u64) {
        self.marks.push(self.log.mark());
        self.log.word(place, word);
    }

    fn value<T: Send + 'static>(&mut self, place: Place, word: u64, value: T) {
        self.marks.push(self.log.mark());
        self.log.value(place, word, value);
    }
}
