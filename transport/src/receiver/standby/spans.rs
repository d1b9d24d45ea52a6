//! The time that the blocks of one collector are of.

/// Spans that are told apart; of more the earliest is given up, see [`Spans::add`].
const SPANS_MAX: usize = 256;

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
#[derive(Debug, Clone, Default)]
pub(super) struct Spans(Vec<Span>);

impl Spans {
    /// Notes a block that was taken. Returns the end of a span that is given up to keep the limit.
    pub(super) fn add(
        &mut self,
        (boot, number): (u64, u64),
        (from, until): (i64, i64),
    ) -> Option<i64> {
        let mut new = Span { boot, first: number, last: number, from, until };
        self.0.retain(|span| {
            let is_next = span.boot == boot
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
            return None;
        }
        let earliest = (0..self.0.len()).min_by_key(|&at| self.0[at].until)?;
        Some(self.0.swap_remove(earliest).until)
    }

    /// The first part of a span of time that no block is of, as far as it goes in both directions; `None`
    /// when there is none.
    pub(super) fn hole_in(&self, (from, until): (i64, i64)) -> Option<(i64, i64)> {
        let mut at = from;
        while let Some(span) = self.0.iter().find(|span| span.from <= at && at <= span.until) {
            if span.until >= until {
                return None;
            }
            at = span.until + 1;
        }
        let before = self.0.iter().filter(|span| span.until < at).map(|span| span.until).max();
        let behind = self.0.iter().filter(|span| span.from > at).map(|span| span.from).min();
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
            assert_eq!(spans.add((7, number), (at, at + 1)), None);
        }
        assert_eq!(spans.0.len(), 1);
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
    fn of_too_many_spans_the_earliest_is_given_up() {
        let mut spans = Spans::default();
        for number in 0..SPANS_MAX as u64 {
            let at = number.cast_signed() * 10;
            assert_eq!(spans.add((1, number * 2 + 1), (at, at)), None);
        }
        assert_eq!(spans.add((1, 10_000), (99_999, 99_999)), Some(0));
    }
}
