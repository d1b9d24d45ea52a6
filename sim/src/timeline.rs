//! A statistic over simulated time: how many values were tallied when, and their mean.
//!
//! Spans are as long as a run needs them: they double when time goes beyond the last one. Sums are kept
//! in fixed point, whose addition does not depend on the order: what comes out is the same however the
//! run was divided.

use meikyo_units::Nanos;

/// Spans at most.
const SPANS_MAX: usize = 1024;
/// What a sum counts in: 2^-40.
const ONE: f64 = 1_099_511_627_776.0;

/// Counts and sums of the values of one statistic, by when they were tallied.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Timeline {
    /// A span is 2^shift ns long.
    shift: u32,
    spans: Vec<Span>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Span {
    count: u64,
    sum: i128,
}

impl Span {
    fn and(self, other: Self) -> Self {
        Self { count: self.count + other.count, sum: self.sum.saturating_add(other.sum) }
    }
}

impl Timeline {
    /// Adds a value that was tallied `at` ns. What is not finite has no place in a mean and is left out.
    pub(crate) fn add(&mut self, at: u64, value: f64) {
        if value.is_finite() {
            self.insert(at, Span { count: 1, sum: fixed(value) });
        }
    }

    fn insert(&mut self, at: u64, span: Span) {
        while at >> self.shift >= SPANS_MAX as u64 {
            self.double();
        }
        let place = usize::try_from(at >> self.shift).expect("spans are few");
        if place >= self.spans.len() {
            self.spans.resize(place + 1, Span::default());
        }
        self.spans[place] = self.spans[place].and(span);
    }

    fn double(&mut self) {
        self.shift += 1;
        let pair = |pair: &[Span]| pair.iter().copied().fold(Span::default(), Span::and);
        self.spans = self.spans.chunks(2).map(pair).collect();
    }

    /// Adds what `other` has added.
    pub fn join(&mut self, other: &Self) {
        while self.shift < other.shift {
            self.double();
        }
        for (span, place) in other.spans.iter().zip(0_u64..).filter(|(span, _)| span.count > 0) {
            self.insert(place << other.shift, *span);
        }
    }

    /// At most `most` spans of the same length, each with the mean of its values, none without any; and
    /// that length.
    pub fn means(&self, most: usize) -> (Nanos, Vec<Option<f64>>) {
        let mut rough = self.clone();
        while rough.spans.len() > most.max(1) {
            rough.double();
        }
        let means = rough.spans.iter().map(|span| mean(*span)).collect();
        (Nanos::new(1 << rough.shift), means)
    }
}

/// Rounds to 2^-40.
#[expect(clippy::cast_possible_truncation, reason = "saturates, far beyond what is tallied")]
fn fixed(value: f64) -> i128 {
    (value * ONE).round() as i128
}

#[expect(clippy::cast_precision_loss, reason = "a mean, to 15 digits")]
fn mean(span: Span) -> Option<f64> {
    (span.count > 0).then(|| span.sum as f64 / ONE / span.count as f64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_order_and_the_parts_of_values_do_not_matter(
            values in proptest::collection::vec((0_u64..1 << 40, -1e6..1e6_f64), 0..200),
            cut in 0_usize..200,
        ) {
            let of = |values: &mut dyn Iterator<Item = &(u64, f64)>| {
                let mut timeline = Timeline::default();
                values.for_each(|(at, value)| timeline.add(*at, *value));
                timeline
            };
            let whole = of(&mut values.iter());
            prop_assert_eq!(&of(&mut values.iter().rev()), &whole);
            let (one, other) = values.split_at(cut.min(values.len()));
            let mut joined = of(&mut other.iter());
            joined.join(&of(&mut one.iter()));
            prop_assert_eq!(&joined, &whole);
        }
    }

    #[test]
    fn means_are_those_of_the_values_in_each_span() {
        let mut timeline = Timeline::default();
        for at in 0..8000_u32 {
            timeline.add(u64::from(at), if at < 4000 { 1.0 } else { 3.0 });
        }
        timeline.add(0, f64::NAN);
        let (width, means) = timeline.means(8);
        assert_eq!(width, Nanos::new(1024));
        let means: Vec<f64> = means.into_iter().map(|mean| mean.unwrap()).collect();
        assert_eq!(means[..3], [1.0; 3]);
        // 928 of the 1,024 values from 3,072 on are 1.
        assert!((means[3] - (928.0 + 3.0 * 96.0) / 1024.0).abs() < 1e-9);
        assert_eq!(means[4..], [3.0; 4]);
        let mut sparse = Timeline::default();
        sparse.add(0, 1.0);
        sparse.add(2000, 5.0);
        assert_eq!(sparse.means(4).1, [Some(1.0), None, None, Some(5.0)]);
    }
}
