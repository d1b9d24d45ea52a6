//! The time that the blocks of one collector are of.

use std::collections::VecDeque;

/// Spans that are told apart; of more the earliest is given up, see [`Spans::add`].
const SPANS_MAX: usize = 256;

/// Blocks that can be taken back: the newest ones.
const RECENT_MAX: usize = 4_096;

/// Blocks whose numbers follow each other: what one life of a collector measured without a hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    boot: u64,
    first: u64,
    last: u64,
    from: i64,
    until: i64,
}

/// The spans of one collector.
#[derive(Debug, Clone)]
pub(super) struct Spans {
    all: Joined,
    /// Those of all blocks but the newest, and these one by one.
    older: Joined,
    recent: VecDeque<Span>,
    /// The end of the latest span that was given up.
    given_up: i64,
}

impl Default for Spans {
    fn default() -> Self {
        let [all, older] = [Joined::default(), Joined::default()];
        Self { all, older, recent: VecDeque::new(), given_up: i64::MIN }
    }
}

/// Spans none of which can be joined with another one.
#[derive(Debug, Clone, Default)]
struct Joined(Vec<Span>);

impl Joined {
    /// Adds a span, and gives up the earliest one where they are too many; the end of that one, else `given_up`.
    fn add(&mut self, mut new: Span, given_up: i64) -> i64 {
        self.0.retain(|span| {
            let is_next = span.boot == new.boot
                && (span.last.checked_add(1) == Some(new.first)
                    || new.last.checked_add(1) == Some(span.first));
            if is_next {
                new.first = new.first.min(span.first);
                new.last = new.last.max(span.last);
                new.from = new.from.min(span.from);
                new.until = new.until.max(span.until);
            }
            !is_next
        });
        self.0.push(new);
        if self.0.len() <= SPANS_MAX {
            return given_up;
        }
        let earliest = (0..self.0.len()).min_by_key(|&at| self.0[at].until);
        earliest.map_or(given_up, |at| self.0.swap_remove(at).until.max(given_up))
    }
}

impl Spans {
    /// Notes a block that was taken.
    pub(super) fn add(&mut self, (boot, number): (u64, u64), (from, until): (i64, i64)) {
        let new = Span { boot, first: number, last: number, from, until };
        self.recent.push_back(new);
        if self.recent.len() > RECENT_MAX
            && let Some(oldest) = self.recent.pop_front()
        {
            self.given_up = self.older.add(oldest, self.given_up);
        }
        self.given_up = self.all.add(new, self.given_up);
    }

    /// The end of the latest span that was given up to keep the limit: until then nothing is known.
    pub(super) fn given_up(&self) -> i64 {
        self.given_up
    }

    /// Takes back that a block was taken; whether it is one of the newest, which alone can be.
    pub(super) fn take_back(&mut self, (boot, number): (u64, u64)) -> bool {
        let before = self.recent.len();
        self.recent.retain(|span| (span.boot, span.first) != (boot, number));
        let is_taken_back = self.recent.len() < before;
        if is_taken_back {
            self.all = self.older.clone();
            for span in &self.recent {
                self.given_up = self.all.add(*span, self.given_up);
            }
        }
        is_taken_back
    }

    /// The first part of a span of time that no block is of, as far as it goes in both directions; `None`
    /// when there is none.
    pub(super) fn hole_in(&self, (from, until): (i64, i64)) -> Option<(i64, i64)> {
        let mut at = from;
        while let Some(span) = self.all.0.iter().find(|span| span.from <= at && at <= span.until) {
            if span.until >= until {
                return None;
            }
            at = span.until + 1;
        }
        let spans = &self.all.0;
        let before = spans.iter().filter(|span| span.until < at).map(|span| span.until).max();
        let behind = spans.iter().filter(|span| span.from > at).map(|span| span.from).min();
        Some((before.map_or(i64::MIN, |end| end + 1), behind.map_or(i64::MAX, |begin| begin - 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_in_their_order_are_one_span_whatever_order_they_come_in() {
        let mut spans = Spans::default();
        for number in [1, 2, 5, 4, 3] {
            let at = i64::try_from(number).unwrap() * 10;
            spans.add((7, number), (at, at + 1));
        }
        assert_eq!(spans.all.0.len(), 1);
        assert_eq!(spans.hole_in((10, 51)), None);
        assert_eq!(spans.hole_in((5, 20)), Some((i64::MIN, 9)));
        assert_eq!(spans.hole_in((30, 60)), Some((52, i64::MAX)));
    }

    #[test]
    fn a_missing_number_is_a_hole_between_spans() {
        let mut spans = Spans::default();
        for number in [1, 3] {
            spans.add((7, number), (number.cast_signed() * 10, number.cast_signed() * 10 + 5));
        }
        // Another life, whose numbers say nothing about those of the first.
        spans.add((8, 4), (60, 70));
        assert_eq!(spans.hole_in((18, 19)), Some((16, 29)));
        assert_eq!(spans.hole_in((30, 64)), Some((36, 59)));
        assert_eq!(spans.hole_in((61, 70)), None);
    }

    #[test]
    fn a_block_that_is_taken_back_leaves_the_hole_that_it_would_have_left() {
        for lost in 1..=8 {
            let (mut all, mut others) = (Spans::default(), Spans::default());
            for number in 1_u64..=8 {
                let at = number.cast_signed() * 10;
                all.add((7, number), (at, at + 5));
                if number != lost {
                    others.add((7, number), (at, at + 5));
                }
            }
            assert!(!all.take_back((7, 99)) && !all.take_back((8, lost)));
            assert_eq!(all.hole_in((10, 85)), None);
            assert!(all.take_back((7, lost)));
            for at in 0..100 {
                assert_eq!(all.hole_in((at, at + 3)), others.hole_in((at, at + 3)), "{lost} {at}");
            }
        }
    }

    #[test]
    fn an_old_block_is_not_taken_back() {
        let mut spans = Spans::default();
        for number in 1..=RECENT_MAX as u64 + 1 {
            spans.add((7, number), (number.cast_signed(), number.cast_signed()));
        }
        assert!(!spans.take_back((7, 1)));
        assert_eq!(spans.hole_in((1, 1)), None);
        assert!(spans.take_back((7, 2)));
        assert_eq!(spans.hole_in((2, 2)), Some((2, 2)));
        assert_eq!(spans.hole_in((1, 1)), None);
    }

    #[test]
    fn of_too_many_spans_the_earliest_is_given_up() {
        let mut spans = Spans::default();
        for number in 0..SPANS_MAX as u64 {
            let at = number.cast_signed() * 10;
            spans.add((1, number * 2 + 1), (at, at));
        }
        assert_eq!(spans.given_up(), i64::MIN);
        spans.add((1, 10_000), (99_999, 99_999));
        assert_eq!(spans.given_up(), 0);
    }
}
