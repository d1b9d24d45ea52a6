//! What lanes carry over time: octets in spans that become longer with the run.

use meikyo_undo::{Cell, List, Log, fields};
use meikyo_units::{Bytes, Nanos};

/// Spans of a run at most.
const SPANS_MAX: u64 = 256;
/// The first spans are 2^16 ns long, a few frames at 1 Gbit/s.
const FIRST_SHIFT: u32 = 16;

/// What one lane carries.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Course {
    /// A span is 2^shift ns long.
    shift: Cell<u32>,
    /// Octets of each span, up to the last one that has any.
    spans: List<u64>,
}
fields!(Course { shift, spans });

impl Default for Course {
    fn default() -> Self {
        Self { shift: Cell::new(FIRST_SHIFT), spans: List::default() }
    }
}

impl Course {
    /// Adds octets that are carried at an instant.
    pub(crate) fn add(&mut self, at: u64, octets: u64, log: &mut impl Log) {
        while at >> self.shift.get() >= SPANS_MAX {
            self.double(log);
        }
        let place = usize::try_from(at >> self.shift.get()).expect("spans are few");
        while self.spans.as_slice().len() <= place {
            self.spans.push(log, 0);
        }
        let sum = self.spans.as_slice()[place] + octets;
        self.spans.set(log, place, sum);
    }

    /// Adds octets that are carried evenly from one instant until another one.
    pub(crate) fn add_evenly(&mut self, [from, until]: [u64; 2], octets: u64, log: &mut impl Log) {
        // So that no span that is added to becomes longer on the way.
        self.add(until.max(from + 1) - 1, 0, log);
        let shift = self.shift.get();
        let (mut at, mut told) = (from, 0);
        while at < until {
            let next = (((at >> shift) + 1) << shift).min(until);
            let share = u128::from(octets) * u128::from(next - from) / u128::from(until - from);
            let share = u64::try_from(share).expect("a part of a number of 64 bits");
            self.add(at, share - told, log);
            (at, told) = (next, share);
        }
    }

    fn double(&mut self, log: &mut impl Log) {
        let merged: Vec<u64> =
            self.spans.as_slice().chunks(2).map(|pair| pair.iter().sum()).collect();
        while self.spans.as_slice().len() > merged.len() {
            self.spans.pop(log);
        }
        for (place, sum) in merged.into_iter().enumerate() {
            self.spans.set(log, place, sum);
        }
        self.shift.add(log, 1);
    }
}

/// What lanes have carried until each of some instants, the last of which is the end of the run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Courses {
    /// The instants, counted from the beginning.
    pub until: Vec<Nanos>,
    /// For each lane, what it has carried until each of them.
    pub carried: Vec<Vec<Bytes>>,
}

impl Courses {
    /// Those of all lanes of a run that took so long. What came after its end counts at its end.
    pub(crate) fn new(courses: Vec<Course>, time: Nanos) -> Self {
        let shift = courses.iter().map(|course| course.shift.get()).max();
        let Some(mut shift) = shift.filter(|_| time > Nanos::ZERO) else { return Self::default() };
        // Nothing may be carried for long at the end.
        while (time.get() - 1) >> shift >= SPANS_MAX {
            shift += 1;
        }
        let inner = (time.get() - 1) >> shift;
        let ends = (1..=inner).map(|span| Nanos::new(span << shift));
        let until: Vec<Nanos> = ends.chain([time]).collect();
        let carried = courses.into_iter().map(|mut course| {
            while course.shift.get() < shift {
                course.double(&mut meikyo_undo::Forget);
            }
            let spans = course.spans.as_slice();
            let sums = spans.iter().scan(0_u64, |sum, octets| {
                *sum += octets;
                Some(Bytes::new(*sum))
            });
            let total = Bytes::new(spans.iter().sum());
            let sums = sums.chain(std::iter::repeat(total)).take(until.len() - 1);
            sums.chain([total]).collect::<Vec<Bytes>>()
        });
        Self { carried: carried.collect(), until }
    }

    /// Those of a run that is longer and carries more in the same proportion.
    pub(crate) fn stretched(self, longer: impl Fn(u64) -> u64) -> Self {
        let until = self.until.into_iter().map(|end| Nanos::new(longer(end.get()))).collect();
        let more = |lane: Vec<Bytes>| {
            lane.into_iter().map(|octets| Bytes::new(longer(octets.get()))).collect()
        };
        Self { until, carried: self.carried.into_iter().map(more).collect() }
    }
}

#[cfg(test)]
mod tests {
    use meikyo_undo::Forget;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_course_is_what_was_added_until_then(
            added in prop::collection::vec((0..40_000_000_u64, 0..5_000_u64), 1..300),
            scale in 1..2_000_u64,
            after in prop_oneof![Just(0_u64), 0..u64::MAX / 4],
        ) {
            let mut course = Course::default();
            for &(at, octets) in &added {
                course.add(at * scale, octets, &mut Forget);
            }
            let time = added.iter().map(|(at, _)| at * scale + 1).max().unwrap() + after;
            let courses = Courses::new(vec![course, Course::default()], Nanos::new(time));
            prop_assert_eq!(courses.until.last(), Some(&Nanos::new(time)));
            prop_assert!(courses.until.len() <= 256 && courses.until.is_sorted());
            for (until, carried) in courses.until.iter().zip(&courses.carried[0]) {
                let before = added.iter().filter(|(at, _)| at * scale < until.get());
                prop_assert_eq!(carried.get(), before.map(|(_, octets)| octets).sum::<u64>());
            }
            prop_assert!(courses.carried[1].iter().all(|carried| carried.get() == 0));
        }

        #[test]
        fn what_is_carried_evenly_is_in_proportion_to_time(
            from in 0..1_000_000_u64,
            length in 1..50_000_000_u64,
            octets in 0..1_000_000_u64,
        ) {
            let mut course = Course::default();
            course.add_evenly([from, from + length], octets, &mut Forget);
            let courses = Courses::new(vec![course], Nanos::new(from + length));
            for (until, carried) in courses.until.iter().zip(&courses.carried[0]) {
                let until = until.get().saturating_sub(from);
                prop_assert_eq!(carried.get(), octets * until / length);
            }
        }
    }
}
