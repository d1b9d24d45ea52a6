//! How often values of which size were tallied, in bounded memory.
//!
//! A bucket takes the values whose sign, exponent and upper seven bits of the mantissa are the same: it
//! is at most 1/128 of its values wide. Counts are whole numbers, so that the histogram of a run does not
//! depend on the order in which its events were committed. Memory: 1 kB for each power of two between
//! the least and the greatest value.

/// Bits of a mantissa that a bucket takes together.
const SHIFT: u32 = 45;
/// Buckets in one power of two.
const OCTAVE: u32 = 128;
/// The bit of a value's sign.
const SIGN: u64 = 1 << 63;

/// How often values of which size came, to 1/128 of the value.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Histogram {
    /// Values that are 0, which are far from all others on a scale of exponents.
    zeros: u64,
    /// The number of the first bucket that is kept, the first of its octave.
    first: u32,
    /// From `first` on, whole octaves.
    counts: Vec<u64>,
    count: u64,
}

/// Some neighbouring buckets of a histogram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// The least value that belongs to it.
    pub from: f64,
    /// The value at which the next one begins; the same as `from` for values that are 0.
    pub to: f64,
    /// How many values came.
    pub count: u64,
}

/// The bucket of `value`: numbers follow each other as values do.
fn bucket(value: f64) -> u32 {
    let bits = value.to_bits();
    let ordered = if bits & SIGN == 0 { bits | SIGN } else { !bits };
    u32::try_from(ordered >> SHIFT).expect("19 bits are left")
}

/// The least value of `bucket`.
fn start(bucket: u32) -> f64 {
    let ordered = u64::from(bucket) << SHIFT;
    f64::from_bits(if ordered & SIGN == 0 { !ordered } else { ordered ^ SIGN })
}

impl Histogram {
    /// Counts `value`.
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        if value == 0.0 {
            self.zeros += 1;
            return;
        }
        let bucket = bucket(value);
        let place = self.place(bucket - bucket % OCTAVE) + (bucket % OCTAVE) as usize;
        self.counts[place] += 1;
    }

    /// Where the octave that begins with `bucket` stands; makes room for it.
    fn place(&mut self, bucket: u32) -> usize {
        if self.counts.is_empty() {
            self.first = bucket;
        }
        if bucket < self.first {
            let missing = (self.first - bucket) as usize;
            self.counts.splice(..0, std::iter::repeat_n(0, missing));
            self.first = bucket;
        }
        let place = (bucket - self.first) as usize;
        if place >= self.counts.len() {
            self.counts.resize(place + OCTAVE as usize, 0);
        }
        place
    }

    /// Counts what `other` has counted.
    pub fn join(&mut self, other: &Self) {
        self.count += other.count;
        self.zeros += other.zeros;
        for (octave, counts) in (0_u32..).zip(other.counts.chunks(OCTAVE as usize)) {
            let place = self.place(other.first + octave * OCTAVE);
            for (own, count) in self.counts[place..].iter_mut().zip(counts) {
                *own += count;
            }
        }
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The value that `share` of all, from 0 to 1, do not exceed (nearest rank): the middle of its
    /// bucket, which is off by at most 1/256. None without values.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let rank = rank(share, self.count)?;
        let mut below = 0;
        self.buckets().find_map(|(from, to, count)| {
            below += count;
            (below >= rank).then(|| if to.is_finite() { f64::midpoint(from, to) } else { from })
        })
    }

    /// At most `most` neighbouring bins of as many buckets each as that takes, a power of two, and one
    /// more for values that are 0. Bins without values in between are told too.
    pub fn bins(&self, most: usize) -> Vec<Bin> {
        let used = |count: &u64| *count > 0;
        let mut bins: Vec<Bin> = Vec::new();
        let ends = self.counts.iter().position(used).zip(self.counts.iter().rposition(used));
        if let Some((first, last)) = ends {
            let bins_of = |width: u32| self.number(last) / width - self.number(first) / width + 1;
            let mut width = 1;
            while bins_of(width) as usize > most.max(2) {
                width *= 2;
            }
            for (bucket, count) in (self.number(first)..).zip(&self.counts[first..=last]) {
                let from = start(bucket - bucket % width);
                match bins.last_mut().filter(|bin| bin.from.to_bits() == from.to_bits()) {
                    Some(bin) => bin.count += count,
                    None => {
                        let to = start(bucket - bucket % width + width);
                        bins.push(Bin { from, to, count: *count });
                    }
                }
            }
        }
        if self.zeros > 0 {
            let place = bins.partition_point(|bin| bin.from < 0.0);
            bins.insert(place, Bin { from: 0.0, to: 0.0, count: self.zeros });
        }
        bins
    }

    /// The number of the bucket that is kept at `place`.
    #[expect(clippy::cast_possible_truncation, reason = "a bucket's number has 19 bits")]
    fn number(&self, place: usize) -> u32 {
        self.first + place as u32
    }

    /// Where each bucket begins and ends, and how many values it has; zeros are one of their own.
    fn buckets(&self) -> impl Iterator<Item = (f64, f64, u64)> {
        let split = bucket(0.0).saturating_sub(self.first);
        let (negative, positive) = self.counts.split_at((split as usize).min(self.counts.len()));
        let bounds = |(at, count): (u32, &u64)| (start(at), start(at + 1), *count);
        let zeros = (self.zeros > 0).then_some((0.0, 0.0, self.zeros));
        let positive = (self.first + split..).zip(positive).map(bounds);
        (self.first..).zip(negative).map(bounds).chain(zeros).chain(positive)
    }
}

/// Which one of `count` values, in their order and counted from 1, `share` of all do not exceed.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rank among fewer than 2^53 values, which is not negative"
)]
fn rank(share: f64, count: u64) -> Option<u64> {
    (count > 0).then(|| ((share * count as f64).ceil() as u64).clamp(1, count))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[f64]) -> Histogram {
        let mut histogram = Histogram::default();
        values.iter().for_each(|value| histogram.add(*value));
        histogram
    }

    proptest! {
        #[test]
        fn quantiles_are_those_of_the_sorted_values(
            mut values in proptest::collection::vec(
                prop_oneof![Just(0.0), -1e9..1e9_f64, 1e-6..1e-3_f64], 1..200),
            share in 0.0..=1.0_f64,
        ) {
            let found = of(&values).quantile(share).unwrap();
            values.sort_by(f64::total_cmp);
            // The least value that at least `share` of all do not exceed.
            let count = values.len();
            let exact = *values.iter().enumerate().find(|(at, _)| {
                f64::from(u32::try_from(at + 1).unwrap())
                    >= share * f64::from(u32::try_from(count).unwrap())
            }).unwrap().1;
            prop_assert!((found - exact).abs() <= exact.abs() / 256.0, "{} {}", found, exact);
        }

        #[test]
        fn the_order_and_the_parts_of_values_do_not_matter(
            values in proptest::collection::vec(
                prop_oneof![Just(0.0), Just(-0.0), any::<f64>()], 0..60),
            cut in 0_usize..60,
        ) {
            let whole = of(&values);
            let (one, other) = values.split_at(cut.min(values.len()));
            let mut joined = of(other);
            joined.join(&of(one));
            prop_assert_eq!(&joined, &whole);
            let reversed: Vec<f64> = values.iter().rev().copied().collect();
            prop_assert_eq!(&of(&reversed), &whole);
            let binned: u64 = whole.bins(5).iter().map(|bin| bin.count).sum();
            prop_assert_eq!(binned, whole.count());
        }
    }

    #[test]
    fn bins_are_few_neighbours_and_hold_what_is_between_their_bounds() {
        let values: Vec<f64> = (0..1000).map(f64::from).collect();
        let histogram = of(&values);
        let bins = histogram.bins(16);
        assert!(bins.len() <= 17, "{bins:?}");
        assert_eq!((bins[0].from, bins[0].to, bins[0].count), (0.0, 0.0, 1));
        for pair in bins[1..].windows(2) {
            assert!((pair[0].to - pair[1].from).abs() < f64::EPSILON, "{pair:?}");
        }
        for bin in &bins[1..] {
            let inside = values.iter().filter(|value| (bin.from..bin.to).contains(*value));
            assert_eq!(inside.count(), usize::try_from(bin.count).unwrap(), "{bin:?}");
        }
        assert_eq!(Histogram::default().bins(16), []);
        assert_eq!(Histogram::default().quantile(0.5), None);
    }
}
