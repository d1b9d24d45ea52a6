//! The encoding `DELTA_BINARY_PACKED` of Parquet.
//!
//! See "Delta Encoding" in <https://parquet.apache.org/docs/file-format/data-pages/encodings/>.
//! Differences are taken block by block, less the least of the block, and packed in mini blocks,
//! each as wide as its greatest. Arithmetic wraps, as the format has it, so that unsigned integers
//! are encoded by their bits.

/// Values of a block.
const BLOCK: usize = 128;
/// Values of a mini block: counters of one series have one width for long, and others begin within
/// a block.
const MINI: usize = 32;
const MINIS: usize = BLOCK / MINI;

/// Appends `values` to `octets`.
pub(super) fn encode(values: &[i64], octets: &mut Vec<u8>) {
    varint(BLOCK as u64, octets);
    varint(MINIS as u64, octets);
    varint(values.len() as u64, octets);
    varint(zigzag(values.first().copied().unwrap_or(0)), octets);
    let mut before = values;
    for next in values.get(1..).unwrap_or_default().chunks(BLOCK) {
        block(&before[..next.len()], next, octets);
        before = &before[next.len()..];
    }
}

/// Appends a block: the differences of `values` to those `before` each of them.
fn block(before: &[i64], values: &[i64], octets: &mut Vec<u8>) {
    let mut deltas = [0_i64; BLOCK];
    let mut least = i64::MAX;
    for ((delta, value), before) in deltas.iter_mut().zip(values).zip(before) {
        *delta = value.wrapping_sub(*before);
        least = least.min(*delta);
    }
    varint(zigzag(least), octets);
    let widths_at = octets.len();
    octets.extend_from_slice(&[0; MINIS]);
    for (mini, deltas) in deltas[..values.len()].chunks(MINI).enumerate() {
        let mut packed = [0_u64; MINI];
        let mut all = 0;
        for (packed, delta) in packed.iter_mut().zip(deltas) {
            *packed = delta.wrapping_sub(least).cast_unsigned();
            all |= *packed;
        }
        let width = u64::BITS - all.leading_zeros();
        octets[widths_at + mini] = width.to_le_bytes()[0];
        pack(&packed, width, octets);
    }
}

/// Appends values of `width` bits, one behind the other.
fn pack(values: &[u64; MINI], width: u32, octets: &mut Vec<u8>) {
    let (mut word, mut filled) = (0_u64, 0);
    let mut words = [0_u64; MINI];
    let mut count = 0;
    for value in values {
        word |= value << filled;
        filled += width;
        if filled >= u64::BITS {
            words[count] = word;
            count += 1;
            filled -= u64::BITS;
            // What did not fit; nothing, if the value ended with the word.
            word = value.checked_shr(width - filled).unwrap_or(0);
        }
    }
    for word in &words[..count] {
        octets.extend_from_slice(&word.to_le_bytes());
    }
    octets.extend_from_slice(&word.to_le_bytes()[..filled.div_ceil(8) as usize]);
}

/// Signed numbers as unsigned ones, small where they are near zero.
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// Appends a number as unsigned LEB128.
fn varint(mut value: u64, octets: &mut Vec<u8>) {
    while value >= 0x80 {
        octets.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    octets.push(value.to_le_bytes()[0]);
}

#[cfg(test)]
mod tests {
    use super::encode;

    fn encoded(values: &[i64]) -> Vec<u8> {
        let mut octets = Vec::new();
        encode(values, &mut octets);
        octets
    }

    #[test]
    fn the_examples_of_the_format() {
        // Blocks of 128 in 4 mini blocks, 5 values, the first is 1; every difference is 1.
        assert_eq!(encoded(&[1, 2, 3, 4, 5]), [0x80, 1, 4, 5, 2, 2, 0, 0, 0, 0]);
        // Differences -2, -2, -2, 1, 1, 1, 1: the least is -2, the others need 2 bits.
        let packed = [0b1100_0000, 0b0011_1111, 0, 0, 0, 0, 0, 0];
        let expected = [&[0x80, 1, 4, 8, 14, 3, 2, 0, 0, 0], &packed[..]].concat();
        assert_eq!(encoded(&[7, 5, 3, 1, 2, 3, 4, 5]), expected);
    }

    #[test]
    fn nothing_and_one_value_have_no_block() {
        assert_eq!(encoded(&[]), [0x80, 1, 4, 0, 0]);
        assert_eq!(encoded(&[-1]), [0x80, 1, 4, 1, 1]);
    }
}
