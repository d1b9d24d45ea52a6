//! Random numbers by counter: a pure function of (seed, stream, counter), so that any step of any
//! party can be computed again without what came before it.

use meikyo_units::Nanos;

/// The finaliser of `SplitMix64` (Steele, Lea, Flood: "Fast splittable pseudorandom number
/// generators", 2014), which mixes every input bit into every output bit.
const fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// The key of stream `stream` under `seed`: whatever is drawn from it is independent of every other
/// stream.
pub const fn stream_key(seed: u64, stream: u64) -> u64 {
    mix(mix(seed.wrapping_add(0x9E37_79B9_7F4A_7C15)) ^ stream.wrapping_mul(0xD1B5_4A32_D192_ED03))
}

/// 64 random bits: number `counter` of the stream with this key.
#[inline]
pub const fn draw(key: u64, counter: u64) -> u64 {
    mix(key.wrapping_add(counter.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
}

/// Scales 64 random bits to a whole number below `bound`; 0 when `bound` is 0.
///
/// The bias is below `bound` / 2^64.
#[inline]
pub const fn below(bits: u64, bound: u64) -> u64 {
    widening_high(bits, bound)
}

/// The upper 64 bits of the product.
const fn widening_high(a: u64, b: u64) -> u64 {
    ((a as u128 * b as u128) >> 64) as u64
}

/// Random numbers one after another, all of one seed.
#[derive(Debug, Clone)]
pub struct Random {
    key: u64,
    drawn: u64,
}

impl Random {
    /// The numbers of a seed.
    pub const fn new(seed: u64) -> Self {
        Self::of_stream(seed, 0)
    }

    /// The numbers of one of many streams of a seed, each independent of the others.
    pub const fn of_stream(seed: u64, stream: u64) -> Self {
        Self { key: stream_key(seed, stream), drawn: 0 }
    }

    /// 64 random bits.
    pub const fn bits(&mut self) -> u64 {
        self.drawn += 1;
        draw(self.key, self.drawn)
    }

    /// A number below `bound`; 0 when that is 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        below(self.bits(), bound)
    }

    /// A place in something of `len` elements; 0 when it is empty.
    ///
    /// # Panics
    /// Never: a length fits 64 bits, and what is below it fits a length.
    pub fn index(&mut self, len: usize) -> usize {
        let bound = u64::try_from(len).expect("lengths fit 64 bits");
        usize::try_from(self.below(bound)).expect("it is below a length")
    }

    /// Whether something happens that happens once in `times` on average; never when that is 0.
    pub const fn once_in(&mut self, times: u64) -> bool {
        times > 0 && self.below(times) == 0
    }

    /// A span below `bound`, evenly.
    pub const fn span(&mut self, bound: Nanos) -> Nanos {
        Nanos::new(self.below(bound.get()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_the_same_numbers_and_streams_differ() {
        let drawn = |seed, stream| {
            let mut random = Random::of_stream(seed, stream);
            (0..20).map(|_| random.bits()).collect::<Vec<_>>()
        };
        assert_eq!(drawn(3, 1), drawn(3, 1));
        assert!(drawn(3, 1) != drawn(3, 2) && drawn(3, 1) != drawn(4, 1));
        let mut random = Random::new(9);
        let times = (0..100_000).filter(|_| random.once_in(10)).count();
        // 10,000 with a standard deviation of 95.
        assert!((9_400..10_600).contains(&times), "{times}");
        assert!((0..1_000).all(|_| random.index(7) < 7 && !random.once_in(0)));
    }

    #[test]
    fn streams_and_counters_differ_and_repeat() {
        let drawn = |seed, stream, counter| draw(stream_key(seed, stream), counter);
        assert_eq!(drawn(7, 3, 11), drawn(7, 3, 11));
        let all: std::collections::BTreeSet<u64> = (0..20)
            .flat_map(|seed| {
                (0..20).flat_map(move |stream| (0..20).map(move |n| (seed, stream, n)))
            })
            .map(|(seed, stream, counter)| drawn(seed, stream, counter))
            .collect();
        assert_eq!(all.len(), 8_000);
    }

    #[test]
    fn draws_fill_the_range_evenly() {
        let key = stream_key(1, 2);
        let mut bins = [0_u32; 16];
        for counter in 0..160_000 {
            bins[usize::try_from(below(draw(key, counter), 16)).unwrap()] += 1;
        }
        // 10,000 each with a standard deviation of 97; six of them is never exceeded by chance.
        assert!(bins.iter().all(|&count| (9_400..10_600).contains(&count)), "{bins:?}");
    }
}
