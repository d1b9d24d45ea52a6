//! Parity and reconstruction: functions over the blocks of one code word.
//!
//! One parity block is the XOR of the data blocks, so that it can be folded together on its way around
//! the ring; more come from a Reed-Solomon code of the crate `reed-solomon-simd`. Both are linear:
//! the parity of `old ^ new` is what `new` changes in the parity of `old`.

use crate::layout::Layout;

/// What the length of a block is a multiple of.
pub const BLOCK_UNIT: usize = 64;

/// Why blocks cannot be reconstructed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodingError {
    /// More blocks are lost than there is parity.
    #[error("{missing} blocks of a code word are lost, and its parity makes up for {parity}")]
    TooMany {
        /// Blocks that are not there.
        missing: usize,
        /// Parity blocks of a code word.
        parity: usize,
    },
    /// Blocks of one code word differ in length, or have one that the code does not take.
    #[error("a block of {len} octets is not a code word's: its others have {expected}")]
    Length {
        /// Its length.
        len: usize,
        /// What was expected.
        expected: usize,
    },
}

/// Folds `block` onto `sum`: `sum ^= block`. What is beyond the shorter of the two is not touched, as if
/// the shorter ended in zeros.
///
/// # Panics
/// Never: pieces are cut to the length that is read.
pub fn fold(sum: &mut [u8], block: &[u8]) {
    const WORD: usize = 32;
    let len = sum.len().min(block.len());
    let (sum, block) = (&mut sum[..len], &block[..len]);
    let whole = len - len % WORD;
    let (words, rest) = sum.split_at_mut(whole);
    let (block_words, block_rest) = block.split_at(whole);
    for (word, other) in words.chunks_exact_mut(WORD).zip(block_words.chunks_exact(WORD)) {
        // Four words at a time is what also an unoptimised build turns into few instructions.
        for at in [0, 8, 16, 24] {
            let octets = |from: &[u8]| {
                u64::from_ne_bytes(from[at..at + 8].try_into().expect("it is eight octets"))
            };
            let folded = octets(word) ^ octets(other);
            word[at..at + 8].copy_from_slice(&folded.to_ne_bytes());
        }
    }
    for (octet, other) in rest.iter_mut().zip(block_rest) {
        *octet ^= other;
    }
}

/// The parity blocks of a code word's data blocks, which all have one length, a multiple of
/// [`BLOCK_UNIT`].
///
/// # Errors
/// When lengths are not as they must be.
///
/// # Panics
/// If there are not as many blocks as the layout has data blocks per code word.
pub fn encode(layout: &Layout, data: &[&[u8]]) -> Result<Vec<Vec<u8>>, CodingError> {
    assert_eq!(data.len(), layout.data(), "a code word has all its data blocks");
    check_lengths(data.iter().copied())?;
    if layout.parity() == 1 {
        return Ok(vec![xor(data.iter().copied())]);
    }
    let parity = reed_solomon_simd::encode(layout.data(), layout.parity(), data);
    Ok(parity.expect("the lengths are checked, and groups are far below the code's limits"))
}

/// The blocks of a code word that are missing, in the order of [`Layout::shards`]. `shards` has all of
/// its blocks in that order, and `None` for those that are lost.
///
/// # Errors
/// When more are lost than the scheme makes up for, or lengths are not as they must be.
///
/// # Panics
/// If `shards` has not as many elements as a code word has blocks.
pub fn reconstruct(
    layout: &Layout,
    shards: &[Option<&[u8]>],
) -> Result<Vec<(usize, Vec<u8>)>, CodingError> {
    assert_eq!(shards.len(), layout.data() + layout.parity(), "every block is there or lost");
    let lost: Vec<usize> = (0..shards.len()).filter(|&at| shards[at].is_none()).collect();
    if lost.is_empty() {
        return Ok(Vec::new());
    }
    if lost.len() > layout.parity() {
        return Err(CodingError::TooMany { missing: lost.len(), parity: layout.parity() });
    }
    check_lengths(shards.iter().copied().flatten())?;
    if layout.parity() == 1 {
        return Ok(vec![(lost[0], xor(shards.iter().copied().flatten()))]);
    }
    let there = |range: std::ops::Range<usize>| {
        let first = range.start;
        range.filter_map(move |at| Some((at - first, shards[at]?)))
    };
    let (data, all) = (layout.data(), shards.len());
    let restored =
        reed_solomon_simd::decode(data, layout.parity(), there(0..data), there(data..all))
            .expect("lengths and numbers are checked");
    // The library gives lost data only; lost parity is made of the data once that is whole.
    let mut whole: Vec<Vec<u8>> = Vec::new();
    if lost.iter().any(|&at| at >= data) {
        let block = |at: usize| shards[at].map_or_else(|| restored[&at].clone(), <[u8]>::to_vec);
        let blocks: Vec<Vec<u8>> = (0..data).map(block).collect();
        let views: Vec<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
        whole = encode(layout, &views)?;
    }
    let block =
        |at: usize| if at < data { restored[&at].clone() } else { whole[at - data].clone() };
    Ok(lost.into_iter().map(|at| (at, block(at))).collect())
}

fn xor<'a>(mut blocks: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut sum = blocks.next().map(<[u8]>::to_vec).unwrap_or_default();
    for block in blocks {
        fold(&mut sum, block);
    }
    sum
}

fn check_lengths<'a>(blocks: impl Iterator<Item = &'a [u8]>) -> Result<(), CodingError> {
    let mut expected = None;
    for block in blocks {
        let len = block.len();
        let multiple = len.next_multiple_of(BLOCK_UNIT).max(BLOCK_UNIT);
        let expected = *expected.get_or_insert(multiple);
        if len != expected {
            return Err(CodingError::Length { len, expected });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use meikyo_worlds::Random;

    use super::*;
    use crate::layout::Scheme;

    fn random_blocks(count: usize, len: usize, random: &mut Random) -> Vec<Vec<u8>> {
        let octet = |random: &mut Random| u8::try_from(random.below(256)).unwrap();
        (0..count).map(|_| (0..len).map(|_| octet(random)).collect()).collect()
    }

    fn schemes(hosts: usize) -> Vec<Layout> {
        let mut schemes = vec![Scheme::Partner, Scheme::Ring];
        schemes.extend((2..hosts).map(Scheme::ReedSolomon));
        schemes.into_iter().filter_map(|scheme| Layout::new(scheme, hosts).ok()).collect()
    }

    #[test]
    fn folding_is_xor_of_every_octet_whatever_the_lengths() {
        let mut random = Random::new(1);
        for _ in 0..200 {
            let lens = [random.index(150), random.index(150)];
            let [mut sum, block] =
                lens.map(|len| random_blocks(1, len, &mut random).pop().unwrap());
            let expected: Vec<u8> = sum
                .iter()
                .enumerate()
                .map(|(at, octet)| octet ^ block.get(at).copied().unwrap_or(0))
                .collect();
            fold(&mut sum, &block);
            assert_eq!(sum, expected);
        }
    }

    /// Every pattern of lost hosts of groups up to six under every scheme: byte for byte, or said.
    #[test]
    fn every_loss_that_a_scheme_survives_is_made_good_and_every_other_is_refused() {
        let mut random = Random::new(2);
        let (mut good, mut refused) = (0, 0);
        for layout in (2..=6).flat_map(schemes) {
            let words: Vec<Vec<Vec<u8>>> = (0..layout.hosts())
                .map(|_| {
                    let mut shards = random_blocks(layout.data(), 128, &mut random);
                    let views: Vec<&[u8]> = shards.iter().map(Vec::as_slice).collect();
                    let parity = encode(&layout, &views).unwrap();
                    shards.extend(parity);
                    shards
                })
                .collect();
            for pattern in 0_u32..1 << layout.hosts() {
                let mut all_made_good = true;
                for (word, shards) in words.iter().enumerate() {
                    let is_lost = |shard| pattern >> layout.host_of(word, shard) & 1 == 1;
                    let left: Vec<Option<&[u8]>> = layout
                        .shards()
                        .zip(shards)
                        .map(|(shard, block)| (!is_lost(shard)).then_some(block.as_slice()))
                        .collect();
                    let missing = left.iter().filter(|block| block.is_none()).count();
                    match reconstruct(&layout, &left) {
                        Ok(made) => {
                            assert_eq!(made.len(), missing);
                            for (at, block) in made {
                                assert!(left[at].is_none() && block == shards[at]);
                            }
                        }
                        Err(error) => {
                            let parity = layout.parity();
                            assert_eq!(error, CodingError::TooMany { missing, parity });
                            all_made_good = false;
                        }
                    }
                }
                let lost = (0..layout.hosts()).filter(|host| pattern >> host & 1 == 1).collect();
                assert_eq!(all_made_good, layout.survives(&lost), "{layout:?} {lost:?}");
                *(if all_made_good { &mut good } else { &mut refused }) += 1;
            }
        }
        assert!(good > 300 && refused > 150, "{good} {refused}");
    }

    #[test]
    fn parity_of_a_difference_is_the_difference_of_parities() {
        let mut random = Random::new(3);
        for layout in (3..=6).flat_map(schemes) {
            let [old, new] = [(); 2].map(|()| random_blocks(layout.data(), 64, &mut random));
            let difference: Vec<Vec<u8>> = old
                .iter()
                .zip(&new)
                .map(|(old, new)| old.iter().zip(new).map(|(a, b)| a ^ b).collect())
                .collect();
            let [old, new, difference] = [&old, &new, &difference].map(|blocks| {
                let views: Vec<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
                encode(&layout, &views).unwrap()
            });
            for ((mut sum, difference), new) in old.into_iter().zip(&difference).zip(&new) {
                fold(&mut sum, difference);
                assert_eq!(&sum, new);
            }
        }
    }

    #[test]
    fn blocks_of_different_lengths_are_refused() {
        let layout = Layout::new(Scheme::Ring, 3).unwrap();
        let error = encode(&layout, &[&[0; 64], &[0; 63]]).unwrap_err();
        assert_eq!(error, CodingError::Length { len: 63, expected: 64 });
        let error = reconstruct(&layout, &[Some(&[0; 64]), None, Some(&[0; 128])]).unwrap_err();
        assert_eq!(error, CodingError::Length { len: 128, expected: 64 });
    }
}
