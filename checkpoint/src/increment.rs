//! What changed in an image since an earlier generation: the difference of a block, without the grains in which
//! nothing changed.
//!
//! Parity is linear, so `old ^ new` of a changed block is all that the host which keeps the parity needs to turn
//! the old parity into the new ([`crate::schedule::Job::Update`]). A difference goes over the network packed: a
//! mask with a bit for every grain of [`GRAIN_BYTES`], then the grains whose bits are set. A grain is a page,
//! the least of which the kernel can tell that a program wrote it; mask, head and record add 1 to 2 % where a single
//! page of a block changed, and 0.1 % where all did.

use ring::digest::{SHA256, digest};

use crate::geometry::BLOCK_MAX;

/// Octets of a grain.
pub const GRAIN_BYTES: usize = 4_096;

/// Octets of the longest mask.
pub const MASK_BYTES_MAX: u32 = BLOCK_MAX / 4_096 / 8;

/// Nothing changed.
const SAME: [u8; GRAIN_BYTES] = [0; GRAIN_BYTES];

/// What a block held, in 16 octets: a block with the same hash is taken to be the same, so this is half of a
/// SHA-256 and no checksum.
pub type Hash = [u8; 16];

/// The hash of a block.
///
/// # Panics
/// Never: a SHA-256 is longer.
pub fn hash_of(block: &[u8]) -> Hash {
    let whole = digest(&SHA256, block);
    *whole.as_ref().first_chunk().expect("a SHA-256 has 32 octets")
}

/// Octets of the mask of a difference of `len` octets.
pub const fn mask_bytes(len: usize) -> usize {
    len.div_ceil(GRAIN_BYTES).div_ceil(8)
}

/// Packs a difference of `len` octets, of which those beyond the end of `difference` are zeros, into `packed`.
pub fn pack(difference: &[u8], len: usize, packed: &mut Vec<u8>) {
    packed.clear();
    packed.resize(mask_bytes(len), 0);
    for (at, grain) in difference[..difference.len().min(len)].chunks(GRAIN_BYTES).enumerate() {
        if *grain != SAME[..grain.len()] {
            packed[at / 8] |= 1 << (at % 8);
            packed.extend_from_slice(grain);
            // The last grain of a shorter block is a whole one for the receiver.
            let whole = GRAIN_BYTES.min(len - at * GRAIN_BYTES);
            packed.resize(packed.len() + whole - grain.len(), 0);
        }
    }
}

/// The difference of `len` octets that was packed; `None` where nothing packs so.
pub fn unpack(packed: &[u8], len: usize) -> Option<Vec<u8>> {
    let (mask, mut grains) = packed.split_at_checked(mask_bytes(len))?;
    let mut difference = vec![0; len];
    for (at, grain) in difference.chunks_mut(GRAIN_BYTES).enumerate() {
        if mask[at / 8] >> (at % 8) & 1 == 1 {
            let (own, rest) = grains.split_at_checked(grain.len())?;
            grain.copy_from_slice(own);
            grains = rest;
        }
    }
    let beyond =
        (len.div_ceil(GRAIN_BYTES)..mask.len() * 8).any(|at| mask[at / 8] >> (at % 8) & 1 == 1);
    (grains.is_empty() && !beyond).then_some(difference)
}

#[cfg(test)]
mod tests {
    use meikyo_worlds::Random;

    use super::*;

    #[test]
    fn a_difference_is_unpacked_as_it_was_and_takes_the_room_of_its_changed_grains() {
        let mut random = Random::new(1);
        for len in [64, 4_096, 4_160, 40_960, 262_144, 300_032] {
            for _ in 0..50 {
                let shorter = random.index(len + 1);
                let mut difference = vec![0; shorter];
                let mut changed = std::collections::BTreeSet::new();
                for _ in 0..random.index(9).min(shorter) {
                    let at = random.index(shorter);
                    difference[at] = 1 + u8::try_from(random.below(255)).unwrap();
                    changed.insert(at / GRAIN_BYTES);
                }
                let mut packed = vec![7; 5];
                pack(&difference, len, &mut packed);
                let grains = changed.iter().map(|at| GRAIN_BYTES.min(len - at * GRAIN_BYTES));
                assert_eq!(packed.len(), mask_bytes(len) + grains.sum::<usize>());
                difference.resize(len, 0);
                assert_eq!(unpack(&packed, len), Some(difference));
                packed.push(0);
                assert_eq!(unpack(&packed, len), None);
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn whatever_comes_is_a_difference_or_refused(
            packed in proptest::collection::vec(proptest::num::u8::ANY, 0..20_000), grains in 0_usize..6,
        ) {
            let len = grains * GRAIN_BYTES + 64;
            if let Some(difference) = unpack(&packed, len) {
                proptest::prop_assert_eq!(difference.len(), len);
                let set: u32 = packed[..mask_bytes(len)].iter().map(|octet| octet.count_ones()).sum();
                proptest::prop_assert!(set as usize <= grains + 1);
            }
        }
    }
}
