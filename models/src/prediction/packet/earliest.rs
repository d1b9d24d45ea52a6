//! The least of a few instants, each of which changes by itself.

use meikyo_undo::{Cell, Log, fields};

/// What never comes.
pub(super) const NEVER: u64 = u64::MAX;

/// Instants by their places, and the least of them.
///
/// A tournament: of each two the earlier one goes on, so that a change concerns as many comparisons as
/// the number of places has bits, and fewer where it does not win.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Earliest {
    /// The winner of all at place 1, those of the halves at 2 and 3, and so on; the instants last.
    rounds: Vec<Cell<u64>>,
}
fields!(Earliest { rounds });

impl Earliest {
    /// So many places, at which nothing ever comes.
    pub(super) fn new(places: usize) -> Self {
        Self { rounds: vec![Cell::new(NEVER); 2 * places.next_power_of_two()] }
    }

    /// Where the instants begin.
    fn places(&self) -> usize {
        self.rounds.len() / 2
    }

    /// The least instant.
    pub(super) fn least(&self) -> u64 {
        self.rounds[1].get()
    }

    /// A place at which [`Earliest::least`] is.
    pub(super) fn place(&self) -> usize {
        let least = self.least();
        let mut at = 1;
        while at < self.places() {
            at = 2 * at + usize::from(self.rounds[2 * at].get() != least);
        }
        at - self.places()
    }

    /// The instant at a place.
    pub(super) fn get(&self, place: usize) -> u64 {
        self.rounds[self.places() + place].get()
    }

    /// Replaces the instant at a place.
    pub(super) fn set(&mut self, place: usize, instant: u64, log: &mut impl Log) {
        let mut at = self.places() + place;
        let mut winner = instant;
        while self.rounds[at].get() != winner {
            self.rounds[at].set(log, winner);
            if at == 1 {
                return;
            }
            winner = winner.min(self.rounds[at ^ 1].get());
            at /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use meikyo_undo::Forget;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_earliest_is_that_of_a_list(
            places in 1..50_usize,
            changes in prop::collection::vec((any::<prop::sample::Index>(), 0..9_u64), 0..200),
        ) {
            let mut list = vec![NEVER; places];
            let mut earliest = Earliest::new(places);
            for (place, instant) in changes {
                let place = place.index(places);
                // The greatest of them stands for never.
                list[place] = if instant == 8 { NEVER } else { instant };
                earliest.set(place, list[place], &mut Forget);
                let least = *list.iter().min().unwrap();
                prop_assert_eq!(earliest.least(), least);
                prop_assert!(least == NEVER || list[earliest.place()] == least);
            }
        }
    }
}
