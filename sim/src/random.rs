//! Counter-based random numbers.
//!
//! The n-th number of an LP is a function of the seed, the LP and n, so taking draws back is setting a
//! counter back, and no stream depends on how the run is scheduled. The function is "squares"
//! (B. Widynski, "Squares: A Fast Counter-Based RNG", arXiv 2004.06278, the variant with 64 bits).

/// The key of the stream of `lp` under `seed`: odd, its bits well mixed.
pub(crate) fn stream(seed: u64, lp: u32) -> u64 {
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    // `mix` leaves 0 alone, and a key without bits gives numbers without randomness.
    let run = mix(seed.wrapping_add(GOLDEN));
    mix(run.wrapping_add((u64::from(lp) + 1).wrapping_mul(GOLDEN))) | 1
}

/// The `counter`-th number of the stream `key`, all 64 bits uniform.
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
pub(crate) fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
}

/// `bits` as a whole number below `limit`, by the high half of a product; the bias is at most
/// `limit` / 2^64.
pub(crate) fn below(bits: u64, limit: u32) -> u32 {
    let product = u128::from(bits) * u128::from(limit);
    u32::try_from(product >> 64).expect("a product's high half is below the factor")
}

/// The finaliser of `SplitMix64` (Steele, Lea, Flood 2014).
pub(crate) fn mix(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}
