//! What a run completes, counted while it runs: rates and distributions without a list of everything.

use meikyo_sim::{Line, LineContent, Observer, Progress};
use meikyo_units::SimTime;

/// Instants of completions, thinned out evenly when there are many.
///
/// At most [`Completions::KEPT_MAX`] instants are kept: each `stride`-th, where the stride doubles as
/// they become too many. A rate between two kept instants is exact; only where the window begins and
/// ends is it off, by at most two strides, 1/16,384 of all completions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Completions {
    stride: u64,
    count: u64,
    kept: Vec<SimTime>,
}

impl Default for Completions {
    fn default() -> Self {
        Self { stride: 1, count: 0, kept: Vec::new() }
    }
}

impl Completions {
    /// The most instants that are kept, an even number.
    pub(crate) const KEPT_MAX: usize = 1 << 16;

    /// Counts a completion at `instant`, not before the one counted last.
    pub(crate) fn push(&mut self, instant: SimTime) {
        if self.count.is_multiple_of(self.stride) {
            if self.kept.len() == Self::KEPT_MAX {
                self.thin_out();
            }
            if self.count.is_multiple_of(self.stride) {
                self.kept.push(instant);
            }
        }
        self.count += 1;
    }

    fn thin_out(&mut self) {
        let mut at = 0_usize;
        self.kept.retain(|_| {
            at += 1;
            at % 2 == 1
        });
        self.stride *= 2;
    }

    /// Completions a second over the middle 60 % of all, which leaves out how a run begins and how
    /// its clients end one after another; none if these lie in one instant or are fewer than two.
    pub(crate) fn middle_per_s(&self) -> Option<f64> {
        let first = (self.count / 5).div_ceil(self.stride);
        let last = (self.count - self.count / 5).checked_sub(1)? / self.stride;
        let at = |place: u64| self.kept.get(usize::try_from(place).ok()?);
        let span = at(last)?.since(*at(first)?).as_secs_f64();
        let completed = last.checked_sub(first)? * self.stride;
        (span > 0.0).then(|| count_f64(completed) / span)
    }
}

/// How often values of which size came, to 1/128 of the value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Distribution {
    /// By the exponent and the upper seven bits of the mantissa.
    buckets: Vec<u64>,
    count: u64,
}

impl Distribution {
    /// Bits of a mantissa that a bucket takes together.
    const SHIFT: u32 = 45;
    /// The first bucket holds everything below this.
    const LEAST: f64 = 1e-3;
    /// The last bucket holds everything above this.
    const GREATEST: f64 = 1e15;

    /// Counts `value`; negative ones count as 0.
    pub(crate) fn push(&mut self, value: f64) {
        let bits = value.clamp(Self::LEAST, Self::GREATEST).to_bits() >> Self::SHIFT;
        let bucket = usize::try_from(bits - (Self::LEAST.to_bits() >> Self::SHIFT))
            .expect("buckets are few");
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        self.count += 1;
    }

    /// The value below which `share` of all are: the upper end of its bucket, so at most 1/128 too
    /// much. None without values.
    pub(crate) fn quantile(&self, share: f64) -> Option<f64> {
        let wanted = share * count_f64(self.count);
        let mut below = 0;
        let bucket = self.buckets.iter().position(|count| {
            below += count;
            below > 0 && count_f64(below) >= wanted
        })?;
        let first = Self::LEAST.to_bits() >> Self::SHIFT;
        let next = first + u64::try_from(bucket).expect("buckets are few") + 1;
        Some(f64::from_bits(next << Self::SHIFT))
    }
}

/// A count as a number with a fraction, to 15 digits.
#[expect(clippy::cast_precision_loss, reason = "the doc states the rounding")]
pub(crate) fn count_f64(count: u64) -> f64 {
    count as f64
}

/// Counts the values of series on their way to another observer.
pub(crate) struct Counting<'a> {
    inner: &'a mut dyn Observer,
    /// Every completion.
    pub(crate) all: Completions,
    /// The completions of each series.
    pub(crate) by_series: Vec<Completions>,
    /// All values.
    pub(crate) values: Distribution,
}

impl<'a> Counting<'a> {
    /// Counts the values of the first `series` series of a model.
    pub(crate) fn new(inner: &'a mut dyn Observer, series: usize) -> Self {
        Self {
            inner,
            all: Completions::default(),
            by_series: vec![Completions::default(); series],
            values: Distribution::default(),
        }
    }
}

impl Observer for Counting<'_> {
    fn lines(&mut self, lines: &[Line]) {
        for line in lines {
            if let LineContent::Value { series, value } = &line.content
                && let Some(completions) = self.by_series.get_mut(series.index())
            {
                completions.push(line.key.time);
                self.all.push(line.key.time);
                self.values.push(*value);
            }
        }
        self.inner.lines(lines);
    }

    fn progress(&mut self, progress: &Progress) {
        self.inner.progress(progress);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `count` completions, 10 ns apart but for the first and the last tenth.
    fn completions(count: u64) -> Completions {
        let mut completions = Completions::default();
        let mut instant = 0;
        for at in 0..count {
            instant += if (count / 10..count - count / 10).contains(&at) { 10 } else { 1000 };
            completions.push(SimTime::from_nanos(instant));
        }
        completions
    }

    #[test]
    fn the_middle_is_exact_and_knows_nothing_of_the_ends() {
        for count in [10, 101, 65_536, 65_537, 1_000_003] {
            let completions = completions(count);
            assert_eq!(completions.count, count);
            assert!(completions.kept.len() <= Completions::KEPT_MAX);
            let rate = completions.middle_per_s().unwrap();
            assert!((rate - 1e8).abs() < 1.0, "{count}: {rate}");
        }
        assert_eq!(completions(0).middle_per_s(), None);
        assert_eq!(completions(1).middle_per_s(), None);
    }

    #[test]
    fn quantiles_are_within_their_bucket() {
        let mut distribution = Distribution::default();
        assert_eq!(distribution.quantile(0.5), None);
        for value in 1..=1000 {
            distribution.push(f64::from(value));
        }
        for (share, value) in [(0.0, 1.0), (0.5, 500.0), (0.99, 990.0), (1.0, 1000.0)] {
            let found = distribution.quantile(share).unwrap();
            assert!((value..=value * (1.0 + 1.0 / 64.0)).contains(&found), "{share}: {found}");
        }
        distribution.push(-1.0);
        distribution.push(f64::INFINITY);
        distribution.push(0.0);
    }
}
