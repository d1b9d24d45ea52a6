//! Counter-based random numbers.
//!
//! The n-th number of an LP is a function of the seed, the LP and n, so taking draws back is setting a
//! counter back, and no stream depends on how the run is scheduled. The function is "squares"
//! (B. Widynski, "Squares: A Fast Counter-Based RNG", arXiv 2004.06278, the variant with 64 bits).

use meikyo_units::Nanos;

/// The key of the stream of `lp` under `seed`: odd, its bits well mixed.
#[inline]
pub(crate) fn stream(seed: u64, lp: u32) -> u64 {
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    // `mix` leaves 0 alone, and a key without bits gives numbers without randomness.
    let run = mix(seed.wrapping_add(GOLDEN));
    mix(run.wrapping_add((u64::from(lp) + 1).wrapping_mul(GOLDEN))) | 1
}

/// The `counter`-th number of the stream `key`, all 64 bits uniform.
#[inline]
pub(crate) fn draw(key: u64, counter: u64) -> u64 {
    let y = counter.wrapping_mul(key);
    let z = y.wrapping_add(key);
    let round = |x: u64, add: u64| x.wrapping_mul(x).wrapping_add(add).rotate_left(32);
    let x = round(round(round(y, y), z), y);
    let t = x.wrapping_mul(x).wrapping_add(z);
    t ^ (t.rotate_left(32).wrapping_mul(t.rotate_left(32)).wrapping_add(y) >> 32)
}

/// `bits` as a number in [0, 1) with 53 bits of resolution.
#[expect(clippy::cast_precision_loss, reason = "53 bits are exact in an `f64`")]
#[inline]
pub(crate) fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
}

/// `bits` as a whole number below `limit`, by the high half of a product; the bias is at most
/// `limit` / 2^64.
#[inline]
pub(crate) fn below(bits: u64, limit: u32) -> u32 {
    let product = u128::from(bits) * u128::from(limit);
    u32::try_from(product >> 64).expect("a product's high half is below the factor")
}

/// A span that is exponentially distributed around `mean`, from an even number in [0, 1).
#[inline]
pub(crate) fn exponential(uniform: f64, mean: Nanos) -> Nanos {
    Nanos::from_secs_f64(-libm::log(1.0 - uniform) * mean.as_secs_f64())
}

/// The finaliser of `SplitMix64` (Steele, Lea, Flood 2014).
#[inline]
pub(crate) fn mix(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of many streams, and many numbers of the first streams.
    fn samples() -> impl Iterator<Item = (u64, u32, u64)> {
        [0_u64, 1, 42, u64::MAX].into_iter().flat_map(|seed| {
            let wide = (0..4096_u32).flat_map(move |lp| (0..4_u64).map(move |n| (seed, lp, n)));
            let deep = (0..4_u32).flat_map(move |lp| (0..4096_u64).map(move |n| (seed, lp, n)));
            wide.chain(deep)
        })
    }

    #[test]
    fn every_bit_is_set_half_of_the_time_in_wide_and_in_deep_samples() {
        let mut set = [0_u32; 64];
        let mut count = 0_u32;
        for (seed, lp, counter) in samples() {
            let bits = draw(stream(seed, lp), counter);
            for (bit, set) in set.iter_mut().enumerate() {
                *set += u32::try_from(bits >> bit & 1).unwrap();
            }
            count += 1;
        }
        // A binomial count of `count` has a standard deviation of sqrt(count) / 2; five of them.
        let allowed = 2.5 * f64::from(count).sqrt();
        for (bit, set) in set.iter().enumerate() {
            let off = (f64::from(*set) - f64::from(count) / 2.0).abs();
            assert!(off < allowed, "bit {bit} is set {set} times of {count}");
        }
    }

    #[test]
    fn neighbouring_streams_and_counters_are_uncorrelated() {
        let correlation = |pairs: &[(f64, f64)]| {
            let n = f64::from(u32::try_from(pairs.len()).unwrap());
            // Uniform numbers have a variance of 1/12.
            pairs.iter().map(|(a, b)| (a - 0.5) * (b - 0.5)).sum::<f64>() / n * 12.0
        };
        let at = |lp, counter| unit(draw(stream(7, lp), counter));
        let streams: Vec<_> = (0..20_000).map(|lp| (at(lp, 0), at(lp + 1, 0))).collect();
        let counters: Vec<_> = (0..20_000).map(|n| (at(3, n), at(3, n + 1))).collect();
        for pairs in [streams, counters] {
            assert!(correlation(&pairs).abs() < 5.0 / 20_000_f64.sqrt());
        }
    }

    #[test]
    fn numbers_below_a_limit_are_even() {
        let mut counts = [0_u32; 7];
        for counter in 0..70_000 {
            counts[below(draw(stream(1, 1), counter), 7) as usize] += 1;
        }
        // Chi-square with 6 degrees of freedom: 22.5 is exceeded once in a thousand.
        let chi: f64 =
            counts.iter().map(|count| (f64::from(*count) - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(chi < 22.5, "{chi}: {counts:?}");
    }
}
