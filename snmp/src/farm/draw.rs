//! Random numbers by counter: a pure function of (seed, stream, counter), so that any step of any
//! agent can be computed again without what came before it.

/// The finaliser of `SplitMix64` (Steele, Lea, Flood: "Fast splittable pseudorandom number
/// generators", 2014), which mixes every input bit into every output bit.
const fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// The key of stream `stream` under `seed`: whatever is drawn from it is independent of every other
/// stream.
pub(crate) const fn stream_key(seed: u64, stream: u64) -> u64 {
    mix(mix(seed.wrapping_add(0x9E37_79B9_7F4A_7C15)) ^ stream.wrapping_mul(0xD1B5_4A32_D192_ED03))
}

/// 64 random bits: number `counter` of the stream with this key.
#[inline]
pub(crate) const fn draw(key: u64, counter: u64) -> u64 {
    mix(key.wrapping_add(counter.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
}

/// Scales 64 random bits to a whole number below `bound`; 0 when `bound` is 0.
///
/// The bias is below `bound` / 2^64.
#[inline]
pub(crate) fn below(bits: u64, bound: u64) -> u64 {
    u64::try_from((u128::from(bits) * u128::from(bound)) >> 64).expect("64 bits are left")
}

#[cfg(test)]
mod tests {
    use super::*;

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
